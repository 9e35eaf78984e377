"""Classify a database's error: its fault, with cause and cure, and its meaning for a delivery. Pure.

Errors are classified by SQLSTATE or by SQLite's code, or without a code by the driver's message or the error's class.
No driver's message is ever shown: users get a sentence, and operators get the cause, with only codes and names
of the schema. The users of a state get the cause and the cure (state/database.py).
"""

from __future__ import annotations

import errno
import socket
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import exc

from syncengine.errors import TroubleKind

USER = None
"""The meaning of an error of the posted values, which is not the fault of the sink."""

Meaning = TroubleKind | None


class Silent(OSError):
    """The error of a database that did not answer in time. It may have done the work nevertheless."""


class Replaced(OSError):
    """The error of a SQLite file that was removed or replaced while it was written. Nobody finds the rows any more."""


@dataclass(frozen=True, slots=True, eq=False)
class DatabaseFault:
    """A kind of database failure: its meaning for a delivery, its cause in words, and what it is for a state.

    `code` follows `state-` in the code of a state's error; `cure` tells what its user can do.
    """

    kind: Meaning
    words: str = "the database rejects the request"
    code: str = "refused"
    cure: str = ""


def _unreachable(words: str = "the server failed", code: str = "unreachable", cure: str = "") -> DatabaseFault:
    return DatabaseFault(TroubleKind.UNREACHABLE, words, code, cure)


_NEWER = (
    "another version of syncengine may have replaced the tables meanwhile; run the command again, and if that does not"
    " help, restore the state from a backup"
)
_RIGHTS = (
    "an apply creates and writes tables (GRANT USAGE, CREATE ON SCHEMA), a plan reads those named state_… (GRANT"
    " SELECT), and posted time is read by its owner alone (docs/state.md)"
)
_RETRY = "run the command again"

VALUE = DatabaseFault(
    USER, "a value does not fit its column", cure="look for invalid Unicode text or too large numbers"
)
TOO_LARGE = DatabaseFault(USER, "a value is too large")
CONSTRAINT = DatabaseFault(USER, "a constraint is violated")
RAISED = DatabaseFault(USER, "a trigger or procedure of the database rejects it")
LOGIN = DatabaseFault(
    TroubleKind.AUTHENTICATION, "the database rejects the user or the password", "login", "correct them in the URL"
)
NOT_LET_IN = DatabaseFault(
    TroubleKind.PERMISSIONS,
    "the server accepts no connections from this user or this machine",
    "login",
    "see pg_hba.conf on the server, or add ?sslmode=require to the URL to encrypt the connection",
)
NO_RIGHT = DatabaseFault(TroubleKind.PERMISSIONS, "the database user lacks the right to do this", "rights", _RIGHTS)
READ_ONLY = DatabaseFault(
    TroubleKind.PERMISSIONS, "the database is read-only", "rights", "use the URL of the primary server"
)
READ_ONLY_FILE = DatabaseFault(TroubleKind.PERMISSIONS, "the file is read-only", "read-only", "permit writing to it")
NO_PERMISSION = DatabaseFault(TroubleKind.PERMISSIONS, "permission to access the file is denied", "unreadable")
FORBIDDEN = DatabaseFault(TroubleKind.PERMISSIONS, code="unreadable")
NO_TABLE = DatabaseFault(TroubleKind.UNKNOWN, "there is no such table", "changed", _NEWER)
NO_COLUMN = DatabaseFault(TroubleKind.UNKNOWN, "there is no such column", "changed", _NEWER)
CONFLICT = DatabaseFault(
    TroubleKind.UNKNOWN, "the transaction conflicted with another and must be repeated", "busy", _RETRY
)
PROTOCOL = DatabaseFault(TroubleKind.UNKNOWN, code="busy", cure=_RETRY)
OTHER = DatabaseFault(TroubleKind.UNKNOWN)
NOT_SUPPORTED = DatabaseFault(  # a standby's answer to a transaction that may write
    TroubleKind.UNKNOWN, "the server does not support the statement", "rights", "use the URL of the primary server"
)
NO_OPTIONS = _unreachable(
    "the server, such as a pooler, accepts no `options` in the URL",
    "url",
    "set `search_path` for the user instead (ALTER ROLE … SET search_path), or connect without the pooler",
)
NO_DATABASE = _unreachable(
    "the server has no database of that name", "no-database", "create it with `createdb`, or correct the URL"
)
CUT = _unreachable(
    "the server cannot be reached, or it ended the connection",
    cure="check that it is running and that the address is right",
)
CROWDED = _unreachable("the server has reached its connection limit", cure="retry, or raise `max_connections`")
NO_ROOM = _unreachable("the server is out of disk space or memory")
SLOW = _unreachable("the statement took longer than allowed", "busy", _RETRY)
IDLE = _unreachable("the transaction was idle, or open, for longer than the server allows", "busy", _RETRY)
CHANGING = _unreachable("the server is starting or stopping", cure="retry in a moment")
ENDED = _unreachable("the server ended the connection", cure="retry once it is up")
BROKEN_SERVER = _unreachable()
NO_SCHEMA = _unreachable(
    "the database has no schema of that name",
    "no-schema",
    "create it with CREATE SCHEMA, or correct `search_path`",
)
NO_ENCRYPTION = _unreachable(
    "no encrypted connection is possible",
    "tls",
    "check that the server supports TLS and that its certificate matches `sslmode` and `sslrootcert` in the URL",
)
NO_MODE = _unreachable(
    "`sslmode` in the URL is none of disable, allow, prefer, require, verify-ca and verify-full", "url", "correct it"
)
NO_PARAMETER = _unreachable("a parameter in the URL is unknown, or has an invalid value", "url", "correct it")
NO_LISTENER = _unreachable(
    "nothing is listening at the server's address", cure="check that it is running and that host and port are right"
)
NO_HOST = _unreachable("the host name cannot be resolved", cure="correct it in the URL, or check the name server")
NO_ANSWER = _unreachable("the server does not answer in time", cure="check that this machine can reach it")
CANNOT_OPEN = _unreachable("the file cannot be opened", "unreadable", "it is not a file, or permission is denied")
NOT_SQLITE = _unreachable("the file is not a SQLite database", "foreign")
DAMAGED = _unreachable(
    "the database is damaged",
    "damaged",
    "restore it from a backup, or move it away and run `syncengine state rebuild`",
)
BUSY = _unreachable("another process has been writing to the file for too long", "busy", _RETRY)
LOCKED = _unreachable("another connection has locked a table", "busy", _RETRY)
SILENT = _unreachable("it did not answer in time", "busy", _RETRY)
REPLACED = _unreachable("the file was removed or replaced while it was written", "io")
DISK_FULL = _unreachable("the disk is full", "full", "free some space")
DISK_ERROR = _unreachable("the disk reported an error", "io")

