"""The databases that sinks and lookups name, one for each; statements → what they want. Opens databases."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sqlite3
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from types import NoneType
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qs, quote

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import make_url
from sqlalchemy.pool import QueuePool

from syncengine import DISTRIBUTION
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.posted_time.sql_errors import FAILURES, Silent, cause, meaning
from syncengine.posted_time.templates import RenderTrouble
from syncengine.posted_time.verdict import TroubleKind
from syncengine.posted_time.wire import TOO_LARGE, parameter, undeliverable

BUSY_SECONDS = 10.0
"""How long another writer of a SQLite file is waited for."""

CONNECT_SECONDS = 10
"""How long a server may take to answer at all."""

STATEMENT_SECONDS = 20
"""How long a server may take for one statement: whoever holds a lock on its tables must not hold us."""

PATIENCE_SECONDS = 30.0
"""How long a whole transaction may take. A server that is frozen obeys no limit of its own."""

MOST_SILENT = 4
"""So many threads may wait for a database that was given up; no more are begun."""

T = TypeVar("T")

EXPLAIN = frozenset({"sqlite", "postgresql", "mysql", "mariadb"})
"""Databases that say what a statement would do, without doing it: so a missing table is found at start."""


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database; None for another URL."""
    scheme, colon, rest = url.partition("://")
    if not colon:
        return Path(url)
    return Path(rest.removeprefix("/").partition("?")[0]) if scheme.startswith("sqlite") else None


UNEXPLAINED = frozenset({"CALL", "EXEC", "EXECUTE", "DO", "BEGIN", "DECLARE"})
"""What begins the call of a procedure, which no database explains."""

SINGLE = (NoneType, bool, int, float, str, bytes, Decimal, date, time)
"""What can be a parameter."""


class _Asking(Generic[T]):
    """Work in a thread that keeps no process from ending. It is told when nobody waits for it any more."""

    def __init__(self, work: Callable[[threading.Event], T]) -> None:
        self.given_up = threading.Event()
        self.answer: Future[T] = Future()
        self.answer.set_running_or_notify_cancel()
        threading.Thread(target=self._run, args=(work,), name="database", daemon=True).start()

    def _run(self, work: Callable[[threading.Event], T]) -> None:
        try:
            self.answer.set_result(work(self.given_up))
        except BaseException as error:  # it belongs to whoever waits
            self.answer.set_exception(error)


