"""Pack the calls of a plan's differences into stages of batches. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from syncengine.plan.aim import Aim
from syncengine.plan.calls import OPERATION_OF, Call, Item, Needed, Step, calls_for, whole_tag
from syncengine.plan.diff import Difference
from syncengine.service.operations import Operation

RIDE_ALONG = 10
"""The number of tags that only gain keywords from which batch upserts replace one call per tag."""


class Stage(Struct, frozen=True, gc=False):
    """Calls that do not depend on each other."""

    step: Step
    calls: tuple[Call, ...]


def call(numbers: Iterator[int], operation: Operation, items: Sequence[Item]) -> Call:
    """Return the next call of a plan. `numbers` count through the plan, so that the same inputs give the same ids."""
    return Call(f"c{next(numbers)}", operation.id, tuple(items))


def batches(numbers: Iterator[int], operation: Operation, items: Sequence[Item]) -> tuple[Call, ...]:
    """Group the items into as few calls as possible."""
    starts = range(0, len(items), operation.limit)
    return tuple(call(numbers, operation, items[start : start + operation.limit]) for start in starts)


def stages_of(differences: Sequence[Difference], target: Aim, numbers: Iterator[int]) -> tuple[Stage, ...]:
    """Return the stages of all calls but those of the sweep, in order."""
    by_step: dict[Step, list[Item]] = {step: [] for step in Step}
    for step, item in _riding(list(_needed(differences, target)), differences):
        by_step[step].append(item)
    return tuple(Stage(step, batches(numbers, OPERATION_OF[step], items)) for step, items in by_step.items() if items)


def _needed(differences: Iterable[Difference], target: Aim) -> Iterator[Needed]:
    for difference in differences:
        key = difference.change.key
        yield from calls_for(difference, target.cascades.get(key, ()), target.movers.get(key, ()))


def _riding(items: list[Needed], differences: Sequence[Difference]) -> list[Needed]:
    """Put tags that only gain keywords into batch upserts if there are many of them (docs/planning.md 2.2)."""
    adds = {item.key for step, item in items if step is Step.KEYWORD_ADDS}
    if len(adds) < RIDE_ALONG:
        return items
    whole = {d.change.key: whole_tag(d) for d in differences if d.change.key in adds}
    return [(Step.TAGS, whole[i.key]) if step is Step.KEYWORD_ADDS else (step, i) for step, i in items]
