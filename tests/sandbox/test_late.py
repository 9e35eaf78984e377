"""Calls that are executed late: after what came in between, and whether or not somebody waits for their answer."""

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
    """A call that is held."""
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(running.post, path, body, timeout=30)
        eventually(lambda: bool(pending(running)))
        yield answer


def test_a_call_is_executed_when_its_time_has_come(running: Talking) -> None:
    """Answered with 504 at once, and done by itself a moment later."""
    running.fault(operation="upsertTag", late={"seconds": 0.05, "answer": 504})
    assert running.post("/tag", {"name": "T"}).status_code == 504
    eventually(lambda: running.names() == ["T"])
    assert pending(running) == []


@pytest.mark.parametrize("answer", [504, 202, "cut"])
def test_a_call_without_a_time_waits_to_be_told(running: Talking, answer: int | str) -> None:
    """Until then nothing has happened, and others are served as ever."""
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


def test_a_late_call_meets_the_world_as_it_is_by_then(running: Talking) -> None:
    """A category that was made anew and filled meanwhile goes with all its tags: the order of execution counts."""
    category = {"tagCategories": [{"externalId": "c", "label": "C"}]}
    running.post("/tagcategory/batch", category)
    running.fault(operation="deleteTagCategory", late={"answer": 504})
    assert running.post("/tagcategory/delete", {"externalId": "c"}).status_code == 504
    id_ = running.post("/tagcategory/batch", category).json()["tagCategories"][0]["id"]
    running.post("/tag/batch", {"tags": [{"name": "T", "tagCategoryId": id_}, {"name": "U"}]})
    execute(running)
    assert (running.names(), running.state()["categories"]) == (["U"], [])


def test_a_late_call_can_be_refused_by_then(running: Talking) -> None:
    """Its own status stands in the log, beside the one that was answered; nothing has changed."""
    running.post("/tag", {"name": "T"})
    running.fault(operation="deleteTag", late={"answer": 504})
    running.post("/tag/delete", {"name": "T"})
    running.post("/tag/delete", {"name": "T"})
    (executed,) = execute(running)
    assert (executed["status"], executed["late"]["status"]) == (504, 404)
    assert executed["late"]["executed"] >= executed["at"]
    assert running.requests()[1]["late"] == executed["late"]


def test_a_call_that_is_held_gets_its_own_answer(running: Talking) -> None:
    """Nothing is answered until it is executed."""
    running.fault(operation="upsertTagCategories", late={"answer": "hold"})
    with asking(running, "/tagcategory/batch", {"tagCategories": [{"externalId": "c"}]}) as answer:
        assert [(entry["open"], entry["status"]) for entry in pending(running)] == [(True, None)]
        execute(running)
        assert answer.result().json()["tagCategories"][0]["externalId"] == "c"


def test_a_call_is_executed_although_its_client_has_gone(running: Talking) -> None:
    """As when a process is killed while the service works on its call: the connection ends, the work does not."""
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
    """By the number of the request; one that does not wait is not there."""
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
    """DELETE drops what waits, and so does a reset: a client that is held is cut off."""
    running.fault(operation="upsertTag", late={})
    with asking(running, "/tag", {"name": "T"}) as answer:
        assert running.outsider.delete("/late").status_code == 200
        with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
            answer.result()
    assert (execute(running), running.names()) == ([], [])


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"late": 5}, "late must be an object"),
        ({"late": {"second": 5}}, "unknown field: second"),
        ({"late": {"seconds": -1}}, "seconds must be a number of seconds"),
        ({"late": {"answer": "no"}}, "answer must be a status, cut or hold"),
        ({"late": {"answer": 99}}, "answer must be a status, cut or hold"),
        ({"late": {}, "status": 500, "drop": "after"}, "late cannot be combined with drop, status"),
        ({"operation": "webhookCall", "late": {}}, "webhookCall cannot be late"),
    ],
)
def test_a_late_fault_that_is_not_understood_is_refused(running: Talking, fault: Any, words: str) -> None:
    """In words."""
    response = running.outsider.post("/faults", json=[{"operation": "upsertTag", **fault}])
    assert (response.status_code, words in response.json()["message"]) == (400, True), response.text


def test_a_gateway_says_it_in_its_own_words(running: Talking) -> None:
    """`body` and `headers` go with the status that is answered at once."""
    page, headers = "<html>Gateway Time-out</html>", {"Retry-After": "1"}
    running.fault(operation="upsertTag", body=page, headers=headers, late={"answer": 504})
    response = running.post("/tag", {"name": "T"})
    assert (response.status_code, response.text, response.headers["retry-after"]) == (504, page, "1")
