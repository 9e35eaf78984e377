"""Split a plan into the small parts that its file is made of, and join them again. Pure.

A part that follows from another part is not repeated: the change of a new tag follows from the upsert that creates it,
so that its texts are in memory only once. Each change comes with the digest of the row before it.
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
"""The largest number of changes (or items, effects, digests) in one part."""


class PlanPart(Struct, frozen=True, gc=False, omit_defaults=True):
    """One call with its step, or a batch of a plan's changes, items, effects or digests.

    Each of the `changes` comes with the digest of the row that it is based on, and is `None` when it follows from the
    next upsert. `prior` are the digests of other rows.
    """

    step: Step | None = None
    call: Call | None = None
    changes: tuple[tuple[Change | None, str | None], ...] = ()
    wholes: tuple[Item, ...] = ()
    records: tuple[Effect, ...] = ()
    prior: tuple[tuple[Key, str], ...] = ()


def head_of(plan: Plan) -> Plan:
    """Return the plan without the content of its parts (`parts_of`)."""
    return replace(plan, changes=(), stages=(), records=(), wholes={}, prior={})


def parts_of(plan: Plan, follows: Iterable[bool] | None = None) -> Iterator[PlanPart]:
    """Yield the plan's parts, calls first. `follows` are the flags that `restored` returned, if known."""
    for stage in plan.stages:
        yield from (PlanPart(step=stage.step, call=call) for call in stage.calls)
    yield from (PlanPart(changes=some) for some in _some(_changes(plan, follows)))
    yield from (PlanPart(wholes=some) for some in _some(plan.wholes.values()))
    yield from (PlanPart(records=some) for some in _some(plan.records))
    keys = {change.key for change in plan.changes}
    others = ((key, digest) for key, digest in plan.prior.items() if key not in keys)
    yield from (PlanPart(prior=some) for some in _some(others))


def restored(head: Plan, parts: Iterable[PlanPart]) -> tuple[Plan, list[bool]]:
    """Join a plan's parts, and return for each change whether it follows from an upsert.

    Raise `ValueError` when a change lacks the upsert that it should follow from.
    """
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
    """The upserts of tags, in the order of their changes."""

    def __init__(self, calls: Iterable[tuple[Step, Call]]) -> None:
        items = (item for step, call in calls if step is Step.TAGS for item in call.items)
        self._rest = (effect for item in items for effect in item.effects[:1])
        self._next = next(self._rest, None)

    def change(self) -> Change:
        """Return the change by which the next upsert creates a tag."""
        if self._next is None:
            raise ValueError("a change without an upsert")
        return appearance(self._next.key, self._next, self._next.source)

    def leave(self, key: Key) -> None:
        """Advance past the next upsert if its key is `key`."""
        if self._next is not None and self._next.key == key:
            self._next = next(self._rest, None)

    def make(self, change: Change) -> bool:
        """Return whether `change` follows from the next upsert."""
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
