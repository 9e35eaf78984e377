"""An open state: what can be read of it, and what can be written under its lock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

import sqlalchemy as sa

from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.instants import machine_seconds
from syncengine.project.git_ref import is_git_ref
from syncengine.resource import Key, Recorded, Status
from syncengine.state import decisions, journal, tables
from syncengine.state import history as history_rows
from syncengine.state.database import StateDatabase, StateReplaced, as_state_errors, empty, new_lineage, open_database
from syncengine.state.folder_memory import BRANCHED, MARKED, ChangeMark, FolderMemory, StateMarks, number_of
from syncengine.state.history import Run
from syncengine.state.journal import Stamp
from syncengine.state.lock import LEASE_SECONDS, Clock, Holder, Lease, LockInfo, LockLost, Locks, proven, short_id
from syncengine.state.records import (
    DEFAULT_SECONDS,
    Approved,
    Attempt,
    CallFailure,
    Facts,
    Outstanding,
    PublishedCalls,
    QuarantineRecord,
    Refusal,
    Settlement,
    UndoneChange,
    UndoneRecord,
)
from syncengine.state.tables import FACTS, MARKS, ROWS, SESSIONS

if TYPE_CHECKING:
    from syncengine.state.git_store import Snapshot
    from syncengine.state.removal import Erased, Obstacle, Pruned

__all__ = [
    "LEASE_SECONDS",
    "Attempt",
    "CallFailure",
    "Facts",
    "Run",
    "Settlement",
    "State",
    "new_lineage",
    "open_state",
]

P = ParamSpec("P")
T = TypeVar("T")

REQUEST_SECONDS = 30.0
"""How long a request of an earlier holder may take where its command does not tell: the default of `timeout`."""


def open_state(
    url: str,
    *,
    write: bool,
    now: Callable[[], float] = time.time,
    seconds: Callable[[], float] = machine_seconds,
    create: bool = False,
    allows_rewound: bool = False,
    memory: FolderMemory | None = None,
) -> State:
    """Open the state at a path, a SQLAlchemy URL or a Git ref.

    With `write`, create a missing state; without, write nothing and read a missing state as empty. `now` is the
    wall clock for times shown to people; `seconds` is this machine's monotonic clock, used to watch other lock holders.
    Rows of a state in Git stay private until they are published. `create` permits beginning a new state in Git, or one
    that `memory` knows; for a state in Git, `allows_rewound` permits reading a ref that was set back.

    `memory` is the project's memory of a state outside of Git: if it knows a state, there must be one, and once it is
    locked or, without `write`, opened, it must have the last change that the project knows. With `allows_rewound`, it
    need not, and every other folder accepts it from then on.

    Raise `SyncengineError` when the place holds something other than a state, or a state of another version.
    """
    if is_git_ref(url):
        from syncengine.state.git_store import GitPlace
        from syncengine.state.working_copy import open_to_read, open_to_write

        place = GitPlace(url, create=create, allows_rewound=allows_rewound)
        database = open_to_write(place, now) if write else open_to_read(place) or empty(place.name)
        return State(database, now, seconds=seconds, memory=place.memory, branches=allows_rewound)
    if write and not (create or allows_rewound):
        refuse_vanished(url, memory)  # before it is created below
    state = State(open_database(url, write=write), now, seconds=seconds, memory=memory, branches=allows_rewound)
    if memory is not None and not (write or allows_rewound):
        try:
            memory.recognize(state, may_be_missing=create)
        except SyncengineError:
            state.close()
            raise
    return state


def refuse_vanished(url: str, memory: FolderMemory | None) -> None:
    """Raise `GateTripped` if the project's memory knows a state, and there is none any more."""
    if memory is not None and memory.last() is not None:
        with open_state(url, write=False) as looked:
            if not looked.exists:
                memory.refuse_missing()


