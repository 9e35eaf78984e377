"""A database's errors → SyncengineError with one plain sentence; no driver's traceback, no password."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import orjson
from sqlalchemy import exc

from syncengine import DISTRIBUTION
from syncengine.errors import SyncengineError


@dataclass(frozen=True, slots=True)
class Trouble:
    """What an error is called, and what is said of the state (`{state}` is its path or URL)."""

    code: str
    sentence: str

    def error(self, state: str) -> SyncengineError:
        return SyncengineError(self.sentence.format(state=state), code=self.code)


TOO_NEW = Trouble(
    "state-too-new", "state {state} was written by a newer syncengine; upgrade this one. Nothing was changed"
)
TOO_OLD = Trouble(
    "state-too-old", "state {state} was written by an older syncengine; the next apply brings it up to date"
)
FOREIGN = Trouble("state-foreign", "{state} is a database, but not a state of syncengine")
MISSING = Trouble("state-unreadable", "state {state} cannot be opened: it is no file, or there is no permission")
UNSUPPORTED = Trouble("state-url", "state {state}: a path, sqlite:/// or postgresql+psycopg:// is expected")
NO_DRIVER = Trouble(
    "state-driver",
    f"state {{state}} needs a database driver that is not installed: `pip install '{DISTRIBUTION}[postgresql]'`",
)
WRONG_PASSWORD = Trouble(
    "state-login",
    "state {state}: the database does not accept this user or password; correct them where the URL stands",
)
NO_DATABASE = Trouble(
    "state-no-database", "state {state}: the server has no such database; make it with `createdb`, or correct its name"
)
NO_RIGHTS = Trouble(
    "state-rights",
    "state {state}: this user lacks rights in the database; an apply creates tables and writes, a plan reads",
)
UNREACHABLE = Trouble(
    "state-unreachable",
    "state {state}: the database cannot be reached, or it ended the connection; is the server running, and is the"
    " address right?",
)
REFUSED = Trouble("state-refused", "state {state}: the database refused a statement")
UNFIT = Trouble(
    "state-refused", "state {state}: the database cannot hold a value: text that is not Unicode, or too large a number"
)
BUSY = Trouble("state-busy", "state {state} is busy: another process has been writing to it for too long")

SQLITE = {
    sqlite3.SQLITE_FULL: Trouble("state-full", "state {state} cannot be written: the disk is full"),
    sqlite3.SQLITE_NOTADB: Trouble("state-foreign", "{state} is not a SQLite database"),
    sqlite3.SQLITE_CORRUPT: Trouble("state-damaged", "state {state} is damaged; restore it from a backup"),
    sqlite3.SQLITE_CANTOPEN: MISSING,
    sqlite3.SQLITE_PERM: MISSING,
    sqlite3.SQLITE_AUTH: MISSING,
    sqlite3.SQLITE_READONLY: Trouble("state-read-only", "state {state} cannot be written: no permission"),
    sqlite3.SQLITE_IOERR: Trouble("state-io", "state {state}: the disk reported an error"),
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_PROTOCOL: BUSY,
    sqlite3.SQLITE_TOOBIG: UNFIT,
}
"""By SQLite's primary result code."""

DAMAGED = SQLITE[sqlite3.SQLITE_CORRUPT]

BY_SQLSTATE: tuple[tuple[str, Trouble], ...] = (
    ("28", WRONG_PASSWORD),
    ("3D000", NO_DATABASE),
    ("42501", NO_RIGHTS),
    ("25006", NO_RIGHTS),
)
"""PostgreSQL's codes by how they begin."""

BY_WORDS: tuple[tuple[str, Trouble], ...] = (
    ("password authentication failed", WRONG_PASSWORD),
    ("no password supplied", WRONG_PASSWORD),
    ("no pg_hba.conf entry", WRONG_PASSWORD),
    ('role "', WRONG_PASSWORD),
    ('database "', NO_DATABASE),
    ("permission denied", NO_RIGHTS),
)
"""What a server says while one connects, which comes without a code."""

BY_CLASS: tuple[tuple[type[Exception], Trouble], ...] = (
    (exc.DataError, UNFIT),
    (exc.OperationalError, UNREACHABLE),
    (exc.InterfaceError, UNREACHABLE),
    (exc.TimeoutError, BUSY),
    (exc.SQLAlchemyError, REFUSED),
    (UnicodeEncodeError, UNFIT),
    (OverflowError, UNFIT),
    (orjson.JSONEncodeError, UNFIT),
    (PermissionError, MISSING),
    (FileNotFoundError, MISSING),
    (IsADirectoryError, MISSING),
    (OSError, SQLITE[sqlite3.SQLITE_IOERR]),
    (ValueError, DAMAGED),
    (LookupError, DAMAGED),
    (TypeError, DAMAGED),
)
"""Where SQLite's codes do not decide; the first class that fits."""


FAILURES: tuple[type[Exception], ...] = (sqlite3.Error, *(family for family, _ in BY_CLASS))


def sqlite_code(error: BaseException) -> int | None:
    """The primary result code, if SQLite is what failed."""
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _by_server(error: Exception) -> Trouble | None:
    """What PostgreSQL tells, by its code or by its words where there is none."""
    cause = getattr(error, "orig", None)
    if state := getattr(cause, "sqlstate", None):
        return next((trouble for begin, trouble in BY_SQLSTATE if state.startswith(begin)), None)
    words = str(cause) if isinstance(error, exc.OperationalError) else ""
    return next((trouble for part, trouble in BY_WORDS if f"FATAL:  {part}" in words), None)


def diagnose(error: Exception) -> Trouble:
    known = SQLITE.get(sqlite_code(error) or 0) or _by_server(error)
    return known or next((trouble for family, trouble in BY_CLASS if isinstance(error, family)), REFUSED)


@contextmanager
def told(state: str) -> Iterator[None]:
    """Turn whatever the database or the disk raises inside into one of ours."""
    try:
        yield
    except FAILURES as error:
        raise diagnose(error).error(state) from error
