"""The table of undone changes, written in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from syncengine.resource import Key
from syncengine.state.queries import keyed
from syncengine.state.tables import UNDONE, write_many
from syncengine.state.undone import ALL, COLUMNS, UndoneChange, undone_of


def changes(connection: sa.Connection) -> list[UndoneChange]:
    """All that is undone, by kind and name."""
    return [undone_of(values) for values in connection.execute(sa.text(ALL))]


def write(connection: sa.Connection, lifted: Iterable[Key], changes: Iterable[UndoneChange]) -> None:
    """Drop changes that are no longer undone, and add those that are from now on."""
    for part in keyed(connection, UNDONE, lifted):
        connection.execute(sa.delete(UNDONE).where(part))
    rows = [(each.key.kind.value, each.key.name, *each[1:]) for each in changes]
    write_many(connection, UNDONE, COLUMNS, rows, upsert=True)
