"""Requests that never end or are too large are cut off, and other requests are served meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from syncengine.sandbox.app import RunningSandbox, running_sandbox
from syncengine.sandbox.interface import BODY_BYTES
from tests.cli.program import Project, ended
from tests.support import loopback

from .conftest import Talking
from .receiver import eventually

PATHS = ("/connect/api/tag", "/sandbox/tags", "/console/post")


@pytest.fixture
def impatient() -> Iterator[RunningSandbox]:
    with running_sandbox(read_seconds=0.1) as running:
        yield running


def connected(running: RunningSandbox) -> socket.socket:
    parts = urlsplit(running.url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)


def is_cut(client: socket.socket) -> bool:
    """Whether the connection ends without an answer."""
    try:
        return client.recv(1000) == b""
    except ConnectionResetError:
        return True


def head(path: str, running: RunningSandbox, length: int) -> bytes:
    host = urlsplit(running.url).netloc
    return f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n".encode()


@pytest.mark.parametrize("begun", [b"", b"G", b"POST /connect/api/tag HTTP/1.1\r\nHost: x\r\nX-Long: "])
def test_a_head_that_does_not_end_is_cut(impatient: RunningSandbox, begun: bytes) -> None:
    """The sandbox closes a connection whose request head is not complete in time, even before its first byte."""
    with connected(impatient) as client:
        client.sendall(begun)
        assert is_cut(client)


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_does_not_end_is_cut(impatient: RunningSandbox, path: str) -> None:
    """The interface, the control API and the console all close a connection whose body is not complete in time."""
    with connected(impatient) as client:
        client.sendall(head(path, impatient, 100) + b"{")
        assert is_cut(client)


def test_bytes_that_go_on_coming_win_no_time(impatient: RunningSandbox) -> None:
    """The time limit is for the whole request, not for each piece of it."""
    with connected(impatient) as client, pytest.raises(ConnectionError):
        client.sendall(head(PATHS[0], impatient, 10**12))
        while True:
            client.sendall(b" ")


def test_an_answer_may_take_longer_than_its_request(impatient: RunningSandbox) -> None:
    """The time limit for reading a request does not limit its answer, and the connection stays usable."""
    loopback.post(f"{impatient.control_url}/faults", json=[{"operation": "teamInfo", "delay": 0.3}])
    with loopback.client(base_url=impatient.url, headers={"x-api-key": impatient.api_key}) as client:
        assert [client.get("/team/info").status_code for _ in range(2)] == [200, 200]


@pytest.mark.parametrize("path", PATHS[:2])
def test_a_body_that_is_too_large_is_413(running: Talking, path: str) -> None:
    """A body over the limit is refused with a message, and nothing of it is applied."""
    body = b'{"tags": [{"name": "T"}]}'
    url = running.connector.base_url.join(path)
    response = running.connector.post(url, content=body.ljust(BODY_BYTES + 1))
    assert (response.status_code, "larger than 64000000 bytes" in response.json()["message"]) == (413, True)
    assert running.names() == []


def test_clients_that_break_off_leave_no_traceback(tmp_path: Path) -> None:
    """The sandbox prints no traceback when a client disconnects in the middle of a request."""
    process = Project(tmp_path, "sandbox").start("sandbox", "--port", "0")
    assert process.stdout is not None
    url = process.stdout.readline().split()[2]
    running = RunningSandbox(url, url.replace("/connect/api", "/sandbox"), "sandbox", "")
    for path in PATHS:
        with connected(running) as client:
            client.sendall(head(path, running, 100) + b"{")
    eventually(lambda: loopback.get(f"{running.control_url}/state").status_code == 200)
    process.terminate()
    done = ended(process)
    assert (done.code, "Traceback" in done.err) == (0, False), done.err