class Database:
    """An engine. `told` is what people who post time know the database by: a sink's name, where it has a sink.

    `patience`: seconds after which an answer is not waited for.
    """

    def __init__(self, engine: sa.Engine, told: str, patience: float = PATIENCE_SECONDS) -> None:
        self.engine = engine
        self.told = told
        self._patience = patience
        self._silent: list[_Asking[Any]] = []
        self._probing: asyncio.Task[TroubleKind | None] | None = None
        self.cause: str | None = None
        """Of what the last probe found, for whoever runs this."""

    async def probe(self) -> TroubleKind | None:
        """What keeps it from answering; all who ask at the same time are given one answer."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probed())
        return await asyncio.shield(self._probing)

    async def ask(self, work: Callable[[threading.Event], T]) -> T:
        """What `work` comes to; Silent. The event is set once nobody waits: nothing more is to be written then."""
        asking = self._begun(work)
        waiting = asyncio.wrap_future(asking.answer)
        waiting.add_done_callback(lambda answer: answer.cancelled() or answer.exception())  # it may come too late
        await asyncio.wait([waiting], timeout=self._patience)
        return self._answered(asking)

    def ask_now(self, work: Callable[[threading.Event], T]) -> T:
        """The same where there is no loop."""
        asking = self._begun(work)
        concurrent.futures.wait([asking.answer], timeout=self._patience)
        return self._answered(asking)

    def _begun(self, work: Callable[[threading.Event], T]) -> _Asking[T]:
        self._silent = [asking for asking in self._silent if not asking.answer.done()]
        if len(self._silent) >= MOST_SILENT:
            raise Silent
        return _Asking(work)

    def _answered(self, asking: _Asking[T]) -> T:
        if asking.answer.done():
            return asking.answer.result()
        asking.given_up.set()
        self._silent.append(asking)
        self.engine.dispose()  # connections from before the silence would be as silent
        raise Silent

    async def _probed(self) -> TroubleKind | None:
        try:
            await self.ask(self._look)
        except FAILURES as error:
            self.cause = cause(error)
            return meaning(error) or TroubleKind.UNKNOWN
        self.cause = None
        return None

    def _look(self, _: threading.Event) -> None:
        with self.engine.connect() as connection:
            connection.execute(sa.select(1))
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA schema_version").all()


class Databases:
    """One for each URL, however many sinks and lookups name it."""

    def __init__(self) -> None:
        self._opened: dict[str, Database] = {}

    def database(self, url: str, name: str, told: str) -> Database:
        """The database of a path or URL; Problems when there can be none."""
        if url not in self._opened:
            waits = 0.0 if sqlite_file(url) is None else _busy_seconds(url)
            self._opened[url] = Database(open_engine(url, name), told, PATIENCE_SECONDS + waits)
        return self._opened[url]

    def close(self) -> None:
        for database in self._opened.values():
            database.engine.dispose()


def open_engine(url: str, name: str) -> sa.Engine:
    """An engine for a path or URL; Problems, without its password, when there can be none. Nothing is created."""
    file = sqlite_file(url)
    if file is not None:
        if not file.is_file():
            raise _problem(f"the database of {name} is not there: {file}")
        return _sqlite(file, _busy_seconds(url))
    try:
        parsed = make_url(url)
        arguments = {"connect_timeout": CONNECT_SECONDS} if parsed.get_backend_name() in EXPLAIN else {}
        if parsed.drivername in ("postgres", "postgresql"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(parsed, pool_pre_ping=True, pool_recycle=1800, connect_args=arguments)
        if engine.dialect.name == "postgresql":
            event.listen(engine, "begin", _limit)
        return engine
    except exc.NoSuchModuleError:
        raise _problem(
            f"the URL of {name} begins with {parsed.drivername}://, for which nothing is installed: is it misspelt?"
        ) from None
    except (exc.ArgumentError, ValueError):
        raise _problem(f"the URL of {name} is not one that SQLAlchemy understands") from None
    except ImportError as missing:
        driver = missing.name or parsed.drivername
        line = f": pip install '{DISTRIBUTION}[postgresql]'" if parsed.get_driver_name() == "psycopg" else ""
        raise _problem(f"the database of {name} needs the driver {driver}, which is not installed{line}") from None


def _problem(message: str) -> Problems:
    return Problems([Diagnostic(severity=Severity.ERROR, code="bad-source", message=message)])


def _busy_seconds(url: str) -> float:
    """`sqlite:///file?timeout=SECONDS`, as SQLAlchemy has it."""
    given = parse_qs(url.partition("?")[2]).get("timeout", [""])[0]
    try:
        return float(given)
    except ValueError:
        return BUSY_SECONDS


def _sqlite(file: Path, busy_seconds: float) -> sa.Engine:
    uri = f"file:{quote(str(file.absolute()))}?mode=rw"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False)

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=QueuePool)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    # A receipt that a power cut can take back would be answered with SUCCESS and lost; so would a row.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: sa.Connection) -> None:
    # Immediate: what the receipt is looked up in must be what it is written to.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")


def _limit(connection: sa.Connection) -> None:
    """Unless the URL or the server has a limit; for the transaction: a pooler may give the connection to others."""
    connection.exec_driver_sql(
        f"SELECT set_config('statement_timeout', '{STATEMENT_SECONDS}s', true)"
        " WHERE current_setting('statement_timeout') = '0'"
    )


class Statement:
    """SQL with bound parameters: `names` are the parameters that it wants."""

    def __init__(self, sql: str) -> None:
        self.clause = sa.text(sql)
        self.names = frozenset(self.clause.compile().params)

    def check(self, connection: sa.Connection) -> None:
        """Have the database judge it, without running it; a database that cannot do that judges it when it runs."""
        first = self.clause.text.split(maxsplit=1)[0].upper()
        if connection.dialect.name in EXPLAIN and first not in UNEXPLAINED:
            nothing: Mapping[str, Any] = dict.fromkeys(self.names)
            connection.execute(sa.text(f"EXPLAIN {self.clause.text}"), nothing)


def bound(value: Any, dialect: str) -> Any:
    """A value as the driver takes it; Undeliverable where none does, RenderTrouble for what is no single value."""
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise undeliverable(TOO_LARGE, "a parameter")
    if not isinstance(value, SINGLE):
        raise RenderTrouble(f"a parameter came to {type(value).__name__}, which is no single value")
    if isinstance(value, str):
        return parameter(value)
    if dialect == "sqlite" and isinstance(value, Decimal):
        return float(value)
    if dialect == "sqlite" and isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value
