"""Calls that wait to be executed: when they are due or a test says so, whether or not their client still waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from syncengine.sandbox.request import RuleAnswer
from syncengine.sandbox.request_log import Lateness, LoggedRequest


class LateCall(NamedTuple):
    """`tell` hands the answer to the client, if there still is one; None: the call is dropped."""

    entry: LoggedRequest
    execute: Callable[[], RuleAnswer]
    tell: Callable[[RuleAnswer | None], None]


class LateCalls:
    """Calls by the number of their request, in the order in which they came. `now` gives milliseconds.

    A rule decides when it is executed, upon the world as it is then: after all that came in between.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._calls: dict[int, LateCall] = {}

    def hold(self, call: LateCall, seconds: float | None) -> None:
        """Keep a call until it is executed, which is due after `seconds`; None: on request."""
        call.entry.late = Lateness(None if seconds is None else self._now() + int(seconds * 1000))
        self._calls[call.entry.seq] = call

    def pending(self) -> Iterator[LoggedRequest]:
        return (call.entry for call in self._calls.values())

    def execute(self, number: int) -> LoggedRequest | None:
        """Execute a call now; None if none of this number waits."""
        call = self._calls.pop(number, None)
        if call is None:
            return None
        answer = call.execute()
        call.entry.late = Lateness(None, self._now(), answer.status)
        call.tell(answer)
        return call.entry

    def clear(self) -> None:
        """Drop the calls that wait: they are never executed, and clients that are held get no answer."""
        while self._calls:
            call = self._calls.pop(next(iter(self._calls)))
            call.entry.late = None
            call.tell(None)
