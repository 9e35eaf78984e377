"""Compare a saved plan with the rows as they are now: the reasons not to apply it; pure (docs/planning.md 6)."""

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
    """A row that differs from the one that a saved plan was made from."""

    key: Key
    why: str


def changed_since(change: Change | None, row: Recorded | None) -> tuple[ValueChange, ...]:
    """The values that a change was planned from and that the row holds no more; none where only its doubt differs."""
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
    """The reasons not to apply a saved plan to the state as it is now (docs/planning.md 6).

    `rows` are the touched ones as they are now; `groups` are rows that must all be known to the plan: activity types
    if it sweeps, members of the categories that it deletes. Rows that this plan wrote itself, in a run that was
    interrupted, fit.
    """
    different = [
        Mismatch(key, "it changed since the plan was made")
        for key, expected in plan.prior.items()
        if digest(row := rows.get(key)) != expected and not (row is not None and row.plan == plan.id)
    ]
    unknown = [Mismatch(row.key, "the plan does not know it") for row in groups if row.key not in plan.prior]
    return different + unknown
