"""Decide the aim of a plan: desired resources, removals with their kinds, and notes. Pure.

This first step of planning makes the decisions. The later steps only work out the consequences.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.errors import Diagnostic
from syncengine.plan.request import Scope
from syncengine.project.model import Ownership
from syncengine.resource import (
    ALTERNATIVES,
    ANY_CATEGORY,
    Body,
    Key,
    Kind,
    Recorded,
    Removal,
    Removed,
    Resource,
    Source,
    Status,
    Value,
    category_references,
    found_at,
    is_blank,
)


class Note(Struct, frozen=True, gc=False):
    """A remark in a plan that changes nothing. Its `kind` is a word such as create-only, ignored, kept or left-out."""

    key: Key
    kind: str
    message: str
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The project's rules for removals. `deletes_tags` is true when an endpoint for deleteTag is configured."""

    tag_removal: Removal = Removal.FORGET
    activity_types: Ownership = Ownership.OWNED
    deletes_tags: bool = False


class RemovalKind(StrEnum):
    """The way in which a recorded resource is removed."""

    FORGET = "forget"
    RETIRE = "retire"
    DELETE = "delete"
    CASCADE = "cascade"
    SWEEP = "sweep"


class RemovalCause(StrEnum):
    """The cause of a removal, by which plans are compared; its sentence only explains it."""

    UNDECLARED = "undeclared"
    REMOVED_LINE = "removed-line"
    RENAMED = "renamed"
    CATEGORY_DELETED = "category-deleted"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class PlannedRemoval:
    """A recorded resource that a plan removes, and why. `reason` explains the `cause` in a sentence.

    `taken_by` is the category of a cascade, or the new name of a rename. `may_stay` is true when a cascade may miss the
    resource because it may have left the category; `otherwise` is the way in which it is removed then.
    """

    row: Recorded
    way: RemovalKind
    cause: RemovalCause = RemovalCause.UNDECLARED
    reason: str = "no manifest declares it"
    taken_by: Key | None = None
    may_stay: bool = False
    otherwise: RemovalKind | None = None

    @property
    def own_way(self) -> RemovalKind | None:
        """The way in which the resource is removed by itself, or `None` when only its category's cascade removes it."""
        if self.way is not RemovalKind.CASCADE:
            return self.way
        return self.otherwise if self.may_stay and self.otherwise is not RemovalKind.FORGET else None


@dataclass(slots=True)
class Aim:
    """The aim of planning.

    `desired` are the selected desired resources, with the bodies that this plan requests. `renames` maps a new key to
    the recorded keys that it replaces (a single key for a category). `staying` are recorded activity types that no
    manifest declares and that stay on the service. `swept_along` are those that are no reason for a sweep, but that a
    sweep for another reason deletes. `released` are rows to record as released without a request. `movers` maps each
    deleted category to the desired tags whose calls must be acknowledged first, and `cascades` to the members deleted
    with it. `aside` maps each resource that a quarantine leaves alone to the quarantined resource that it waits for.
    `keeps_types` is a quarantined resource that keeps all activity types from being deleted.
    """

    desired: dict[Key, Resource] = field(default_factory=dict)
    renames: dict[Key, tuple[Key, ...]] = field(default_factory=dict)
    leaving: dict[Key, PlannedRemoval] = field(default_factory=dict)
    staying: list[Recorded] = field(default_factory=list)
    swept_along: dict[Key, PlannedRemoval] = field(default_factory=dict)
    released: list[Recorded] = field(default_factory=list)
    movers: dict[Key, list[Key]] = field(default_factory=dict)
    cascades: dict[Key, list[PlannedRemoval]] = field(default_factory=dict)
    aside: dict[Key, Key] = field(default_factory=dict)
    keeps_types: Key | None = None
    notes: list[Note] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)


def may_be_held(row: Recorded) -> bool:
    """Return whether the service may hold `row`: a deletion whose outcome is unknown may not have happened."""
    return row.status is not Status.DELETED or row.doubtful


