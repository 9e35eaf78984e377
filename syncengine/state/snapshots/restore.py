"""An earlier version as the rows of a state in Git: read from the repository, written over those of a private copy."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from syncengine.errors import SyncengineError
from syncengine.state import tables
from syncengine.state.database import StateDatabase
from syncengine.state.errors import FAILURES
from syncengine.state.info import VERSION
from syncengine.state.snapshots.protocol import Head, Version
from syncengine.state.snapshots.working_copy import WorkingCopy, fill
from syncengine.state.tables import ATTEMPTS, JOURNAL, LOCK, METADATA, ROWS

NO_VERSIONS = "no-versions"


def versions(copy: WorkingCopy) -> list[Version]:
    """The versions that are kept, the newest first."""
    return copy.place.store.versions(copy.head) if copy.head else []


def copy_of(database: StateDatabase) -> WorkingCopy:
    """SyncengineError for a state that is not in Git."""
    if database.snapshots is None:
        message = f"state {database.name} keeps no versions: only one in Git does (docs/git-state.md)"
        raise SyncengineError(message, code=NO_VERSIONS)
    return database.snapshots


def restore(copy: WorkingCopy, connection: sa.Connection, version: Head) -> None:
    """Take the rows of a version; of one that the present does not come from, the history as well.

    Calls that may still be executed stay on record whichever it is.
    """
    files = copy.files(version)
    comes_from_it = copy.head is not None and copy.place.store.is_descendant(copy.head, version.version)
    source = sa.create_engine("sqlite://", poolclass=StaticPool)
    try:
        with source.begin() as other:
            fill(other, version, files)
            if version.info.schema < VERSION:
                tables.upgrade(other, lambda: version.info.lineage)
            for table in METADATA.sorted_tables:
                if table is ROWS or not (comes_from_it or table is LOCK):
                    _take(connection, other, table)
    except FAILURES as error:
        raise copy.place.damaged(error) from error
    lost = sa.and_(ROWS.c.entry.is_not(None), ROWS.c.entry.not_in(sa.select(JOURNAL.c.id)))
    connection.execute(sa.update(ROWS).where(lost).values(entry=None))
    copy.also = _lost_versions(copy)


def _take(connection: sa.Connection, other: sa.Connection, table: sa.Table) -> None:
    rows = [dict(row._mapping) for row in other.execute(sa.select(table))]
    if table is ATTEMPTS:
        known = set(connection.execute(sa.select(table.c.run, table.c.call)).tuples())
        rows = [row for row in rows if (row["run"], row["call"]) not in known]
    else:
        connection.execute(sa.delete(table))
    if rows:
        connection.execute(sa.insert(table), rows)


def _lost_versions(copy: WorkingCopy) -> tuple[str, ...]:
    """Versions that this project saw and that the present does not come from: whoever saw them goes on with ours."""
    seen, store = copy.place.last_seen(), copy.place.store
    if seen is None or (copy.head is not None and store.is_descendant(copy.head, seen.version)):
        return ()
    lost = store.version(seen.id)
    known = set(store.ancestors(copy.head)) if copy.head else set()
    names = (*store.ancestors(lost), *reversed(lost.kept))
    return tuple(name for name in dict.fromkeys(names) if name[:16] not in known)
