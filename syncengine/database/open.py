"""A database's path or URL → an engine. Nothing is created, and no connection is made before the engine is used.

States, sinks and sources use this module, each with its own policy on migrations, threads, time-outs and read-only use.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import make_url
from sqlalchemy.pool import QueuePool

from syncengine import DISTRIBUTION
from syncengine.database.errors import is_left_behind
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.project.references import sqlite_file


class SqliteConnection(sqlite3.Connection):
    """A connection that knows which file it has open. SQLite goes on writing to a file that was removed or replaced."""

    file: Path
    identity: tuple[int, int] | None

    def __del__(self) -> None:
        # A pool that was disposed of drops a connection that work which was given up brings back: from Python 3.13 on,
        # a warning if it is open. One that could not be opened cannot be closed, either.
        with suppress(sqlite3.Error):
            self.close()

    def is_replaced(self) -> bool:
        """Return whether there is no file any more where it was opened, or another one."""
        return self.identity is None or identity(self.file) != self.identity


def identity(file: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file, or `None` if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connect(file: Path, mode: str, seconds: float) -> SqliteConnection:
    """Open a connection that begins no transaction by itself and waits `seconds` for locks. `mode` is `ro` or `rw`."""
    uri = f"file:{quote(os.fsencode(file.absolute()))}?mode={mode}"
    before = identity(file)  # not after opening it: a file that is replaced in between is so opened once more
    connection = SqliteConnection(uri, uri=True, timeout=seconds, isolation_level=None, check_same_thread=False)
    connection.file, connection.identity = file, before
    return connection


logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())  # or it would print tracebacks of interrupts

BUSY_SECONDS = 10.0
"""The seconds to wait for another writer of a SQLite file."""

CONNECT_SECONDS = 10
"""The seconds within which a server must accept a connection."""

STATEMENT_SECONDS = 20
"""The time limit of one statement in seconds, so that another client's table lock cannot block us for longer."""

IDLE_SECONDS = 30
"""The seconds for which a transaction in PostgreSQL may be idle. For so long, a process that is suspended or cut off in
the middle of a write keeps its locks, and a standby from the lease. A lease of 60 seconds lasts longer.
"""

LIBPQ = ("psycopg", "psycopg2")
"""The drivers that are built on PostgreSQL's client library."""

EXPLAIN = frozenset({"sqlite", "postgresql", "mysql", "mariadb"})
"""The databases that can check a statement without executing it, so that a missing table is noticed at start."""


MYSQL = frozenset({"mysql", "mariadb"})
"""The names of the dialects of MySQL and MariaDB."""

