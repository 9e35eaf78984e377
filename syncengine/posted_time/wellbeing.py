"""What sinks answered and probes found → which sinks are down, and whether to go on fetching. Remembers; no IO.

A probe, of a `health` path too, proves that a sink can be reached, and not that it would take a group. So a sink that
answered with trouble of which no probe knew is *tried* once its probe is well: time is fetched again, but it counts as
down until it took or refused a group, or has been well for long with nobody posting. Each try that fails is a failure
that a user sees, so they become rarer.

One that gave no answer is believed to be well again by its probe once; if the next group gets no answer either, it has
to take one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from syncengine.posted_time.sinks.contract import Failed
from syncengine.posted_time.verdict import SinkTrouble

LONG_ENOUGH = 600.0
"""Seconds of well probes after which a sink that nobody posts to is believed."""

FIRST_REST, LONGEST_REST = 5.0, 60.0
"""Seconds after a try that failed until the next, doubled each time."""


@dataclass(frozen=True, slots=True)
class _Down:
    trouble: SinkTrouble
    since: float
    has_answered: bool
    is_tried: bool = False
    tries: int = 0
    """That failed."""

    def may_be_tried(self, now: float) -> bool:
        rest = FIRST_REST * 2.0 ** min(self.tries - 1, 30) if self.tries else 0.0
        return self.is_tried or now - self.since >= min(rest, LONGEST_REST)


class Wellbeing:
    """Of all sinks and lookups, by name. `told`: the name that people know a part by, if it is another."""

    def __init__(self, now: Callable[[], float], told: Mapping[str, str] | None = None) -> None:
        self._now = now
        self._told = told or {}
        self._down: dict[str, _Down] = {}
        self._believed: set[str] = set()

    def inherit(self, before: Wellbeing, names: Collection[str]) -> None:
        """What was down before, of these, is so now; what was found of it since counts more."""
        self._down = {name: down for name, down in before._down.items() if name in names} | self._down

    def failed(self, name: str, failure: Failed) -> None:
        """A delivery did not get through."""
        if failure.is_down:
            trouble = SinkTrouble(self._told.get(name, name), failure.kind, failure.message)
            has_answered = failure.has_answered or name in self._believed
            known = self._down.get(name)
            tries = known.tries + known.is_tried if known else 0
            self._down[name] = _Down(trouble, self._now(), has_answered, tries=tries)

    def worked(self, name: str) -> None:
        """It took or refused a group."""
        self._believed.discard(name)
        self._down.pop(name, None)

    def probed(self, name: str, trouble: SinkTrouble | None) -> None:
        """What a probe found."""
        known = self._down.get(name)
        if trouble is not None:
            self._down[name] = _Down(trouble, self._now(), has_answered=False)
        elif known is None:
            return
        elif not known.has_answered or self._now() - known.since >= LONG_ENOUGH:
            self._down.pop(name)
            self._believed.add(name)
        else:
            self._down[name] = replace(known, is_tried=known.may_be_tried(self._now()))

    @property
    def down(self) -> tuple[SinkTrouble, ...]:
        """All that is to be reported."""
        return tuple(dict.fromkeys(known.trouble for known in self._down.values()))

    @property
    def closed(self) -> tuple[SinkTrouble, ...]:
        """Those that nothing is to be fetched for."""
        return tuple(dict.fromkeys(known.trouble for known in self._down.values() if not known.is_tried))
