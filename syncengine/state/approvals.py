"""Read and write the approvals that applies began with and the losses still covered, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import orjson
import sqlalchemy as sa

from syncengine.resource import Key, Recorded
from syncengine.state.codec import to_json
from syncengine.state.losses import ALL_RECORDS, COLUMNS, ApprovalRecord, Approved, Loss, is_settled, record_of, to_list
from syncengine.state.tables import APPROVALS, FACTS, write_many

NOTHING = "[]"
_ALL = sa.text(ALL_RECORDS)
_TEXTS = sa.select(APPROVALS.c.approval)
_OWNS_ACTIVITY_TYPES = sa.select(FACTS.c.owns_activity_types)
_KEEP = sa.update(APPROVALS).where(APPROVALS.c.approval == sa.bindparam("of_text"))


def records(connection: sa.Connection) -> list[ApprovalRecord]:
    """Return all approvals that an apply began with, oldest first."""
    return [record_of(row, orjson.loads) for row in connection.execute(_ALL)]


def begin(connection: sa.Connection, run: str, plan: str | None, approved: Approved, now: float) -> None:
    """Record the losses that the approvals of a run cover. End approvals whose removals the plan no longer asks for.

    An approval that a dead run began with stays, and covers the losses that remain.
    """
    pending = [record for record in records(connection) if record.used is None]
    for record in pending:
        _keep(connection, record, [loss for loss in record.remaining if not approved.drops(loss, record.run)], now)
    begun = set(connection.execute(_TEXTS).scalars()) if approved.uses else set()
    new = [
        (text, run, plan, now, covers, covers, None)
        for text, losses in approved.uses.items()
        if text not in begun and (covers := to_json(to_list(losses)))
    ]
    write_many(connection, APPROVALS, COLUMNS, new)


def settle(connection: sa.Connection, rows_of: Callable[[Iterable[Key]], dict[Key, Recorded]], now: float) -> None:
    """Drop settled losses from all approvals. An approval without remaining losses becomes used."""
    pending = [record for record in records(connection) if record.used is None]
    if not pending:
        return
    owns = bool(connection.execute(_OWNS_ACTIVITY_TYPES).scalar_one())
    rows = rows_of({loss.key for record in pending for loss in record.remaining})
    for record in pending:
        unsettled = [
            loss for loss in record.remaining if not is_settled(loss, rows.get(loss.key), owns_activity_types=owns)
        ]
        _keep(connection, record, unsettled, now)


def withdraw(connection: sa.Connection, keys: Iterable[Key], now: float) -> None:
    """Drop the losses of resources whose rows were written by hand from all approvals."""
    written = set(keys)
    for record in records(connection):
        if record.used is None:
            _keep(connection, record, [loss for loss in record.remaining if loss.key not in written], now)


def use_up(connection: sa.Connection, texts: Iterable[str], run: str, now: float) -> None:
    """Mark the given approvals as used, and all approvals in progress."""
    connection.execute(sa.update(APPROVALS).where(APPROVALS.c.used.is_(None)).values(remaining=NOTHING, used=now))
    begun = set(connection.execute(_TEXTS).scalars())
    new = [(text, run, None, now, NOTHING, NOTHING, now) for text in dict.fromkeys(texts) if text not in begun]
    write_many(connection, APPROVALS, COLUMNS, new)


def _keep(connection: sa.Connection, record: ApprovalRecord, losses: list[Loss], now: float) -> None:
    """Store the losses that an approval covers from now on, unless nothing has changed."""
    if len(losses) == len(record.remaining) and losses:
        return
    values = {"remaining": to_json(to_list(losses)), "used": None if losses else now}
    connection.execute(_KEEP, {"of_text": record.text, **values})
