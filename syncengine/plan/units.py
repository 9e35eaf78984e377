"""Divide removals into units, each of which needs its own approval. Pure (docs/approvals.md).

A unit is for one decision of a person: a category with its cascade, the losses of one data source or one manifest. Each
kind of unit has a line in `UNITS`, and a loss is in every unit that claims it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from syncengine.plan.diff import PUBLISHED, Action, Change
from syncengine.plan.losses import LEAVES_AS, SWEEP, SWEPT, Loss
from syncengine.plan.provenance import template_of
from syncengine.plan.shrinking import Shrunk
from syncengine.plan.sweep import Sweep
from syncengine.project.schema import Limit
from syncengine.resource import Key, Kind, Removal, Removed

CATEGORY, SOURCE, MANIFEST = "category", "source", "manifest"
ACTIVITY_TYPES, OPENED, FIRST_SWEEP, REMOVED = "activity-types", "opened", "first-sweep", "removed"
RULE = "rule"
"""The kind of the units that `rule_units` makes."""

LINES = Limit(percent=25)
"""The share of tags that lines under `removed:` may take in one plan before they need an approval together."""

UNKNOWN = "unknown-visibility"
"""The name of the one unit of all tags of unknown visibility that become public."""

NO_PLACE = "(no file)"
"""The name in place of a manifest for rows that were recorded without one."""


class UnitName(NamedTuple):
    """The identity of a unit in a plan: its kind and its name."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class UnitInputs:
    """The grounds for dividing losses besides the changes: the sweep, shrunken sources, and lines under `removed:`."""

    sweep: Sweep | None = None
    shrunk: tuple[Shrunk, ...] = ()
    lines: Collection[Key] = ()


def _of_category(change: Change, loss: Loss, inputs: UnitInputs) -> Iterator[str]:
    if change.cascade is not None:
        yield str(change.cascade)
    elif loss.of == LEAVES_AS[Kind.CATEGORY]:
        yield str(change.key)


def _of_source(change: Change, loss: Loss, inputs: UnitInputs) -> Iterator[str]:
    """Yield the source of a loss, even in a cascade: approving a category's deletion is no judgement of the source."""
    template = template_of(change.source)
    if template is not None and loss.of != OPENED and not _has_line(change, inputs):
        yield template.data


def _of_manifest(change: Change, loss: Loss, inputs: UnitInputs) -> Iterator[str]:
    others = (_of_category, _of_source, _of_activity_types, _of_opened, _of_line)
    if not any(name for claim in others for name in claim(change, loss, inputs)):
        yield change.source.file if change.source is not None else NO_PLACE


def _of_activity_types(change: Change, loss: Loss, inputs: UnitInputs) -> Iterator[str]:
    if loss.of == LEAVES_AS[Kind.ACTIVITY_TYPE]:
        yield ACTIVITY_TYPES


def _of_opened(change: Change, loss: Loss, inputs: UnitInputs) -> Iterator[str]:
    if loss.of == OPENED:
        yield UNKNOWN if change.opening == PUBLISHED else str(change.key)


def _of_line(change: Change, loss: Loss, inputs: UnitInputs) -> Iterator[str]:
    if _has_line(change, inputs):
        yield REMOVED


def _has_line(change: Change, inputs: UnitInputs) -> bool:
    return change.key in inputs.lines and is_approvable_by_line(change)


UNITS: Mapping[str, Callable[[Change, Loss, UnitInputs], Iterable[str]]] = {
    CATEGORY: _of_category,
    SOURCE: _of_source,
    MANIFEST: _of_manifest,
    ACTIVITY_TYPES: _of_activity_types,
    OPENED: _of_opened,
    REMOVED: _of_line,
}
"""The kinds of units in the order of a plan, each with the function that names the units of a change's loss.

The first sweep is a unit without changes.
"""

Division = dict[UnitName, list[Loss]]
"""The losses of each unit."""


