"""Restore an earlier version of a state in Git: read its rows from the repository and write them to a private copy."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from syncengine.state import tables
from syncengine.state.database import StateDatabase
from syncengine.state.errors import FAILURES
from syncengine.state.journal import FORGOTTEN, LINE, Stamp
from syncengine.state.snapshots.versions import Snapshot
from syncengine.state.snapshots.working_copy import WorkingCopy, fill
from syncengine.state.tables import ATTEMPTS, JOURNAL, LOCK, METADATA, ROWS


def copy_of(database: StateDatabase) -> WorkingCopy:
    """Return the private copy of a state in Git."""
    assert database.snapshots is not None, "only a state in Git has versions"
    return database.snapshots


def restore(copy: WorkingCopy, connection: sa.Connection, stamp: Stamp, version: Snapshot) -> None:
    """Take over the rows of a version, and also its history if the current version does not descend from it.

    Calls that may still be executed stay recorded in either case.
    """
    files = copy.files(version)
    has_rows = copy.head is not None and not copy.is_damaged
    comes_from_it = has_rows and copy.head is not None and copy.place.store.is_descendant(copy.head, version.version)
    last = _last_lines(connection) if comes_from_it else {}
    source = sa.create_engine("sqlite://", poolclass=StaticPool)
    try:
        with source.begin() as other:
            fill(other, version, files)
            for table in METADATA.sorted_tables:
                if table is ROWS or not (comes_from_it or table is LOCK):
                    _take(connection, other, table)
    except FAILURES as error:
        raise copy.place.unread(error) from error
    if comes_from_it:
        _keep_history(connection, stamp, last)
    without_entry = sa.and_(ROWS.c.entry.is_not(None), ROWS.c.entry.not_in(sa.select(JOURNAL.c.id)))
    connection.execute(sa.update(ROWS).where(without_entry).values(entry=None))
    copy.also = _lost_versions(copy)


def _take(connection: sa.Connection, other: sa.Connection, table: sa.Table) -> None:
    rows = [dict(row._mapping) for row in other.execute(sa.select(table))]
    if table is ATTEMPTS:
        present = set(connection.execute(sa.select(table.c.run, table.c.call)).tuples())
        rows = [row for row in rows if (row["run"], row["call"]) not in present]
    else:
        connection.execute(sa.delete(table))
    if rows:
        connection.execute(sa.insert(table), rows)


def _last_lines(connection: sa.Connection) -> dict[tuple[str, str], int | None]:
    query = sa.select(ROWS.c.kind, ROWS.c.name, ROWS.c.entry)
    return {(kind, name): entry for kind, name, entry in connection.execute(query)}


def _keep_history(connection: sa.Connection, stamp: Stamp, last: dict[tuple[str, str], int | None]) -> None:
    """Make restored rows point to their latest journal entries, and record rows that are now missing as forgotten."""
    present = _last_lines(connection)
    later = [(entry, *key) for key, entry in last.items() if key in present and present[key] != entry]
    if later:
        connection.exec_driver_sql("UPDATE state_rows SET entry = ? WHERE kind = ? AND name = ?", later)
    forgotten = [stamp.line(FORGOTTEN, key, entry=entry) for key, entry in last.items() if key not in present]
    tables.write_many(connection, JOURNAL, LINE, forgotten)


def _lost_versions(copy: WorkingCopy) -> tuple[str, ...]:
    """Return the versions seen by this project that are not ancestors of the current one."""
    last, store = copy.place.last_seen(), copy.place.store
    if last is None or (copy.head is not None and store.is_descendant(copy.head, last.version)):
        return ()
    version = store.version(last.id)
    ancestors = set(store.ancestors(copy.head)) if copy.head else set()
    names = (*store.ancestors(version), *reversed(version.version_ids))
    return tuple(name for name in dict.fromkeys(names) if name[:16] not in ancestors)
