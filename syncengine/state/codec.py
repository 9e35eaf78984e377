"""A `Recorded` resource ↔ a database row of plain values, and the digest of a `Recorded` resource; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

Values = tuple[Any, ...]
"""The values of a row in the order of `COLUMNS`."""

_BODY = msgspec.json.Decoder(Body)
_FORMER = msgspec.json.Decoder(tuple[str, ...])

KINDS = {kind.value: kind for kind in Kind}
STATUSES = {status.value: status for status in Status}
WORDS: Mapping[Kind | Status, str] = {each: each.value for each in (*Kind, *Status)}
"""The plain text of each enum member, which a driver binds faster than the member."""
NO_SOURCE = (None, None, None)
NO_DATA = (None, None)
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


def to_values(recorded: Recorded, run: str | None, plan: str | None) -> Values:
    """Convert a resource to a row of the table, with the run and plan that write it.

    `category` repeats a tag's first category reference, so that an index finds the members of a category. `former` is
    `None` if that is the only reference.
    """
    (kind, name), body, former = recorded.key, recorded.body, recorded.former_categories
    file, line, data = recorded.source or NO_SOURCE
    references = (*category_references(body.fields), *former) if kind is Kind.TAG else ()
    return (
        WORDS[kind],
        name,
        references[0] if references else None,
        WORDS[recorded.status],
        recorded.doubtful,
        recorded.confirmed,
        recorded.server_id,
        recorded.protect,
        to_json(former) if len(references) > 1 or former else None,
        file,
        line,
        *(data or NO_DATA),
        run,
        plan,
        to_json({"fields": body.fields, "keywords": body.keywords, "metadata": body.metadata}),
    )


Content = tuple[Key, Status, bool, Body]
"""The key, the status, the doubt and the body of a row."""

_FLAG = (bool, int)

CONTENT = ("kind", "name", "status", "doubtful", "body")
"""The columns of a `Content`."""


def content_from(row: Sequence[Any]) -> Content:
    """Convert a row in the order of `CONTENT`. Raise `ValueError` or `KeyError` for a damaged row."""
    kind, name, status, is_doubtful, body = row
    if type(is_doubtful) not in _FLAG or type(body) is not str or type(name) is not str:
        raise ValueError("a column has a value of the wrong type")
    return Key(KINDS[kind], name), STATUSES[status], bool(is_doubtful), _BODY.decode(body)


TYPES: Sequence[tuple[type, ...]] = (
    *((str,), (str,), (str, NoneType), (str,), (bool, int), (bool, int), (str, NoneType), (bool, int)),
    *((str, NoneType), (str, NoneType), (int, NoneType), (str, NoneType), (int, NoneType)),
    *((str, NoneType), (str, NoneType), (str,)),
)
"""The types allowed in each column: SQLite may return any type from any column once its file is damaged."""


@cache
def _fits(types: tuple[type, ...]) -> bool:
    return all(type_ in allowed for type_, allowed in zip(types, TYPES, strict=True))


def from_values(row: Sequence[Any]) -> Recorded:
    """Convert a row in the order of `COLUMNS` to a resource. Raise `ValueError` or `KeyError` for a damaged row."""
    if not _fits(tuple(map(type, row))):
        raise ValueError("a column has a value of the wrong type")
    kind, name, _, status, doubtful, confirmed, server_id, protect, former, *place, run, plan, body = row
    return Recorded(
        Key(KINDS[kind], name),
        _BODY.decode(body),
        STATUSES[status],
        doubtful,
        confirmed,
        server_id,
        _source(*place),
        protect,
        tuple(_FORMER.decode(former)) if former else (),
        run,
        plan,
    )


def _source(file: str | None, line: int, data_file: str | None, data_row: int) -> Source | None:
    if file is None:
        return None
    return Source(file, line, None if data_file is None else Row(data_file, data_row))


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
