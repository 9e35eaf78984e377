"""The sandbox holds a fetch open until there is posted time (docs/interface.md 4, fetch rule 1)."""

from __future__ import annotations

import socket
from concurrent.futures import Future, ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

from .conftest import Talking
from .receiver import eventually


def fetching(running: Talking, pool: ThreadPoolExecutor, count: int = 1) -> list[Future[httpx.Response]]:
    """Start `count` fetches, and wait until the sandbox holds them."""
    futures = [pool.submit(running.connector.get, "/postedtime", timeout=90) for _ in range(count)]
    eventually(lambda: len(running.requests()) >= count)
    return futures


def ids(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [group["groupId"] for group in response.json()]


def test_a_fetch_is_answered_when_time_is_posted(running: Talking) -> None:
    """A held fetch has registered its client, so that time posted meanwhile is recorded and answered."""
    with ThreadPoolExecutor() as pool:
        (fetch,) = fetching(running, pool)
        assert running.state()["connection"]["mechanism"] == "fetch"
        assert [(entry["open"], entry["status"]) for entry in running.requests()] == [(True, None)]
        running.control("/posted-time", {"groupId": "g"})
        assert ids(fetch.result()) == ["g"]


def test_a_fetch_without_posted_time_ends_quietly(running: Talking) -> None:
    """The answer is 200 with an empty array."""
    running.control("/settings", {"holdSeconds": 0.01})
    assert ids(running.connector.get("/postedtime")) == []


def test_a_fetch_is_answered_when_a_group_becomes_due_again(running: Talking) -> None:
    running.control("/settings", {"reofferSeconds": 0.2})
    running.connector.post("/postedtime/registerfetchclient")
    running.control("/posted-time", {"groupId": "g"})
    for _ in range(2):
        assert ids(running.connector.get("/postedtime", timeout=90)) == ["g"]


def test_of_two_fetches_one_has_the_group(running: Talking) -> None:
    """The other fetch gets an empty array."""
    with ThreadPoolExecutor() as pool:
        fetches = fetching(running, pool, 2)
        running.control("/posted-time", {"groupId": "g"})
        assert sorted(ids(fetch.result()) for fetch in fetches) == [[], ["g"]]


def test_a_client_that_has_left_takes_no_group_with_it(running: Talking) -> None:
    """After a connector is killed during its fetch, the next fetch gets the group at once."""
    url = urlsplit(str(running.connector.base_url))
    request = f"GET {url.path}postedtime HTTP/1.1\r\nHost: h\r\nx-api-key: sandbox\r\n\r\n"
    with socket.create_connection((url.hostname, url.port)) as killed:
        killed.sendall(request.encode())
        eventually(running.requests)
    running.connector.get("/team/info")
    running.control("/posted-time", {"groupId": "g"})
    assert ids(running.connector.get("/postedtime")) == ["g"]
    assert len(running.state()["postedTime"][0]["offers"]) == 1


def test_a_fetch_ends_when_its_client_is_unregistered(running: Talking) -> None:
    """The held fetch gets an empty array, and does not register the client again."""
    with ThreadPoolExecutor() as pool:
        (fetch,) = fetching(running, pool)
        assert running.post("/postedtime/unregisterfetchclient").status_code == 200
        assert ids(fetch.result()) == []
        assert running.state()["connection"]["mechanism"] is None


@pytest.mark.parametrize(("drop", "offers"), [("before", 0), ("after", 1)])
def test_an_answer_that_is_lost_has_offered_the_group(running: Talking, drop: str, offers: int) -> None:
    """A connection that is cut after the fetch was executed counts as an offer; cut before, it does not."""
    running.post("/postedtime/registerfetchclient")
    running.control("/posted-time", {"groupId": "g"})
    running.fault(operation="fetchPostedTime", drop=drop)
    with pytest.raises(httpx.RemoteProtocolError):
        running.connector.get("/postedtime")
    assert len(running.state()["postedTime"][0]["offers"]) == offers


def test_a_fault_that_answers_for_the_service_answers_at_once(running: Talking) -> None:
    """A fetch that meets a fault is not held and registers nobody."""
    running.fault(operation="fetchPostedTime", status=503)
    assert running.connector.get("/postedtime").status_code == 503
    assert running.state()["connection"]["mechanism"] is None
