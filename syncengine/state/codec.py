"""A `Recorded` resource ↔ a database row, its digest, and its differences before and after a change ↔ JSON; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from syncengine.content import sha256_of
from syncengine.document.json_text import canonical_json, decode_json
from syncengine.resource import Body, Key, Kind, Recorded, Row, Source, Status, Value, category_references, is_blank

COLUMNS = (
    "kind",
    "name",
    "category",
    "status",
    "doubtful",
    "confirmed",
    "server_id",
    "protect",
    "former",
    "file",
    "line",
    "data_file",
    "data_row",
    "run",
    "plan",
    "body",
)
"""The columns of a row, in the order of its values."""

_BODY = msgspec.json.Decoder(Body)
_FORMER = msgspec.json.Decoder(tuple[str, ...])

KINDS = {kind.value: kind for kind in Kind}
STATUSES = {status.value: status for status in Status}
ABSENT = "absent"
"""The digest of a resource that is not recorded."""


def to_json(value: object) -> str:
    """Return canonical JSON: names sorted, and no space between tokens."""
    return canonical_json(value).decode()


def from_json(text: str | None) -> dict[str, Any]:
    value = decode_json(text) if text else {}
    if not isinstance(value, dict):
        raise ValueError("the text is not a JSON object")
    return value


def to_row(recorded: Recorded, run: str | None, plan: str | None) -> dict[str, Any]:
    """Convert a resource to a row of the table, with the run and plan that write it.

    `category` repeats a tag's first category reference, so that an index finds the members of a category. `former` is
    `None` if that is the only reference.
    """
    (kind, name), body, former, source = recorded.key, recorded.body, recorded.former_categories, recorded.source
    references = (*category_references(body.fields), *former) if kind is Kind.TAG else ()
    return {
        "kind": kind.value,
        "name": name,
        "category": references[0] if references else None,
        "status": recorded.status.value,
        "doubtful": recorded.doubtful,
        "confirmed": recorded.confirmed,
        "server_id": recorded.server_id,
        "protect": recorded.protect,
        "former": to_json(former) if len(references) > 1 or former else None,
        "file": source and source.file,
        "line": source and source.line,
        "data_file": source and source.data and source.data.file,
        "data_row": source and source.data and source.data.row,
        "run": run,
        "plan": plan,
        "body": to_json(body),
    }


TYPES: Sequence[tuple[type, ...]] = (
    *((str,), (str,), (str, NoneType), (str,), (bool, int), (bool, int), (str, NoneType), (bool, int)),
    *((str, NoneType), (str, NoneType), (int, NoneType), (str, NoneType), (int, NoneType)),
    *((str, NoneType), (str, NoneType), (str,)),
)
"""The types allowed in each column: SQLite may return any type from any column once its file is damaged."""


@cache
def _fits(types: tuple[type, ...]) -> bool:
    return all(type_ in allowed for type_, allowed in zip(types, TYPES, strict=True))


def from_row(row: Sequence[Any]) -> Recorded:
    """Convert a row in the order of `COLUMNS` to a resource. Raise `ValueError` or `KeyError` for a damaged row."""
    if not _fits(tuple(map(type, row))):
        raise ValueError("a column has a value of the wrong type")
    kind, name, _, status, doubtful, confirmed, server_id, protect, former, file, line, data, at, run, plan, body = row
    return Recorded(
        Key(KINDS[kind], name),
        _BODY.decode(body),
        STATUSES[status],
        doubtful,
        confirmed,
        server_id,
        None if file is None else Source(file, line, None if data is None else Row(data, at)),
        protect,
        tuple(_FORMER.decode(former)) if former else (),
        run,
        plan,
    )


def digest(row: Recorded | None) -> str:
    """Return the digest of a row in a saved plan (docs/planning.md 6). It is equal for rows with the same meaning."""
    if row is None:
        return ABSENT
    body = row.body
    parts = (
        str(row.key),
        row.status.value,
        row.doubtful,
        row.server_id,
        row.protect,
        sorted(row.former_categories),
        body.fields,
        sorted(body.keywords),
        body.metadata,
    )
    return sha256_of(canonical_json(parts))[:32]


class Detail(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The differences between a row before and after a change. A field's pair has `None` where the field was absent.

    `metadata_before` maps each name that is set or deleted to its former value, `None` if it had none. `server_id` is
    the id that the row lost. As stored, the differences of a new row are its `body`.
    """

    fields: Mapping[str, tuple[Value | None, Value | None]] = field(default_factory=dict)
    keywords_added: tuple[str, ...] = field(default=(), name="added")
    keywords_deleted: tuple[str, ...] = field(default=(), name="deleted")
    metadata_set: Mapping[str, str] = field(default_factory=dict, name="set")
    metadata_deleted: tuple[str, ...] = field(default=(), name="unset")
    metadata_before: Mapping[str, str | None] = field(default_factory=dict, name="was")
    status: tuple[Status | None, Status] | None = None
    protect: tuple[bool, bool] | None = None
    server_id: str | None = field(default=None, name="id")
    message: str | None = None
    body: Body | None = None

    @property
    def changes_something(self) -> bool:
        """Whether the change alters the meaning of the row."""
        parts = (self.fields, self.keywords_added, self.keywords_deleted, self.metadata_set, self.metadata_deleted)
        return any(parts) or self.status is not None or self.protect is not None


