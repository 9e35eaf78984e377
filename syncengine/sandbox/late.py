"""Calls that wait to be executed: when their time has come or a test says so, whether or not their client is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from syncengine.sandbox.asked import Answer
from syncengine.sandbox.request_log import Entry, Lateness


@dataclass(frozen=True, slots=True)
class _Call:
    entry: Entry
    execute: Callable[[], Answer]
    answer: asyncio.Future[Answer]
    timer: asyncio.TimerHandle | None


class LateCalls:
    """Calls by the number of their request, in the order in which they came. `now` gives milliseconds.

    A rule decides when it is executed, upon the world as it is then: after all that came in between.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._calls: dict[int, _Call] = {}

    def hold(self, entry: Entry, execute: Callable[[], Answer], seconds: float | None) -> asyncio.Future[Answer]:
        """The answer of a call, once it is executed: after `seconds`, or only when it is asked for (None)."""
        loop = asyncio.get_running_loop()
        timer = None if seconds is None else loop.call_later(seconds, self.execute, entry.seq)
        entry.late = Lateness(None if seconds is None else self._now() + int(seconds * 1000))
        self._calls[entry.seq] = _Call(entry, execute, loop.create_future(), timer)
        return self._calls[entry.seq].answer

    def pending(self) -> Iterator[Entry]:
        return (call.entry for call in self._calls.values())

    def execute(self, number: int) -> Entry:
        """Execute a pending call now. KeyError: there is none of this number."""
        call = self._taken(number)
        answer = call.execute()
        call.entry.late = Lateness(None, self._now(), answer.status)
        if not call.answer.cancelled():
            call.answer.set_result(answer)
        return call.entry

    def clear(self) -> None:
        """Forget all pending calls: they are never executed, and clients that wait for them get no answer."""
        for number in list(self._calls):
            call = self._taken(number)
            call.entry.late = Lateness(None)
            call.answer.cancel()

    def _taken(self, number: int) -> _Call:
        call = self._calls.pop(number)
        if call.timer:
            call.timer.cancel()
        return call
