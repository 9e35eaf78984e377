"""Apply a plan to recorded rows without a service: a simple model of `apply`.

It follows docs/planning.md 1.2 and 4.2: `intended` before a call, `settled` after its answer, and an item is sent only
if the items that it needs were applied.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any

from msgspec.structs import replace

from syncengine.effects import Effect, intended, settled
from syncengine.plan.calls import Call, Item, Step
from syncengine.plan.model import Plan
from syncengine.resource import Key, Kind, Recorded, Status

from .estate import NOTHING, Manifests, Rows, ask, planned


class Fate(Enum):
    """What happens to an item. UNSENT ends the run, as a killed process does."""

    TAKEN = "taken"
    REFUSED = "refused"
    UNSENT = "unsent"


Chance = Callable[[], Fate]


def always_taken() -> Fate:
    return Fate.TAKEN


@dataclass(slots=True)
class _Apply:
    """The rows while a plan is applied. `blocked` has the keys of items that were not taken."""

    rows: dict[Key, Recorded]
    chance: Chance
    blocked: set[Key] = field(default_factory=set)
    over: bool = False

    def record(self, effects: Iterable[Effect]) -> None:
        """Write down effects that need no request: no row is created, and doubt stays as it is."""
        for effect in effects:
            if (old := self.rows.get(effect.key)) is not None:
                new = settled(intended(old, effect), effect)
                status = effect.status or old.status
                self.rows[effect.key] = replace(new, doubtful=old.doubtful, confirmed=old.confirmed, status=status)

    def send(self, items: Sequence[Item]) -> bool:
        """Send one call, unless the process is dead; return whether every item was taken."""
        ready = [item for item in items if not self.over and self._is_ready(item)]
        fates = [(item, self._fate()) for item in ready]
        for item in ready:
            self._intend(item)
        for item, fate in fates:
            (self._settle if fate is Fate.TAKEN else self._doubt)(item)
        taken = {id(item) for item, fate in fates if fate is Fate.TAKEN}
        self.blocked.update(effect.key for item in items if id(item) not in taken for effect in item.effects)
        return len(taken) == len(items)

    def _fate(self) -> Fate:
        fate = Fate.UNSENT if self.over else self.chance()
        self.over = fate is Fate.UNSENT
        return fate

    def _is_ready(self, item: Item) -> bool:
        category = item.effects[0].fields.get("category")
        if item.effects[0].whole and category and self._server_id(Key(Kind.CATEGORY, str(category))) is None:
            return False
        return not any(key in self.blocked for key in item.needs)

    def _server_id(self, key: Key | None) -> str | None:
        row = self.rows.get(key) if key else None
        return row.server_id if row and row.status is not Status.DELETED else None

    def _intend(self, item: Item) -> None:
        for effect in item.effects:
            row = intended(self.rows.get(effect.key), effect)
            inherited = row.server_id or self._server_id(effect.former)
            self.rows[effect.key] = replace(row, server_id=inherited)

    def _settle(self, item: Item) -> None:
        for effect in item.effects:
            row = settled(self.rows[effect.key], effect)
            if effect.key.kind is Kind.CATEGORY and row.status is not Status.DELETED:
                row = replace(row, server_id=row.server_id or self._new_id(effect.key.name))
            self.rows[effect.key] = row

    def _new_id(self, name: str) -> str:
        """Return an id that no category has."""
        taken = {row.server_id for row in self.rows.values()}
        return next(new for n in count(1) if (new := f"id-{name}" + "x" * (n - 1)) not in taken)

    def _doubt(self, item: Item) -> None:
        for effect in item.effects:
            self.rows[effect.key] = replace(self.rows[effect.key], doubtful=True)


def applied(recorded: Rows, plan: Plan, chance: Chance = always_taken) -> Rows:
    """Return the rows after an apply of `plan` in which `chance` decides over each item."""
    apply = _Apply(dict(recorded), chance)
    if plan.reasserts:
        touched = [change.key for change in plan.changes if change.key in recorded]
        apply.rows |= {key: replace(apply.rows[key], doubtful=True) for key in touched}
    apply.record(plan.records)
    for call in _stage_calls(plan, before_sweep=True):
        apply.send(call.items)
    _sweep(apply, plan)
    for call in _stage_calls(plan, before_sweep=False):
        apply.send(call.items)
    return apply.rows


def _stage_calls(plan: Plan, *, before_sweep: bool) -> Iterator[Call]:
    for stage in plan.stages:
        if (stage.step is not Step.CATEGORY_DELETES) is before_sweep:
            yield from stage.calls


def _sweep(apply: _Apply, plan: Plan) -> None:
    """The session completes only if every upload was taken (docs/planning.md 3.4)."""
    sweep = plan.sweep
    if sweep is None or apply.blocked.intersection(sweep.needs):
        return
    if all(apply.send(call.items) for call in sweep.uploads):
        apply.send(sweep.complete.items)


def walked(*manifests: Manifests, recorded: Rows = NOTHING, **how: Any) -> Rows:
    """Return the rows after these manifests were applied one after another."""
    for text in manifests:
        recorded = applied(recorded, planned(ask(text), recorded, **how))
    return recorded