def is_without_category(row: Recorded) -> bool:
    """Return whether `row` is a tag at rest of whose category no manifest has said anything that still holds.

    People may have put it into any category since it was sent.
    """
    is_at_rest = row.status is Status.ACTIVE and row.confirmed and not row.doubtful
    return row.key.kind is Kind.TAG and is_at_rest and not row.category_references()


def is_private(row: Recorded) -> bool:
    """Return whether `row` counts as a private tag, which only authorized members can read.

    A tag of unknown visibility, such as an adopted one, may be private, so it counts as one.
    """
    return row.key.kind is Kind.TAG and may_be_held(row) and row.body.fields.get("visibility") != "PUBLIC"


CONTENT = ("description", "externalId", "url")


def shown(body: Body) -> Iterator[tuple[str, Value]]:
    """Yield the name and value of all that describes a tag apart from its keywords."""
    yield from ((name, value) for name in CONTENT if (value := body.fields.get(name)))
    yield from ((f"metadata {name}", value) for name, value in body.metadata.items())


def row_to_compare(
    key: Key, recorded: Mapping[Key, Recorded], renames: Mapping[Key, tuple[Key, ...]]
) -> Recorded | None:
    """Return the row to compare the desired resource `key` with. A renamed category takes over its former row."""
    row = recorded.get(key)
    own = row if row is not None and may_be_held(row) else None
    if key.kind is not Kind.CATEGORY or key not in renames:
        return own
    old = recorded[renames[key][0]]
    if own is None:
        return replace(old, key=key, status=Status.ACTIVE)
    return replace(own, server_id=old.server_id, body=Body(fields={**old.body.fields, **own.body.fields}))


def release(row: Recorded) -> Effect:
    """Return the effect that records `row` as released: it stays on the service and is no longer managed."""
    return Effect(key=row.key, status=Status.RELEASED)


@dataclass(slots=True)
class _Judgement:
    """The inputs of the decision, and the aim in the making.

    `taken_over` maps each recorded key that a rename replaces to its new key. `may_leave` are the only rows to remove,
    or `None` for all that no manifest declares.
    """

    recorded: Mapping[Key, Recorded]
    desired: Mapping[Key, Resource]
    removed: Mapping[Key, Removed]
    rules: Rules
    scope: Scope
    before: Mapping[Key, Recorded]
    may_leave: Container[Key] | None = None
    aim: Aim = field(default_factory=Aim)
    taken_over: dict[Key, Key] = field(default_factory=dict)

    def unwanted(self, kind: Kind) -> list[Recorded]:
        """Return the recorded rows of `kind` that no manifest declares and that the service may hold."""
        return [r for k, r in self.recorded.items() if k.kind is kind and k not in self.desired and may_be_held(r)]

    def going(self, kind: Kind) -> list[Recorded]:
        """Return the unwanted rows that this plan may remove."""
        return [row for row in self.unwanted(kind) if self.may_leave is None or row.key in self.may_leave]

    def note(self, row: Recorded, kind: str, message: str) -> None:
        self.aim.notes.append(Note(row.key, kind, message, row.source))

    def keep(self, row: Recorded, message: str) -> None:
        """Leave a row on the service, with a note once, and count it as released from now on (docs/planning.md 2.5)."""
        if row.status is not Status.RELEASED:
            self.note(row, "kept", message)
            self.aim.released.append(row)


def aim(
    recorded: Mapping[Key, Recorded],
    desired: Mapping[Key, Resource],
    statements: Mapping[Key, Removed],
    rules: Rules,
    scope: Scope,
    quarantined: Iterable[Key] = (),
    before: Mapping[Key, Recorded] | None = None,
    may_leave: Container[Key] | None = None,
) -> Aim:
    """Decide the aim of a plan (docs/planning.md 2.1, 2.2, 3.3). Problems are collected and never raised.

    `before` are the rows without the doubts that only this plan has, if it has any. `may_leave` are the rows that a
    part of a plan removes: what else `desired` does not have stays as it is.
    """
    judgement = _Judgement(recorded, desired, statements, rules, scope, before or recorded, may_leave)
    # Renames first, since what is taken over is not gone; categories before tags, since a cascade takes its members.
    _find_renames(judgement)
    _set_aside(judgement, quarantined)
    _choose_wanted(judgement)
    _judge_categories(judgement)
    _judge_activity_types(judgement)
    _judge_tags(judgement)
    keep_out(judgement.aim, judgement.before)
    return judgement.aim


