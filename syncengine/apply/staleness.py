"""Compare a saved plan with the current rows to find reasons not to apply it. Pure (docs/planning.md 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from syncengine.document.comparison import ValueChange, value_changes
from syncengine.plan.diff import Change
from syncengine.plan.model import Plan
from syncengine.plan.review import atoms
from syncengine.resource import Body, Key, Recorded
from syncengine.state.codec import digest


class Mismatch(NamedTuple):
    """A row that differs from the row on which a saved plan is based."""

    key: Key
    why: str


def changed_since(change: Change | None, row: Recorded | None) -> tuple[ValueChange, ...]:
    """Return the planned-from values that the row no longer has; empty if only its doubt differs."""
    if change is None:
        return ()
    body, parts = row.body if row is not None else Body(), atoms(change)
    now = {
        "fields": {name: body.fields.get(name) for part, name in parts if part == "fields"},
        "keywords": {word: word in body.keywords for part, word in parts if part == "keywords"},
        "metadata": {name: body.metadata.get(name) for part, name in parts if part == "metadata"},
    }
    planned = {kind: {name: before for (part, name), (before, _) in parts.items() if part == kind} for kind in now}
    return value_changes(planned, now) if planned != now else ()


def mismatches(plan: Plan, rows: Mapping[Key, Recorded], groups: Iterable[Recorded]) -> list[Mismatch]:
    """Return the reasons not to apply a saved plan to the current state (docs/planning.md 6).

    `rows` are the current rows that the plan touches. `groups` are rows that the plan must know completely: activity
    types if it sweeps, members of categories that it deletes. Rows that an interrupted run of this plan wrote are fine.
    """
    different = [
        Mismatch(key, "it changed since the plan was made")
        for key, expected in plan.prior.items()
        if digest(row := rows.get(key)) != expected and not (row is not None and row.plan == plan.id)
    ]
    unknown = [Mismatch(row.key, "it was added since the plan was made") for row in groups if row.key not in plan.prior]
    return different + unknown
