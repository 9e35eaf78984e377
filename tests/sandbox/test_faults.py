"""Each kind of fault over HTTP, which request meets which fault, and calls that are executed late."""

import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from syncengine.sandbox.faults import Fault, Faults
from tests.support.waiting import eventually

from .conftest import Talking


def statuses(running: Talking, times: int) -> list[int]:
    return [running.call("/tag", {"name": f"T{number}"}).status_code for number in range(times)]


def test_a_fault_answers_its_requests_and_leaves_the_world_alone(running: Talking) -> None:
    """By default one request, with status, headers and body; `after` spares the first, `times: null` is for ever."""
    running.fault(operation="upsertTag", status=503, headers={"Retry-After": "7"}, body={"message": "busy"})
    response = running.call("/tag", {"name": "T"})
    assert (response.status_code, response.headers["retry-after"]) == (503, "7")
    assert response.json() == {"message": "busy"}
    assert running.tags() == []
    running.fault(operation="upsertTag", status=500, after=1, times=2)
    assert running.call("/tag/batch", {"tags": []}).status_code == 200
    assert statuses(running, 4) == [200, 500, 500, 200]
    running.fault(operation="*", status=500, times=None)
    assert statuses(running, 3) == [500, 500, 500]
    running.control.delete("/faults")
    assert statuses(running, 1) == [200]


def test_faults_are_met_in_the_order_they_were_asked_for() -> None:
    """A request meets the first fault that is due; each fault counts every request that it could have met."""
    faults = Faults()
    first, second = Fault(operation="upsertTag", status=500), Fault(operation="*", status=503, after=1, times=None)
    faults.add([first, second])
    assert [faults.take("upsertTag") for _ in range(3)] == [first, second, second]
    faults.clear()
    assert faults.take("upsertTag") is None


def cut_off(running: Talking) -> None:
    """Upsert the tag T; the connection is cut."""
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        running.call("/tag", {"name": "T"})


@pytest.mark.parametrize(("drop", "names"), [("before", []), ("after", ["T"])])
def test_a_dropped_connection_gives_no_answer(running: Talking, drop: str, names: list[str]) -> None:
    """The connection is cut before or after the request is executed, and a client cannot tell which."""
    running.fault(operation="upsertTag", drop=drop)
    cut_off(running)
    assert running.tags() == names
    assert [entry["status"] for entry in running.requests()] == [None]


@pytest.mark.parametrize("status", [200, 204, 502])
def test_a_success_can_be_lost_on_its_way(running: Talking, status: int) -> None:
    """With `apply`, the request is executed and then answered with the fault's status and body."""
    running.fault(operation="upsertTag", status=status, apply=True)
    response = running.call("/tag", {"name": "T"})
    assert (response.status_code, response.content) == (status, b"")
    assert running.tags() == ["T"]


@pytest.mark.parametrize(
    ("body", "headers", "kind"),
    [
        ("<html>Welcome</html>", {}, "text/html; charset=utf-8"),
        ('{"errors": [', {}, "text/plain; charset=utf-8"),
        ("", {}, "text/plain; charset=utf-8"),
        ("{}", {"Content-Type": "application/json"}, "application/json"),
    ],
)
def test_a_text_is_sent_as_it_is(running: Talking, body: str, headers: dict[str, str], kind: str) -> None:
    """A fault can answer 200 with HTML or truncated JSON; its own Content-Type replaces the guessed one."""
    running.fault(operation="upsertTags", body=body, headers=headers)
    response = running.call("/tag/batch", {"tags": [{"name": "T"}]})
    assert (response.status_code, response.text) == (200, body)
    assert response.headers.get_list("content-type") == [kind]
    assert running.tags() == []