_BY_STATE: tuple[tuple[str, DatabaseFault], ...] = (
    ("22", VALUE),
    ("23", CONSTRAINT),
    ("44", CONSTRAINT),  # WITH CHECK OPTION of a view
    ("45", RAISED),
    ("P0", RAISED),
    ("28", LOGIN),
    ("42501", NO_RIGHT),
    ("42P01", NO_TABLE),
    ("42703", NO_COLUMN),
    ("25006", READ_ONLY),
    ("25P03", IDLE),
    ("25P04", IDLE),
    ("0A", NOT_SUPPORTED),
    ("3D", NO_DATABASE),
    ("3F", NO_SCHEMA),
    ("40", CONFLICT),
    ("08", CUT),
    ("53300", CROWDED),
    ("53", NO_ROOM),
    ("57014", SLOW),
    ("57P03", CHANGING),
    ("57", ENDED),
    ("58", BROKEN_SERVER),
)
"""Faults by prefix of the SQLSTATE. The first matching prefix counts."""

_BY_SQLITE: Mapping[int, DatabaseFault] = {
    sqlite3.SQLITE_CONSTRAINT: CONSTRAINT,
    sqlite3.SQLITE_MISMATCH: VALUE,
    sqlite3.SQLITE_TOOBIG: TOO_LARGE,
    sqlite3.SQLITE_READONLY: READ_ONLY_FILE,
    sqlite3.SQLITE_PERM: NO_PERMISSION,
    sqlite3.SQLITE_AUTH: FORBIDDEN,
    sqlite3.SQLITE_CANTOPEN: CANNOT_OPEN,
    sqlite3.SQLITE_NOTADB: NOT_SQLITE,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_PROTOCOL: PROTOCOL,
    sqlite3.SQLITE_FULL: DISK_FULL,
    sqlite3.SQLITE_IOERR: DISK_ERROR,
}
"""Faults by SQLite's primary result code."""

_NO_SUCH = (("no such table", NO_TABLE), ("no such column", NO_COLUMN))

