"""Read and write the table of undone changes, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from syncengine.resource import Key
from syncengine.state.codec import KINDS
from syncengine.state.queries import change_keyed
from syncengine.state.tables import UNDONE, write_many
from syncengine.state.undone import UndoneChange


def changes(connection: sa.Connection) -> list[UndoneChange]:
    """Return the undone changes, ordered by kind and name. Raise `LookupError` for a damaged one."""
    rows = connection.execute(sa.select(UNDONE).order_by(UNDONE.c.kind, UNDONE.c.name, UNDONE.c.run))
    return [UndoneChange(Key(KINDS[row.kind], row.name), row.made, row.run, row.undone_by) for row in rows]


def write(connection: sa.Connection, lifted: Collection[UndoneChange], added: Collection[UndoneChange]) -> None:
    """Drop `lifted` changes and write `added` ones. An added change replaces that of the same run and address."""
    for run in {change.run for change in lifted}:
        keys = [change.key for change in lifted if change.run == run]
        change_keyed(connection, sa.delete(UNDONE).where(UNDONE.c.run == run), UNDONE, keys)
    rows = [(change.key.kind.value, change.key.name, *change[1:]) for change in added]
    write_many(connection, UNDONE, ("kind", "name", "made", "run", "undone_by"), rows, upsert=True)
