"""Tell a pull request's changes and removals from those of its base that wait. Pure (docs/reviews.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from syncengine.plan.diff import Change
from syncengine.plan.gate import Gate
from syncengine.plan.losses import SWEEP, Loss
from syncengine.plan.model import Base, BasePlan, ChangeOrigin

POLICY_CHANGED, LIMIT_LOOSENED = "policy-changed", "limit-loosened"
BASE_INVALID, NO_BASE, MERGED = "base-invalid", "base-without-project", "merge-planned"
SAID_FIRST = (POLICY_CHANGED, LIMIT_LOOSENED, BASE_INVALID, NO_BASE, MERGED)
"""The codes of diagnostics to show before a plan, in this order."""


def is_same(one: Change, other: Change | None) -> bool:
    """Return whether two sides make the same change, regardless of its place and reason."""
    return other is not None and _meaning(one) == _meaning(other)


def _meaning(change: Change) -> Change:
    return replace(change, source=None, reason=None)


def side_of(other: BasePlan, changes: Iterable[Change]) -> Base:
    """Return the changes that the base's plan makes too, with their reasons still empty."""
    waiting = {str(change.key): "" for change in changes if is_same(change, other.changes.get(change.key))}
    return Base("", "", waiting, sweeps=other.sweeps)


def with_origins(gate: Gate, base: Base) -> Gate:
    """Return the gate with the units marked that are the pull request's: those with a loss that does not wait."""

    def is_own(loss: Loss) -> bool:
        return not base.sweeps if loss.of == SWEEP.of else str(loss.key) not in base.waiting

    return replace(gate, units=tuple(replace(unit, is_own=any(map(is_own, unit.losses))) for unit in gate.units))


class Whose(NamedTuple):
    """The sides whose removals need an approval that was not given."""

    own: bool = False
    theirs: bool = False

    @property
    def origins(self) -> tuple[ChangeOrigin, ...]:
        """The origins of the removals that need the approval."""
        who = ((ChangeOrigin.PULL_REQUEST, self.own), (ChangeOrigin.WAITING, self.theirs))
        return tuple(origin for origin, needs in who if needs)


def whose(gate: Gate, base: Base | None) -> Whose:
    """Return the sides whose units need an approval. A unit is the pull request's if one of its losses is."""
    sides = {unit.is_own for unit in gate.units if unit.is_open} if base is not None else set()
    return Whose(True in sides, False in sides)
