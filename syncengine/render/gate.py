"""Word the gate of a plan for text, Markdown and HTML. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from syncengine.plan.gate import Gate
from syncengine.plan.units import ACTIVITY_TYPES, CATEGORY, FIRST_SWEEP, OPENED, REMOVED, RULE, UNKNOWN, Unit
from syncengine.render.escape import file_name, visible
from syncengine.render.style import Look
from syncengine.render.words import count_of, number

MOST_UNITS = 50
"""The number of units that a text names; a plan may have thousands, all of which JSON lists."""

NOUNS = {
    "categories": "category",
    "activityTypes": "activity type",
    "tags": "tag",
    "keywords": "keyword",
    "metadata": "metadata entry",
    "fields": "field",
    "opened": "tag",
}


class UnitLine(NamedTuple):
    """A unit in a sentence: mark, removals, and how to approve it. `approve` is an approval to copy."""

    is_open: bool
    what: str
    how: str
    approve: str = ""

    @property
    def mark(self) -> str:
        return "✘" if self.is_open else "✔"

    def __str__(self) -> str:
        return f"{self.mark} {self.what}: {self.how}{self.approve}"


def asks_about_removals_alone(gate: Gate) -> bool:
    """Return whether only removals lack an approval: no rule, and no tag that is made public."""
    return not _kinds(unit for unit in gate.units if unit.is_open) & {RULE, OPENED}


def _kinds(units: Iterable[Unit]) -> set[str]:
    return {unit.kind for unit in units}


def heading(gate: Gate) -> str:
    """Return the heading of the gate: blocked, or approved and by which approval."""
    if gate.is_closed:
        is_usual = asks_about_removals_alone(gate)
        return f"Blocked: approval needed for {'these removals' if is_usual else 'this plan'}."
    if gate.approved is not None:
        places = {str(unit.approved) for unit in gate.shown}
        if len(places) <= 1:
            return f"Approved: {file_name(str(gate.approved))} approves {_approved(_kinds(gate.shown))}."
    return "Approved: everything that needs approval has been approved."


def _approved(kinds: set[str]) -> str:
    if RULE in kinds:
        return "everything that needs approval"
    return "these removals and tags made public" if OPENED in kinds else "these removals"


def unit_lines(gate: Gate) -> Iterator[UnitLine]:
    """Yield lines for the units that need an approval, then for those that have one."""
    units = sorted(gate.shown, key=lambda unit: not unit.is_open)
    yield from map(_line, islice(units, MOST_UNITS))


def more_units(gate: Gate) -> str:
    """Return a line that counts the units that are not named; empty when all are named."""
    rest = len(gate.shown) - MOST_UNITS
    return f"… and {number(rest)} more; `--format json` lists them all" if rest > 0 else ""


def to_approve(gate: Gate) -> tuple[str, ...]:
    """Return the approvals to copy: one for each open unit, or one for everything when there are many."""
    open_units = [unit.approve for unit in gate.units if unit.is_open and unit.approve]
    if len(open_units) > MOST_UNITS and gate.approve:
        open_units = [gate.approve]
    return tuple(map(visible, open_units))


class WayToApprove(NamedTuple):
    """One way to approve exactly this plan: a sentence, lines to copy, and a sentence behind them, if any."""

    says: str
    lines: tuple[str, ...]
    then: str = ""


def ways_to_approve(gate: Gate, look: Look, *, is_undo: bool = False) -> Iterator[WayToApprove]:
    """Yield the ways to approve an open gate (docs/planning.md 5). An undo can be applied only from its saved file."""
    if not to_approve(gate):
        return
    lines = ("approvals:", *(f"  - {approve}" for approve in to_approve(gate)))
    yield WayToApprove("To approve, add these lines to the project file and have them reviewed:", lines)
    if approve := for_everything(gate):
        file = look.plan_file or ("FILE" if is_undo else "")
        command = " ".join(filter(None, ("syncengine apply", visible(file), f"--approve-deletes {approve}")))
        then = "FILE is the file that `plan --undo RUN --out FILE` writes." if is_undo and not look.plan_file else ""
        yield WayToApprove(f"Or approve {everything(gate)}, once:", (command + visible(look.place),), then)


def for_everything(gate: Gate) -> str:
    """Return the approval of all removals and openings; empty when only rules need one, which it does not approve."""
    needs = any(unit.is_open and unit.kind != RULE for unit in gate.units)
    return visible(gate.approve) if gate.approve and needs else ""


def everything(gate: Gate) -> str:
    """Return the words for everything that this approval covers."""
    return "everything that this plan removes" + (" or makes public" if OPENED in _kinds(gate.units) else "")


def _line(unit: Unit) -> UnitLine:
    if not unit.approve:
        return UnitLine(True, what(unit), "needs approval; only a plan that reads the state shows how to approve")
    if unit.is_open or unit.approved is None:
        return UnitLine(True, what(unit), "approve with ", visible(unit.approve))
    by = str(unit.approved)
    if by.startswith("run "):
        return UnitLine(False, what(unit), f"already approved for {by}")
    return UnitLine(False, what(unit), f"approved {'by' if by.startswith('-') else 'in'} {file_name(by)}")


def what(unit: Unit) -> str:
    """Return the words for a unit's removals, with their numbers."""
    name = file_name(unit.name)
    return WHAT[unit.kind](unit, name) if unit.kind in WHAT else f"{name} lost {_lost(unit)}"


def _lost(unit: Unit) -> str:
    lost = [count_of(count, NOUNS[of]) for of, count in unit.lost if of in NOUNS]
    return " and ".join(filter(None, (", ".join(lost[:-1]), *lost[-1:]))) or count_of(unit.count, "removal")


def _category(unit: Unit, name: str) -> str:
    tags = dict(unit.lost).get("tags", 0)
    return f"{name} and {count_of(tags, 'tag')}" if tags else name


WHAT: Mapping[str, Callable[[Unit, str], str]] = {
    CATEGORY: _category,
    ACTIVITY_TYPES: lambda unit, name: f"{count_of(dict(unit.lost).get('activityTypes', 0), 'activity type')} deleted",
    OPENED: lambda unit, name: (
        f"{count_of(unit.count, 'tag')} of unknown visibility made public"
        if unit.name == UNKNOWN
        else f"{name} made public ({'it was' if unit.count == 1 else f'{unit.count} tags were'} PRIVATE)"
    ),
    FIRST_SWEEP: lambda unit, name: "the first sweep of this state",
    RULE: lambda unit, name: f"{name} asks for approval of {count_of(unit.count, 'change')}",
    REMOVED: lambda unit, name: f"lines under `removed:` remove {_lost(unit)}",
}
"""The words for each kind of unit; a unit of another kind is named with its losses."""
