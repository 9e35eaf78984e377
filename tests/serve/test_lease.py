"""A standby waits for the inbox's lease, although its database may be away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from syncengine.serve.shift import stand_by
from syncengine.state.holder import Holder
from syncengine.state.inbox import open_inbox
from tests import postgresql


async def until(there: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not there():  # noqa: ASYNC110 -- another thread sets the condition
            await asyncio.sleep(0.02)


def test_a_standby_outlives_its_database_being_away() -> None:
    """The standby reports each reason to wait once, and gets the lease as soon as the holder has released it."""
    said: list[str] = []

    async def play(server: postgresql.Server) -> None:
        with open_inbox(server.url(), write=True) as first, open_inbox(server.url(), write=True) as second:
            held = first.lease(Holder.here("serve", {}))
            waiting = asyncio.create_task(stand_by(second, Holder.here("serve", {}), asyncio.Event(), said.append))
            await until(lambda: len(said) == 1)
            await asyncio.to_thread(server.stop)
            await until(lambda: len(said) == 2 or waiting.done())
            await asyncio.to_thread(server.start)
            await asyncio.to_thread(held.release)
            lease = await asyncio.wait_for(waiting, 60)
            assert lease is not None
            assert lease.remaining() > 0
            await asyncio.to_thread(lease.release)

    with postgresql.running() as server:
        asyncio.run(play(server))
    assert len(said) == 2
    # The message depends on how far the server's stop had come.
    stopped = ("is running", "starting or stopping", "ended the connection")
    assert any(words in said[1] for words in stopped)


def test_a_standby_whose_database_is_away_can_be_stopped() -> None:
    said: list[str] = []

    async def play(server: postgresql.Server) -> None:
        with open_inbox(server.url(), write=True) as inbox:
            await asyncio.to_thread(server.stop)
            stop = asyncio.Event()
            waiting = asyncio.create_task(stand_by(inbox, Holder.here("serve", {}), stop, said.append))
            await until(lambda: bool(said))
            stop.set()
            assert await asyncio.wait_for(waiting, 60) is None

    with postgresql.running() as server:
        asyncio.run(play(server))
