"""Answers that no client should wait for or take in whole: too slow, too large, too large once unpacked."""

from __future__ import annotations

import gzip
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from syncengine.sandbox.app import running_sandbox
from tests.support import loopback

from .conftest import Talking
from .receiver import eventually

MEGABYTE = 1_000_000


def test_an_answer_drips(running: Talking) -> None:
    """A byte, then a pause: a time-out for each read never comes, and the whole comes in the end."""
    running.fault(operation="teamInfo", drip=60)
    with running.connector.stream("GET", "/team/info", timeout=10) as response:
        assert next(response.iter_raw()) == b"{"
    running.fault(operation="teamInfo", drip=0.001)
    assert running.connector.get("/team/info").json() == {"teamName": "Sandbox"}


def test_a_head_drips_too(running: Talking) -> None:
    """The first byte of the answer is all that there is for a while."""
    running.fault(operation="teamInfo", drip=60, dripHead=True)
    url, key = running.connector.base_url, running.connector.headers["x-api-key"]
    with socket.create_connection((url.host, url.port or 0), timeout=10) as client:
        client.sendall(f"GET /connect/api/team/info HTTP/1.1\r\nHost: x\r\nx-api-key: {key}\r\n\r\n".encode())
        assert client.recv(1000) == b"H"
    running.fault(operation="teamInfo", drip=0.001, dripHead=True, status=299, body="an odd one")
    response = running.connector.get("/team/info")
    assert (response.status_code, response.text) == (299, "an odd one")


def test_a_sandbox_stops_although_an_answer_drips() -> None:
    """Its client has what came until then: without a length, only the JSON shows that it is not whole."""
    with ThreadPoolExecutor() as pool, running_sandbox() as running:
        loopback.post(f"{running.control_url}/faults", json=[{"operation": "teamInfo", "drip": 60}])
        asked = pool.submit(httpx.get, f"{running.url}/team/info", headers={"x-api-key": running.api_key}, timeout=60)
        eventually(lambda: bool(loopback.get(f"{running.control_url}/requests").json()["requests"]))
    assert asked.result().text == "{"


def test_a_client_that_leaves_ends_the_dripping(running: Talking) -> None:
    """The work was done; others are served meanwhile."""
    running.fault(operation="upsertTag", drip=60, status=502, body="a long page", apply=True)
    with running.connector.stream("POST", "/tag", json={"name": "T"}, timeout=10) as response:
        assert response.status_code == 502
        assert running.outsider.get("/state").json()["tags"][0]["name"] == "T"


def test_an_answer_is_filled_up(running: Talking) -> None:
    """With blanks, so that it stays the JSON that it was: what refuses it refuses its size."""
    running.fault(operation="teamInfo", size=3 * MEGABYTE)
    response = running.connector.get("/team/info")
    assert (len(response.content), response.json()) == (3 * MEGABYTE, {"teamName": "Sandbox"})


def test_a_small_packet_unpacks_to_a_huge_one(running: Talking) -> None:
    """A thousand times its size on the line, never whole in the sandbox's memory."""
    running.fault(operation="teamInfo", size=20 * MEGABYTE, gzip=True)
    with running.connector.stream("GET", "/team/info") as response:
        packed = b"".join(response.iter_raw())
    assert len(packed) < MEGABYTE / 10
    assert len(gzip.decompress(packed)) == 20 * MEGABYTE


def test_a_client_may_leave_a_huge_answer(running: Talking) -> None:
    """Nothing is left behind that keeps the sandbox busy."""
    running.fault(operation="teamInfo", size=10**15)
    with running.connector.stream("GET", "/team/info") as response:
        assert len(next(response.iter_raw())) > 0
    assert running.connector.get("/team/info").json() == {"teamName": "Sandbox"}


@pytest.mark.parametrize("fault", [{"drip": -1}, {"size": "many"}, {"gzip": 1}, {"late": {}, "drip": 1}])
def test_a_transfer_that_is_not_understood_is_refused(running: Talking, fault: Any) -> None:
    """As any fault."""
    answer = loopback.post(running.outsider.base_url.join("/sandbox/faults"), json=[{"operation": "teamInfo", **fault}])
    assert answer.status_code == 400
