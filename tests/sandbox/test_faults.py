"""Each kind of fault over HTTP, and which request meets which fault."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from syncengine.sandbox.faults import Fault, Faults

from .conftest import Talking


def statuses(running: Talking, times: int, path: str = "/tag") -> list[int]:
    return [running.post(path, {"name": f"T{number}"}).status_code for number in range(times)]


def test_a_fault_answers_once_and_leaves_the_world_alone(running: Talking) -> None:
    """By default, a fault answers one request with its status, headers and body, and the request is not executed."""
    running.fault(operation="upsertTag", status=503, headers={"Retry-After": "7"}, body={"message": "busy"})
    response = running.post("/tag", {"name": "T"})
    assert (response.status_code, response.headers["retry-after"]) == (503, "7")
    assert response.json() == {"message": "busy"}
    assert running.names() == []
    assert running.post("/tag", {"name": "T"}).status_code == 200
    assert running.names() == ["T"]


def test_a_fault_waits_for_its_turn_and_ends(running: Talking) -> None:
    """A fault skips the first `after` requests and meets the next `times` ones."""
    running.fault(operation="upsertTag", status=500, after=1, times=2)
    assert statuses(running, 5) == [200, 500, 500, 200, 200]


def test_a_fault_for_ever_ends_when_it_is_taken_away(running: Talking) -> None:
    """A fault with `times: null` lasts until DELETE removes all faults."""
    running.fault(operation="*", status=500, times=None)
    assert statuses(running, 3) == [500, 500, 500]
    assert running.post("/tag/batch", {"tags": []}).status_code == 500
    running.outsider.delete("/faults")
    assert statuses(running, 1) == [200]


def test_a_fault_meets_its_operation_only(running: Talking) -> None:
    """Requests of other operations do not count for `after`."""
    running.fault(operation="upsertTags", status=500, after=1)
    assert statuses(running, 2) == [200, 200]
    assert statuses(running, 2, "/tag/metadata/delete") == [400, 400]
    assert [running.post("/tag/batch", {"tags": []}).status_code for _ in range(3)] == [200, 500, 200]


def test_faults_are_met_in_the_order_they_were_asked_for() -> None:
    """A request meets the first fault that is due; each fault counts every request that it could have met."""
    faults = Faults()
    first, second = Fault(operation="upsertTag", status=500), Fault(operation="*", status=503, after=1, times=None)
    faults.add([first, second])
    assert [faults.take("upsertTag") for _ in range(3)] == [first, second, second]
    faults.clear()
    assert faults.take("upsertTag") is None


@pytest.mark.parametrize(("drop", "names"), [("before", []), ("after", ["T"])])
def test_a_dropped_connection_gives_no_answer(running: Talking, drop: str, names: list[str]) -> None:
    """The connection is cut before or after the request is executed, and a client cannot tell which."""
    running.fault(operation="upsertTag", drop=drop)
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        running.post("/tag", {"name": "T"})
    assert running.names() == names
    assert [entry["status"] for entry in running.requests()] == [None]
    assert running.post("/tag", {"name": "T"}).status_code == 200


@pytest.mark.parametrize("status", [200, 204, 502])
def test_a_success_can_be_lost_on_its_way(running: Talking, status: int) -> None:
    """With `apply`, the request is executed and then answered with the fault's status and body."""
    running.fault(operation="upsertTag", status=status, apply=True)
    response = running.post("/tag", {"name": "T"})
    assert (response.status_code, response.content) == (status, b"")
    assert running.names() == ["T"]


@pytest.mark.parametrize(
    ("body", "kind"), [("<html>Welcome</html>", "text/html"), ('{"errors": [', "text/plain"), ("", "text/plain")]
)
def test_a_text_is_sent_as_it_is(running: Talking, body: str, kind: str) -> None:
    """A fault can answer 200 with HTML or truncated JSON; the request is not executed then."""
    running.fault(operation="upsertTags", body=body)
    response = running.post("/tag/batch", {"tags": [{"name": "T"}]})
    assert (response.status_code, response.text) == (200, body)
    assert response.headers["content-type"].startswith(kind)
    assert running.names() == []


