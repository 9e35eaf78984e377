"""The sandbox keeps the service's rules for posted time groups, and for connectors."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from syncengine.sandbox import posting
from syncengine.sandbox.rules import MESSAGES

from .conftest import Asking

REOFFER, RETRY = 480, 60
"""The defaults of the settings, in seconds."""


@pytest.fixture
def fetching(service: Asking) -> Asking:
    service.told("registerFetchClient")
    return service


def status(service: Asking, id_: str, status: str, **more: Any) -> int:
    return service.ask("updatePostedTimeStatus", timeGroupId=id_, status=status, **more)[0]


def test_a_fetch_answers_the_oldest_groups_up_to_its_limit(fetching: Asking) -> None:
    """docs/interface.md 4, fetch rule 2: the default limit is 25."""
    fetching.post(*(f"g{number:02}" for number in range(40)))
    assert fetching.groups("fetchPostedTime", limit=3) == ["g00", "g01", "g02"]
    assert fetching.groups("fetchPostedTime") == [f"g{number:02}" for number in range(3, 28)]
    assert fetching.groups("fetchPostedTime", limit=1000) == [f"g{number:02}" for number in range(28, 40)]
    assert fetching.groups("fetchPostedTime") == []


@pytest.mark.parametrize(("told", "after"), [(None, REOFFER), ("RETRIABLE_FAILURE", RETRY)])
def test_a_group_without_an_end_is_offered_again(fetching: Asking, told: str | None, after: int) -> None:
    """docs/interface.md 3, 7.2: each time the re-offer time or, after a retriable failure, the retry time has passed. A
    fetched group is pending and has no caller key, which only webhook calls have."""
    fetching.post("g", description="D", totalDurationSecs=90, localDate="2026-01-27")
    (group,) = fetching.get("fetchPostedTime")[1]
    assert (group["groupId"], group["description"], group["status"]) == ("g", "D", "PENDING")
    assert (group["totalDurationSecs"], group["localDate"], "callerKey" in group) == (90, "2026-01-27", False)
    for offers in (2, 3):
        if told:
            assert status(fetching, "g", told, message="busy") == 200
            assert fetching.posted("g")["state"] == "retrying"
        fetching.later(after - 1)
        assert fetching.groups("fetchPostedTime") == []
        fetching.later(1)
        assert fetching.groups("fetchPostedTime") == ["g"]
        assert len(fetching.posted("g")["offers"]) == offers


def test_a_success_and_a_failure_are_final(fetching: Asking) -> None:
    """docs/interface.md 3, 7.2: the group keeps the external id or the message, and is never offered again.
    docs/interface.md 2.5 has no status for a failed group, so it is not listed."""
    fetching.post("good", "bad", "later")
    fetching.groups("fetchPostedTime")
    assert status(fetching, "good", "SUCCESS", externalId="ledger-1") == 200
    assert status(fetching, "bad", "FAILURE", message="Assign a tag.") == 200
    status(fetching, "later", "RETRIABLE_FAILURE")
    listed = fetching.get("listPostedTime")[1]
    assert {group["groupId"]: group["status"] for group in listed} == {"good": "SUCCESS", "later": "PENDING"}
    fetching.later(10 * REOFFER)
    assert fetching.groups("fetchPostedTime") == ["later"]
    good, bad = fetching.posted("good"), fetching.posted("bad")
    assert (good["state"], good["externalId"], good["due"]) == ("success", "ledger-1", None)
    assert (bad["state"], bad["message"], bad["due"]) == ("failed", "Assign a tag.", None)


def test_a_group_that_is_posted_again_is_offered_until_its_newest_content_has_a_status(fetching: Asking) -> None:
    """docs/service.md §2: after a failure too. The group keeps its id and its earlier statuses."""
    fetching.post("g", description="old")
    fetching.groups("fetchPostedTime")
    fetching.later(1)
    fetching.post("g", description="new")
    assert status(fetching, "g", "SUCCESS") == 200
    assert fetching.posted("g")["state"] == "posted"
    assert fetching.get("fetchPostedTime")[1][0]["description"] == "new"
    status(fetching, "g", "FAILURE", message="no")
    assert fetching.posted("g")["state"] == "failed"
    fetching.post("g", description="newest")
    assert fetching.get("fetchPostedTime")[1][0]["description"] == "newest"
    status(fetching, "g", "SUCCESS")
    (posted,) = fetching.state()["postedTime"]
    assert [told["status"] for told in posted["told"]] == ["SUCCESS", "FAILURE", "SUCCESS"]


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"status": "SUCCESS"}, 400),
        ({"timeGroupId": "g"}, 400),
        ({"timeGroupId": "g", "status": "DONE"}, 400),
        ({"timeGroupId": "g", "status": ["SUCCESS"]}, 400),
        ({"timeGroupId": 7, "status": "SUCCESS"}, 400),
        ({"timeGroupId": "g", "status": "FAILURE", "message": 7}, 400),
        ({"timeGroupId": "unrecorded", "status": "SUCCESS"}, 404),
        ({"timeGroupId": "no", "status": "SUCCESS"}, 404),
    ],
)
def test_a_status_update_that_is_not_understood_is_refused(service: Asking, body: dict[str, Any], answer: int) -> None:
    """docs/service.md §1: the group stays as it is. One posted while no client was registered is unknown."""
    service.post("unrecorded")
    service.told("registerFetchClient")
    service.post("g")
    service.groups("fetchPostedTime")
    before = service.state()["postedTime"]
    assert service.ask("updatePostedTimeStatus", **body)[0] == answer
    assert service.state()["postedTime"] == before


def test_the_list_goes_back_from_the_newest_and_changes_nothing(service: Asking) -> None:
    """docs/interface.md 4: the list includes unrecorded groups, and its default limit is 100."""
    for number in range(120):
        service.post(f"g{number:03}")
    newest_first = [f"g{number:03}" for number in reversed(range(120))]
    before = service.state()
    assert service.groups("listPostedTime") == newest_first[:100]
    assert service.groups("listPostedTime", limit=500) == newest_first
    assert service.groups("listPostedTime", limit=1) == newest_first[:1]
    assert service.state() == before


def test_the_list_leaves_out_what_was_submitted_later(service: Asking) -> None:
    """docs/interface.md 4: `submittedBefore` excludes groups of exactly that instant; a future group is not listed."""
    service.post("a", submissionTime=10)
    service.post("b1", "b2", submissionTime=20)
    service.post("c", submissionTime=30)
    service.post("future", submissionTime=10**15)
    assert service.groups("listPostedTime") == ["c", "b2", "b1", "a"]
    assert service.groups("listPostedTime", submittedBefore=30) == ["b2", "b1", "a"]
    assert service.groups("listPostedTime", submittedBefore=20) == ["a"]
    assert service.groups("listPostedTime", submittedBefore=10) == []


@pytest.mark.parametrize("operation", ["fetchPostedTime", "listPostedTime"])
def test_a_list_beyond_its_limits_is_refused_and_registers_nobody(service: Asking, operation: str) -> None:
    """docs/interface.md 8: the limit is 1 to 500, and for a fetch at least 1 (docs/service.md §1)."""
    for limit in (0, -1, "x", "", "1.5", *([501] if operation == "listPostedTime" else [])):
        assert service.get(operation, limit=limit)[0] == 400, limit
    assert service.state()["connection"]["mechanism"] is None
    assert service.get("listPostedTime", submittedBefore="yesterday")[0] == 400


# --- connectors: registration, reported failures, one mechanism at a time


REGISTRATION = {
    "environment": {"clientOs": "linux", "javaVmVersion": 21},
    "connectorType": "ledger",
    "connectorVersion": "1.0",
    "connectorLibraryVersion": "1.0",
    "clientTimestamp": 1706400000000,
    "clientTimeZoneOffset": "+10:00",
}
HOOK = {"callbackUrl": "https://connector.example.com/hook", "callerKey": "k"}
BODIES = {"registerWebhook": HOOK}


def test_a_registration_is_kept_without_its_credentials_which_are_new_each_time(service: Asking) -> None:
    """docs/interface.md 2.6: the service's id stays the same, and the expiry is an ISO 8601 instant."""
    first, second = (service.told("registerConnector", **REGISTRATION) for _ in range(2))
    texts = {"serviceId", "serviceKey", "serviceIdExpiry", "serviceSessionToken", "groupName", "regionName"}
    assert {name: type(value) for name, value in first.items()} == {
        **dict.fromkeys(texts, str),
        "connectorConfiguration": dict,
    }
    assert first["serviceId"] == second["serviceId"]
    assert datetime.fromisoformat(first["serviceIdExpiry"]).utcoffset() is not None
    assert REGISTRATION.items() <= service.state()["connection"]["connector"].items()
    held = str(service.sandbox.store.connection)
    for secret in ("serviceKey", "serviceSessionToken"):
        assert first[secret] != second[secret]
        assert second[secret] not in held


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


