"""Trim the history that every version repeats: to the last runs, a number of changes, and the losses of two days."""

from __future__ import annotations

import sqlalchemy as sa

from syncengine.state.history import OF_CALLS, PRUNED_RUN
from syncengine.state.prune import IS_OVER, drop_changes, drop_runs
from syncengine.state.tables import CALLS, CHANGES, RUNS, SESSIONS

RUNS_WITH_CHANGES, RUNS_KEPT = 100, 1000
MOST_CHANGES = 40_000
"""The number of changes kept, about 10 MB: those of two applies of the largest state that Git may have."""
LOSSES_SECONDS = 2 * 86_400.0
"""The seconds for which losses are always kept, since the gate counts those of a day (docs/planning.md 5)."""


def trim(connection: sa.Connection, now: float, *, runs: int = RUNS_WITH_CHANGES, changes: int = MOST_CHANGES) -> None:
    """Drop the oldest changes, runs and closed sessions."""
    last_runs = sa.select(RUNS.c.id).order_by(RUNS.c.started.desc()).limit(runs)
    first = connection.execute(sa.select(sa.func.min(CALLS.c.id)).where(CALLS.c.run.in_(last_runs))).scalar()
    newest = sa.select(CHANGES.c.call).order_by(CHANGES.c.call.desc(), CHANGES.c.position.desc())
    by_size = connection.execute(newest.offset(changes).limit(1)).scalar()
    border = max(first or 0, 0 if by_size is None else by_size + 1)
    is_old = sa.and_(CALLS.c.id < border, IS_OVER)
    recent = sa.select(CALLS.c.id).where(CALLS.c.at >= now - LOSSES_SECONDS)
    is_dropped = sa.not_(sa.and_(CHANGES.c.takes, CHANGES.c.call.in_(recent)))
    last = connection.execute(
        sa.select(sa.func.max(CALLS.c.at)).select_from(OF_CALLS).where(is_old, is_dropped)
    ).scalar()
    drop_changes(connection, is_old, is_dropped, last)
    old = sa.select(RUNS.c.id).where(RUNS.c.command != PRUNED_RUN, RUNS.c.ended.is_not(None))
    drop_runs(connection, RUNS.c.id.in_(old.order_by(RUNS.c.started.desc()).offset(RUNS_KEPT)))
    connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.closed < now - LOSSES_SECONDS))
