"""The databases of sinks and lookups, and the statements that run in them. Opens databases."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import date, datetime
from datetime import time as day_time
from decimal import Decimal
from types import NoneType
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event

from syncengine.database.errors import BUSY, FAILURES, Silent, cause, fault_of, meaning, sentence
from syncengine.database.open import EXPLAIN, busy_seconds, open_engine
from syncengine.errors import TroubleKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.posted_time.pace import Turns
from syncengine.posted_time.sinks.contract import TOO_LARGE, parameter, undeliverable
from syncengine.posted_time.templates import RenderTrouble
from syncengine.project.references import sqlite_file

PATIENCE_SECONDS = 30.0
"""How long to wait for a whole transaction. A frozen server does not enforce limits of its own."""

AT_ONCE = 4
"""The most questions to one database at a time: more threads would only take turns with each other."""

MOST_SILENT = 4
"""The maximum number of threads that may wait for a silent database. After that, no more are started."""

IDLE_SECONDS = 1.0
"""How long a thread waits for the next question: to start one for each takes a tenth of the time of a group."""

T = TypeVar("T")


class Database:
    """A database of sinks or lookups. `public_name` is its name in messages to users: that of its first sink, if any.

    `patience` is how many seconds to wait for an answer.
    """

    def __init__(self, engine: sa.Engine, public_name: str, patience: float = PATIENCE_SECONDS) -> None:
        self.engine = engine
        self.public_name = public_name
        self._patience = patience
        self._silent: list[Future[Any]] = []
        self._questions = queue.SimpleQueue[Callable[[], None]]()
        self._free = threading.Semaphore(0)  # counts the threads that wait for a question
        # A SQLite file has one writer at a time: others would sleep and poll until they give up.
        self._turns = Turns(1 if engine.dialect.name == "sqlite" else AT_ONCE)
        event.listen(engine, "handle_error", self._give_up_if_busy)
        self._probing: asyncio.Task[tuple[TroubleKind, str | None] | None] | None = None

    async def probe(self, name: str) -> SinkTrouble | None:
        """Return the trouble that keeps the database from answering, or `None`. `name` is that of the part that asks.

        Simultaneous callers share a probe.
        """

        def look(connection: sa.Connection) -> None:
            connection.execute(sa.select(1))
            if connection.dialect.name == "sqlite":  # which opens the file only now
                connection.exec_driver_sql("PRAGMA schema_version").all()

        async def probed() -> tuple[TroubleKind, str | None] | None:
            try:
                await self.read(look)
            except FAILURES as error:
                return meaning(error) or TroubleKind.UNKNOWN, cause(error)
            return None

        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(probed())
        trouble = await asyncio.shield(self._probing)
        return SinkTrouble(name, trouble[0], sentence(name, trouble[0]), trouble[1]) if trouble else None

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Return the result of `work`, run in its own transaction. Raise `Silent`, or the database's own errors."""

        def run(_: threading.Event) -> T:
            with self.engine.connect() as connection, connection.begin():
                return work(connection)

        return await self.ask(run)

    async def ask(self, work: Callable[[threading.Event], T]) -> T:
        """Return the result of `work`, or raise `Silent`. Once its event is set, `work` must not commit any more."""
        async with self._turns.one(Silent()):
            answer, given_up = self._begin(work)
            waiting = asyncio.wrap_future(answer)
            waiting.add_done_callback(lambda late: late.cancelled() or late.exception())  # retrieve a late error
            await asyncio.wait([waiting], timeout=self._patience)
            if not answer.done():
                self._turns.give_up()
        return self._end(answer, given_up)

    def ask_now(self, work: Callable[[threading.Event], T]) -> T:
        """Do the same as `ask`, but block: while a route is built, nothing else goes on."""
        answer, given_up = self._begin(work)
        concurrent.futures.wait([answer], timeout=self._patience)
        return self._end(answer, given_up)

    def _give_up_if_busy(self, context: sa.ExceptionContext) -> None:
        """Note that another process kept a SQLite file locked for as long as we wait for it."""
        error = context.sqlalchemy_exception or context.original_exception
        if isinstance(error, Exception) and fault_of(error) is BUSY:
            self._turns.give_up()

    def _begin(self, work: Callable[[threading.Event], T]) -> tuple[Future[T], threading.Event]:
        self._silent = [answer for answer in self._silent if not answer.done()]
        if len(self._silent) >= MOST_SILENT:
            raise Silent
        answer, given_up = Future[T](), threading.Event()
        answer.set_running_or_notify_cancel()

        def run() -> None:
            try:
                answer.set_result(work(given_up))
            except BaseException as error:  # it is raised in the waiting task
                answer.set_exception(error)

        self._questions.put(run)
        if not self._free.acquire(blocking=False):
            # A daemon, no thread of a pool: a process that ends waits for those, and a silent database never answers.
            threading.Thread(target=self._work, name="database", daemon=True).start()
        return answer, given_up

    def _work(self) -> None:
        """Answer questions in a thread until none comes for a while."""
        while True:
            try:
                question = self._questions.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._free.acquire(blocking=False):  # else one is on its way to this thread
                    return
            else:
                question()
                self._free.release()

    def _end(self, answer: Future[T], given_up: threading.Event) -> T:
        if answer.done():
            return answer.result()
        given_up.set()
        self._silent.append(answer)
        self.engine.dispose()  # earlier connections would not answer either
        raise Silent


