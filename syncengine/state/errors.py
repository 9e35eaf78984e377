"""A database's errors → SyncengineError with one plain sentence; no driver's traceback, no password."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import orjson
from sqlalchemy import exc

from syncengine import DISTRIBUTION
from syncengine.database import errors as faults
from syncengine.database.errors import DatabaseFault
from syncengine.errors import SyncengineError

NEW_STATE = "new-state"
"""The code of a state that is not there, and that nobody said to begin."""


@dataclass(frozen=True, slots=True)
class StateTrouble:
    """The code of an error, and its message (`{state}` is the path or URL of the state)."""

    code: str
    sentence: str

    def error(self, state: str) -> SyncengineError:
        return SyncengineError(self.sentence.format(state=state), code=self.code)


TOO_NEW = StateTrouble(
    "state-too-new", "state {state} was written by a newer syncengine; upgrade this one. Nothing was changed"
)
TOO_OLD = StateTrouble(
    "state-too-old", "state {state} was written by an older syncengine; the next apply brings it up to date"
)
FOREIGN = StateTrouble("state-foreign", "{state} is a database, but not a state of syncengine")
MISSING = StateTrouble(
    "state-unreadable", "state {state} cannot be opened: it is not a file, or there is no permission"
)
UNSUPPORTED = StateTrouble(
    "state-url", "state {state}: a path, sqlite:///, postgresql+psycopg:// or git+ref:// is expected"
)
NO_DRIVER = StateTrouble(
    "state-driver",
    f"state {{state}} needs a database driver that is not installed: `pip install '{DISTRIBUTION}[postgresql]'`",
)
WRONG_PASSWORD = StateTrouble(
    "state-login",
    "state {state}: the database does not accept this user or password; correct them in its URL",
)
NO_DATABASE = StateTrouble(
    "state-no-database", "state {state}: the server has no such database; make it with `createdb`, or correct its name"
)
NOT_LET_IN = StateTrouble(
    "state-login",
    "state {state}: the server lets this user in from nowhere, or not from this machine, or not without encryption:"
    " pg_hba.conf there says which, and ?sslmode=require in the URL encrypts",
)
NO_INBOX = StateTrouble(
    "state-without-inbox",
    "state {state}: posted time and registrations are kept in a database, and a state in Git has none; use a file or"
    " PostgreSQL (docs/git-state.md)",
)
NO_RIGHTS = StateTrouble(
    "state-rights",
    "state {state}: this user lacks rights in the database: an apply creates tables and writes (GRANT USAGE, CREATE ON"
    " SCHEMA), a plan reads (GRANT SELECT ON ALL TABLES)",
)
READ_ONLY = StateTrouble(
    "state-rights", "state {state}: the database is read-only, as a standby is: name the one that takes writes"
)
NO_SCHEMA = StateTrouble(
    "state-no-schema",
    "state {state}: the database has no schema of the name in `search_path`; make it with CREATE SCHEMA, or correct it",
)
NO_ENCRYPTION = StateTrouble(
    "state-tls",
    "state {state}: no encrypted connection can be made: does the server support TLS, and is the certificate the one"
    " that `sslmode` and `sslrootcert` in the URL ask for?",
)


def _unreachable(why: str) -> StateTrouble:
    return StateTrouble("state-unreachable", f"state {{state}}: {why}")


UNREACHABLE = _unreachable(
    "the database cannot be reached, or it ended the connection; is the server running, and is the address right?"
)
REFUSED = StateTrouble("state-refused", "state {state}: the database refused a statement")
UNFIT = StateTrouble(
    "state-refused", "state {state}: the database cannot hold a value: text that is not Unicode, or too large a number"
)
CHANGED = StateTrouble(
    "state-changed",
    "state {state} lacks a table or a column: another version of syncengine may have migrated it meanwhile; run this"
    " again, and if that does not help, restore it from a backup",
)
BUSY = StateTrouble("state-busy", "state {state} is busy: another process has been writing to it for too long")

DAMAGED = StateTrouble(
    "state-damaged",
    "state {state} is damaged; restore it from a backup, or move it away and record what Git declares: `state rebuild`",
)
FULL = StateTrouble("state-full", "state {state} cannot be written: the disk is full")
DISK = StateTrouble("state-io", "state {state}: the disk reported an error")

BY_FAULT: Mapping[DatabaseFault | None, StateTrouble] = {
    faults.LOGIN: WRONG_PASSWORD,
    faults.NOT_LET_IN: NOT_LET_IN,
    faults.NO_DATABASE: NO_DATABASE,
    faults.NO_SCHEMA: NO_SCHEMA,
    faults.NO_ENCRYPTION: NO_ENCRYPTION,
    faults.NO_RIGHT: NO_RIGHTS,
    faults.READ_ONLY: READ_ONLY,
    faults.NO_LISTENER: _unreachable(
        "nothing listens at its address; is the server running, and are host and port right?"
    ),
    faults.NO_HOST: _unreachable("there is no such host; correct it in the URL, or is the name server out of reach?"),
    faults.NO_ANSWER: _unreachable("the server does not answer in time; can it be reached from this machine?"),
    faults.ENDED: _unreachable("the server ended the connection; repeat once it is up"),
    faults.CHANGING: _unreachable("the server is starting or stopping; repeat in a moment"),
    faults.CROWDED: _unreachable("the server has reached its limit of connections; repeat, or raise `max_connections`"),
    faults.NO_ROOM: _unreachable("the server is out of disk space or memory"),
    faults.TOO_LARGE: UNFIT,
    faults.NO_TABLE: CHANGED,
    faults.NO_COLUMN: CHANGED,
    faults.CONFLICT: BUSY,
    faults.BUSY: BUSY,
    faults.LOCKED: BUSY,
    faults.PROTOCOL: BUSY,
    faults.CANNOT_OPEN: MISSING,
    faults.NO_PERMISSION: MISSING,
    faults.FORBIDDEN: MISSING,
    faults.READ_ONLY_FILE: StateTrouble("state-read-only", "state {state} cannot be written: no permission"),
    faults.NOT_SQLITE: StateTrouble("state-foreign", "{state} is not a SQLite database"),
    faults.DAMAGED: DAMAGED,
    faults.DISK_FULL: FULL,
    faults.DISK_ERROR: DISK,
}

BY_CLASS: tuple[tuple[type[Exception], StateTrouble], ...] = (
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
    (OSError, DISK),
    (ValueError, DAMAGED),
    (RecursionError, DAMAGED),
    (LookupError, DAMAGED),
    (TypeError, DAMAGED),
)
"""Where the fault does not decide; the first class that fits."""


NO_SUCH = "no such "
"""How SQLite begins to say which table or column is missing, for which it has no code."""

FAILURES: tuple[type[Exception], ...] = (sqlite3.Error, *(family for family, _ in BY_CLASS))


def diagnose(error: Exception) -> StateTrouble:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return FULL
    if trouble := BY_FAULT.get(faults.fault_of(error)):
        return trouble
    if faults.sqlite_code(error) == sqlite3.SQLITE_ERROR:  # of the statement: no file is out of reach
        return CHANGED if NO_SUCH in str(error) else REFUSED
    return next((of_class for family, of_class in BY_CLASS if isinstance(error, family)), REFUSED)


def is_of_disk(error: Exception) -> bool:
    """Whether the disk failed, and not what was read from it."""
    return diagnose(error) in (FULL, DISK, MISSING, BUSY)


@contextmanager
def as_state_errors(state: str) -> Iterator[None]:
    """Turn whatever the database or the disk raises inside into one of ours."""
    try:
        yield
    except FAILURES as error:
        raise diagnose(error).error(state) from error