_DETAIL = msgspec.json.Decoder(Detail)


class RowDifference(NamedTuple):
    """The differences of a row as JSON, `None` if there are none. `takes`: something may be lost by them."""

    detail: str | None
    takes: bool


class RemovalLine(NamedTuple):
    """A change that may record a loss. `is_sent`: by a call. `approved`: its run needed approval and had it."""

    at: float
    is_sent: bool
    key: Key
    detail: Detail
    approved: bool


def difference(before: Recorded | None, after: Recorded) -> RowDifference:
    """Return the differences of a row. Those of a new one are its body."""
    if before is None:
        return RowDifference(to_json(Detail(body=after.body, status=(None, after.status))), takes=False)
    old, new = before.body, after.body
    new_keywords, old_keywords = set(new.keywords), set(old.keywords)
    names = () if old.fields == new.fields else {**old.fields, **new.fields}
    metadata = () if old.metadata == new.metadata else {**old.metadata, **new.metadata}
    changed = [name for name in metadata if old.metadata.get(name) != new.metadata.get(name)]
    detail = Detail(
        fields={n: (old.fields.get(n), new.fields.get(n)) for n in names if old.fields.get(n) != new.fields.get(n)},
        keywords_added=tuple(keyword for keyword in new.keywords if keyword not in old_keywords),
        keywords_deleted=tuple(keyword for keyword in old.keywords if keyword not in new_keywords),
        metadata_set={name: new.metadata[name] for name in changed if name in new.metadata},
        metadata_deleted=tuple(name for name in changed if name not in new.metadata),
        metadata_before={name: old.metadata.get(name) for name in changed},
        status=(before.status, after.status) if before.status is not after.status else None,
        protect=(before.protect, after.protect) if before.protect != after.protect else None,
        server_id=before.server_id if before.server_id and not after.server_id else None,
    )
    values = (*(value for _, value in detail.fields.values()), *detail.metadata_set.values())
    takes = any(map(is_blank, values)) or bool(detail.status or detail.keywords_deleted or detail.metadata_deleted)
    text = to_json(detail)
    return RowDifference(None if text == "{}" else text, takes)


def detail_from(text: str | None) -> Detail:
    """Decode the differences of a change. Raise `ValueError` if they are damaged."""
    detail = _DETAIL.decode(text or "{}")
    if (body := detail.body) is None:
        return detail
    return msgspec.structs.replace(
        detail,
        fields={name: (None, value) for name, value in body.fields.items()},
        keywords_added=body.keywords,
        metadata_set=body.metadata,
        metadata_before=dict.fromkeys(body.metadata),
        body=None,
    )
