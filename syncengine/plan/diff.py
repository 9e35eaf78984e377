"""Compare the aim with the recorded rows, for changes, notes and rows to record without a request. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, StrEnum
from functools import cached_property, lru_cache

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.plan.aim import (
    Aim,
    Note,
    PlannedRemoval,
    RemovalCause,
    RemovalKind,
    is_private,
    may_be_held,
    release,
    row_to_compare,
    shown,
)
from syncengine.resource import (
    ALTERNATIVES,
    IMPORT,
    REBUILD,
    RESTORE,
    Body,
    Key,
    Kind,
    Recorded,
    Resource,
    Source,
    Status,
    Value,
    is_blank,
)
from syncengine.service.operations import UNCLEARABLE


class Action(Enum):
    """The action of a plan on one resource. The value is the symbol for people; `word` is the name for machines."""

    CREATE = "+"
    UPDATE = "~"
    DELETE = "-"
    RETIRE = "x"
    FORGET = "o"

    __hash__ = object.__hash__  # faster than the enum's own, and changes are counted by their actions

    @cached_property
    def word(self) -> str:
        return self.name.lower()


class FieldEffect(StrEnum):
    """The service's treatment of a field that differs."""

    APPLIES = "applies"
    CREATE_ONLY = "create-only"
    IGNORED = "ignored"


class FieldChange(Struct, frozen=True, gc=False):
    """The difference in one field.

    `None` means that the field is not declared. `after` is `None` with effect `APPLIES` when an explicit empty value is
    sent. `replaced` is true when another field now carries the same information, so that nothing is lost.
    """

    name: str
    before: Value | None
    after: Value | None
    effect: FieldEffect = FieldEffect.APPLIES
    replaced: bool = False

    @property
    def clears(self) -> bool:
        """Whether the change clears a value that the service holds."""
        empties = self.effect is FieldEffect.APPLIES and not is_blank(self.before) and is_blank(self.after)
        return empties and not self.replaced


class Change(Struct, frozen=True, gc=False, kw_only=True):
    """The difference between the recorded and the desired content of one resource.

    `metadata_before` has the old values of names that are set or deleted. `cascade` is the category whose deletion also
    deletes this tag, and `previously` the former name in a rename. `merges` are all former names if there are several.
    `opens` are the names of all tags, PRIVATE or of unknown visibility, that a rename makes public, possibly including
    this tag's own, or the name of a tag of unknown visibility that becomes public. `removed` is the recorded content of
    a resource that leaves, which the service cannot give back. `reason` is an explanation and decides nothing, also of
    the `cause` of a removal.
    """

    key: Key
    action: Action
    source: Source | None
    fields: tuple[FieldChange, ...] = ()
    keywords_added: tuple[str, ...] = ()
    keywords_deleted: tuple[str, ...] = ()
    metadata_set: Mapping[str, str] = field(default_factory=dict)
    metadata_deleted: tuple[str, ...] = ()
    metadata_before: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None
    cascade: Key | None = None
    previously: str | None = None
    opens: tuple[str, ...] | UnsetType = UNSET
    merges: tuple[str, ...] | UnsetType = UNSET
    removed: Body | UnsetType = UNSET
    cause: RemovalCause | UnsetType = UNSET

    @property
    def metadata_blanked(self) -> tuple[str, ...]:
        """The names of metadata that lose their value and stay."""
        before = self.metadata_before
        return tuple(
            name for name, value in self.metadata_set.items() if is_blank(value) and not is_blank(before.get(name))
        )

    @property
    def opening(self) -> FieldChange | None:
        """The change of visibility by which tags become public, or `None`. Before it, `None` means unknown."""
        is_opening = self.opens or OPENED in self.fields
        return next((each for each in self.fields if each.name == OPENED.name), None) if is_opening else None

    @property
    def formers(self) -> tuple[Key, ...]:
        """The keys of all former names."""
        if not (self.previously or self.merges or self.opens):  # as of most changes of a large plan
            return ()
        names = dict.fromkeys(filter(None, (self.previously, *(self.merges or ()), *(self.opens or ()))))
        return tuple(Key(self.key.kind, name) for name in names if name != self.key.name)


def is_same(one: Change | None, other: Change | None) -> bool:
    """Return whether two changes do the same, whatever their places and what they say about why."""
    if one is None or other is None:
        return False
    return one == other or _deed(one) == _deed(other)


def _deed(change: Change) -> Change:
    return replace(change, source=None, reason=None, cause=UNSET)


