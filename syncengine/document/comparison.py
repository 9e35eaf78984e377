"""Compare two sets of values by name: which are new, gone or different, and in which parts they differ. Pure.

Equal values, and equal parts of mappings, are found with `==`. deepdiff only gets the values that differ, one at a
time, because it takes a hundred times as long for whole sets. It is imported late, because loading it is slow.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

Name = TypeVar("Name", bound=Hashable)


class ValueChange(NamedTuple):
    """A part in which two values differ. `before` or `after` is `None` when that value lacks the part."""

    path: tuple[str | int, ...]
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Comparison(Generic[Name]):
    """The differences between two sets. `different` has the second set's order."""

    new: tuple[Name, ...]
    gone: tuple[Name, ...]
    different: Mapping[Name, tuple[ValueChange, ...]]


def compare(before: Mapping[Name, object], after: Mapping[Name, object]) -> Comparison[Name]:
    """Return the differences between two sets of named values."""
    different = [name for name in after if name in before and before[name] != after[name]]
    return Comparison(
        new=tuple(name for name in after if name not in before),
        gone=tuple(name for name in before if name not in after),
        different={name: value_changes(before[name], after[name]) for name in different},
    )


def value_changes(before: object, after: object, **more: Any) -> tuple[ValueChange, ...]:
    """Return the parts in which two values differ, sorted by path. `more` has further options for deepdiff."""
    from deepdiff.diff import DeepDiff  # loads pydantic, so only when there is something to compare

    found = DeepDiff(*_unlike(before, after), view="tree", threshold_to_diff_deeper=0, **more)
    changes = (_change(level) for levels in found.values() for level in levels)
    return tuple(
        sorted(changes, key=lambda change: ([*map(str, change.path)], repr(change.before), repr(change.after)))
    )


def _unlike(before: Any, after: Any) -> tuple[Any, Any]:
    """Return both values without the equal parts of mappings."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return before, after
    differing = {
        name: _unlike(before[name], after[name]) for name in before if name in after and before[name] != after[name]
    }
    mine = {
        name: differing[name][0] if name in differing else before[name]
        for name in before
        if name not in after or name in differing
    }
    theirs = {
        name: differing[name][1] if name in differing else after[name]
        for name in after
        if name not in before or name in differing
    }
    return mine, theirs


def _change(level: Any) -> ValueChange:
    """Return a difference that deepdiff found. An item that is repeated more or less often counts as one difference."""
    from deepdiff.helper import notpresent

    before, after = (None if value is notpresent else value for value in (level.t1, level.t2))
    times = level.additional.get("repetition")
    if times:
        before, after = (None, after) if times["new_repeat"] > times["old_repeat"] else (before, None)
    return ValueChange(tuple(part for part in level.path(output_format="list") if part is not None), before, after)
