"""A database's error → what it means for a delivery: the user's matter, or trouble, and of which kind. Pure.

By SQLSTATE or SQLite's code where the driver tells one, by the family of the error where not. Nothing that a driver
says reaches people.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from sqlalchemy import exc

from syncengine.posted_time.verdict import TroubleKind

USER = None
"""Not trouble: what was posted does not fit."""

Meaning = TroubleKind | None

_BY_STATE: tuple[tuple[str, Meaning], ...] = (
    ("22", USER),  # a value that does not fit its column
    ("23", USER),  # a constraint
    ("28", TroubleKind.AUTHENTICATION),
    ("42501", TroubleKind.PERMISSIONS),
    ("25006", TroubleKind.PERMISSIONS),  # a transaction that may only read
    ("3D", TroubleKind.UNREACHABLE),  # no such database
    ("40", TroubleKind.UNKNOWN),  # a deadlock, or a transaction that must be repeated
    ("08", TroubleKind.UNREACHABLE),
    ("53", TroubleKind.UNREACHABLE),
    ("57", TroubleKind.UNREACHABLE),
    ("58", TroubleKind.UNREACHABLE),
)
_BY_SQLITE: Mapping[int, Meaning] = {
    sqlite3.SQLITE_CONSTRAINT: USER,
    sqlite3.SQLITE_MISMATCH: USER,
    sqlite3.SQLITE_TOOBIG: USER,
    sqlite3.SQLITE_READONLY: TroubleKind.PERMISSIONS,
    sqlite3.SQLITE_PERM: TroubleKind.PERMISSIONS,
    sqlite3.SQLITE_AUTH: TroubleKind.PERMISSIONS,
    sqlite3.SQLITE_CANTOPEN: TroubleKind.UNREACHABLE,
    sqlite3.SQLITE_NOTADB: TroubleKind.UNREACHABLE,
    sqlite3.SQLITE_CORRUPT: TroubleKind.UNREACHABLE,
    sqlite3.SQLITE_BUSY: TroubleKind.UNREACHABLE,
    sqlite3.SQLITE_LOCKED: TroubleKind.UNREACHABLE,
    sqlite3.SQLITE_FULL: TroubleKind.UNREACHABLE,
    sqlite3.SQLITE_IOERR: TroubleKind.UNREACHABLE,
}
_BY_CLASS: tuple[tuple[type[Exception], Meaning], ...] = (
    (exc.IntegrityError, USER),
    (exc.DataError, USER),
    (exc.TimeoutError, TroubleKind.UNREACHABLE),
    (exc.InterfaceError, TroubleKind.UNREACHABLE),
    (exc.OperationalError, TroubleKind.UNREACHABLE),
    (OSError, TroubleKind.UNREACHABLE),
)
_LOGIN = ("authentication failed", "access denied", "login failed", "invalid username", "no password supplied")
_WORDS: Mapping[TroubleKind, str] = {
    TroubleKind.UNREACHABLE: "cannot be reached",
    TroubleKind.AUTHENTICATION: "does not accept our login",
    TroubleKind.PERMISSIONS: "does not permit us to write",
    TroubleKind.UNKNOWN: "does not work as expected",
}
FAILURES: tuple[type[Exception], ...] = (exc.SQLAlchemyError, sqlite3.Error, OSError)


def meaning(error: Exception) -> Meaning:
    """The kind of trouble; USER when what was posted is what does not fit."""
    cause: BaseException = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return _BY_SQLITE.get(code & 0xFF, TroubleKind.UNKNOWN)
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if state:
        return next((kind for prefix, kind in _BY_STATE if state.startswith(prefix)), TroubleKind.UNKNOWN)
    if any(words in str(cause).lower() for words in _LOGIN):
        return TroubleKind.AUTHENTICATION
    return next((kind for family, kind in _BY_CLASS if isinstance(error, family)), TroubleKind.UNKNOWN)


def is_down(error: Exception, kind: TroubleKind) -> bool:
    """Whether nothing else would get through either: not so after a deadlock."""
    cause = getattr(error, "orig", None) or error
    return not str(getattr(cause, "sqlstate", None) or "").startswith("40")


def sentence(sink: str, kind: TroubleKind) -> str:
    """What people are told."""
    return f"{sink} {_WORDS[kind]}."