class Difference(Struct, frozen=True, gc=False):
    """A change with its grounds: the recorded row, the desired resource, or the planned removal."""

    change: Change
    row: Recorded | None = None
    resource: Resource | None = None
    leaving: PlannedRemoval | None = None


class Diff(Struct, frozen=True, gc=False):
    """The differences, rows to record without a request, notes, and the number of unchanged resources."""

    differences: tuple[Difference, ...]
    records: tuple[Effect, ...]
    notes: tuple[Note, ...]
    unchanged: int


CREATE_ONLY: Mapping[Kind, frozenset[str]] = {
    Kind.TAG: frozenset(),
    Kind.CATEGORY: frozenset(),
    Kind.ACTIVITY_TYPE: frozenset({"label", "enableIfNew"}),
}
"""Fields that the service accepts only when it creates the resource (docs/service.md §2)."""

NO_METADATA: Mapping[str, str] = {}
"""The empty `metadata_before` that most changes share."""

UNSAID: Mapping[tuple[Kind, str], Value] = {
    (Kind.TAG, "path"): "/",
    (Kind.ACTIVITY_TYPE, "enableIfNew"): False,
    (Kind.ACTIVITY_TYPE, "reenableIfArchived"): False,
}
"""The meaning of a field that was never declared."""

KEPT = frozenset({(Kind.TAG, "visibility")})
"""The fields that keep their value while no manifest declares them: silence hides nothing and opens nothing."""

OPENED = FieldChange("visibility", "PRIVATE", "PUBLIC")
"""The change of a tag from private (readable for authorized members) to public (readable for the whole team)."""

OUTSIDE = FieldChange("category", None, "")
"""The change of a tag that leaves whatever category people may have put it in."""

PUBLISHED = FieldChange("visibility", None, "PUBLIC")
"""The change of a tag of unknown visibility, which counts as private, to public."""

TAKEN_OUT = "leaves any category first: people may have put it into one that is deleted here"
REOPENED = "reopened: it was retired"
IMPORTED = "recorded by `state import`: whether the service has it is unknown"
RESTORED = "recorded by `state restore` from an earlier version: the service may have other content now"
REBUILT = "recorded by `state rebuild`: whether the service has it is unknown"
ID_UNKNOWN = "recorded by `state rebuild` without its id, which the service will return"
AGAIN: Mapping[Status, str] = {
    Status.RETIRED: "restored, then retired again",
    Status.RELEASED: "restored, then released again",
}
"""The reason for restoring a resource that was no longer managed, by its status."""
UNKNOWN_END = "sent again, since an earlier call failed or its outcome is unknown"

LEAVES_AS: Mapping[RemovalKind, Action] = {
    RemovalKind.FORGET: Action.FORGET,
    RemovalKind.RETIRE: Action.RETIRE,
    RemovalKind.DELETE: Action.DELETE,
    RemovalKind.CASCADE: Action.DELETE,
    RemovalKind.SWEEP: Action.DELETE,
}


def diff(recorded: Mapping[Key, Recorded], aim: Aim) -> Diff:
    """Compare the aim with the recorded rows (docs/planning.md 2.2, 2.3, 2.5)."""
    differences: list[Difference] = []
    records = [release(row) for row in aim.released]
    notes = list(aim.notes)
    unchanged = 0
    for key, resource in aim.desired.items():
        if key.kind is Kind.TAG and key not in recorded and key not in aim.renames:  # as most are in a large plan
            new = appearance(key, resource.body, resource.source)
            new = replace(new, fields=(*new.fields, OUTSIDE)) if resource.outside else new
            differences.append(Difference(new, None, resource))
            continue
        row = recorded.get(key)
        if row is not None and key not in aim.renames and _is_at_rest(row, resource):  # as most are in any plan
            unchanged += 1
            continue
        row = row_to_compare(key, recorded, aim.renames)
        formers = [recorded[former] for former in aim.renames.get(key, ())]
        change, record, remarks = _compare(row, recorded.get(key), resource, formers)
        notes += remarks
        if change is not None:
            differences.append(Difference(change, row or recorded.get(key), resource))
        else:
            unchanged += 1
        if record is not None:
            records.append(record)
    differences += [_departure(leaving) for leaving in aim.leaving.values()]
    records += [record for leaving in aim.leaving.values() if (record := _departure_record(leaving))]
    records += _members_renamed(recorded, aim)
    return Diff(tuple(differences), tuple(records), tuple(notes), unchanged)