def reading(question: Callable[Concatenate[sa.Connection, P], T]) -> Callable[Concatenate[State, P], T]:
    """Make a method of a function that reads: it has a transaction of its own, and the function's docstring."""

    @wraps(question)
    def method(state: State, /, *values: P.args, **names: P.kwargs) -> T:
        with state.database.transaction() as connection:
            return question(connection, *values, **names)

    return method


def streaming(
    question: Callable[Concatenate[sa.Connection, P], Iterable[T]],
) -> Callable[Concatenate[State, P], Iterator[T]]:
    """Make a method of a function that yields what it reads: the transaction lasts until all is consumed."""

    @wraps(question)
    def method(state: State, /, *values: P.args, **names: P.kwargs) -> Iterator[T]:
        with state.database.transaction() as connection:
            yield from question(connection, *values, **names)

    return method


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


class State:
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

    # What can be read, each in one transaction.
    facts = reading(tables.facts)
    count = reading(tables.count)
    rows = streaming(tables.stream)
    addresses_like = reading(tables.addresses_like)
    get = reading(tables.visible)
    members = reading(tables.members)
    marks = reading(read_marks)
    answering_paths = reading(tables.paths)
    open_sessions = reading(history_rows.open_sessions)
    plan_ended = reading(history_rows.plan_ended)
    plan_began = reading(history_rows.plan_began)
    runs = reading(history_rows.runs)
    runs_of = reading(history_rows.runs_of)
    runs_like = reading(history_rows.runs_like)
    history = reading(history_rows.history)
    removals = reading(history_rows.removals)
    settled_at = reading(history_rows.settled_at)
    forgotten = reading(history_rows.forgotten)
    writing_run = reading(history_rows.writing_run)
    has_changed = reading(history_rows.has_changed)
    was_pruned = reading(history_rows.was_pruned)
    was_erased = reading(history_rows.was_erased)
    family_of = reading(history_rows.family_of)
    changes_of = reading(history_rows.changes_of)
    undone = reading(history_rows.undone)
    approvals = reading(decisions.approvals)
    refusals = reading(decisions.refusals)
    quarantine = reading(decisions.quarantine)

    def under_way(self, window: float) -> float:
        """Return for how many more seconds some call may be executed. Reads only."""
        with self.database.transaction() as connection:
            return max((late.remaining for late in journal.outstanding(connection, self._clock, window)), default=0.0)

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

    # A run, from its begin to its end.

    def begin_run(
        self,
        run: Run,
        sources: Mapping[str, int] | None = None,
        approved: Approved | None = None,
        undone: UndoneRecord | None = None,
        ancestors: Sequence[str] = (),
    ) -> None:
        """Start a run. Every write until its end is recorded under it.

        Runs that died are closed first, and the rows of their open calls become doubtful. `sources`: the number of rows
        in each data source. `approved`: the removals that the approvals of the plan cover. `undone`: changes that the
        run marks as undone, and marks that it lifts. `ancestors`: the commits before the run's own.
        """
        with self._writing() as connection:
            # Before the new run is written: it must not take part in what dead ones left open.
            self._end_calls(connection, self.lease.quiet if self.lease else 0.0)
            history_rows.open_run(connection, run, self._now(), by_unit=approved is not None)
            if approved is not None:
                decisions.begin_approvals(connection, run.id, run.plan, approved, self._now())
            if undone is not None:
                history_rows.write_undone(connection, undone.lifted, undone.changes)
            if sources:
                existing = tables.facts(connection).sources  # the larger number stays: the run may end half-way
                most = {name: max(rows, existing.get(name, 0)) for name, rows in sources.items()}
                connection.execute(sa.update(FACTS).values(sources={**existing, **most}))
        self._run, self._ancestors, self._published = run, tuple(ancestors), PublishedCalls()
        if self.database.working_copy is not None:
            self.database.working_copy.run = run.id

    def end_run(self, outcome: str, counts: Mapping[str, int], sources: Mapping[str, int] | None = None) -> None:
        """Close the run. The rows of calls that are still in flight become doubtful.

        `sources`: the number of rows in each data source, recorded when the run is complete.
        """
        with self._writing() as connection:
            self._end_calls(connection, 0.0)
            history_rows.close_run(connection, self._current.id, self._now(), outcome, counts)
            if outcome == "complete":
                self._mark_applied(connection)
                if sources is not None:
                    connection.execute(sa.update(FACTS).values(sources=dict(sources)))
        self._publish_rest()
        self._run = None

    def _end_calls(self, connection: sa.Connection, quiet: float) -> None:
        """End what a run leaves behind: nobody has sent its calls for `quiet` seconds, and nobody will."""
        journal.abandon(connection)
        journal.take_over(connection, self._clock, quiet)
        decisions.end_refusals(connection)
        decisions.settle_approvals(connection, self._now())  # last: a loss whose row is in doubt has not settled

    def record_refusal(self, run: Run) -> None:
        """Append a refused run to the history. No lock is needed: a held lock may be the reason for the refusal."""
        copy = self.database.working_copy
        if copy is None:
            with self.database.transaction() as connection:
                history_rows.refused_run(connection, run)
            return

        def append(connection: sa.Connection) -> bool:
            history_rows.refused_run(connection, run)
            return True

        copy.run = run.id
        with as_state_errors(self.database.name):
            copy.commit(append, rows=True)

    # Calls: announced, intended before they are sent, settled or failed, and ended.

    def announce(self, calls: Callable[[], PublishedCalls]) -> None:
        """Publish all calls of a plan as under way, before the first is sent. Only a state in Git needs this."""
        if self.database.working_copy is not None:
            self._published = calls()
            self._publish()

    def intend(self, calls: Mapping[str, Attempt]) -> None:
        """Record that calls are about to be sent: write their additions and mark their rows as in flight."""
        # An intent must be in the repository before its call is sent: see `_must_publish`.
        self._must_publish = self._must_publish or not self._published.covers(calls.values())
        with self._writing() as connection:
            self._mark_applied(connection)
            decisions.mark_refusals(connection, "pending", self._current.id, _keys_of(calls.values()))
            journal.intend(connection, self._stamp, calls)

    def settle(self, entries: Sequence[Settlement]) -> None:
        """Record the removals of calls that were answered with a 2xx. Effects not passed here stay in flight."""
        with self._writing() as connection:
            journal.settle(connection, self._stamp, entries)
            decisions.mark_refusals(connection, "settled", self._stamp.run, _keys_of(entries))

    def fail(self, entries: Sequence[CallFailure]) -> None:
        """Record that calls were refused. Their rows keep their content and become doubtful."""
        refused = {key: content for entry in entries for key, content in entry.refused.items()}
        messages = {key: entry.message for entry in entries for key in entry.refused}
        others = [key for entry in entries for key in entry.keys if key not in entry.refused]
        with self._writing() as connection:
            stamp = self._stamp
            journal.fail(connection, stamp, entries)
            decisions.refuse(connection, stamp.run, refused, messages, stamp.at)
            decisions.mark_refusals(connection, "pending", stamp.run, others)

    def end_attempts(self, ended: Sequence[str], lingering: Mapping[str, float]) -> None:
        """Drop `ended` calls. Keep `lingering` calls, each with the seconds since its sender gave it up."""
        with self._writing() as connection:
            journal.end_attempts(connection, self._current.id, ended)
            journal.linger(connection, self._clock, self._current.id, lingering)

    def outstanding(self, window: float) -> list[Outstanding]:
        """Return the calls that the service may still execute within `window` seconds after their sender stopped."""
        with self._writing() as connection:
            journal.expire(connection, self._clock, window)
            return journal.outstanding(connection, self._clock, window)

    def path_answered(self, operation: str, path: str) -> None:
        """Record that the operation has answered at this path."""
        with self._writing() as connection:
            tables.answered(connection, operation, path)

    def session_opened(self, session: str) -> None:
        """Record a sync session before its first call: one that nobody knows could never be closed."""
        self._must_publish = True  # or a lost machine would leave a session that nobody can close
        with self._writing() as connection:
            opened = sa.insert(SESSIONS).values(id=session, run=self._stamp.run, opened=self._now())
            connection.execute(opened)

    def session_closed(self, session: str) -> None:
        with self._writing() as connection:
            connection.execute(sa.update(SESSIONS).where(SESSIONS.c.id == session).values(closed=self._now()))

    # Rows, without a call.

    def record(self, effects: Sequence[Effect]) -> None:
        """Record effects that no call was sent for. Effects on unrecorded keys are skipped."""
        with self._writing() as connection:
            journal.record(connection, self._stamp, effects)

    def put(self, rows: Sequence[Recorded]) -> None:
        """Write whole rows over the recorded ones, as `adopt` and `state import` do."""
        keys = [row.key for row in rows]
        with self._writing() as connection:
            journal.put(connection, self._stamp, rows)
            decisions.forget_decisions(connection, keys)
            # After the rows are written as given: a late call for one of them carries other content than the new row.
            journal.doubt(connection, journal.in_question(connection, self._clock, math.inf, keys))
            decisions.withdraw_losses(connection, keys, self._now())

    def doubt(self, keys: Iterable[Key]) -> None:
        """Mark the rows of `keys` as doubtful, so that the next plan sends them again."""
        self._doubt(list(keys), doubtful=True)

    def doubt_ids(self, categories: Iterable[Key]) -> None:
        """Doubt categories and their recorded ids, so that the next plan sends the categories again by name alone."""
        self._doubt(list(categories), doubtful=True, confirmed=False)

    def _doubt(self, keys: Sequence[Key], **flags: bool) -> None:
        self.doubted = self.doubted or bool(keys)
        with self._writing() as connection:
            tables.change_keyed(connection, sa.update(ROWS), ROWS, keys, **flags)
            journal.note(connection, self._stamp, journal.DOUBTED, keys)

    def doubt_all(self) -> int:
        """Doubt every row except deleted ones, and return the number of rows changed (docs/planning.md 7)."""
        may_be_held = sa.and_(ROWS.c.doubtful.is_(False), ROWS.c.status != Status.DELETED.value)
        writer = {"run": self._run.id} if self._run else {}
        with self._writing() as connection:
            return connection.execute(sa.update(ROWS).where(may_be_held).values(doubtful=True, **writer)).rowcount

    def forget(self, keys: Iterable[Key], window: float = DEFAULT_SECONDS) -> int:
        """Delete the rows of `keys` and return their number. Their journal stays.

        Raise `SyncengineError` if a call that may be executed within `window` seconds would bring back a forgotten
        resource.
        """
        keys = list(keys)
        with self._writing() as connection:
            if late := journal.in_question(connection, self._clock, window, keys):
                key, seconds = next(iter(late.items()))
                message = f"{key}: an earlier call may still be executed; retry in {math.ceil(seconds)} s"
                raise SyncengineError(message, code="landing")
            decisions.forget_decisions(connection, keys)
            return journal.forget(connection, self._stamp, keys)

    def restore(self, version: Snapshot) -> None:
        """Replace the rows by those of an earlier version of a state in Git."""
        from syncengine.state.working_copy import copy_of, restore

        with self._writing() as connection:
            restore(copy_of(self.database), connection, self._stamp, version)

    # Approvals, undone changes and quarantine.

    def use_up_approvals(self, texts: Iterable[str]) -> None:
        """Mark the given approvals as used, and all approvals in progress: their removals are recorded anew."""
        with self._writing() as connection:
            decisions.use_up_approvals(connection, texts, self._current.id, self._now())

    def add_undone(self, changes: Sequence[UndoneChange]) -> None:
        """Add undone changes that `state import` has read."""
        with self._writing() as connection:
            history_rows.write_undone(connection, (), changes)

    def set_aside(self, records: Sequence[QuarantineRecord]) -> None:
        """Quarantine resources, replacing earlier records of theirs."""
        with self._writing() as connection:
            decisions.set_aside(connection, records)
            journal.note(connection, self._stamp, journal.QUARANTINED, [record.key for record in records])

    def end_quarantine(self, keys: Sequence[Key]) -> None:
        """End the quarantine of resources that were set aside by hand."""
        with self._writing() as connection:
            decisions.end_quarantine(connection, keys)
            journal.note(connection, self._stamp, journal.QUARANTINE_ENDED, keys)

    def import_quarantine(self, refusals: Iterable[Refusal], quarantine: Sequence[QuarantineRecord]) -> None:
        """Write the refusals and the quarantine imported from another state. Call this after importing its rows."""
        with self._writing() as connection:
            decisions.import_refusals(connection, refusals)
            decisions.set_aside(connection, quarantine)

    # The state as a whole.

    def set_facts(
        self, *, base_url: str | None = None, team: str | None = None, owns_activity_types: bool | None = None
    ) -> None:
        """Store facts about the state. `None` keeps the stored value."""
        facts = {"base_url": base_url, "team": team, "owns_activity_types": owns_activity_types}
        values = {name: value for name, value in facts.items() if value is not None}
        with self._writing() as connection:
            if values:
                connection.execute(sa.update(FACTS).values(values))

    def take_commit(self, commit: str | None, ancestors: Sequence[str]) -> None:
        """Take over another state's last applied commit, unless this state has a commit not among `ancestors`."""
        if commit is not None and self.facts().commit in (None, *ancestors):
            with self._writing() as connection:
                tables.write_commit(connection, commit, ancestors)

    def begin_lineage(self, *, base_url: str, team: str | None) -> None:
        """Give the state a new lineage at this service, so that earlier saved plans and approvals no longer fit."""
        values = {"lineage": new_lineage(), "base_url": base_url, "owns_activity_types": False}
        self._branches, self._is_marked = True, False
        with self._writing() as connection:
            connection.execute(sa.update(FACTS).values(values | ({"team": team} if team else {})))

    def prune(self, before: float, *, is_trial: bool = False) -> Pruned:
        """Remove history before `before`, except entries that rows, the gate or approvals need. A trial only counts."""
        from syncengine.state import removal

        before = min(before, self._now() - removal.GATE_SECONDS)  # or the gate would forget removals of today
        with self.database.transaction() if is_trial else self._removing() as connection:
            return removal.prune(connection, before, is_trial=is_trial)

    def obstacles(self, keys: Collection[Key], window: float) -> list[Obstacle]:
        """Return the reasons why `keys` cannot be erased now. A call may land for up to `window` seconds."""
        from syncengine.state import removal

        with self._writing() as connection:
            journal.expire(connection, self._clock, window)
            return list(removal.obstacles(connection, self._clock, keys, window))

    def erase(self, keys: Collection[Key]) -> Erased:
        """Remove resources, including their names and contents in the history. Call `compact` afterwards."""
        from syncengine.state.removal import erase

        with self._removing() as connection:
            return erase(connection, keys)

    @contextmanager
    def _removing(self) -> Iterator[sa.Connection]:
        with self._writing() as connection:
            if self.database.working_copy is not None:
                # The next publication drops the versions that have what is removed.
                self.database.working_copy.keeps = 1
            yield connection

    def compact(self) -> bool:
        """Physically remove deleted rows (of a state in Git: from this machine's data); return whether it succeeded."""
        copy = self.database.working_copy
        return self.database.compact() if copy is None else copy.place.drop_earlier()

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
                raise LockLost(
                    f"lock {lease.info.id} was released or taken over by another run; nothing more is written"
                )

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


def _keys_of(entries: Iterable[Attempt | Settlement]) -> list[Key]:
    return [effect.key for entry in entries for effect in entry.effects]
