"""How an open state is locked, and how a write reaches the database, the project's folder and a Git ref."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

import sqlalchemy as sa

from syncengine.instants import machine_seconds
from syncengine.project.runner import Holder
from syncengine.state import journal, tables
from syncengine.state.database import LockLost, StateDatabase, StateReplaced, as_state_errors, new_lineage
from syncengine.state.folder_memory import BRANCHED, MARKED, ChangeMark, FolderMemory, StateMarks, number_of
from syncengine.state.history import Run
from syncengine.state.journal import Stamp
from syncengine.state.lock import LEASE_SECONDS, Clock, Lease, LockInfo, Locks, proven, short_id, taken_over
from syncengine.state.records import PublishedCalls
from syncengine.state.tables import FACTS, MARKS

REQUEST_SECONDS = 30.0
"""How long a request of an earlier holder may take where its command does not tell: the default of `timeout`."""


def read_marks(connection: sa.Connection, number: int) -> StateMarks:
    """Return the marks that matter to a folder that saw the one with this number last.

    They are all branches, the mark with this number, the last one, and the oldest that was kept.
    """
    last = sa.select(sa.func.max(MARKS.c.id)).scalar_subquery()
    oldest = sa.select(sa.func.min(MARKS.c.id)).where(MARKS.c.verb == MARKED).scalar_subquery()
    matters = sa.or_(MARKS.c.verb == BRANCHED, MARKS.c.id.in_((number, last, oldest)))
    query = sa.select(MARKS.c.id, MARKS.c.verb, MARKS.c.change).where(matters).order_by(MARKS.c.id)
    lineage = connection.execute(sa.select(FACTS.c.lineage)).scalar_one()
    return StateMarks(lineage, tuple(ChangeMark(*row) for row in connection.execute(query)))


class StateWriter:
    """An open state with at most one lease and one run. Also a context manager that closes the state.

    `branches`: a state that was set back, or begins anew, is meant; other folders are to accept it. `doubted` is true
    once a row was marked doubtful through this object although no call had left it in doubt.
    """

    def __init__(
        self,
        database: StateDatabase,
        now: Callable[[], float],
        *,
        seconds: Callable[[], float] = machine_seconds,
        memory: FolderMemory | None = None,
        branches: bool = False,
    ) -> None:
        self.database = database
        self.exists = not database.absent
        self.lease: Lease | None = None
        self.doubted = False
        self._now = now
        self._clock = Clock.of_database(database.engine.dialect.name, seconds)
        self._locks = Locks(database, now, seconds=seconds)
        self._memory = memory
        self._branches = branches or (database.is_new and memory is not None and memory.last() is not None)
        self._is_marked = False
        self._generation: str | None = None  # as this object last wrote it, under the lock alone
        self._tried: str | None = None  # of the write that began last: if it failed, it may have been committed
        self._run: Run | None = None
        self._ancestors: tuple[str, ...] = ()
        self._shared: sa.Connection | None = None
        self._published = PublishedCalls()
        # Set by whatever must be in the repository before the next call is sent: an intent that only this machine knows
        # would be lost with it, and with it the doubt. It is set for every state, but only one in Git publishes.
        self._must_publish = False

    # The lock.

    def current_lock(self) -> LockInfo | None:
        return self._locks.current()

    def lock(
        self,
        holder: Holder,
        *,
        wait: float,
        request_timeout: float,
        sleep: Callable[[float], None] = time.sleep,
        lease_seconds: float = LEASE_SECONDS,
        new_id: Callable[[], str] = short_id,
        on_wait: Callable[[LockInfo], None] = lambda lock: None,
    ) -> Lease:
        """Take the lock that every writing method needs. Raise `LockHeld`, naming the holder, after `wait` seconds."""
        self.lease = self._locks.acquire(
            holder,
            lock_id=new_id(),
            wait=wait,
            request_timeout=request_timeout,
            sleep=sleep,
            seconds=lease_seconds,
            on_wait=on_wait,
        )
        if self.database.working_copy is not None:
            self.database.working_copy.epoch = self.lease.epoch
            self.lease.before_release = self._publish_rest
            return self.lease
        with self.database.transaction() as connection:
            self._generation = connection.execute(sa.select(FACTS.c.generation)).scalar_one()
            present = read_marks(connection, number_of(self._memory) if self._memory else 0)
        self._tried = self._generation
        if self._memory is not None:  # not before the lock is ours: a run that ends now would still add its mark
            self._memory.take(present, is_meant=self._branches)
        self.lease.before_release = self._mark_end
        return self.lease

    def hold(self, holder: Holder, reason: str | None) -> LockInfo:
        """Lock the state by hand. The lock lasts until `force_unlock` ends it."""
        return self._locks.hold(replace(holder, reason=reason), lock_id=short_id(), request_timeout=REQUEST_SECONDS)

    def force_unlock(self, lock_id: str) -> bool:
        """End the lock with this id, whoever holds it, so that the holder's next write fails. `False`: no such lock."""
        return self._locks.break_open(lock_id)

    def close(self) -> None:
        """Release the lock and close the database."""
        if self.lease:
            self.lease.release()
        self.database.close()

    def abandon(self) -> None:
        """Stop like a process that dies: publish nothing, and let the lock expire."""
        if self.lease:
            self.lease.abandon()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self.lease:
                self.lease.__exit__(kind)
        finally:
            self.close()

    # How a write is made: in a transaction that proves the lock, marked for the project's folder, published in Git.

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run all writes made inside the block in one transaction, so that they reach the disk together."""
        if self._shared is not None:
            yield
            return
        with self._writing() as connection:
            self._shared = connection
            try:
                yield
            finally:
                self._shared = None
        self._publish_intents()

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """Open a transaction that first proves the lock's epoch (docs/planning.md 1.5).

        Raise `StateReplaced` if the state lacks our last write, as after a backup was restored over it.
        """
        if self._shared is not None:
            yield self._shared
            return
        copy = self.database.working_copy
        is_first = not self._is_marked and copy is None
        with proven(self.database, self.lease) as connection:
            last = sa.or_(*(FACTS.c.generation.is_not_distinct_from(each) for each in (self._generation, self._tried)))
            self._tried = new_lineage()
            advance = sa.update(FACTS).values(generation=self._tried)
            # A backup of the time of this lease has our lock's row: only the last generation tells it from our state.
            if connection.execute(advance.where(last) if copy is None else advance).rowcount == 0:
                raise StateReplaced.of(self.database.name)
            if is_first:
                self._mark(connection)
            yield connection
        self._generation = self._tried
        if is_first:
            self._is_marked, self._branches = True, False
            self._remember()
        if copy is not None:
            copy.dirty = True
            self._publish_intents()

    def _mark(self, connection: sa.Connection) -> None:
        """Append a mark of a change, by which it is noticed that a state was set back."""
        verb = BRANCHED if self._branches else MARKED
        connection.execute(sa.insert(MARKS).values(at=self._now(), verb=verb, change=new_lineage()))

    def _mark_end(self) -> None:
        """Mark the last change of this session, unless the lock was taken over, so that another's mark is the last."""
        if not self._is_marked:
            return
        self._is_marked = False
        try:
            with proven(self.database, self.lease) as connection:  # of the same generation: no row changes
                self._mark(connection)
        except StateReplaced:
            raise
        except LockLost:
            return
        self._remember()

    def _remember(self) -> None:
        """Have the project's folder remember our last mark."""
        if self._memory is not None:
            with self.database.transaction() as connection:
                present = read_marks(connection, 0)
            self._memory.remember(present)

    def _publish_intents(self) -> None:
        """Publish the intents that no publication covers yet, before the next call is sent."""
        if self._must_publish and self._shared is None:
            self._must_publish = False
            if self.database.working_copy is not None:
                self._publish()

    def _publish_rest(self) -> None:
        """Publish all unpublished changes, after trimming the journal that every version repeats."""
        self._published = PublishedCalls()
        if self.database.working_copy is not None and self.database.working_copy.dirty:
            from syncengine.state.removal import trim

            with proven(self.database, self.lease) as connection:
                trim(connection, self._now())
            self._publish()

    def _publish(self) -> None:
        """Publish the state, with the announced calls as if they had been sent, with all effects that they may have.

        So a plan of many calls is published once before the first, and not before each: a push takes about a second.
        """
        copy, lease = self.database.working_copy, self.lease
        with proven(self.database, lease) as connection:
            self._mark(connection)
        self._branches = False
        assert copy is not None
        assert lease is not None, "it was proven"

        def with_all_under_way(connection: sa.Connection) -> None:
            lease.prove(connection)
            if self._published.attempts and self._run is not None:
                begun = journal.calls_of(connection, self._run.id)
                calls = {call: attempt for call, attempt in self._published.attempts.items() if call not in begun}
                connection.execute(sa.update(FACTS).values(generation=new_lineage()))
                self._mark_applied(connection)
                journal.intend(connection, self._stamp, calls)
                journal.record(connection, self._stamp, self._published.records)

        with lease.renewal():
            with as_state_errors(self.database.name):
                copy.publish(with_all_under_way)
            if copy.epoch is None:
                raise taken_over(lease.info)

    def _mark_applied(self, connection: sa.Connection) -> None:
        """Record the run's commit. From the first intent on, an older commit is refused (docs/planning.md 1.7)."""
        if self._current.commit is not None:
            tables.write_commit(connection, self._current.commit, self._ancestors)

    @property
    def _current(self) -> Run:
        assert self._run is not None, "begin_run comes first"
        return self._run

    @property
    def _stamp(self) -> Stamp:
        run = self._run
        return Stamp(run.id if run else None, run.plan if run else None, self._now())
