"""Decide the aim of a plan: desired resources, removals with their kinds, and notes. Pure.

This first step of planning makes the decisions. The later steps only work out the consequences.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

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


CODE = "defaultActivityTypeCode"
UNDECLARED = "no manifest declares it"
PROTECTED = "it is protected; to remove it, first apply `protect: false`"
PAST: Mapping[str, str] = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "retire": "retired",
    "forget": "forgotten",
}
"""What was done to a resource, by the word for doing it."""


@dataclass(frozen=True, slots=True)
class PlannedRemoval:
    """A recorded resource that a plan removes, and why. `reason` explains the `cause` in a sentence.

    `taken_by` is the category of a cascade, or the new name of a rename. `may_stay` is true when a cascade may miss the
    resource because it may have left the category; `otherwise` is the way in which it is removed then.
    """

    row: Recorded
    way: RemovalKind
    cause: RemovalCause = RemovalCause.UNDECLARED
    reason: str = UNDECLARED
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
    manifest declares and that stay on the service. `released` are rows to record as released without a request.
    `movers` maps each deleted category to the desired tags whose calls must be acknowledged first, and `cascades` to
    the members deleted with it. `aside` maps each resource that a quarantine leaves alone to the quarantined resource
    that it waits for. `keeps_types` is a quarantined resource that keeps all activity types from being deleted.
    """

    desired: dict[Key, Resource] = field(default_factory=dict)
    renames: dict[Key, tuple[Key, ...]] = field(default_factory=dict)
    leaving: dict[Key, PlannedRemoval] = field(default_factory=dict)
    staying: list[Recorded] = field(default_factory=list)
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


def has_known_id(row: Recorded) -> bool:
    """Return whether the tags of a recorded category can be sent with its id, without sending the category first."""
    return row.status is not Status.DELETED and row.confirmed and bool(row.server_id)


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


def shown(body: Body) -> Iterator[tuple[str, Value]]:
    """Yield the name and value of all that describes a tag apart from its keywords."""
    yield from ((name, value) for name in ("description", "externalId", "url") if (value := body.fields.get(name)))
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
    _set_aside(judgement, tuple(quarantined))
    _choose_wanted(judgement)
    _judge_categories(judgement)
    _judge_activity_types(judgement)
    _judge_tags(judgement)
    _keep_out(judgement)
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
        is_tag = key.kind is Kind.TAG
        if is_tag and not resource.previously:
            continue
        new = j.recorded.get(key)
        formers = [j.recorded[old] for name in resource.previously if (old := Key(key.kind, name)) in j.recorded]
        if new is not None and key.kind is Kind.CATEGORY and new.server_id in twins:
            formers.append(twins[new.server_id])
        rows = []
        for former in formers:
            if is_tag:
                can_become = former.status is Status.ACTIVE
            else:
                is_same = new is None or not may_be_held(new) or new.server_id in (None, former.server_id)
                can_become = is_same and may_be_held(former) and former.server_id is not None
            # A category whose rename has an unknown outcome belongs to the desired name that has its id.
            if can_become and former.key not in j.desired and owners.get(former.server_id, key) == key:
                rows.append(former)
        # The change names the first row, so a private one comes first, then one of unknown visibility.
        rows.sort(key=lambda each: ("visibility" not in each.body.fields) if is_private(each) else 2)
        if rows:
            j.aim.renames[key] = tuple(row.key for row in (rows if is_tag else rows[:1]))
            j.taken_over |= dict.fromkeys(j.aim.renames[key], key)


