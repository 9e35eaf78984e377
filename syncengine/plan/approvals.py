"""Compute approvals (COUNT@HASH) of removals, and look up the approvals that a state has recorded as used. Pure.

The hash covers how often an approval of the same removals was spent. The same removals therefore need a new approval
each time, and a line left in the project file approves nothing twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from syncengine.document.digest import sha256_of
from syncengine.plan.losses import SWEEP, SWEPT, Loss
from syncengine.plan.units import UnitName
from syncengine.resource import Key
from syncengine.state.losses import ApprovalRecord

DIGITS, EARLIER_DIGITS = 20, 12
"""The number of digits in an approval's hash, and in the approvals of whole plans that earlier versions printed."""


class Approval(Struct, frozen=True, gc=False):
    """An approval that was given, and its origin `by`: an option, a variable, the project file (at `line`) or a run."""

    text: str
    by: str
    line: int | None = None

    def __str__(self) -> str:
        return self.by if self.line is None else f"{self.by}:{self.line}"


@dataclass(frozen=True, slots=True)
class KnownApprovals:
    """The approvals that a state has recorded: those that are spent, and those with removals under way."""

    spent: Mapping[str, ApprovalRecord] = field(default_factory=dict)
    under_way: Mapping[tuple[str, Key], tuple[tuple[Loss, ApprovalRecord], ...]] = field(default_factory=dict)

    @property
    def texts_under_way(self) -> frozenset[str]:
        """The approvals of removals that have begun and have not settled."""
        return frozenset(record.text for pairs in self.under_way.values() for _, record in pairs)

    def covering(self, loss: Loss) -> ApprovalRecord | None:
        """Return the approval under which the removal `loss` began and has not settled, or `None`."""
        begun = self.under_way.get((loss.of, loss.key), ())
        return next((record for covered, record in begun if covered.covers(loss)), None)


def records_of(found: Iterable[ApprovalRecord]) -> KnownApprovals:
    """Sort recorded approvals by use. A partly settled approval covers its remaining removals and no new ones."""
    found = list(found)
    spent = {each.text: each for each in found if each.used is not None or each.remaining != each.covers}
    return KnownApprovals(spent, _by_thing(found, lambda each: each.remaining if each.used is None else ()))


def _by_thing(
    found: Iterable[ApprovalRecord], losses: Callable[[ApprovalRecord], Iterable[Loss]]
) -> dict[tuple[str, Key], tuple[tuple[Loss, ApprovalRecord], ...]]:
    by_thing: defaultdict[tuple[str, Key], list[tuple[Loss, ApprovalRecord]]] = defaultdict(list)
    for record in found:
        for loss in losses(record):
            by_thing[loss.of, loss.key].append((loss, record))
    return {thing: tuple(pairs) for thing, pairs in by_thing.items()}


# --- what is approved


@dataclass(frozen=True, slots=True)
class Owner:
    """The team and the state that an approval is valid for."""

    team: str | None
    lineage: str


def approvals_of_unit(name: UnitName, losses: Iterable[Loss], owner: Owner) -> Iterator[str]:
    """Yield the approvals of a unit without end: one for each time that the same removals are approved."""
    lines = sorted(map(_line, losses))
    return _texts((f"unit\0{name.kind}\0{name.name}", owner.team or "", owner.lineage, *lines), len(lines))


def approvals_of_plan(losses: Iterable[Loss], owner: Owner) -> Iterator[str]:
    """Yield the approvals of all that a plan removes, without ids, times, lines and additions (docs/planning.md 5)."""
    losses = list(losses)
    lines = sorted(map(_line, (loss for loss in losses if loss != SWEEP)))
    lines += [SWEPT] * (SWEEP in losses)
    return _texts((owner.team or "", owner.lineage, *lines), len(lines))


def _texts(parts: Iterable[str], count: int) -> Iterator[str]:
    whole, number = "\n".join(parts), 0
    while True:
        again = f"\n\0{number}" if number else ""
        yield f"{count}@{sha256_of(whole + again)[:DIGITS]}"
        number += 1


def _line(loss: Loss) -> str:
    return f"{loss.key}\0{loss.of}\0{loss.what}"


def next_of(texts: Iterator[str], records: KnownApprovals) -> str:
    """Return the first approval that has not been spent."""
    return next(text for text in texts if not {text, as_printed_before(text)} & records.spent.keys())


def as_printed_before(text: str) -> str:
    """Return the approval of a whole plan in the form that earlier versions printed."""
    count, _, digest = text.partition("@")
    return f"{count}@{digest[:EARLIER_DIGITS]}"
