"""Compare the aim with the recorded rows, for changes, notes and rows to record without a request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from functools import cached_property

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
    row_to_compare,
    shown,
)
from syncengine.resource import (
    ALTERNATIVES,
    IMPORT,
    LET_GO,
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


WRITES = frozenset({Action.CREATE, Action.UPDATE})
REMOVALS = frozenset(Action) - WRITES


class SendCause(StrEnum):
    """The cause for which a recorded resource is sent, apart from what differs; its sentence only explains it."""

    RETIRED = "retired"
    RELEASED = "released"
    REOPENED = "reopened"
    IMPORTED = "imported"
    RESTORED = "restored"
    REBUILT = "rebuilt"
    ID_UNKNOWN = "id-unknown"
    UNKNOWN_END = "unknown-end"
    REASSERTED = "reasserted"
    TAKEN_OUT = "taken-out"


SENT_SINCE: Mapping[SendCause, str] = {
    SendCause.RETIRED: "restored, then retired again",
    SendCause.RELEASED: "restored, then released again",
    SendCause.REOPENED: "reopened: it was retired",
    SendCause.IMPORTED: "recorded by `state import`: whether the service has it is unknown",
    SendCause.RESTORED: "recorded by `state restore` from an earlier version: the service may have other content now",
    SendCause.REBUILT: "recorded by `state rebuild`: whether the service has it is unknown",
    SendCause.ID_UNKNOWN: "recorded by `state rebuild` without its id, which the service will return",
    SendCause.UNKNOWN_END: "sent again, since an earlier call failed or its outcome is unknown",
    SendCause.REASSERTED: "sent again (--reassert)",
    SendCause.TAKEN_OUT: "leaves any category first: people may have put it into one that is deleted here",
}

AGAIN: Mapping[Status, SendCause] = {Status.RETIRED: SendCause.RETIRED, Status.RELEASED: SendCause.RELEASED}
"""The cause of restoring a resource that was no longer managed, by its status."""
RECORDED_BY = {IMPORT: SendCause.IMPORTED, RESTORE: SendCause.RESTORED, REBUILD: SendCause.REBUILT}
"""The cause of sending a row in doubt that a command recorded, by the beginning of the run's id."""


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
    the `cause` of a removal, and of why a resource is sent `again`.
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
    again: SendCause | UnsetType = UNSET

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
    return replace(change, source=None, reason=None, cause=UNSET, again=UNSET)


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

ACTION_OF: Mapping[RemovalKind, Action] = {
    RemovalKind.FORGET: Action.FORGET,
    RemovalKind.RETIRE: Action.RETIRE,
    RemovalKind.DELETE: Action.DELETE,
    RemovalKind.CASCADE: Action.DELETE,
    RemovalKind.SWEEP: Action.DELETE,
}


def diff(recorded: Mapping[Key, Recorded], aim: Aim) -> Diff:
    """Compare the aim with the recorded rows (docs/planning.md 2.2, 2.3, 2.5)."""
    differences: list[Difference] = []
    records = [Effect(key=row.key, status=Status.RELEASED) for row in aim.released]
    notes = list(aim.notes)
    unchanged = 0
    for key, resource in aim.desired.items():
        own = recorded.get(key)
        if own is None and key.kind is Kind.TAG and key not in aim.renames:  # as most are in a large plan
            new = appearance(key, resource.body, resource.source)
            new = replace(new, fields=(*new.fields, OUTSIDE)) if resource.outside else new
            differences.append(Difference(new, None, resource))
            continue
        if own is not None and key not in aim.renames:  # as most are in any plan
            is_certain = own.confirmed and not own.doubtful and own.status is resource.status is Status.ACTIVE
            is_same = (own.body, own.source, own.protect) == (resource.body, resource.source, resource.protect)
            if is_certain and is_same and not resource.outside:
                unchanged += 1
                continue
        row = row_to_compare(key, recorded, aim.renames)
        formers = [recorded[former] for former in aim.renames.get(key, ())]
        change, record, remarks = _compare(row, own, resource, formers)
        notes += remarks
        if change is not None:
            differences.append(Difference(change, row or own, resource))
        else:
            unchanged += 1
        if record is not None:
            records.append(record)
    for leaving in aim.leaving.values():
        body = leaving.row.body
        change = Change(
            key=leaving.row.key,
            action=ACTION_OF[leaving.way],
            source=leaving.row.source,
            keywords_deleted=body.keywords if leaving.own_way is RemovalKind.RETIRE else (),
            reason=leaving.reason,
            cause=leaving.cause,
            cascade=leaving.taken_by if leaving.way is RemovalKind.CASCADE else None,
            removed=body,
        )
        differences.append(Difference(change, leaving.row, leaving=leaving))
        if leaving.way is RemovalKind.FORGET:
            records.append(Effect(key=leaving.row.key, status=Status.RELEASED))
        elif leaving.way is RemovalKind.RETIRE and not leaving.row.body.keywords:
            records.append(Effect(key=leaving.row.key, status=Status.RETIRED))
    # The members of a renamed category are recorded under its new name without requests of their own, also those that
    # this plan sends or that may have left: a run may end between the rename and their upserts.
    renamed = {
        str(formers[0]): Effect(key=new, fields={"category": new.name}, former=formers[0])
        for new, formers in aim.renames.items()
        if new.kind is Kind.CATEGORY and new in aim.desired
    }
    for key, row in recorded.items() if renamed else ():
        if key.kind is Kind.TAG:
            records += (replace(renamed[place], key=key) for place in row.category_references() if place in renamed)
    return Diff(tuple(differences), tuple(records), tuple(notes), unchanged)


