"""Read and write what was decided about resources: approvals, refusals, quarantine. The transaction is the caller's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from msgspec.structs import asdict

from syncengine.resource import Key
from syncengine.state.codec import KINDS
from syncengine.state.records import (
    LONGEST_WORDS,
    ApprovalRecord,
    Approved,
    Loss,
    QuarantineRecord,
    Refusal,
    from_lists,
    is_settled,
    to_list,
)
from syncengine.state.tables import (
    APPROVALS,
    FACTS,
    QUARANTINE,
    REFUSALS,
    change_keyed,
    select_keyed,
    visible,
    write_many,
)

# --- approvals


def approvals(connection: sa.Connection, *, pending: bool = False) -> list[ApprovalRecord]:
    """Return the approvals that an apply began with, oldest first. `pending`: only those that still cover losses."""
    query = sa.select(APPROVALS).where(APPROVALS.c.used.is_(None) if pending else sa.true())
    rows = connection.execute(query.order_by(APPROVALS.c.at, APPROVALS.c.approval)).mappings()
    records = (
        {**row, "covers": tuple(from_lists(row["covers"])), "remaining": tuple(from_lists(row["remaining"]))}
        for row in rows
    )
    return [ApprovalRecord(text=record.pop("approval"), **record) for record in records]


def begin_approvals(connection: sa.Connection, run: str, plan: str | None, approved: Approved, now: float) -> None:
    """Record the losses that the approvals of a run cover. End approvals whose removals the plan no longer asks for.

    An approval that a dead run began with stays, and covers the losses that remain.
    """
    for record in approvals(connection, pending=True):
        _keep(connection, record, [loss for loss in record.remaining if not approved.drops(loss, record.run)], now)
    begun = {record.text for record in approvals(connection)}  # each is good for one removal
    for text, losses in approved.uses.items():
        if text not in begun:
            covers = to_list(losses)
            values = {"approval": text, "run": run, "plan": plan, "at": now, "covers": covers, "remaining": covers}
            connection.execute(sa.insert(APPROVALS).values(values))


def settle_approvals(connection: sa.Connection, now: float) -> None:
    """Drop settled losses from all approvals. An approval without remaining losses becomes used."""
    pending = approvals(connection, pending=True)
    if not pending:
        return
    owns = bool(connection.execute(sa.select(FACTS.c.owns_activity_types)).scalar_one())
    rows = visible(connection, {loss.key for record in pending for loss in record.remaining})
    for record in pending:
        left = [each for each in record.remaining if not is_settled(each, rows.get(each.key), owns_activity_types=owns)]
        _keep(connection, record, left, now)


def withdraw_losses(connection: sa.Connection, keys: Iterable[Key], now: float) -> None:
    """Drop the losses of resources whose rows were written by hand from all approvals."""
    written = set(keys)
    for record in approvals(connection, pending=True):
        _keep(connection, record, [loss for loss in record.remaining if loss.key not in written], now)


def use_up_approvals(connection: sa.Connection, texts: Iterable[str], run: str, now: float) -> None:
    """Mark the given approvals as used, and all approvals in progress."""
    connection.execute(sa.update(APPROVALS).where(APPROVALS.c.used.is_(None)).values(remaining=[], used=now))
    begun = {record.text for record in approvals(connection)}
    for text in dict.fromkeys(texts):
        if text not in begun:
            values = {"approval": text, "run": run, "at": now, "covers": [], "remaining": [], "used": now}
            connection.execute(sa.insert(APPROVALS).values(values))


def _keep(connection: sa.Connection, record: ApprovalRecord, losses: list[Loss], now: float) -> None:
    """Store the losses that an approval covers from now on, unless nothing has changed."""
    if len(losses) != len(record.remaining) or not losses:
        values = {"remaining": to_list(losses), "used": None if losses else now}
        connection.execute(sa.update(APPROVALS).where(APPROVALS.c.approval == record.text).values(values))


# --- refusals and quarantine


def refusals(connection: sa.Connection) -> dict[Key, Refusal]:
    """Return the refusals of resources that have not been applied since they were refused."""
    query = sa.select(REFUSALS).where(REFUSALS.c.settled.is_(None)).order_by(REFUSALS.c.kind, REFUSALS.c.name)
    found = {}
    for row in connection.execute(query):
        key = Key(KINDS[row.kind], row.name)
        content = {name: row._mapping[name] for name in ("times", "since", "at", "message", "content")}
        found[key] = Refusal(key=key, **content, is_last=row.pending is None)
    return found


def refuse(
    connection: sa.Connection, run: str | None, refused: Mapping[Key, str], messages: Mapping[Key, str], now: float
) -> None:
    """Count refusals, at most one per run and resource. `refused` maps keys to the refused content.

    A quarantine ends with the refusal of other content, which nobody has set aside.
    """
    aside = quarantine(connection)
    end_quarantine(connection, [each.key for each in aside if refused.get(each.key, each.content) != each.content])
    before = {(row.kind, row.name): row for row in select_keyed(connection, sa.select(REFUSALS), REFUSALS, refused)}
    rows = []
    for key, content in refused.items():
        last = before.get((key.kind.value, key.name))
        times, since = 1, now
        if last is not None and last.settled in (None, run):
            times, since = last.times + (last.run != run), last.since
        refusal = Refusal(key=key, times=times, since=since, at=now, message=messages[key], content=content)
        rows.append(_refusal_row(refusal, run))
    write_many(connection, REFUSALS, rows, upsert=True)


def import_refusals(connection: sa.Connection, refusals: Iterable[Refusal]) -> None:
    """Write refusals imported from another state."""
    rows = [{**_refusal_row(each, None), "pending": None if each.is_last else ""} for each in refusals]
    write_many(connection, REFUSALS, rows, upsert=True)


def _refusal_row(refusal: Refusal, run: str | None) -> dict[str, object]:
    """Return the row of a refusal, which is neither pending nor settled."""
    row = {**asdict(refusal), "kind": refusal.key.kind.value, "name": refusal.key.name}
    del row["key"], row["is_last"]
    return {**row, "message": refusal.message[:LONGEST_WORDS], "run": run, "pending": None, "settled": None}


def mark_refusals(connection: sa.Connection, column: str, run: str | None, keys: Iterable[Key]) -> None:
    """Mark the refusals of earlier runs, in `pending` or `settled`; those of this run stay until its end.

    `pending`: calls for their resources are about to be sent. `settled`: calls with all of their content were
    acknowledged.
    """
    # All refusals are asked for, not those of the keys: there are few of them, and many keys in each call.
    others = sa.select(REFUSALS.c.kind, REFUSALS.c.name).where(REFUSALS.c.run.is_distinct_from(run))
    if earlier := {tuple(row) for row in connection.execute(others)}:
        of_keys = [key for key in keys if (key.kind.value, key.name) in earlier]
        change_keyed(connection, sa.update(REFUSALS), REFUSALS, of_keys, **{column: run})


def end_refusals(connection: sa.Connection) -> None:
    """Drop the refusals of resources applied since, with their quarantine."""
    connection.execute(sa.delete(REFUSALS).where(REFUSALS.c.settled.is_not(None)))
    if records := quarantine(connection):
        still_refused = refusals(connection)
        end_quarantine(connection, [each.key for each in records if each.key not in still_refused])


def quarantine(connection: sa.Connection) -> list[QuarantineRecord]:
    """Return the resources that were set aside by hand."""
    rows = connection.execute(sa.select(QUARANTINE).order_by(QUARANTINE.c.kind, QUARANTINE.c.name))
    return [
        QuarantineRecord(
            key=Key(KINDS[row.kind], row.name), reason=row.reason, until=row.until, at=row.at, content=row.content
        )
        for row in rows
    ]


def set_aside(connection: sa.Connection, records: Sequence[QuarantineRecord]) -> None:
    """Write quarantine records over earlier ones of the same key."""
    rows = [{**asdict(each), "kind": each.key.kind.value, "name": each.key.name} for each in records]
    for row in rows:
        del row["key"]
    write_many(connection, QUARANTINE, rows, upsert=True)


def end_quarantine(connection: sa.Connection, keys: Iterable[Key]) -> None:
    """Drop the quarantine records of resources."""
    change_keyed(connection, sa.delete(QUARANTINE), QUARANTINE, list(keys))


def forget_decisions(connection: sa.Connection, keys: Iterable[Key]) -> None:
    """Drop the refusals and quarantine records of resources whose rows are written by hand or dropped."""
    keys = list(keys)
    end_quarantine(connection, keys)
    change_keyed(connection, sa.delete(REFUSALS), REFUSALS, keys)
