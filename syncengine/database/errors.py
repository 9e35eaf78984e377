"""Classify a database's error: its fault, and its meaning for a delivery, which is a user error or trouble. Pure.

Errors are classified by SQLSTATE or by SQLite's code, or without a code by the driver's message or the error's class.
No driver's message is ever shown: users get a sentence, and operators get the cause, with only codes and names
of the schema. States have their own sentences for the same faults (state/errors.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import exc

from syncengine.database.trouble import TroubleKind

USER = None
"""The meaning of an error of the posted values, which is not the fault of the sink."""

Meaning = TroubleKind | None


class Silent(OSError):
    """The error of a database that did not answer in time. It may have done the work nevertheless."""


class Replaced(OSError):
    """The error of a SQLite file that was removed or replaced while it was written. Nobody finds the rows any more."""


@dataclass(frozen=True, slots=True, eq=False)
class DatabaseFault:
    """A kind of database failure: its meaning for a delivery, and a sentence on its cause."""

    kind: Meaning
    words: str = "the database rejects the request"


VALUE = DatabaseFault(USER, "a value does not fit its column")
TOO_LARGE = DatabaseFault(USER, "a value is too large")
CONSTRAINT = DatabaseFault(USER, "a constraint is violated")
RAISED = DatabaseFault(USER, "a trigger or procedure of the database rejects it")
LOGIN = DatabaseFault(TroubleKind.AUTHENTICATION, "the database rejects the user or the password")
NOT_LET_IN = DatabaseFault(TroubleKind.PERMISSIONS, "the server accepts no connections from this user or this machine")
NO_RIGHT = DatabaseFault(TroubleKind.PERMISSIONS, "the database user lacks the right to do this")
READ_ONLY = DatabaseFault(TroubleKind.PERMISSIONS, "the database is read-only")
READ_ONLY_FILE = DatabaseFault(TroubleKind.PERMISSIONS, "the file is read-only")
NO_PERMISSION = DatabaseFault(TroubleKind.PERMISSIONS, "permission to access the file is denied")
FORBIDDEN = DatabaseFault(TroubleKind.PERMISSIONS)
NO_TABLE = DatabaseFault(TroubleKind.UNKNOWN, "there is no such table")
NO_COLUMN = DatabaseFault(TroubleKind.UNKNOWN, "there is no such column")
CONFLICT = DatabaseFault(TroubleKind.UNKNOWN, "the transaction conflicted with another and must be repeated")
PROTOCOL = DatabaseFault(TroubleKind.UNKNOWN)
OTHER = DatabaseFault(TroubleKind.UNKNOWN)
NOT_SUPPORTED = DatabaseFault(TroubleKind.UNKNOWN, "the server does not support the statement")
NO_OPTIONS = DatabaseFault(TroubleKind.UNREACHABLE, "the server, such as a pooler, accepts no `options` in the URL")
NO_DATABASE = DatabaseFault(TroubleKind.UNREACHABLE, "the server has no database of that name")
CUT = DatabaseFault(TroubleKind.UNREACHABLE, "the server cannot be reached, or it ended the connection")
CROWDED = DatabaseFault(TroubleKind.UNREACHABLE, "the server has reached its connection limit")
NO_ROOM = DatabaseFault(TroubleKind.UNREACHABLE, "the server is out of disk space or memory")
SLOW = DatabaseFault(TroubleKind.UNREACHABLE, "the statement took longer than allowed")
CHANGING = DatabaseFault(TroubleKind.UNREACHABLE, "the server is starting or stopping")
ENDED = DatabaseFault(TroubleKind.UNREACHABLE, "the server ended the connection")
BROKEN_SERVER = DatabaseFault(TroubleKind.UNREACHABLE)
NO_SCHEMA = DatabaseFault(TroubleKind.UNREACHABLE, "the database has no schema of that name")
NO_ENCRYPTION = DatabaseFault(TroubleKind.UNREACHABLE, "no encrypted connection is possible")
NO_LISTENER = DatabaseFault(TroubleKind.UNREACHABLE, "nothing is listening at the server's address")
NO_HOST = DatabaseFault(TroubleKind.UNREACHABLE, "the host name cannot be resolved")
NO_ANSWER = DatabaseFault(TroubleKind.UNREACHABLE, "the server does not answer in time")
CANNOT_OPEN = DatabaseFault(TroubleKind.UNREACHABLE, "the file cannot be opened")
NOT_SQLITE = DatabaseFault(TroubleKind.UNREACHABLE, "the file is not a SQLite database")
DAMAGED = DatabaseFault(TroubleKind.UNREACHABLE, "the file is damaged")
BUSY = DatabaseFault(TroubleKind.UNREACHABLE, "another process has been writing to the file for too long")
LOCKED = DatabaseFault(TroubleKind.UNREACHABLE)
REPLACED = DatabaseFault(TroubleKind.UNREACHABLE, "the file was removed or replaced while it was written")
DISK_FULL = DatabaseFault(TroubleKind.UNREACHABLE, "the disk is full")
DISK_ERROR = DatabaseFault(TroubleKind.UNREACHABLE, "the disk reported an error")

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

_BY_WORDS: tuple[tuple[tuple[str, ...], DatabaseFault], ...] = (
    (("authentication failed", "access denied", "login failed", "invalid username", "no password supplied"), LOGIN),
    (('role "',), LOGIN),
    (("permission denied for database",), NO_RIGHT),
    (("pg_hba.conf",), NOT_LET_IN),
    (("unsupported startup parameter",), NO_OPTIONS),
    (("unknown database", "cannot open database", 'database "'), NO_DATABASE),
    (("too many connections", "too many clients"), CROWDED),
    (("starting up", "shutting down"), CHANGING),
    (("ssl", "certificate"), NO_ENCRYPTION),
    (("refused",), NO_LISTENER),
    (("resolve", "translate host", "not known", "getaddrinfo"), NO_HOST),
    (("timeout", "timed out"), NO_ANSWER),
)
"""Faults by phrases in a driver's message about a failed connection, for which drivers give no code."""

