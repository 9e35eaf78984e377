"""An open state: what can be read of it, and what can be written under its lock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from syncengine.effects import Effect
from syncengine.errors import SyncengineError
from syncengine.instants import machine_seconds
from syncengine.project.git_ref import is_git_ref
from syncengine.resource import Key, Recorded, Status
from syncengine.state import decisions, journal, tables
from syncengine.state import history as history_rows
from syncengine.state.database import as_state_errors, empty, new_lineage, open_database
from syncengine.state.folder_memory import FolderMemory
from syncengine.state.history import Run
from syncengine.state.records import (
    GATE_SECONDS,
    LANDING_SECONDS,
    Approved,
    Attempt,
    CallFailure,
    Outstanding,
    PublishedCalls,
    QuarantineRecord,
    Refusal,
    Settlement,
    UndoneChange,
    UndoneRecord,
)
from syncengine.state.tables import FACTS, ROWS, SESSIONS
from syncengine.state.writer import StateWriter, read_marks

if TYPE_CHECKING:
    from syncengine.state.git_store import Snapshot
    from syncengine.state.removal import Erased, Obstacle, Pruned


P = ParamSpec("P")
T = TypeVar("T")


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


class State(StateWriter):
    """An open state: each method reads or writes in one transaction."""

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

    def forget(self, keys: Iterable[Key], window: float = LANDING_SECONDS) -> int:
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

        before = min(before, self._now() - GATE_SECONDS)  # or the gate would forget removals of today
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


def _keys_of(entries: Iterable[Attempt | Settlement]) -> list[Key]:
    return [effect.key for entry in entries for effect in entry.effects]
