"""Read and write whether this connector has a health failure at the service, which only then it may rescind.

The service has one failure for a team and no query for it: rescinding one that a person, or another connector, reported
would tell users that all is well.
"""

from __future__ import annotations

from contextlib import closing

import sqlalchemy as sa

from syncengine.project.git_ref import is_git_ref
from syncengine.state.columns import METADATA
from syncengine.state.database import StateDatabase, open_database
from syncengine.state.inbox_tables import HEALTH
from syncengine.state.store import new_lineage


def is_reported(database: StateDatabase) -> bool:
    """Return whether a failure was reported from here and not rescinded since."""
    with database.transaction() as connection:
        if not sa.inspect(connection).has_table(HEALTH.name):
            return False
        return connection.execute(sa.select(HEALTH.c.id)).first() is not None


def remember_report(database: StateDatabase, at: float) -> None:
    """Record a report, in seconds since the epoch. To be called before it is sent: its answer may be lost."""
    with database.alone() as connection:
        METADATA.create_all(connection, tables=[HEALTH])
        connection.execute(sa.delete(HEALTH))
        connection.execute(sa.insert(HEALTH).values(id=1, reported=at))


def forget_report(database: StateDatabase) -> None:
    """Record that the service accepted that there is no failure any more."""
    with database.alone() as connection:
        connection.execute(sa.delete(HEALTH))


def disown(url: str) -> None:
    """Have the state at a path or URL forget its report, since a person has replaced or cleared it at the service."""
    if is_git_ref(url):
        return
    with closing(open_database(url, write=False, new_lineage=new_lineage)) as database:
        if not is_reported(database):
            return
    with closing(open_database(url, write=True, new_lineage=new_lineage)) as database:
        forget_report(database)
