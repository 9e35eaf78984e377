"""Remove history before a point in time, in the caller's transaction (docs/state.md).

Everything that rows, calls, the gate and approvals need is kept: the changes of rows in doubt, calls that may still
land, the paths that have answered, and the last limits. A run that used up a saved plan leaves an empty row, so that
the plan stays used up.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from syncengine.state.folder_memory import MARKED
from syncengine.state.history import OF_CALLS, PRUNED_RUN, UNFINISHED
from syncengine.state.queries import LAST_LIMITS, address_of, doubtful
from syncengine.state.tables import CALLS, CHANGES, FACTS, MARKS, ROWS, RUNS, SESSIONS

GATE_SECONDS = 86_400.0
"""The seconds for which the gate counts removals (docs/planning.md 5)."""

IS_OVER = sa.and_(CALLS.c.outcome.is_not(None), CALLS.c.content.is_(None))
"""The condition of calls that are not in flight and can no longer land."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The numbers of removed runs and history entries, and of rows in doubt, whose entries stay.

    `before` is the time (seconds since the epoch) before which history was removed, at least a day ago.
    """

    before: float
    runs: int
    entries: int
    in_doubt: int


def prune(connection: sa.Connection, before: float, *, is_trial: bool) -> Pruned:
    """Remove history before `before` (seconds since the epoch). A trial only counts it."""
    in_doubt = sa.select(address_of(ROWS)).where(doubtful())
    stays = sa.or_(CALLS.c.at >= before, address_of(CHANGES).in_(in_doubt))
    entries, last = connection.execute(
        sa.select(sa.func.count(), sa.func.max(CALLS.c.at)).select_from(OF_CALLS).where(sa.not_(stays))
    ).one()
    calls = sa.outerjoin(CALLS, CHANGES, CHANGES.c.call == CALLS.c.id)
    staying = sa.select(CALLS.c.run).select_from(calls).where(stays, CALLS.c.run.is_not(None))
    landing = sa.select(CALLS.c.run).where(sa.not_(IS_OVER), CALLS.c.run.is_not(None))
    is_old = sa.and_(RUNS.c.started < before, RUNS.c.ended.is_not(None), RUNS.c.command != PRUNED_RUN)
    limits = sa.select(LAST_LIMITS.subquery().c.id)
    is_dropped = sa.and_(is_old, RUNS.c.id.not_in(staying), RUNS.c.id.not_in(landing), RUNS.c.id.not_in(limits))
    runs = connection.execute(sa.select(sa.func.count()).select_from(RUNS).where(is_dropped)).scalar_one()
    count = connection.execute(sa.select(sa.func.count()).select_from(in_doubt.subquery())).scalar_one()
    if not is_trial:
        drop_changes(connection, CALLS.c.at < before, address_of(CHANGES).not_in(in_doubt), last)
        drop_runs(connection, is_dropped)
        connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.closed < before))
        connection.execute(sa.delete(MARKS).where(MARKS.c.verb == MARKED, MARKS.c.at < before))
    return Pruned(before, runs, entries, count)


def drop_changes(
    connection: sa.Connection, is_old: sa.ColumnElement[bool], is_dropped: sa.ColumnElement[bool], last: float | None
) -> None:
    """Drop changes of old calls, and old calls without changes. `last` is the time of the last of these changes."""
    old = sa.select(CALLS.c.id).where(is_old)
    connection.execute(sa.delete(CHANGES).where(CHANGES.c.call.in_(old), is_dropped))
    is_empty = sa.and_(is_old, IS_OVER, CALLS.c.id.not_in(sa.select(CHANGES.c.call)))
    connection.execute(sa.delete(CALLS).where(is_empty))
    if last is not None:  # what is missing up to here is no damage, and what a run did may be incomplete
        is_later = sa.or_(FACTS.c.pruned.is_(None), FACTS.c.pruned < last)
        connection.execute(sa.update(FACTS).where(is_later).values(pruned=last))


def drop_runs(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> None:
    """Drop runs. One that used up a saved plan leaves an empty row, so that the plan stays used up."""
    used_a_plan = sa.and_(RUNS.c.plan.is_not(None), RUNS.c.outcome.not_in(UNFINISHED))
    kept = ("id", "started", "ended", "plan", "outcome")
    empty: dict[str, object] = {column.name: None for column in RUNS.c if column.name not in kept}
    empty |= {"command": PRUNED_RUN, "host": "", "who": ""}
    connection.execute(sa.delete(RUNS).where(condition, sa.not_(used_a_plan)))
    connection.execute(sa.update(RUNS).where(condition).values(empty))