# --- renames and selection


def _find_renames(j: _Judgement) -> None:
    """Find the renames that manifests ask for, and those that reverse a rename whose outcome is unknown.

    A rename with an unknown outcome leaves two rows with one server id. The row that is no longer declared is the same
    category as the other.
    """
    if not j.recorded:
        return
    twins = {row.server_id: row for row in j.unwanted(Kind.CATEGORY) if row.server_id}
    categories = (j.recorded[key] for key in j.desired if key.kind is Kind.CATEGORY and key in j.recorded)
    owners: dict[str | None, Key] = {row.server_id: row.key for row in categories if row.server_id and may_be_held(row)}
    for key, resource in j.desired.items():
        if key.kind is Kind.TAG and not resource.previously:
            continue
        new = j.recorded.get(key)
        formers = [j.recorded[old] for name in resource.previously if (old := Key(key.kind, name)) in j.recorded]
        if new is not None and key.kind is Kind.CATEGORY and new.server_id in twins:
            formers.append(twins[new.server_id])
        # A category whose rename has an unknown outcome belongs to the desired name that has its id.
        free = (old for old in formers if old.key not in j.desired and owners.get(old.server_id, key) == key)
        rows = [old for old in free if _can_become(old, new)]
        # The change names the first row, so a private one comes first, then one of unknown visibility.
        rows.sort(key=lambda old: ("visibility" not in old.body.fields) if is_private(old) else 2)
        if rows:
            j.aim.renames[key] = tuple(row.key for row in (rows if key.kind is Kind.TAG else rows[:1]))
            j.taken_over |= dict.fromkeys(j.aim.renames[key], key)


def _can_become(old: Recorded, new: Recorded | None) -> bool:
    if old.key.kind is Kind.TAG:
        return old.status is Status.ACTIVE
    same_category = new is None or not may_be_held(new) or new.server_id in (None, old.server_id)
    return may_be_held(old) and old.server_id is not None and same_category


def _set_aside(j: _Judgement, quarantined: Iterable[Key]) -> None:
    """Leave alone the resources in quarantine and the resources that wait with them."""
    if quarantined := tuple(quarantined):
        estate = Estate(j.recorded, j.desired, j.aim.renames, j.taken_over)
        j.aim.aside.update(with_companions(quarantined, estate))
        j.aim.keeps_types = keeper_of_types(j.aim.aside, estate)


def _choose_wanted(j: _Judgement) -> None:
    if j.scope.whole and not j.aim.aside:
        j.aim.desired.update(j.desired)
        return
    for key, resource in j.desired.items():
        unit = [(key, resource.source), *((old, j.recorded[old].source) for old in j.aim.renames.get(key, ()))]
        if key not in j.aim.aside and j.scope.selects(*unit):
            j.aim.desired[key] = _wanted(j, resource)
    if j.scope.selective:
        _bring_needed_categories(j)


def _wanted(j: _Judgement, resource: Resource) -> Resource:
    return _without_removals(j, resource) if j.scope.no_delete else resource


def _bring_needed_categories(j: _Judgement) -> None:
    """Add the categories of selected tags that the service does not know yet (docs/planning.md 2.1)."""
    for resource in list(j.aim.desired.values()):
        name = resource.body.fields.get("category")
        if isinstance(name, str) and name:
            key = Key(Kind.CATEGORY, name)
            row = j.recorded.get(key)
            if key in j.desired and (
                row is None or row.status is Status.DELETED or not (row.server_id and row.confirmed)
            ):
                j.aim.desired.setdefault(key, _wanted(j, j.desired[key]))


