"""A plan, and that of its base → whose each change is, and whose removals trip the gate (docs/pull-requests.md).

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.diff import Change, Difference
from syncengine.plan.gate import Gate
from syncengine.plan.model import Base, Origin, Other
from syncengine.plan.sweep import Sweep

Judge = Callable[[Collection[Difference], Sweep | None, Iterable[SourceUse]], Gate]
"""The gate of some removals."""


def is_same(one: Change, other: Change | None) -> bool:
    """Whether two sides make the same of a resource, wherever and for whatever reason they declare it so."""
    return other is not None and _meaning(one) == _meaning(other)


def _meaning(change: Change) -> Change:
    return replace(change, source=None, reason=None)


def side_of(
    other: Other,
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
    together = len(judgement.reasons) > len(theirs.reasons)
    return replace(base, trips=tuple(_who(own.tripped, theirs.tripped, together)), asks=own.tripped or together)


def _who(own: bool, theirs: bool, together: bool) -> Iterable[Origin]:
    """Those without whose removals the gate would not be tripped as it is."""
    only_together = together and not own
    if own or only_together:
        yield Origin.PULL_REQUEST
    if theirs or only_together:
        yield Origin.WAITING
