"""One statement with many sets of values → the number of rows that each changed, by PostgreSQL in few round trips.

psycopg's `executemany` is a pipeline that sends each set by itself. A process that is stopped between two of them would
keep its locks for as long: to the server such a transaction is busy, and no limit of its own ends it
(docs/postgresql.md). Here all sets of a round trip, and the end of the pipeline, are in the buffer of PostgreSQL's own
library before the first byte leaves.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

_COUNTS = "syncengine_counts"
MOST_BYTES = 48_000
"""Of a round trip: from 64 KiB on the library sends what it has, before the rest is there."""
HEAD_BYTES = 100
"""Of the messages of a set, beside its statement and its values."""


def prepare(engine: sa.Engine) -> bool:
    """Have an engine send many sets of values in one round trip; return whether its driver can."""
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
    """Execute in place of the driver's `executemany`, and count where that is asked for."""
    counts: list[int | None] = context.execution_options.get(_COUNTS, [])
    first, *others = parameters
    cursor.execute(statement, first)  # as the driver does: it begins the transaction where none has begun
    counts.append(None if cursor.description else int(cursor.rowcount))
    for queries in _round_trips(cursor.connection, statement, others):
        counts += _sent(cursor.connection, queries)
    return True


def _round_trips(connection: Any, statement: str, sets: Sequence[Any]) -> Iterator[list[Any]]:
    """The queries, with their values as the driver binds them, by round trip."""
    from psycopg._queries import PostgresQuery  # what the cursor itself has; there is no public name for it
    from psycopg.adapt import Transformer

    queries, size = list[Any](), 0
    for values in sets:
        query = PostgresQuery(Transformer(connection))
        query.convert(statement, values)
        bytes_of_it = HEAD_BYTES + len(query.query) + sum(len(value or b"") + 8 for value in query.params or ())
        if queries and size + bytes_of_it > MOST_BYTES:
            yield queries
            queries, size = [], 0
        queries.append(query)
        size += bytes_of_it
    if queries:
        yield queries


def _sent(connection: Any, queries: Sequence[Any]) -> list[int | None]:
    """Execute in one round trip; the error of the first that fails, which is raised once all are answered."""
    server = connection.pgconn
    server.enter_pipeline_mode()
    try:
        for query in queries:
            server.send_query_params(query.query, query.params, param_types=query.types, param_formats=query.formats)
        server.pipeline_sync()
        counts: list[int | None] = connection.wait(_answers(connection))
        return counts
    finally:
        _leave_pipeline(connection)


def _answers(connection: Any) -> Generator[Any, Any, list[int | None]]:
    """Send, and read the answers up to the end of the pipeline: a generator as the driver waits for them."""
    from psycopg import generators
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    counts, error = list[int | None](), None
    yield from generators.send(connection.pgconn)
    while True:
        result = yield from generators.fetch(connection.pgconn)
        if result is None:
            continue
        if result.status == ExecStatus.PIPELINE_SYNC:
            break
        if result.status == ExecStatus.FATAL_ERROR:
            error = error or error_from_result(result, encoding=connection.info.encoding)
        elif result.status != ExecStatus.PIPELINE_ABORTED:
            counts.append(None if result.status == ExecStatus.TUPLES_OK else int(result.command_tuples or 0))
    if error is not None:
        raise error
    return counts


def _leave_pipeline(connection: Any) -> None:
    """End the pipeline; the connection, too, where answers are left that nobody will read."""
    from psycopg import OperationalError

    try:
        connection.pgconn.exit_pipeline_mode()
    except OperationalError:
        connection.close()