@pytest.mark.parametrize("status", [None, 400])
def test_chosen_items_fail_and_the_others_are_applied(running: Talking, status: int | None) -> None:
    """The answer is 200 or 400 with the chosen errors, even for an index that the batch does not have."""
    errors = [{"index": 1, "errorDescription": "no"}, {"index": 99, "errorDescription": "what"}]
    running.fault(operation="upsertTags", itemErrors=errors, **({"status": status} if status else {}))
    response = running.call("/tag/batch", {"tags": [{"name": "A"}, {"name": "B"}, {}]})
    missing = {"index": 2, "errorDescription": "name is missing"}
    assert (response.status_code, response.json()) == (status or 200, {"errors": [errors[0], missing, errors[1]]})
    assert running.tags() == ["A"]


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        *(("uploadActivityTypes", "batch"), ("completeSyncSession", "sync/complete")),
        ("cancelSyncSession", "sync/cancel"),
    ],
)
def test_a_session_can_be_gone_when_it_is_used(running: Talking, operation: str, path: str) -> None:
    """`expireSession` ends the session that the request names; other sessions stay open."""
    first, other = (running.call("/activitytype/sync/start").json() for _ in range(2))
    running.fault(operation=operation, expireSession=True)
    gone = running.call(f"/activitytype/{path}", {"activityTypes": [], **first})
    assert gone.status_code == (400 if path == "batch" else 404)
    assert running.call("/activitytype/sync/complete", other).status_code == 200


def test_a_delayed_answer_comes_late_for_work_done_at_once(running: Talking) -> None:
    """A request with a delay is executed at once; other requests are answered meanwhile."""
    running.fault(operation="upsertTag", delay=30)
    with pytest.raises(httpx.ReadTimeout):
        running.call("/tag", {"name": "T"}, timeout=0.05)
    assert running.tags() == ["T"]
    running.fault(operation="upsertTag", delay=0.01)
    assert running.call("/tag", {"name": "U"}).status_code == 200


# --- calls that are executed late: after other calls, and whether or not a client waits for the answer


def pending(running: Talking) -> Any:
    return running.control.get("/late").json()["late"]


def execute(running: Talking, **body: Any) -> Any:
    return running.control.post("/late/execute", json=body).json()["executed"]


@contextmanager
def asking(running: Talking, path: str, body: Any) -> Iterator[Future[httpx.Response]]:
    """Make a call that the sandbox holds, and yield its future answer."""
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(running.call, path, body, timeout=30)
        eventually(lambda: bool(pending(running)))
        yield answer


def test_a_call_is_executed_when_its_time_has_come_or_a_test_says_so(running: Talking) -> None:
    """With `seconds` after that time, else by the control API. It is answered at once, or cut off."""
    running.fault(operation="upsertTag", late={"seconds": 0.05, "answer": 504})
    assert statuses(running, 1) == [504]
    eventually(lambda: running.tags() == ["T0"])
    running.fault(operation="upsertTag", late={"answer": 202})
    running.fault(operation="upsertTag", late={"answer": "cut"})
    assert running.call("/tag", {"name": "late"}).status_code == 202
    cut_off(running)
    assert running.call("/tag", {"name": "meanwhile"}).status_code == 200
    assert running.tags() == ["T0", "meanwhile"]
    assert [entry["status"] for entry in pending(running)] == [202, None]
    assert [entry["late"]["status"] for entry in execute(running)] == [200, 200]
    assert running.tags() == ["T", "T0", "late", "meanwhile"]
    assert pending(running) == []


def test_a_late_call_works_on_the_state_at_its_execution(running: Talking) -> None:
    """A late delete of a category also deletes the tags that were added after the call was answered. It can be refused
    by then. The log has the status that was answered, here with a gateway's page, and the late one."""
    category = {"tagCategories": [{"externalId": "c", "label": "C"}]}
    running.call("/tagcategory/batch", category)
    running.fault(operation="deleteTagCategory", late={"answer": 504})
    assert running.call("/tagcategory/delete", {"externalId": "c"}).status_code == 504
    id_ = running.call("/tagcategory/batch", category).json()["tagCategories"][0]["id"]
    running.call("/tag/batch", {"tags": [{"name": "T", "tagCategoryId": id_}, {"name": "U"}]})
    execute(running)
    assert (running.tags(), running.state()["categories"]) == (["U"], [])
    page, headers = "<html>Gateway Time-out</html>", {"Retry-After": "1"}
    running.fault(operation="deleteTag", body=page, headers=headers, late={"answer": 504})
    response = running.call("/tag/delete", {"name": "T"})
    assert (response.status_code, response.text, response.headers["retry-after"]) == (504, page, "1")
    (executed,) = execute(running)
    assert (executed["status"], executed["late"]["status"]) == (504, 404)
    assert executed["late"]["executed"] >= executed["at"]
    assert running.requests()[-1]["late"] == executed["late"]