def _set_aside(j: _Judgement, quarantined: tuple[Key, ...]) -> None:
    """Leave alone the resources in quarantine and those that wait with them, each with the one that it waits for."""
    if not quarantined:
        return
    ties = _ties(j)
    aside = j.aim.aside
    aside.update((key, key) for key in quarantined)
    queue = list(aside)
    while queue:
        key = queue.pop()
        for companion in ties.get(key, ()):
            if companion not in aside:
                aside[companion] = aside[key]
                queue.append(companion)
    # A sweep would delete what it does not upload, so an activity type that waits keeps all types, as does a tag that
    # may still carry the code of one to delete: its row has what was sent last, which the service may have refused.
    codes = {row.key.name for row in j.unwanted(Kind.ACTIVITY_TYPE)}
    for key, cause in sorted(aside.items(), key=lambda each: each[0].kind is not Kind.ACTIVITY_TYPE):
        row, resource = j.recorded.get(key), j.desired.get(key)
        asked = resource.body.fields.get(CODE) if resource is not None else None
        held = row.body.fields.get(CODE) if row is not None and may_be_held(row) else None
        is_unsure = row is not None and row.doubtful and bool(held)
        if key.kind is Kind.ACTIVITY_TYPE or (codes and (asked in codes or held in codes or is_unsure)):
            j.aim.keeps_types = cause
            return


def _ties(j: _Judgement) -> Mapping[Key, list[Key]]:
    """Return for each resource those that must wait when it is in quarantine.

    Both names of a rename wait together. With a category wait the desired tags that refer to it and, if it would be
    deleted, the members that would go with it. With a tag wait the categories to delete in which it may be.
    """
    ties: defaultdict[Key, list[Key]] = defaultdict(list, {new: [*olds] for new, olds in j.aim.renames.items()})
    for old, new in j.taken_over.items():
        ties[old].append(new)
    unwanted = (row for row in j.unwanted(Kind.CATEGORY) if row.status is not Status.RELEASED and not row.protect)
    going = {row.key for row in unwanted if row.key not in j.taken_over}
    by_id: defaultdict[str, list[Key]] = defaultdict(list)
    for key, row in j.recorded.items():
        if key.kind is Kind.CATEGORY and row.server_id:
            by_id[f"id/{row.server_id}"].append(key)
    named = {str(key): [key] for key in chain(j.desired, j.recorded) if key.kind is Kind.CATEGORY} | by_id
    # Rows with one server id are one category, so a tag that is in one may be in the other.
    shared = named | {str(key): keys for keys in by_id.values() for key in keys}
    for key, resource in j.desired.items():
        for reference in category_references(resource.body.fields) if key.kind is Kind.TAG else ():
            for category in named.get(reference, ()):
                ties[category].append(key)
    for key, row in j.recorded.items():
        is_member = key not in j.desired and key not in j.taken_over and may_be_held(row)
        for reference in row.category_references() if key.kind is Kind.TAG else ():
            ties[key] += (category for category in shared.get(reference, ()) if category in going)
            for category in named.get(reference, ()) if is_member else ():
                if category in going:
                    ties[category].append(key)
    return ties


def _choose_wanted(j: _Judgement) -> None:
    """Take what is selected and not set aside, and the categories that selected tags need."""
    if j.scope.whole and not j.aim.aside:
        j.aim.desired.update(j.desired)
        return
    for key, resource in j.desired.items():
        unit = [(key, resource.source), *((old, j.recorded[old].source) for old in j.aim.renames.get(key, ()))]
        if key not in j.aim.aside and j.scope.selects(*unit):
            j.aim.desired[key] = _as_allowed(j, resource)
    for resource in list(j.aim.desired.values()) if j.scope.selective else ():
        needed = Key(Kind.CATEGORY, str(resource.body.fields.get("category") or ""))
        row = j.recorded.get(needed)
        is_known = row is not None and has_known_id(row)
        if needed in j.desired and needed not in j.aim.desired and not is_known:  # docs/planning.md 2.1
            j.aim.desired[needed] = _as_allowed(j, j.desired[needed])


