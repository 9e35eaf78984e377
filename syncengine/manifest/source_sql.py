"""A database and a query → its rows, read in a transaction that can write nothing. Opens the database."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from syncengine.errors import Problems
from syncengine.manifest.records import SourceTrouble

AT_ONCE = 2000
MAX_ROWS = 5_000_000
_QUERY = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:SELECT|WITH|VALUES|TABLE)\b", re.IGNORECASE)
_STRING = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)


def check_query(query: str) -> str:
    """One question; SourceTrouble for anything that could do more than ask."""
    bare = query.strip().removesuffix(";")
    if not _QUERY.match(bare) or ";" in _STRING.sub("", bare):
        raise SourceTrouble("the query must be one SELECT")
    return bare


def sql_rows(name: str, url: str, query: str, parameters: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows by their columns' names, numbered from 1."""
    from syncengine.posted_time.databases import sqlite_file

    checked = check_query(query)
    file = sqlite_file(url)
    rows = _of_server(name, url, checked, parameters) if file is None else _of_file(name, file, checked, parameters)
    for number, row in enumerate(rows, 1):
        if number > MAX_ROWS:
            raise SourceTrouble(f"{name}: the query has more than {MAX_ROWS:,} rows")
        yield number, row


def _of_file(name: str, file: Path, query: str, parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """SQLite: opened for reading, and only what reading needs is allowed."""
    if not file.is_file():
        raise SourceTrouble(f"{name}: the database is not there")
    try:
        connection = sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, timeout=10)
    except sqlite3.Error as error:
        raise SourceTrouble(f"{name}: {error}") from None
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.set_authorizer(_authorized)
        cursor = connection.execute(query, dict(parameters))
        names = _names([column[0] for column in cursor.description or ()], name)
        while chunk := cursor.fetchmany(AT_ONCE):
            for values in chunk:
                yield dict(zip(names, values, strict=True))
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise SourceTrouble(f"{name}: the query failed: {error}") from None
    finally:
        connection.close()


_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33})
"""33 is SQLITE_RECURSIVE."""


def _authorized(action: int, first: str | None, second: str | None, *_: object) -> int:
    is_loading = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() == "load_extension"
    return sqlite3.SQLITE_OK if action in _READING and not is_loading else sqlite3.SQLITE_DENY


def _of_server(name: str, url: str, query: str, parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    import sqlalchemy as sa
    from sqlalchemy import exc

    from syncengine.posted_time.databases import open_engine

    try:
        engine = open_engine(url, f"the source {name}")
    except Problems as problems:
        raise SourceTrouble(problems.found[0].message) from None
    try:
        with engine.connect().execution_options(stream_results=True, yield_per=AT_ONCE) as connection:
            if engine.dialect.name == "postgresql":
                connection = connection.execution_options(postgresql_readonly=True)
            with connection.begin() as transaction:
                if engine.dialect.name in ("mysql", "mariadb"):
                    connection.exec_driver_sql("SET TRANSACTION READ ONLY")
                result = connection.execute(sa.text(query), dict(parameters))
                names = _names(list(result.keys()), name)
                for values in result:
                    yield dict(zip(names, map(_plain, values), strict=True))
                transaction.rollback()
    except exc.SQLAlchemyError as error:
        words = str(getattr(error, "orig", None) or type(error).__name__).split("\n")[0]
        raise SourceTrouble(f"{name}: the query failed: {words[:200]}") from None
    finally:
        engine.dispose()


def _plain(value: Any) -> Any:
    """Bytes that some drivers only show are read once."""
    return bytes(value) if isinstance(value, memoryview) else value


def _names(columns: list[str], name: str) -> list[str]:
    for column in columns:
        if columns.count(column) > 1:
            raise SourceTrouble(f"{name}: two columns of the query are named {column!r}")
    return columns
