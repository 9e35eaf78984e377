"""Remove history before a point in time, in the caller's transaction (docs/operate-state.md).

Everything that rows, calls, the gate and approvals need is kept: the entries of rows in doubt, the paths that have
answered, and the last limits. A run that used up a saved plan leaves an empty row, so that the plan stays used up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import sqlalchemy as sa

from syncengine.state import journal_rewrite, packed_lines
from syncengine.state.folder_memory import CHANGE, MARKED
from syncengine.state.history import PRUNED_RUN, UNFINISHED
from syncengine.state.journal import CALL, FAILED, PATH, PRUNED, SETTLED, Stamp
from syncengine.state.journal_rewrite import StoredLine
from syncengine.state.packed_lines import CallEnd, CallLines
from syncengine.state.queries import doubtful
from syncengine.state.tables import JOURNAL, ROWS, RUNS, SESSIONS, write_many

GATE_SECONDS = 86_400.0
"""The seconds for which the gate counts removals (docs/planning.md 5)."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The numbers of removed runs and history entries, and of rows in doubt, whose entries stay.

    `before` is the time (seconds since the epoch) before which history was removed, at least a day ago.
    """

    before: float
    runs: int
    entries: int
    in_doubt: int


@dataclass(slots=True)
class _Remains:
    """The history that must stay: entries of addresses in doubt, the ends of their calls, and the runs of both."""

    addresses: set[str]
    calls: set[tuple[str | None, str | None]] = field(default_factory=set)
    runs: set[str | None] = field(default_factory=set)


def prune(connection: sa.Connection, before: float, stamp: Stamp | None) -> Pruned:
    """Remove history before `before` (seconds since the epoch). Without a stamp, only count it."""
    remains = _Remains(_in_doubt(connection))
    old = sa.and_(JOURNAL.c.at < before, JOURNAL.c.kind.not_in((PATH, PRUNED, CHANGE)))
    entries = last = 0
    for line in journal_rewrite.lines(connection, old):
        count, stays, packed = _without(line, remains)
        entries += count
        if stays:
            remains.runs.add(line.run)
        if count:
            last = line.id
        if stamp is not None and not stays:
            journal_rewrite.drop(connection, line.id)
        elif stamp is not None and packed != line.packed:
            journal_rewrite.write(connection, line.id, {"packed": packed})
    runs = _old_runs(connection, before, remains.runs)
    if stamp is not None:
        drop_runs(connection, runs)
        connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.closed < before))
        connection.execute(
            sa.delete(JOURNAL).where(JOURNAL.c.kind == CHANGE, JOURNAL.c.verb == MARKED, JOURNAL.c.at < before)
        )
        if last:
            mark = (stamp.run, stamp.epoch, stamp.at, PRUNED, PRUNED, "", last)
            write_many(connection, JOURNAL, ("run", "epoch", "at", "verb", "kind", "name", "entry"), [mark])
    return Pruned(before, len(runs), entries, len(remains.addresses))


def _in_doubt(connection: sa.Connection) -> set[str]:
    """Return the addresses of doubtful rows: a call for them has no known outcome, or was refused."""
    query = sa.select(ROWS.c.kind, ROWS.c.name).where(doubtful(connection.dialect.name))
    return {f"{kind}/{name}" for kind, name in connection.execute(query)}


def _without(line: StoredLine, remains: _Remains) -> tuple[int, bool, bytes | None]:
    """Return the number of entries removed from a line, whether the line stays, and its remaining packed entries."""
    if line.packed is None:
        is_end = line.kind == CALL
        stays = (line.run, line.name) in remains.calls if is_end else f"{line.kind}/{line.name}" in remains.addresses
        return int(not stays and not is_end), stays, None
    if line.verb in (SETTLED, FAILED):
        ends = [end for end in packed_lines.ends(line.packed) if (line.run, end.call) in remains.calls]
        own = [CallEnd(e.call, [k for k in e.keys if k in remains.addresses], e.message) for e in ends]
        own = [end for end, whole in zip(own, ends, strict=True) if end.keys or not whole.keys]
        return 0, bool(own), packed_lines.pack_ends(own)
    count, parts = 0, []
    for part in packed_lines.parts(line.packed):
        pairs = [pair for pair in zip(part.keys, part.lines, strict=True) if pair[0] in remains.addresses]
        count += len(part.keys) - len(pairs)
        if pairs:
            remains.calls.add((line.run, part.call))
            parts.append(CallLines(part.call, part.operation, *map(list, zip(*pairs, strict=True))))
    return count, bool(parts), packed_lines.pack(parts)


def _old_runs(connection: sa.Connection, before: float, remaining: set[str | None]) -> list[str]:
    """Return the ended runs before `before` with no remaining lines, except the last run that records limits."""
    limits = sa.select(RUNS.c.id).where(RUNS.c.outcome == "complete", RUNS.c.counts.contains('"limits"'))
    last = connection.execute(limits.order_by(RUNS.c.started.desc(), RUNS.c.id.desc()).limit(1)).scalar_one_or_none()
    younger = sa.select(JOURNAL.c.run).where(JOURNAL.c.at >= before, JOURNAL.c.run.is_not(None)).distinct()
    is_old = sa.and_(RUNS.c.started < before, RUNS.c.ended.is_not(None), RUNS.c.command != PRUNED_RUN)
    query = sa.select(RUNS.c.id).where(is_old, RUNS.c.id.not_in(younger)).order_by(RUNS.c.started)
    return [run for run in connection.execute(query).scalars() if run != last and run not in remaining]


def drop_runs(connection: sa.Connection, runs: Iterable[str]) -> None:
    """Drop runs. One that used up a saved plan leaves an empty row, so that the plan stays used up."""
    empty = {"command": PRUNED_RUN, "host": "", "who": "", "job_url": None, "revision": None, "counts": "{}"}
    used_a_plan = sa.and_(RUNS.c.plan.is_not(None), RUNS.c.outcome.not_in(UNFINISHED))
    for run in runs:
        emptied = connection.execute(sa.update(RUNS).where(RUNS.c.id == run, used_a_plan).values(**empty)).rowcount
        if not emptied:
            connection.execute(sa.delete(RUNS).where(RUNS.c.id == run))