def test_a_fault_chooses_its_content_type(running: Talking) -> None:
    """The fault's own Content-Type header replaces the guessed one."""
    running.fault(operation="upsertTag", body="{}", headers={"Content-Type": "application/json"})
    assert running.post("/tag", {"name": "T"}).headers.get_list("content-type") == ["application/json"]


@pytest.mark.parametrize("status", [None, 400])
def test_chosen_items_fail_and_the_others_are_applied(running: Talking, status: int | None) -> None:
    """The answer is 200 or 400 with the chosen errors, even for an index that the batch does not have."""
    errors = [{"index": 1, "errorDescription": "no"}, {"index": 99, "errorDescription": "what"}]
    running.fault(operation="upsertTags", itemErrors=errors, **({"status": status} if status else {}))
    response = running.post("/tag/batch", {"tags": [{"name": "A"}, {"name": "B"}, {}]})
    missing = {"index": 2, "errorDescription": "name is missing"}
    assert (response.status_code, response.json()) == (status or 200, {"errors": [errors[0], missing, errors[1]]})
    assert running.names() == ["A"]


def test_an_item_that_is_made_to_fail_is_swept(running: Talking) -> None:
    """docs/service.md §2: a type whose upload failed in the session is deleted when the session completes."""
    items = [{"code": "A", "label": "A"}, {"code": "B", "label": "B"}]
    running.post("/activitytype/batch", {"activityTypes": items})
    session = running.post("/activitytype/sync/start").json()
    running.fault(operation="uploadActivityTypes", itemErrors=[{"index": 0, "errorDescription": "no"}])
    running.post("/activitytype/batch", {"activityTypes": items, **session})
    running.post("/activitytype/sync/complete", session)
    assert {known["code"]: known["deleted"] for known in running.state()["activityTypes"]} == {"A": True, "B": False}


@pytest.mark.parametrize(
    ("operation", "path", "status"),
    [
        ("uploadActivityTypes", "/activitytype/batch", 400),
        ("completeSyncSession", "/activitytype/sync/complete", 404),
        ("cancelSyncSession", "/activitytype/sync/cancel", 404),
    ],
)
def test_a_session_can_be_gone_when_it_is_used(running: Talking, operation: str, path: str, status: int) -> None:
    """`expireSession` ends the session that the request names; other sessions stay open."""
    first, other = (running.post("/activitytype/sync/start").json() for _ in range(2))
    running.fault(operation=operation, expireSession=True)
    assert running.post(path, {"activityTypes": [], **first}).status_code == status
    assert running.post("/activitytype/sync/complete", other).status_code == 200


def test_a_delayed_answer_comes_late_for_work_done_at_once(running: Talking) -> None:
    """A request with a delay is executed at once; other requests are answered meanwhile."""
    running.fault(operation="upsertTag", delay=30)
    with pytest.raises(httpx.ReadTimeout):
        running.post("/tag", {"name": "T"}, timeout=0.05)
    assert running.names() == ["T"]
    running.fault(operation="upsertTag", delay=0.01)
    assert running.post("/tag", {"name": "U"}).status_code == 200


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"operation": "*"}, "the body must be an array of faults"),
        (["*"], "expected an object"),
        ([{}], "operation is missing"),
        ([{"operation": "upsertTagz"}], "operation must be the id of an operation or *"),
        ([{"operation": "*", "satus": 500}], "unknown field: satus"),
        ([{"operation": "*", "status": 99}], "status must be a status from 200 to 599"),
        ([{"operation": "*", "drop": "now"}], "drop must be before or after"),
        ([{"operation": "*", "delay": -1}], "delay must be a number of seconds"),
        ([{"operation": "*", "times": -1}], "times must be a non-negative integer"),
        ([{"operation": "upsertTag", "itemErrors": []}], "can have itemErrors"),
        ([{"operation": "upsertTags", "itemErrors": [{}]}], "index is missing"),
    ],
)
def test_a_fault_that_is_not_understood_is_refused(running: Talking, faults: Any, words: str) -> None:
    """One invalid fault refuses the whole list: otherwise a test with a misspelt fault would prove nothing."""
    good = [{"operation": "*", "status": 500}] if isinstance(faults, list) else []
    response = running.outsider.post("/faults", json=good + faults if good else faults)
    assert response.status_code == 400
    assert words in response.json()["message"]
    assert statuses(running, 1) == [200]
