"""A large body on its way out is known until it has left, and holds nothing up for long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from syncengine.service import upload_throttle
from syncengine.service.client import Answer, Client
from syncengine.service.operations import UPSERT_TAGS

from .talking import client

LARGE = {"tags": ["x" * 32 * 1024 * 1024]}
"""More than the operating system takes before anyone reads."""

Scene = Callable[[Client, asyncio.Event, asyncio.Event], Awaitable[None]]


def play(scene: Scene) -> None:
    """A scene with a client and a server that reads a body, and answers, when it is told to."""

    async def whole() -> None:
        reads, answers = asyncio.Event(), asyncio.Event()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            await reads.wait()
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            await answers.wait()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        async with client(f"http://{host}:{port}", timeout=20.0) as caller:
            await scene(caller, reads, answers)
        server.close()

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_a_large_body_is_on_its_way_until_the_last_byte_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not until the answer: what is prepared meanwhile is what the connections are for."""
    monkeypatch.setattr(upload_throttle, "PATIENCE_SECONDS", 20.0)

    async def scene(caller: Client, reads: asyncio.Event, answers: asyncio.Event) -> None:
        await caller.departed()
        call = asyncio.create_task(caller.call(UPSERT_TAGS, LARGE))
        await asyncio.sleep(0)
        left = asyncio.create_task(caller.departed())
        await asyncio.sleep(0.3)
        assert not left.done()
        reads.set()
        await left
        assert not call.done()
        answers.set()
        assert (await call).ok

    play(scene)


def test_a_small_body_is_never_waited_for() -> None:
    async def scene(caller: Client, reads: asyncio.Event, answers: asyncio.Event) -> None:
        call = asyncio.create_task(caller.call(UPSERT_TAGS, {"tags": []}))
        await asyncio.sleep(0)
        await asyncio.wait_for(caller.departed(), 0.1)
        reads.set()
        answers.set()
        assert (await call).ok

    play(scene)


def test_nobody_waits_long_for_a_service_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_throttle, "PATIENCE_SECONDS", 0.05)

    async def scene(caller: Client, reads: asyncio.Event, answers: asyncio.Event) -> None:
        call = asyncio.create_task(caller.call(UPSERT_TAGS, LARGE))
        await asyncio.sleep(0)
        await asyncio.wait_for(caller.departed(), 5)
        assert not call.done()
        reads.set()
        answers.set()
        assert (await call).ok

    play(scene)


def test_a_connection_that_breaks_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that never leaves, since nobody is there."""
    monkeypatch.setattr(upload_throttle, "PATIENCE_SECONDS", 20.0)

    async def alone() -> Answer:
        async with client("http://127.0.0.1:9", concurrency=1) as caller:
            answer = await caller.call(UPSERT_TAGS, LARGE)
            await asyncio.wait_for(caller.departed(), 0.1)
            return answer

    assert not asyncio.run(alone()).reached
