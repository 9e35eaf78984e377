"""Read and write refusals of resources and the quarantine, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from msgspec.structs import asdict

from syncengine.resource import Key
from syncengine.state.codec import KINDS
from syncengine.state.queries import change_keyed, select_keyed
from syncengine.state.records import LONGEST_WORDS, QuarantineRecord, Refusal
from syncengine.state.tables import QUARANTINE, REFUSALS, write_many


def refusals(connection: sa.Connection) -> dict[Key, Refusal]:
    """Return the refusals of resources that have not been applied since they were refused."""
    query = sa.select(REFUSALS).where(REFUSALS.c.settled.is_(None)).order_by(REFUSALS.c.kind, REFUSALS.c.name)
    return {
        (key := Key(KINDS[row.kind], row.name)): Refusal(
            key=key,
            times=row.times,
            since=row.since,
            at=row.at,
            message=row.message,
            content=row.content,
            is_last=row.pending is None,
        )
        for row in connection.execute(query)
    }


def quarantine(connection: sa.Connection) -> list[QuarantineRecord]:
    """Return the resources that were set aside by hand."""
    rows = connection.execute(sa.select(QUARANTINE).order_by(QUARANTINE.c.kind, QUARANTINE.c.name))
    return [
        QuarantineRecord(
            key=Key(KINDS[row.kind], row.name),
            reason=row.reason,
            until=row.until,
            at=row.at,
            content=row.content,
        )
        for row in rows
    ]


def refuse(
    connection: sa.Connection, run: str | None, refused: Mapping[Key, str], messages: Mapping[Key, str], now: float
) -> None:
    """Count refusals, at most one per run and resource. `refused` maps keys to the refused content.

    A quarantine ends with the refusal of other content, which nobody has set aside.
    """
    drop(
        connection, [each.key for each in quarantine(connection) if refused.get(each.key, each.content) != each.content]
    )
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


def _refusal_row(refusal: Refusal, run: str | None) -> dict[str, object]:
    """Return the row of a refusal, which is neither pending nor settled."""
    columns = {name: value for name, value in asdict(refusal).items() if name not in ("key", "is_last")}
    message = refusal.message[:LONGEST_WORDS]
    return {**columns, **_address(refusal.key), "message": message, "run": run, "pending": None, "settled": None}


def _address(key: Key) -> dict[str, str]:
    return {"kind": key.kind.value, "name": key.name}


def begin(connection: sa.Connection, run: str | None, keys: Iterable[Key]) -> None:
    """Mark earlier refusals as pending, because calls for their resources are about to be sent."""
    change_keyed(connection, sa.update(REFUSALS), REFUSALS, _refused_before(connection, run, keys), pending=run)


def settle(connection: sa.Connection, run: str | None, keys: Iterable[Key]) -> None:
    """Mark earlier refusals as settled, because calls with all of a resource's content were acknowledged."""
    change_keyed(connection, sa.update(REFUSALS), REFUSALS, _refused_before(connection, run, keys), settled=run)


def _refused_before(connection: sa.Connection, run: str | None, keys: Iterable[Key]) -> list[Key]:
    """Return the keys that were refused in an earlier run. Refusals in this run stay until its end."""
    # All refusals are asked for, not those of the keys: there are few of them, and many keys in each call.
    others = sa.select(REFUSALS.c.kind, REFUSALS.c.name).where(REFUSALS.c.run.is_distinct_from(run))
    earlier = {tuple(row) for row in connection.execute(others)}
    return [key for key in keys if (key.kind.value, key.name) in earlier] if earlier else []


def tidy(connection: sa.Connection) -> None:
    """Drop the refusals of resources applied since, with their quarantine."""
    connection.execute(sa.delete(REFUSALS).where(REFUSALS.c.settled.is_not(None)))
    if records := quarantine(connection):
        still_refused = refusals(connection)
        drop(connection, [each.key for each in records if each.key not in still_refused])


def put(connection: sa.Connection, records: Sequence[QuarantineRecord]) -> None:
    """Write quarantine records over earlier ones of the same key."""
    rows = [{**asdict(each), **_address(each.key)} for each in records]
    for row in rows:
        del row["key"]
    write_many(connection, QUARANTINE, rows, upsert=True)


def drop(connection: sa.Connection, keys: Iterable[Key]) -> None:
    """Drop the quarantine records of resources."""
    change_keyed(connection, sa.delete(QUARANTINE), QUARANTINE, list(keys))


def import_refusals(connection: sa.Connection, refusals: Iterable[Refusal]) -> None:
    """Write refusals imported from another state."""
    rows = [{**_refusal_row(each, None), "pending": None if each.is_last else ""} for each in refusals]
    write_many(connection, REFUSALS, rows, upsert=True)


def forget(connection: sa.Connection, keys: Iterable[Key]) -> None:
    """Drop the refusals and quarantine records of resources whose rows are written by hand or dropped."""
    keys = list(keys)
    for table in (REFUSALS, QUARANTINE):
        change_keyed(connection, sa.delete(table), table, keys)