def is_new(row: Recorded | None) -> bool:
    """Return whether the service is not known to hold the resource."""
    return row is None or not row.confirmed or not may_be_held(row)


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
        fields=_first_fields(key.kind, says.fields),
        keywords_added=says.keywords,
        metadata_set=says.metadata,
        metadata_before=NO_METADATA,
    )


def _compare(
    row: Recorded | None, own: Recorded | None, resource: Resource, formers: Sequence[Recorded]
) -> tuple[Change | None, Effect | None, list[Note]]:
    """Return the change of a resource, the effect to record without a request in its `own` row, and notes."""
    fields, unsaid = _field_changes(row, resource)
    opens = _opened_by_rename(own, resource, formers)
    if opens:
        was_private = any(each.body.fields.get(OPENED.name) == OPENED.before for each in formers if is_private(each))
        first = OPENED if was_private or OPENED in fields else PUBLISHED
        fields = [first, *(each for each in fields if each.name != OPENED.name)]
    elif row is not None and PUBLISHED in fields:
        opens = (row.key.name,)
    change = _change(row, resource, formers, fields, opens)
    notes = [
        Note(resource.key, each.effect.value, f"{each.name}: {FIELD_NOTES[each.effect]}", resource.source)
        for each in fields
        if each.effect in FIELD_NOTES
    ]
    says = resource.body.fields
    # The service offers an activity type that it revives to users as before.
    is_revived = own is not None and own.status is Status.DELETED and bool(says.get("reenableIfArchived"))
    is_type = resource.key.kind is Kind.ACTIVITY_TYPE
    if is_type and is_new(row) and not is_revived and not says.get("enableIfNew"):
        message = "created but not offered to users: set `enableIfNew: true` to offer it"
        notes.append(Note(resource.key, "not-enabled", message, resource.source))
    record = None
    if row is not None and own is not None and may_be_held(own):
        unsent = [*(each for each in fields if each.effect is not FieldEffect.APPLIES), *unsaid]
        record = _record(own, resource, unsent, change)
    return change, record, notes


def _change(
    row: Recorded | None,
    resource: Resource,
    formers: Sequence[Recorded],
    fields: Sequence[FieldChange],
    opens: tuple[str, ...],
) -> Change | None:
    """Return the change from the content of a row, nothing if there is none, or `None` when nothing is to send."""
    desired, before = resource.body, row.body if row else Body()
    had, has = set(before.keywords), set(desired.keywords)
    gained = tuple(keyword for keyword in desired.keywords if keyword not in had)
    dropped = tuple(keyword for keyword in before.keywords if keyword not in has)
    metadata = {name: value for name, value in desired.metadata.items() if before.metadata.get(name) != value}
    unnamed = tuple(name for name in before.metadata if name not in desired.metadata)
    is_sent = any(each.effect is FieldEffect.APPLIES for each in fields)
    renames_category = bool(formers) and resource.key.kind is Kind.CATEGORY
    doubtful = row is not None and (row.doubtful or not row.confirmed)
    if not (row is None or doubtful or is_sent or gained or dropped or metadata or unnamed or renames_category):
        return None
    again = AGAIN.get(resource.status)
    if again is None and row is not None and row.status is Status.RETIRED:
        again = SendCause.REOPENED
    elif again is None and row is not None and doubtful:
        begun = (cause for start, cause in RECORDED_BY.items() if row.run and row.run.startswith(start))
        again = next(begun, SendCause.UNKNOWN_END)
        if again is SendCause.REBUILT and row.key.kind is Kind.CATEGORY and row.server_id is None:
            again = SendCause.ID_UNKNOWN
    elif again is None and resource.outside:
        again = SendCause.TAKEN_OUT
    return Change(
        key=resource.key,
        action=Action.CREATE if is_new(row) and not renames_category else Action.UPDATE,
        source=resource.source,
        fields=tuple(fields),
        keywords_added=gained,
        keywords_deleted=dropped,
        metadata_set=metadata,
        metadata_deleted=unnamed,
        metadata_before={name: before.metadata[name] for name in (*metadata, *unnamed) if name in before.metadata},
        reason=SENT_SINCE[again] if again else None,
        again=again or UNSET,
        previously=formers[0].key.name if formers else None,
        opens=opens or UNSET,
        merges=tuple(each.key.name for each in formers) if len(formers) > 1 else UNSET,
    )