def _is_at_rest(row: Recorded, resource: Resource) -> bool:
    """Return whether a row is certain and records exactly what is desired."""
    is_certain = row.confirmed and not row.doubtful and row.status is resource.status is Status.ACTIVE
    is_same = (row.body, row.source, row.protect) == (resource.body, resource.source, resource.protect)
    return is_certain and is_same and not resource.outside


def is_new(row: Recorded | None) -> bool:
    """Return whether the service is not known to hold the resource."""
    return row is None or not row.confirmed or not may_be_held(row)


def _compare(
    row: Recorded | None, own: Recorded | None, resource: Resource, formers: Sequence[Recorded]
) -> tuple[Change | None, Effect | None, Iterable[Note]]:
    """Return the change of a resource, the effect to record without a request in its `own` row, and notes."""
    fields, unsaid = _field_changes(row, resource)
    if opens := opened_by_rename(own, resource, formers):
        was_private = any(each.body.fields.get(OPENED.name) == OPENED.before for each in formers if is_private(each))
        first = OPENED if was_private or OPENED in fields else PUBLISHED
        fields = [first, *(each for each in fields if each.name != OPENED.name)]
    elif row is not None and is_private(row) and PUBLISHED in fields:
        opens = (row.key.name,)
    change = _change(row, resource, formers, fields, opens)
    notes = _field_notes(resource, fields, is_new(row) and not _revives(own, resource))
    unsent = [f for f in fields if f.effect is not FieldEffect.APPLIES]
    recordable = row is not None and own is not None and may_be_held(own)
    record = _record(own, resource, [*unsent, *unsaid], change) if own is not None and recordable else None
    return change, record, notes


def needs_upsert(change: Change, row: Recorded | None) -> bool:
    """Return whether the whole resource must be sent. Parts of a tag that the service holds have calls of their own."""
    return (
        change.key.kind is not Kind.TAG
        or change.action is Action.CREATE
        or bool(change.metadata_set)
        or any(f.effect is FieldEffect.APPLIES for f in change.fields)
        or row is None
        or row.doubtful
        or not row.confirmed
        or row.status not in (Status.ACTIVE, Status.RELEASED)
    )


def appearance(key: Key, says: Body | Effect, source: Source | None) -> Change:
    """Return the change that creates an unrecorded resource, all of whose content is new."""
    return Change(
        key=key,
        action=Action.CREATE,
        source=source,
        fields=tuple(_first_fields(key.kind, says.fields)),
        keywords_added=says.keywords,
        metadata_set=says.metadata,
        metadata_before=NO_METADATA,
    )


def _change(
    row: Recorded | None,
    resource: Resource,
    formers: Sequence[Recorded],
    fields: Iterable[FieldChange],
    opens: tuple[str, ...],
) -> Change | None:
    desired, before = resource.body, row.body if row else None
    gained = desired.keywords if before is None else _without(desired.keywords, before.keywords)
    dropped = () if before is None else _without(before.keywords, desired.keywords)
    metadata = {n: v for n, v in desired.metadata.items() if before is None or before.metadata.get(n) != v}
    unnamed = () if before is None else tuple(n for n in before.metadata if n not in desired.metadata)
    is_sent = any(f.effect is FieldEffect.APPLIES for f in fields)
    renames_category = bool(formers) and resource.key.kind is Kind.CATEGORY
    doubtful = row is not None and (row.doubtful or not row.confirmed)
    if not (row is None or doubtful or is_sent or gained or dropped or metadata or unnamed or renames_category):
        return None
    return Change(
        key=resource.key,
        action=Action.CREATE if is_new(row) and not renames_category else Action.UPDATE,
        source=resource.source,
        fields=tuple(fields),
        keywords_added=gained,
        keywords_deleted=dropped,
        metadata_set=metadata,
        metadata_deleted=unnamed,
        metadata_before={n: before.metadata[n] for n in (*metadata, *unnamed) if n in before.metadata}
        if before
        else {},
        reason=AGAIN.get(resource.status)
        or (_reason(row) if row is not None and (doubtful or row.status is Status.RETIRED) else None)
        or (TAKEN_OUT if resource.outside else None),
        previously=formers[0].key.name if formers else None,
        opens=opens or UNSET,
        merges=tuple(each.key.name for each in formers) if len(formers) > 1 else UNSET,
    )