def _without_removals(j: _Judgement, resource: Resource) -> Resource:
    """Return the resource as `--no-delete` allows it: recorded values stay, and a note says so."""
    row = row_to_compare(resource.key, j.recorded, j.aim.renames)
    if row is None:
        return resource
    desired = resource.body
    kept_fields = {name: value for name, value in _held_fields(j, row) if _is_cleared(name, desired)}
    keywords = set(desired.keywords)
    dropped = tuple(keyword for keyword in row.body.keywords if keyword not in keywords)
    lost = {
        name: value
        for name, value in row.body.metadata.items()
        if name not in desired.metadata or (is_blank(desired.metadata[name]) and not is_blank(value))
    }
    for what, names in (("field", kept_fields), ("keyword", dropped), ("metadata", lost)):
        if names:
            message = f"--no-delete keeps {what} {', '.join(sorted(names))}"
            j.aim.notes.append(Note(resource.key, "left-out", message, resource.source))
    body = Body(
        fields={**desired.fields, **kept_fields},
        keywords=desired.keywords + dropped,
        metadata={**desired.metadata, **lost},
    )
    return replace(resource, body=body)


def _held_fields(j: _Judgement, row: Recorded) -> Iterator[tuple[str, Value]]:
    """Yield the recorded fields with a value to lose, with new names of categories and without deleted ones."""
    for name, value in row.body.fields.items():
        category = Key(Kind.CATEGORY, str(value)) if name == "category" else None
        if category in j.taken_over:
            yield name, j.taken_over[category].name
        elif is_blank(value) or (name, value) == ("visibility", "PUBLIC"):  # nothing to lose
            continue
        elif category is None or (category not in j.recorded or may_be_held(j.recorded[category])):
            yield name, value


def _is_cleared(name: str, desired: Body) -> bool:
    if name in ("category", "tagCategoryId"):
        return is_blank(desired.fields.get("category")) and is_blank(desired.fields.get("tagCategoryId"))
    return is_blank(desired.fields.get(name))


# --- categories


def _judge_categories(j: _Judgement) -> None:
    rows = {r.key: r for r in j.going(Kind.CATEGORY) if r.key not in j.taken_over}
    # A row that shares its id with a renamed category may be that very category, so the rename decides.
    renamed = {j.recorded[old].server_id for old in j.taken_over if old.kind is Kind.CATEGORY}
    rows = {k: r for k, r in rows.items() if r.server_id not in renamed and j.scope.selects((k, r.source))}
    for key in [key for key in rows if key in j.aim.aside]:
        if (cause := j.aim.aside[key]) != key:
            j.note(rows[key], "left-out", f"not deleted: it waits for {cause}, which is in quarantine")
        del rows[key]
    if not rows:
        return
    members = members_of(j.recorded, rows)
    # A part of a plan does not have the ids of all categories: its apply asks this of all rows (`apply.guards`).
    asks = j.may_leave is None and any(row.server_id is None for row in rows.values())
    elsewhere = in_an_unknown_category(j.recorded, j.desired) if asks else None
    ids = Counter(row.server_id for row in rows.values() if row.server_id)
    for key, row in sorted(rows.items()):  # a tag that may be in two goes with the same one in any order of rows
        if row.status is Status.RELEASED:  # a run decided that it stays, whatever else about it is in doubt
            continue
        if row.server_id is None and elsewhere is not None:
            cure = "to delete it, first declare it again for one apply"
            j.keep(row, f"its id is unknown, and tag {elsewhere.name} may be in it; {cure}")
        elif obstacle := _obstacle(j, row, members[key]):
            kind, message = obstacle
            j.keep(row, message) if kind == "kept" else j.note(row, kind, message)
        else:
            _delete_category(j, row, members[key], is_twin=row.server_id is not None and ids[row.server_id] > 1)
    _note_possible_members(j)


