"""The health of sinks, from their answers and probes: which are down, and whether to go on fetching. No IO.

A probe, of a `health` path too, proves that a sink can be reached, and not that it would take a group. So a sink that
answered with trouble of which no probe knew is *tried* once its probe is well: time is fetched again, but it counts as
down until it took or refused a group, or has been well for long with nobody posting. Each try that fails is a failure
that a user sees, so they become rarer.

One that gave no answer is believed to be well again by its probe once; if the next group gets no answer either, it has
to take one.

Fetching stops at the first failure. Users are told only of a second failure in a row, or when nothing has shown for a
while that the first is over: a single lost answer is not worth reporting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from syncengine.database.trouble import TroubleKind
from syncengine.posted_time.sinks.contract import Failed
from syncengine.posted_time.verdict import SinkTrouble

LONG_ENOUGH = 600.0
"""Seconds of well probes after which a sink that nobody posts to is believed."""

FIRST_REST, LONGEST_REST = 5.0, 60.0
"""Seconds after a failure until the next try, doubled with each try that fails."""

IN_A_ROW, IN_DOUBT = 2, 30.0
"""So many failures, or seconds after one, are reported."""


@dataclass(frozen=True, slots=True)
class _Down:
    """`first` and `last` failure, in seconds since epoch; `next_try` is not before then. `tries`: that failed."""

    trouble: SinkTrouble
    first: float
    last: float
    failures: int
    has_answered: bool
    next_try: float
    tries: int = 0
    is_tried: bool = False

    def is_reported(self, now: float) -> bool:
        return self.failures >= IN_A_ROW or now - self.first >= IN_DOUBT


class Wellbeing:
    """The health of all sinks and lookups, by name. `public_names`: by name, the one
    that people know, where it differs."""

    def __init__(self, now: Callable[[], float], public_names: Mapping[str, str] | None = None) -> None:
        self._now = now
        self._public_names = public_names or {}
        self._down: dict[str, _Down] = {}
        self._believed: set[str] = set()

    def inherit(self, before: Wellbeing, names: Collection[str]) -> None:
        """Take over earlier troubles of these sinks; findings since then count more."""
        self._down = {name: down for name, down in before._down.items() if name in names} | self._down

    def failed(self, name: str, failure: Failed) -> None:
        """A delivery did not get through."""
        if failure.is_down:
            trouble = SinkTrouble(self._public_names.get(name, name), failure.kind, failure.message, failure.detail)
            self._fails(name, trouble, failure.has_answered or name in self._believed)

    def recalled(self, name: str, at: float) -> None:
        """The last attempt of an earlier process failed, `at` then, for a reason that is not record any more."""
        trouble = SinkTrouble(
            self._public_names.get(name, name),
            TroubleKind.UNKNOWN,
            f"{self._public_names.get(name, name)} did not take the last group.",
        )
        rest = at + FIRST_REST
        self._down.setdefault(name, _Down(trouble, math.inf, self._now(), 1, has_answered=True, next_try=rest))

    def worked(self, name: str) -> None:
        """Note that a sink took or refused a group, so it works."""
        self._believed.discard(name)
        self._down.pop(name, None)

    def probed(self, name: str, trouble: SinkTrouble | None) -> None:
        """Note the result of a probe."""
        record = self._down.get(name)
        if trouble is not None:
            self._fails(name, trouble, has_answered=False)
        elif record is None:
            return
        elif not record.has_answered or self._now() - record.last >= LONG_ENOUGH:
            self._down.pop(name)
            self._believed.add(name)
        else:
            self._down[name] = replace(record, is_tried=record.is_tried or self._now() >= record.next_try)

    def _fails(self, name: str, trouble: SinkTrouble, has_answered: bool) -> None:
        now, record = self._now(), self._down.get(name)
        tries = record.tries + record.is_tried if record else 0
        self._down[name] = _Down(
            trouble,
            first=min(record.first, now) if record else now,
            last=now,
            failures=1 + (record.failures if record else name in self._believed),
            has_answered=has_answered,
            next_try=now + min(FIRST_REST * 2.0 ** min(tries, 30), LONGEST_REST),
            tries=tries,
        )

    @property
    def down(self) -> tuple[SinkTrouble, ...]:
        """All that is to be reported."""
        now = self._now()
        return tuple(dict.fromkeys(record.trouble for record in self._down.values() if record.is_reported(now)))

    @property
    def is_in_doubt(self) -> bool:
        """Whether anything failed and did not prove since to be well."""
        return bool(self._down)

    @property
    def is_on_trial(self) -> bool:
        """Whether one group is to find out if a sink is well."""
        return any(record.is_tried for record in self._down.values())

    @property
    def closed(self) -> tuple[SinkTrouble, ...]:
        """Troubles of the sinks that stop fetching, because they are down and not being tried."""
        return tuple(dict.fromkeys(record.trouble for record in self._down.values() if not record.is_tried))
