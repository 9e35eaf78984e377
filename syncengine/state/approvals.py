"""The approvals that applies began with, and what they still cover, written in the caller's transaction."""

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
    """All approvals that applies began with, oldest first."""
    return [record_of(row, orjson.loads) for row in connection.execute(_ALL)]


def begin(connection: sa.Connection, run: str, plan: str | None, approved: Approved, now: float) -> None:
    """Record what the approvals of a run cover; end those whose removals nobody asks for any more.

    One that a dead run began with stays as it is: it covers what is left of that.
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
    """Take out of what approvals cover whatever has settled; one of which nothing is left is used."""
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
    """End what approvals cover of these resources, whose rows were written by hand."""
    written = set(keys)
    for record in records(connection):
        if record.used is None:
            _keep(connection, record, [loss for loss in record.remaining if loss.key not in written], now)


def use_up(connection: sa.Connection, texts: Iterable[str], run: str, now: float) -> None:
    """Count these approvals as used, and all that are under way."""
    connection.execute(sa.update(APPROVALS).where(APPROVALS.c.used.is_(None)).values(remaining=NOTHING, used=now))
    begun = set(connection.execute(_TEXTS).scalars())
    new = [(text, run, None, now, NOTHING, NOTHING, now) for text in dict.fromkeys(texts) if text not in begun]
    write_many(connection, APPROVALS, COLUMNS, new)


def _keep(connection: sa.Connection, record: ApprovalRecord, losses: list[Loss], now: float) -> None:
    """Write what a record covers from now on, where that is another than before."""
    if len(losses) == len(record.remaining) and losses:
        return
    values = {"remaining": to_json(to_list(losses)), "used": None if losses else now}
    connection.execute(_KEEP, {"of_text": record.text, **values})
