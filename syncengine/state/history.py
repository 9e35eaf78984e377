"""Runs, and what the calls of all runs tell: of a resource, of a plan, of removals (docs/planning.md 1.3, 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec
import sqlalchemy as sa

from syncengine.resource import Key, Source
from syncengine.state.codec import KINDS, Detail, RemovalLine, detail_from
from syncengine.state.holder import Holder, actor
from syncengine.state.journal import FORGOTTEN, INTENDED, QUARANTINE_ENDED, QUARANTINED, RECORDED, SETTLED
from syncengine.state.tables import CALLS, CHANGES, RUNS, SESSIONS, select_keyed

DIED, REFUSED = "died", "refused"
PRUNED_RUN = ""
"""The command of a pruned run, of which only its plan and its end are left."""
LARGE = 2000
"""The number of changes fetched at a time: a call has at most so many, and they take a few MB of memory."""

LONGEST_RUN = 86_400.0
"""The assumed maximum duration of a run in seconds, needed because the index of runs is by their start."""

PIECES = {"yield_per": LARGE}

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


OF_RUN = {each.name: RUNS.c[{"user": "who", "commit": "revision"}.get(each.name, each.name)] for each in fields(Run)}
SETS = ("counts", "approvals", "reviewed", "limits")
"""The columns of a run that are NULL where there is nothing in them."""
_RUNS = sa.select(*OF_RUN.values())


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


WRITES = sa.or_(CALLS.c.call.is_not(None), CALLS.c.outcome.in_((RECORDED, FORGOTTEN)))
"""The condition of calls, and of what was written without a call."""

_EARLY = CHANGES.c.outcome.is_not(None)
OUTCOME = sa.func.coalesce(CHANGES.c.outcome, CALLS.c.outcome, INTENDED).label("outcome")
"""How a change ended: with its call, or before the others. `INTENDED`: its result is unknown."""
ENDED = sa.case((_EARLY, CHANGES.c.ended), else_=CALLS.c.ended)
MESSAGE = sa.case((_EARLY, CHANGES.c.message), else_=CALLS.c.message).label("message")

OF_CALLS = sa.join(CALLS, CHANGES, CHANGES.c.call == CALLS.c.id)
IN_ORDER = (CALLS.c.id, CHANGES.c.position)


def open_run(connection: sa.Connection, run: Run, now: float, *, by_unit: bool = False) -> None:
    """Record the start of a run. Mark every other open run as dead, since this one has the lock.

    `by_unit`: the removals that each of the run's approvals covers are recorded, too.
    """
    connection.execute(sa.update(RUNS).where(RUNS.c.ended.is_(None)).values(ended=now, outcome=DIED))
    connection.execute(sa.insert(RUNS).values({**_columns(run), "units": by_unit}))


def refused_run(connection: sa.Connection, run: Run) -> None:
    """Append a refused run with its start and its end. The lock is not checked, because no other row is touched."""
    connection.execute(sa.insert(RUNS).values({**_columns(run), "ended": run.ended, "outcome": REFUSED}))


def _columns(run: Run) -> dict[str, Any]:
    """Return the columns of a run that begins. What it has none of is NULL."""
    values = {name: getattr(run, name) for name in OF_RUN if name not in ("ended", "outcome", "counts")}
    return {OF_RUN[name].name: value or None if name in SETS else value for name, value in values.items()}


def close_run(connection: sa.Connection, run: str, now: float, outcome: str, counts: Mapping[str, int]) -> None:
    values = {"ended": now, "outcome": outcome, "counts": counts}
    connection.execute(sa.update(RUNS).where(RUNS.c.id == run).values(values))


def runs(connection: sa.Connection, limit: int) -> list[Run]:
    """Return the last `limit` runs, latest first, without pruned runs."""
    query = _RUNS.where(RUNS.c.command != PRUNED_RUN)
    query = query.order_by(RUNS.c.started.desc(), RUNS.c.id.desc()).limit(limit)
    return [_run(row) for row in connection.execute(query)]


def runs_of(connection: sa.Connection, ids: Iterable[str]) -> list[Run]:
    """Return the runs with these ids. Unknown ids are skipped."""
    return [_run(row) for row in connection.execute(_RUNS.where(RUNS.c.id.in_(list(ids))))]


def runs_like(connection: sa.Connection, prefix: str) -> list[Run]:
    """Return the runs whose ids begin with `prefix`, latest first."""
    query = _RUNS.where(RUNS.c.id.startswith(prefix, autoescape=True)).order_by(RUNS.c.started.desc())
    return [_run(row) for row in connection.execute(query)]


def _run(row: sa.Row[Any]) -> Run:
    columns = zip(OF_RUN, row, strict=True)
    return msgspec.convert({name: value for name, value in columns if value is not None or name not in SETS}, Run)


def open_sessions(connection: sa.Connection) -> list[str]:
    """Return the ids of sync sessions that were opened and never closed, oldest first."""
    query = sa.select(SESSIONS.c.id).where(SESSIONS.c.closed.is_(None)).order_by(SESSIONS.c.opened, SESSIONS.c.id)
    return list(connection.execute(query).scalars())


def plan_ended(connection: sa.Connection, plan: str) -> bool:
    """Return whether some run of the plan ran to its end, which uses the plan up (docs/planning.md 6)."""
    is_over = sa.and_(RUNS.c.ended.is_not(None), RUNS.c.outcome.not_in(UNFINISHED))
    return connection.execute(sa.select(RUNS.c.id).where(RUNS.c.plan == plan, is_over).limit(1)).first() is not None


def plan_began(connection: sa.Connection, plan: str) -> bool:
    """Return whether some run of the plan may have sent a call. A refused run sends none."""
    has_begun = RUNS.c.outcome.is_distinct_from(REFUSED)
    return connection.execute(sa.select(RUNS.c.id).where(RUNS.c.plan == plan, has_begun).limit(1)).first() is not None


def history(connection: sa.Connection, key: Key) -> list[HistoryEntry]:
    """Return the history of one resource, oldest entry first. Raise `ValueError` for a damaged change."""
    of_call = (CALLS.c.at, OUTCOME, CALLS.c.run, CALLS.c.call, CALLS.c.operation, MESSAGE)
    of_run = (RUNS.c.command, RUNS.c.revision, RUNS.c.who, RUNS.c.host, RUNS.c.job_url)
    query = (
        sa.select(*of_call, CHANGES.c.file, CHANGES.c.line, CHANGES.c.detail, *of_run)
        .select_from(sa.outerjoin(OF_CALLS, RUNS, CALLS.c.run == RUNS.c.id))
        .where(CHANGES.c.kind == key.kind.value, CHANGES.c.name == key.name)
    )
    return [
        HistoryEntry(
            at=row.at,
            outcome=row.outcome,
            run=row.run,
            command=row.command,
            commit=row.revision,
            user=row.who,
            host=row.host,
            job_url=row.job_url,
            call=row.call,
            operation=row.operation,
            source=Source(row.file, row.line) if row.file is not None else None,
            detail=msgspec.structs.replace(detail_from(row.detail), message=row.message),
        )
        for row in connection.execute(query.order_by(*IN_ORDER))
    ]


def last_writer(entries: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """Return the last history entry that tells about the resource's row, skipping quarantine entries."""
    return next((entry for entry in reversed(entries) if entry.outcome not in (QUARANTINED, QUARANTINE_ENDED)), None)


