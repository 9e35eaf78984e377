"""The effects of calls on resources, folded into recorded rows.

Pure. `intended` records the additions of a call before it is sent, and `settled` its removals once it is acknowledged,
so that a recorded row contains at least everything that the service may hold at any time.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from syncengine.resource import (
    ALTERNATIVES,
    ANY_CATEGORY,
    Body,
    Key,
    Kind,
    Recorded,
    Source,
    Status,
    Value,
    category_references,
)


class Effect(Struct, frozen=True, gc=False, kw_only=True):
    """The effect that an acknowledged call has on the resource `key`.

    `fields`, `keywords` and `metadata` are added (written by intend); `cleared`, `keywords_dropped` and
    `metadata_dropped` are removed (written by settle). `status` is the status afterwards; DELETED is written by intend,
    because a resource whose deletion is under way may be gone. `whole` means that the call carries the whole resource,
    so that its acknowledgement ends any doubt. `former` is the old key of a renamed category, whose server id the new
    category takes over; effects on its tags have it, too. `unsure` is the status afterwards where the call may miss the
    resource, since it may have left the deleted category; its row stays in doubt. Without a `status`, nobody knows
    that the resource is in that category at all. `source` and `protect` are those of the current declaration.
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

    @property
    def is_possible(self) -> bool:
        """Whether the call has this effect only if people put the tag into the category that it deletes."""
        return self.unsure is not None and self.status is None

    def says_something(self, row: Recorded | None) -> bool:
        """Return whether the effect changes more than the place of declaration."""
        protects = self.protect is not None and row is not None and row.protect != self.protect
        return bool(self.fields or self.cleared or self.status or protects)


def intended(row: Recorded | None, effect: Effect) -> Recorded:
    """Return the row to write before the call is sent. `row` is `None` for a new resource.

    The row is not marked doubtful: an intent without an outcome in the journal expresses the doubt.
    """
    if row is None:
        return _appearing(effect)
    if effect.former is not None and effect.former.kind is not effect.key.kind:
        return _in_renamed(row, effect, effect.former)
    body = _added(row.body, effect) if effect.fields or effect.keywords or effect.metadata else row.body
    body = _created(body, effect) if row.status is Status.DELETED and not row.doubtful else body
    return replace(
        row,
        body=body,
        status=_status_intended(row, effect),
        source=effect.source or row.source,
        protect=row.protect if effect.protect is None else effect.protect,
        former_categories=_left_behind(row, body),
    )


def _in_renamed(row: Recorded, effect: Effect, former: Key) -> Recorded:
    """Return the row of a tag when its category `former` is renamed. Every reference to the old name is renamed."""
    body = _added(row.body, effect) if row.body.fields.get("category") == former.name else row.body
    now, renamed = category_references(body.fields), category_references(effect.fields)
    remaining = (
        reference for old in row.former_categories for reference in (renamed if old == str(former) else (old,))
    )
    return replace(row, body=body, former_categories=tuple(dict.fromkeys(r for r in remaining if r not in now)))


def _added(body: Body, effect: Effect) -> Body:
    existing = set(body.keywords)
    return Body(
        fields={**body.fields, **effect.fields},
        keywords=body.keywords + tuple(k for k in effect.keywords if k not in existing),
        metadata={**body.metadata, **effect.metadata},
    )


def _appearing(effect: Effect) -> Recorded:
    """Return the first row of a resource."""
    return Recorded(
        effect.key,
        _created(Body(effect.fields, effect.keywords, effect.metadata), effect),
        effect.status if effect.status in (Status.DELETED, Status.RELEASED) else Status.ACTIVE,
        source=effect.source,
        protect=bool(effect.protect),
    )


def _created(body: Body, effect: Effect) -> Body:
    """Return the body of what a call creates: the service makes a tag public that says nothing of its visibility.

    Rows that were recorded in another way stay without it: who can read their tags is unknown (docs/planning.md 5).
    """
    if not effect.whole or effect.key.kind is not Kind.TAG or "visibility" in body.fields:
        return body
    return replace(body, fields={**body.fields, "visibility": "PUBLIC"})


def _left_behind(before: Recorded, body: Body) -> tuple[str, ...]:
    """Return references to categories that a tag may still be in, until its move to another one is acknowledged."""
    now = category_references(body.fields)
    return tuple(dict.fromkeys(r for r in before.category_references() if r not in now))


def _status_intended(before: Recorded, effect: Effect) -> Status:
    if effect.status in (Status.DELETED, Status.RELEASED, before.status):
        return effect.status
    return Status.ACTIVE if effect.whole else before.status


def settled(row: Recorded, effect: Effect) -> Recorded:
    """Return the row to write after a 2xx. A deleted activity type keeps its fields, which a revival restores."""
    if effect.unsure is not None:
        return replace(row, status=effect.unsure, doubtful=True)
    if effect.status is Status.DELETED:
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
    takes = effect.cleared or effect.keywords_dropped or effect.metadata_dropped
    return replace(
        row,
        body=_without(row.body, effect) if takes else row.body,
        status=effect.status or row.status,
        doubtful=row.doubtful and not effect.whole,
        confirmed=row.confirmed or effect.whole,
        former_categories=_still_possible(row, effect) if effect.whole else row.former_categories,
    )


def _still_possible(row: Recorded, effect: Effect) -> tuple[str, ...]:
    """Return the category that is still possible after an upsert: any, if it is unknown and the upsert names none."""
    says = effect.fields.keys() & ALTERNATIVES.keys() or ALTERNATIVES.keys() & {*effect.cleared}
    return (ANY_CATEGORY,) if ANY_CATEGORY in row.former_categories and not says else ()


def _without(body: Body, effect: Effect) -> Body:
    cleared, keywords, metadata = set(effect.cleared), set(effect.keywords_dropped), set(effect.metadata_dropped)
    return Body(
        fields={n: v for n, v in body.fields.items() if n not in cleared},
        keywords=tuple(k for k in body.keywords if k not in keywords),
        metadata={n: v for n, v in body.metadata.items() if n not in metadata},
    )
