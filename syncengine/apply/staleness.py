"""Compare a saved plan with the rows as they are now: the reasons not to apply it; pure (docs/planning.md 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from syncengine.plan.model import Plan
from syncengine.resource import Key, Recorded
from syncengine.state.codec import digest


class Mismatch(NamedTuple):
    """A row that differs from the one that a saved plan was made from."""

    key: Key
    why: str


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