_BY_MYSQL: Mapping[int, DatabaseFault] = {
    **dict.fromkeys((1048, 1062, 1169, 1216, 1217, 1364, 1451, 1452, 1557, 1586, 1761, 1762, 3819, 4025), CONSTRAINT),
    **dict.fromkeys((1264, 1265, 1292, 1365, 1366, 1367, 1406, 1411, 1426, 1441, 1525, 1690, 3140, 3903), VALUE),
    **dict.fromkeys((1153, 1301), TOO_LARGE),
    1369: CONSTRAINT,  # WITH CHECK OPTION of a view
    1644: RAISED,
    1045: LOGIN,
    1698: LOGIN,
    1130: NOT_LET_IN,
    **dict.fromkeys((1044, 1142, 1143, 1227, 1370), NO_RIGHT),
    **dict.fromkeys((1290, 1792, 1836), READ_ONLY),
    1049: NO_DATABASE,
    1146: NO_TABLE,
    1054: NO_COLUMN,
    **dict.fromkeys((1020, 1213), CONFLICT),
    **dict.fromkeys((1040, 1203, 1226), CROWDED),
    **dict.fromkeys((1021, 1037, 1038, 1041, 1114), NO_ROOM),
    **dict.fromkeys((1205, 1317, 1969, 3024), SLOW),
    1053: CHANGING,
    **dict.fromkeys((1077, 1079, 1927), ENDED),
}
"""Faults by the error number of MySQL and MariaDB, since not every driver passes the SQLSTATE on."""
_OF_MYSQL = frozenset({"pymysql", "MySQLdb", "mysql", "mariadb"})
"""The packages of the drivers for MySQL and MariaDB."""
_CLIENTS = range(2000, 3000)
"""The error numbers of MySQL's client library, which are about the connection."""
_OWN_ERRORS = range(5000, 1 << 16)
"""The error numbers that only SIGNAL in a trigger or procedure gives (MYSQL_ERRNO)."""

_IN_URL = ("connection is bad: invalid", "connection option", "bad value for connect_timeout")
"""Phrases about a parameter, also in errors that are of no connection, since the driver reads the URL first."""

_BY_WORDS: tuple[tuple[tuple[str, ...], DatabaseFault], ...] = (
    (("authentication failed", "access denied", "login failed", "invalid username", "no password supplied"), LOGIN),
    (('role "',), LOGIN),
    (("permission denied for database",), NO_RIGHT),
    (("pg_hba.conf",), NOT_LET_IN),
    (("unsupported startup parameter",), NO_OPTIONS),
    (("unknown database", "cannot open database", 'database "'), NO_DATABASE),
    (("too many connections", "too many clients"), CROWDED),
    (("starting up", "shutting down"), CHANGING),
    (("invalid sslmode",), NO_MODE),
    (_IN_URL, NO_PARAMETER),
    (("ssl", "certificate"), NO_ENCRYPTION),
    (("refused",), NO_LISTENER),
    (("resolve", "translate host", "not known", "getaddrinfo"), NO_HOST),
    (("timeout", "timed out"), NO_ANSWER),
)
"""Faults by phrases in a driver's message about a failed connection, for which drivers give no code."""

_BY_CLASS: tuple[tuple[type[Exception], DatabaseFault], ...] = (
    (exc.IntegrityError, CONSTRAINT),
    (exc.DataError, VALUE),
    (exc.OperationalError, CUT),
    (exc.InterfaceError, CUT),
    (exc.TimeoutError, SLOW),
    (UnicodeEncodeError, VALUE),
    (OverflowError, VALUE),
    (Silent, SILENT),
    (Replaced, REPLACED),
    (TimeoutError, NO_ANSWER),
    (ConnectionError, CUT),
    (socket.gaierror, NO_HOST),
    (PermissionError, CANNOT_OPEN),
    (FileNotFoundError, CANNOT_OPEN),
    (IsADirectoryError, CANNOT_OPEN),
    (OSError, DISK_ERROR),
)
"""Faults by class of an error whose code and words tell nothing. The first matching class counts."""

_BY_ERRNO: Mapping[int | None, DatabaseFault] = {
    errno.ENOSPC: DISK_FULL,
    errno.EDQUOT: DISK_FULL,
    errno.EROFS: READ_ONLY_FILE,
}
_ABOUT_SCHEMA = frozenset({"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_NOTNULL"})
"""The SQLite errors whose message ends with a colon and column names. A check's or trigger's may say anything."""

_WORDS: Mapping[TroubleKind, str] = {
    TroubleKind.UNREACHABLE: "cannot be reached",
    TroubleKind.AUTHENTICATION: "does not accept our login",
    TroubleKind.PERMISSIONS: "does not permit us to write",
    TroubleKind.SUBSCRIPTION: "has a problem with its subscription",
    TroubleKind.UNKNOWN: "does not work as expected",
}
FAILURES: tuple[type[Exception], ...] = (exc.SQLAlchemyError, sqlite3.Error, OSError, UnicodeEncodeError)
"""The errors of databases and drivers. Drivers encode texts themselves: a URL may name a narrow character set."""


