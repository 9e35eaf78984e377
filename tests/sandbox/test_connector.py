"""The sandbox keeps the service's rules for connectors: registration, reported failures, one mechanism at a time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from syncengine.sandbox import posting
from syncengine.sandbox.rules import MESSAGES

from .conftest import Asking

REGISTRATION = {
    "environment": {"clientOs": "linux", "javaVmVersion": 21},
    "connectorType": "ledger",
    "connectorVersion": "1.0",
    "connectorLibraryVersion": "1.0",
    "clientTimestamp": 1706400000000,
    "clientTimeZoneOffset": "+10:00",
}
HOOK = {"callbackUrl": "https://connector.example.com/hook", "callerKey": "k"}


def test_a_registration_is_kept_without_its_credentials_which_are_new_each_time(service: Asking) -> None:
    """docs/interface.md 2.6: the service's id stays the same, and the expiry is an ISO 8601 instant."""
    first, second = (service.told("registerConnector", **REGISTRATION) for _ in range(2))
    assert first["serviceId"] == second["serviceId"]
    assert datetime.fromisoformat(first["serviceIdExpiry"]).utcoffset() is not None
    assert REGISTRATION.items() <= service.state()["connection"]["connector"].items()
    held = str(service.sandbox.store.connection)
    for secret in ("serviceKey", "serviceSessionToken"):
        assert first[secret] != second[secret]
        assert second[secret] not in held


@pytest.mark.parametrize("body", [{"environment": []}, {"clientTimestamp": "now"}, {"connectorType": 1}])
def test_a_registration_of_the_wrong_shape_is_refused(service: Asking, body: dict[str, Any]) -> None:
    assert service.ask("registerConnector", **body)[0] == 400
    assert service.state()["connection"]["connector"] is None


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_reported_failure_is_shown_to_who_posts_until_it_is_rescinded(service: Asking, kind: str) -> None:
    """docs/interface.md 3: users see the message of the report, or else the standard message of its error type."""
    assert service.ask("reportHealthFailure", errorType=kind) == (204, None)
    assert service.sandbox.do(posting.post, {}).body["healthMessage"] == MESSAGES[kind]
    assert service.ask("reportHealthFailure", errorType=kind, userErrorMessage="Ask Ann.")[0] == 204
    assert service.sandbox.do(posting.post, {}).body["healthMessage"] == "Ask Ann."
    assert service.state()["connection"]["health"]["errorType"] == kind
    for _ in range(2):
        assert service.ask("rescindHealthFailure") == (204, None)
        assert service.sandbox.do(posting.post, {}).body["healthMessage"] is None


@pytest.mark.parametrize("body", [{"errorType": "BROKEN"}, {"errorType": 1}, {"userErrorMessage": {}}])
def test_a_failure_that_is_not_understood_is_refused(service: Asking, body: dict[str, Any]) -> None:
    """docs/interface.md 2.7: errorType is an enum; a report with an unknown type or a wrong field answers 400."""
    assert service.ask("reportHealthFailure", **body)[0] == 400
    assert service.state()["connection"]["health"] is None


# --- fetch clients and webhooks


def do(service: Asking, *steps: str) -> None:
    for step in steps:
        service.told(step, **(HOOK if step == "registerWebhook" else {}))


@pytest.mark.parametrize(
    ("before", "step", "status", "mechanism"),
    [
        ([], "registerFetchClient", 200, "fetch"),
        (["registerFetchClient"], "registerFetchClient", 409, "fetch"),
        (["fetchPostedTime"], "registerFetchClient", 409, "fetch"),
        (["registerWebhook"], "registerFetchClient", 409, "webhook"),
        ([], "fetchPostedTime", 200, "fetch"),
        (["registerFetchClient"], "fetchPostedTime", 200, "fetch"),
        (["registerWebhook"], "fetchPostedTime", 409, "webhook"),
        ([], "unregisterFetchClient", 404, None),
        (["registerFetchClient"], "unregisterFetchClient", 200, None),
        (["registerFetchClient", "unregisterFetchClient"], "unregisterFetchClient", 404, None),
        (["registerWebhook"], "unregisterFetchClient", 409, "webhook"),
        ([], "registerWebhook", 200, "webhook"),
        (["registerWebhook"], "registerWebhook", 409, "webhook"),
        (["registerFetchClient"], "registerWebhook", 409, "fetch"),
        ([], "unregisterWebhook", 404, None),
        (["registerWebhook"], "unregisterWebhook", 200, None),
        (["registerFetchClient"], "unregisterWebhook", 404, "fetch"),
        (["registerFetchClient", "unregisterFetchClient"], "registerWebhook", 200, "webhook"),
        (["registerWebhook", "unregisterWebhook"], "registerFetchClient", 200, "fetch"),
    ],
)
def test_there_is_one_mechanism_at_a_time(
    service: Asking, before: list[str], step: str, status: int, mechanism: str | None
) -> None:
    """docs/service.md §1: 409 while another mechanism is active, 404 while none is; a fetch registers its client."""
    do(service, *before)
    assert service.ask(step, **(HOOK if step == "registerWebhook" else {}))[0] == status
    assert service.state()["connection"]["mechanism"] == mechanism


@pytest.mark.parametrize(
    "url", [None, "", " ", 7, "hook", "ftp://example.com/x", "http://", "https://:80/x", "http://[", "http://h:99999/"]
)
def test_a_webhook_needs_a_url_that_can_be_called(service: Asking, url: Any) -> None:
    """docs/service.md §1: 400 without callbackUrl."""
    assert service.ask("registerWebhook", callbackUrl=url)[0] == 400
    assert service.state()["connection"]["mechanism"] is None


def test_a_webhook_takes_no_status_and_its_key_is_not_shown(service: Asking) -> None:
    """docs/interface.md 3: a status update answers 409, even for a group that was fetched before.

    The state shows only whether there is a key; unregistering the webhook removes it.
    """
    do(service, "registerFetchClient")
    service.post("g")
    do(service, "fetchPostedTime", "unregisterFetchClient", "registerWebhook")
    assert service.ask("updatePostedTimeStatus", timeGroupId="g", status="SUCCESS")[0] == 409
    assert service.posted("g")["told"] == []
    connection = service.state()["connection"]
    assert (connection["callbackUrl"], connection["callerKey"]) == (HOOK["callbackUrl"], True)
    do(service, "unregisterWebhook")
    connection = service.state()["connection"]
    assert (connection["callbackUrl"], connection["callerKey"]) == (None, False)


def test_only_time_posted_while_a_client_is_registered_is_offered(service: Asking) -> None:
    """docs/interface.md 3. The control API offers any group: unrecorded, not yet due, or acknowledged."""
    service.post("early")
    do(service, "registerFetchClient")
    service.post("fetched", "done")
    do(service, "unregisterFetchClient")
    service.post("late")
    assert service.groups("fetchPostedTime") == ["fetched", "done"]
    recorded = {posted["groupId"]: posted["recorded"] for posted in service.state()["postedTime"]}
    assert recorded == {"early": False, "fetched": True, "done": True, "late": False}
    service.told("updatePostedTimeStatus", timeGroupId="done", status="SUCCESS", externalId="e")
    for id_ in ("early", "fetched", "done"):
        assert service.sandbox.do(posting.offer, {"groupId": id_}).status == 200
    assert service.groups("fetchPostedTime") == ["early", "fetched", "done"]
    assert service.sandbox.do(posting.offer, {"groupId": "no"}).status == 404
