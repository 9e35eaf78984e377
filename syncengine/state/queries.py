"""Query recorded rows, in pieces of a size that every database accepts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from syncengine.resource import Key, Kind, Recorded, Status
from syncengine.state.codec import COLUMNS, CONTENT, Content, content_from, from_values, to_json
from syncengine.state.tables import MOVING, ROWS

PIECE = 5000
"""The number of names looked up at a time."""

STREAM = 2000
"""The number of rows fetched at a time."""

Query = sa.Select[Any]
Change = sa.Update | sa.Delete

STORED: Query = sa.select(*(ROWS.c[name] for name in COLUMNS))
"""The query for rows as stored, without doubts from calls in flight, for the verbs of the journal."""

CHAINED: Query = STORED.add_columns(ROWS.c.entry)
"""The query for stored rows, each with the id of the last packed journal line about it."""

IN_FLIGHT = {
    "sqlite": "(state_rows.kind || '/' || state_rows.name)"
    " IN (SELECT o.kind || '/' || n.value FROM state_open o, json_each(o.names) n)",
    "postgresql": '(state_rows.kind, state_rows.name) IN (SELECT o.kind, n.value COLLATE "C"'
    " FROM state_open o, json_array_elements_text(CAST(o.names AS json)) AS n(value))",
}
"""By dialect, the condition that a row is in flight. Its subquery runs once per statement: with a pair of columns in
place of a joined text, SQLite would scan all open keys for each row that is not open."""


def in_flight(dialect: str) -> sa.ColumnElement[bool]:
    """Return the condition that a call for the row was sent, or is about to be, and has no known outcome.

    It belongs in the statement that reads the rows: in PostgreSQL, a call may begin between two statements.
    """
    return sa.literal_column(IN_FLIGHT[dialect], sa.Boolean)


def doubtful(dialect: str) -> sa.ColumnElement[bool]:
    return sa.or_(ROWS.c.doubtful, in_flight(dialect))


@cache
def visible_rows(dialect: str) -> Query:
    """Return the query for rows as readers see them, where an intent without an end makes a row doubtful."""
    is_doubtful = doubtful(dialect).label("doubtful")
    return sa.select(*(is_doubtful if name == "doubtful" else ROWS.c[name] for name in COLUMNS))


@cache
def _in_order(dialect: str, kind: Kind | None) -> Query:
    """Return the query for all rows or those of a kind, ordered by kind and name. Cached, as it is used often."""
    query = visible_rows(dialect).order_by(ROWS.c.kind, ROWS.c.name)
    return query if kind is None else query.where(ROWS.c.kind == kind.value)


def pieces(names: Sequence[str], size: int = PIECE) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]


AMONG = {
    "sqlite": "{column} IN (SELECT value FROM json_each(:of_names))",
    "postgresql": "{column} = ANY(CAST(:of_names AS TEXT[]))",
}
"""By dialect, the condition that a column is one of many names, given as one parameter so that the SQL never varies."""


def execute_among(
    connection: sa.Connection, statement: Query | Change, column: sa.Column[str], names: Sequence[str], **values: object
) -> sa.CursorResult[*tuple[Any, ...]]:
    """Execute a constant statement for the rows whose column is one of `names`. `values` are its other parameters."""
    dialect = connection.dialect.name
    of_names = to_json(names) if dialect == "sqlite" else list(names)
    return connection.execute(_among(statement, column, dialect), {**values, "of_names": of_names})


def execute_keyed(
    connection: sa.Connection,
    statement: Query | Change,
    table: sa.Table,
    kind: Kind,
    names: Sequence[str],
    **values: object,
) -> sa.CursorResult[*tuple[Any, ...]]:
    """Execute a constant statement for the rows of one kind with these names. `values` are its other parameters."""
    of_kind = _of_kind(statement, table)
    return execute_among(connection, of_kind, table.c.name, names, of_kind=kind.value, **values)


def select_keyed(
    connection: sa.Connection, query: Query, table: sa.Table, keys: Iterable[Key]
) -> Iterator[sa.Row[*tuple[Any, ...]]]:
    """Yield the rows that a constant query finds for `keys`, queried in pieces. Repeated keys count once."""
    for kind, piece in by_kind(keys):
        yield from execute_keyed(connection, query, table, kind, piece)


def change_keyed(
    connection: sa.Connection, change: Change, table: sa.Table, keys: Iterable[Key], **values: object
) -> None:
    """Execute a constant change for `keys`, in pieces. `values` are the columns' new values."""
    for kind, piece in by_kind(keys):
        execute_keyed(connection, change, table, kind, piece, **values)


