"""Two sets of values by name → what is new, gone and different, and the parts in which values differ; pure.

Equal values, and equal parts of mappings, are found with `==`. deepdiff looks at the values that differ, one at a time:
whole sets take it a hundred times as long. It is imported where it is used: loading it takes as long as many a plan.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

Name = TypeVar("Name", bound=Hashable)


class ValueChange(NamedTuple):
    """One part that differs, by its path; None where one of the two has none."""

    path: tuple[str | int, ...]
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Comparison(Generic[Name]):
    """The differences of two sets, and the number of equal values. `different` is in the order of the second."""

    new: tuple[Name, ...]
    gone: tuple[Name, ...]
    different: Mapping[Name, tuple[ValueChange, ...]]
    same: int

    @property
    def is_equal(self) -> bool:
        return not (self.new or self.gone or self.different)


def compare(before: Mapping[Name, object], after: Mapping[Name, object]) -> Comparison[Name]:
    """Compare values that have the same name."""
    common = [name for name in after if name in before]
    different = [name for name in common if before[name] != after[name]]
    return Comparison(
        new=tuple(name for name in after if name not in before),
        gone=tuple(name for name in before if name not in after),
        different={name: value_changes(before[name], after[name]) for name in different},
        same=len(common) - len(different),
    )


def value_changes(before: object, after: object, **more: Any) -> tuple[ValueChange, ...]:
    """The parts in which two values differ, by path. `more`: further options of deepdiff."""
    from deepdiff.diff import DeepDiff  # loads pydantic: not before there is something to compare

    found = DeepDiff(*_unlike(before, after), view="tree", threshold_to_diff_deeper=0, **more)
    changes = (_change(level) for levels in found.values() for level in levels)
    return tuple(
        sorted(changes, key=lambda change: ([*map(str, change.path)], repr(change.before), repr(change.after)))
    )


def _unlike(before: Any, after: Any) -> tuple[Any, Any]:
    """Both values without the parts of mappings that are equal."""
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
    """One difference as deepdiff found it; of a repeated item that is there more or less often: one."""
    from deepdiff.helper import notpresent

    before, after = (None if value is notpresent else value for value in (level.t1, level.t2))
    times = level.additional.get("repetition")
    if times:
        before, after = (None, after) if times["new_repeat"] > times["old_repeat"] else (before, None)
    return ValueChange(tuple(part for part in level.path(output_format="list") if part is not None), before, after)