def _reason(row: Recorded) -> str:
    if row.status is Status.RETIRED:
        return REOPENED
    if row.run and row.run.startswith(REBUILD):
        return ID_UNKNOWN if row.key.kind is Kind.CATEGORY and row.server_id is None else REBUILT
    causes = {IMPORT: IMPORTED, RESTORE: RESTORED}
    return next((why for begin, why in causes.items() if row.run and row.run.startswith(begin)), UNKNOWN_END)


def _without(keywords: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    excluded = set(others)
    return tuple(k for k in keywords if k not in excluded)


def opened_by_rename(own: Recorded | None, resource: Resource, formers: Sequence[Recorded]) -> tuple[str, ...]:
    """Return the names of private tags whose content a rename makes public.

    They are former names, and the resource's own name if it was private too. Return none when the service certainly
    shows the new name publicly with the same content already.
    """
    opens = resource.key.kind is Kind.TAG and bool(formers) and _visibility(own, resource) == OPENED.after
    private = [each.key.name for each in formers if opens and is_private(each) and _is_opened(each, own, resource)]
    names = [own.key.name, *private] if own is not None and is_private(own) else private
    return tuple(names) if private else ()


def _visibility(own: Recorded | None, resource: Resource) -> Value | None:
    """Return the visibility of a tag after its upsert. The service makes public what it creates without one."""
    kept = own.body.fields.get(OPENED.name) if own is not None and may_be_held(own) else OPENED.after
    return resource.body.fields.get(OPENED.name, kept)


def _is_opened(former: Recorded, own: Recorded | None, resource: Resource) -> bool:
    """Return whether the new name publishes content of a private former name.

    Of a protected former tag, which keeps its name, only shared content counts, or every later change would ask again.
    """
    if own is None or own.status is not Status.ACTIVE or not own.confirmed or own.doubtful or is_private(own):
        return True
    more = {*_readable(resource.body)} - {*_readable(own.body)}
    return bool(more & {*_readable(former.body)} if former.protect else more)


def _readable(body: Body) -> Iterator[tuple[str, Value]]:
    yield from shown(body)
    yield from (("keyword", keyword) for keyword in body.keywords)


# --- fields


def _field_changes(row: Recorded | None, resource: Resource) -> tuple[list[FieldChange], list[FieldChange]]:
    """Return the differences to show, and those that mean nothing to the service and are only recorded."""
    if row is None:
        return _first_fields(resource.key.kind, resource.body.fields), []
    before, after = row.body.fields, resource.body.fields
    visible: list[FieldChange] = []
    unsaid: list[FieldChange] = []
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name), after.get(name)
        if old == new or (new is None and (resource.key.kind, name) in KEPT):
            continue
        replaced = name in ALTERNATIVES and bool(after.get(ALTERNATIVES[name]))
        change = FieldChange(name, old, new, _effect(resource.key.kind, name, new, new=is_new(row)), replaced)
        (unsaid if _means_the_same(resource.key.kind, change) else visible).append(change)
    return [*visible, OUTSIDE] if resource.outside else visible, unsaid


def _first_fields(kind: Kind, fields: Mapping[str, Value]) -> list[FieldChange]:
    """Return the changes that set the fields of an unrecorded resource."""
    return [
        FieldChange(name, None, value) for name, value in fields.items() if value or not _is_unsaid(kind, name, value)
    ]


@lru_cache(maxsize=256, typed=True)  # typed, because False equals 0
def _is_unsaid(kind: Kind, name: str, value: Value) -> bool:
    """Return whether setting a field of an unrecorded resource to an empty value makes no difference to the service."""
    return _means_the_same(kind, FieldChange(name, None, value, _effect(kind, name, value, new=True)))


def _effect(kind: Kind, name: str, after: Value | None, *, new: bool) -> FieldEffect:
    if name in CREATE_ONLY[kind] and not new:
        return FieldEffect.CREATE_ONLY
    return FieldEffect.IGNORED if name in UNCLEARABLE[kind] and _is_nothing(after) else FieldEffect.APPLIES


def is_cleared(key: Key, name: str, before: Value | None, after: Value | None) -> bool:
    """Return whether the change of a field clears a value that the service holds."""
    change = FieldChange(name, before, after, _effect(key.kind, name, after, new=False))
    return change.clears and not _means_the_same(key.kind, change)


def is_sent(key: Key, name: str, before: Value | None, after: Value | None) -> bool:
    """Return whether a field's difference is sent to the service, which holds the resource."""
    change = FieldChange(name, before, after, _effect(key.kind, name, after, new=False))
    return before != after and change.effect is FieldEffect.APPLIES and not _means_the_same(key.kind, change)


