"""The cached prior state for the engine: reads of rows and history, and writes made under a lease."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from syncengine.document.clock import machine_seconds
from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.project.git_ref import is_git_ref
from syncengine.resource import Key, Kind, Recorded, Status
from syncengine.state import (
    approvals,
    attempts,
    history,
    info,
    journal,
    quarantine,
    queries,
    run_changes,
    undone_table,
)
from syncengine.state.clock import Clock
from syncengine.state.codec import Content
from syncengine.state.database import StateDatabase, empty, open_database
from syncengine.state.errors import StateReplaced, as_state_errors
from syncengine.state.folder_memory import BRANCHED, MARKED, FolderMemory, number_of
from syncengine.state.history import HistoryEntry, Run
from syncengine.state.info import (
    LAST_LIMITS,
    Facts,
    facts_of,
    limits_of,
)
from syncengine.state.journal import CallFailure, Settlement, Stamp
from syncengine.state.journal_detail import RemovalLine
from syncengine.state.landing import DEFAULT_SECONDS, Attempt, Outstanding
from syncengine.state.lock import Holder, Lease, LockInfo, LockLost, Locks, proven, short_id
from syncengine.state.losses import ApprovalRecord, Approved
from syncengine.state.published import PublishedCalls
from syncengine.state.refusals import BY_HAND, QuarantineRecord, Refusal, with_end
from syncengine.state.run_changes import ChangedRow
from syncengine.state.tables import FACTS, ROWS, SESSIONS
from syncengine.state.transfer import SetAsideRows
from syncengine.state.undone import UndoneChange, UndoneRecord

if TYPE_CHECKING:
    from syncengine.state.erase import Erased, Obstacle
    from syncengine.state.prune import Pruned

if TYPE_CHECKING:
    from syncengine.state.snapshots.versions import Snapshot

__all__ = ["Attempt", "CallFailure", "Facts", "Run", "Settlement", "State", "open_state"]

# Statements that every run needs are built once: building a statement takes longer than SQLite takes to execute it.
NEW_GENERATION = sa.update(FACTS).values(generation=sa.bindparam("new"))
_NEXT_GENERATION = NEW_GENERATION.where(
    sa.or_(*(FACTS.c.generation.is_not_distinct_from(sa.bindparam(name, type_=sa.Text)) for name in ("last", "tried")))
)
_LAST_WRITTEN = sa.select(FACTS.c.lineage, FACTS.c.generation)
_SET_FACTS = sa.update(FACTS)
_SOURCES = sa.select(FACTS.c.sources)
_OPEN_SESSION = sa.insert(SESSIONS)
_CLOSE_SESSION = sa.update(SESSIONS).where(SESSIONS.c.id == sa.bindparam("of_id"))
_OPEN_SESSIONS = sa.select(SESSIONS.c.id).where(SESSIONS.c.closed.is_(None)).order_by(SESSIONS.c.opened, SESSIONS.c.id)
LEASE_SECONDS = 60.0
REQUEST_SECONDS = 30.0
RECENT = 1000
"""The number of latest runs searched for the last run that changed something."""


def new_lineage() -> str:
    return str(uuid.uuid4())


def open_state(
    url: str,
    *,
    write: bool,
    now: Callable[[], float] = time.time,
    seconds: Callable[[], float] = machine_seconds,
    new_lineage: Callable[[], str] = new_lineage,
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
        from syncengine.state.snapshots.open import open_to_read, open_to_write
        from syncengine.state.snapshots.place import GitPlace

        place = GitPlace(url, create=create, allows_rewound=allows_rewound)
        database = open_to_write(place, now, new_lineage) if write else open_to_read(place) or empty(place.name)
        return State(database, now, seconds=seconds)
    if write and not (create or allows_rewound):
        refuse_vanished(url, memory)  # before it is created below
    database = open_database(url, write=write, new_lineage=new_lineage)
    state = State(database, now, seconds=seconds, memory=memory, branches=allows_rewound)
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


class State:
    """An open state: recorded rows, their journal, runs and the lock. Also a context manager that closes the state.

    `doubted` is true once a row was marked doubtful through this object although no call had left it in doubt.
    """

    def __init__(
        self,
        database: StateDatabase,
        now: Callable[[], float],
        new_generation: Callable[[], str] = new_lineage,
        *,
        seconds: Callable[[], float] = machine_seconds,
        memory: FolderMemory | None = None,
        branches: bool = False,
    ) -> None:
        self.database = database
        self._memory = memory
        self._branches = branches or (database.is_new and memory is not None and memory.last() is not None)
        self._is_marked = False
        self.exists = not database.absent
        self.lease: Lease | None = None
        self.doubted = False
        self._now = now
        self._locks = Locks(database, now, seconds=seconds)
        self._clock = Clock.of_database(database.engine.dialect.name, seconds)
        self._run: Run | None = None
        self._ancestors: tuple[str, ...] = ()
        self._knows_refusals = True  # queried once per run: nobody else writes refusals while the run has the lock
        self._shared: sa.Connection | None = None
        self._published = PublishedCalls()
        # Set by whatever must be in the repository before the next call is sent: an intent that only this machine knows
        # would be lost with it, and with it the doubt. It is set for every state, but only one in Git publishes.
        self._must_publish = False
        self._new_generation = new_generation
        self._generation: str | None = None  # as this object last wrote it, under the lock alone
        self._tried: str | None = None  # of the write that began last: if it failed, it may have been committed

    def facts(self) -> Facts:
        with self.database.transaction() as connection:
            *facts, last = connection.execute(_FACTS).one()
            return replace(facts_of(facts), limits=limits_of(last))

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]:
        """Yield all recorded rows, or the rows of one kind, ordered by kind and name and read lazily."""
        with self.database.transaction() as connection:
            yield from queries.stream(connection, kind)

    def count(self) -> int:
        """Return the number of recorded rows."""
        with self.database.transaction() as connection:
            return int(connection.execute(sa.select(sa.func.count()).select_from(ROWS)).scalar_one())

    def marks(self, number: int) -> Sequence[Sequence[object]]:
        """Return the marks that matter to a folder that saw the one with this number last."""
        with self.database.transaction() as connection:
            return journal.marks(connection, number)

    def contents(self) -> Iterator[Content]:
        """Yield the content of every row, in no order, read as it is consumed."""
        with self.database.transaction() as connection:
            yield from queries.contents(connection)

    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
        """Return the recorded rows of `keys`. Keys that are not recorded are left out."""
        with self.database.transaction() as connection:
            if queries.is_empty(connection):  # as before a first apply, whose plan has the most keys
                return {}
            return queries.fetch(connection, keys, queries.visible_rows())

    def removals(self, since: float) -> list[RemovalLine]:
        """Return changes of plan runs that may have removed something after `since`, oldest first."""
        with self.database.transaction() as connection:
            return history.removals(connection, since)

    def approvals(self) -> list[ApprovalRecord]:
        """Return the approvals that an apply began with, oldest first."""
        with self.database.transaction() as connection:
            return approvals.records(connection)

    def refusals(self) -> dict[Key, Refusal]:
        """Return the refusals of resources that have not been applied since they were refused."""
        with self.database.transaction() as connection:
            return quarantine.refusals(connection)

    def quarantine(self) -> list[QuarantineRecord]:
        """Return the quarantined resources, and the quarantine entries of the project file that no longer apply."""
        with self.database.transaction() as connection:
            return quarantine.quarantine(connection)

    def undone(self) -> list[UndoneChange]:
        """Return the undone changes, ordered by kind and name."""
        with self.database.transaction() as connection:
            return undone_table.changes(connection)

    def members(self, categories: Iterable[str]) -> list[Recorded]:
        """Return the tags of `categories` that the service may still hold, of any status, ordered by name."""
        with self.database.transaction() as connection:
            return queries.members(connection, categories)

    def open_sessions(self) -> list[str]:
        """Return the ids of sync sessions that were opened and never closed, oldest first."""
        with self.database.transaction() as connection:
            return list(connection.execute(_OPEN_SESSIONS).scalars())

    def answering_paths(self) -> set[tuple[str, str]]:
        """Return pairs of an operation and a path at which it has answered with a 2xx."""
        with self.database.transaction() as connection:
            return journal.paths(connection)

    def plan_ended(self, plan_id: str) -> bool:
        """Return whether some run of the plan ran to its end, which uses the plan up (docs/planning.md 6)."""
        with self.database.transaction() as connection:
            return history.plan_ended(connection, plan_id)

    def plan_began(self, plan_id: str) -> bool:
        """Return whether some run of the plan began, however it ended. A refused run does not count."""
        with self.database.transaction() as connection:
            return history.plan_began(connection, plan_id)

    def runs(self, limit: int) -> list[Run]:
        """Return the last `limit` runs, latest first."""
        with self.database.transaction() as connection:
            return history.runs(connection, limit)

    def runs_of(self, ids: Iterable[str]) -> list[Run]:
        """Return the runs with these ids. Unknown ids are skipped."""
        with self.database.transaction() as connection:
            return history.runs_of(connection, ids)

    def writing_run(self) -> Run | None:
        """Return the last plan run that changed something, or `None` when there is none."""
        with self.database.transaction() as connection:
            runs = history.runs(connection, RECENT)
            return run_changes.writing_run(connection, runs)

    def has_changed(self, run: str) -> bool:
        """Return whether the run wrote anything about a resource."""
        with self.database.transaction() as connection:
            return run_changes.has_changed(connection, run)

    def was_pruned(self, run: Run) -> bool:
        """Return whether some of the run's history was pruned."""
        with self.database.transaction() as connection:
            return run_changes.was_pruned(connection, run)

    def was_erased(self, run: str) -> bool:
        """Return whether every resource that the run wrote about has been erased."""
        with self.database.transaction() as connection:
            return run_changes.was_erased(connection, run)

    def family_of(self, run: str) -> set[str]:
        """Return the ids of the run, of the runs that undid it, of the runs that undid those, and so on."""
        with self.database.transaction() as connection:
            return run_changes.family_of(connection, run)

    def runs_like(self, prefix: str) -> list[Run]:
        """Return the runs whose ids begin with `prefix`, latest first."""
        with self.database.transaction() as connection:
            return history.runs_like(connection, prefix)

    def changes_of(self, run: str) -> list[ChangedRow]:
        """Return the rows that the run touched, each before and after the run."""
        with self.database.transaction() as connection:
            return run_changes.changes_of(connection, run)

    def history(self, key: Key) -> list[HistoryEntry]:
        """Return the history of one resource, oldest entry first."""
        with self.database.transaction() as connection:
            return history.history(connection, key)

    def settled_at(self, keys: Iterable[Key]) -> dict[Key, float]:
        """Return the time (seconds since epoch) at which each row got its current content, if that time is known."""
        with self.database.transaction() as connection:
            return history.settled_at(connection, keys)

    def forgotten(self, keys: Iterable[Key]) -> set[Key]:
        """Return the subset of `keys` that `state forget` has ever dropped."""
        with self.database.transaction() as connection:
            return history.forgotten(connection, keys)

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
        if self.database.snapshots is not None:
            self.database.snapshots.epoch = self.lease.epoch
            self.lease.before_release = self._publish_rest
        if self.database.snapshots is None:
            self._take_up()
            self.lease.before_release = self._mark_end
        return self.lease

    def _take_up(self) -> None:
        """Read the state's last generation and, if it is remembered, refuse a state that was set back."""
        with self.database.transaction() as connection:
            lineage, self._generation = connection.execute(_LAST_WRITTEN).one()
            self._tried = self._generation
            marks = journal.marks(connection, number_of(self._memory)) if self._memory else ()
        if self._memory is not None:
            self._memory.take(lineage, marks, is_meant=self._branches)

    def _remember(self) -> None:
        """Have the project's folder remember our last mark."""
        if self._memory is not None:
            with self.database.transaction() as connection:
                lineage, _ = connection.execute(_LAST_WRITTEN).one()
                marks = journal.marks(connection, 0)
            self._memory.take(lineage, marks, is_meant=True)

    def _mark_end(self) -> None:
        """Mark the last change of this session, unless the lock was taken over, so that another's mark is the last."""
        if not self._is_marked:
            return
        self._is_marked = False
        try:
            with proven(self.database, self.lease) as connection:  # of the same generation: no row changes
                journal.mark(connection, self._stamp(), MARKED, self._new_generation())
        except StateReplaced:
            raise
        except LockLost:
            return
        self._remember()

    def hold(self, holder: Holder, reason: str | None, *, new_id: Callable[[], str] = short_id) -> LockInfo:
        """Lock the state by hand. The lock lasts until `force_unlock` ends it."""
        return self._locks.hold(replace(holder, reason=reason), lock_id=new_id(), request_timeout=REQUEST_SECONDS)

    def force_unlock(self, lock_id: str) -> bool:
        """End the lock with this id, whoever holds it, so that the holder's next write fails. `False`: no such lock."""
        return self._locks.break_open(lock_id)

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
            journal.abandon(connection)
            attempts.take_over(connection, self._clock, self.lease.quiet if self.lease else 0.0)
            self._knows_refusals = quarantine.tidy(connection)
            history.open_run(connection, run, self._now(), by_unit=approved is not None)
            self._settle_approvals(connection)
            if approved is not None:
                approvals.begin(connection, run.id, run.plan, approved, self._now())
            if undone is not None:
                undone_table.write(connection, undone.lifted, undone.changes)
            if sources:
                existing = self._sources(connection)  # the larger number stays: the run may end half-way
                most = {name: max(rows, existing.get(name, 0)) for name, rows in sources.items()}
                self._remember_sources(connection, {**existing, **most})
        self._run, self._ancestors, self._published = run, tuple(ancestors), PublishedCalls()
        if self.database.snapshots is not None:
            self.database.snapshots.run = run.id

    def record_refusal(self, run: Run) -> None:
        """Append a refused run to the history. No lock is needed: a held lock may be the reason for the refusal."""
        if (snapshots := self.database.snapshots) is not None:
            snapshots.run = run.id

            def append(connection: sa.Connection) -> bool:
                history.refused_run(connection, run)
                return True

            with as_state_errors(self.database.name):
                snapshots.commit(append, rows=True)
            return
        with self.database.transaction() as connection:
            history.refused_run(connection, run)

    def announce(self, calls: Callable[[], PublishedCalls]) -> None:
        """Publish all calls of a plan as under way, before the first is sent. Only a state in Git needs this."""
        if self.database.snapshots is not None:
            self._published = calls()
            self._publish()

    def intend(self, calls: Mapping[str, Attempt]) -> None:
        """Record that calls are about to be sent: write their additions and mark their rows as in flight."""
        self._must_publish = self._must_publish or not self._published.covers(calls.values())
        with self._writing() as connection:
            self._mark_applied(connection)
            if self._knows_refusals:
                quarantine.begin(connection, self._current().id, _keys_of(calls.values()))
            journal.intend(connection, self._stamp(), calls)

    def settle(self, entries: Sequence[Settlement]) -> None:
        """Record the removals of calls that were answered with a 2xx. Effects not passed here stay in flight."""
        with self._writing() as connection:
            journal.settle(connection, self._stamp(), entries)
            if self._knows_refusals:
                quarantine.settle(connection, self._run_id, _keys_of(entries))

    def fail(self, entries: Sequence[CallFailure]) -> None:
        """Record that calls were refused. Their rows keep their content and become doubtful."""
        with self._writing() as connection:
            journal.fail(connection, self._stamp(), entries)
            self._count_refusals(connection, entries)

    def _count_refusals(self, connection: sa.Connection, entries: Sequence[CallFailure]) -> None:
        run = self._run_id
        refused = {key: content for entry in entries for key, content in entry.refused.items()}
        messages = {key: entry.message for entry in entries for key in entry.refused}
        self._knows_refusals = self._knows_refusals or bool(refused)
        quarantine.refuse(connection, run, refused, messages, self._now())
        quarantine.begin(connection, run, (key for entry in entries for key in entry.keys if key not in entry.refused))

    def set_aside(self, records: Sequence[QuarantineRecord]) -> None:
        """Quarantine resources, replacing earlier quarantine records of the same origin."""
        with self._writing() as connection:
            quarantine.put(connection, records)
            by_hand = [record.key for record in records if record.origin == BY_HAND]
            journal.note(connection, self._stamp(), journal.QUARANTINED, by_hand)

    def end_quarantine(self, over: Sequence[QuarantineRecord]) -> None:
        """End quarantines. A record made by hand is dropped; one of the project file is kept, marked as ended."""
        with self._writing() as connection:
            now = self._now()
            quarantine.put(connection, [with_end(record, now) for record in over if record.origin != BY_HAND])
            by_hand = [record.key for record in over if record.origin == BY_HAND]
            for key in by_hand:
                quarantine.end(connection, key, BY_HAND)
            journal.note(connection, self._stamp(), journal.QUARANTINE_ENDED, by_hand)

    def drop_quarantine(self, records: Sequence[QuarantineRecord]) -> None:
        """Drop records of entries that were taken out of the project file, so that they may be written again."""
        with self._writing() as connection:
            for record in records:
                quarantine.end(connection, record.key, record.origin)

    def import_quarantine(self, aside: SetAsideRows) -> None:
        """Write the refusals and the quarantine imported from another state. Call this after importing its rows."""
        with self._writing() as connection:
            quarantine.import_refusals(connection, aside.refusals.values())
            quarantine.put(connection, aside.quarantine)

    def end_attempts(self, ended: Sequence[str], lingering: Mapping[str, float]) -> None:
        """Drop `ended` calls. Keep `lingering` calls, each with the seconds since its sender gave it up."""
        run = self._current().id
        with self._writing() as connection:
            attempts.end(connection, run, ended)
            attempts.linger(connection, self._clock, run, lingering)

    def outstanding(self, window: float) -> list[Outstanding]:
        """Return the calls that the service may still execute within `window` seconds after their sender stopped."""
        with self._writing() as connection:
            attempts.expire(connection, self._clock, window)
            return attempts.outstanding(connection, self._clock, window)

    def under_way(self, window: float) -> float:
        """Return for how many more seconds some call may be executed. Reads only."""
        with self.database.transaction() as connection:
            return max((late.remaining for late in attempts.outstanding(connection, self._clock, window)), default=0.0)

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

    def record(self, effects: Sequence[Effect]) -> None:
        """Record effects that no call was sent for. Effects on unrecorded keys are skipped."""
        with self._writing() as connection:
            journal.record(connection, self._stamp(), effects)

    def put(self, rows: Sequence[Recorded]) -> None:
        """Write whole rows over the recorded ones, as `adopt` and `state import` do."""
        with self._writing() as connection:
            journal.put(connection, self._stamp(), rows)
            quarantine.forget(connection, (row.key for row in rows))
            # A call that may still be executed for a row carries other content than the new row.
            late = attempts.in_question(connection, self._clock, math.inf, [row.key for row in rows])
            journal.doubt(connection, late)
            approvals.withdraw(connection, (row.key for row in rows), self._now())

    def add_undone(self, changes: Sequence[UndoneChange]) -> None:
        """Add undone changes that `state import` has read."""
        with self._writing() as connection:
            undone_table.write(connection, (), changes)

    def use_up_approvals(self, texts: Iterable[str]) -> None:
        """Mark the given approvals as used, and all approvals in progress: their removals are recorded anew."""
        with self._writing() as connection:
            approvals.use_up(connection, texts, self._current().id, self._now())

    def doubt(self, keys: Iterable[Key]) -> None:
        """Mark the rows of `keys` as doubtful, so that the next plan sends them again."""
        doubted = list(keys)
        self.doubted = self.doubted or bool(doubted)
        with self._writing() as connection:
            journal.doubt(connection, doubted)
            journal.note(connection, self._stamp(), journal.DOUBTED, doubted)

    def doubt_ids(self, categories: Iterable[Key]) -> None:
        """Doubt categories and their recorded ids, so that the next plan sends the categories again by name alone."""
        doubted = list(categories)
        self.doubted = self.doubted or bool(doubted)
        with self._writing() as connection:
            journal.unconfirm(connection, doubted)
            journal.note(connection, self._stamp(), journal.DOUBTED, doubted)

    def doubt_all(self) -> int:
        """Doubt every row except deleted ones, and return the number of rows changed (docs/planning.md 7)."""
        may_be_held = sa.and_(ROWS.c.doubtful.is_(False), ROWS.c.status != Status.DELETED.value)
        writer = {"run": self._run.id} if self._run else {}
        with self._writing() as connection:
            return connection.execute(sa.update(ROWS).where(may_be_held).values(doubtful=True, **writer)).rowcount

    def restore(self, version: Snapshot) -> None:
        """Replace the rows by those of an earlier version of a state in Git."""
        from syncengine.state.snapshots.restore import copy_of, restore

        with self._writing() as connection:
            restore(copy_of(self.database), connection, self._stamp(), version)

    def forget(self, keys: Iterable[Key], window: float = DEFAULT_SECONDS) -> int:
        """Delete the rows of `keys` and return their number. Their journal stays.

        Raise `SyncengineError` if a call that may be executed within `window` seconds would bring back a forgotten
        resource.
        """
        keys = list(keys)
        with self._writing() as connection:
            if late := attempts.in_question(connection, self._clock, window, keys):
                key, seconds = next(iter(late.items()))
                message = f"{key}: an earlier call may still be executed; retry in {math.ceil(seconds)} s"
                raise SyncengineError(message, code="landing")
            quarantine.forget(connection, keys)
            return journal.forget(connection, self._stamp(), keys)

    def prune(self, before: float, *, is_trial: bool = False) -> Pruned:
        """Remove history before `before`, except entries that rows, the gate or approvals need. A trial only counts."""
        from syncengine.state import prune

        before = min(before, self._now() - prune.GATE_SECONDS)
        if is_trial:
            with self.database.transaction() as connection:
                return prune.prune(connection, before, is_trial=True)
        with self._writing() as connection:
            self._keep_this_version_alone()
            return prune.prune(connection, before, is_trial=False)

    def obstacles(self, keys: Collection[Key], window: float) -> list[Obstacle]:
        """Return the reasons why `keys` cannot be erased now. A call may land for up to `window` seconds."""
        from syncengine.state import erase

        with self._writing() as connection:
            attempts.expire(connection, self._clock, window)
            return list(erase.obstacles(connection, self._clock, keys, window))

    def erase(self, keys: Collection[Key]) -> Erased:
        """Remove resources, including their names and contents in the history. Call `compact` afterwards."""
        from syncengine.state.erase import erase

        with self._writing() as connection:
            self._keep_this_version_alone()
            return erase(connection, keys)

    def compact(self) -> bool:
        """Physically remove deleted rows (of a state in Git: from this machine's data); return whether it succeeded."""
        snapshots = self.database.snapshots
        return self.database.compact() if snapshots is None else snapshots.place.drop_earlier()

    def _keep_this_version_alone(self) -> None:
        """Have the next publication of a state in Git drop all earlier versions, which still contain removed data."""
        if self.database.snapshots is not None:
            self.database.snapshots.keeps = 1

    def path_answered(self, operation: str, path: str) -> None:
        """Record that the operation has answered at this path."""
        with self._writing() as connection:
            journal.answered(connection, operation, path)

    def session_opened(self, session: str) -> None:
        run = self._run.id if self._run else None
        self._must_publish = True
        with self._writing() as connection:
            connection.execute(_OPEN_SESSION, {"id": session, "run": run, "opened": self._now()})

    def session_closed(self, session: str) -> None:
        with self._writing() as connection:
            connection.execute(_CLOSE_SESSION, {"of_id": session, "closed": self._now()})

    def set_facts(
        self, *, base_url: str | None = None, team: str | None = None, owns_activity_types: bool | None = None
    ) -> None:
        """Store facts about the state. `None` keeps the stored value."""
        facts = {"base_url": base_url, "team": team, "owns_activity_types": owns_activity_types}
        values = {name: value for name, value in facts.items() if value is not None}
        with self._writing() as connection:
            if values:
                connection.execute(_SET_FACTS, values)

    def take_commit(self, commit: str | None, ancestors: Sequence[str]) -> None:
        """Take over another state's last applied commit, unless this state has a commit not among `ancestors`."""
        if commit is not None and self.facts().commit in (None, *ancestors):
            with self._writing() as connection:
                _write_commit(connection, commit, ancestors)

    def begin_lineage(self, *, base_url: str, team: str | None) -> None:
        """Give the state a new lineage at this service, so that earlier saved plans and approvals no longer fit."""
        values = {"lineage": self._new_generation(), "base_url": base_url, "owns_activity_types": False}
        with self._writing() as connection:
            connection.execute(_SET_FACTS, values | ({"team": team} if team else {}))

    def end_run(self, outcome: str, counts: Mapping[str, int], sources: Mapping[str, int] | None = None) -> None:
        """Close the run. The rows of calls that are still in flight become doubtful.

        `sources`: the number of rows in each data source, recorded when the run is complete.
        """
        run = self._current()
        with self._writing() as connection:
            journal.abandon(connection)
            attempts.take_over(connection, self._clock, 0.0)
            self._settle_approvals(connection)
            if self._knows_refusals:
                quarantine.tidy(connection)
            history.close_run(connection, run.id, self._now(), outcome, counts)
            if outcome == "complete":
                self._mark_applied(connection)
                if sources is not None:
                    self._remember_sources(connection, sources)
        self._publish_rest()
        self._run = None

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

    def __enter__(self) -> State:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self.lease:
                self.lease.__exit__(kind)
        finally:
            self.close()

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """Open a transaction that first proves the lock's epoch (docs/planning.md 1.5).

        Raise `StateReplaced` if the state lacks our last write, as after a backup was restored over it.
        """
        if self._shared is not None:
            yield self._shared
            return
        with proven(self.database, self.lease) as connection:
            before = {"last": self._generation, "tried": self._tried}
            self._tried = self._new_generation()
            written = connection.execute(_NEXT_GENERATION, {"new": self._tried, **before}).rowcount
            if not written and self.database.snapshots is None:
                raise StateReplaced.of(self.database.name)
            is_first = not self._is_marked and self.database.snapshots is None
            if is_first:
                verb = BRANCHED if self._branches else MARKED
                journal.mark(connection, self._stamp(), verb, self._new_generation())
            yield connection
        self._generation = self._tried
        if is_first:
            self._is_marked = True
            self._remember()
        if self.database.snapshots is not None:
            self.database.snapshots.dirty = True
            self._publish_intents()

    def _publish_intents(self) -> None:
        """Publish the intents that no publication covers yet, before the next call is sent."""
        if self._must_publish and self._shared is None:
            self._must_publish = False
            if self.database.snapshots is not None:
                self._publish()

    def _publish_rest(self) -> None:
        """Publish all unpublished changes, after trimming the journal that every version repeats."""
        snapshots = self.database.snapshots
        self._published = PublishedCalls()
        if snapshots is None or not snapshots.dirty:
            return
        from syncengine.state.snapshots.bounds import trim

        with proven(self.database, self.lease) as connection:
            trim(connection, self._now())
        self._publish()

    def _publish(self) -> None:
        snapshots, lease = self.database.snapshots, self.lease
        assert snapshots is not None
        if lease is None:
            raise LockLost("the state is not locked by this run")
        term = lease.term()
        with as_state_errors(self.database.name):
            snapshots.publish(self._with_all_under_way)
        if snapshots.epoch is None:
            raise LockLost(f"lock {lease.info.id} was released or taken over by another run; nothing more is written")
        lease.renewed(term)

    def _with_all_under_way(self, connection: sa.Connection) -> None:
        """Write announced calls as if they had been sent, with all effects that they may have."""
        if self.lease is not None:
            self.lease.prove(connection)
        if not self._published.attempts or self._run is None:
            return
        begun = journal.calls_of(connection, self._run.id)
        calls = {call: attempt for call, attempt in self._published.attempts.items() if call not in begun}
        connection.execute(NEW_GENERATION, {"new": self._new_generation()})
        self._mark_applied(connection)
        journal.intend(connection, self._stamp(), calls)
        journal.record(connection, self._stamp(), self._published.records)

    def _settle_approvals(self, connection: sa.Connection) -> None:
        query = queries.visible_rows()
        approvals.settle(connection, lambda keys: queries.fetch(connection, keys, query), self._now())

    def _current(self) -> Run:
        if self._run is None:
            raise RuntimeError("begin_run comes first")
        return self._run

    @property
    def _run_id(self) -> str | None:
        return self._run.id if self._run else None

    def _stamp(self) -> Stamp:
        run = self._run
        return Stamp(run.id if run else None, run.plan if run else None, self._now())

    def _sources(self, connection: sa.Connection) -> dict[str, int]:
        counts: dict[str, int] = json.loads(connection.execute(_SOURCES).scalar_one() or "{}")
        return counts

    def _remember_sources(self, connection: sa.Connection, sources: Mapping[str, int]) -> None:
        connection.execute(_SET_FACTS, {"sources": json.dumps(sources, sort_keys=True)})

    def _mark_applied(self, connection: sa.Connection) -> None:
        """Record the run's commit. From the first intent on, an older commit is refused (docs/planning.md 1.7)."""
        commit = self._current().commit
        if commit is not None:
            _write_commit(connection, commit, self._ancestors)


def _write_commit(connection: sa.Connection, commit: str, ancestors: Sequence[str]) -> None:
    values = {"revision": commit, "ancestors": json.dumps(ancestors)}
    # Asked before each call, and written once a run: the ancestors are up to 16 kB.
    is_news = sa.or_(*(FACTS.c[name].is_distinct_from(value) for name, value in values.items()))
    connection.execute(sa.update(FACTS).where(is_news).values(values))


_FACTS = sa.select(*(FACTS.c[name] for name in info.FACTS), sa.text(f"({LAST_LIMITS})"))
"""The query for a state's facts and its last limits."""


def _keys_of(entries: Iterable[Attempt | Settlement]) -> list[Key]:
    return [effect.key for entry in entries for effect in entry.effects]
