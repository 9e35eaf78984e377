"""Logins, cookies, proxies and broken connections: what a connection does beside sending (docs/planning.md 4.5)."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from base64 import b64encode
from contextlib import suppress
from typing import Any

import pytest

from syncengine.service.client import Client
from syncengine.service.operations import FETCH_POSTED_TIME, UPSERT_TAGS

from .scripted import CUT, OK, Reply, Scripted, serving
from .talking import client, talk

PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_a_login_in_the_address_is_sent_as_a_header() -> None:
    """Unquoted, and not in the request line."""

    async def play() -> Any:
        async with serving(OK) as server, client(server.url.replace("//", "//jo:p%40ss@")) as caller:
            answer = await caller.call(UPSERT_TAGS, {"tags": []})
            return answer.status, server.heard[0]

    status, heard = asyncio.run(play())
    assert (status, heard.path) == (200, "/connect/api/tag/batch")
    assert heard.headers["authorization"] == "Basic " + b64encode(b"jo:p@ss").decode()
    assert "jo" not in heard.headers["host"]


def test_a_cookie_comes_back_on_the_same_connection() -> None:
    """Load balancers tell their servers apart by one."""

    async def scene(server: Scripted, caller: Client) -> Any:
        for _ in range(3):
            await caller.call(UPSERT_TAGS, {"tags": []})
        return [heard.headers.get("cookie") for heard in server.heard]

    set_once = Reply(headers={"Set-Cookie": "server=b7; Path=/"})
    assert talk((set_once, OK), scene) == [None, "server=b7", "server=b7"]


@pytest.mark.parametrize("name", PROXIES)
def test_a_proxy_of_the_environment_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the whole address, and the service is never connected to."""

    async def play() -> Any:
        async with serving(OK) as proxy:
            monkeypatch.setenv(name, proxy.url.removesuffix("/connect/api"))
            async with client("http://service.invalid/connect/api") as caller:
                answer = await caller.call(UPSERT_TAGS, {"tags": []})
            return answer.status, proxy.heard[0].path

    assert asyncio.run(play()) == (200, "http://service.invalid/connect/api/tag/batch")


def test_a_handshake_that_fails_reached_nobody() -> None:
    """TLS with a server that talks plainly: no byte of the request has left."""

    async def play() -> Any:
        async with (
            serving(OK) as server,
            client(server.url.replace("http:", "https:"), patience=0.0, timeout=1.0) as caller,
        ):
            return await caller.call(UPSERT_TAGS, {"tags": []})

    answer = asyncio.run(play())
    assert (answer.status, answer.reached) == (None, False)
    assert answer.text.startswith("cannot connect: ")


@pytest.mark.parametrize("operation", [UPSERT_TAGS, FETCH_POSTED_TIME], ids=lambda operation: operation.id)
def test_a_kept_connection_that_was_closed_is_no_trouble(operation: Any) -> None:
    """The service closes it after its answer; the next call goes over another one."""

    async def scene(server: Scripted, caller: Client) -> Any:
        body = None if operation.method == "GET" else {}
        return [(await caller.call(operation, body)).status for _ in range(2)], server.connections > 1

    assert talk((OK, CUT, OK), scene) == ([200, 200], True)


def test_a_large_body_arrives_whole() -> None:
    """A batch is larger than what leaves at once."""
    tags = [{"name": f"tag {number}", "description": "x" * 500} for number in range(2_000)]

    async def scene(server: Scripted, caller: Client) -> Any:
        await caller.call(UPSERT_TAGS, {"tags": tags})
        await caller.departed()
        return server.heard[0]

    heard = talk((OK,), scene)
    assert len(heard.body) == int(heard.headers["content-length"]) > 1_000_000
    assert heard.body.endswith(b'x"}]}')


def test_nothing_leaves_once_a_call_has_timed_out() -> None:
    """A service that reads nothing until the call is over gets what had arrived by then, never the whole."""
    size = 60_000

    async def play() -> tuple[Any, bytes]:
        over, received = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await over.wait()
            content = b""
            with suppress(ConnectionError):
                while chunk := await reader.read(1_000_000):
                    content += chunk
            writer.close()
            if content.startswith(b"POST "):  # and not the question whether the whole service is down
                received.set_result(content)

        narrow = socket.create_server(("127.0.0.1", 0))
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        url = f"http://127.0.0.1:{narrow.getsockname()[1]}"
        server = await asyncio.start_server(late, sock=narrow, limit=1_000)
        async with server, client(url, timeout=0.5, patience=0.0) as caller:
            answer = await caller.call(UPSERT_TAGS, {"tags": ["x" * size]})
            over.set()
            return answer, await received

    answer, content = asyncio.run(play())
    assert (answer.status, answer.reached) == (None, True)
    assert len(content) < size


CALLER = """\
import asyncio, sys
from syncengine.service.client import Client
from syncengine.service.operations import UPSERT_TAGS

async def play():
    async with Client(sys.argv[1], lambda fresh=False: "key") as caller:
        await caller.call(UPSERT_TAGS, {"tags": ["x" * 60_000]})

asyncio.run(play())
"""


def test_nothing_leaves_once_its_sender_was_killed() -> None:
    """The kernel would go on sending the buffers of a dead process, for as long as the service is willing to read."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        sender = subprocess.Popen([sys.executable, "-c", CALLER, url])
        service, _ = server.accept()
        with service:
            service.recv(1, socket.MSG_PEEK)
            sender.kill()
            sender.wait()
            content = b""
            with suppress(ConnectionError):
                while chunk := service.recv(1_000_000):
                    content += chunk
    assert content.startswith(b"POST ")
    assert len(content) < 60_000
