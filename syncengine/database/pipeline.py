"""One statement with many sets of values → the rows that each changed, in one round trip. Only psycopg can do that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

_COUNTS = "syncengine_counts"


def prepare(engine: sa.Engine) -> bool:
    """Whether the statements of an engine can share a round trip; if so, it is ready for `changed_rows`."""
    if engine.dialect.driver != "psycopg":
        return False
    if not event.contains(engine, "do_executemany", _executed):
        event.listen(engine, "do_executemany", _executed)
    return True


def changed_rows(
    connection: sa.Connection, clause: sa.TextClause, sets: Sequence[Mapping[str, Any]]
) -> list[int | None]:
    """The numbers of rows that a statement changed with each set of values; None where it returned rows instead.

    The error is that of the first set that fails; those after it are not executed.
    """
    counts = list[int | None]()
    many = [dict(values) for values in sets]
    if len(many) > 1:
        connection.execute(clause, many, execution_options={_COUNTS: counts})
    elif many:
        result = connection.execute(clause, many)
        counts.append(None if result.returns_rows else result.rowcount)
    return counts


def _executed(cursor: Any, statement: str, parameters: Sequence[Any], context: Any) -> bool:
    """Execute as the driver does, and count; False: this is nothing of ours."""
    counts: list[int | None] | None = context.execution_options.get(_COUNTS)
    if counts is None:
        return False
    cursor.executemany(statement, parameters, returning=True)
    counts.append(_changed(cursor))
    while cursor.nextset():
        counts.append(_changed(cursor))
    return True


def _changed(cursor: Any) -> int | None:
    return None if cursor.description else int(cursor.rowcount)
