"""Waiting times between rounds and after trouble, and a wait that an event can end."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

HOLD_SECONDS = 60.0
"""The longest time for which the service holds a fetch open (docs/interface.md 8)."""


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
            return min(retry_after, 10 * self.pace.longest)
        grown = self.pace.first * 2.0 ** min(self._troubles - 1, 30)
        return min(self.pace.longest, grown) * random.uniform(0.75, 1.0)  # noqa: S311 -- jitter, no secret

    def reset(self) -> None:
        self._troubles = 0


async def slept(seconds: float, *wakers: asyncio.Event) -> None:
    """Return after `seconds`, or as soon as one of `wakers` is set."""
    waits = [asyncio.ensure_future(waker.wait()) for waker in wakers]
    try:
        await asyncio.wait(
            waits, timeout=None if seconds == float("inf") else seconds, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for wait in waits:
            wait.cancel()