def _opened_by_rename(own: Recorded | None, resource: Resource, formers: Sequence[Recorded]) -> tuple[str, ...]:
    """Return the names of private tags whose content a rename makes public.

    They are former names, and the resource's own name if it was private too. Return none when the service certainly
    shows the new name publicly with the same content already.
    """
    # The service makes public what it creates without a visibility, and keeps that of a tag that it holds.
    kept = own.body.fields.get(OPENED.name) if own is not None and may_be_held(own) else OPENED.after
    if resource.key.kind is not Kind.TAG or resource.body.fields.get(OPENED.name, kept) != OPENED.after:
        return ()
    is_public = own is not None and own.status is Status.ACTIVE and own.confirmed and not own.doubtful

    def readable(body: Body) -> set[tuple[str, Value]]:
        return {*shown(body), *(("keyword", keyword) for keyword in body.keywords)}

    private = []
    for former in filter(is_private, formers):
        if own is not None and is_public and not is_private(own):
            more = readable(resource.body) - readable(own.body)
            # Of a protected former tag, which keeps its name, only shared content counts, or every later change would
            # ask again.
            if not (more & readable(former.body) if former.protect else more):
                continue
        private.append(former.key.name)
    names = [own.key.name, *private] if own is not None and is_private(own) else private
    return tuple(names) if private else ()


def _record(row: Recorded, resource: Resource, unsent: Iterable[FieldChange], change: Change | None) -> Effect | None:
    """Return the effect to record without a request, or `None`: ignored fields, source, protection and ownership.

    A status that a call of the change will record is left out, so that nothing counts as managed before it is sent.
    """
    fields = {f.name: f.after for f in unsent if f.after is not None}
    cleared = tuple(f.name for f in unsent if f.after is None)
    is_let_go = row.status in LET_GO or resource.status in LET_GO
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


# --- fields


FIELD_NOTES: Mapping[FieldEffect, str] = {
    FieldEffect.CREATE_ONLY: "not sent, because the service sets it only when it creates an activity type",
    FieldEffect.IGNORED: "the service cannot clear it and keeps the old value",
}


def _field_changes(row: Recorded | None, resource: Resource) -> tuple[list[FieldChange], list[FieldChange]]:
    """Return the differences to show, and those that mean nothing to the service and are only recorded."""
    kind, after = resource.key.kind, resource.body.fields
    if row is None:
        return [*_first_fields(kind, after)], []
    before = row.body.fields
    visible: list[FieldChange] = []
    unsaid: list[FieldChange] = []
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name), after.get(name)
        if old == new or (new is None and (kind, name) in KEPT):
            continue
        replaced = name in ALTERNATIVES and bool(after.get(ALTERNATIVES[name]))
        change = field_change(kind, name, old, new, new=is_new(row), replaced=replaced)
        if change is None:
            unsaid.append(FieldChange(name, old, new))
        else:
            visible.append(change)
    return [*visible, OUTSIDE] if resource.outside else visible, unsaid


def _first_fields(kind: Kind, fields: Mapping[str, Value]) -> tuple[FieldChange, ...]:
    """Return the changes that set the fields of an unrecorded resource, of which nearly all have a value."""
    changes = (
        FieldChange(name, None, value) if value else field_change(kind, name, None, value, new=True)
        for name, value in fields.items()
    )
    return tuple(change for change in changes if change is not None)


def field_change(
    kind: Kind, name: str, before: Value | None, after: Value | None, *, new: bool = False, replaced: bool = False
) -> FieldChange | None:
    """Return the change of a field, or `None` where declaring it, or no longer declaring it, changes nothing.

    `None` as a value means that the field is not declared. `new`: the service is not known to hold the resource. An
    empty value for a field that was never declared is a change: it clears a value that others may have set.
    """
    nothing: tuple[Value | None, ...] = (None, "", ())
    effect = FieldEffect.APPLIES
    if name in CREATE_ONLY[kind] and not new:
        effect = FieldEffect.CREATE_ONLY
    elif name in UNCLEARABLE[kind] and after in nothing:
        effect = FieldEffect.IGNORED
    is_ignored = effect is FieldEffect.IGNORED
    unsaid = UNSAID.get((kind, name))
    if after is None:
        means_nothing = before in nothing or before == unsaid or (kind, name) in KEPT
    elif before is None:
        means_nothing = is_ignored or (unsaid is False and after is False)
    else:
        means_nothing = is_ignored and before in nothing
    return None if means_nothing else FieldChange(name, before, after, effect, replaced)


def is_cleared(key: Key, name: str, before: Value | None, after: Value | None) -> bool:
    """Return whether the change of a field clears a value that the service holds."""
    change = field_change(key.kind, name, before, after)
    return change is not None and change.clears


def is_sent(key: Key, name: str, before: Value | None, after: Value | None) -> bool:
    """Return whether a field's difference is sent to the service, which holds the resource."""
    change = field_change(key.kind, name, before, after)
    return before != after and change is not None and change.effect is FieldEffect.APPLIES
