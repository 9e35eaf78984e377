"""A database and a query → the query's rows, read in a transaction that cannot write. Opens the database."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from syncengine.database.open import connect
from syncengine.document.text import foreign
from syncengine.errors import SOURCE_UNREACHABLE, Problems
from syncengine.manifest.context import near_name
from syncengine.manifest.sources.files import NotJson, loads
from syncengine.manifest.sources.records import BAD_SOURCE, MAX_MEMORY, SourceTrouble, memory_of
from syncengine.project.references import sqlite_file
from syncengine.project.signals import is_stopped, when_stopped

ROWS_AT_ONCE = 200
"""The number of rows that a server sends at a time, which are in memory before they are counted."""
MAX_SECONDS = 120.0
"""The maximum number of seconds that a query may take, including the reading of its rows."""
CANCEL_SECONDS = 2.0
"""The maximum number of seconds for asking a server to cancel a query."""
MAX_VALUE = 10_000_000
"""The maximum number of characters or bytes of one value in SQLite, and of a list of values in MySQL."""
INSTRUCTIONS = 100_000
"""The number of instructions of SQLite's machine between two checks of the clock."""
_QUERY = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:SELECT|WITH|VALUES|TABLE)\b", re.IGNORECASE)
_TO_A_FILE = re.compile(r"\b(?:OUT|DUMP)FILE\b", re.IGNORECASE)
"""MySQL's clauses that write a file, which its read-only transactions allow. They are matched even in strings and
comments, since those of MySQL end in other places than those of other databases."""
_STRING = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)


def check_query(query: str) -> str:
    """Return the query without a final semicolon. Raise `SourceTrouble` unless it is one statement that only reads."""
    bare = query.strip().removesuffix(";")
    if not _QUERY.match(bare) or ";" in _STRING.sub("", bare):
        raise SourceTrouble("the query must be a single SELECT")
    if _TO_A_FILE.search(bare):
        raise SourceTrouble("the query must not write files (`INTO OUTFILE`, `INTO DUMPFILE`)")
    if "set_config" in bare.lower():
        raise SourceTrouble("the query must not change settings (`set_config`)")
    return bare


