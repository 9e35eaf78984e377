"""One statement with many sets of values → the number of rows changed by each set, in few round trips to PostgreSQL.

psycopg's `executemany` is a pipeline that sends each set by itself. A process stopped between two sets would keep its
locks all that time: to the server its transaction is busy, and no server limit ends it (docs/postgresql.md). Here all
sets of a round trip, and the end of the pipeline, are in libpq's buffer before the first byte is sent.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakSet

import sqlalchemy as sa
from sqlalchemy import event

_COUNTS = "syncengine_counts"
MOST_BYTES = 48_000
"""The limit for one round trip. From 64 KiB on, libpq would send the first part before the last is in its buffer."""
HEAD_BYTES = 100
"""The size of the messages for one set of values, apart from the statement and the values."""

_prepared = WeakSet[sa.Engine]()


def prepare(engine: sa.Engine) -> bool:
    """Make an engine send many sets of values in one round trip. Return whether its driver supports that."""
    if engine.dialect.driver != "psycopg":
        return False
    if engine not in _prepared:  # `event.contains` goes by id(), and so takes it for an engine that is gone
        event.listen(engine, "do_executemany", _executed)
        _prepared.add(engine)
    return True


def changed_rows(
    connection: sa.Connection, clause: sa.TextClause, sets: Sequence[Mapping[str, Any]]
) -> list[int | None]:
    """Execute a statement with each set of values; return the numbers of rows changed.

    A number is `None` where the statement returned rows instead, and -1 where the server does not count them. Raise the
    error of the first set that fails; later sets are not executed.
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
    """Replace the driver's `executemany`, and count changed rows if the execution option asks for it."""
    counts: list[int | None] = context.execution_options.get(_COUNTS, [])
    first, *others = parameters
    cursor.execute(statement, first)  # by the driver itself, which begins the transaction if necessary
    counts.append(None if cursor.description else int(cursor.rowcount))
    for queries in _round_trips(cursor.connection, statement, others):
        counts += _sent(cursor.connection, queries)
    return True


def _round_trips(connection: Any, statement: str, sets: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the queries of each round trip, with their values as the driver binds them."""
    from psycopg._queries import PostgresQuery  # used by the cursor itself; it has no public name
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
    """Execute queries in one round trip. Once all are answered, raise the error of the first that failed."""
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
    """Send the queries and read the answers up to the end of the pipeline, as a generator for the driver's `wait`."""
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
            count = -1 if result.command_tuples is None else int(result.command_tuples)
            counts.append(None if result.status == ExecStatus.TUPLES_OK else count)
    if error is not None:
        raise error
    return counts


def _leave_pipeline(connection: Any) -> None:
    """End the pipeline, or close the connection if there are still unread answers."""
    from psycopg import OperationalError

    try:
        connection.pgconn.exit_pipeline_mode()
    except OperationalError:
        connection.close()
