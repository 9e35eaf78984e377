"""The pace of the loops: waiting times, and groups side by side. Independent of the kind of work."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

HOLD_SECONDS = 60.0
"""The longest time for which the service holds a fetch open (docs/interface.md 8)."""

WIDTH = 64
"""The maximum number of groups that are on their way at the same time. Most of them wait for the inbox, which writes
together what arrives; how many a database is asked for at once is `databases.AT_ONCE`."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The waiting times of all loops, in seconds.

    `first` and `longest` bound the wait after trouble, which doubles each time. `empty` follows a fetch that is
    answered at once with nothing, which a service that holds fetches never does. `fetch` limits a fetch. `well` and
    `down` separate checks of sinks that are well or down. `renew` is the least time between two registrations.
    `again` is the wait before a manual round repeats a failed delivery.
    """

    first: float = 0.5
    longest: float = 15.0
    empty: float = 1.0
    fetch: float = HOLD_SECONDS + 15.0
    well: float = 60.0
    down: float = 5.0
    renew: float = 60.0
    again: float = 2.0


PACE = Pace()


@dataclass(slots=True)
class BackOff:
    """A wait that grows with each trouble in a row, with jitter so that connectors do not return all at once."""

    pace: Pace = PACE
    _troubles: int = 0

    def after(self, retry_after: float | None = None) -> float:
        """Return the seconds to wait after one more trouble: the service's `retry_after`, if any, within limits."""
        self._troubles += 1
        if retry_after is not None:
            # A service that asks for hours is tried earlier all the same: users wait for their time.
            return min(retry_after, 10 * self.pace.longest)
        grown = self.pace.first * 2.0 ** min(self._troubles - 1, 30)  # 30: long above `longest`, and no overflow
        return min(self.pace.longest, grown) * random.uniform(0.75, 1.0)  # noqa: S311 -- jitter, no secret

    def reset(self) -> None:
        self._troubles = 0


class Turns:
    """Turns at a target, `at_once` at a time. Whoever waits for a turn, waits for others of this process alone: so the
    clock of a caller's patience starts with its turn, and any number may wait.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._free = asyncio.Semaphore(at_once)
        self._given_up = 0

    @asynccontextmanager
    async def one(self, no_turn: Exception) -> AsyncIterator[None]:
        """Hold a turn. Raise `no_turn` if meanwhile as many have given up as have turns at once.

        Otherwise, of those who wait for a silent target, each would wait as long once more as the ones before it.
        """
        before = self._given_up
        async with self._free:
            if self._given_up - before >= self._at_once:
                raise no_turn
            yield

    def give_up(self) -> None:
        """Note that the holder of a turn got no answer in time."""
        self._given_up += 1

    def refuse_waiting(self) -> None:
        """Give no turn to those who wait for one now, as the target asks for."""
        self._given_up += self._at_once


async def slept(seconds: float, *wakers: asyncio.Event) -> None:
    """Return after `seconds`, or as soon as one of `wakers` is set."""
    waits = [asyncio.ensure_future(waker.wait()) for waker in wakers]
    try:
        # An event loop accepts no infinite time-out.
        await asyncio.wait(
            waits, timeout=None if seconds == float("inf") else seconds, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for wait in waits:
            wait.cancel()


async def to_its_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of work that goes on when its caller is cancelled. The caller is kept waiting until it ends."""
    task = asyncio.create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return task.result()


async def each(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Yield the items as an asynchronous iterator."""
    for item in items:
        yield item


async def side_by_side(
    items: AsyncIterator[Item], work: Callable[[Item], Awaitable[object]], width: Callable[[], int]
) -> int:
    """Run `work` on the items, and return how many were begun. Raise the first error after all have ended.

    `width` is called before each item, and returns how many may run at the same time; 0 means that no more are begun.
    """
    begun = under_way = 0
    errors: list[BaseException] = []
    freed = asyncio.Event()

    def ended(one: asyncio.Future[object]) -> None:
        nonlocal under_way
        under_way -= 1
        freed.set()
        if error := asyncio.CancelledError() if one.cancelled() else one.exception():
            errors.append(error)

    async def one_ended() -> None:
        freed.clear()
        await freed.wait()

    try:
        async for item in items:
            while 0 < width() <= under_way and not errors:
                await one_ended()
            if errors or width() <= 0:
                break
            begun += 1
            under_way += 1
            asyncio.ensure_future(work(item)).add_done_callback(ended)
    finally:
        while under_way:
            await one_ended()
    if errors:
        raise errors[0]
    return begun