# Building a statement, and finding its compiled form in SQLAlchemy, takes as long as executing it.
@cache
def _among(statement: Query | Change, column: sa.Column[str], dialect: str) -> Query | Change:
    return statement.where(sa.text(AMONG[dialect].format(column=column)))


@cache
def _of_kind(statement: Query | Change, table: sa.Table) -> Query | Change:
    return statement.where(table.c.kind == sa.bindparam("of_kind"))


def by_kind(keys: Iterable[Key]) -> Iterator[tuple[Kind, Sequence[str]]]:
    """Yield the names of each kind in pieces, without repetitions."""
    names: defaultdict[Kind, dict[str, None]] = defaultdict(dict)
    for kind, name in keys:
        names[kind][name] = None
    for kind, of_kind in names.items():
        for piece in pieces(list(of_kind)):
            yield kind, piece


def is_empty(connection: sa.Connection) -> bool:
    """Return whether no row is recorded."""
    return connection.execute(_ANY_ROW).first() is None


_ANY_ROW = sa.select(ROWS.c.kind).limit(1)


def fetch(connection: sa.Connection, keys: Iterable[Key], query: Query = STORED) -> dict[Key, Recorded]:
    """Return the recorded rows of `keys`. Keys that are not recorded are left out."""
    return {recorded.key: recorded for recorded in map(from_values, select_keyed(connection, query, ROWS, keys))}


def fetch_chained(connection: sa.Connection, keys: Iterable[Key]) -> tuple[dict[Key, Recorded], dict[Key, int | None]]:
    """Return the recorded rows of `keys`, and the id of the last packed journal line about each, or `None`."""
    rows: dict[Key, Recorded] = {}
    last: dict[Key, int | None] = {}
    for row in select_keyed(connection, CHAINED, ROWS, keys):
        recorded, entry = from_values(row[:-1]), row.entry
        rows[recorded.key], last[recorded.key] = recorded, entry
    return rows, last


def stream(connection: sa.Connection, kind: Kind | None) -> Iterator[Recorded]:
    """Yield all rows, or the rows of one kind, ordered by kind and name."""
    query = _in_order(connection.dialect.name, kind)
    return map(from_values, connection.execution_options(yield_per=STREAM).execute(query))


def contents(connection: sa.Connection) -> Iterator[Content]:
    """Yield the content of every row, in no order, read as it is consumed."""
    query = _contents(connection.dialect.name)
    return map(content_from, connection.execution_options(yield_per=STREAM).execute(query))


@cache
def _contents(dialect: str) -> Query:
    is_doubtful = doubtful(dialect).label("doubtful")
    return sa.select(*(is_doubtful if name == "doubtful" else ROWS.c[name] for name in CONTENT))


def members(connection: sa.Connection, categories: Iterable[str]) -> list[Recorded]:
    """Return the tags that the service may still hold in one of `categories`, ordered by name."""
    references = _references(connection, [Key(Kind.CATEGORY, name) for name in categories])
    by_category, moving = _held_tags(connection.dialect.name)
    parts = [execute_among(connection, by_category, ROWS.c.category, piece) for piece in pieces(sorted(references))]
    rows = (from_values(row) for part in (*parts, connection.execute(moving)) for row in part)
    tags = {tag.key: tag for tag in rows if not references.isdisjoint(tag.category_references())}
    return [tags[key] for key in sorted(tags)]


@cache
def _held_tags(dialect: str) -> tuple[Query, Query]:
    """Return the queries for tags that the service may still hold, and for those that are changing their category."""
    is_held = sa.or_(ROWS.c.status != Status.DELETED.value, doubtful(dialect))
    tags = visible_rows(dialect).where(ROWS.c.kind == Kind.TAG.value, is_held)
    return tags, tags.where(MOVING)


def _references(connection: sa.Connection, categories: Sequence[Key]) -> set[str]:
    """Return the references by which tags may name `categories`: by externalId, or by the server's id."""
    ids = {f"id/{row.server_id}" for row in fetch(connection, categories).values() if row.server_id}
    return ids.union(map(str, categories))
