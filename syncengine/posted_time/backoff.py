"""Waiting times between rounds and after trouble, in seconds; and a wait that a stop ends."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

HOLD_SECONDS = 60.0
"""How long the service holds a fetch open at most (docs/interface.md 8)."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Waits in seconds.

    `first`, `longest`: after trouble, doubled each time. `empty`: after a fetch that was answered at once with
    nothing, which a service that holds it never does. `fetch`: how long its answer may take. `well`, `down`: between
    two checks of the sinks. `renew`: between two registrations, at least. `again`: before one round by hand believes a
    failure.
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
    """Waits that grow with each trouble in a row, with jitter so that connectors do not come back all at once."""

    pace: Pace = PACE
    _troubles: int = 0

    def after(self, retry_after: float | None = None) -> float:
        """Seconds to wait after one more trouble; a delay that the service `asked` for counts, within reason."""
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