def _note_possible_members(j: _Judgement) -> None:
    """Say once that tags at rest are sent again when categories are deleted, as people may have moved them there."""
    rows = [j.before[key] for key in j.desired if key.kind is Kind.TAG and key in j.before]
    nowhere = sum(map(is_without_category, rows))
    count = nowhere + sum(r.status is Status.ACTIVE and not r.doubtful and bool(r.category_references()) for r in rows)
    for category in list(j.aim.movers)[:1] if count else ():
        tags = "another tag is" if count == 1 else f"{count:,} other tags are"
        message = f"{tags} sent again, since people may have moved {'it' if count == 1 else 'some of them'} there"
        if nowhere:
            message += "; one without a category that is there is made anew, without what people changed on it"
        j.note(j.recorded[category], "sent-again", message)


def in_an_unknown_category(recorded: Mapping[Key, Recorded], desired: Mapping[Key, Resource]) -> Key | None:
    """Return a tag whose category is known only by an unrecorded id, or `None`."""
    ids = {f"id/{row.server_id}" for row in recorded.values() if row.server_id}
    of_rows = ((r.key, r.category_references()) for r in recorded.values() if may_be_held(r))
    of_resources = ((key, category_references(resource.body.fields)) for key, resource in desired.items())
    for key, references in chain(of_rows, of_resources):
        if key.kind is Kind.TAG and any(ref.startswith("id/") and ref not in ids for ref in references):
            return key
    return None


def members_of(recorded: Mapping[Key, Recorded], categories: Mapping[Key, Recorded]) -> dict[Key, list[Recorded]]:
    """Return the recorded tags that may be in each of `categories`, by external id or by server id.

    Two rows with one server id are one category whose rename has an unknown outcome. Its members are in both.
    """
    by_id: dict[str, list[Key]] = {}
    for key, row in categories.items():
        by_id.setdefault(f"id/{row.server_id}" if row.server_id else str(key), []).append(key)
    by_reference = by_id | {str(key): keys for keys in by_id.values() for key in keys}
    members: dict[Key, list[Recorded]] = {key: [] for key in categories}
    for row in recorded.values():
        if row.key.kind is Kind.TAG and may_be_held(row):
            places = (by_reference.get(reference, ()) for reference in row.category_references())
            for category in dict.fromkeys(chain.from_iterable(places)):
                members[category].append(row)
    return members


def _obstacle(j: _Judgement, row: Recorded, members: Iterable[Recorded]) -> tuple[str, str] | None:
    """Return the kind and message of a note why this plan must not delete an undeclared category, or `None`."""
    if j.scope.no_delete:
        return "left-out", "--no-delete keeps the category"
    if row.protect:
        return "kept", "it is protected; to remove it, first apply `protect: false`"
    protected = [m.key.name for m in members if m.protect and m.key not in j.desired]
    if protected:
        return "kept", f"deleting it would also delete the protected tag {protected[0]}"
    for member in members:
        is_desired = member.key in j.desired
        new = j.taken_over.get(member.key)
        if new is not None and new not in j.aim.desired:
            return (
                "left-out",
                f"not deleted: tag {member.key.name} is in it, and its new name {new.name} is not selected",
            )
        if is_desired and member.key not in j.aim.desired:
            return "left-out", f"not deleted: tag {member.key.name} moves out of it and is not selected"
        if not is_desired and not j.scope.selects((member.key, member.source)):
            return "left-out", f"not deleted: tag {member.key.name} is in it and is not selected"
    unsent = (key for key in j.desired if key not in j.aim.desired and may_be_anywhere(key, j.before))
    if (hidden := next(unsent, None)) is not None:
        cause = j.aim.aside.get(hidden)
        why = "is not selected" if cause is None else "is in quarantine" if cause == hidden else f"waits for {cause}"
        return "left-out", f"not deleted: tag {hidden.name} may be in it and {why}"
    return None


def may_be_anywhere(key: Key, recorded: Mapping[Key, Recorded]) -> bool:
    """Return whether the service may hold a tag of this name in a category that is recorded nowhere.

    People may have made a tag that is not recorded, and moved one that was not managed.
    """
    row = recorded.get(key)
    if key.kind is not Kind.TAG or row is None:
        return key.kind is Kind.TAG
    is_known = row.confirmed and not row.doubtful and ANY_CATEGORY not in row.former_categories
    return not is_known or row.status is not Status.ACTIVE


