"""A plan, and that of its base → whose each change is, and whose removals trip the gate (docs/pull-requests.md).

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.diff import Change, Difference
from syncengine.plan.gate import Gate
from syncengine.plan.model import Base, BasePlan, ChangeOrigin
from syncengine.plan.sweep import Sweep

POLICY_CHANGED, LIMIT_LOOSENED = "policy-changed", "limit-loosened"
BASE_INVALID, NO_BASE, MERGED = "base-invalid", "base-without-project", "merge-planned"
SAID_FIRST = (POLICY_CHANGED, LIMIT_LOOSENED, BASE_INVALID, NO_BASE, MERGED)
"""Codes of what people must know before they read a plan, in this order."""

Judge = Callable[[Collection[Difference], Sweep | None, Iterable[SourceUse]], Gate]
"""The gate of some removals."""


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
    """The changes that the other side makes too, each without its reason yet, and whose removals trip the gate.

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
    together = not own.tripped and len(judgement.reasons) > len(theirs.reasons)
    who = ((ChangeOrigin.PULL_REQUEST, own.tripped or together), (ChangeOrigin.WAITING, theirs.tripped or together))
    return replace(
        base,
        trips=tuple(origin for origin, trips in who if trips),
        only_together=together and not theirs.tripped,
        asks=own.tripped or together,
    )
