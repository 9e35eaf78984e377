"""What journal and runs tell: runs, a resource's history, what a saved plan already did (docs/planning.md 1.3, 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from syncengine.resource import Key, Source
from syncengine.state.codec import from_json, to_json
from syncengine.state.holder import Holder, actor
from syncengine.state.journal import CALL, FAILED, INTENDED, SETTLED
from syncengine.state.journal_detail import Detail, read
from syncengine.state.tables import JOURNAL, RUNS

DIED, REFUSED = "died", "refused"
UNFINISHED = (DIED, "interrupted", REFUSED, "unreachable")
"""Outcomes that do not use up a saved plan: it may be applied again."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command that writes. Seconds since epoch; `clean`: the work tree had no changes of its own.

    `actor` had the CI job run, `approvals` are those that the run needed. A run that was refused has the exit code of
    that, and the reason.
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
    exit_code: int | None = None
    reason: str | None = None

    @classmethod
    def here(cls, id: str, started: float, holder: Holder, environ: Mapping[str, str]) -> Run:
        """Return a run of this process, of no plan and no commit."""
        who = actor(environ)
        return cls(id, started, holder.command, None, holder.host, holder.user, holder.job_url, None, None, actor=who)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One thing that happened, or may have, to one resource.

    `outcome`: intended (nobody knows), settled, failed, recorded, doubted or forgotten. `detail` says what was to
    become of the row, and why not.
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


def open_run(connection: sa.Connection, run: Run, now: float) -> None:
    """Write a run's beginning; any other without an end is dead, since this one has the lock."""
    connection.execute(sa.update(RUNS).where(RUNS.c.ended.is_(None)).values(ended=now, outcome=DIED))
    connection.execute(sa.insert(RUNS).values(**_values(run)))


def refused_run(connection: sa.Connection, run: Run) -> None:
    """Append a run that was refused, from its beginning to its end. It proves no lock: no other line is touched."""
    ended = {"ended": run.ended, "outcome": REFUSED}
    connection.execute(sa.insert(RUNS).values(**_values(run), **ended))


def close_run(connection: sa.Connection, run: str, now: float, outcome: str, counts: Mapping[str, int]) -> None:
    known = from_json(connection.execute(sa.select(RUNS.c.counts).where(RUNS.c.id == run)).scalar_one_or_none())
    values = {"ended": now, "outcome": outcome, "counts": to_json({**known, "counts": dict(counts)})}
    connection.execute(sa.update(RUNS).where(RUNS.c.id == run).values(**values))


def _values(run: Run) -> dict[str, Any]:
    about = {"actor": run.actor, "approvals": run.approvals, "exit": run.exit_code, "reason": run.reason}
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
    """The last runs, latest first."""
    query = sa.select(RUNS).order_by(RUNS.c.started.desc(), RUNS.c.id.desc()).limit(limit)
    return [_run(row) for row in connection.execute(query)]


def _run(row: sa.Row[Any]) -> Run:
    about = from_json(row.counts)
    if not isinstance(about.get("counts"), dict):  # as it was written before there was more than counts
        about = {"counts": about}
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
        exit_code=about.get("exit"),
        reason=about.get("reason"),
    )


def plan_ended(connection: sa.Connection, plan: str) -> bool:
    used = sa.and_(RUNS.c.plan == plan, RUNS.c.ended.is_not(None), RUNS.c.outcome.not_in(UNFINISHED))
    return connection.execute(sa.select(RUNS.c.id).where(used).limit(1)).first() is not None


def plan_began(connection: sa.Connection, plan: str) -> bool:
    """Whether a run of it may have sent something; one that was refused has not."""
    begun = sa.and_(RUNS.c.plan == plan, RUNS.c.outcome.is_distinct_from(REFUSED))
    return connection.execute(sa.select(RUNS.c.id).where(begun).limit(1)).first() is not None


def settled_calls(connection: sa.Connection, plan: str) -> set[str]:
    """Calls of a plan whose every key settled last, in whichever of its runs: by itself, or with the whole call."""
    runs_of_plan = sa.select(RUNS.c.id).where(RUNS.c.plan == plan)
    last = (
        sa.select(sa.func.max(JOURNAL.c.id))
        .where(JOURNAL.c.run.in_(runs_of_plan), JOURNAL.c.verb.in_((INTENDED, SETTLED, FAILED)))
        .group_by(JOURNAL.c.call, JOURNAL.c.kind, JOURNAL.c.name)
    )
    whole = JOURNAL.c.kind == CALL
    failed, begun, ended = (
        sa.func.max(sa.case((which, JOURNAL.c.id), else_=0))
        for which in (JOURNAL.c.verb == FAILED, JOURNAL.c.verb == INTENDED, whole)
    )
    query = (
        sa.select(JOURNAL.c.call)
        .where(JOURNAL.c.id.in_(last))
        .group_by(JOURNAL.c.call)
        .having(failed == 0, begun <= ended)
    )
    return set(connection.execute(query).scalars())


def history(connection: sa.Connection, key: Key) -> list[HistoryEntry]:
    """What happened to one resource, oldest first."""
    query = (
        sa.select(JOURNAL, RUNS.c.command, RUNS.c.revision, RUNS.c.who, RUNS.c.host, RUNS.c.job_url)
        .join_from(JOURNAL, RUNS, JOURNAL.c.run == RUNS.c.id, isouter=True)
        .where(JOURNAL.c.kind == key.kind.value, JOURNAL.c.name == key.name)
        .order_by(JOURNAL.c.id)
    )
    lines = connection.execute(query).all()
    calls = {line.call for line in lines if line.verb == INTENDED}
    whole = sa.select(JOURNAL.c.run, JOURNAL.c.call).where(JOURNAL.c.kind == CALL, JOURNAL.c.name.in_(calls))
    return _folded(lines, [(run, call) for run, call in connection.execute(whole)])


def _folded(lines: Iterable[sa.Row[Any]], whole: Iterable[tuple[str, str]]) -> list[HistoryEntry]:
    """Lines as entries: the end of a call is told with its beginning. `whole`: run and call of those that ended so."""
    entries: list[HistoryEntry] = []
    begun: dict[tuple[str, str], int] = {}
    for line in lines:
        if line.verb in (SETTLED, FAILED) and (line.run, line.call) in begun:
            at = begun.pop((line.run, line.call))
            entries[at] = _ended(entries[at], line)
            continue
        if line.verb == INTENDED:
            begun[line.run, line.call] = len(entries)
        entries.append(_entry(line))
    for ended in begun.keys() & set(whole):
        entries[begun[ended]] = replace(entries[begun[ended]], outcome=SETTLED)
    return entries


def _ended(entry: HistoryEntry, line: sa.Row[Any]) -> HistoryEntry:
    message = read(line.detail).message
    return replace(entry, outcome=line.verb, detail=replace(entry.detail, message=message))


def _entry(line: sa.Row[Any]) -> HistoryEntry:
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
