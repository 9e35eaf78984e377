"""The sandbox keeps the service's rules for fetch clients and webhooks, of which one is active at a time."""

from __future__ import annotations

from typing import Any

import pytest

from syncengine.sandbox import posting

from .conftest import Asking

HOOK = {"callbackUrl": "https://connector.example.com/hook", "callerKey": "k"}


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


def test_with_a_webhook_no_status_is_taken(service: Asking) -> None:
    """docs/interface.md 3: with a webhook, a status update answers 409, even for a group that was fetched before."""
    do(service, "registerFetchClient")
    service.post("g")
    do(service, "fetchPostedTime", "unregisterFetchClient", "registerWebhook")
    assert service.ask("updatePostedTimeStatus", timeGroupId="g", status="SUCCESS")[0] == 409
    assert service.posted("g")["told"] == []


@pytest.mark.parametrize(
    "url", [None, "", " ", 7, "hook", "ftp://example.com/x", "http://", "https://:80/x", "http://[", "http://h:99999/"]
)
def test_a_webhook_needs_a_url_that_can_be_called(service: Asking, url: Any) -> None:
    """docs/service.md §1: 400 without callbackUrl."""
    assert service.ask("registerWebhook", callbackUrl=url)[0] == 400
    assert service.state()["connection"]["mechanism"] is None


def test_the_key_of_a_webhook_is_not_shown(service: Asking) -> None:
    """The state shows only whether there is a key; unregistering the webhook removes it."""
    do(service, "registerWebhook")
    connection = service.state()["connection"]
    assert (connection["callbackUrl"], connection["callerKey"]) == (HOOK["callbackUrl"], True)
    do(service, "unregisterWebhook")
    connection = service.state()["connection"]
    assert (connection["callbackUrl"], connection["callerKey"]) == (None, False)


def test_time_posted_without_a_registered_client_is_not_offered(service: Asking) -> None:
    """docs/interface.md 3: only time posted while a client is registered is offered."""
    service.post("early")
    do(service, "registerFetchClient")
    service.post("recorded")
    do(service, "unregisterFetchClient")
    service.post("late")
    assert service.groups("fetchPostedTime") == ["recorded"]
    assert [(posted["groupId"], posted["recorded"]) for posted in service.state()["postedTime"]] == [
        ("early", False),
        ("recorded", True),
        ("late", False),
    ]


def test_a_person_may_have_any_group_offered_now(service: Asking) -> None:
    """The control API offers any group again: unrecorded, not yet due, or acknowledged (docs/service.md §2)."""
    service.post("unrecorded")
    do(service, "registerFetchClient")
    service.post("fetched", "done")
    assert service.groups("fetchPostedTime") == ["fetched", "done"]
    service.told("updatePostedTimeStatus", timeGroupId="done", status="SUCCESS", externalId="e")
    for id_ in ("unrecorded", "fetched", "done"):
        assert service.sandbox.do(posting.offer, {"groupId": id_}).status == 200
    assert service.groups("fetchPostedTime") == ["unrecorded", "fetched", "done"]
    assert service.sandbox.do(posting.offer, {"groupId": "no"}).status == 404
