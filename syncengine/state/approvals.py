"""Read and write the approvals that applies began with and the losses still covered, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from syncengine.resource import Key
from syncengine.state.losses import ApprovalRecord, Approved, Loss, from_lists, is_settled, to_list
from syncengine.state.queries import visible
from syncengine.state.tables import APPROVALS, FACTS


def records(connection: sa.Connection) -> list[ApprovalRecord]:
    """Return the approvals that an apply began with, oldest first."""
    return _records(connection, sa.true())


def _pending(connection: sa.Connection) -> list[ApprovalRecord]:
    return _records(connection, APPROVALS.c.used.is_(None))


def _records(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> list[ApprovalRecord]:
    query = sa.select(APPROVALS).where(condition).order_by(APPROVALS.c.at, APPROVALS.c.approval)
    return [
        ApprovalRecord(
            text=row.approval,
            run=row.run,
            plan=row.plan,
            at=row.at,
            covers=tuple(from_lists(row.covers)),
            remaining=tuple(from_lists(row.remaining)),
            used=row.used,
        )
        for row in connection.execute(query)
    ]


def begin(connection: sa.Connection, run: str, plan: str | None, approved: Approved, now: float) -> None:
    """Record the losses that the approvals of a run cover. End approvals whose removals the plan no longer asks for.

    An approval that a dead run began with stays, and covers the losses that remain.
    """
    for record in _pending(connection):
        _keep(connection, record, [loss for loss in record.remaining if not approved.drops(loss, record.run)], now)
    for text, losses in _not_begun(connection, approved.uses.items()):
        covers = to_list(losses)
        values = {"approval": text, "run": run, "plan": plan, "at": now, "covers": covers, "remaining": covers}
        connection.execute(sa.insert(APPROVALS).values(values))


def settle(connection: sa.Connection, now: float) -> None:
    """Drop settled losses from all approvals. An approval without remaining losses becomes used."""
    if not (pending := _pending(connection)):
        return
    owns = bool(connection.execute(sa.select(FACTS.c.owns_activity_types)).scalar_one())
    rows = visible(connection, {loss.key for record in pending for loss in record.remaining})
    for record in pending:
        unsettled = [
            loss for loss in record.remaining if not is_settled(loss, rows.get(loss.key), owns_activity_types=owns)
        ]
        _keep(connection, record, unsettled, now)


def withdraw(connection: sa.Connection, keys: Iterable[Key], now: float) -> None:
    """Drop the losses of resources whose rows were written by hand from all approvals."""
    written = set(keys)
    for record in _pending(connection):
        _keep(connection, record, [loss for loss in record.remaining if loss.key not in written], now)


def use_up(connection: sa.Connection, texts: Iterable[str], run: str, now: float) -> None:
    """Mark the given approvals as used, and all approvals in progress."""
    connection.execute(sa.update(APPROVALS).where(APPROVALS.c.used.is_(None)).values(remaining=[], used=now))
    for text, _ in _not_begun(connection, ((text, ()) for text in dict.fromkeys(texts))):
        values = {"approval": text, "run": run, "at": now, "covers": [], "remaining": [], "used": now}
        connection.execute(sa.insert(APPROVALS).values(values))


def _not_begun(
    connection: sa.Connection, uses: Iterable[tuple[str, Sequence[Loss]]]
) -> list[tuple[str, Sequence[Loss]]]:
    """Return the approvals with which no run has begun: each is good for one removal."""
    begun = set(connection.execute(sa.select(APPROVALS.c.approval)).scalars())
    return [(text, losses) for text, losses in uses if text not in begun]


def _keep(connection: sa.Connection, record: ApprovalRecord, losses: list[Loss], now: float) -> None:
    """Store the losses that an approval covers from now on, unless nothing has changed."""
    if len(losses) == len(record.remaining) and losses:
        return
    values = {"remaining": to_list(losses), "used": None if losses else now}
    connection.execute(sa.update(APPROVALS).where(APPROVALS.c.approval == record.text).values(values))
