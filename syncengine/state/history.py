"""Runs, the history of a resource, and the acknowledged calls of a saved plan (docs/planning.md 1.3, 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from syncengine.resource import Key, Source
from syncengine.state import packed_lines
from syncengine.state.codec import from_json, to_json
from syncengine.state.holder import Holder, actor
from syncengine.state.journal import FAILED, INTENDED, PACKED, PRUNED, QUARANTINE_ENDED, QUARANTINED, SETTLED
from syncengine.state.journal_detail import Detail, read
from syncengine.state.queries import execute_among
from syncengine.state.tables import JOURNAL, ROWS, RUNS

DIED, REFUSED = "died", "refused"
PRUNED_RUN = ""
"""The command of a pruned run, of which only its plan and its end are left."""
LARGE = 50
"""The number of packed lines fetched at a time."""

UNFINISHED = (DIED, "interrupted", REFUSED, "unreachable")
"""The outcomes of a run after which its saved plan may be applied again."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command that writes. Times are seconds since the epoch.

    `clean`: the work tree had no uncommitted changes. `actor` is the user who triggered the CI job. `approvals` are the
    approvals that the run needed, `reviewed` the plans that it was not to go beyond, and `limits` the limits in the
    project file. A refused run has an `exit_code` and a `reason`. `undoes` is the id of the run that this one undoes.
    """

    id: str
    started: float
    command: str
    plan: str | None
    host: str
    user: str
    job_url: str | None
    commit: str | None
    clean: bool | None
    ended: float | None = None
    outcome: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    actor: str | None = None
    approvals: tuple[str, ...] = ()
    reviewed: tuple[str, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    reason: str | None = None
    undoes: str | None = None

    @classmethod
    def here(cls, id: str, started: float, holder: Holder, environ: Mapping[str, str]) -> Run:
        """Return a run of this process that has no plan and no commit."""
        who = actor(environ)
        return cls(id, started, holder.command, None, holder.host, holder.user, holder.job_url, None, None, actor=who)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One event in the history of a resource, which happened or may have happened.

    `outcome` is intended (the result is unknown), settled, failed, recorded, doubted, forgotten, quarantined or
    quarantine-ended. `detail` has the differences of the row, and the reason of a failure.
    """

    at: float
    outcome: str
    run: str | None = None
    command: str | None = None
    commit: str | None = None
    user: str | None = None
    host: str | None = None
    job_url: str | None = None
    call: str | None = None
    operation: str | None = None
    source: Source | None = None
    detail: Detail = field(default_factory=Detail)


_OF_ID, _OF_PLAN = RUNS.c.id == sa.bindparam("of_id"), RUNS.c.plan == sa.bindparam("of_plan")
_END_DEAD = sa.update(RUNS).where(RUNS.c.ended.is_(None))
_OPEN = sa.insert(RUNS)
_CLOSE = sa.update(RUNS).where(_OF_ID)
_COUNTS = sa.select(RUNS.c.counts).where(_OF_ID)
_OF_ENDED_PLAN = (
    sa.select(RUNS.c.id).where(_OF_PLAN, RUNS.c.ended.is_not(None), RUNS.c.outcome.not_in(UNFINISHED)).limit(1)
)
_OF_BEGUN_PLAN = sa.select(RUNS.c.id).where(_OF_PLAN, RUNS.c.outcome.is_distinct_from(REFUSED)).limit(1)
_CALLS_OF_PLAN = (
    sa.select(*(JOURNAL.c[name] for name in ("run", "verb", "call", "kind", "name", "packed")))
    .where(JOURNAL.c.run.in_(sa.select(RUNS.c.id).where(_OF_PLAN)))
    .where(JOURNAL.c.verb.in_((INTENDED, SETTLED, FAILED)))
    .order_by(JOURNAL.c.id)
)


def open_run(connection: sa.Connection, run: Run, now: float, *, by_unit: bool = False) -> None:
    """Record the start of a run. Mark every other open run as dead, since this one has the lock.

    `by_unit`: the removals that each of the run's approvals covers are recorded, too.
    """
    connection.execute(_END_DEAD, {"ended": now, "outcome": DIED})
    connection.execute(_OPEN, _values(run, by_unit=by_unit))


def refused_run(connection: sa.Connection, run: Run) -> None:
    """Append a refused run with its start and its end. The lock is not checked, because no other row is touched."""
    connection.execute(_OPEN, _values(run) | {"ended": run.ended, "outcome": REFUSED})