_BY_CLASS: tuple[tuple[type[Exception], Meaning], ...] = (
    (exc.IntegrityError, USER),
    (exc.DataError, USER),
    (exc.TimeoutError, TroubleKind.UNREACHABLE),
    (exc.InterfaceError, TroubleKind.UNREACHABLE),
    (exc.OperationalError, TroubleKind.UNREACHABLE),
    (OSError, TroubleKind.UNREACHABLE),
)
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


def fault_of(error: Exception) -> DatabaseFault | None:
    """Return the fault by the error's code, or by its message if it has no code. Return `None` if neither is known."""
    if (code := sqlite_code(error)) is not None:
        return _BY_SQLITE.get(code, OTHER)
    if isinstance(error, UnicodeEncodeError):
        return VALUE
    if isinstance(error, Replaced):
        return REPLACED
    if (number := _mysql_number(error)) is not None and number not in _CLIENTS:
        return _BY_MYSQL.get(number, RAISED if number in _OWN_ERRORS else OTHER)
    if state := _sqlstate(error):
        fault = next((fault for prefix, fault in _BY_STATE if state.startswith(prefix)), OTHER)
        return RAISED if fault.kind is not USER and fault is not CONFLICT and _is_raised(error) else fault
    if not isinstance(error, (exc.OperationalError, exc.InterfaceError)):
        return None
    text = str(_cause_of(error)).lower()
    return next((fault for words, fault in _BY_WORDS if any(each in text for each in words)), None)


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


def _is_raised(error: Exception) -> bool:
    """Return whether PostgreSQL's RAISE made the error, which may give any SQLSTATE; only 40… asks for a repeat."""
    return getattr(getattr(_cause_of(error), "diag", None), "source_function", None) == "exec_stmt_raise"


def _sqlstate(error: Exception) -> str:
    cause = _cause_of(error)
    return getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""


def _cause_of(error: Exception) -> BaseException:
    """Return the driver's own error inside an error of SQLAlchemy, or the error itself if there is none."""
    return getattr(error, "orig", None) or error


def meaning(error: Exception) -> Meaning:
    """Return the kind of trouble that an error means, or `USER` when the posted values do not fit."""
    if fault := fault_of(error):
        return fault.kind
    return next((kind for family, kind in _BY_CLASS if isinstance(error, family)), TroubleKind.UNKNOWN)


def cause(error: Exception) -> str:
    """Return a sentence for operators on the cause, with the SQLSTATE or SQLite's code, and names of the schema."""
    if isinstance(error, Silent):
        return "it did not answer in time"
    driver, fault = _cause_of(error), fault_of(error)
    if fault is None:
        words = CUT.words if meaning(error) is TroubleKind.UNREACHABLE else "the database driver rejected the statement"
        return f"{words} ({type(driver).__name__})"
    if name := str(getattr(driver, "sqlite_errorname", "")):
        return _with_names(fault, name, str(driver).partition(": ")[2] if name in _ABOUT_SCHEMA else "")
    if number := _mysql_number(error):
        return _with_names(fault, f"error {number}", "")
    state = _sqlstate(error)
    return _with_names(fault, f"SQLSTATE {state}", _schema(driver)) if state else fault.words


def _with_names(fault: DatabaseFault, code: str, names: str) -> str:
    return f"{fault.words} ({', '.join(filter(None, (code, names)))})"


def _schema(error: BaseException) -> str:
    """Return the constraint, table and column of an error, which PostgreSQL gives apart from its message."""
    diag = getattr(error, "diag", None)
    parts = {name: getattr(diag, f"{name}_name", None) for name in ("constraint", "table", "column")}
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value)


def is_left_behind(error: Exception) -> bool:
    """Return whether the connection leads to a server that takes no writes any more, or is about to end it.

    A new connection may lead to its successor: addresses move when a standby takes over.
    """
    return fault_of(error) in (READ_ONLY, READ_ONLY_FILE, CUT, CHANGING, ENDED)


def is_down(error: Exception) -> bool:
    """Return whether other statements would fail as well, which is not so after a conflict such as a deadlock."""
    return fault_of(error) is not CONFLICT


def is_outage(error: Exception) -> bool:
    """Return whether every other statement would fail the same way now, or wait as long."""
    return isinstance(error, FAILURES) and meaning(error) in (TroubleKind.UNREACHABLE, TroubleKind.AUTHENTICATION)


def sentence(sink: str, kind: TroubleKind) -> str:
    """Return the sentence that tells users of the trouble with a sink."""
    return f"{sink} {_WORDS[kind]}."
