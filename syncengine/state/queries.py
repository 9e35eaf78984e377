"""Query recorded rows, in pieces of a size that every database accepts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from syncengine.resource import Key, Kind, Recorded, Status
from syncengine.state.codec import COLUMNS, from_row
from syncengine.state.records import Facts
from syncengine.state.tables import CALLS, CHANGES, FACTS, MOVING, PATHS, ROWS, RUNS

PIECE = 5000
"""The number of names in one IN: SQLite takes 32,766 parameters in a statement, PostgreSQL 65,535."""

STREAM = 2000
"""The number of rows fetched at a time: a few MB of memory, and few round trips to a server."""

T = TypeVar("T")
Query = sa.Select[Any]
Change = sa.Update | sa.Delete

STORED: Query = sa.select(*(ROWS.c[name] for name in COLUMNS))
"""The query for rows as stored, without doubts from calls in flight, for the verbs of the journal."""


def address_of(table: sa.Table) -> sa.ColumnElement[str]:
    return table.c.kind + "/" + table.c.name


def in_flight() -> sa.ColumnElement[bool]:
    """Return the condition that a call for the row was sent, or is about to be, and has no known outcome.

    It belongs in the statement that reads the rows: in PostgreSQL, a call may begin between two statements.
    """
    of_calls = sa.join(CALLS, CHANGES, CHANGES.c.call == CALLS.c.id)
    is_open = sa.and_(CALLS.c.outcome.is_(None), CHANGES.c.outcome.is_(None))
    # The subquery does not depend on the row, so that it runs once. With a pair of columns in place of a joined text,
    # SQLite would scan all open keys for each row.
    return address_of(ROWS).in_(sa.select(address_of(CHANGES)).select_from(of_calls).where(is_open))


def doubtful() -> sa.ColumnElement[bool]:
    return sa.or_(ROWS.c.doubtful, in_flight())


def visible_rows() -> Query:
    """Return the query for rows as readers see them, where an intent without an end makes a row doubtful."""
    is_doubtful = doubtful().label("doubtful")
    return sa.select(*(is_doubtful if name == "doubtful" else ROWS.c[name] for name in COLUMNS))


def pieces(values: Sequence[T], size: int = PIECE) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def select_keyed(
    connection: sa.Connection, query: Query, table: sa.Table, keys: Iterable[Key]
) -> Iterator[sa.Row[*tuple[Any, ...]]]:
    """Yield the rows that a query finds for `keys`, queried in pieces. Repeated keys count once."""
    for kind, piece in by_kind(keys):
        yield from connection.execute(query.where(table.c.kind == kind.value, table.c.name.in_(piece)))


def change_keyed(
    connection: sa.Connection, change: Change, table: sa.Table, keys: Iterable[Key], **values: object
) -> None:
    """Execute a change for `keys`, in pieces. `values` are the columns' new values."""
    for kind, piece in by_kind(keys):
        connection.execute(change.where(table.c.kind == kind.value, table.c.name.in_(piece)), values)


def by_kind(keys: Iterable[Key]) -> Iterator[tuple[Kind, Sequence[str]]]:
    """Yield the names of each kind in pieces, without repetitions."""
    names: defaultdict[Kind, dict[str, None]] = defaultdict(dict)
    for kind, name in keys:
        names[kind][name] = None
    for kind, of_kind in names.items():
        for piece in pieces(list(of_kind)):
            yield kind, piece


LAST_LIMITS = (
    sa.select(RUNS.c.id, RUNS.c.limits)
    .where(RUNS.c.outcome == "complete", RUNS.c.limits.is_not(None))
    .order_by(RUNS.c.started.desc(), RUNS.c.id.desc())
    .limit(1)
)
"""The last complete run that recorded limits, with them."""


def facts(connection: sa.Connection) -> Facts:
    """Return the facts about the state, with its last limits. Raise `ValueError` for damaged ones."""
    names = [each.name for each in fields(Facts) if each.name != "limits"]
    row = connection.execute(sa.select(*(FACTS.c["revision" if name == "commit" else name] for name in names))).one()
    limits = connection.execute(sa.select(LAST_LIMITS.subquery().c.limits)).scalar_one_or_none()
    found = zip((*names, "limits"), (*row, limits), strict=True)
    return msgspec.convert({name: value for name, value in found if value is not None}, Facts)


def count(connection: sa.Connection) -> int:
    """Return the number of recorded rows."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(ROWS)).scalar_one())


def fetch(connection: sa.Connection, keys: Iterable[Key], query: Query = STORED) -> dict[Key, Recorded]:
    """Return the recorded rows of `keys`. Keys that are not recorded are left out."""
    return {recorded.key: recorded for recorded in map(from_row, select_keyed(connection, query, ROWS, keys))}


def visible(connection: sa.Connection, keys: Iterable[Key]) -> dict[Key, Recorded]:
    """Return the recorded rows of `keys` as readers see them. Keys that are not recorded are left out."""
    return fetch(connection, keys, visible_rows())


def stream(connection: sa.Connection, kind: Kind | None = None) -> Iterator[Recorded]:
    """Yield all recorded rows, or the rows of one kind, ordered by kind and name and read lazily."""
    query = visible_rows().order_by(ROWS.c.kind, ROWS.c.name)
    query = query if kind is None else query.where(ROWS.c.kind == kind.value)
    return map(from_row, connection.execution_options(yield_per=STREAM).execute(query))


def addresses_like(connection: sa.Connection, prefix: str, most: int) -> list[str]:
    """Return the first `most` addresses that begin with `prefix`."""
    address = address_of(ROWS)
    query = sa.select(address).where(address.startswith(prefix, autoescape=True)).order_by(address).limit(most)
    return [each for each in connection.execute(query).scalars() if each.startswith(prefix)]  # LIKE ignores case


def members(connection: sa.Connection, categories: Iterable[str]) -> list[Recorded]:
    """Return the tags of `categories` that the service may still hold, of any status, ordered by name."""
    keys = [Key(Kind.CATEGORY, name) for name in categories]
    ids = {f"id/{row.server_id}" for row in fetch(connection, keys).values() if row.server_id}
    references = ids.union(map(str, keys))  # tags name a category by externalId, or by the server's id
    found = visible_rows().where(
        ROWS.c.kind == Kind.TAG.value, sa.or_(ROWS.c.status != Status.DELETED.value, doubtful())
    )
    queries = [
        found.where(MOVING),
        *(found.where(ROWS.c.category.in_(piece)) for piece in pieces(sorted(references))),
    ]
    rows = (from_row(row) for query in queries for row in connection.execute(query))
    tags = {tag.key: tag for tag in rows if not references.isdisjoint(tag.category_references())}
    return [tags[key] for key in sorted(tags)]


def answered(connection: sa.Connection, operation: str, path: str) -> None:
    """Record that the operation has answered at this path."""
    if (operation, path) not in paths(connection):
        connection.execute(sa.insert(PATHS).values(operation=operation, path=path))


def paths(connection: sa.Connection) -> set[tuple[str, str]]:
    """Return pairs of an operation and a path at which it has answered."""
    return {(operation, path) for operation, path in connection.execute(sa.select(PATHS.c.operation, PATHS.c.path))}
