"""Compute approvals (COUNT@HASH) of losses, and look up the approvals that a state has recorded. Pure.

The hash covers how often an approval of the same losses was spent. The same removals therefore need a new approval each
time, and a line left in the project file approves nothing twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from msgspec import Struct

from syncengine.document.digest import sha256_of
from syncengine.plan.losses import Loss
from syncengine.resource import Key
from syncengine.state.losses import ApprovalRecord

DIGITS = 20
"""The number of digits in an approval's hash: 80 bits, which nobody meets by chance and a person can still copy."""


class Approval(Struct, frozen=True, gc=False):
    """An approval that was given, and its origin `by`: an option, a variable, the project file (at `line`) or a run."""

    text: str
    by: str
    line: int | None = None

    def __str__(self) -> str:
        return self.by if self.line is None else f"{self.by}:{self.line}"


@dataclass(frozen=True, slots=True)
class KnownApprovals:
    """The approvals that a state has recorded: those that are spent, and those with losses under way."""

    spent: Mapping[str, ApprovalRecord] = field(default_factory=dict)
    under_way: Mapping[tuple[str, Key], tuple[tuple[Loss, ApprovalRecord], ...]] = field(default_factory=dict)

    @property
    def texts_under_way(self) -> frozenset[str]:
        """The approvals of losses that have begun and have not settled."""
        return frozenset(record.text for pairs in self.under_way.values() for _, record in pairs)

    def covering(self, loss: Loss) -> ApprovalRecord | None:
        """Return the approval under which `loss` began and has not settled, or `None`."""
        begun = self.under_way.get((loss.of, loss.key), ())
        return next((record for covered, record in begun if covered.covers(loss)), None)


def records_of(found: Iterable[ApprovalRecord]) -> KnownApprovals:
    """Sort recorded approvals by use. A partly settled approval covers its remaining losses and no new ones."""
    found = list(found)
    by_thing: defaultdict[tuple[str, Key], list[tuple[Loss, ApprovalRecord]]] = defaultdict(list)
    for record in found:
        for loss in record.remaining if record.used is None else ():
            by_thing[loss.of, loss.key].append((loss, record))
    spent = {each.text: each for each in found if each.used is not None or each.remaining != each.covers}
    return KnownApprovals(spent, {thing: tuple(pairs) for thing, pairs in by_thing.items()})


@dataclass(frozen=True, slots=True)
class Owner:
    """The team and the state that an approval is valid for."""

    team: str | None
    lineage: str


def approval_of(losses: Iterable[Loss], owner: Owner, records: KnownApprovals) -> str:
    """Return the approval of exactly these losses that has not been spent, wherever they stand."""
    lines = sorted(f"{loss.key}\0{loss.of}\0{loss.what}" for loss in losses)
    whole = "\n".join((owner.team or "", owner.lineage, *lines, "\0"))
    texts = (f"{len(lines)}@{sha256_of(f'{whole}{number}')[:DIGITS]}" for number in count())
    return next(text for text in texts if text not in records.spent)
