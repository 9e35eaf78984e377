"""Derive the aim of a saved plan from its calls and records and the current rows. Pure (docs/planning.md 6).

The calls of a plan are read backwards: whole upserts are desired resources, and deletions and releases are removals. A
call that the rows cannot explain, or whose effect the plan does not show, is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.errors import StalePlan
from syncengine.plan.aim import Aim, PlannedRemoval, RemovalKind, may_be_held
from syncengine.plan.calls import Item, Step
from syncengine.plan.diff import AGAIN, Action, Change
from syncengine.plan.model import Plan
from syncengine.plan.policy import keep_out, may_be_anywhere, members_of
from syncengine.resource import Body, Key, Kind, Recorded, Resource, Status, category_references

INCONSISTENT = "plan-inconsistent"
"""The code of the error about a plan that shows one thing and would do another."""

UPSERTS = frozenset({Step.CATEGORIES, Step.ACTIVITY_TYPES, Step.TAGS})
TAG_DEPARTURES = frozenset({Step.KEYWORD_DELETES, Step.TAG_DELETES})
WAYS: Mapping[tuple[Action, Kind], RemovalKind] = {
    (Action.FORGET, Kind.TAG): RemovalKind.FORGET,
    (Action.RETIRE, Kind.TAG): RemovalKind.RETIRE,
    (Action.DELETE, Kind.TAG): RemovalKind.DELETE,
    (Action.DELETE, Kind.CATEGORY): RemovalKind.DELETE,
    (Action.DELETE, Kind.ACTIVITY_TYPE): RemovalKind.SWEEP,
}


def inconsistent(why: str) -> StalePlan:
    return StalePlan(f"the plan file contradicts itself or the state: {why}; plan again", code=INCONSISTENT)


def aim_of(plan: Plan, rows: Mapping[Key, Recorded]) -> Aim:
    """Return the aim of a saved plan.

    `rows` must have all rows that the plan touches, every member of categories that it deletes or renames, and every
    activity type if it sweeps.
    """
    return _Reading(plan, rows).aim


@dataclass(slots=True)
class _Reading:
    """A saved plan that is read backwards. `records` are its effects on existing rows without a request."""

    plan: Plan
    rows: Mapping[Key, Recorded]
    aim: Aim = field(default_factory=Aim)
    records: dict[Key, Effect] = field(init=False)
    taken_over: dict[Key, Key] = field(init=False)
    _changed: frozenset[Key] = field(init=False)
    _deleted: frozenset[Key] = field(init=False)

    def __post_init__(self) -> None:
        changes = self.plan.changes
        self._changed = frozenset(change.key for change in changes)
        items = (*self.plan.wholes.values(), *(item for call in self.plan.calls() for item in call.items))
        if not all(item.effects for item in items) or not all(stage.calls for stage in self.plan.stages):
            raise inconsistent("a call changes nothing")
        self.records = {
            effect.key: effect for effect in self.plan.records if effect.key in self.rows and not effect.former
        }
        self._deleted = frozenset(item.key for item in self._items(frozenset({Step.TAG_DELETES})))
        self.taken_over = {former: change.key for change in changes for former in change.formers}
        self._read_wanted()
        self._read_renames()
        self._read_leaving()
        self._read_cascades()
        keep_out(self.aim, self.rows)
        self._read_rest()

    def _items(self, steps: frozenset[Step]) -> Iterator[Item]:
        return (item for s in self.plan.stages if s.step in steps for call in s.calls for item in call.items)

    # --- desired resources

    def _read_wanted(self) -> None:
        upserts = self._upserts()
        for key in self._order():
            resource = _resource(upserts[key]) if key in upserts else self._unsent(key)
            if resource.status is not Status.ACTIVE and not (self.plan.undo and resource.status in AGAIN):
                raise inconsistent(f"{key} would be sent without being managed, which only an undo does")
            self.aim.desired[key] = resource

    def _upserts(self) -> dict[Key, Effect]:
        items = (*self.plan.wholes.values(), *self._items(UPSERTS))
        return {**self._staying(), **{item.key: item.effects[0] for item in items}}

    def _staying(self) -> dict[Key, Effect]:
        """Return the effects of a sweep's uploads on the desired activity types that it keeps."""
        uploads = self.plan.sweep.uploads if self.plan.sweep else ()
        effects = (item.effects[0] for call in uploads for item in call.items)
        return {effect.key: effect for effect in effects if effect.status is Status.ACTIVE}

    def _order(self) -> Iterator[Key]:
        """Yield the keys of desired resources in an order that agrees with the changes and the uploads of a sweep."""
        staying = iter(self._staying())
        met = set[Key]()
        for change in self.plan.changes:
            if (change.action, change.key.kind) in WAYS:
                continue
            while change.key.kind is Kind.ACTIVITY_TYPE and change.key not in met and (key := next(staying, None)):
                met.add(key)
                yield key
            yield change.key
        yield from staying
        yield from (
            key
            for key, effect in self.records.items()
            if key not in self._changed and effect.status not in (Status.RELEASED, Status.RETIRED)
        )

    def _unsent(self, key: Key) -> Resource:
        """Return the desired resource of which only a record is written."""
        effect, row = self.records.get(key), self.rows.get(key)
        if effect is None or row is None:
            raise inconsistent(f"none of its calls makes the change that it shows to {key}")
        fields = {name: value for name, value in row.body.fields.items() if name not in effect.cleared}
        body = Body({**fields, **effect.fields}, row.body.keywords, row.body.metadata)
        return _resource(replace(effect, fields=body.fields, keywords=body.keywords, metadata=body.metadata))

    def _read_renames(self) -> None:
        for former, key in self.taken_over.items():
            row = self.rows.get(former)
            is_held = row is not None and may_be_held(row) and (key.kind is Kind.TAG or row.server_id is not None)
            if not is_held or key not in self.aim.desired or former in self.aim.desired:
                raise inconsistent(f"{former} cannot become {key}")
            self._rename(former, key)
        needs = ((item.key, need) for item in self._items(TAG_DEPARTURES) for need in item.needs if need != item.key)
        for former, key in needs:  # a former name that the change does not show, and that may be private
            if key in self.aim.renames and former in self.rows:
                self._rename(former, key)

    def _rename(self, former: Key, key: Key) -> None:
        self.aim.renames[key] = tuple(dict.fromkeys((*self.aim.renames.get(key, ()), former)))

    # --- removals

    def _read_leaving(self) -> None:
        needs = {item.key: item.needs[0] for item in self._items(TAG_DEPARTURES) if item.needs}
        for change in self.plan.changes:
            if way := WAYS.get((change.action, change.key.kind)):
                self.aim.leaving[change.key] = self._leaving(change, way, needs.get(change.key))

    def _leaving(self, change: Change, way: RemovalKind, need: Key | None) -> PlannedRemoval:
        row = self.rows.get(change.key)
        if row is None or not may_be_held(row) or change.key in self.aim.desired:
            raise inconsistent(f"{change.key} cannot be removed")
        if row.protect:
            raise inconsistent(f"{change.key} is protected")
        way = RemovalKind.CASCADE if change.cascade is not None and change.key.kind is Kind.TAG else way
        # The new name may need no change, and a second former name occurs in no change.
        new = need if need in self.aim.desired or need in self.rows else None
        self._refuse_hidden_rename(change.key, new)
        by = change.cascade or self.taken_over.get(change.key, new)
        return PlannedRemoval(replace(row, source=change.source), way, change.reason, by)

    def _refuse_hidden_rename(self, old: Key, new: Key | None) -> None:
        """Refuse a rename that no change shows, unless the new name has no change at all."""
        if new in self._changed and new not in self.aim.renames:
            raise inconsistent(f"{new} replaces {old}, which the plan does not show")

    def _read_cascades(self) -> None:
        """Read the tags that are deleted with a category, and the tags that must leave the categories first."""
        going = {key: one.row for key, one in self.aim.leaving.items() if key.kind is Kind.CATEGORY}
        deletes = tuple(self._items(frozenset({Step.CATEGORY_DELETES})))
        needs = {item.key: item.needs for item in deletes}
        unsure = {
            (i.key, effect.key): effect.unsure for i in deletes for effect in i.effects if effect.unsure is not None
        }
        ids = Counter(row.server_id for row in going.values() if row.server_id)
        for key, members in members_of(self.rows, going).items():
            self.aim.movers[key] = []
            is_twin = ids[going[key].server_id or ""] > 1
            needs_of_delete = frozenset(needs.get(key, ()))
            for member in sorted(members, key=lambda row: row.key):  # ordered by name, as in the plan
                may_stay = member.doubtful or is_twin or (key, member.key) in unsure
                way = self._way_out(member.key, needs_of_delete, unsure.get((key, member.key)))
                self._read_member(key, member, way if may_stay else None, may_stay=may_stay)
            self._read_hidden_movers(key, needs.get(key, ()))
        for change in self.plan.changes:
            cascade = self.aim.cascades.get(change.cascade, ()) if change.cascade is not None else None
            if cascade is not None and all(leaving.row.key != change.key for leaving in cascade):
                raise inconsistent(f"{change.key} is not deleted with {change.cascade}")

    def _way_out(self, member: Key, needs: Container[Key], unsure: Status | None) -> RemovalKind | None:
        """Return how a member leaves if its category's deletion misses it, or `None` when it stays."""
        if member in needs:
            return RemovalKind.DELETE if member in self._deleted else RemovalKind.RETIRE
        return RemovalKind.FORGET if unsure is Status.RELEASED else None

    def _read_member(self, category: Key, member: Recorded, otherwise: RemovalKind | None, *, may_stay: bool) -> None:
        key = member.key
        if key in self.aim.desired:
            if str(category) in category_references(self.aim.desired[key].body.fields):
                raise inconsistent(f"{key} stays in {category}, but would be deleted with it")
            self.aim.movers[category].append(key)
            return
        leaving = self.aim.leaving.get(key)
        if leaving is None or leaving.way is not RemovalKind.CASCADE:
            raise inconsistent(f"{key} would be deleted with {category}, which the plan does not show")
        removal = PlannedRemoval(leaving.row, RemovalKind.CASCADE, leaving.reason, category, may_stay, otherwise)
        self.aim.leaving[key] = removal
        self.aim.cascades.setdefault(category, []).append(removal)
        if key in self.taken_over:
            self.aim.movers[category].append(self.taken_over[key])

    def _read_hidden_movers(self, category: Key, needs: Sequence[Key]) -> None:
        """Read the new names of members that no change shows, as they need no change or have another former name."""
        own = {leaving.row.key for leaving in self.aim.cascades.get(category, ()) if leaving.own_way is not None}
        movers = [key for key in needs if key not in own]
        visible = {*self.aim.movers[category]}
        for key in movers:
            if key not in visible and not may_be_anywhere(key, self.rows):
                self._refuse_hidden_rename(category, key)
        if visible <= {*movers}:
            self.aim.movers[category] = movers

    # --- unchanged resources

    def _read_rest(self) -> None:
        """Read the undeclared activity types that a sweep keeps, and the rows that are released without a change."""
        if self.plan.sweep is not None:
            types = (row for key, row in sorted(self.rows.items()) if key.kind is Kind.ACTIVITY_TYPE)
            others = (row for row in types if row.key not in self.aim.desired and row.key not in self.aim.leaving)
            self.aim.staying = [row for row in others if row.status is not Status.DELETED]
        noted = {note.key for note in self.plan.notes if note.kind == "kept"}
        for key, effect in self.records.items():
            desired = self.aim.desired.get(key)
            if desired is not None and desired.status is Status.RELEASED:  # by an undo, and its change says so
                continue
            if effect.status is Status.RELEASED and key not in self.aim.leaving:
                if key not in noted or desired is not None:
                    raise inconsistent(f"{key} would no longer be managed, which the plan does not show")
                self.aim.released.append(self.rows[key])


def _resource(effect: Effect) -> Resource:
    if effect.source is None:
        raise inconsistent(f"{effect.key} is declared nowhere")
    if len(set(effect.keywords)) < len(effect.keywords):
        raise inconsistent(f"{effect.key} has a keyword twice")
    return Resource(
        effect.key,
        Body(effect.fields, effect.keywords, effect.metadata),
        effect.source,
        bool(effect.protect),
        status=effect.status or Status.ACTIVE,
    )