def fault_of(error: Exception) -> DatabaseFault:
    """Return the fault by the error's code, or else by its message, or else by its class."""
    if (code := sqlite_code(error)) is not None:
        if code == sqlite3.SQLITE_ERROR:  # for a missing table or column, SQLite has no code
            text = str(_cause_of(error))
            return next((fault for start, fault in _NO_SUCH if text.startswith(start)), OTHER)
        return _BY_SQLITE.get(code, OTHER)
    if (number := _mysql_number(error)) is not None and number not in _CLIENTS:
        return _BY_MYSQL.get(number, RAISED if number in _OWN_ERRORS else OTHER)
    if state := _sqlstate(error):
        fault = next((fault for prefix, fault in _BY_STATE if state.startswith(prefix)), OTHER)
        # PostgreSQL's RAISE may give any SQLSTATE; only 40… asks for a repeat.
        is_raised = getattr(getattr(_cause_of(error), "diag", None), "source_function", None) == "exec_stmt_raise"
        return RAISED if fault.kind is not USER and fault is not CONFLICT and is_raised else fault
    if isinstance(error, OSError) and error.errno in _BY_ERRNO:
        return _BY_ERRNO[error.errno]
    is_of_connection = isinstance(error, (exc.OperationalError, exc.InterfaceError))
    text, rows = str(_cause_of(error)).lower(), _BY_WORDS if is_of_connection else ((_IN_URL, NO_PARAMETER),)
    by_words = (fault for words, fault in rows if any(each in text for each in words))
    by_class = (fault for family, fault in _BY_CLASS if isinstance(error, family))
    return next(by_words, None) or next(by_class, OTHER)


def sqlite_code(error: Exception) -> int | None:
    """Return SQLite's primary result code, or `None` for the error of another database."""
    code: int | None = getattr(_cause_of(error), "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _mysql_number(error: Exception) -> int | None:
    """Return the error number of MySQL or MariaDB, or `None` for the error of another database."""
    cause = _cause_of(error)
    if type(cause).__module__.partition(".")[0] not in _OF_MYSQL:
        return None
    number = getattr(cause, "errno", None) or next(iter(cause.args), None)
    return number if isinstance(number, int) and number > 0 else None


def _sqlstate(error: Exception) -> str:
    cause = _cause_of(error)
    return getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""


def _cause_of(error: Exception) -> BaseException:
    """Return the driver's own error inside an error of SQLAlchemy, or the error itself if there is none."""
    return getattr(error, "orig", None) or error


def meaning(error: Exception) -> Meaning:
    """Return the kind of trouble that an error means, or `USER` when the posted values do not fit."""
    return fault_of(error).kind


def cause(error: Exception) -> str:
    """Return a sentence for operators on the cause, with the SQLSTATE or SQLite's code, and names of the schema."""
    driver, fault = _cause_of(error), fault_of(error)
    if name := str(getattr(driver, "sqlite_errorname", "")):
        return _with_names(fault, name, str(driver).partition(": ")[2] if name in _ABOUT_SCHEMA else "")
    if number := _mysql_number(error):
        return _with_names(fault, f"error {number}", "")
    if not (state := _sqlstate(error)):
        # Only the class tells more of what fits no table.
        return f"{fault.words} ({type(driver).__name__})" if fault in (CUT, OTHER) else fault.words
    # PostgreSQL gives constraint, table and column apart from its message.
    diag = getattr(driver, "diag", None)
    parts = {name: getattr(diag, f"{name}_name", None) for name in ("constraint", "table", "column")}
    return _with_names(
        fault, f"SQLSTATE {state}", ", ".join(f"{name} {value}" for name, value in parts.items() if value)
    )


def _with_names(fault: DatabaseFault, code: str, names: str) -> str:
    return f"{fault.words} ({', '.join(filter(None, (code, names)))})"


def is_left_behind(error: Exception) -> bool:
    """Return whether the connection leads to a server that takes no writes any more, or is about to end it.

    A new connection may lead to its successor: addresses move when a standby takes over.
    """
    return fault_of(error) in (READ_ONLY, READ_ONLY_FILE, CUT, CHANGING, ENDED)


def is_down(error: Exception) -> bool:
    """Return whether other statements would fail as well, which is not so after a conflict such as a deadlock."""
    return fault_of(error) is not CONFLICT


def sentence(sink: str, kind: TroubleKind) -> str:
    """Return the sentence that tells users of the trouble with a sink."""
    return f"{sink} {_WORDS[kind]}."
