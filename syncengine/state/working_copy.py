"""A private SQLite file made from a snapshot, on which all writes of the state run; its publication; restoring.

One mutex, shared by the threads of the heartbeat and the run, guards every access to the store. It is acquired before
the file's own lock, and never inside a transaction that writes.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from syncengine.database.open import sqlite_engine
from syncengine.errors import GateTripped, SyncengineError
from syncengine.resource import Key
from syncengine.state import tables
from syncengine.state.codec import KINDS
from syncengine.state.database import (
    BUSY_SECONDS,
    FAILURES,
    StateDatabase,
    as_state_errors,
    begin_transaction,
    is_of_disk,
    new_lineage,
    pragma,
)
from syncengine.state.git_repository import Superseded, private_folder
from syncengine.state.git_store import (
    FORMAT,
    KEPT,
    Content,
    GitPlace,
    Snapshot,
    VersionInfo,
    files_of,
    fill,
    lock_of,
    lock_rows,
    rows_of,
    set_lock,
    state_lock,
)
from syncengine.state.history import REFUSED
from syncengine.state.journal import FORGOTTEN, INTENDED, Stamp, note
from syncengine.state.tables import CALLS, FACTS, LOCK, MARKS, METADATA, ROWS, RUNS, STATE_LOCK, VERSION

MOST_ROWS = 20_000
"""The number of rows that a state in Git may have: about 10 MB, which every write reads, and pushes in part."""
TRIES = 20
"""The number of attempts to write while others write: each of them takes about a second, as ours does."""
PAUSES = (1.0, 3.0, 10.0)
"""Seconds to wait before each retry of a publication whose repository was unreachable."""

TOO_LARGE = "state-too-large"


class WorkingCopy:
    """The private database behind `engine`, made from the snapshot `head`, which is `None` for a new state.

    `epoch` is the epoch of our lock, `None` without one. `dirty`: there are unpublished changes. `is_damaged`: the rows
    of the snapshot could not be read, so that the database begins empty. Of the next version, `run` is its run, and
    `keeps` is the number of versions kept.
    """

    def __init__(
        self, place: GitPlace, engine: sa.Engine, now: Callable[[], float], pause: Callable[[float], None] = time.sleep
    ) -> None:
        self.place = place
        self.head: Snapshot | None = None
        self.epoch: int | None = None
        self.dirty = False
        self.is_damaged = False
        self.run: str | None = None
        self.keeps = KEPT
        self._engine = engine
        self._now = now
        self._pause = pause
        self._mutex = threading.RLock()

    def begin(self, head: Snapshot | None) -> None:
        """Fill the empty database from a snapshot, or create a new state in it."""
        with self._mutex:
            if head is None:
                with self._engine.begin() as connection:
                    tables.create(connection, new_lineage())
            else:
                self._load(head)

    def refresh(self) -> None:
        """Read the changes of other processes, unless the lock is ours, so that there are none."""
        with self._mutex:
            if self.epoch is None and self.head is not None:
                self._catch_up()

    def commit(self, change: Callable[[sa.Connection], bool], *, rows: bool) -> bool:
        """Publish a change of the lock, optionally with all `rows`, and apply it here. Return whether it applied."""

        def changed(connection: sa.Connection) -> tuple[bytes, Content | None] | None:
            if not change(connection):
                return None
            return lock_of(connection), self._content(connection) if rows or self.head is None else None

        # While the rows are still those of a ref that was set back, the project must not take them for the last.
        return self._replace(
            changed, lambda connection, lock: change(connection), remembers=not self.place.allows_rewound
        )

    def publish(self, prepare: Callable[[sa.Connection], None] = lambda connection: None) -> None:
        """Publish all rows under our lock, as changed by `prepare`. The private rows stay unchanged."""

        def prepared(connection: sa.Connection) -> tuple[bytes, Content]:
            prepare(connection)
            if self.epoch is not None:
                connection.execute(sa.update(LOCK).where(LOCK.c.id == STATE_LOCK).values(beats=LOCK.c.beats + 1))
            return lock_of(connection), self._content(connection)

        for pause in (*PAUSES, None):
            try:
                with self._mutex:
                    self._replace(
                        prepared, lambda connection, lock: set_lock(connection, lock_rows(lock)), remembers=True
                    )
                    self.dirty, self.keeps = False, KEPT
                return
            except SyncengineError as error:
                if error.code != "state-unreachable" or pause is None:
                    raise
                self._pause(pause)

    def _replace(
        self,
        made: Callable[[sa.Connection], tuple[bytes, Content | None] | None],
        then: Callable[[sa.Connection, bytes], object],
        *,
        remembers: bool,
    ) -> bool:
        """Write the content that `made` returns over the version in the store, and call `then` on the private rows.

        Retry on the new version when another process wrote meanwhile. Return whether `made` returned any content. With
        `remembers`, the project remembers it as the version last seen.
        """
        words = ""
        with self._mutex:
            for _ in range(TRIES):
                with self._engine.connect() as connection:  # which rolls back
                    if (version := made(connection)) is None:
                        return False
                lock, content = version
                try:
                    self.head = self.place.store.write(self.head, lock, content)
                except Superseded as other:
                    words = str(other)
                    self._catch_up()
                    continue
                # Not before the push: what is not in the repository, the next process will not know either.
                if remembers:
                    self.place.remember(self.head)
                with self._engine.begin() as connection:
                    then(connection, lock)
                return True
        others = f"other processes wrote to it {TRIES} times before this run could"
        if words:
            others = f"the repository rejected {TRIES} pushes as if another were under way ({words})"
        message = f"state {self.place.name} is busy: {others}; repeat the command"
        raise SyncengineError(message, code="state-busy")

    def _catch_up(self) -> None:
        """Read the changes of other processes: under our lock only refused runs, otherwise everything.

        Under our lock, continue from our own versions if somebody set the ref back. If another process took over our
        lock, accept that, and raise an error if instead the ref was set back.
        """
        head, last = self.place.look(is_ours=self.epoch is not None), self.head
        if head is None:
            raise GateTripped(f"state {self.place.name} was deleted during the run", code="new-state")
        if self.epoch is None:
            if last is None or head.version != last.version:
                self._load(head)
            elif head.id != last.id:
                self._take_lock(head)
        else:
            assert last is not None, "who has the lock has written it"
            ours, theirs = state_lock(last), state_lock(head)
            # By epoch and id: after a set-back, another may have our epoch.
            is_ours = (theirs["epoch"], theirs["lock_id"]) == (self.epoch, ours["lock_id"])
            if is_ours and theirs["released"] is None:
                if head.version != last.version:
                    # The runs that were refused while we had the lock: nothing else is written without it.
                    refused = [row for row in rows_of(RUNS, self.place.store.files(head)) if row["outcome"] == REFUSED]
                    if refused:
                        with self._engine.begin() as connection:
                            connection.execute(sa.insert(RUNS).prefix_with("OR IGNORE"), refused)
                if last.version not in head.version_ids:
                    head = replace(last, id=head.id)
            else:
                self.epoch = None
                self._take_lock(head)
                self.place.accept(head, self.place.memory.last())
        self.head = head

    def _take_lock(self, head: Snapshot) -> None:
        with self._engine.begin() as connection:
            set_lock(connection, lock_rows(head.lock))

    def _load(self, head: Snapshot) -> None:
        files = self.place.store.files(head)
        try:
            with self._engine.begin() as connection:
                METADATA.drop_all(connection)
                fill(connection, head, files)
        except FAILURES as error:
            if is_of_disk(error) or not self.place.allows_rewound:
                raise self.place.unread(error) from error
            self.is_damaged = True  # begin empty, under the snapshot's lock, so that a version can be restored
            with self._engine.begin() as connection:
                tables.create(connection, head.info.lineage)
                set_lock(connection, lock_rows(head.lock))
        self.head = head

    def _content(self, connection: sa.Connection) -> Content:
        rows = int(connection.execute(sa.select(sa.func.count()).select_from(ROWS)).scalar_one())
        if rows > MOST_ROWS:
            message = (
                f"state {self.place.name} would have {rows:,} rows, but a state in Git may have {MOST_ROWS:,} at most;"
                " move to PostgreSQL (`state export`, set `state:`, `state import`; docs/state.md)"
            )
            raise SyncengineError(message, code=TOO_LARGE)
        if self.epoch is None and self.run is not None:
            run = connection.execute(sa.select(RUNS).where(RUNS.c.id == self.run)).one()
            who, command = f"{run.who} on {run.host}", f"{run.command} ({run.outcome})"
        else:
            holder = connection.execute(sa.select(LOCK.c.holder).where(LOCK.c.id == STATE_LOCK)).scalar_one() or {}
            is_open = connection.execute(sa.select(CALLS.c.id).where(CALLS.c.outcome.is_(None)).limit(1)).first()
            who = f"{holder.get('user', '?')} on {holder.get('host', '?')}"
            command = f"{holder.get('command', '?')}{' (begun)' if is_open else ''}"
        info = VersionInfo(
            format=FORMAT,
            schema=VERSION,
            lineage=str(connection.execute(sa.select(FACTS.c.lineage)).scalar_one()),
            serial=self.head.info.serial + 1 if self.head else 1,
            when=self._now(),
            who=who,
            command=command,
            rows=rows,
            run=self.run,
        )
        return Content(info, files_of(connection), self.keeps)


def copy_of(database: StateDatabase) -> WorkingCopy:
    """Return the private copy of a state in Git."""
    assert database.working_copy is not None, "only a state in Git has versions"
    return database.working_copy


def restore(copy: WorkingCopy, connection: sa.Connection, stamp: Stamp, version: Snapshot) -> None:
    """Take over the rows of a version, and also its history if the current version does not descend from it.

    Calls that may still be executed stay recorded in either case.
    """
    store, head = copy.place.store, copy.head
    files = store.files(version)
    comes_from_it = False
    if head is not None and not copy.is_damaged and head.info.lineage == version.info.lineage:
        last = copy.place.marks(version).last
        comes_from_it = copy.place.marks(head).contain(last.number, last.change)
    before = _keys(connection)
    source = sa.create_engine("sqlite://", poolclass=StaticPool)
    try:
        with source.begin() as other:
            fill(other, version, files)
            for table in (ROWS,) if comes_from_it else METADATA.sorted_tables:
                if table in (LOCK, MARKS):  # the marks tell every folder that what follows is meant
                    continue
                rows = [dict(row._mapping) for row in other.execute(sa.select(table))]
                if table is CALLS:
                    rows += _landing(connection, rows)
                connection.execute(sa.delete(table))
                if rows:
                    connection.execute(sa.insert(table), rows)
    except FAILURES as error:
        raise copy.place.unread(error) from error
    if comes_from_it:
        note(connection, stamp, FORGOTTEN, sorted(before - _keys(connection)))


def _landing(connection: sa.Connection, restored: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls that may still be executed and are not among the restored ones, with ids after theirs."""
    present = {(row["run"], row["call"]) for row in restored}
    last = max((row["id"] for row in restored), default=0)
    query = sa.select(CALLS).where(CALLS.c.content.is_not(None)).order_by(CALLS.c.id)
    calls = [dict(row._mapping) for row in connection.execute(query) if (row.run, row.call) not in present]
    return [
        {**call, "id": last + number, "outcome": call["outcome"] or INTENDED} for number, call in enumerate(calls, 1)
    ]


def _keys(connection: sa.Connection) -> set[Key]:
    return {Key(KINDS[kind], name) for kind, name in connection.execute(sa.select(ROWS.c.kind, ROWS.c.name))}


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


def open_to_write(place: GitPlace, now: Callable[[], float]) -> StateDatabase:
    """Open a private copy of the state, whose changes reach the repository when they are published."""
    with as_state_errors(place.name), ExitStack() as stack:
        stack.callback(place.store.tidy)
        database = _new_database(place, stack)
        pragma(database.engine, "PRAGMA journal_mode = WAL")
        head = place.look()
        database.is_new = head is None
        database.working_copy = WorkingCopy(place, database.engine, now)
        database.working_copy.begin(head)
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
