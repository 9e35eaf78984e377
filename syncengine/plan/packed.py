"""a plan ↔ the parts of it that its file is made of, none of them large, so that none must wait for the others; pure.

A part that follows from another is not repeated: the change of a new tag follows from the upsert that creates it,
and so keeps its words in memory once. The digest of the row before is beside the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice, repeat
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.plan.calls import Call, Item, Step
from syncengine.plan.diff import Change, appearance
from syncengine.plan.model import Plan
from syncengine.plan.stages import Stage
from syncengine.resource import Key
from syncengine.state.codec import ABSENT

T = TypeVar("T")

AT_ONCE = 500
"""Changes, or others of which there may be many, in one part."""


class PlanPart(Struct, frozen=True, gc=False, omit_defaults=True):
    """One call with its step, or some of the other things of which there may be many.

    `changes` are each with the digest of the row that it is based on; None for one that follows from the next upsert.
    `prior` are the digests of other rows.
    """

    step: Step | None = None
    call: Call | None = None
    changes: tuple[tuple[Change | None, str | None], ...] = ()
    wholes: tuple[Item, ...] = ()
    records: tuple[Effect, ...] = ()
    prior: tuple[tuple[Key, str], ...] = ()


def head_of(plan: Plan) -> Plan:
    """The plan without all that `parts_of` it hold."""
    return replace(plan, changes=(), stages=(), records=(), wholes={}, prior={})


def parts_of(plan: Plan, follows: Iterable[bool] | None = None) -> Iterator[PlanPart]:
    """Parts, calls first, that `restored` makes the plan of again; `follows` as it said, or not known yet."""
    for stage in plan.stages:
        yield from (PlanPart(step=stage.step, call=call) for call in stage.calls)
    yield from (PlanPart(changes=some) for some in _some(_changes(plan, follows)))
    yield from (PlanPart(wholes=some) for some in _some(plan.wholes.values()))
    yield from (PlanPart(records=some) for some in _some(plan.records))
    keys = {change.key for change in plan.changes}
    others = ((key, digest) for key, digest in plan.prior.items() if key not in keys)
    yield from (PlanPart(prior=some) for some in _some(others))


def restored(head: Plan, parts: Iterable[PlanPart]) -> tuple[Plan, list[bool]]:
    """The plan of its parts, and whether each of its changes was made of an upsert; ValueError where one cannot be."""
    calls: list[tuple[Step, Call]] = []
    changes: list[Change] = []
    follows: list[bool] = []
    wholes: dict[Key, Item] = {}
    records: list[Effect] = []
    prior: dict[Key, str] = {}
    upserts: _Upserts | None = None
    for part in parts:
        if part.step is not None and part.call is not None:
            calls.append((part.step, part.call))
        for change, digest in part.changes:
            upserts = upserts or _Upserts(calls)
            follows.append(change is None)
            changes.append(change or upserts.change())
            upserts.leave(changes[-1].key)
            if digest is not None:
                prior[changes[-1].key] = ABSENT if digest == ABSENT else digest  # not one for each
        wholes |= {effect.key: item for item in part.wholes for effect in item.effects[:1]}
        records += part.records
        prior |= part.prior
    stages = (Stage(step, tuple(call for _, call in some)) for step, some in groupby(calls, lambda pair: pair[0]))
    plan = replace(
        head, changes=tuple(changes), stages=tuple(stages), records=tuple(records), wholes=wholes, prior=prior
    )
    return plan, follows


class _Upserts:
    """The upserts of tags, in the same order as their changes."""

    def __init__(self, calls: Iterable[tuple[Step, Call]]) -> None:
        items = (item for step, call in calls if step is Step.TAGS for item in call.items)
        self._rest = (effect for item in items for effect in item.effects[:1])
        self._next = next(self._rest, None)

    def change(self) -> Change:
        """The change that the next upsert makes of a new tag."""
        if self._next is None:
            raise ValueError("a change without an upsert")
        return appearance(self._next.key, self._next, self._next.source)

    def leave(self, key: Key) -> None:
        """Advance past the next upsert if it has this key."""
        if self._next is not None and self._next.key == key:
            self._next = next(self._rest, None)

    def make(self, change: Change) -> bool:
        """Whether the change follows from the next one."""
        return self._next is not None and self._next.key == change.key and self.change() == change


def _changes(plan: Plan, follows: Iterable[bool] | None) -> Iterator[tuple[Change | None, str | None]]:
    upserts = _Upserts((stage.step, call) for stage in plan.stages for call in stage.calls)
    for change, made in zip(plan.changes, repeat(False) if follows is None else follows, strict=False):
        yield (None if made or upserts.make(change) else change, plan.prior.get(change.key))
        upserts.leave(change.key)


def _some(values: Iterable[T]) -> Iterator[tuple[T, ...]]:
    rest = iter(values)
    while some := tuple(islice(rest, AT_ONCE)):
        yield some