def _as_allowed(j: _Judgement, resource: Resource) -> Resource:
    """Return the resource as `--no-delete` allows it: recorded values stay, and a note says so."""
    row = row_to_compare(resource.key, j.recorded, j.aim.renames) if j.scope.no_delete else None
    if row is None:
        return resource
    desired = resource.body
    kept: dict[str, Value] = {}
    for name, value in row.body.fields.items():
        if name == "category":
            category = Key(Kind.CATEGORY, str(value))
            if category in j.recorded and not may_be_held(j.recorded[category]):
                continue
            value = j.taken_over[category].name if category in j.taken_over else value
        if is_blank(value) or (name, value) == ("visibility", "PUBLIC"):  # nothing to lose
            continue
        if is_blank(desired.fields.get(name)) and is_blank(desired.fields.get(ALTERNATIVES.get(name, name))):
            kept[name] = value
    words = set(desired.keywords)
    dropped = tuple(keyword for keyword in row.body.keywords if keyword not in words)
    lost = {
        name: value
        for name, value in row.body.metadata.items()
        if name not in desired.metadata or (is_blank(desired.metadata[name]) and not is_blank(value))
    }
    for what, names in (("field", kept), ("keyword", dropped), ("metadata", lost)):
        if names:
            message = f"--no-delete keeps {what} {', '.join(sorted(names))}"
            j.aim.notes.append(Note(resource.key, "left-out", message, resource.source))
    body = Body({**desired.fields, **kept}, desired.keywords + dropped, {**desired.metadata, **lost})
    return replace(resource, body=body)


# --- categories


def _judge_categories(j: _Judgement) -> None:
    # With those that stay, and those that are not selected: the members of one are in any other that has its id.
    every = {r.key: r for r in j.unwanted(Kind.CATEGORY) if r.key not in j.taken_over}
    protected = {row.server_id for row in every.values() if row.protect and row.server_id}
    # A row that shares its id with a renamed category may be that very category, so the rename decides.
    renamed = {j.recorded[old].server_id for old in j.taken_over if old.kind is Kind.CATEGORY}
    rows = {k: r for k, r in every.items() if r.server_id not in renamed and j.scope.selects((k, r.source))}
    for key in [key for key in rows if key in j.aim.aside]:
        if (cause := j.aim.aside[key]) != key:
            j.note(rows[key], "left-out", f"not deleted: it waits for {cause}, which is in quarantine")
        del rows[key]
    if not rows:
        return
    members = members_of(j.recorded, every)
    ids = Counter(row.server_id for row in every.values() if row.server_id)
    absent = ((k, r) for k, r in every.items() if k not in rows and r.status is not Status.RELEASED)
    left: dict[str | None, Key] = {r.server_id: k for k, r in absent if r.server_id is not None}
    # A part of a plan does not have the ids of all categories: its apply asks this of all rows (`apply.guards`).
    asks = j.may_leave is None and any(row.server_id is None for row in rows.values())
    elsewhere = in_an_unknown_category(j.recorded, j.desired) if asks else None
    for key, row in sorted(rows.items()):  # a tag that may be in two goes with the same one in any order of rows
        if row.status is Status.RELEASED:  # a run decided that it stays, whatever else about it is in doubt
            continue
        if j.may_leave is not None and key not in j.may_leave:
            continue
        if row.server_id is None and elsewhere is not None:
            cure = "to delete it, first declare it again for one apply"
            j.keep(row, f"its id is unknown, and tag {elsewhere.name} may be in it; {cure}")
        elif obstacle := _obstacle(
            j, row, members[key], left.get(row.server_id), is_protected=row.protect or row.server_id in protected
        ):
            kind, message = obstacle
            j.keep(row, message) if kind == "kept" else j.note(row, kind, message)
        else:
            _delete_category(j, row, members[key], is_twin=row.server_id is not None and ids[row.server_id] > 1)
    # Tags at rest are sent again too, as people may have moved them there: said once.
    tags = [j.before[key] for key in j.desired if key.kind is Kind.TAG and key in j.before]
    nowhere = sum(map(is_without_category, tags))
    count = nowhere + sum(r.status is Status.ACTIVE and not r.doubtful and bool(r.category_references()) for r in tags)
    if count and (category := next(iter(j.aim.movers), None)) is not None:
        others = "another tag is" if count == 1 else f"{count:,} other tags are"
        message = f"{others} sent again, since people may have moved {'it' if count == 1 else 'some of them'} there"
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


