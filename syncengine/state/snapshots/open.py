"""Open the database of a state in Git, for reading or for writing."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

from syncengine.database.open import sqlite_engine
from syncengine.state.database import BUSY_SECONDS, StateDatabase, begin_transaction, pragma
from syncengine.state.errors import FAILURES, as_state_errors
from syncengine.state.snapshots import layout
from syncengine.state.snapshots.place import TRIES, GitPlace, working_folder
from syncengine.state.snapshots.versions import Snapshot
from syncengine.state.snapshots.working_copy import WorkingCopy, fill


def open_to_read(place: GitPlace) -> StateDatabase | None:
    """Open the current state, with its lock. Return `None` when there is no state and the place permits that."""
    with as_state_errors(place.name):
        head = place.look()
        if head is None:
            return None
        return StateDatabase(place.name, _reading_engine(place, head))


def open_to_write(place: GitPlace, now: Callable[[], float], new_lineage: Callable[[], str]) -> StateDatabase:
    """Open a private copy of the state, whose changes reach the repository when they are published."""
    with as_state_errors(place.name), ExitStack() as stack:
        stack.callback(place.store.tidy)
        file = stack.enter_context(working_folder(place)) / "state.db"
        file.touch(0o600)
        engine = _engine(file, "rw")
        stack.callback(engine.dispose)
        pragma(engine, "journal_mode = WAL")
        copy = WorkingCopy(place, engine, now)
        copy.begin(place.look(), new_lineage)
        return StateDatabase(place.name, engine, snapshots=copy, resources=stack.pop_all())


def _reading_engine(place: GitPlace, head: Snapshot) -> sa.Engine:
    """Return an engine that has the file of a version open. If another process drops the file first, make it again."""
    for _ in range(TRIES - 1):
        file = _file_of(place, head)
        before = _identity(file)
        try:
            return _opened(file, head)
        except exc.OperationalError:
            if before is not None and _identity(file) == before:
                raise
    return _opened(_file_of(place, head), head)


def _identity(file: Path) -> tuple[int, int] | None:
    """Return a value that changes when the file is replaced or written, or `None` when it does not exist."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_ctime_ns


def _opened(file: Path, head: Snapshot) -> sa.Engine:
    lock = layout.lock_rows(head.lock)
    writing, reading = _engine(file, "rw"), _engine(file, "ro")
    try:
        with writing.begin() as connection:
            if layout.lock_rows(layout.lock_of(connection)) != lock:
                layout.set_lock(connection, lock)
        reading.connect().close()  # the connection stays open
    finally:
        writing.dispose()
    return reading


def _file_of(place: GitPlace, head: Snapshot) -> Path:
    file = place.reading_file(head.version)
    if not file.exists():
        _make(place, head, file)
        place.drop_old_files(head.version)
    return file


def _make(place: GitPlace, head: Snapshot, file: Path) -> None:
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".reading-")
    os.close(handle)
    engine = _engine(Path(name), "rw")
    try:
        with engine.begin() as connection:
            fill(connection, head, place.store.files(head))
        engine.dispose()
        Path(name).replace(file)
    except FAILURES as error:
        raise place.unread(error) from error
    finally:
        engine.dispose()
        Path(name).unlink(missing_ok=True)


def _engine(path: Path, mode: str) -> sa.Engine:
    return sqlite_engine(path, mode, busy_seconds=BUSY_SECONDS, prepare=_unsafe, begin=begin_transaction)


def _unsafe(connection: sqlite3.Connection, _record: object) -> None:
    # Nothing here must outlive a power cut: the file is made from the repository, and changes are pushed there.
    connection.execute("PRAGMA synchronous = OFF")
