"""The effects of calls on resources, folded into recorded rows.

Pure. `intended` records the additions of a call before it is sent, and `settled` its removals once it is acknowledged,
so that a recorded row contains at least everything that the service may hold at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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

    `fields`, `keywords` and `metadata` are added (written by intend, but that a tag was made public by settle);
    `cleared`, `keywords_dropped` and `metadata_dropped` are removed (written by settle). `status` is the status
    afterwards; DELETED is written by intend, because a resource whose deletion is under way may be gone. `whole` means
    that the call carries the whole resource, so that its acknowledgement ends any doubt, but for what the row of a tag
    holds beyond it and later calls delete. `rest` is what a tag in doubt holds after these: the one that leaves no more
    ends the doubt. `former` is the old key of a renamed category, whose server id the new category takes over; effects
    on its tags have it, too. `unsure` is the status afterwards where the call may miss the resource, since it may have
    left the deleted category; its row stays in doubt. Without a `status`, nobody knows that the resource is in that
    category at all. `source` and `protect` are those of the current declaration.
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
    rest: Body | None = None
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
        return Recorded(
            effect.key,
            _created(Body(effect.fields, effect.keywords, effect.metadata), effect),
            effect.status if effect.status in (Status.DELETED, Status.RELEASED) else Status.ACTIVE,
            source=effect.source,
            protect=bool(effect.protect),
        )
    if effect.former is not None and effect.former.kind is not effect.key.kind:
        # A tag whose category is renamed: every reference to the old name is renamed.
        body = _added(row.body, effect) if row.body.fields.get("category") == effect.former.name else row.body
        renamed = category_references(effect.fields)
        references = (renamed if old == str(effect.former) else (old,) for old in row.former_categories)
        return replace(row, body=body, former_categories=_elsewhere((r for each in references for r in each), body))
    body = _added(row.body, effect) if effect.fields or effect.keywords or effect.metadata else row.body
    body = _created(body, effect) if row.status is Status.DELETED and not row.doubtful else body
    status = Status.ACTIVE if effect.whole else row.status
    return replace(
        row,
        body=body,
        status=effect.status if effect.status in (Status.DELETED, Status.RELEASED, row.status) else status,
        source=effect.source or row.source,
        protect=row.protect if effect.protect is None else effect.protect,
        # A tag may still be in its categories until its move to another one is acknowledged.
        former_categories=_elsewhere(row.category_references(), body),
    )


def _added(body: Body, effect: Effect) -> Body:
    existing, fields = set(body.keywords), effect.fields
    if _opens(body, effect):  # written by settle: until then the tag may be private, and counts as such
        fields = {name: value for name, value in fields.items() if name != "visibility"}
    return Body(
        fields={**body.fields, **fields},
        keywords=body.keywords + tuple(k for k in effect.keywords if k not in existing),
        metadata={**body.metadata, **effect.metadata},
    )


def _opens(body: Body, effect: Effect) -> bool:
    """Return whether a call makes a tag public that is not known to be."""
    return effect.whole and effect.fields.get("visibility") == "PUBLIC" != body.fields.get("visibility")


def _created(body: Body, effect: Effect) -> Body:
    """Return the body of what a call creates: the service makes a tag public that says nothing of its visibility.

    Rows that were recorded in another way stay without it: who can read their tags is unknown (docs/planning.md 5).
    """
    if not effect.whole or effect.key.kind is not Kind.TAG or "visibility" in body.fields:
        return body
    return replace(body, fields={**body.fields, "visibility": "PUBLIC"})


def _elsewhere(references: Iterable[str], body: Body) -> tuple[str, ...]:
    """Return references to categories, without repeats and without those of the body itself."""
    now = category_references(body.fields)
    return tuple(dict.fromkeys(reference for reference in references if reference not in now))


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
    body, former = row.body, row.former_categories
    if effect.cleared or effect.keywords_dropped or effect.metadata_dropped:
        cleared, keywords, metadata = set(effect.cleared), set(effect.keywords_dropped), set(effect.metadata_dropped)
        body = Body(
            fields={name: value for name, value in body.fields.items() if name not in cleared},
            keywords=tuple(keyword for keyword in body.keywords if keyword not in keywords),
            metadata={name: value for name, value in body.metadata.items() if name not in metadata},
        )
    if _opens(body, effect):
        body = replace(body, fields={**body.fields, "visibility": "PUBLIC"})
    if effect.whole:
        # The tag is where the upsert says; if it names no category, an unknown one is still possible.
        says = effect.fields.keys() & ALTERNATIVES.keys() or ALTERNATIVES.keys() & {*effect.cleared}
        former = (ANY_CATEGORY,) if ANY_CATEGORY in former and not says else ()
    return replace(
        row,
        body=body,
        status=effect.status or row.status,
        doubtful=row.doubtful and not _ends_doubt(body, effect),
        confirmed=row.confirmed or effect.whole,
        former_categories=former,
    )


def _ends_doubt(body: Body, effect: Effect) -> bool:
    """Return whether a row of this body holds nothing after the call of which it is unknown if the service has it."""
    rest = effect if effect.whole else effect.rest
    if rest is None or effect.key.kind is not Kind.TAG:
        return effect.whole
    return {*body.keywords} <= {*rest.keywords} and body.metadata.keys() <= rest.metadata.keys()
