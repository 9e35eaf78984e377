"""The cached prior state, as the engine uses it: rows and history to read, and verbs that write under a lease."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

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
    settling,
    tables,
    undone_table,
)
from syncengine.state.clock import Clock
from syncengine.state.codec import Content
from syncengine.state.database import StateDatabase, empty, open_database
from syncengine.state.errors import as_state_errors
from syncengine.state.history import HistoryEntry, Run
from syncengine.state.info import (
    APPROVALS_SINCE,
    LAST_LIMITS,
    PACKED_SINCE,
    QUARANTINE_SINCE,
    SAYS_LIMITS,
    UNDONE_SINCE,
    Facts,
    facts_of,
    limits_of,
)
from syncengine.state.journal import CallFailure, Settlement, Stamp
from syncengine.state.landing import DEFAULT_SECONDS, Attempt, Outstanding
from syncengine.state.lock import Holder, Lease, LockInfo, LockLost, Locks, prove, short_id
from syncengine.state.losses import ApprovalRecord, Approved
from syncengine.state.published import PublishedCalls
from syncengine.state.refusals import BY_HAND, QuarantineRecord, Refusal, with_end
from syncengine.state.removals import RemovalLine, removals_since
from syncengine.state.run_changes import ChangedRow
from syncengine.state.tables import ARRIVED, FACTS, ROWS, SESSIONS
from syncengine.state.transfer import SetAsideRows
from syncengine.state.undone import UndoneChange, UndoneRecord

if TYPE_CHECKING:
    from syncengine.state.erase import Erased, Obstacle
    from syncengine.state.prune import Pruned

if TYPE_CHECKING:
    from syncengine.state.snapshots.versions import Snapshot

__all__ = ["Attempt", "CallFailure", "Facts", "Run", "Settlement", "State", "open_state"]

# Statements of every run are made once: to build one takes longer than SQLite takes to execute it.
NEW_GENERATION = sa.update(FACTS).values(generation=sa.bindparam("new"))
_SET_FACTS = sa.update(FACTS)
_SOURCES = sa.select(FACTS.c.sources)
_OPEN_SESSION = sa.insert(SESSIONS)
_CLOSE_SESSION = sa.update(SESSIONS).where(SESSIONS.c.id == sa.bindparam("of_id"))
_OPEN_SESSIONS = sa.select(SESSIONS.c.id).where(SESSIONS.c.closed.is_(None)).order_by(SESSIONS.c.opened, SESSIONS.c.id)
LEASE_SECONDS = 60.0
REQUEST_SECONDS = 30.0
RECENT = 1000
"""Runs that are looked through for the last one that changed something."""


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
) -> State:
    """Open the state at a path or a SQLAlchemy URL. SyncengineError when there is something else, or it is too new.

    With `write` it is created or migrated; without, nothing is written and a missing one reads as empty. `now` is the
    wall clock, which people read; `seconds` this machine's own, by which others are watched. One in Git is private
    until its rows are published; where there is none, `create` allows to begin it, and `allows_rewound` to look at one
    that somebody set back.
    """
    if is_git_ref(url):
        from syncengine.state.snapshots.open import open_to_read, open_to_write
        from syncengine.state.snapshots.place import GitPlace

        place = GitPlace(url, create=create, allows_rewound=allows_rewound)
        database = open_to_write(place, now, new_lineage) if write else open_to_read(place) or empty(place.name)
        return State(database, now, seconds=seconds)
    return State(open_database(url, write=write, new_lineage=new_lineage), now, seconds=seconds)


class State:
    """Recorded rows, their journal, runs and the lock. Also a context manager that closes.

    `doubted`: some row was doubted here that no call had left in doubt. Whether there are any refusals is asked once a
    run, which has the lock.
    """

    def __init__(
        self,
        database: StateDatabase,
        now: Callable[[], float],
        new_generation: Callable[[], str] = new_lineage,
        *,
        seconds: Callable[[], float] = machine_seconds,
    ) -> None:
        self.database = database
        self.exists = not database.absent
        self.lease: Lease | None = None
        self.doubted = False
        self._now = now
        self._locks = Locks(database, now, seconds=seconds)
        self._clock = Clock.of_database(database.engine.dialect.name, seconds)
        self._run: Run | None = None
        self._ancestors: tuple[str, ...] = ()
        self._knows_refusals = True
        self._shared: sa.Connection | None = None
        self._published = PublishedCalls()
        self._must_publish = False
        self._new_generation = new_generation

    def facts(self) -> Facts:
        with self.database.transaction() as connection:
            is_current = self.database.version == info.VERSION
            version = info.VERSION if is_current else tables.version(connection)  # it may be migrated meanwhile
            *facts, last = connection.execute(_facts(version), SAYS_LIMITS).one()
            return replace(facts_of(facts), limits=limits_of(last))

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]:
        """All rows, or a kind's, by kind and name, read as they are asked for."""
        with self.database.transaction() as connection:
            yield from queries.stream(connection, kind, self.database.version)

    def contents(self) -> Iterator[Content]:
        """Yield the content of every row, in no order, read as it is consumed."""
        with self.database.transaction() as connection:
            yield from queries.contents(connection, self.database.version)

    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
        """The rows of these keys; a key that is not recorded is left out."""
        with self.database.transaction() as connection:
            return queries.fetch(connection, keys, queries.visible_rows(connection.dialect.name, self.database.version))

    def removals(self, since: float) -> list[RemovalLine]:
        """Lines of runs of plans that may have taken something away since then, oldest first."""
        with self.database.transaction() as connection:
            packed = self.database.version >= PACKED_SINCE
            options = {"yield_per": history.LARGE}

            def execute(query: str, values: Mapping[str, float]) -> Iterable[Any]:
                return connection.execute(sa.text(query), values, execution_options=options)

            return list(removals_since(since, execute, packed=packed))

    def approvals(self) -> list[ApprovalRecord]:
        """The approvals that applies began with, oldest first."""
        if self.database.version < APPROVALS_SINCE:
            return []
        with self.database.transaction() as connection:
            return approvals.records(connection)

    def refusals(self) -> dict[Key, Refusal]:
        """Resources that were refused, and not applied since."""
        if self.database.version < QUARANTINE_SINCE:
            return {}
        with self.database.transaction() as connection:
            return quarantine.refusals(connection)

    def quarantine(self) -> list[QuarantineRecord]:
        """Resources that are set aside, and entries of the project file that count no more."""
        if self.database.version < QUARANTINE_SINCE:
            return []
        with self.database.transaction() as connection:
            return quarantine.quarantine(connection)

    def undone(self) -> list[UndoneChange]:
        """Undone changes, by kind and name."""
        if self.database.version < UNDONE_SINCE:
            return []
        with self.database.transaction() as connection:
            return undone_table.changes(connection)

    def members(self, categories: Iterable[str]) -> list[Recorded]:
        """Tags of these categories that the service may still hold, whatever their status, by name."""
        with self.database.transaction() as connection:
            return queries.members(connection, categories, self.database.version)

    def counts(self) -> dict[tuple[Kind, Status], int]:
        with self.database.transaction() as connection:
            return queries.counts(connection)

    def open_sessions(self) -> list[str]:
        """Sync sessions that were opened and never closed, oldest first."""
        with self.database.transaction() as connection:
            return list(connection.execute(_OPEN_SESSIONS).scalars())

    def answering_paths(self) -> set[tuple[str, str]]:
        """Operations, and the paths at which they have answered with a 2xx."""
        with self.database.transaction() as connection:
            return journal.paths(connection)

    def plan_ended(self, plan_id: str) -> bool:
        """Whether a run of this plan ran to its end: it is used up (docs/planning.md 6)."""
        with self.database.transaction() as connection:
            return history.plan_ended(connection, plan_id)

    def plan_began(self, plan_id: str) -> bool:
        """Whether a run of this plan began, however it ended; a refusal is no beginning."""
        with self.database.transaction() as connection:
            return history.plan_began(connection, plan_id)

    def settled_calls(self, plan_id: str) -> set[str]:
        """Calls of this plan that need not be sent again: all that they intended has settled."""
        with self.database.transaction() as connection:
            return history.settled_calls(connection, plan_id)

    def runs(self, limit: int) -> list[Run]:
        """The last runs, latest first."""
        with self.database.transaction() as connection:
            return history.runs(connection, limit)

    def runs_of(self, ids: Iterable[str]) -> list[Run]:
        """The runs of these ids, as many as there are."""
        with self.database.transaction() as connection:
            return history.runs_of(connection, ids)

    def writing_run(self) -> Run | None:
        """The last run of a plan that changed something."""
        with self.database.transaction() as connection:
            runs = history.runs(connection, RECENT)
            return run_changes.writing_run(connection, runs, self.database.version)

    def has_changed(self, run: str) -> bool:
        """Whether a run wrote anything about a resource."""
        with self.database.transaction() as connection:
            return run_changes.has_changed(connection, run)

    def was_pruned(self, run: Run) -> bool:
        """Whether something of a run was removed from the history."""
        with self.database.transaction() as connection:
            return run_changes.was_pruned(connection, run)

    def was_erased(self, run: str) -> bool:
        """Whether all that a run wrote about was erased."""
        with self.database.transaction() as connection:
            return run_changes.was_erased(connection, run, self.database.version)

    def family_of(self, run: str) -> set[str]:
        """The run, the runs that took it back, those that took back these, and so on."""
        with self.database.transaction() as connection:
            return run_changes.family_of(connection, run)

    def runs_like(self, prefix: str) -> list[Run]:
        """Runs whose ids begin with `prefix`, latest first."""
        with self.database.transaction() as connection:
            return history.runs_like(connection, prefix)

    def changes_of(self, run: str) -> list[ChangedRow]:
        """The rows that a run touched, as they were before it and as it made them."""
        with self.database.transaction() as connection:
            return run_changes.changes_of(connection, run, self.database.version)

    def history(self, key: Key) -> list[HistoryEntry]:
        """The history of one resource, oldest first."""
        with self.database.transaction() as connection:
            return history.history(connection, key, self.database.version)

    def settled_at(self, keys: Iterable[Key]) -> dict[Key, float]:
        """Seconds since epoch from which on each of these rows is as recorded; one of unknown time is left out."""
        with self.database.transaction() as connection:
            return settling.settled_at(connection, keys, self.database.version)

    def forgotten(self, keys: Iterable[Key]) -> set[Key]:
        """Those of the keys that `state forget` ever dropped."""
        with self.database.transaction() as connection:
            return settling.forgotten(connection, keys)

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
        """Take the lock, so that the verbs below may write; LockHeld names who has it after `wait` seconds."""
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
        return self.lease

    def hold(self, holder: Holder, reason: str | None, *, new_id: Callable[[], str] = short_id) -> LockInfo:
        """Lock by hand, until `force_unlock`."""
        return self._locks.hold(replace(holder, reason=reason), lock_id=new_id(), request_timeout=REQUEST_SECONDS)

    def force_unlock(self, lock_id: str) -> bool:
        """End the lock of this id, whoever holds it; the holder's next write fails. False: no such lock."""
        return self._locks.break_open(lock_id)

    def begin_run(
        self,
        run: Run,
        sources: Mapping[str, int] | None = None,
        approved: Approved | None = None,
        undone: UndoneRecord | None = None,
        ancestors: Sequence[str] = (),
    ) -> None:
        """Start a run, which names all writes until its end. Runs that died are closed, and their intents doubted.

        `sources`: the rows that sources have, of which the run may make something however it ends. `approved`: what the
        approvals of its plan cover. `undone`: changes that it undoes, and those that it lifts. `ancestors`:
        commits before its own.
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
                existing = self._sources(connection)
                most = {name: max(rows, existing.get(name, 0)) for name, rows in sources.items()}
                self._remember(connection, {**existing, **most})
        self._run, self._ancestors, self._published = run, tuple(ancestors), PublishedCalls()
        if self.database.snapshots is not None:
            self.database.snapshots.run = run.id

    def record_refusal(self, run: Run) -> None:
        """Append a run that was refused; without the lock, which may be the reason."""
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
        """Publish all calls of a plan as if they were under way, where intents stay here else; before the first."""
        if self.database.snapshots is not None:
            self._published = calls()
            self._publish()

    def intend(self, calls: Mapping[str, Attempt]) -> None:
        """Record the additions of calls, by name, before they are sent, and that they are in flight."""
        self._must_publish = self._must_publish or not self._published.covers(calls.values())
        with self._writing() as connection:
            self._mark_applied(connection)
            attempts.begin(connection, self._current().id, calls)
            if self._knows_refusals:
                quarantine.begin(connection, self._current().id, _keys_of(calls.values()))
            journal.intend(connection, self._stamp(), calls)

    def settle(self, entries: Sequence[Settlement]) -> None:
        """Record the removals of calls that were answered with a 2xx. Effects that are not passed stay in flight."""
        with self._writing() as connection:
            journal.settle(connection, self._stamp(), entries)
            if self._knows_refusals:
                quarantine.settle(connection, self._run_id, _keys_of(entries))

    def fail(self, entries: Sequence[CallFailure]) -> None:
        """Record that calls were refused: their rows become doubtful and keep all their content."""
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
        """Set resources aside, in the place of earlier records of their quarantine."""
        with self._writing() as connection:
            quarantine.put(connection, records)
            by_hand = [record.key for record in records if record.origin == BY_HAND]
            journal.note(connection, self._stamp(), journal.QUARANTINED, by_hand)

    def end_quarantine(self, over: Sequence[QuarantineRecord]) -> None:
        """End these; of an entry of the project file it is remembered that it counts no more."""
        with self._writing() as connection:
            now = self._now()
            quarantine.put(connection, [with_end(record, now) for record in over if record.origin != BY_HAND])
            by_hand = [record.key for record in over if record.origin == BY_HAND]
            for key in by_hand:
                quarantine.end(connection, key, BY_HAND)
            journal.note(connection, self._stamp(), journal.QUARANTINE_ENDED, by_hand)

    def import_quarantine(self, aside: SetAsideRows) -> None:
        """Write the refusals of another state, after its rows."""
        with self._writing() as connection:
            quarantine.import_refusals(connection, aside.refusals.values())
            quarantine.put(connection, aside.quarantine)

    def end_attempts(self, ended: Sequence[str], lingering: Mapping[str, float]) -> None:
        """Drop calls that can land no more; keep `lingering` ones, with the seconds since each was given up."""
        run = self._current().id
        with self._writing() as connection:
            attempts.end(connection, run, ended)
            attempts.linger(connection, self._clock, run, lingering)

    def outstanding(self, window: float) -> list[Outstanding]:
        """Calls that the service may still execute, `bound` seconds after their sender could send no more."""
        with self._writing() as connection:
            attempts.expire(connection, self._clock, window)
            return attempts.outstanding(connection, self._clock, window)

    def under_way(self, window: float) -> float:
        """Seconds for which some call may still be executed; reads only, also from an older state."""
        with self.database.transaction() as connection:
            if tables.version(connection) < ARRIVED["attempts"]:
                return 0.0
            return max((late.remaining for late in attempts.outstanding(connection, self._clock, window)), default=0.0)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make the verbs called within one transaction: one write to the disk for ends and beginnings."""
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
        """Record effects without a request; one whose key is not recorded is passed over."""
        with self._writing() as connection:
            journal.record(connection, self._stamp(), effects)

    def put(self, rows: Sequence[Recorded]) -> None:
        """Write whole rows in place of whatever is recorded: `adopt`, `state import`."""
        with self._writing() as connection:
            journal.put(connection, self._stamp(), rows)
            quarantine.forget(connection, (row.key for row in rows))
            # Whatever stands in the row, a call that may still be executed for it has another content.
            late = attempts.in_question(connection, self._clock, math.inf, [row.key for row in rows])
            journal.doubt(connection, late)
            approvals.withdraw(connection, (row.key for row in rows), self._now())

    def add_undone(self, changes: Sequence[UndoneChange]) -> None:
        """Write undone changes, as `state import` brings them."""
        with self._writing() as connection:
            undone_table.write(connection, (), changes)

    def use_up_approvals(self, texts: Iterable[str]) -> None:
        """Count these approvals as used, and all that are under way: what they were for is recorded anew."""
        with self._writing() as connection:
            approvals.use_up(connection, texts, self._current().id, self._now())

    def doubt(self, keys: Iterable[Key]) -> None:
        """Have these sent again by the next plan."""
        doubted = list(keys)
        self.doubted = self.doubted or bool(doubted)
        with self._writing() as connection:
            journal.doubt(connection, doubted)
            journal.note(connection, self._stamp(), journal.DOUBTED, doubted)

    def doubt_ids(self, categories: Iterable[Key]) -> None:
        """Have these categories sent again by the next plan, by their names alone: their ids may be others."""
        doubted = list(categories)
        self.doubted = self.doubted or bool(doubted)
        with self._writing() as connection:
            journal.unconfirm(connection, doubted)
            journal.note(connection, self._stamp(), journal.DOUBTED, doubted)

    def doubt_all(self) -> int:
        """Doubt every row that the service is to hold (docs/planning.md 7); deleted ones stay deleted."""
        may_be_held = sa.and_(ROWS.c.doubtful.is_(False), ROWS.c.status != Status.DELETED.value)
        writer = {"run": self._run.id} if self._run else {}
        with self._writing() as connection:
            return connection.execute(sa.update(ROWS).where(may_be_held).values(doubtful=True, **writer)).rowcount

    def restore(self, version: Snapshot) -> None:
        """Take the rows of a version of a state in Git."""
        from syncengine.state.snapshots.restore import copy_of, restore

        with self._writing() as connection:
            restore(copy_of(self.database), connection, self._stamp(), version)

    def forget(self, keys: Iterable[Key], window: float = DEFAULT_SECONDS) -> int:
        """Delete rows and return how many there were; their journal stays.

        SyncengineError if a call that may be executed within `window` seconds would bring back a forgotten resource.
        """
        keys = list(keys)
        with self._writing() as connection:
            if late := attempts.in_question(connection, self._clock, window, keys):
                key, seconds = next(iter(late.items()))
                message = f"{key}: an earlier call for it may still be executed; forget it in {math.ceil(seconds)} s"
                raise SyncengineError(message, code="landing")
            quarantine.forget(connection, keys)
            return journal.forget(connection, self._stamp(), keys)

    def prune(self, before: float, *, is_trial: bool = False) -> Pruned:
        """Remove history from before then, but for entries that rows, gate and approvals need; a trial only counts."""
        from syncengine.state import prune

        before = min(before, self._now() - prune.GATE_SECONDS)
        if is_trial:
            with self.database.transaction() as connection:
                return prune.prune(connection, before, None)
        with self._writing() as connection:
            self._keep_this_version_alone()
            return prune.prune(connection, before, self._stamp())

    def obstacles(self, keys: Collection[Key], window: float) -> list[Obstacle]:
        """Why resources cannot be erased now; calls may be executed within `window` seconds."""
        from syncengine.state import erase

        with self._writing() as connection:
            attempts.expire(connection, self._clock, window)
            return list(erase.obstacles(connection, self._clock, keys, window))

    def erase(self, keys: Collection[Key]) -> Erased:
        """Remove resources, and their names and contents from all history. `compact` has to follow."""
        from syncengine.state.erase import erase

        with self._writing() as connection:
            self._keep_this_version_alone()
            return erase(connection, keys)

    def compact(self) -> bool:
        """Leave nothing of removed rows in the file or the tables; return whether that succeeded."""
        snapshots = self.database.snapshots
        return self.database.compact() if snapshots is None else snapshots.place.drop_earlier()

    def _keep_this_version_alone(self) -> None:
        """Have the next publication of a state in Git lead to no earlier version: they hold what is removed."""
        if self.database.snapshots is not None:
            self.database.snapshots.keeps = 1

    def path_answered(self, operation: str, path: str) -> None:
        """Remember that an operation is at this path."""
        with self._writing() as connection:
            journal.answered(connection, self._stamp(), operation, path)

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
        """Remember facts; None leaves one as it is."""
        facts = {"base_url": base_url, "team": team, "owns_activity_types": owns_activity_types}
        values = {name: value for name, value in facts.items() if value is not None}
        with self._writing() as connection:
            if values:
                connection.execute(_SET_FACTS, values)

    def take_commit(self, commit: str | None, ancestors: Sequence[str]) -> None:
        """Take over the last applied commit of another state, unless one is known here that is not older."""
        if commit is not None and self.facts().commit in (None, *ancestors):
            with self._writing() as connection:
                _write_commit(connection, commit, ancestors)

    def begin_lineage(self, *, base_url: str, team: str | None) -> None:
        """Make it another state, of this service: plans and approvals of before are not for it."""
        values = {"lineage": self._new_generation(), "base_url": base_url, "owns_activity_types": False}
        with self._writing() as connection:
            connection.execute(_SET_FACTS, values | ({"team": team} if team else {}))

    def end_run(self, outcome: str, counts: Mapping[str, int], sources: Mapping[str, int] | None = None) -> None:
        """Close the run; whatever is still under way is doubtful from now on.

        `sources`: the rows that sources have, of which a run that is complete made everything.
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
                    self._remember(connection, sources)
        self._publish_rest()
        self._run = None

    def close(self) -> None:
        """Give the lock back, and leave the state at rest."""
        if self.lease:
            self.lease.release()
        self.database.close()

    def abandon(self) -> None:
        """Leave everything as a process does that dies: nothing is published, and the lock expires."""
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
        """A transaction that proves the lock's epoch before anything else (docs/planning.md 1.5)."""
        if self._shared is not None:
            yield self._shared
            return
        with self.database.transaction() as connection:
            prove(connection, self.lease)
            connection.execute(NEW_GENERATION, {"new": self._new_generation()})
            yield connection
        if self.database.snapshots is not None:
            self.database.snapshots.dirty = True
            self._publish_intents()

    def _publish_intents(self) -> None:
        """Publish intents that no publication covers yet, before the next call."""
        if self._must_publish and self._shared is None:
            self._must_publish = False
            if self.database.snapshots is not None:
                self._publish()

    def _publish_rest(self) -> None:
        """Publish all that is not published yet, and bound the part that every version repeats."""
        snapshots = self.database.snapshots
        self._published = PublishedCalls()
        if snapshots is None or not snapshots.dirty:
            return
        from syncengine.state.snapshots.bounds import trim

        with self.database.transaction() as connection:
            prove(connection, self.lease)
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
        """Write the calls that are announced as if they were sent, with all that they may make true."""
        prove(connection, self.lease)
        if not self._published.attempts or self._run is None:
            return
        begun = journal.open_calls(connection) | attempts.calls(connection, self._run.id)
        calls = {call: attempt for call, attempt in self._published.attempts.items() if call not in begun}
        connection.execute(NEW_GENERATION, {"new": self._new_generation()})
        self._mark_applied(connection)
        attempts.begin(connection, self._run.id, calls)
        journal.intend(connection, self._stamp(), calls)
        journal.record(connection, self._stamp(), self._published.records)

    def _settle_approvals(self, connection: sa.Connection) -> None:
        query = queries.visible_rows(connection.dialect.name, self.database.version)
        approvals.settle(connection, lambda keys: queries.fetch(connection, keys, query), self._now())

    def _current(self) -> Run:
        if self._run is None:
            raise RuntimeError("begin_run comes first")
        return self._run

    @property
    def _run_id(self) -> str | None:
        return self._run.id if self._run else None

    def _stamp(self) -> Stamp:
        run, lease = self._run, self.lease
        return Stamp(run.id if run else None, run.plan if run else None, lease.epoch if lease else 0, self._now())

    def _sources(self, connection: sa.Connection) -> dict[str, int]:
        counts: dict[str, int] = json.loads(connection.execute(_SOURCES).scalar_one() or "{}")
        return counts

    def _remember(self, connection: sa.Connection, sources: Mapping[str, int]) -> None:
        connection.execute(_SET_FACTS, {"sources": json.dumps(sources, sort_keys=True)})

    def _mark_applied(self, connection: sa.Connection) -> None:
        """Record this run's commit: from the first intent on, no older one may win (docs/planning.md 1.7)."""
        commit = self._current().commit
        if commit is not None:
            _write_commit(connection, commit, self._ancestors)


def _write_commit(connection: sa.Connection, commit: str, ancestors: Sequence[str]) -> None:
    connection.execute(_SET_FACTS, {"revision": commit, "ancestors": json.dumps(ancestors)})


@cache
def _facts(version: int) -> sa.Select[Any]:
    """Facts of a state of this version, which has not all of them, and the last limits."""
    facts = (FACTS.c[name] if version >= ARRIVED.get(name, 0) else sa.null().label(name) for name in info.FACTS)
    return sa.select(*facts, sa.text(f"({LAST_LIMITS})"))


def _keys_of(entries: Iterable[Attempt | Settlement]) -> list[Key]:
    return [effect.key for entry in entries for effect in entry.effects]