def keep_out(aim: Aim, recorded: Mapping[Key, Recorded]) -> None:
    """Have each desired tag that may be in a deleted category sent first; one without a category leaves any."""
    if not aim.movers:
        return
    hidden = {key: None for key in aim.desired if may_be_anywhere(key, recorded)}
    for key in hidden:
        fields, row = aim.desired[key].body.fields, recorded.get(key)
        if not fields.keys() & ALTERNATIVES.keys() and not (row and category_references(row.body.fields)):
            aim.desired[key] = replace(aim.desired[key], outside=True)
    for category, movers in aim.movers.items():
        aim.movers[category] = [*(key for key in movers if key not in hidden), *hidden]


def _delete_category(j: _Judgement, row: Recorded, members: Iterable[Recorded], *, is_twin: bool) -> None:
    """Plan to delete a category with its members. `is_twin`: another row has the same id."""
    j.aim.leaving[row.key] = PlannedRemoval(row, RemovalKind.DELETE)
    j.aim.movers[row.key] = []
    for member in members:
        if member.key in j.desired:
            j.aim.movers[row.key].append(member.key)
        else:
            leaving = _cascaded(j, row, member, may_stay=member.doubtful or is_twin)
            j.aim.leaving[member.key] = leaving
            j.aim.cascades.setdefault(row.key, []).append(leaving)
            if member.key in j.taken_over:
                j.aim.movers[row.key].append(j.taken_over[member.key])


def _cascaded(j: _Judgement, category: Recorded, member: Recorded, *, may_stay: bool) -> PlannedRemoval:
    """Return the removal of a category's member. A member that `may_stay` is also removed by calls of its own."""
    otherwise = _way_out(j, member, j.removed.get(member.key)) if may_stay else None
    if otherwise is RemovalKind.DELETE and not j.rules.deletes_tags:
        otherwise = RemovalKind.RETIRE
    goes = otherwise not in (None, RemovalKind.FORGET)
    also = f"; {PAST[otherwise]} as well, since it may be in another category" if otherwise and goes else ""
    return PlannedRemoval(
        member,
        RemovalKind.CASCADE,
        RemovalCause.CATEGORY_DELETED,
        f"deleted with {category.key}{also}",
        taken_by=category.key,
        may_stay=may_stay,
        otherwise=otherwise,
    )


PAST: Mapping[RemovalKind, str] = {RemovalKind.RETIRE: "retired", RemovalKind.DELETE: "deleted by itself"}


# --- activity types


def _judge_activity_types(j: _Judgement) -> None:
    leaving = []
    for row in j.unwanted(Kind.ACTIVITY_TYPE):
        if not _stays(j, row):
            leaving.append(row)
        elif row.status is not Status.DELETED:
            j.aim.staying.append(row)
    removals = {row.key: PlannedRemoval(row, RemovalKind.SWEEP) for row in leaving}
    # A row that `state rebuild` recorded from the history alone is no reason to sweep.
    if any(row.status is not Status.RELEASED or row.confirmed for row in leaving):
        j.aim.leaving |= removals
    else:
        j.aim.swept_along = removals


def _stays(j: _Judgement, row: Recorded) -> bool:
    """Return whether an activity type that no manifest declares stays on the service, and add a note about it."""
    if not j.scope.selects((row.key, row.source)) or row.key in j.aim.aside:
        return True
    if j.may_leave is not None and row.key not in j.may_leave:
        return True
    if row.protect:
        j.keep(row, "it is protected; to remove it, first apply `protect: false`")
    elif j.rules.activity_types is Ownership.ADDITIVE:
        j.keep(row, "policy.activityTypes is additive: it stays on the service")
    elif j.scope.no_delete:
        j.note(row, "left-out", "--no-delete keeps the activity type")
    elif j.aim.keeps_types is not None:
        j.aim.aside[row.key] = j.aim.keeps_types
        j.note(row, "left-out", f"not deleted: no sweep can complete while {j.aim.keeps_types} is in quarantine")
    else:
        return not j.scope.whole
    return True


