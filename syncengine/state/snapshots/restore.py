"""Restore an earlier version of a state in Git: read its rows from the repository and write them to a private copy."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from syncengine.resource import Key
from syncengine.state.codec import KINDS
from syncengine.state.database import StateDatabase
from syncengine.state.errors import FAILURES
from syncengine.state.journal import FORGOTTEN, INTENDED, Stamp, note
from syncengine.state.snapshots.versions import Snapshot
from syncengine.state.snapshots.working_copy import WorkingCopy, fill
from syncengine.state.tables import CALLS, LOCK, METADATA, ROWS


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
    before = _keys(connection)
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
        note(connection, stamp, FORGOTTEN, sorted(before - _keys(connection)))
    copy.also = _lost_versions(copy)


def _take(connection: sa.Connection, other: sa.Connection, table: sa.Table) -> None:
    rows = [dict(row._mapping) for row in other.execute(sa.select(table))]
    landing = _landing(connection, rows) if table is CALLS else []
    connection.execute(sa.delete(table))
    if rows or landing:
        connection.execute(sa.insert(table), [*rows, *landing])


def _landing(connection: sa.Connection, restored: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls that may still be executed and are not among the restored ones, with ids after theirs."""
    present = {(row["run"], row["call"]) for row in restored}
    last = max((row["id"] for row in restored), default=0)
    query = sa.select(CALLS).where(CALLS.c.content.is_not(None)).order_by(CALLS.c.id)
    calls = [dict(row._mapping) for row in connection.execute(query) if (row.run, row.call) not in present]
    return [
        {**call, "id": last + number, "outcome": call["outcome"] or INTENDED} for number, call in enumerate(calls, 1)
    ]


def _keys(connection: sa.Connection) -> set[Key]:
    return {Key(KINDS[kind], name) for kind, name in connection.execute(sa.select(ROWS.c.kind, ROWS.c.name))}


def _lost_versions(copy: WorkingCopy) -> tuple[str, ...]:
    """Return the versions seen by this project that are not ancestors of the current one."""
    last, store = copy.place.last_seen(), copy.place.store
    if last is None or (copy.head is not None and store.is_descendant(copy.head, last.version)):
        return ()
    version = store.version(last.id)
    ancestors = set(store.ancestors(copy.head)) if copy.head else set()
    names = (*store.ancestors(version), *reversed(version.version_ids))
    return tuple(name for name in dict.fromkeys(names) if name[:16] not in ancestors)
