"""A circuit breaker for each sink, from its answers and probes: which are down, and whether to fetch. Pure.

A failure opens the breaker: nothing is fetched. A good probe, even of a `health` path, proves that a sink can be
reached, but not that it takes groups. So after a good probe the breaker of a sink that answered a group with trouble is
*half-open*: time is fetched again, but the sink counts as down until it takes or refuses a group, or its probes have
been good for `LONG_ENOUGH`. Two counters decide: failures in a row (when users are told) and failed tries (each is a
failure that a user sees, so tries become rarer).

A sink that gave no answer counts as well again after one good probe; if it does not answer the next group either, it
has to take or refuse a group.

Fetching stops at the first failure. Users are told only of a second failure in a row, or of one that has not been
disproved for `IN_DOUBT` seconds: a single lost answer, or a single 503, is not worth reporting. That a sink cannot be
reached is disproved by a good probe, anything else by a group that it takes or refuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from syncengine.errors import TroubleKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.sinks.contract import Failed

LONG_ENOUGH = 600.0
"""Seconds after a failure from which on a good probe suffices to call a sink well that got no group since."""

FIRST_REST, LONGEST_REST = 5.0, 60.0
"""Seconds after a failure until the next try, doubled with each failed try up to `LONGEST_REST`."""

RESTING = "it asked to be sent nothing before a time that is still to come (Retry-After)"
"""The cause of the trouble with a sink that is left alone."""

IN_A_ROW, IN_DOUBT = 2, 30.0
"""The number of failures in a row, or the seconds since the first one, after which a sink is reported as down."""


@dataclass(frozen=True, slots=True)
class _Open:
    """An open breaker, with instants of the breakers' clock. `tries` counts the failed tries.

    `is_disproved`: the last failure was that the sink could not be reached, and a probe has reached it since.
    """

    trouble: SinkTrouble
    first: float
    last: float
    failures: int
    has_answered: bool
    next_try: float
    tries: int = 0
    is_half_open: bool = False
    is_disproved: bool = False

    def is_reported(self, now: float) -> bool:
        return self.failures >= IN_A_ROW or (now - self.first >= IN_DOUBT and not self.is_disproved)


class SinkHealth:
    """The health of all sinks and lookups, by name. `public_names` maps names to the names shown to users.

    `clock` counts seconds and is never set, as `time.monotonic` is not: a machine's date may be.
    """

    def __init__(self, clock: Callable[[], float], public_names: Mapping[str, str] | None = None) -> None:
        self.clock = clock
        self._public_names = public_names or {}
        self._down: dict[str, _Open] = {}
        self._believed: set[str] = set()
        self._rests: dict[str, float] = {}

    def inherit(self, before: SinkHealth, names: Collection[str]) -> None:
        """Take over the troubles of these sinks from `before`, unless newer ones are known."""
        self._down = {name: down for name, down in before._down.items() if name in names} | self._down
        self._rests = {name: until for name, until in before._rests.items() if name in names} | self._rests

    def failed(self, name: str, failure: Failed, began: float = math.inf) -> None:
        """Note that a delivery failed. A failure of one group alone is ignored.

        One that `began` before the last failure (groups go side by side) is the same failure, not a second in a row.
        """
        if failure.is_down:
            trouble = SinkTrouble(self._shown(name), failure.kind, failure.message, failure.detail)
            self._fails(name, trouble, failure.has_answered or name in self._believed, began, failure.rest)

    def failed_before(self, name: str, seconds: float) -> None:
        """Note that the last attempt of an earlier process failed `seconds` ago, for an unknown reason."""
        trouble = SinkTrouble(
            self._shown(name), TroubleKind.UNKNOWN, f"{self._shown(name)} did not take the last group."
        )
        now = self.clock()
        next_try = now + min(max(FIRST_REST - seconds, 0.0), FIRST_REST)
        is_open = _Open(trouble, math.inf, now, 1, has_answered=True, next_try=next_try)
        self._down.setdefault(name, is_open)

    def leave(self, name: str, seconds: float) -> None:
        """Note that a sink asked, this process or an earlier one, to be sent nothing for so long (Retry-After)."""
        if seconds > 0:
            self._rests[name] = until = self.clock() + seconds
            if name not in self._down and (resting := self.resting(name)):
                self.failed(name, resting)
            self._down[name] = replace(self._down[name], next_try=max(self._down[name].next_try, until))

    def resting(self, name: str) -> Failed | None:
        """Return the answer for a group that a sink is not to be sent yet, or `None`."""
        if self.clock() >= self._rests.get(name, -math.inf):
            return None
        known = self._down[name].trouble.message if name in self._down else None
        message = known or f"{self._shown(name)} wants to be sent nothing yet."
        return Failed(TroubleKind.UNREACHABLE, message, has_answered=True, detail=RESTING)

    def worked(self, name: str) -> None:
        """Note that a sink took or refused a group, which shows that it works."""
        self._believed.discard(name)
        self._down.pop(name, None)

    def probed(self, name: str, trouble: SinkTrouble | None) -> None:
        """Note the result of a probe. `None` is a good one."""
        record = self._down.get(name)
        if trouble is not None:
            self._fails(name, trouble, has_answered=False)
        elif record is None:
            return
        elif not record.has_answered or self.clock() >= max(record.last + LONG_ENOUGH, record.next_try):
            self._down.pop(name)
            self._believed.add(name)
        else:
            is_half_open = record.is_half_open or self.clock() >= record.next_try
            is_disproved = record.trouble.kind is TroubleKind.UNREACHABLE
            self._down[name] = replace(record, is_half_open=is_half_open, is_disproved=is_disproved)

    def _fails(
        self, name: str, trouble: SinkTrouble, has_answered: bool, began: float = math.inf, rest: float = 0.0
    ) -> None:
        now, record = self.clock(), self._down.get(name)
        if record is None:
            # A sink that was believed after a good probe failed just before that.
            first, failures, tries = now, 2 if name in self._believed else 1, 0
        else:
            first = min(record.first, now)  # `failed_before` does not know when it began: infinity
            failures = record.failures + 1 if began >= record.last else record.failures
            tries = record.tries + 1 if record.is_half_open else record.tries
        # 30 is long above `LONGEST_REST`, and far from an overflow.
        next_try = now + max(rest, min(FIRST_REST * 2.0 ** min(tries, 30), LONGEST_REST))
        self._down[name] = _Open(trouble, first, now, failures, has_answered, next_try, tries)

    def _shown(self, name: str) -> str:
        return self._public_names.get(name, name)

    @property
    def down(self) -> tuple[SinkTrouble, ...]:
        """The troubles to report to users."""
        now = self.clock()
        return tuple(dict.fromkeys(record.trouble for record in self._down.values() if record.is_reported(now)))

    @property
    def is_in_doubt(self) -> bool:
        """Whether any sink or lookup failed and has not been shown to work since."""
        return bool(self._down)

    @property
    def is_half_open(self) -> bool:
        """Whether a sink that failed is being tried with one group."""
        return any(record.is_half_open for record in self._down.values())

    @property
    def blocking(self) -> tuple[SinkTrouble, ...]:
        """The troubles that stop fetching, of sinks whose breakers are open and not half-open."""
        return tuple(dict.fromkeys(record.trouble for record in self._down.values() if not record.is_half_open))