def test_a_call_that_is_held_gets_its_own_answer_or_is_lost_for_good(running: Talking) -> None:
    """With `hold`, the client gets no answer until the call is executed. DELETE drops the call and cuts it off."""
    running.fault(operation="upsertTagCategories", times=2, late={"answer": "hold"})
    with asking(running, "/tagcategory/batch", {"tagCategories": [{"externalId": "c"}]}) as answer:
        assert [(entry["open"], entry["status"]) for entry in pending(running)] == [(True, None)]
        execute(running)
        assert answer.result().json()["tagCategories"][0]["externalId"] == "c"
    with asking(running, "/tagcategory/batch", {"tagCategories": [{"externalId": "lost"}]}) as answer:
        assert running.control.delete("/late").status_code == 200
        with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
            answer.result()
    assert execute(running) == []
    assert [category["externalId"] for category in running.state()["categories"]] == ["c"]


def test_a_call_is_executed_although_its_client_has_gone(running: Talking) -> None:
    """A client that disconnects, as a killed process does, does not stop its call."""
    running.fault(operation="upsertTag", late={})
    url = running.connector.base_url
    with socket.create_connection((url.host, url.port or 0)) as client:
        head = f"POST /connect/api/tag HTTP/1.1\r\nHost: x\r\nx-api-key: {running.connector.headers['x-api-key']}\r\n"
        client.sendall(f'{head}Content-Length: 12\r\n\r\n{{"name":"T"}}'.encode())
        eventually(lambda: bool(pending(running)))
    eventually(lambda: not pending(running)[0]["open"])
    assert running.tags() == []
    execute(running)
    assert running.tags() == ["T"]


def test_calls_are_executed_in_the_order_in_which_they_came_or_one_by_one(running: Talking) -> None:
    """`/late/execute` executes one call by its number or all in order; a number that does not wait is 404."""
    running.fault(operation="upsertTag", times=None, late={"answer": 504})
    for description in ("first", "second", "third"):
        running.call("/tag", {"name": "T", "description": description})
    first, second, third = (entry["seq"] for entry in pending(running))
    assert [entry["seq"] for entry in execute(running, seq=second)] == [second]
    assert running.state()["tags"][0]["description"] == "second"
    assert running.control.post("/late/execute", json={"seq": second}).status_code == 404
    assert [entry["seq"] for entry in execute(running)] == [first, third]
    assert running.state()["tags"][0]["description"] == "third"
    assert execute(running) == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("*", "expected an object"),
        ({}, "operation is missing"),
        ({"operation": "upsertTagz"}, "operation must be the id of an operation or *"),
        ({"operation": "*", "satus": 500}, "unknown field: satus"),
        ({"operation": "*", "status": 99}, "status must be a status from 200 to 599"),
        ({"operation": "*", "drop": "now"}, "drop must be before or after"),
        ({"operation": "*", "delay": -1}, "delay must be a number of seconds"),
        ({"operation": "*", "times": -1}, "times must be a non-negative integer"),
        ({"operation": "upsertTag", "itemErrors": []}, "can have itemErrors"),
        ({"operation": "upsertTags", "itemErrors": [{}]}, "index is missing"),
        ({"operation": "*", "late": 5}, "expected an object"),
        ({"operation": "*", "late": {"second": 5}}, "unknown field: second"),
        ({"operation": "*", "late": {"seconds": -1}}, "seconds must be a number of seconds"),
        ({"operation": "*", "late": {"answer": "no"}}, "answer must be a status, cut or hold"),
        ({"operation": "*", "late": {"answer": 99}}, "answer must be a status, cut or hold"),
        ({"operation": "*", "late": {}, "status": 500, "drop": "after"}, "late cannot be combined with drop, status"),
        ({"operation": "webhookCall", "late": {}}, "webhookCall cannot be late"),
    ],
)
def test_a_fault_that_is_not_understood_is_refused(running: Talking, fault: Any, words: str) -> None:
    """One invalid fault refuses the whole list: otherwise a test with a misspelt fault would prove nothing."""
    whole = ([{"operation": "*", "status": 500}, fault], words), (fault, "the body must be an array of faults")
    for faults, message in whole:
        response = running.control.post("/faults", json=faults)
        assert (response.status_code, message in response.json()["message"]) == (400, True)
    assert statuses(running, 1) == [200]
