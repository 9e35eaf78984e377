"""Database errors → a SyncengineError with one plain sentence, without the driver's own message or a password."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
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
NO_INBOX = StateTrouble(
    "state-without-inbox",
    "state {state}: posted time and registrations need a database, which a state in Git does not have; use a file or"
    " PostgreSQL (docs/state.md)",
)
UNFIT_ENCODING = StateTrouble(
    "state-encoding",
    "state {state}: the database cannot store every character, as names and descriptions need; create one with"
    " `createdb --encoding=UTF8 --template=template0`",
)


def trouble_of(fault: DatabaseFault) -> StateTrouble:
    """Return what a fault of the database is for a state: its cause and its cure."""
    cure = f"; {fault.cure}" if fault.cure else ""
    return StateTrouble(f"state-{fault.code}", f"state {{state}}: {fault.words}{cure}")


MISSING, NO_SCHEMA, NO_DATABASE = map(trouble_of, (faults.CANNOT_OPEN, faults.NO_SCHEMA, faults.NO_DATABASE))
BUSY, DAMAGED, CHANGED, REFUSED = map(trouble_of, (faults.BUSY, faults.DAMAGED, faults.NO_TABLE, faults.OTHER))

BY_CLASS: tuple[tuple[type[Exception], DatabaseFault], ...] = (
    (exc.DataError, faults.VALUE),
    (exc.OperationalError, faults.CUT),
    (exc.InterfaceError, faults.CUT),
    (exc.TimeoutError, faults.SLOW),
    (exc.SQLAlchemyError, faults.OTHER),
    (UnicodeEncodeError, faults.VALUE),
    (OverflowError, faults.VALUE),
    (orjson.JSONEncodeError, faults.VALUE),
    (PermissionError, faults.CANNOT_OPEN),
    (FileNotFoundError, faults.CANNOT_OPEN),
    (IsADirectoryError, faults.CANNOT_OPEN),
    (OSError, faults.DISK_ERROR),
    # What was read back is not what this program writes.
    (ValueError, faults.DAMAGED),
    (RecursionError, faults.DAMAGED),
    (LookupError, faults.DAMAGED),
    (TypeError, faults.DAMAGED),
)
"""The fault for each class of error whose fault is unknown. The first matching class counts."""

FAILURES: tuple[type[Exception], ...] = (sqlite3.Error, *(family for family, _ in BY_CLASS))


def _fault_of(error: Exception) -> DatabaseFault:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return faults.DISK_FULL
    of_class = (fault for family, fault in BY_CLASS if isinstance(error, family))
    return faults.fault_of(error) or next(of_class, faults.OTHER)


def diagnose(error: Exception) -> StateTrouble:
    return trouble_of(_fault_of(error))


def is_of_disk(error: Exception) -> bool:
    """Return whether the disk or the access to it failed, rather than the data read from it."""
    return _fault_of(error).code in ("full", "io", "unreadable", "busy")


@contextmanager
def as_state_errors(state: str) -> Iterator[None]:
    """Turn every database or disk error raised inside the block into a `SyncengineError`."""
    try:
        yield
    except FAILURES as error:
        raise diagnose(error).error(state) from error
