"""Keep calls that are executed late: when due or when a test asks for it, even if their client has left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from syncengine.sandbox.request import RuleAnswer
from syncengine.sandbox.request_log import Lateness, LoggedRequest


class LateCall(NamedTuple):
    """A call to execute late. `tell` passes the answer to a client that still waits, or `None` for a dropped call."""

    entry: LoggedRequest
    execute: Callable[[], RuleAnswer]
    tell: Callable[[RuleAnswer | None], None]


class LateCalls:
    """The waiting calls by the number of their request, in order of arrival. `now` returns milliseconds.

    A call acts on the world at the time of its execution, after all requests that came in between.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._calls: dict[int, LateCall] = {}

    def hold(self, call: LateCall, seconds: float | None) -> None:
        """Keep a call that is due after `seconds`, or that is executed only on request when `seconds` is `None`."""
        call.entry.late = Lateness(None if seconds is None else self._now() + int(seconds * 1000))
        self._calls[call.entry.seq] = call

    def pending(self) -> Iterator[LoggedRequest]:
        return (call.entry for call in self._calls.values())

    def execute(self, number: int) -> LoggedRequest | None:
        """Execute the call of request `number` now and return its log entry, or `None` when it is not waiting."""
        call = self._calls.pop(number, None)
        if call is None:
            return None
        answer = call.execute()
        call.entry.late = Lateness(None, self._now(), answer.status)
        call.tell(answer)
        return call.entry

    def clear(self) -> None:
        """Drop the waiting calls. They are never executed, and clients that are held get no answer."""
        while self._calls:
            call = self._calls.pop(next(iter(self._calls)))
            call.entry.late = None
            call.tell(None)
