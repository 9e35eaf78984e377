"""A standby waits for the inbox's lease, although its database may be away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from syncengine.serve.shift import stand_by
from syncengine.state.holder import Holder
from syncengine.state.inbox import open_inbox
from tests import postgresql

HERE = Holder.here("serve", {})


async def until(there: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not there():  # noqa: ASYNC110 -- another thread sets the condition
            await asyncio.sleep(0.02)


def test_a_standby_outlives_its_database_being_away_and_can_be_stopped() -> None:
    """It reports each reason to wait once, and gets the lease as soon as the holder has released it."""
    said: list[str] = []
    unheard: list[str] = []

    async def play(server: postgresql.Server) -> None:
        with open_inbox(server.url(), write=True) as first, open_inbox(server.url(), write=True) as second:
            held = first.lease(HERE)
            stop = asyncio.Event()
            waiting = asyncio.create_task(stand_by(second, HERE, asyncio.Event(), said.append))
            await until(lambda: len(said) == 1)
            await asyncio.to_thread(server.stop)
            stopped = asyncio.create_task(stand_by(first, HERE, stop, unheard.append))
            await until(lambda: len(said) == 2 and bool(unheard))
            stop.set()
            assert await asyncio.wait_for(stopped, 60) is None
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
    assert any(words in said[1] for words in ("is running", "starting or stopping", "ended the connection"))
