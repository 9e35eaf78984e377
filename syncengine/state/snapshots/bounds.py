"""Trim the journal that every version repeats to the last runs, the last megabytes, and the losses of two days."""

from __future__ import annotations

import sqlalchemy as sa

from syncengine.state.history import PRUNED_RUN, pruned_until
from syncengine.state.journal import PATH, PRUNED
from syncengine.state.prune import drop_runs
from syncengine.state.tables import JOURNAL, ROWS, RUNS, SESSIONS

RUNS_WITH_LINES, RUNS_KEPT = 100, 1000
MOST_BYTES = 8 * 1024 * 1024
LOSSES_SECONDS = 2 * 86_400.0
"""The seconds for which losses are always kept, since the gate counts those of a day (docs/planning.md 5)."""


def trim(connection: sa.Connection, now: float, *, runs: int = RUNS_WITH_LINES, size: int = MOST_BYTES) -> None:
    """Drop the oldest journal lines, runs and closed sessions, and the references to dropped lines."""
    border = _oldest_line(connection, runs, size)
    if border is not None:
        is_over = sa.and_(JOURNAL.c.id < border, JOURNAL.c.kind.not_in((PATH, PRUNED)))
        counts = sa.and_(JOURNAL.c.takes.is_(True), JOURNAL.c.at >= now - LOSSES_SECONDS)
        is_dropped = sa.and_(is_over, sa.or_(JOURNAL.c.takes.is_(None), sa.not_(counts)))
        if connection.execute(sa.delete(JOURNAL).where(is_dropped)).rowcount:
            _mark_dropped(connection, border - 1, now)
    of_runs = sa.select(RUNS.c.id).where(RUNS.c.command != PRUNED_RUN, RUNS.c.ended.is_not(None))
    drop_runs(connection, connection.execute(of_runs.order_by(RUNS.c.started.desc()).offset(RUNS_KEPT)).scalars().all())
    connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.closed < now - LOSSES_SECONDS))


def _mark_dropped(connection: sa.Connection, last: int, now: float) -> None:
    """Record, as `state prune` does, the last line up to which missing lines are no damage; drop references to them."""
    last = max(last, pruned_until(connection))
    connection.execute(sa.delete(JOURNAL).where(JOURNAL.c.kind == PRUNED))
    mark = {"epoch": 0, "at": now, "verb": PRUNED, "kind": PRUNED, "name": "", "entry": last}
    connection.execute(sa.insert(JOURNAL).values(mark))
    for table in (ROWS, JOURNAL):
        is_gone = sa.and_(table.c.entry <= last, table.c.entry.not_in(sa.select(JOURNAL.c.id)))
        is_row = table.c.kind != PRUNED
        connection.execute(sa.update(table).where(is_gone, is_row).values(entry=None))


def _oldest_line(connection: sa.Connection, runs: int, most: int) -> int | None:
    """Return the id of the oldest line to keep within the limits on runs and size, or `None` when all lines fit."""
    of_runs = sa.select(RUNS.c.id).order_by(RUNS.c.started.desc()).limit(runs)
    first = connection.execute(sa.select(sa.func.min(JOURNAL.c.id)).where(JOURNAL.c.run.in_(of_runs))).scalar()
    size = sa.func.coalesce(sa.func.length(JOURNAL.c.packed), 0) + 200
    total = sa.func.sum(size).over(order_by=JOURNAL.c.id.desc())
    sizes = sa.select(JOURNAL.c.id, total.label("total")).subquery()
    by_size = connection.execute(sa.select(sa.func.max(sizes.c.id)).where(sizes.c.total > most)).scalar()
    borders = [border for border in (first, None if by_size is None else by_size + 1) if border is not None]
    return max(borders, default=None)
