"""Queries of recorded rows, in pieces that any database takes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from syncengine.resource import Key, Kind, Recorded, Status
from syncengine.state.codec import COLUMNS, KINDS, STATUSES, from_values
from syncengine.state.tables import MOVING, NAME, OPEN, ROWS

PIECE = 5000
"""Names looked up at a time."""

STREAM = 2000
"""Rows fetched at a time."""

Query = sa.Select[Any]

IN_FLIGHT = sa.exists().where(OPEN.c.kind == ROWS.c.kind, OPEN.c.name == ROWS.c.name)
"""Some call for the row was sent, or is about to be, and nobody knows what became of it."""

DOUBTFUL = sa.or_(ROWS.c.doubtful, IN_FLIGHT)

STORED: Query = sa.select(*(ROWS.c[name] for name in COLUMNS))
"""Rows with their own doubt only: what the verbs of the journal fold over."""

SEEN: Query = sa.select(*(DOUBTFUL.label("doubtful") if name == "doubtful" else ROWS.c[name] for name in COLUMNS))
"""Rows as everyone else sees them: an intent without an end is a doubt."""


def pieces(names: Sequence[str], size: int = PIECE) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]


def among(connection: sa.Connection, column: sa.Column[str], names: Sequence[str]) -> sa.ColumnElement[bool]:
    """Whether a column is one of these names, which go as one parameter: a statement of one length is prepared once."""
    if connection.dialect.name == "sqlite":
        listed = sa.func.json_each(json.dumps(names)).table_valued("value")
        return column.in_(sa.select(listed.c.value))
    return column == sa.any_(sa.literal(list(names), postgresql.ARRAY(NAME)))


def keyed(connection: sa.Connection, table: sa.Table, keys: Iterable[Key]) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions that together find the keys, each once, in pieces."""
    for kind, piece in by_kind(keys):
        yield sa.and_(table.c.kind == kind.value, among(connection, table.c.name, piece))


def by_kind(keys: Iterable[Key]) -> Iterator[tuple[Kind, Sequence[str]]]:
    """The names of each kind, each once, in pieces."""
    names = defaultdict(set)
    for key in keys:
        names[key.kind].add(key.name)
    for kind, of_kind in names.items():
        for piece in pieces(sorted(of_kind)):
            yield kind, piece


def fetch(connection: sa.Connection, keys: Iterable[Key], query: Query = STORED) -> dict[Key, Recorded]:
    """The rows of these keys that are recorded."""
    found = (row for part in keyed(connection, ROWS, keys) for row in connection.execute(query.where(part)))
    return {recorded.key: recorded for recorded in map(from_values, found)}


def stream(connection: sa.Connection, kind: Kind | None) -> Iterator[Recorded]:
    """All rows, or a kind's, by kind and name."""
    query = SEEN.order_by(ROWS.c.kind, ROWS.c.name)
    if kind is not None:
        query = query.where(ROWS.c.kind == kind.value)
    return map(from_values, connection.execution_options(yield_per=STREAM).execute(query))


def members(connection: sa.Connection, categories: Iterable[str]) -> list[Recorded]:
    """Tags that the service may still hold in one of these categories, by name."""
    references = _references(connection, [Key(Kind.CATEGORY, name) for name in categories])
    held = SEEN.where(ROWS.c.kind == Kind.TAG.value, sa.or_(ROWS.c.status != Status.DELETED.value, DOUBTFUL))
    said = [among(connection, ROWS.c.category, piece) for piece in pieces(sorted(references))]
    found = (from_values(row) for part in (*said, MOVING) for row in connection.execute(held.where(part)))
    tags = {tag.key: tag for tag in found if not references.isdisjoint(tag.category_references())}
    return [tags[key] for key in sorted(tags)]


def _references(connection: sa.Connection, categories: Sequence[Key]) -> set[str]:
    """How tags may refer to these categories: by externalId, or by the server's id."""
    ids = {f"id/{row.server_id}" for row in fetch(connection, categories).values() if row.server_id}
    return ids.union(map(str, categories))


def counts(connection: sa.Connection) -> dict[tuple[Kind, Status], int]:
    query = sa.select(ROWS.c.kind, ROWS.c.status, sa.func.count()).group_by(ROWS.c.kind, ROWS.c.status)
    return {(KINDS[kind], STATUSES[status]): count for kind, status, count in connection.execute(query)}