def _obstacle(
    j: _Judgement, row: Recorded, members: Iterable[Recorded], other: Key | None, *, is_protected: bool
) -> tuple[str, str] | None:
    """Return the kind and message of a note why this plan must not delete an undeclared category, or `None`.

    If its rename has an unknown outcome: `other` is its other name if this plan leaves that out, and `is_protected`
    says whether it has `protect` under one of its names.
    """
    if j.scope.no_delete:
        return "left-out", "--no-delete keeps the category"
    if is_protected:
        return "kept", PROTECTED
    if other is not None:
        return "left-out", f"not deleted: it may have the name {other.name}, which {_why_absent(j, other)}"
    protected = next((m.key.name for m in members if m.protect and m.key not in j.desired), None)
    if protected is not None:
        return "kept", f"deleting it would also delete the protected tag {protected}"
    for member in members:
        name, is_desired, new = member.key.name, member.key in j.desired, j.taken_over.get(member.key)
        if new is not None and new not in j.aim.desired:
            return "left-out", f"not deleted: tag {name} is in it, and its new name {new.name} is not selected"
        if is_desired and member.key not in j.aim.desired:
            return "left-out", f"not deleted: tag {name} moves out of it and is not selected"
        if not is_desired and not j.scope.selects((member.key, member.source)):
            return "left-out", f"not deleted: tag {name} is in it and is not selected"
    unsent = (key for key in j.desired if key not in j.aim.desired and _may_be_anywhere(key, j.before))
    if (hidden := next(unsent, None)) is not None:
        return "left-out", f"not deleted: tag {hidden.name} may be in it and {_why_absent(j, hidden)}"
    return None


def _why_absent(j: _Judgement, key: Key) -> str:
    """Return why this plan has nothing for a resource, as the end of a sentence about it."""
    cause = j.aim.aside.get(key)
    return "is not selected" if cause is None else "is in quarantine" if cause == key else f"waits for {cause}"


def _may_be_anywhere(key: Key, recorded: Mapping[Key, Recorded]) -> bool:
    """Return whether the service may hold a tag of this name in a category that is recorded nowhere.

    People may have made a tag that is not recorded, and moved one that was not managed.
    """
    row = recorded.get(key)
    if key.kind is not Kind.TAG or row is None:
        return key.kind is Kind.TAG
    is_known = row.confirmed and not row.doubtful and ANY_CATEGORY not in row.former_categories
    return not is_known or row.status is not Status.ACTIVE


def _delete_category(j: _Judgement, row: Recorded, members: Iterable[Recorded], *, is_twin: bool) -> None:
    """Plan to delete a category with its members. `is_twin`: another row has the same id."""
    j.aim.leaving[row.key] = PlannedRemoval(row, RemovalKind.DELETE)
    movers = j.aim.movers[row.key] = []
    for member in members:
        if member.key in j.desired:
            movers.append(member.key)
            continue
        # What may be elsewhere is removed by calls of its own as well.
        may_stay = member.doubtful or is_twin
        otherwise = _way_out(j, member) if may_stay else None
        if otherwise is RemovalKind.DELETE and not j.rules.deletes_tags:
            otherwise = RemovalKind.RETIRE
        reason = f"deleted with {row.key}"
        if otherwise is not None and otherwise is not RemovalKind.FORGET:
            also = "deleted by itself" if otherwise is RemovalKind.DELETE else PAST[otherwise]
            reason = f"{reason}; {also} as well, since it may be in another category"
        cause = RemovalCause.CATEGORY_DELETED
        leaving = PlannedRemoval(member, RemovalKind.CASCADE, cause, reason, row.key, may_stay, otherwise)
        j.aim.leaving[member.key] = leaving
        j.aim.cascades.setdefault(row.key, []).append(leaving)
        if member.key in j.taken_over:
            movers.append(j.taken_over[member.key])


