"""Divide losses into units that are approved one by one, and the approvals that name them. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType

from syncengine.document.digest import sha256_of
from syncengine.plan.calls import Sweep
from syncengine.plan.diff import PUBLISHED, Action, Change
from syncengine.plan.losses import EMPTY_SWEEP, LEAVES_AS, SWEEP, Loss, Shrunk, template_of
from syncengine.resource import Key, Kind, Removal, Removed
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


CATEGORY, SOURCE, MANIFEST = "category", "source", "manifest"
ACTIVITY_TYPES, OPENED, FIRST_SWEEP, REMOVED = "activity-types", "opened", "first-sweep", "removed"
RULE = "rule"
"""The kind of the units that `judgement` makes."""

SHOWN_ORDER = (CATEGORY, SOURCE, MANIFEST, ACTIVITY_TYPES, OPENED, REMOVED, FIRST_SWEEP)
"""The kinds of units of losses, in the order of a plan."""

ALWAYS = frozenset({CATEGORY, OPENED, FIRST_SWEEP})
"""The kinds of units that need an approval whatever the limits are."""

UNKNOWN = "unknown-visibility"
"""The name of the one unit of all tags of unknown visibility that become public."""

NO_PLACE = "(no file)"
"""The name in place of a manifest for rows that were recorded without one."""


class UnitName(NamedTuple):
    """The identity of a unit of losses in a plan: its kind and its name."""

    kind: str
    name: str


class Unit(Struct, frozen=True, gc=False):
    """Removals that share one approval.

    `asks` is true when the unit needs an approval whatever the limits are, for `reasons` or because its kind always
    does. `lost` counts the removals by kind. Of a source's `total` rows or resources, `missing` are gone. `also` are
    approvals of larger groups with all these losses, which stood in one unit before another merge moved some of them.
    `approved` is the approval given, and `is_open` is true when the unit still needs one. `by` names the people whom a
    rule asks. `is_own` is false when all its losses wait on the base of a pull request. Saved plans leave out `losses`.
    """

    kind: str
    name: str
    count: int
    approve: str
    lost: tuple[tuple[str, int], ...] = ()
    asks: bool = False
    reasons: tuple[str, ...] = ()
    missing: int = 0
    total: int = 0
    by: tuple[str, ...] | UnsetType = UNSET
    also: tuple[str, ...] = ()
    approved: Approval | None = None
    is_open: bool = False
    is_own: bool = True
    losses: tuple[Loss, ...] = ()


class Division(NamedTuple):
    """The losses of each `unit`, and the losses that each unit would have if it came `first`."""

    units: Mapping[UnitName, list[Loss]]
    first: Mapping[UnitName, list[Loss]]


def divided(losses: Iterable[tuple[Change, Loss]], lines: Collection[Key], sweep: Sweep | None) -> Division:
    """Divide losses into units. `lines` are the tags whose way of leaving is written under `removed:`.

    A sweep may delete unrecorded activity types, which is a loss if it is the first, or if it uploads nothing.
    """
    units: defaultdict[UnitName, list[Loss]] = defaultdict(list)
    first: defaultdict[UnitName, list[Loss]] = defaultdict(list)
    for change, loss in losses:
        names = list(_claims(change, loss, lines))
        units[names[0]].append(loss)
        for name in names:
            first[name].append(loss)
    if (unknown := loss_of(sweep)) is not None:
        kind = FIRST_SWEEP if unknown == SWEEP else ACTIVITY_TYPES
        units[UnitName(kind, kind)].append(unknown)
    order = sorted(units, key=lambda unit: (SHOWN_ORDER.index(unit.kind), unit.name))
    return Division({name: units[name] for name in order}, first)


def loss_of(sweep: Sweep | None) -> Loss | None:
    """Return the loss of unrecorded activity types by a sweep, if it is the first, or if it uploads nothing."""
    if sweep is None:
        return None
    return SWEEP if sweep.first else None if sweep.uploads else EMPTY_SWEEP


def _claims(change: Change, loss: Loss, lines: Collection[Key]) -> Iterator[UnitName]:
    """Yield the units that claim a loss, the strongest first. Only one claims an opening or a cascade."""
    if loss.of == "opened":
        yield UnitName(OPENED, UNKNOWN if change.opening == PUBLISHED else str(change.key))
        return
    if change.cascade is not None or loss.of == LEAVES_AS[Kind.CATEGORY]:
        yield UnitName(CATEGORY, str(change.cascade or change.key))
        return
    if loss.of == LEAVES_AS[Kind.ACTIVITY_TYPE]:
        yield UnitName(ACTIVITY_TYPES, ACTIVITY_TYPES)
    if change.key in lines and is_approvable_by_line(change):
        yield UnitName(REMOVED, REMOVED)
    if (template := template_of(change.source)) is not None:
        yield UnitName(SOURCE, template.data)
    yield UnitName(MANIFEST, change.source.file if change.source is not None else NO_PLACE)


def units_of_source(
    source: Shrunk, losses: Sequence[tuple[Change, Loss]], lines: Collection[Key]
) -> Iterator[UnitName]:
    """Yield the units with losses that may be due to a source that shrank.

    They are those of resources made from its rows, or else in a manifest that uses it, or else all: text templates and
    lookups use rows without a trace in the result. Lines under `removed:` were written for what they remove.
    """
    claimed = [(change, next(_claims(change, loss, lines))) for change, loss in losses]
    claimed = [(change, name) for change, name in claimed if name.kind not in (REMOVED, OPENED)]
    made = [name for change, name in claimed if (t := template_of(change.source)) and t.data == source.source]
    near = [name for change, name in claimed if change.source is not None and change.source.file in source.files]
    yield from dict.fromkeys(made or near or [name for _, name in claimed])


def lost_by(losses: Iterable[Loss]) -> tuple[tuple[str, int], ...]:
    """Return the number of losses of each kind."""
    return tuple(Counter(loss.of for loss in losses).items())


# --- lines under `removed:`


def lines_of(removed: Mapping[Key, Removed]) -> dict[Key, Removed]:
    """Return the lines under `removed:` that may serve as approvals: not made by a template, and not `as: delete`."""
    return {
        key: line
        for key, line in removed.items()
        if line.how is not Removal.DELETE and template_of(line.source) is None
    }


def is_approvable_by_line(change: Change) -> bool:
    """Return whether a line under `removed:` may approve the change, which must be no deletion and no cascade."""
    return change.action in (Action.FORGET, Action.RETIRE) and change.key.kind is Kind.TAG and change.cascade is None


def line_text(change: Change) -> str:
    """Return the name under which a state records that a line under `removed:` was used for the change."""
    return f"{REMOVED}:{change.key}:{change.action.word}"
