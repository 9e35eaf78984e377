"""A plan, and that of its base → whose each change is, and whose removals trip the gate (docs/pull-requests.md).

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.diff import Change, Difference
from syncengine.plan.gate import Gate, judged
from syncengine.plan.model import Base, BasePlan, ChangeOrigin
from syncengine.plan.sweep import Sweep

POLICY_CHANGED, LIMIT_LOOSENED = "policy-changed", "limit-loosened"
BASE_INVALID, NO_BASE, MERGED = "base-invalid", "base-without-project", "merge-planned"
SAID_FIRST = (POLICY_CHANGED, LIMIT_LOOSENED, BASE_INVALID, NO_BASE, MERGED)
"""Codes of what people must know before they read a plan, in this order."""

Judge = Callable[[Sequence[Difference], Sweep | None, Iterable[SourceUse]], Gate]
"""The gate of some changes."""


def is_same(one: Change, other: Change | None) -> bool:
    """Whether two sides make the same of a resource, wherever and for whatever reason they declare it so."""
    return other is not None and _meaning(one) == _meaning(other)


def _meaning(change: Change) -> Change:
    return replace(change, source=None, reason=None)


def side_of(
    other: BasePlan,
    differences: Sequence[Difference],
    sweep: Sweep | None,
    sources: Sequence[SourceUse],
    judgement: Gate,
    judge: Judge,
) -> Base:
    """The changes that the other side makes too, each without its reason yet, and the gates of both.

    `judgement` is the gate of all `differences`.
    """
    waiting = {d.change.key for d in differences if is_same(d.change, other.changes.get(d.change.key))}
    base = Base("", "", dict.fromkeys(map(str, waiting), ""), sweeps=other.sweeps)
    if not judgement.tripped:
        return base
    its_sources = [use for use in sources if other.sources.get(use.identity) == use.rows]
    theirs = judge([d for d in differences if d.change.key in waiting], sweep if other.sweeps else None, its_sources)
    own = judge(
        [d for d in differences if d.change.key not in waiting],
        None if other.sweeps else sweep,
        [use for use in sources if use not in its_sources],
    )
    return replace(base, own=own.bare(), theirs=theirs.bare())


class Whose(NamedTuple):
    """Whose removals need an approval that is not at hand. `only_together`: some need it only with those of others."""

    own: bool = False
    theirs: bool = False
    only_together: bool = False

    @property
    def fails(self) -> bool:
        """Whether a pull request is refused for it."""
        return self.own or self.only_together

    @property
    def origins(self) -> tuple[ChangeOrigin, ...]:
        """All that have a part in it."""
        who = ((ChangeOrigin.PULL_REQUEST, self.own), (ChangeOrigin.WAITING, self.theirs))
        return tuple(origin for origin, needs in who if needs or self.only_together)


def whose(gate: Gate, base: Base | None) -> Whose:
    """Whose removals need the approval that a plan's gate asks for; nobody's where it asks for none."""
    if base is None or not gate.is_closed:
        return Whose()
    at_hand = {unit.id: unit.approved for unit in gate.units}
    own, theirs = (judged(each, at_hand, gate.approved) for each in (base.own, base.theirs))
    by_themselves = len(theirs.reasons) if theirs.is_closed else 0
    return Whose(own.is_closed, theirs.is_closed, not own.is_closed and len(gate.reasons) > by_themselves)
