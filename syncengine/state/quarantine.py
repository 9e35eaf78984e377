"""Read and write refusals of resources and the quarantine, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from syncengine.resource import Key
from syncengine.state.queries import change_keyed, select_keyed
from syncengine.state.refusals import (
    ALL_QUARANTINE,
    ALL_REFUSALS,
    LONGEST_WORDS,
    QUARANTINE_COLUMNS,
    REFUSAL_COLUMNS,
    QuarantineRecord,
    Refusal,
    quarantine_of,
    refusals_of,
)
from syncengine.state.tables import QUARANTINE, REFUSALS, write_many

_REFUSALS, _QUARANTINE = sa.text(ALL_REFUSALS), sa.text(ALL_QUARANTINE)
_ALL_REFUSALS = sa.select(REFUSALS)
_ANY_REFUSAL = sa.select(REFUSALS.c.name).limit(1)
_OF_OTHER_RUNS = sa.select(REFUSALS.c.kind, REFUSALS.c.name).where(
    REFUSALS.c.run.is_distinct_from(sa.bindparam("of_run", type_=sa.String))
)
_DROP_SETTLED = sa.delete(REFUSALS).where(REFUSALS.c.settled.is_not(None))
_UPDATE_REFUSALS = sa.update(REFUSALS)
_DROPS = {table: sa.delete(table) for table in (REFUSALS, QUARANTINE)}


def refusals(connection: sa.Connection) -> dict[Key, Refusal]:
    """Return the refusals of all resources that have not been applied since they were refused."""
    return refusals_of(connection.execute(_REFUSALS).all())


def quarantine(connection: sa.Connection) -> list[QuarantineRecord]:
    """Return all quarantine records, including those for entries of the project file that no longer apply."""
    return quarantine_of(connection.execute(_QUARANTINE).all())


def refuse(
    connection: sa.Connection, run: str | None, refused: Mapping[Key, str], messages: Mapping[Key, str], now: float
) -> None:
    """Count refusals, at most one per run and resource. `refused` maps keys to the refused content."""
    if not refused:
        return
    before = {(row.kind, row.name): row for row in select_keyed(connection, _ALL_REFUSALS, REFUSALS, refused)}
    rows = []
    for key, content in refused.items():
        last = before.get((key.kind.value, key.name))
        times, since = 1, now
        if last is not None and last.settled in (None, run):
            times, since = last.times + (last.run != run), last.since
        message = messages[key][:LONGEST_WORDS]
        rows.append((key.kind.value, key.name, times, since, now, message, content, run, None, None))
    write_many(connection, REFUSALS, REFUSAL_COLUMNS, rows, upsert=True)


def begin(connection: sa.Connection, run: str | None, keys: Iterable[Key]) -> None:
    """Mark earlier refusals as pending, because calls for their resources are about to be sent."""
    if here := _refused_before(connection, run, keys):
        change_keyed(connection, _UPDATE_REFUSALS, REFUSALS, here, pending=run)


def settle(connection: sa.Connection, run: str | None, keys: Iterable[Key]) -> None:
    """Mark earlier refusals as settled, because calls with all of a resource's content were acknowledged."""
    if here := _refused_before(connection, run, keys):
        change_keyed(connection, _UPDATE_REFUSALS, REFUSALS, here, settled=run)


def _refused_before(connection: sa.Connection, run: str | None, keys: Iterable[Key]) -> list[Key]:
    """Return the keys that were refused in an earlier run. Refusals in this run stay until its end."""
    earlier = {tuple(row) for row in connection.execute(_OF_OTHER_RUNS, {"of_run": run})}
    return [key for key in keys if (key.kind.value, key.name) in earlier] if earlier else []


def tidy(connection: sa.Connection) -> bool:
    """Drop the refusals of resources applied since. Return whether there were any refusals before."""
    if connection.execute(_ANY_REFUSAL).first() is None:
        return False
    connection.execute(_DROP_SETTLED)
    return True


def put(connection: sa.Connection, records: Sequence[QuarantineRecord]) -> None:
    """Write quarantine records over earlier ones of the same key and origin."""
    rows = [
        (each.key.kind.value, each.key.name, each.origin, each.reason, each.until, each.at, each.content, each.ended)
        for each in records
    ]
    write_many(connection, QUARANTINE, QUARANTINE_COLUMNS, rows, upsert=True)


def end(connection: sa.Connection, key: Key, origin: str) -> None:
    row = sa.and_(QUARANTINE.c.kind == key.kind.value, QUARANTINE.c.name == key.name, QUARANTINE.c.origin == origin)
    connection.execute(sa.delete(QUARANTINE).where(row))


def import_refusals(connection: sa.Connection, refusals: Iterable[Refusal]) -> None:
    """Write refusals imported from another state."""
    rows = [
        (
            *(each.key.kind.value, each.key.name, each.times, each.since, each.at, each.message[:LONGEST_WORDS]),
            *(each.content, None, None if each.is_last else "", None),
        )
        for each in refusals
    ]
    write_many(connection, REFUSALS, REFUSAL_COLUMNS, rows, upsert=True)


def forget(connection: sa.Connection, keys: Iterable[Key]) -> None:
    """Drop the refusals and quarantine records of resources whose rows are written by hand or dropped."""
    keys = list(keys)
    for table, drop in _DROPS.items():
        change_keyed(connection, drop, table, keys)