Losses = Sequence[tuple[Change, Loss]]
"""Losses, each with its change."""


def divided(losses: Losses, inputs: UnitInputs) -> Division:
    """Divide losses into units, in the order of `UNITS` and then of names."""
    units: defaultdict[UnitName, list[Loss]] = defaultdict(list)
    for change, loss in losses:
        for kind, claim in UNITS.items():
            for name in claim(change, loss, inputs):
                units[UnitName(kind, name)].append(loss)
    for each in inputs.shrunk:
        source = UnitName(SOURCE, each.source)
        if source not in units and (due := _lost_for(each, losses, inputs)):
            units[source] = due
    _add_sweep(units, inputs.sweep)
    rank = {kind: number for number, kind in enumerate((*UNITS, FIRST_SWEEP))}
    return {name: units[name] for name in sorted(units, key=lambda unit: (rank.get(unit.kind, 99), unit.name))}


def _lost_for(source: Shrunk, losses: Losses, inputs: UnitInputs) -> list[Loss]:
    """Return the losses that may be due to a source without resources: those in manifests that use it, or else all."""
    open_losses = [(change, loss) for change, loss in losses if not _has_line(change, inputs)]
    near = [loss for change, loss in open_losses if change.source is not None and change.source.file in source.files]
    return near or [loss for _, loss in open_losses]


def _add_sweep(units: defaultdict[UnitName, list[Loss]], sweep: Sweep | None) -> None:
    """Add the unit of a sweep that may delete unrecorded activity types: the first sweep, or one without uploads."""
    if sweep is not None and sweep.first:
        units[UnitName(FIRST_SWEEP, FIRST_SWEEP)].append(SWEEP)
    elif sweep is not None and not sweep.uploads:
        units[UnitName(ACTIVITY_TYPES, ACTIVITY_TYPES)].append(SWEEP)


# --- units that need an approval whatever the limits are

ALWAYS = frozenset({CATEGORY, OPENED})


def asking(units: Division, inputs: UnitInputs, tags: int) -> dict[UnitName, tuple[str, ...]]:
    """Return the units that need an approval by themselves, with their reasons. `tags` is the total number of tags."""
    reasons = {name: tuple(_of_begun(name, losses)) for name, losses in units.items() if name.kind in ALWAYS}
    for each in inputs.shrunk:
        name = UnitName(SOURCE, each.source)
        if name in units:
            reasons[name] = (*reasons.get(name, ()), each.reason)
    if (name := UnitName(FIRST_SWEEP, FIRST_SWEEP)) in units:
        reasons[name] = (f"first sweep of this state: it deletes {SWEPT} among the team's activity types",)
    if inputs.sweep is not None and not inputs.sweep.uploads:
        name = name if name in units else UnitName(ACTIVITY_TYPES, ACTIVITY_TYPES)
        reasons[name] = (
            *reasons.get(name, ()),
            "the sweep uploads nothing: it deletes every activity type of the team",
        )
    lines = len(units.get(UnitName(REMOVED, REMOVED), ()))
    if lines and (lines == tags or LINES.is_exceeded(lines, tags)):
        reasons[UnitName(REMOVED, REMOVED)] = (f"lines under `removed:` take {lines} of {tags} tags (limit {LINES})",)
    return reasons


def _of_begun(name: UnitName, losses: Sequence[Loss]) -> Iterator[str]:
    """Yield the reason of a category whose own deletion is under way, so that no total counts it."""
    if name.kind == CATEGORY and not any(loss.of == LEAVES_AS[Kind.CATEGORY] for loss in losses):
        yield f"tags deleted with {name.name}, whose deletion has already begun: {len(losses)}"


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


def lost_by(losses: Iterable[Loss]) -> tuple[tuple[str, int], ...]:
    """Return the number of losses of each kind."""
    return tuple(Counter(loss.of for loss in losses).items())