class Databases:
    """The open databases, one for each URL, however many sinks and lookups use it."""

    def __init__(self) -> None:
        self._opened: dict[str, Database] = {}

    def database(self, url: str, name: str, public_name: str) -> Database:
        """Return the database at a path or URL, opened on first use. Raise `Problems` when it cannot be opened."""
        if url not in self._opened:
            waits = 0.0 if sqlite_file(url) is None else busy_seconds(url)
            self._opened[url] = Database(open_engine(url, name), public_name, PATIENCE_SECONDS + waits)
        return self._opened[url]

    def close(self) -> None:
        for database in self._opened.values():
            database.engine.dispose()


UNEXPLAINED = frozenset({"CALL", "EXEC", "EXECUTE", "DO", "BEGIN", "DECLARE"})
"""The first words of procedure calls and blocks, which no database can EXPLAIN."""

UNCOUNTED = UNEXPLAINED | {"SELECT", "VALUES"}
"""The first words of statements of which no database says how many rows they changed: a function may change any."""

_NO_SQL = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"[^"]*"|`[^`]*`|\$(\w*)\$.*?\$\1\$""",
    re.DOTALL,
)
"""The comments, texts and quoted names of a statement."""
_FORBEARING = (
    ("INSERT OR IGNORE", r"\binsert\s+or\s+ignore\b"),
    ("UPDATE OR IGNORE", r"\bupdate\s+or\s+ignore\b"),
    ("INSERT IGNORE", r"\binsert\s+(\w+_priority\s+|delayed\s+)?ignore\b"),
    ("UPDATE IGNORE", r"\bupdate\s+(low_priority\s+)?ignore\b"),
    ("ON CONFLICT DO NOTHING", r"\bdo\s+nothing\b"),
    ("ON CONFLICT DO UPDATE … WHERE", r"\bdo\s+update\s+set\b.*\bwhere\b"),
    ("ON DUPLICATE KEY UPDATE", r"\bon\s+duplicate\s+key\s+update\b"),
    ("MERGE", r"\bmerge\b.*\busing\b"),
)
"""The clauses with which a statement may leave the table as it is, without an error and with any number of rows."""


class Statement:
    """An SQL statement with bound parameters, whose names are in `names`.

    `counts_rows`: the database says how many rows it changed. `forbears`: the clause with which it may leave the table
    as it is without an error, or `None`.
    """

    def __init__(self, sql: str) -> None:
        self.clause = sa.text(sql)
        self.names = frozenset(self.clause.compile().params)
        words = _NO_SQL.sub(" ", sql)
        self._first = next(iter(re.findall(r"\w+", words)), "").upper()
        self.counts_rows = self._first not in UNCOUNTED
        # The content of each pair of parentheses is a clause of its own, so that the WHERE of an inner query does not
        # count as one of the statement.
        clauses = []
        while inner := re.search(r"\(([^()]*)\)", words):
            clauses.append(inner[1])
            words = f"{words[: inner.start()]} {words[inner.end() :]}"
        clauses.append(words)
        forms = (name for name, form in _FORBEARING if any(re.search(form, each, re.I | re.S) for each in clauses))
        self.forbears = next(forms, None)

    def check(self, connection: sa.Connection) -> None:
        """Check the statement with EXPLAIN, where the database supports that. Raise the database's own errors."""
        if connection.dialect.name in EXPLAIN and self._first not in UNEXPLAINED:
            nothing: Mapping[str, Any] = dict.fromkeys(self.names)
            connection.execute(sa.text(f"EXPLAIN {self.clause.text}"), nothing)


def bound(value: Any, dialect: str) -> Any:
    """Return a value as the driver accepts it, or raise `RenderTrouble` (`Undeliverable` if no database holds it)."""
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise undeliverable(TOO_LARGE, "a parameter")
    if not isinstance(value, NoneType | bool | int | float | str | bytes | Decimal | date | day_time):
        raise RenderTrouble(f"a parameter must be a single value, but has the type {type(value).__name__}")
    if isinstance(value, str):
        return parameter(value)
    if dialect == "sqlite" and isinstance(value, Decimal):
        return float(value)
    if dialect in ("sqlite", "postgresql") and isinstance(value, datetime):
        # As text, PostgreSQL reads it by the type of its column: the local date or time, or the instant. An instant
        # would become a date in the time zone of the session.
        return value.isoformat(sep=" ")
    return value
