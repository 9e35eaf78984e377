"""Tell a pull request's changes and removals from those of its base that wait. Pure (docs/pull-requests.md)."""

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
"""The codes of diagnostics to show before a plan, in this order."""

Judge = Callable[[Sequence[Difference], Sweep | None, Iterable[SourceUse]], Gate]
"""A function that returns the gate of some changes."""


def is_same(one: Change, other: Change | None) -> bool:
    """Return whether two sides make the same change, regardless of its place and reason."""
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
    """Return the changes that the base's plan makes too, with their reasons still empty, and the gates of both sides.

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
    """The sides whose removals need an approval that was not given.

    `only_together` means that some removals need an approval only in sum with those of the other side.
    """

    own: bool = False
    theirs: bool = False
    only_together: bool = False

    @property
    def fails(self) -> bool:
        """Whether the pull request's check fails because of the missing approval."""
        return self.own or self.only_together

    @property
    def origins(self) -> tuple[ChangeOrigin, ...]:
        """The origins of the removals that need the approval."""
        who = ((ChangeOrigin.PULL_REQUEST, self.own), (ChangeOrigin.WAITING, self.theirs))
        return tuple(origin for origin, needs in who if needs or self.only_together)


def whose(gate: Gate, base: Base | None) -> Whose:
    """Return the sides whose removals need the approval that a plan's gate asks for, if it asks for an approval."""
    if base is None or not gate.is_closed:
        return Whose()
    at_hand = {unit.id: unit.approved for unit in gate.units}
    own, theirs = (judged(each, at_hand, gate.approved) for each in (base.own, base.theirs))
    by_themselves = len(theirs.reasons) if theirs.is_closed else 0
    return Whose(own.is_closed, theirs.is_closed, not own.is_closed and len(gate.reasons) > by_themselves)
