"""Loops of posted time at a pace for tests."""

import asyncio
from collections.abc import Callable

from syncengine.posted_time.events import Event
from syncengine.posted_time.pace import Pace

SWIFT = Pace(first=0.01, longest=0.05, empty=0.01, fetch=1.0, well=0.05, down=0.02, renew=0.1)
"""Short waits that keep tests fast; the loops still wait for the same things."""


async def until(told: list[Event], there: Callable[[list[Event]], bool]) -> None:
    """Return as soon as `there` is true of the events in `told`."""
    async with asyncio.timeout(30):
        while not there(told):  # noqa: ASYNC110 -- the loops append to a list and set no event
            await asyncio.sleep(0.005)
