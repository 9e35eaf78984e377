"""Read journal lines in pieces and rewrite them, in the caller's transaction. Only `prune` and `erase` do that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from syncengine.state.tables import JOURNAL

AT_ONCE = 100
"""The number of lines in memory at a time. Each may contain all keys of a run."""


class StoredLine(NamedTuple):
    """A journal line as stored."""

    id: int
    run: str | None
    verb: str
    kind: str
    name: str
    detail: str | None
    packed: bytes | None


def lines(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> Iterator[StoredLine]:
    """Yield the journal lines that meet a condition, oldest first. Lines may be changed during the iteration."""
    columns = [JOURNAL.c[name] for name in StoredLine._fields]
    ids = list(connection.execute(sa.select(JOURNAL.c.id).where(condition).order_by(JOURNAL.c.id)).scalars())
    for start in range(0, len(ids), AT_ONCE):
        query = sa.select(*columns).where(JOURNAL.c.id.in_(ids[start : start + AT_ONCE])).order_by(JOURNAL.c.id)
        yield from (StoredLine(*row) for row in connection.execute(query).all())


def write(connection: sa.Connection, line: int, values: Mapping[str, Any]) -> None:
    connection.execute(sa.update(JOURNAL).where(JOURNAL.c.id == line).values(**values))


def drop(connection: sa.Connection, line: int) -> None:
    connection.execute(sa.delete(JOURNAL).where(JOURNAL.c.id == line))
