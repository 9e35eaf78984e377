"""A database's error → what it means for a delivery: the user's matter, or trouble, and of which kind. Pure.

By SQLSTATE or SQLite's code where the driver tells one, by the family of the error where not. Nothing that a driver
says reaches people: users have a sentence, whoever runs this has the cause, with codes and names of the schema alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from sqlalchemy import exc

from syncengine.database.trouble import TroubleKind

USER = None
"""Not trouble: what was posted does not fit."""

Meaning = TroubleKind | None


class Silent(OSError):
    """A database gave no answer for so long that it is not waited for. What it was asked to do, it may have done."""


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
_NO_LOGIN = "the database does not accept the user or the password"
_NO_DATABASE = "the server has no database of that name"
_NO_RIGHT = "the database user has no right to do this"
_CUT = "the server cannot be reached, or it ended the connection"
_FULL = "the server has no room for another connection"
_CAUSES: tuple[tuple[str, str], ...] = (
    ("22", "a value does not fit its column"),
    ("23", "a constraint does not hold"),
    ("28", _NO_LOGIN),
    ("42501", _NO_RIGHT),
    ("42P01", "there is no such table"),
    ("42703", "there is no such column"),
    ("25006", "the database may only be read"),
    ("3D", _NO_DATABASE),
    ("40", "the transaction met another one, and has to be repeated"),
    ("08", _CUT),
    ("53300", _FULL),
    ("53", "the server has no room left, on disk or in memory"),
    ("57014", "the statement took longer than it may"),
    ("57P03", "the server is about to start or to stop"),
    ("57", "the server ended the connection"),
)
"""By SQLSTATE: the first that it begins with."""

_SQLITE_CAUSES: Mapping[int, str] = {
    sqlite3.SQLITE_CONSTRAINT: "a constraint does not hold",
    sqlite3.SQLITE_MISMATCH: "a value does not fit its column",
    sqlite3.SQLITE_TOOBIG: "a value is too large",
    sqlite3.SQLITE_READONLY: "the file may only be read",
    sqlite3.SQLITE_PERM: "there is no permission for the file",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_BUSY: "another process has been writing to the file for too long",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk reported an error",
}
_ABOUT_SCHEMA = frozenset({"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_NOTNULL"})
"""Constraints of which SQLite names columns, after a colon; what a check or a trigger says may be anything."""

_WORDED: tuple[tuple[tuple[str, ...], TroubleKind, str], ...] = (
    (
        ("authentication failed", "access denied", "login failed", "invalid username", "no password supplied"),
        TroubleKind.AUTHENTICATION,
        _NO_LOGIN,
    ),
    (('role "',), TroubleKind.AUTHENTICATION, _NO_LOGIN),
    (("permission denied for database",), TroubleKind.PERMISSIONS, _NO_RIGHT),
    (("pg_hba.conf",), TroubleKind.PERMISSIONS, "the server does not let this user or this machine in"),
    (("unknown database", "cannot open database", 'database "'), TroubleKind.UNREACHABLE, _NO_DATABASE),
    (("too many connections", "too many clients"), TroubleKind.UNREACHABLE, _FULL),
    (("starting up", "shutting down"), TroubleKind.UNREACHABLE, "the server is about to start or to stop"),
    (("refused",), TroubleKind.UNREACHABLE, "nobody listens at the server's address"),
    (("resolve", "translate host", "not known", "getaddrinfo"), TroubleKind.UNREACHABLE, "there is no such host"),
    (("timeout", "timed out"), TroubleKind.UNREACHABLE, "the server does not answer in time"),
)
"""What drivers say of a connection that was not made, for which they tell no code."""
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
    worded = _worded(error)
    if worded is not None:
        return worded[0]
    return next((kind for family, kind in _BY_CLASS if isinstance(error, family)), TroubleKind.UNKNOWN)


def cause(error: Exception) -> str:
    """What is wrong, for whoever runs this: in our words, with SQLSTATE or SQLite's code, and the constraint."""
    found: BaseException = getattr(error, "orig", None) or error
    if isinstance(error, Silent):
        return "it gave no answer for so long that it is not waited for"
    code = getattr(found, "sqlite_errorcode", None)
    if code is not None:
        name = str(getattr(found, "sqlite_errorname", ""))
        columns = str(found).partition(": ")[2] if name in _ABOUT_SCHEMA else ""
        return _with_names(_SQLITE_CAUSES.get(code & 0xFF), name, columns)
    state = getattr(found, "sqlstate", None) or getattr(found, "pgcode", None)
    if state:
        words = next((words for prefix, words in _CAUSES if state.startswith(prefix)), None)
        return _with_names(words, f"SQLSTATE {state}", _schema(found))
    worded = _worded(error)
    return worded[1] if worded else f"{_CUT} ({type(found).__name__})"


def _with_names(words: str | None, code: str, names: str) -> str:
    return f"{words or 'the database does not take this'} ({', '.join(filter(None, (code, names)))})"


def _schema(error: BaseException) -> str:
    """The constraint, or the column, as PostgreSQL tells them apart from its words."""
    diag = getattr(error, "diag", None)
    parts = {name: getattr(diag, f"{name}_name", None) for name in ("constraint", "table", "column")}
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value)


def _worded(error: Exception) -> tuple[TroubleKind, str] | None:
    """What the words of an error without a code mean, where it is about the connection."""
    if not isinstance(error, (exc.OperationalError, exc.InterfaceError)):
        return None
    said = str(getattr(error, "orig", None) or error).lower()
    found = (row for row in _WORDED if any(words in said for words in row[0]))
    return next(((kind, words) for _, kind, words in found), None)


def is_down(error: Exception, kind: TroubleKind) -> bool:
    """Whether nothing else would get through either: not so after a deadlock."""
    cause = getattr(error, "orig", None) or error
    return not str(getattr(cause, "sqlstate", None) or "").startswith("40")


def sentence(sink: str, kind: TroubleKind) -> str:
    """What people are told."""
    return f"{sink} {_WORDS[kind]}."
