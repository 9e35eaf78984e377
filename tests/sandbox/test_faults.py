"""Each kind of fault over HTTP, and which request meets which fault."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from syncengine.sandbox.faults import Fault, Faults

from .conftest import Talking


def statuses(running: Talking, times: int, path: str = "/tag") -> list[int]:
    return [running.post(path, {"name": f"T{number}"}).status_code for number in range(times)]


def test_a_fault_waits_for_its_turn_and_ends(running: Talking) -> None:
    """A fault skips the first `after` requests and meets the next `times` ones."""
    running.fault(operation="upsertTag", status=500, after=1, times=2)
    assert statuses(running, 5) == [200, 500, 500, 200, 200]


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
