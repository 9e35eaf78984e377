"""Read and write the table of undone changes, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from syncengine.state.queries import change_keyed
from syncengine.state.tables import UNDONE, write_many
from syncengine.state.undone import ALL, COLUMNS, UndoneChange, rows_of, undone_of

_ALL = sa.text(ALL)
_DROP = sa.delete(UNDONE)


def changes(connection: sa.Connection) -> list[UndoneChange]:
    """Return all undone changes, ordered by kind and name."""
    return [change for values in connection.execute(_ALL) for change in undone_of(values)]


def write(connection: sa.Connection, lifted: Collection[UndoneChange], added: Collection[UndoneChange]) -> None:
    """Drop `lifted` changes and write `added` ones. An added change replaces that of the same run and address."""
    if not lifted and not added:
        return
    over, anew = {*lifted}, {(change.key, change.run) for change in added}
    touched = {change.key for change in (*lifted, *added)}
    others = [change for change in changes(connection) if change.key in touched and change not in over]
    change_keyed(connection, _DROP, UNDONE, touched)
    rows = rows_of((*(change for change in others if (change.key, change.run) not in anew), *added))
    write_many(connection, UNDONE, COLUMNS, rows)