def sql_rows(
    name: str,
    url: str,
    query: str,
    parameters: Mapping[str, Any],
    seconds: float = MAX_SECONDS,
    most: int = MAX_MEMORY,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a query by column name, numbered from 1, within limits of seconds and bytes of memory."""
    bare = check_query(query)
    file = sqlite_file(url)
    if file is None:
        rows = _of_server(name, url, bare, parameters, seconds)
    else:
        rows = _of_file(name, file, bare, parameters, seconds)
    size = 0
    for number, row in enumerate(rows, 1):
        size += memory_of(row)
        if size > most:
            raise SourceTrouble(f"{name}: the rows take more than {most // 1_000_000} MB; query fewer of them")
        yield number, row


def _of_file(
    name: str, file: Path, query: str, parameters: Mapping[str, Any], seconds: float
) -> Iterator[dict[str, Any]]:
    """Yield rows of a SQLite file, which is opened for reading and allows only the operations that reading needs."""
    deadline, reading, number = time.monotonic() + seconds, _ReadingOnly(), 0
    if not file.is_file():
        raise SourceTrouble(f"{name}: the database does not exist{near_name(file)}")
    with file.open("rb") as opened:
        start = opened.read(1000)
    if not start.startswith(b"SQLite format 3") and (what := foreign(start)):
        raise SourceTrouble(f"{name}: {what}")
    try:
        connection = connect(file, "ro", seconds=10)
    except sqlite3.Error as error:
        raise SourceTrouble(f"{name}: {error}") from None
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        connection.set_authorizer(reading.permits)
        connection.set_progress_handler(lambda: time.monotonic() > deadline or is_stopped(), INSTRUCTIONS)
        cursor = connection.execute(query, dict(parameters))
        names = _names([column[0] for column in cursor.description or ()], name)
        # SQLite stores any bytes as text, and the words of its module quote them.
        connection.text_factory = bytes.decode
        for values in cursor:
            number += 1
            yield dict(zip(names, values, strict=True))
    except UnicodeDecodeError:
        raise SourceTrouble("a text is not encoded as UTF-8", name, number + 1) from None
    except (sqlite3.Error, sqlite3.Warning) as error:
        if time.monotonic() > deadline:
            raise _too_long(name, seconds) from None
        if is_stopped() or reading.is_interrupted(error):
            raise KeyboardInterrupt from None
        raise SourceTrouble(f"{name}: the query failed: {error}") from None
    except OverflowError:
        raise SourceTrouble(f"{name}: a parameter is a larger number than SQLite knows: pass it as text") from None
    finally:
        connection.close()


_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33})
"""The operations of SQLite that reading needs; 33 is `SQLITE_RECURSIVE`."""


class _ReadingOnly:
    """The authorizer of a query, which allows only reading and remembers whether it denied an operation."""

    def __init__(self) -> None:
        self._refuses = False

    def permits(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        is_loading = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() == "load_extension"
        if action in _READING and not is_loading:
            return sqlite3.SQLITE_OK
        self._refuses = True
        return sqlite3.SQLITE_DENY

    def is_interrupted(self, error: sqlite3.Error | sqlite3.Warning) -> bool:
        """Return whether a signal arrived while SQLite called Python, which SQLite reports as a denied operation."""
        is_refused = any(word in str(error) for word in ("not authorized", "prohibited"))
        return str(error) == "interrupted" or (is_refused and not self._refuses)


def _of_server(
    name: str, url: str, query: str, parameters: Mapping[str, Any], seconds: float
) -> Iterator[dict[str, Any]]:
    import sqlalchemy as sa
    from sqlalchemy import exc

    from syncengine.database.open import open_engine

    try:
        engine = open_engine(url, f"the source {name}")
    except Problems as problems:
        raise SourceTrouble(problems.found[0].message) from None
    deadline = time.monotonic() + seconds
    try:
        with engine.connect() as connection, when_stopped(lambda: _cancel(engine, connection)):
            if engine.dialect.name == "postgresql":
                _read_exactly(connection.connection.driver_connection, name)
                connection = connection.execution_options(postgresql_readonly=True)
            with connection.begin() as transaction:
                for statement in bounds_of(engine.dialect, seconds):
                    connection.exec_driver_sql(statement)
                select = sa.text(query).execution_options(stream_results=True, yield_per=ROWS_AT_ONCE)
                if missing := select.compile().params.keys() - parameters.keys():
                    cure = "add it to `params`, or write `\\:` for a colon in a text"
                    raise SourceTrouble(f"{name}: the query's parameter `:{min(missing)}` has no value: {cure}")
                result = connection.execute(select, dict(parameters))
                names = _names(list(result.keys()), name)
                for values in result:
                    if time.monotonic() > deadline:
                        raise _too_long(name, seconds)
                    # A driver's `memoryview` is copied into bytes.
                    plain = (bytes(value) if isinstance(value, memoryview) else value for value in values)
                    yield dict(zip(names, plain, strict=True))
                transaction.rollback()
    except (NotJson, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SourceTrouble(f"{name}: a JSON value cannot be read: {why}") from None
    except exc.SQLAlchemyError as error:
        if time.monotonic() > deadline:  # the server ended the query with a message of its own
            raise _too_long(name, seconds) from None
        raise _trouble(name, error) from None
    finally:
        engine.dispose()


def _read_exactly(driver: Any, name: str) -> None:
    """Have psycopg keep all digits of numbers in JSON, and refuse an interval of months, of 30 days to it."""
    from psycopg.types.datetime import IntervalLoader
    from psycopg.types.json import set_json_loads

    class FixedLength(IntervalLoader):
        def load(self, data: Any) -> Any:
            if any(unit in bytes(data) for unit in (b"mon", b"year")):
                cure = "cast it to text, or subtract two dates"
                raise SourceTrouble(f"{name}: an interval of months or years has no fixed length: {cure}")
            return super().load(data)

    set_json_loads(loads, driver)
    driver.adapters.register_loader("interval", FixedLength)


def _cancel(engine: Any, connection: Any) -> None:
    """Cancel the query under way, from another thread. What no driver can cancel ends after `MAX_SECONDS`."""
    driver = connection.connection.driver_connection
    with suppress(Exception):  # the server may be gone, which ends the query too
        if engine.dialect.name == "postgresql":
            driver.cancel_safe(timeout=CANCEL_SECONDS)
        elif engine.dialect.name in ("mysql", "mariadb"):
            with engine.connect() as other:
                other.exec_driver_sql(f"KILL QUERY {driver.thread_id()}")


def _trouble(name: str, error: Exception) -> SourceTrouble:
    """Return why the database cannot be used, in our own words, or why the query failed, in the server's words."""
    from syncengine.database.errors import cause, meaning
    from syncengine.errors import TroubleKind

    kind = meaning(error)
    if kind in (TroubleKind.AUTHENTICATION, TroubleKind.UNREACHABLE):
        code = SOURCE_UNREACHABLE if kind is TroubleKind.UNREACHABLE else BAD_SOURCE
        return SourceTrouble(f"{name}: {cause(error)}", code=code)
    message = str(getattr(error, "orig", None) or type(error).__name__).split("\n")[0]
    return SourceTrouble(f"{name}: the query failed: {message[:200]}")


def bounds_of(dialect: Any, seconds: float) -> Iterator[str]:
    """Yield statements that make the server end the query in time, even before its first row, and MySQL read-only.

    MySQL leaves out rows and cuts values without an error, where the server's settings say so. PostgreSQL writes
    intervals and instants in the style of its role, of which psycopg reads the usual one alone.
    """
    milliseconds = max(int(seconds * 1000), 1)
    if dialect.name == "postgresql":
        yield f"SET LOCAL statement_timeout = {milliseconds}"
        yield "SET LOCAL intervalstyle = 'postgres'"
        yield "SET LOCAL datestyle = 'ISO'"
    elif dialect.name in ("mysql", "mariadb"):
        limit = f"max_statement_time = {seconds}" if dialect.is_mariadb else f"max_execution_time = {milliseconds}"
        yield f"SET SESSION {limit}"
        yield f"SET SESSION sql_select_limit = {2**64 - 1}, group_concat_max_len = {MAX_VALUE}"
        yield "SET TRANSACTION READ ONLY"


def _too_long(name: str, seconds: float) -> SourceTrouble:
    return SourceTrouble(f"{name}: the query was stopped after {seconds:g} s")


def _names(columns: list[str], name: str) -> list[str]:
    for column in columns:
        if columns.count(column) > 1:
            raise SourceTrouble(f"{name}: two columns of the query are named {column!r}; rename one with `AS`")
    return columns
