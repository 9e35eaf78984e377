"""A `Recorded` resource ↔ a database row of plain values, and the digest of a `Recorded` resource; pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import NoneType
from typing import Any

import msgspec
import orjson

from syncengine.document.digest import sha256_of
from syncengine.resource import Body, Key, Kind, Recorded, Row, Source, Status, Value, category_references

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
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def from_json(text: str | None) -> dict[str, Any]:
    value = orjson.loads(text) if text else {}
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
        "body": to_json(content_of(body)),
    }


def content_of(body: Body) -> dict[str, object]:
    return {"fields": body.fields, "keywords": body.keywords, "metadata": body.metadata}


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
    kind, name, _, status, doubtful, confirmed, server_id, protect, former, file, line, *data, run, plan, body = row
    return Recorded(
        Key(KINDS[kind], name),
        _BODY.decode(body),
        STATUSES[status],
        doubtful,
        confirmed,
        server_id,
        None if file is None else Source(file, line, None if data[0] is None else Row(*data)),
        protect,
        tuple(_FORMER.decode(former)) if former else (),
        run,
        plan,
    )


def frozen(value: Any) -> Value:
    """Return a field's value from JSON, with a list converted to a tuple."""
    return tuple(value) if isinstance(value, list) else value


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
    return sha256_of(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS))[:32]
