"""One statement with many sets of values → one message to PostgreSQL, and the number of rows that each set changed.

psycopg's `executemany` sends each set by itself in a pipeline. A process that is stopped between two of them would keep
its locks for as long: to the server such a transaction is busy, and no limit of its own ends it
([docs/postgresql.md](../../docs/postgresql.md)). One message of the simple protocol has no such moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

_COUNTS = "syncengine_counts"
MOST_SETS = 1000
MOST_CHARACTERS = 1_000_000
SEPARATOR = "\n;\n"
"""A statement may end in a comment."""


def prepare(engine: sa.Engine) -> bool:
    """Have an engine send many sets of values in one message; return whether its driver can."""
    if engine.dialect.driver != "psycopg":
        return False
    if not event.contains(engine, "do_executemany", _executed):
        event.listen(engine, "do_executemany", _executed)
    return True


def changed_rows(
    connection: sa.Connection, clause: sa.TextClause, sets: Sequence[Mapping[str, Any]]
) -> list[int | None]:
    """The numbers of rows that a statement changed with each set of values; None where it returned rows instead.

    The error is that of the first set that fails; those after it are not executed. It may quote values.
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
    """Execute in place of the driver's `executemany`, and count where that is asked for."""
    from psycopg import ClientCursor

    counts: list[int | None] = context.execution_options.get(_COUNTS, [])
    writer = ClientCursor(cursor.connection)
    for message in _messages([writer.mogrify(statement, values) for values in parameters]):
        cursor.execute(message, prepare=False)
        counts.append(_changed(cursor))
        while cursor.nextset():
            counts.append(_changed(cursor))
    return True


def _messages(statements: Sequence[str]) -> Iterator[str]:
    """The statements, joined to messages of a bounded size."""
    begun = size = 0
    for place, statement in enumerate(statements):
        if place > begun and (place - begun == MOST_SETS or size + len(statement) > MOST_CHARACTERS):
            yield SEPARATOR.join(statements[begun:place])
            begun, size = place, 0
        size += len(statement)
    yield SEPARATOR.join(statements[begun:])


def _changed(cursor: Any) -> int | None:
    return None if cursor.description else int(cursor.rowcount)
