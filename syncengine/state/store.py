"""The cached prior state for the engine: what can be read of it, and what can be written under its lock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.instants import machine_seconds
from syncengine.project.git_ref import is_git_ref
from syncengine.resource import Key, Recorded, Status
from syncengine.state import approvals as approval_rows
from syncengine.state import history as history_rows
from syncengine.state import journal, queries
from syncengine.state import quarantine as quarantine_rows
from syncengine.state import undo as undo_rows
from syncengine.state.calls import DEFAULT_SECONDS, Attempt, CallFailure, Outstanding, PublishedCalls, Settlement
from syncengine.state.database import empty, open_database
from syncengine.state.errors import as_state_errors
from syncengine.state.folder_memory import FolderMemory
from syncengine.state.history import Run
from syncengine.state.losses import Approved
from syncengine.state.records import Facts, QuarantineRecord, UndoneChange, UndoneRecord
from syncengine.state.session import LEASE_SECONDS, StateSession, new_lineage, reading, streaming, write_commit
from syncengine.state.session import marks as session_marks
from syncengine.state.tables import FACTS, ROWS, SESSIONS
from syncengine.state.transfer import SetAsideRows

if TYPE_CHECKING:
    from syncengine.state.removal import Erased, Obstacle, Pruned
    from syncengine.state.snapshots.git_store import Snapshot

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
        from syncengine.state.snapshots.place import GitPlace
        from syncengine.state.snapshots.working_copy import open_to_read, open_to_write

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


class State(StateSession):
    """An open state: recorded rows, their journal, runs and the lock.

    `doubted` is true once a row was marked doubtful through this object although no call had left it in doubt.
    """

    doubted = False

    # What can be read, each in one transaction.
    facts = reading(queries.facts)
    count = reading(queries.count)
    rows = streaming(queries.stream)
    addresses_like = reading(queries.addresses_like)
    get = reading(queries.visible)
    members = reading(queries.members)
    marks = reading(session_marks)
    answering_paths = reading(queries.paths)
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
    writing_run = reading(undo_rows.writing_run)
    has_changed = reading(undo_rows.has_changed)
    was_pruned = reading(undo_rows.was_pruned)
    was_erased = reading(undo_rows.was_erased)
    family_of = reading(undo_rows.family_of)
    changes_of = reading(undo_rows.changes_of)
    approvals = reading(approval_rows.records)
    refusals = reading(quarantine_rows.refusals)
    quarantine = reading(quarantine_rows.quarantine)
    undone = reading(undo_rows.undone)

    def under_way(self, window: float) -> float:
        """Return for how many more seconds some call may be executed. Reads only."""
        with self.database.transaction() as connection:
            return max((late.remaining for late in journal.outstanding(connection, self._clock, window)), default=0.0)

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
                approval_rows.begin(connection, run.id, run.plan, approved, self._now())
            if undone is not None:
                undo_rows.write_undone(connection, undone.lifted, undone.changes)
            if sources:
                existing = queries.facts(connection).sources  # the larger number stays: the run may end half-way
                most = {name: max(rows, existing.get(name, 0)) for name, rows in sources.items()}
                self._remember_sources(connection, {**existing, **most})
        self._run, self._ancestors, self._published = run, tuple(ancestors), PublishedCalls()
        if self.database.snapshots is not None:
            self.database.snapshots.run = run.id

    def end_run(self, outcome: str, counts: Mapping[str, int], sources: Mapping[str, int] | None = None) -> None:
        """Close the run. The rows of calls that are still in flight become doubtful.

        `sources`: the number of rows in each data source, recorded when the run is complete.
        """
        run = self._current()
        with self._writing() as connection:
            self._end_calls(connection, 0.0)
            history_rows.close_run(connection, run.id, self._now(), outcome, counts)
            if outcome == "complete":
                self._mark_applied(connection)
                if sources is not None:
                    self._remember_sources(connection, sources)
        self._publish_rest()
        self._run = None

    def _end_calls(self, connection: sa.Connection, quiet: float) -> None:
        """End what a run leaves behind: nobody has sent its calls for `quiet` seconds, and nobody will."""
        # Approvals last: a loss whose row is in doubt has not settled.
        journal.abandon(connection)
        journal.take_over(connection, self._clock, quiet)
        quarantine_rows.tidy(connection)
        approval_rows.settle(connection, self._now())

    def record_refusal(self, run: Run) -> None:
        """Append a refused run to the history. No lock is needed: a held lock may be the reason for the refusal."""
        if (snapshots := self.database.snapshots) is not None:
            snapshots.run = run.id

            def append(connection: sa.Connection) -> bool:
                history_rows.refused_run(connection, run)
                return True

            with as_state_errors(self.database.name):
                snapshots.commit(append, rows=True)
            return
        with self.database.transaction() as connection:
            history_rows.refused_run(connection, run)

    # Calls: announced, intended before they are sent, settled or failed, and ended.

    def announce(self, calls: Callable[[], PublishedCalls]) -> None:
        """Publish all calls of a plan as under way, before the first is sent. Only a state in Git needs this."""
        if self.database.snapshots is not None:
            self._published = calls()
            self._publish()

    def intend(self, calls: Mapping[str, Attempt]) -> None:
        """Record that calls are about to be sent: write their additions and mark their rows as in flight."""
        # An intent must be in the repository before its call is sent: see `_must_publish`.
        self._must_publish = self._must_publish or not self._published.covers(calls.values())
        with self._writing() as connection:
            self._mark_applied(connection)
            quarantine_rows.begin(connection, self._current().id, _keys_of(calls.values()))
            journal.intend(connection, self._stamp(), calls)

    def settle(self, entries: Sequence[Settlement]) -> None:
        """Record the removals of calls that were answered with a 2xx. Effects not passed here stay in flight."""
        with self._writing() as connection:
            journal.settle(connection, self._stamp(), entries)
            quarantine_rows.settle(connection, self._stamp().run, _keys_of(entries))

    def fail(self, entries: Sequence[CallFailure]) -> None:
        """Record that calls were refused. Their rows keep their content and become doubtful."""
        refused = {key: content for entry in entries for key, content in entry.refused.items()}
        messages = {key: entry.message for entry in entries for key in entry.refused}
        others = [key for entry in entries for key in entry.keys if key not in entry.refused]
        with self._writing() as connection:
            stamp = self._stamp()
            journal.fail(connection, stamp, entries)
            quarantine_rows.refuse(connection, stamp.run, refused, messages, stamp.at)
            quarantine_rows.begin(connection, stamp.run, others)

    def end_attempts(self, ended: Sequence[str], lingering: Mapping[str, float]) -> None:
        """Drop `ended` calls. Keep `lingering` calls, each with the seconds since its sender gave it up."""
        run = self._current().id
        with self._writing() as connection:
            journal.end_attempts(connection, run, ended)
            journal.linger(connection, self._clock, run, lingering)

    def outstanding(self, window: float) -> list[Outstanding]:
        """Return the calls that the service may still execute within `window` seconds after their sender stopped."""
        with self._writing() as connection:
            journal.expire(connection, self._clock, window)
            return journal.outstanding(connection, self._clock, window)

    def path_answered(self, operation: str, path: str) -> None:
        """Record that the operation has answered at this path."""
        with self._writing() as connection:
            queries.answered(connection, operation, path)

    def session_opened(self, session: str) -> None:
        """Record a sync session before its first call: one that nobody knows could never be closed."""
        self._must_publish = True  # or a lost machine would leave a session that nobody can close
        with self._writing() as connection:
            opened = sa.insert(SESSIONS).values(id=session, run=self._stamp().run, opened=self._now())
            connection.execute(opened)

    def session_closed(self, session: str) -> None:
        with self._writing() as connection:
            connection.execute(sa.update(SESSIONS).where(SESSIONS.c.id == session).values(closed=self._now()))

    # Rows, without a call.

    def record(self, effects: Sequence[Effect]) -> None:
        """Record effects that no call was sent for. Effects on unrecorded keys are skipped."""
        with self._writing() as connection:
            journal.record(connection, self._stamp(), effects)

    def put(self, rows: Sequence[Recorded]) -> None:
        """Write whole rows over the recorded ones, as `adopt` and `state import` do."""
        keys = [row.key for row in rows]
        with self._writing() as connection:
            journal.put(connection, self._stamp(), rows)
            quarantine_rows.forget(connection, keys)
            # A call that may still be executed for a row carries other content than the new row.
            journal.doubt(connection, journal.in_question(connection, self._clock, math.inf, keys))
            approval_rows.withdraw(connection, keys, self._now())

    def doubt(self, keys: Iterable[Key]) -> None:
        """Mark the rows of `keys` as doubtful, so that the next plan sends them again."""
        self._doubt(journal.doubt, list(keys))

    def doubt_ids(self, categories: Iterable[Key]) -> None:
        """Doubt categories and their recorded ids, so that the next plan sends the categories again by name alone."""
        self._doubt(journal.unconfirm, list(categories))

    def _doubt(self, write: Callable[[sa.Connection, Iterable[Key]], None], keys: Sequence[Key]) -> None:
        self.doubted = self.doubted or bool(keys)
        with self._writing() as connection:
            write(connection, keys)
            journal.note(connection, self._stamp(), journal.DOUBTED, keys)

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
            quarantine_rows.forget(connection, keys)
            return journal.forget(connection, self._stamp(), keys)

    def restore(self, version: Snapshot) -> None:
        """Replace the rows by those of an earlier version of a state in Git."""
        from syncengine.state.snapshots.working_copy import copy_of, restore

        with self._writing() as connection:
            restore(copy_of(self.database), connection, self._stamp(), version)

    # Approvals, undone changes and quarantine.

    def use_up_approvals(self, texts: Iterable[str]) -> None:
        """Mark the given approvals as used, and all approvals in progress: their removals are recorded anew."""
        with self._writing() as connection:
            approval_rows.use_up(connection, texts, self._current().id, self._now())

    def add_undone(self, changes: Sequence[UndoneChange]) -> None:
        """Add undone changes that `state import` has read."""
        with self._writing() as connection:
            undo_rows.write_undone(connection, (), changes)

    def set_aside(self, records: Sequence[QuarantineRecord]) -> None:
        """Quarantine resources, replacing earlier records of theirs."""
        with self._writing() as connection:
            quarantine_rows.put(connection, records)
            journal.note(connection, self._stamp(), journal.QUARANTINED, [record.key for record in records])

    def end_quarantine(self, keys: Sequence[Key]) -> None:
        """End the quarantine of resources that were set aside by hand."""
        with self._writing() as connection:
            quarantine_rows.drop(connection, keys)
            journal.note(connection, self._stamp(), journal.QUARANTINE_ENDED, keys)

    def import_quarantine(self, aside: SetAsideRows) -> None:
        """Write the refusals and the quarantine imported from another state. Call this after importing its rows."""
        with self._writing() as connection:
            quarantine_rows.import_refusals(connection, aside.refusals.values())
            quarantine_rows.put(connection, aside.quarantine)

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
                write_commit(connection, commit, ancestors)

    def begin_lineage(self, *, base_url: str, team: str | None) -> None:
        """Give the state a new lineage at this service, so that earlier saved plans and approvals no longer fit."""
        values = {"lineage": self._new_generation(), "base_url": base_url, "owns_activity_types": False}
        with self._writing() as connection:
            connection.execute(sa.update(FACTS).values(values | ({"team": team} if team else {})))

    def prune(self, before: float, *, is_trial: bool = False) -> Pruned:
        """Remove history before `before`, except entries that rows, the gate or approvals need. A trial only counts."""
        from syncengine.state import removal

        before = min(before, self._now() - removal.GATE_SECONDS)  # or the gate would forget removals of today
        if is_trial:
            with self.database.transaction() as connection:
                return removal.prune(connection, before, is_trial=True)
        with self._writing() as connection:
            self._keep_this_version_alone()
            return removal.prune(connection, before, is_trial=False)

    def obstacles(self, keys: Collection[Key], window: float) -> list[Obstacle]:
        """Return the reasons why `keys` cannot be erased now. A call may land for up to `window` seconds."""
        from syncengine.state import removal

        with self._writing() as connection:
            journal.expire(connection, self._clock, window)
            return list(removal.obstacles(connection, self._clock, keys, window))

    def erase(self, keys: Collection[Key]) -> Erased:
        """Remove resources, including their names and contents in the history. Call `compact` afterwards."""
        from syncengine.state.removal import erase

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

    def _remember_sources(self, connection: sa.Connection, sources: Mapping[str, int]) -> None:
        connection.execute(sa.update(FACTS).values(sources=dict(sources)))


def _keys_of(entries: Iterable[Attempt | Settlement]) -> list[Key]:
    return [effect.key for entry in entries for effect in entry.effects]