def _means_the_same(kind: Kind, change: FieldChange) -> bool:
    """Return whether declaring a field, or no longer declaring it, makes no difference to the service.

    An empty value for a field that was never declared makes a difference: it clears a value that others may have set.
    """
    unsaid = UNSAID.get((kind, change.name))
    if change.after is None:
        return _is_nothing(change.before) or change.before == unsaid or (kind, change.name) in KEPT
    if change.before is None:
        return (unsaid is False and change.after is False) or change.effect is FieldEffect.IGNORED
    return change.effect is FieldEffect.IGNORED and _is_nothing(change.before)


def _is_nothing(value: Value | None) -> bool:
    return value is None or value == "" or value == ()


FIELD_NOTES: Mapping[FieldEffect, Callable[[FieldChange], str]] = {
    FieldEffect.CREATE_ONLY: lambda f: (
        f"{f.name}: not sent, because the service sets it only when it creates an activity type"
    ),
    FieldEffect.IGNORED: lambda f: f"{f.name}: the service cannot clear it and keeps the old value",
}


def _revives(row: Recorded | None, resource: Resource) -> bool:
    """Return whether the service revives a deleted activity type and offers it to users as before."""
    return row is not None and row.status is Status.DELETED and bool(resource.body.fields.get("reenableIfArchived"))


def _field_notes(resource: Resource, fields: Iterable[FieldChange], new: bool) -> Iterator[Note]:
    for change in fields:
        if tell := FIELD_NOTES.get(change.effect):
            yield Note(resource.key, change.effect.value, tell(change), resource.source)
    if new and resource.key.kind is Kind.ACTIVITY_TYPE and not resource.body.fields.get("enableIfNew"):
        message = "created but not offered to users: set `enableIfNew: true` to offer it"
        yield Note(resource.key, "not-enabled", message, resource.source)


def _record(row: Recorded, resource: Resource, unsent: Iterable[FieldChange], change: Change | None) -> Effect | None:
    """Return the effect to record without a request, or `None`: ignored fields, source, protection and ownership.

    A status that a call of the change will record is left out, so that nothing counts as managed before it is sent.
    """
    fields = {f.name: f.after for f in unsent if f.after is not None}
    cleared = tuple(f.name for f in unsent if f.after is None)
    is_let_go = row.status in AGAIN or resource.status in AGAIN
    is_sent = change is not None and (needs_upsert(change, row) or bool(change.keywords_added))
    status = resource.status if is_let_go and row.status is not resource.status and not is_sent else None
    if not (fields or cleared or status) and (row.source, row.protect) == (resource.source, resource.protect):
        return None
    return Effect(
        key=row.key,
        fields=fields,
        cleared=cleared,
        status=status,
        source=resource.source,
        protect=resource.protect,
    )


def _members_renamed(recorded: Mapping[Key, Recorded], aim: Aim) -> Iterator[Effect]:
    """Yield effects that record the members of a renamed category under its new name, without requests of their own.

    Members that this plan sends or that may have left are included: a run may end between the rename and their upserts.
    """
    renamed = {
        str(formers[0]): Effect(key=new, fields={"category": new.name}, former=formers[0])
        for new, formers in aim.renames.items()
        if new.kind is Kind.CATEGORY and new in aim.desired
    }
    if not renamed:
        return
    for key, row in recorded.items():
        if key.kind is Kind.TAG:
            yield from (replace(renamed[place], key=key) for place in row.category_references() if place in renamed)


# --- removals


def _departure(leaving: PlannedRemoval) -> Difference:
    row = leaving.row
    retires = leaving.own_way is RemovalKind.RETIRE
    change = Change(
        key=row.key,
        action=LEAVES_AS[leaving.way],
        source=row.source,
        keywords_deleted=row.body.keywords if retires else (),
        reason=leaving.reason,
        cause=leaving.cause,
        cascade=leaving.taken_by if leaving.way is RemovalKind.CASCADE else None,
        removed=row.body,
    )
    return Difference(change, row, leaving=leaving)


def _departure_record(leaving: PlannedRemoval) -> Effect | None:
    if leaving.way is RemovalKind.FORGET:
        return release(leaving.row)
    if leaving.way is RemovalKind.RETIRE and not leaving.row.body.keywords:
        return Effect(key=leaving.row.key, status=Status.RETIRED)
    return None