# --- tags


def _judge_tags(j: _Judgement) -> None:
    renamed = j.taken_over
    for row in j.going(Kind.TAG):
        if row.key in j.aim.leaving or row.key in j.aim.aside:
            continue
        if row.key in renamed:
            if renamed[row.key] in j.aim.desired:
                _judge_renamed(j, row, renamed[row.key])
        elif j.scope.selects((row.key, row.source)):
            _judge_gone_tag(j, row)


def _judge_renamed(j: _Judgement, row: Recorded, new: Key) -> None:
    """Retire the old name of a renamed tag whatever the policy is, unless a line under `removed:` says otherwise."""
    statement = j.removed.get(row.key)
    way = RemovalKind(statement.how.value) if statement else RemovalKind.RETIRE
    removal = PlannedRemoval(row, way, RemovalCause.RENAMED, f"renamed to {new.name}", taken_by=new)
    _let_go(j, removal, statement)


def _judge_gone_tag(j: _Judgement, row: Recorded) -> None:
    statement = j.removed.get(row.key)
    way = _way_out(j, row, statement)
    if way is not None:
        removal = PlannedRemoval(row, way)
        if statement is not None:
            removal = dataclasses.replace(
                removal, cause=RemovalCause.REMOVED_LINE, reason=statement.reason or removal.reason
            )
        _let_go(j, removal, statement)


_PAST = {RemovalKind.FORGET: "forgotten", RemovalKind.RETIRE: "retired"}


def _let_go(j: _Judgement, removal: PlannedRemoval, statement: Removed | None) -> None:
    row, way = removal.row, removal.way
    if row.protect:
        j.keep(row, "it is protected; to remove it, first apply `protect: false`")
    elif j.scope.no_delete:
        j.note(row, "left-out", f"not {_PAST.get(way, 'deleted')}, because of --no-delete")
    elif way is RemovalKind.DELETE and not j.rules.deletes_tags:
        j.aim.problems.append(_no_delete_tag(row, statement))
    else:
        j.aim.leaving[row.key] = removal


def _way_out(j: _Judgement, row: Recorded, statement: Removed | None) -> RemovalKind | None:
    """Return the way in which a tag that no manifest declares is removed, or `None` when that is already done."""
    unfinished = row.status is Status.RETIRED and bool(row.body.keywords)
    if row.status is Status.RETIRED and not unfinished and (statement is None or statement.how is not Removal.DELETE):
        return None
    if row.status is Status.RELEASED and (statement is None or statement.how is Removal.FORGET):
        return None
    if statement is not None:
        return RemovalKind(statement.how.value)
    # A rename retires whatever the policy is, also the rest of what a run has begun.
    is_renamed = unfinished and any(row.key.name in new.previously for new in j.desired.values())
    return RemovalKind.RETIRE if is_renamed else RemovalKind(j.rules.tag_removal.value)


def _no_delete_tag(row: Recorded, statement: Removed | None) -> Diagnostic:
    source = statement.source if statement else row.source
    message = (
        "the service's specification has no call that deletes tags: set service.endpoints.deleteTag,"
        " or remove the tag by `retire` or `forget`"
    )
    return found_at(source, row.key, "delete-unsupported", message)


CODE = "defaultActivityTypeCode"


