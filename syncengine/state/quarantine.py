"""Refusals of resources, and the quarantine, written in the caller's transaction."""

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
    """All resources that were refused and not applied since."""
    return refusals_of(connection.execute(_REFUSALS).all())


def quarantine(connection: sa.Connection) -> list[QuarantineRecord]:
    """All records of the quarantine, with those of entries of the project file that no longer count."""
    return quarantine_of(connection.execute(_QUARANTINE).all())


def refuse(
    connection: sa.Connection, run: str | None, refused: Mapping[Key, str], messages: Mapping[Key, str], now: float
) -> None:
    """Count refusals: `refused` are the keys with the content that was refused, once a run."""
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
    """Count calls that are about to be sent: until they end, the outcome for these resources is unknown."""
    if here := _refused_before(connection, run, keys):
        change_keyed(connection, _UPDATE_REFUSALS, REFUSALS, here, pending=run)


def settle(connection: sa.Connection, run: str | None, keys: Iterable[Key]) -> None:
    """Count calls that were acknowledged and carried all of a resource; a later refusal of this run counts on."""
    if here := _refused_before(connection, run, keys):
        change_keyed(connection, _UPDATE_REFUSALS, REFUSALS, here, settled=run)


def _refused_before(connection: sa.Connection, run: str | None, keys: Iterable[Key]) -> list[Key]:
    """Those of `keys` that an earlier run was refused: refusals of this one stay to its end."""
    earlier = {tuple(row) for row in connection.execute(_OF_OTHER_RUNS, {"of_run": run})}
    return [key for key in keys if (key.kind.value, key.name) in earlier] if earlier else []


def tidy(connection: sa.Connection) -> bool:
    """Drop the refusals of resources applied since; return whether there were any."""
    if connection.execute(_ANY_REFUSAL).first() is None:
        return False
    connection.execute(_DROP_SETTLED)
    return True


def put(connection: sa.Connection, records: Sequence[QuarantineRecord]) -> None:
    """Set resources aside, or say of entries that they are over."""
    rows = [
        (each.key.kind.value, each.key.name, each.origin, each.reason, each.until, each.at, each.content, each.ended)
        for each in records
    ]
    write_many(connection, QUARANTINE, QUARANTINE_COLUMNS, rows, upsert=True)


def end(connection: sa.Connection, key: Key, origin: str) -> None:
    row = sa.and_(QUARANTINE.c.kind == key.kind.value, QUARANTINE.c.name == key.name, QUARANTINE.c.origin == origin)
    connection.execute(sa.delete(QUARANTINE).where(row))


def import_refusals(connection: sa.Connection, refusals: Iterable[Refusal]) -> None:
    """Write the refusals of another state."""
    rows = [
        (
            *(each.key.kind.value, each.key.name, each.times, each.since, each.at, each.message[:LONGEST_WORDS]),
            *(each.content, None, None if each.is_last else "", None),
        )
        for each in refusals
    ]
    write_many(connection, REFUSALS, REFUSAL_COLUMNS, rows, upsert=True)


def forget(connection: sa.Connection, keys: Iterable[Key]) -> None:
    """Drop all that is known of the refusals of these resources, whose rows are written by hand or dropped."""
    keys = list(keys)
    for table, drop in _DROPS.items():
        change_keyed(connection, drop, table, keys)