def close_run(connection: sa.Connection, run: str, now: float, outcome: str, counts: Mapping[str, int]) -> None:
    existing = from_json(connection.execute(_COUNTS, {"of_id": run}).scalar_one_or_none())
    values = {"ended": now, "outcome": outcome, "counts": to_json({**existing, "counts": dict(counts)})}
    connection.execute(_CLOSE, {"of_id": run, **values})


def _values(run: Run, *, by_unit: bool = False) -> dict[str, Any]:
    about = {
        "actor": run.actor,
        "approvals": run.approvals,
        "reviewed": run.reviewed,
        "limits": run.limits,
        "exit": run.exit_code,
        "reason": run.reason,
        "units": by_unit and bool(run.approvals),
        "undoes": run.undoes,
    }
    return {
        "id": run.id,
        "started": run.started,
        "command": run.command,
        "plan": run.plan,
        "host": run.host,
        "who": run.user,
        "job_url": run.job_url,
        "revision": run.commit,
        "clean": run.clean,
        "counts": to_json({"counts": {}, **{name: value for name, value in about.items() if value}}),
    }


def runs(connection: sa.Connection, limit: int) -> list[Run]:
    """Return the last `limit` runs, latest first, without pruned runs."""
    query = sa.select(RUNS).where(RUNS.c.command != PRUNED_RUN)
    query = query.order_by(RUNS.c.started.desc(), RUNS.c.id.desc()).limit(limit)
    return [_run(row) for row in connection.execute(query)]


def runs_of(connection: sa.Connection, ids: Iterable[str]) -> list[Run]:
    """Return the runs with these ids. Unknown ids are skipped."""
    return [_run(row) for row in execute_among(connection, _RUNS, RUNS.c.id, list(ids))]


_RUNS = sa.select(RUNS)


def pruned_until(connection: sa.Connection) -> int:
    """Return the id of the last journal line that pruning may have removed, or 0. Lines of doubtful rows remain."""
    return connection.execute(sa.select(sa.func.max(JOURNAL.c.entry)).where(JOURNAL.c.kind == PRUNED)).scalar() or 0


def runs_like(connection: sa.Connection, prefix: str) -> list[Run]:
    """Return the runs whose ids begin with `prefix`, latest first."""
    query = sa.select(RUNS).where(RUNS.c.id.startswith(prefix, autoescape=True)).order_by(RUNS.c.started.desc())
    return [_run(row) for row in connection.execute(query)]


def _run(row: sa.Row[Any]) -> Run:
    about = from_json(row.counts)
    return Run(
        id=row.id,
        started=float(row.started),
        command=row.command,
        plan=row.plan,
        host=row.host,
        user=row.who,
        job_url=row.job_url,
        commit=row.revision,
        clean=row.clean,
        ended=None if row.ended is None else float(row.ended),
        outcome=row.outcome,
        counts=about["counts"],
        actor=about.get("actor"),
        approvals=tuple(about.get("approvals", ())),
        reviewed=tuple(about.get("reviewed", ())),
        limits=about.get("limits", {}),
        exit_code=about.get("exit"),
        reason=about.get("reason"),
        undoes=about.get("undoes"),
    )


def plan_ended(connection: sa.Connection, plan: str) -> bool:
    return connection.execute(_OF_ENDED_PLAN, {"of_plan": plan}).first() is not None


def plan_began(connection: sa.Connection, plan: str) -> bool:
    """Return whether some run of the plan may have sent a call. A refused run sends none."""
    return connection.execute(_OF_BEGUN_PLAN, {"of_plan": plan}).first() is not None


def settled_calls(connection: sa.Connection, plan: str) -> set[str]:
    """Return the calls of a plan of which every key has settled, judged by the key's last event in any run."""
    last: dict[Any, dict[str, tuple[str, str]]] = defaultdict(dict)
    for line in connection.execute(_CALLS_OF_PLAN, {"of_plan": plan}, execution_options={"yield_per": LARGE}):
        for call, addresses in _keys_of(line):
            of_call = last[call]
            # An end without keys ends everything that the run has open of the call.
            keys = addresses or [each for each, state in of_call.items() if state == (line.run, INTENDED)]
            of_call.update(dict.fromkeys(keys, (line.run, line.verb)))
    return {call for call, of_call in last.items() if all(verb == SETTLED for _, verb in of_call.values())}


def _keys_of(line: Any) -> Iterable[tuple[str | None, Sequence[str]]]:
    """Return the calls in a journal line, each with the addresses that the line names for it."""
    if line.verb == INTENDED:
        return packed_lines.keys(line.packed)
    return [(end.call, end.keys) for end in packed_lines.ends(line.packed)]