def _keep_out(j: _Judgement) -> None:
    """Have each desired tag that may be in a deleted category sent first; one without a category leaves any."""
    if not j.aim.movers:
        return
    hidden = {key: None for key in j.aim.desired if _may_be_anywhere(key, j.before)}
    for key in hidden:
        fields, row = j.aim.desired[key].body.fields, j.before.get(key)
        if not fields.keys() & ALTERNATIVES.keys() and not (row and category_references(row.body.fields)):
            j.aim.desired[key] = replace(j.aim.desired[key], outside=True)
    for category, movers in j.aim.movers.items():
        j.aim.movers[category] = [*(key for key in movers if key not in hidden), *hidden]


# --- activity types and tags


def _judge_activity_types(j: _Judgement) -> None:
    """Decide of each activity type that no manifest declares whether it stays, with a note about it."""
    for row in j.unwanted(Kind.ACTIVITY_TYPE):
        is_outside = j.may_leave is not None and row.key not in j.may_leave
        if is_outside or row.key in j.aim.aside or not j.scope.selects((row.key, row.source)):
            pass
        elif row.protect:
            j.keep(row, PROTECTED)
        elif j.rules.activity_types is Ownership.ADDITIVE:
            j.keep(row, "policy.activityTypes is additive: it stays on the service")
        elif j.scope.no_delete:
            j.note(row, "left-out", "--no-delete keeps the activity type")
        elif j.aim.keeps_types is not None:
            j.aim.aside[row.key] = j.aim.keeps_types
            j.note(row, "left-out", f"not deleted: no sweep can complete while {j.aim.keeps_types} is in quarantine")
        elif j.scope.whole:
            j.aim.leaving[row.key] = PlannedRemoval(row, RemovalKind.SWEEP)
            continue
        if row.status is not Status.DELETED:
            j.aim.staying.append(row)


def _judge_tags(j: _Judgement) -> None:
    """Decide how each tag that no manifest declares leaves, by a line under `removed:` before the policy."""
    for row in j.going(Kind.TAG):
        key, line, new = row.key, j.removed.get(row.key), j.taken_over.get(row.key)
        if key in j.aim.leaving or key in j.aim.aside:
            continue
        if new is not None and new in j.aim.desired:  # its old name is retired whatever the policy is
            way = RemovalKind(line.how.value) if line is not None else RemovalKind.RETIRE
            removal = PlannedRemoval(row, way, RemovalCause.RENAMED, f"renamed to {new.name}", taken_by=new)
        elif new is None and j.scope.selects((key, row.source)) and (policy := _way_out(j, row)) is not None:
            removal = PlannedRemoval(row, policy)
            if line is not None:
                removal = PlannedRemoval(row, policy, RemovalCause.REMOVED_LINE, line.reason or UNDECLARED)
        else:
            continue
        if row.protect:
            j.keep(row, PROTECTED)
        elif j.scope.no_delete:
            j.note(row, "left-out", f"not {PAST[removal.way]}, because of --no-delete")
        elif removal.way is RemovalKind.DELETE and not j.rules.deletes_tags:
            cure = "set service.endpoints.deleteTag, or remove the tag by `retire` or `forget`"
            message = f"the service's specification has no call that deletes tags: {cure}"
            j.aim.problems.append(found_at(line.source if line else row.source, key, "delete-unsupported", message))
        else:
            j.aim.leaving[key] = removal


def _way_out(j: _Judgement, row: Recorded) -> RemovalKind | None:
    """Return the way in which a tag that no manifest declares is removed, or `None` when that is already done."""
    line = j.removed.get(row.key)
    unfinished = row.status is Status.RETIRED and bool(row.body.keywords)
    if row.status is Status.RETIRED and not unfinished and (line is None or line.how is not Removal.DELETE):
        return None
    if row.status is Status.RELEASED and (line is None or line.how is Removal.FORGET):
        return None
    if line is not None:
        return RemovalKind(line.how.value)
    # A rename retires whatever the policy is, also the rest of what a run has begun.
    is_renamed = unfinished and any(row.key.name in new.previously for new in j.desired.values())
    return RemovalKind.RETIRE if is_renamed else RemovalKind(j.rules.tag_removal.value)