CONNECTION: Mapping[str, Any] = {
    "client_encoding": "utf8",  # where the database has fewer letters, it is to say so, and not the driver
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""The connection parameters for PostgreSQL's client library, in seconds, the last in milliseconds. With them, a server
that is cut off is noticed within half a minute; by default, the system would wait for a quarter of an hour.
"""


def connect_arguments(url: sa.URL) -> dict[str, Any]:
    """Return the arguments for each connection, except those that the URL sets itself."""
    driver = url.drivername.partition("+")[2]
    if url.get_backend_name().startswith("postgres") and driver in ("", *LIBPQ):
        arguments = {name: value for name, value in CONNECTION.items() if name not in url.query}
        # Behind a pooler such as PgBouncer, the next transaction may meet a server that lacks a prepared statement.
        return arguments if driver == "psycopg2" else {**arguments, "prepare_threshold": None}
    return {"connect_timeout": CONNECT_SECONDS} if url.get_backend_name() in EXPLAIN else {}


def open_engine(url: str, name: str) -> sa.Engine:
    """Return an engine for a path or URL. Raise `Problems`, which never show the password, if that is impossible."""
    file = sqlite_file(url)
    if file is not None:
        if not file.is_file():
            raise _problem(f"the database of {name} does not exist: {file}")
        engine = sqlite_engine(file, "rw", busy_seconds=busy_seconds(url), prepare=_prepare, begin=_begin)
        event.listen(engine, "checkout", _refuse_replaced)  # the pool then opens the file again
        event.listen(engine, "handle_error", _leave_behind)
        return engine
    try:
        parsed = make_url(url)
        arguments = connect_arguments(parsed)
        if parsed.drivername in ("postgres", "postgresql"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(parsed, pool_pre_ping=True, pool_recycle=1800, connect_args=arguments)
        event.listen(engine, "handle_error", _leave_behind)
        if engine.dialect.name == "postgresql":
            event.listen(engine, "begin", _begin_in_postgresql)
        if engine.dialect.name in MYSQL:
            event.listen(engine, "connect", _refuse_what_does_not_fit)
        return engine
    except exc.NoSuchModuleError:
        raise _problem(
            f"the URL of {name} begins with {parsed.drivername}://, for which no driver is installed; correct the URL"
        ) from None
    except (exc.ArgumentError, ValueError):
        raise _problem(f"the URL of {name} is not a valid SQLAlchemy URL") from None
    except ImportError as missing:
        driver = missing.name or parsed.drivername
        line = f": pip install '{DISTRIBUTION}[postgresql]'" if parsed.get_driver_name() == "psycopg" else ""
        raise _problem(f"the database of {name} needs the driver {driver}, which is not installed{line}") from None


def _leave_behind(context: sa.ExceptionContext) -> None:
    """Throw the pool's connections away after an error that a new connection may not meet, as after a failover.

    A transaction that is to be read-only is not meant.
    """
    error = context.sqlalchemy_exception or context.original_exception
    writes = context.connection and context.connection.get_execution_options().get("writes")
    if writes and isinstance(error, Exception) and is_left_behind(error):
        context.is_disconnect = True


def _refuse_replaced(connection: SqliteConnection, _record: object, _proxy: object) -> None:
    if connection.is_replaced():
        raise exc.DisconnectionError


def is_replaced(connection: sa.Connection) -> bool:
    """Return whether the SQLite file that a connection has open was removed or replaced."""
    opened = connection.connection.dbapi_connection
    return isinstance(opened, SqliteConnection) and opened.is_replaced()


def _refuse_what_does_not_fit(connection: Any, _record: object) -> None:
    """Have MySQL refuse values that do not fit. In its other modes it cuts them, and says so in a warning only."""
    cursor = connection.cursor()
    cursor.execute("SET SESSION sql_mode = CONCAT(REPLACE(@@sql_mode, 'ALLOW_INVALID_DATES', ''), ',TRADITIONAL')")
    cursor.close()


def end_idle_transactions(engine: sa.Engine) -> None:
    """Have PostgreSQL end connections whose transaction is idle too long, unless the server sets its own limit."""
    if engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _end_idle_transactions)


def _end_idle_transactions(connection: sa.Connection) -> None:
    connection.exec_driver_sql(
        f"SELECT set_config('idle_in_transaction_session_timeout', '{IDLE_SECONDS}s', true)"
        " WHERE current_setting('idle_in_transaction_session_timeout') = '0'"
    )


def _problem(message: str) -> Problems:
    return Problems([Diagnostic(severity=Severity.ERROR, code="bad-source", message=message)])


def busy_seconds(url: str) -> float:
    """Return the time-out in seconds of a SQLite URL (`sqlite:///file?timeout=SECONDS`), or the default."""
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
    """Return an engine for a SQLite file whose driver begins no transaction by itself. `mode` is `ro` or `rw`.

    `prepare` is called with each new connection and its record, `begin` at the start of each transaction.
    """
    engine = sa.create_engine("sqlite://", creator=lambda: connect(file, mode, busy_seconds), poolclass=QueuePool)
    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", begin)
    event.listen(engine, "reset", _forget)
    return engine


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    # Otherwise a power cut could take back a receipt or a row that has been answered with SUCCESS.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: sa.Connection) -> None:
    # Immediate: the receipt must be written to the same snapshot in which it was looked up.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")


def _forget(connection: sqlite3.Connection, _record: object, _state: object) -> None:
    # SQLAlchemy considers a transaction over even if its COMMIT failed; in SQLite it is then still open.
    connection.rollback()


def _begin_in_postgresql(connection: sa.Connection) -> None:
    """Set limits where there are none, and have what is written on the disk when it is committed, in one round trip.

    A server's crash must not take back row and receipt after they were answered. The settings end with the transaction,
    since a pooler may share the connection.
    """
    settings = [
        ("statement_timeout", "0", f"{STATEMENT_SECONDS}s"),
        ("idle_in_transaction_session_timeout", "0", f"{IDLE_SECONDS}s"),
    ]
    if connection.get_execution_options().get("writes"):
        settings.append(("synchronous_commit", "off", "on"))
    connection.exec_driver_sql(
        " UNION ALL ".join(
            f"SELECT set_config('{name}', '{value}', true) WHERE current_setting('{name}') = '{unwanted}'"
            for name, unwanted, value in settings
        )
    )
