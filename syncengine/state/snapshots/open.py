"""Open the database of a state in Git, for reading or for writing: a private file, made from the current snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack

from syncengine.database.open import sqlite_engine
from syncengine.state.database import BUSY_SECONDS, StateDatabase, begin_transaction, pragma
from syncengine.state.errors import FAILURES, as_state_errors
from syncengine.state.snapshots.place import GitPlace
from syncengine.state.snapshots.repository import private_folder
from syncengine.state.snapshots.snapshot import fill
from syncengine.state.snapshots.working_copy import WorkingCopy


def open_to_read(place: GitPlace) -> StateDatabase | None:
    """Open the current state, with its lock. Return `None` when there is no state and the place permits that."""
    with as_state_errors(place.name), ExitStack() as stack:
        head = place.look()
        if head is None:
            return None
        database = _new_database(place, stack)
        files = place.store.files(head)
        try:
            with database.engine.begin() as connection:
                fill(connection, head, files)
        except FAILURES as error:
            raise place.unread(error) from error
        database.resources = stack.pop_all()
        return database


def open_to_write(place: GitPlace, now: Callable[[], float], new_lineage: Callable[[], str]) -> StateDatabase:
    """Open a private copy of the state, whose changes reach the repository when they are published."""
    with as_state_errors(place.name), ExitStack() as stack:
        stack.callback(place.store.tidy)
        database = _new_database(place, stack)
        pragma(database.engine, "journal_mode = WAL")
        database.snapshots = WorkingCopy(place, database.engine, now)
        database.snapshots.begin(place.look(), new_lineage)
        database.resources = stack.pop_all()
        return database


def _new_database(place: GitPlace, stack: ExitStack) -> StateDatabase:
    """Return an empty database in a folder of this process alone, which `stack` deletes."""
    file = stack.enter_context(private_folder(place.folder)) / "state.db"
    file.touch(0o600)
    engine = sqlite_engine(file, "rw", busy_seconds=BUSY_SECONDS, prepare=_unsafe, begin=begin_transaction)
    stack.callback(engine.dispose)
    return StateDatabase(place.name, engine)


def _unsafe(connection: sqlite3.Connection, _record: object) -> None:
    # Nothing here must outlive a power cut: the file is made from the repository, and changes are pushed there.
    connection.execute("PRAGMA synchronous = OFF")
