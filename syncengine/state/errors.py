"""Database errors → a SyncengineError with one plain sentence, without the driver's own message or a password."""

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
from syncengine.errors import ExitCode, SyncengineError


@dataclass(frozen=True, slots=True)
class StateTrouble:
    """The code and the message of an error. In the message, `{state}` stands for the path or URL of the state."""

    code: str
    sentence: str

    def error(self, state: str) -> SyncengineError:
        return SyncengineError(self.sentence.format(state=state), code=self.code)


class LockLost(SyncengineError):
    """The error of a write whose lock was taken over, or never held. Its transaction is rolled back."""

    exit_code, code = ExitCode.LOCKED, "lock-lost"


class StateReplaced(LockLost):
    """The error of a state that was removed, replaced or set back while it was open, together with our lock."""

    exit_code, code = ExitCode.ERROR, "state-replaced"

    @classmethod
    def of(cls, state: str) -> StateReplaced:
        return cls(
            f"state {state} was removed, replaced or set back while it was open, so that what was recorded meanwhile is"
            " lost: bring the state back, from a backup or with `syncengine state rebuild`, and repeat the command"
        )


OTHER_VERSION = StateTrouble(
    "state-version",
    "state {state} was written by another version of syncengine; run `syncengine state export` with that version, and"
    " `syncengine state import` with this one, into a new state. Posted time that waits in it must be delivered by that"
    " version first. Nothing was changed",
)
FOREIGN = StateTrouble("state-foreign", "{state} is a database, but not a state of syncengine")
MISSING = StateTrouble("state-unreadable", "state {state} cannot be opened: it is not a file, or permission is denied")
UNSUPPORTED = StateTrouble(
    "state-url", "state {state}: expected a path, or a sqlite:///, postgresql+psycopg:// or git+ref:// URL"
)
UNQUOTED = StateTrouble(
    "state-url",
    "state {state}: the URL has more than one `@`; in the user's name, the password and parameters, write `@` as %40,"
    " `/` as %2F and `%` as %25",
)
NO_DRIVER = StateTrouble(
    "state-driver",
    f"state {{state}} needs a database driver that is not installed: `pip install '{DISTRIBUTION}[postgresql]'`",
)
WRONG_PASSWORD = StateTrouble(
    "state-login",
    "state {state}: the database rejects this user or password; correct them in the URL",
)
NO_DATABASE = StateTrouble(
    "state-no-database", "state {state}: the server has no such database; create it with `createdb`, or correct the URL"
)
NOT_LET_IN = StateTrouble(
    "state-login",
    "state {state}: the server accepts no connections from this user, from this machine or without encryption; see"
    " pg_hba.conf on the server, or add ?sslmode=require to the URL to encrypt the connection",
)
NO_INBOX = StateTrouble(
    "state-without-inbox",
    "state {state}: posted time and registrations need a database, which a state in Git does not have; use a file or"
    " PostgreSQL (docs/git-state.md)",
)
NO_RIGHTS = StateTrouble(
    "state-rights",
    "state {state}: the database user lacks rights: an apply creates and writes tables (GRANT USAGE, CREATE ON SCHEMA),"
    " a plan reads those named state_… (GRANT SELECT), and posted time is read by its owner alone (docs/postgresql.md)",
)
READ_ONLY = StateTrouble(
    "state-rights", "state {state}: the database is read-only, like a standby; use the URL of the primary server"
)
UNFIT_ENCODING = StateTrouble(
    "state-encoding",
    "state {state}: the database cannot store every character, as names and descriptions need; create one with"
    " `createdb --encoding=UTF8 --template=template0`",
)
NO_OPTIONS = StateTrouble(
    "state-url",
    "state {state}: the server, such as a pooler, accepts no `options` in the URL; set `search_path` for the user"
    " instead (ALTER ROLE … SET search_path), or connect without the pooler",
)
NO_SCHEMA = StateTrouble(
    "state-no-schema",
    "state {state}: no schema in `search_path` exists; create it with CREATE SCHEMA, or correct `search_path`",
)
NO_ENCRYPTION = StateTrouble(
    "state-tls",
    "state {state}: no encrypted connection is possible; check that the server supports TLS and that its certificate"
    " matches `sslmode` and `sslrootcert` in the URL",
)


def _unreachable(why: str) -> StateTrouble:
    return StateTrouble("state-unreachable", f"state {{state}}: {why}")


UNREACHABLE = _unreachable(
    "the database cannot be reached, or it ended the connection; check that the server is running and the address is"
    " right"
)
REFUSED = StateTrouble("state-refused", "state {state}: the database rejected a statement")
UNFIT = StateTrouble(
    "state-refused", "state {state}: the database cannot store a value: invalid Unicode text, or too large a number"
)
CHANGED = StateTrouble(
    "state-changed",
    "state {state} lacks a table or a column: another version of syncengine may have migrated it meanwhile; run the"
    " command again, and if that does not help, restore the state from a backup",
)
BUSY = StateTrouble("state-busy", "state {state} is busy: another process has been writing to it for too long")

DAMAGED = StateTrouble(
    "state-damaged",
    "state {state} is damaged; restore it from a backup, or move it away and run `syncengine state rebuild`",
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
    faults.NOT_SUPPORTED: READ_ONLY,  # a standby's answer to a transaction that may write
    faults.NO_OPTIONS: NO_OPTIONS,
    faults.SLOW: BUSY,
    faults.NO_LISTENER: _unreachable(
        "nothing is listening at the server's address; check that it is running and that host and port are right"
    ),
    faults.NO_HOST: _unreachable("the host name cannot be resolved; correct it in the URL, or check the name server"),
    faults.NO_ANSWER: _unreachable("the server does not answer in time; check that this machine can reach it"),
    faults.ENDED: _unreachable("the server ended the connection; retry once it is up"),
    faults.CHANGING: _unreachable("the server is starting or stopping; retry in a moment"),
    faults.CROWDED: _unreachable("the server has reached its connection limit; retry, or raise `max_connections`"),
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
    faults.READ_ONLY_FILE: StateTrouble("state-read-only", "state {state} cannot be written: permission denied"),
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
"""The trouble for each class of error whose fault is unknown. The first matching class counts."""


NO_SUCH = "no such "
"""The beginning of SQLite's message about a missing table or column, for which it has no code."""

FAILURES: tuple[type[Exception], ...] = (sqlite3.Error, *(family for family, _ in BY_CLASS))


def diagnose(error: Exception) -> StateTrouble:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return FULL
    if trouble := BY_FAULT.get(faults.fault_of(error)):
        return trouble
    if faults.sqlite_code(error) == sqlite3.SQLITE_ERROR:  # an error in the statement, not in the file
        return CHANGED if NO_SUCH in str(error) else REFUSED
    return next((of_class for family, of_class in BY_CLASS if isinstance(error, family)), REFUSED)


def is_of_disk(error: Exception) -> bool:
    """Return whether the disk or the access to it failed, rather than the data read from it."""
    return diagnose(error) in (FULL, DISK, MISSING, BUSY)


@contextmanager
def as_state_errors(state: str) -> Iterator[None]:
    """Turn every database or disk error raised inside the block into a `SyncengineError`."""
    try:
        yield
    except FAILURES as error:
        raise diagnose(error).error(state) from error
