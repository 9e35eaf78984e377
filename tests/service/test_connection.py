"""Logins, cookies, proxies and broken connections: what a connection does beside sending (docs/planning.md 4.5)."""

from __future__ import annotations

import asyncio
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
        async with serving(OK) as server, client(server.url.replace("http:", "https:"), patience=0.0) as caller:
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
    """A service that reads nothing until the call is over gets no more than had left by then, never the whole."""
    size = 32_000_000

    async def play() -> tuple[Any, int]:
        over, received = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await over.wait()
            count = 0
            with suppress(ConnectionError):
                while chunk := await reader.read(1_000_000):
                    count += len(chunk)
            writer.close()
            received.set_result(count)

        server = await asyncio.start_server(late, "127.0.0.1", 0, limit=1_000)
        port = server.sockets[0].getsockname()[1]
        async with client(f"http://127.0.0.1:{port}", timeout=0.5, patience=0.0) as caller:
            answer = await caller.call(UPSERT_TAGS, {"tags": ["x" * size]})
            over.set()
            count = await received
        server.close()
        return answer, count

    answer, count = asyncio.run(play())
    assert (answer.status, answer.reached) == (None, True)
    assert count < size
