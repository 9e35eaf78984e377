"""The effects of calls on resources, folded into recorded rows.

Pure. `intended` records the additions of a call before it is sent, `settled` records its
removals once it is acknowledged: at every instant a recorded row has at least all that the service may hold.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from syncengine.resource import Body, Key, Kind, Recorded, Source, Status, Value, category_references


class Effect(Struct, frozen=True, gc=False, kw_only=True):
    """The effect on `key` of a call, once it is acknowledged.

    `fields`, `keywords` and `metadata` are added (written by intend); `cleared`, `keywords_dropped` and
    `metadata_dropped` are no longer held (written by settle). `status` is the status afterwards; DELETED is written by
    intend already, since a row whose deletion is under way may be gone. `whole`: the call carries the whole resource,
    so that its acknowledgement ends any doubt. `former`: in a category's rename the key whose server id it takes over,
    in the record of one of its members that same key. `unsure`: the status afterwards where nobody knows whether the
    call reaches this resource, since it may have left the category that is deleted; its row stays in doubt. `source`
    and `protect` say where the resource is declared now.
    """

    key: Key
    fields: Mapping[str, Value] = field(default_factory=dict)
    cleared: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    keywords_dropped: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    metadata_dropped: tuple[str, ...] = ()
    status: Status | None = None
    whole: bool = False
    former: Key | None = None
    unsure: Status | None = None
    source: Source | None = None
    protect: bool | None = None

    def says_something(self, row: Recorded | None) -> bool:
        """Whether it means more than another place in the manifests."""
        protects = self.protect is not None and row is not None and row.protect != self.protect
        return bool(self.fields or self.cleared or self.status or protects)


def intended(row: Recorded | None, leave: Effect) -> Recorded:
    """Return the row as it is written before the call is sent.

    No flag of doubt is set: an intent in the journal without an outcome is the doubt.
    """
    if row is None:
        return _appearing(leave)
    if leave.former is not None and leave.former.kind is not leave.key.kind:
        return _in_renamed(row, leave, leave.former)
    body = _added(row.body, leave) if leave.fields or leave.keywords or leave.metadata else row.body
    return replace(
        row,
        body=body,
        status=_status_intended(row, leave),
        source=leave.source or row.source,
        protect=row.protect if leave.protect is None else leave.protect,
        former_categories=_left_behind(row, body),
    )


def _in_renamed(row: Recorded, leave: Effect, former: Key) -> Recorded:
    """A tag that may be in a category may be in it by its new name; one that has left it for good is elsewhere."""
    body = _added(row.body, leave) if row.body.fields.get("category") == former.name else row.body
    now, renamed = category_references(body.fields), category_references(leave.fields)
    left = (reference for old in row.former_categories for reference in (renamed if old == str(former) else (old,)))
    return replace(row, body=body, former_categories=tuple(dict.fromkeys(r for r in left if r not in now)))


def _added(body: Body, leave: Effect) -> Body:
    existing = set(body.keywords)
    return Body(
        fields={**body.fields, **leave.fields},
        keywords=body.keywords + tuple(k for k in leave.keywords if k not in existing),
        metadata={**body.metadata, **leave.metadata},
    )


def _appearing(leave: Effect) -> Recorded:
    """The first that is known of a resource."""
    return Recorded(
        leave.key,
        Body(leave.fields, leave.keywords, leave.metadata),
        leave.status if leave.status in (Status.DELETED, Status.RELEASED) else Status.ACTIVE,
        source=leave.source,
        protect=bool(leave.protect),
    )


def _left_behind(before: Recorded, body: Body) -> tuple[str, ...]:
    """A tag is in its old category until a move is acknowledged; deleting that category would take it along."""
    now = category_references(body.fields)
    return tuple(dict.fromkeys(r for r in before.category_references() if r not in now))


def _status_intended(before: Recorded, leave: Effect) -> Status:
    if leave.status in (Status.DELETED, Status.RELEASED, before.status):
        return leave.status
    return Status.ACTIVE if leave.whole else before.status


def settled(row: Recorded, leave: Effect) -> Recorded:
    """The row after a 2xx. A deleted activity type is archived: its fields come back when it is revived."""
    if leave.unsure is not None:
        return replace(row, status=leave.unsure, doubtful=True)
    if leave.status is Status.DELETED:
        return replace(
            row,
            body=row.body if row.key.kind is Kind.ACTIVITY_TYPE else Body(),
            status=Status.DELETED,
            doubtful=False,
            confirmed=False,
            server_id=None,
            protect=False,
            former_categories=(),
        )
    takes = leave.cleared or leave.keywords_dropped or leave.metadata_dropped
    return replace(
        row,
        body=_without(row.body, leave) if takes else row.body,
        status=leave.status or row.status,
        doubtful=row.doubtful and not leave.whole,
        confirmed=row.confirmed or leave.whole,
        former_categories=() if leave.whole else row.former_categories,
    )


def _without(body: Body, leave: Effect) -> Body:
    cleared, keywords, metadata = set(leave.cleared), set(leave.keywords_dropped), set(leave.metadata_dropped)
    return Body(
        fields={n: v for n, v in body.fields.items() if n not in cleared},
        keywords=tuple(k for k in body.keywords if k not in keywords),
        metadata={n: v for n, v in body.metadata.items() if n not in metadata},
    )