@dataclass(slots=True)
class Estate:
    """All recorded and desired resources, and the renames between them in both directions. Indexed on demand."""

    recorded: Mapping[Key, Recorded]
    desired: Mapping[Key, Resource]
    renames: Mapping[Key, Sequence[Key]]
    taken_over: Mapping[Key, Key]
    _tags: dict[str, list[Key]] | None = field(default=None)
    _members: dict[str, list[Key]] | None = field(default=None)
    _owners: dict[str, list[Key]] | None = field(default=None)

    def companions(self, key: Key) -> Iterator[Key]:
        """Yield the resources that are directly tied to `key` and must wait with it."""
        yield from self.renames.get(key, ())
        if (new := self.taken_over.get(key)) is not None:
            yield new
        if key.kind is Kind.CATEGORY:
            yield from self._of_category(key)
        elif key.kind is Kind.TAG and (row := self.recorded.get(key)) is not None:
            yield from self._categories_going(row)

    def _of_category(self, key: Key) -> Iterator[Key]:
        row = self.recorded.get(key)
        references = (str(key), *((f"id/{row.server_id}",) if row is not None and row.server_id else ()))
        if self._is_going(key):
            members = self._members = self._members or self._members_of_rows()
            yield from (member for reference in references for member in members.get(reference, ()))
        tags = self._tags = self._tags or self._desired_tags()
        yield from (tag for reference in references for tag in tags.get(reference, ()))

    def _is_going(self, key: Key) -> bool:
        """Return whether `key` is a category to delete: managed, maybe held by the service, and no longer declared."""
        row = self.recorded.get(key)
        is_held = row is not None and may_be_held(row) and row.status is not Status.RELEASED and not row.protect
        return is_held and key not in self.desired and key not in self.taken_over

    def _categories_going(self, tag: Recorded) -> Iterator[Key]:
        owners = self._owners = self._owners or self._owners_of_ids()
        for reference in tag.category_references():
            yield from (key for key in owners.get(reference, ()) if self._is_going(key))

    def _desired_tags(self) -> dict[str, list[Key]]:
        """Return the desired tags by their references to a category."""
        tags: dict[str, list[Key]] = defaultdict(list)
        for key, resource in self.desired.items():
            if key.kind is Kind.TAG:
                for reference in category_references(resource.body.fields):
                    tags[reference].append(key)
        return tags

    def _members_of_rows(self) -> dict[str, list[Key]]:
        """Return the recorded tags that no manifest declares, by their references to a category."""
        members: dict[str, list[Key]] = defaultdict(list)
        for key, row in self.recorded.items():
            if key.kind is Kind.TAG and key not in self.desired and key not in self.taken_over and may_be_held(row):
                for reference in row.category_references():
                    members[reference].append(key)
        return members

    def _owners_of_ids(self) -> dict[str, list[Key]]:
        """Return the recorded categories by every reference to them. Rows with one server id share their references."""
        owners: dict[str, list[Key]] = defaultdict(list)
        by_id: dict[str, list[Key]] = defaultdict(list)
        for key, row in self.recorded.items():
            if key.kind is Kind.CATEGORY:
                by_id[row.server_id or str(key)].append(key)
        for server_id, keys in by_id.items():
            owners[f"id/{server_id}"] = keys
            owners.update((str(key), keys) for key in keys)
        return owners


def with_companions(quarantined: Iterable[Key], estate: Estate) -> dict[Key, Key]:
    """Return every resource that is left alone, mapped to the quarantined resource that it waits for."""
    aside = {key: key for key in quarantined}
    queue = list(aside)
    while queue:
        key = queue.pop()
        for companion in estate.companions(key):
            if companion not in aside:
                aside[companion] = aside[key]
                queue.append(companion)
    return aside


def keeper_of_types(aside: Mapping[Key, Key], estate: Estate) -> Key | None:
    """Return the quarantined resource that prevents a sweep, or `None`.

    It is an activity type, or a tag that may still carry the code of an activity type to delete. A row has the content
    that was sent last, so the service may hold an earlier code of a refused tag.
    """
    for key, cause in aside.items():
        if key.kind is Kind.ACTIVITY_TYPE:
            return cause
    types = (row for key, row in estate.recorded.items() if key.kind is Kind.ACTIVITY_TYPE)
    codes = {row.key.name for row in types if row.key not in estate.desired and may_be_held(row)}
    for key, cause in aside.items() if codes else ():
        row, resource = estate.recorded.get(key), estate.desired.get(key)
        if resource is not None and resource.body.fields.get(CODE) in codes:
            return cause
        carried = row.body.fields.get(CODE) if row is not None and may_be_held(row) else None
        if row is not None and carried and (row.doubtful or carried in codes):
            return cause
    return None