ACTOR = (RUNS.c.command, RUNS.c.revision, RUNS.c.who, RUNS.c.host, RUNS.c.job_url)
SINGLE = (JOURNAL.c[name] for name in ("id", "run", "at", "verb", "call", "operation", "file", "line", "detail"))
LINES = sa.select(*SINGLE, *ACTOR).join_from(JOURNAL, RUNS, JOURNAL.c.run == RUNS.c.id, isouter=True)

ByLine = dict[int, list[HistoryEntry]]
"""The history entries of one resource, by the ids of their journal lines."""


def history(connection: sa.Connection, key: Key) -> list[HistoryEntry]:
    """Return the history of one resource, oldest entry first."""
    of_key = sa.and_(JOURNAL.c.kind == key.kind.value, JOURNAL.c.name == key.name)
    entries = {line.id: [_entry(line)] for line in connection.execute(LINES.where(of_key))}
    entries |= _packed(connection, key)
    intents = [entry for of_line in entries.values() for entry in of_line if entry.outcome == INTENDED]
    return _folded(entries, _ends(connection, key, intents))


def last_writer(entries: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """Return the last history entry that tells about the resource's row, skipping quarantine entries."""
    return next((entry for entry in reversed(entries) if entry.outcome not in (QUARANTINED, QUARANTINE_ENDED)), None)


def _packed(connection: sa.Connection, key: Key) -> ByLine:
    """Return the key's entries in packed lines, followed backwards from its row and from where it was forgotten.

    Raise `LookupError` or `ValueError` for damaged lines.
    """
    heads = [
        entry
        for table in (ROWS, JOURNAL)
        for entry in connection.execute(
            sa.select(table.c.entry).where(table.c.kind == key.kind.value, table.c.name == key.name)
        ).scalars()
    ]
    entries: ByLine = {}
    pruned = pruned_until(connection)
    while heads:
        if (head := heads.pop()) is not None:
            line = connection.execute(LINES.add_columns(JOURNAL.c.packed).where(JOURNAL.c.id == head)).one_or_none()
            of_key = [] if line is None else list(packed_lines.entries(line.packed, {str(key)}))
            if not of_key and 0 < head <= pruned:
                continue
            if line is None:
                raise LookupError("a row or a line of the history points to a missing line")
            entries[head] = [
                replace(
                    _entry(line),
                    call=each.call,
                    operation=each.operation,
                    source=each.line.source,
                    detail=each.line.read(),
                )
                for each in of_key
            ]
            previous = of_key[0].line.previous
            if previous is not None and previous >= head:
                raise ValueError("a line points to a later line")
            heads.append(previous)
    return entries


def _ends(connection: sa.Connection, key: Key, intents: Iterable[HistoryEntry]) -> ByLine:
    """Return the ends of the intents' calls that name `key`, or that name no key because the call ended whole."""
    calls = {entry.call for entry in intents}
    of_runs = sa.and_(JOURNAL.c.run.in_({entry.run for entry in intents}), JOURNAL.c.verb.in_((SETTLED, FAILED)))
    query = sa.select(JOURNAL.c.id, JOURNAL.c.run, JOURNAL.c.at, JOURNAL.c.verb, JOURNAL.c.packed)
    return {
        id: [
            HistoryEntry(at=at, outcome=verb, run=run, call=end.call, detail=Detail(message=end.message))
            for end in packed_lines.ends(packed)
            if end.call in calls and (not end.keys or str(key) in end.keys)
        ]
        for id, run, at, verb, packed in connection.execute(query.where(of_runs, JOURNAL.c.kind == PACKED))
    }


def _folded(beginnings: ByLine, ends: ByLine) -> list[HistoryEntry]:
    """Return the entries in order, with the end of each call merged into its beginning."""
    entries: list[HistoryEntry] = []
    intents: dict[tuple[str | None, str | None], int] = {}
    for id, each in sorted({**beginnings, **ends}.items()):
        for entry in each:
            at = intents.pop((entry.run, entry.call), None) if entry.outcome in (SETTLED, FAILED) else None
            if at is not None:
                detail = replace(entries[at].detail, message=entry.detail.message)
                entries[at] = replace(entries[at], outcome=entry.outcome, detail=detail)
            elif id in beginnings:
                if entry.outcome == INTENDED:
                    intents[entry.run, entry.call] = len(entries)
                entries.append(entry)
    return entries


def _entry(line: Any) -> HistoryEntry:
    return HistoryEntry(
        at=line.at,
        outcome=line.verb,
        run=line.run,
        command=line.command,
        commit=line.revision,
        user=line.who,
        host=line.host,
        job_url=line.job_url,
        call=line.call,
        operation=line.operation,
        source=Source(line.file, line.line) if line.file is not None else None,
        detail=read(line.detail),
    )