def settled_at(connection: sa.Connection, keys: Iterable[Key]) -> dict[Key, float]:
    """Return the time (seconds since the epoch) at which each row got its current content, if that time is known.

    It is that of the last acknowledged call, or of the last record without a call that changed more than the place.
    """
    is_record = sa.and_(CALLS.c.outcome == RECORDED, CHANGES.c.detail.is_not(None))
    at = sa.case((OUTCOME == SETTLED, ENDED), (is_record, CALLS.c.at))
    query = (
        sa.select(CHANGES.c.kind, CHANGES.c.name, sa.func.max(at).label("at"))
        .select_from(OF_CALLS)
        .group_by(CHANGES.c.kind, CHANGES.c.name)
        .having(sa.func.max(at).is_not(None))
    )
    rows = select_keyed(connection, query, CHANGES, keys)
    return {Key(KINDS[row.kind], row.name): float(row.at) for row in rows}


def forgotten(connection: sa.Connection, keys: Iterable[Key]) -> set[Key]:
    """Return the subset of `keys` that `state forget` has ever dropped."""
    query = sa.select(CHANGES.c.kind, CHANGES.c.name).select_from(OF_CALLS).where(CALLS.c.outcome == FORGOTTEN)
    return {Key(KINDS[row.kind], row.name) for row in select_keyed(connection, query, CHANGES, keys)}


def removals(connection: sa.Connection, since: float) -> list[RemovalLine]:
    """Return changes of plan runs that may have removed something after `since`, oldest first.

    Adoption and imports have no plan, and `state forget` takes nothing. `at` is the writer's wall clock, whose error of
    minutes does not matter within a day. Raise `ValueError` or `LookupError` for a damaged change.
    """
    is_of_plan = sa.and_(RUNS.c.started >= since - LONGEST_RUN, RUNS.c.plan.is_not(None))
    columns = (CALLS.c.at, CALLS.c.call, CHANGES.c.kind, CHANGES.c.name, CHANGES.c.detail)
    query = (
        # With approvals by unit, the approvals themselves list the losses.
        sa.select(*columns, sa.and_(RUNS.c.approvals.is_not(None), sa.not_(RUNS.c.units)).label("is_approved"))
        .select_from(sa.join(OF_CALLS, RUNS, CALLS.c.run == RUNS.c.id))
        .where(CALLS.c.at >= since, CHANGES.c.takes, is_of_plan)
    )
    return [
        RemovalLine(float(at), call is not None, Key(KINDS[kind], name), detail_from(detail), bool(approved))
        for at, call, kind, name, detail, approved in connection.execute(query.order_by(*IN_ORDER))
    ]
