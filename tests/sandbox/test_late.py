"""Calls that are executed late: after other calls, and whether or not a client waits for the answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from .conftest import Talking
from .receiver import eventually


def pending(running: Talking) -> Any:
    return running.outsider.get("/late").json()["late"]


def execute(running: Talking, **body: Any) -> Any:
    return running.control("/late/execute", body)["executed"]


@contextmanager
def asking(running: Talking, path: str, body: Any) -> Iterator[Future[httpx.Response]]:
    """Make a call that the sandbox holds, and yield its future answer."""
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(running.post, path, body, timeout=30)
        eventually(lambda: bool(pending(running)))
        yield answer


def test_a_call_is_executed_when_its_time_has_come(running: Talking) -> None:
    """A late call with `seconds` is answered at once and executed after that time."""
    running.fault(operation="upsertTag", late={"seconds": 0.05, "answer": 504})
    assert running.post("/tag", {"name": "T"}).status_code == 504
    eventually(lambda: running.names() == ["T"])
    assert pending(running) == []


@pytest.mark.parametrize("answer", [504, 202, "cut"])
def test_a_call_without_a_time_waits_until_a_test_executes_it(running: Talking, answer: int | str) -> None:
    """A late call without `seconds` waits until the control API executes it; other calls are served meanwhile."""
    running.fault(operation="upsertTag", late={"answer": answer})
    if answer == "cut":
        with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
            running.post("/tag", {"name": "late"})
    else:
        assert running.post("/tag", {"name": "late"}).status_code == answer
    assert running.post("/tag", {"name": "T"}).status_code == 200
    assert running.names() == ["T"]
    assert [entry["status"] for entry in pending(running)] == [None if answer == "cut" else answer]
    assert [entry["late"]["status"] for entry in execute(running)] == [200]
    assert running.names() == ["T", "late"]
    assert pending(running) == []


def test_a_late_call_works_on_the_state_at_its_execution(running: Talking) -> None:
    """A late delete of a category also deletes the tags that were added after the call was answered."""
    category = {"tagCategories": [{"externalId": "c", "label": "C"}]}
    running.post("/tagcategory/batch", category)
    running.fault(operation="deleteTagCategory", late={"answer": 504})
    assert running.post("/tagcategory/delete", {"externalId": "c"}).status_code == 504
    id_ = running.post("/tagcategory/batch", category).json()["tagCategories"][0]["id"]
    running.post("/tag/batch", {"tags": [{"name": "T", "tagCategoryId": id_}, {"name": "U"}]})
    execute(running)
    assert (running.names(), running.state()["categories"]) == (["U"], [])


def test_a_late_call_can_be_refused_by_then(running: Talking) -> None:
    """The log shows both the status that was answered and the status of the late execution."""
    running.post("/tag", {"name": "T"})
    running.fault(operation="deleteTag", late={"answer": 504})
    running.post("/tag/delete", {"name": "T"})
    running.post("/tag/delete", {"name": "T"})
    (executed,) = execute(running)
    assert (executed["status"], executed["late"]["status"]) == (504, 404)
    assert executed["late"]["executed"] >= executed["at"]
    assert running.requests()[1]["late"] == executed["late"]


def test_a_call_that_is_held_gets_its_own_answer(running: Talking) -> None:
    """With `hold`, the client gets no answer until the call is executed."""
    running.fault(operation="upsertTagCategories", late={"answer": "hold"})
    with asking(running, "/tagcategory/batch", {"tagCategories": [{"externalId": "c"}]}) as answer:
        assert [(entry["open"], entry["status"]) for entry in pending(running)] == [(True, None)]
        execute(running)
        assert answer.result().json()["tagCategories"][0]["externalId"] == "c"


def test_a_call_is_executed_although_its_client_has_gone(running: Talking) -> None:
    """A client that disconnects, as a killed process does, does not stop its call."""
    running.fault(operation="upsertTag", late={})
    url = running.connector.base_url
    with socket.create_connection((url.host, url.port or 0)) as client:
        head = f"POST /connect/api/tag HTTP/1.1\r\nHost: x\r\nx-api-key: {running.connector.headers['x-api-key']}\r\n"
        client.sendall(f'{head}Content-Length: 12\r\n\r\n{{"name":"T"}}'.encode())
        eventually(lambda: bool(pending(running)))
    eventually(lambda: not pending(running)[0]["open"])
    assert running.names() == []
    execute(running)
    assert running.names() == ["T"]


def test_calls_are_executed_in_the_order_in_which_they_came_or_one_by_one(running: Talking) -> None:
    """`/late/execute` executes one call by its number or all in order; a number that does not wait is 404."""
    running.fault(operation="upsertTag", times=None, late={"answer": 504})
    for description in ("first", "second", "third"):
        running.post("/tag", {"name": "T", "description": description})
    first, second, third = (entry["seq"] for entry in pending(running))
    assert [entry["seq"] for entry in execute(running, seq=second)] == [second]
    assert running.state()["tags"][0]["description"] == "second"
    assert running.outsider.post("/late/execute", json={"seq": second}).status_code == 404
    assert [entry["seq"] for entry in execute(running)] == [first, third]
    assert running.state()["tags"][0]["description"] == "third"
    assert execute(running) == []


def test_a_call_can_be_lost_for_good(running: Talking) -> None:
    """DELETE drops the waiting calls, and cuts off a client whose call is held."""
    running.fault(operation="upsertTag", late={})
    with asking(running, "/tag", {"name": "T"}) as answer:
        assert running.outsider.delete("/late").status_code == 200
        with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
            answer.result()
    assert (execute(running), running.names()) == ([], [])


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"late": 5}, "expected an object"),
        ({"late": {"second": 5}}, "unknown field: second"),
        ({"late": {"seconds": -1}}, "seconds must be a number of seconds"),
        ({"late": {"answer": "no"}}, "answer must be a status, cut or hold"),
        ({"late": {"answer": 99}}, "answer must be a status, cut or hold"),
        ({"late": {}, "status": 500, "drop": "after"}, "late cannot be combined with drop, status"),
        ({"operation": "webhookCall", "late": {}}, "webhookCall cannot be late"),
    ],
)
def test_a_late_fault_that_is_not_understood_is_refused(running: Talking, fault: Any, words: str) -> None:
    response = running.outsider.post("/faults", json=[{"operation": "upsertTag", **fault}])
    assert (response.status_code, words in response.json()["message"]) == (400, True), response.text


def test_a_late_call_can_be_answered_with_a_gateways_page(running: Talking) -> None:
    """The `body` and `headers` of a late fault are sent with the status that is answered at once."""
    page, headers = "<html>Gateway Time-out</html>", {"Retry-After": "1"}
    running.fault(operation="upsertTag", body=page, headers=headers, late={"answer": 504})
    response = running.post("/tag", {"name": "T"})
    assert (response.status_code, response.text, response.headers["retry-after"]) == (504, page, "1")