@pytest.mark.parametrize(
    ("before", "step", "status", "mechanism"),
    [
        ([], "registerFetchClient", 200, "fetch"),
        (["registerFetchClient"], "registerFetchClient", 409, "fetch"),
        (["registerWebhook"], "registerFetchClient", 409, "webhook"),
        (["registerFetchClient"], "fetchPostedTime", 200, "fetch"),
        (["registerWebhook"], "fetchPostedTime", 409, "webhook"),
        ([], "unregisterFetchClient", 404, None),
        (["registerFetchClient"], "unregisterFetchClient", 200, None),
        (["registerWebhook"], "unregisterFetchClient", 409, "webhook"),
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
    *_, last = (service.ask(each, **BODIES.get(each, {}))[0] for each in (*before, step))
    assert (last, service.state()["connection"]["mechanism"]) == (status, mechanism)


NO_URLS = (None, "", " ", 7, "hook", "ftp://example.com/x", "http://", "https://:80/x", "http://[", "http://h:99999/")
WRONG = {
    "registerConnector": ({"environment": []}, {"clientTimestamp": "now"}, {"connectorType": 1}),
    "reportHealthFailure": ({"errorType": "BROKEN"}, {"errorType": 1}, {"userErrorMessage": {}}),
    "registerWebhook": tuple({"callbackUrl": url} for url in NO_URLS),
}


@pytest.mark.parametrize(("operation", "body"), [(name, body) for name, bodies in WRONG.items() for body in bodies])
def test_what_is_not_understood_is_refused(service: Asking, operation: str, body: dict[str, Any]) -> None:
    """docs/interface.md 2.7, docs/service.md §1: errorType is an enum, and a webhook needs a URL that can be called."""
    before = service.state()
    assert (service.ask(operation, **body)[0], service.state()) == (400, before)


def test_a_webhook_takes_no_status_and_its_key_is_not_shown(service: Asking) -> None:
    """docs/interface.md 3: a status update answers 409, even for a group that was fetched before. The state shows only
    whether there is a key; unregistering the webhook removes it."""
    service.told("registerFetchClient")
    service.post("g")
    for step in ("fetchPostedTime", "unregisterFetchClient", "registerWebhook"):
        service.told(step, **BODIES.get(step, {}))
    assert service.ask("updatePostedTimeStatus", timeGroupId="g", status="SUCCESS")[0] == 409
    assert service.posted("g")["told"] == []
    connection = service.state()["connection"]
    assert (connection["callbackUrl"], connection["callerKey"]) == (HOOK["callbackUrl"], True)
    service.told("unregisterWebhook")
    connection = service.state()["connection"]
    assert (connection["callbackUrl"], connection["callerKey"]) == (None, False)


def test_only_time_posted_while_a_client_is_registered_is_offered(service: Asking) -> None:
    """docs/interface.md 3. The control API offers any group: unrecorded, not yet due, or acknowledged."""
    service.post("early")
    service.told("registerFetchClient")
    service.post("fetched", "done")
    service.told("unregisterFetchClient")
    service.post("late")
    assert service.groups("fetchPostedTime") == ["fetched", "done"]
    recorded = {posted["groupId"]: posted["recorded"] for posted in service.state()["postedTime"]}
    assert recorded == {"early": False, "fetched": True, "done": True, "late": False}
    service.told("updatePostedTimeStatus", timeGroupId="done", status="SUCCESS", externalId="e")
    for id_ in ("early", "fetched", "done"):
        assert service.sandbox.do(posting.offer, {"groupId": id_}).status == 200
    assert service.groups("fetchPostedTime") == ["early", "fetched", "done"]
    assert service.sandbox.do(posting.offer, {"groupId": "no"}).status == 404
