"""Read and write until when receivers asked to be sent nothing (Retry-After): it outlasts the process that heard it.

A receiver is a digest of the name and the URL of an HTTP sink: one that was moved may be asked at once.
"""

from __future__ import annotations

import sqlalchemy as sa

from syncengine.state.columns import METADATA
from syncengine.state.database import StateDatabase
from syncengine.state.inbox_tables import RESTS


def rests_in(database: StateDatabase) -> dict[str, float]:
    """Return the end of each receiver's rest, in seconds since the epoch."""
    with database.transaction() as connection:
        if not sa.inspect(connection).has_table(RESTS.name):
            return {}
        return {row.receiver: row.until for row in connection.execute(sa.select(RESTS))}


def remember_rest(database: StateDatabase, receiver: str, until: float) -> None:
    """Record the end of a receiver's rest, in place of an earlier one."""
    with database.alone() as connection:
        METADATA.create_all(connection, tables=[RESTS])
        connection.execute(sa.delete(RESTS).where(RESTS.c.receiver == receiver))
        connection.execute(sa.insert(RESTS).values(receiver=receiver, until=until))
