"""A database's path or URL → an engine. Nothing is created, and no connection is made before it is used.

States, sinks and sources open here; each keeps its own policy: migrations, threads and time-outs, reading only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import make_url
from sqlalchemy.pool import QueuePool

from syncengine import DISTRIBUTION
from syncengine.database.sqlite import connect
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.project.references import sqlite_file

BUSY_SECONDS = 10.0
"""How long another writer of a SQLite file is waited for."""

CONNECT_SECONDS = 10
"""How long a server may take to answer at all."""

STATEMENT_SECONDS = 20
"""How long a server may take for one statement: whoever holds a lock on its tables must not hold us."""

IDLE_SECONDS = 30
"""How long a transaction may stand still in PostgreSQL. A process that is stopped in the middle of a write, or is cut
off, would keep its locks for as long, and with them a standby from its lease; a lease of 60 seconds ends later.
"""

LIBPQ = ("psycopg", "psycopg2")
"""Drivers that are made of PostgreSQL's own library."""

EXPLAIN = frozenset({"sqlite", "postgresql", "mysql", "mariadb"})
"""Databases that say what a statement would do, without doing it: so a missing table is found at start."""


CONNECTION: Mapping[str, int] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""Of PostgreSQL's own library, in seconds and milliseconds: a server whose machine is cut off is noticed within half a
minute, where a system would wait for a quarter of an hour.
"""


def connect_arguments(url: sa.URL) -> dict[str, int]:
    """Arguments of each connection, but for those that the URL has itself."""
    if url.get_backend_name().startswith("postgres") and url.drivername.partition("+")[2] in ("", *LIBPQ):
        return {name: value for name, value in CONNECTION.items() if name not in url.query}
    return {"connect_timeout": CONNECT_SECONDS} if url.get_backend_name() in EXPLAIN else {}


def open_engine(url: str, name: str) -> sa.Engine:
    """An engine for a path or URL; Problems, without its password, when there can be none. Nothing is created."""
    file = sqlite_file(url)
    if file is not None:
        if not file.is_file():
            raise _problem(f"the database of {name} does not exist: {file}")
        return sqlite_engine(file, "rw", busy_seconds=busy_seconds(url), prepare=_prepare, begin=_begin)
    try:
        parsed = make_url(url)
        arguments = connect_arguments(parsed)
        if parsed.drivername in ("postgres", "postgresql"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(parsed, pool_pre_ping=True, pool_recycle=1800, connect_args=arguments)
        end_idle_transactions(engine)
        if engine.dialect.name == "postgresql":
            event.listen(engine, "begin", _limit_statements)
        return engine
    except exc.NoSuchModuleError:
        raise _problem(
            f"the URL of {name} begins with {parsed.drivername}://, for which no driver is installed: is it misspelt?"
        ) from None
    except (exc.ArgumentError, ValueError):
        raise _problem(f"the URL of {name} is not one that SQLAlchemy understands") from None
    except ImportError as missing:
        driver = missing.name or parsed.drivername
        line = f": pip install '{DISTRIBUTION}[postgresql]'" if parsed.get_driver_name() == "psycopg" else ""
        raise _problem(f"the database of {name} needs the driver {driver}, which is not installed{line}") from None


def end_idle_transactions(engine: sa.Engine) -> None:
    """Have PostgreSQL end connections whose transaction stands still, unless it has a limit of its own for them."""
    if engine.dialect.name == "postgresql":
        event.listen(engine, "connect", _end_idle_transactions)


def _end_idle_transactions(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute(
        f"SELECT set_config('idle_in_transaction_session_timeout', '{IDLE_SECONDS}s', false)"
        " WHERE current_setting('idle_in_transaction_session_timeout') = '0'"
    )
    cursor.close()
    connection.commit()


def _problem(message: str) -> Problems:
    return Problems([Diagnostic(severity=Severity.ERROR, code="bad-source", message=message)])


def busy_seconds(url: str) -> float:
    """Return the time-out of a SQLite URL (`sqlite:///file?timeout=SECONDS`), as SQLAlchemy reads it."""
    timeout = parse_qs(url.partition("?")[2]).get("timeout", [""])[0]
    try:
        return float(timeout)
    except ValueError:
        return BUSY_SECONDS


def sqlite_engine(
    file: Path,
    mode: str,
    *,
    busy_seconds: float,
    prepare: Callable[[sqlite3.Connection, object], None],
    begin: Callable[[sa.Connection], None],
) -> sa.Engine:
    """An engine for a file of SQLite, whose driver begins no transaction by itself. `mode` is `ro` or `rw`.

    `prepare` is called with each new connection and its record, `begin` where a transaction begins.
    """
    engine = sa.create_engine("sqlite://", creator=lambda: connect(file, mode, busy_seconds), poolclass=QueuePool)
    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", begin)
    event.listen(engine, "reset", _forget)
    return engine


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    # A receipt that a power cut can take back would be answered with SUCCESS and lost; so would a row.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: sa.Connection) -> None:
    # Immediate: what the receipt is looked up in must be what it is written to.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")


def limit_statements(connection: sa.Connection, seconds: float) -> None:
    """Limit the time of each statement until the end of the transaction; only PostgreSQL supports that."""
    if connection.dialect.name == "postgresql":
        limit = f"{round(seconds * 1000)}ms"
        connection.exec_driver_sql(
            f"SELECT set_config('statement_timeout', '{limit}', true)"
            f" WHERE current_setting('statement_timeout')::interval > interval '{limit}'"
        )


@contextmanager
def statements_limited(connection: sa.Connection, seconds: float) -> Iterator[None]:
    """A block whose statements have a lower limit, if they come to its end: after an error the transaction is over."""
    before = connection.exec_driver_sql("SHOW statement_timeout").scalar_one()
    limit_statements(connection, seconds)
    yield
    connection.execute(sa.select(sa.func.set_config("statement_timeout", before, True)))


def _forget(connection: sqlite3.Connection, _record: object, _state: object) -> None:
    # SQLAlchemy takes a transaction whose COMMIT was refused for one that is over; in SQLite it still stands.
    connection.rollback()


def _limit_statements(connection: sa.Connection) -> None:
    """Unless the URL or the server has a limit; for the transaction: a pooler may give the connection to others."""
    connection.exec_driver_sql(
        f"SELECT set_config('statement_timeout', '{STATEMENT_SECONDS}s', true)"
        " WHERE current_setting('statement_timeout') = '0'"
    )
