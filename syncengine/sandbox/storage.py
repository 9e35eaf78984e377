"""The storage of the sandbox's world: one SQLite file, or only memory. World ↔ rows of JSON.

Changes are stored before their answer is sent. A killed process loses none of them: SQLite has handed them to the
operating system, so no commit waits for the disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from syncengine.errors import LockHeld, SyncengineError
from syncengine.project import folder
from syncengine.sandbox.world import (
    ActivityType,
    Category,
    Changes,
    Connection,
    Json,
    PostedTime,
    Row,
    SandboxSettings,
    StatusUpdate,
    SyncSession,
    Tag,
    World,
)

VERSION = 3
"""Version 1 had no posted time and no connection, 2 the open sessions of activity types. Their rows are read unchanged.
"""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS held ("table" TEXT, key TEXT, row TEXT NOT NULL, PRIMARY KEY ("table", key)) WITHOUT ROWID
"""
_PUT = 'INSERT INTO held ("table", key, row) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET row = excluded.row'
_DROP = 'DELETE FROM held WHERE "table" = ? AND key = ?'
_ALL = 'SELECT "table", key, row FROM held'

_READERS: dict[str, Callable[[Json], Row]] = {
    "tags": lambda row: Tag(**{**row, "keywords": frozenset(row["keywords"])}),
    "categories": lambda row: Category(**row),
    "activity_types": lambda row: ActivityType(**{name: entry for name, entry in row.items() if name != "sessions"}),
    "sessions": lambda row: SyncSession(**row),
    "settings": lambda row: SandboxSettings(**row),
    "posted_time": lambda row: PostedTime(
        **{**row, "offers": tuple(row["offers"]), "told": tuple(StatusUpdate(**update) for update in row["told"])}
    ),
    "connection": lambda row: Connection(**row),
}


class Storage:
    """`path` None keeps everything in memory.

    The file is held exclusively: two sandboxes with a world each would overwrite one another.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._connection = _opened(path)

    def load(self) -> World:
        world, changes = World(), Changes()
        for table, key, row in self._connection.execute(_ALL):
            changes.setdefault(table, {})[key] = _READERS[table](orjson.loads(row))
        world.apply(changes)
        return world

    def write(self, changes: Changes) -> None:
        """Write all changed rows, or none."""
        rows = [(table, key, row) for table, rows in changes.items() for key, row in rows.items()]
        if not rows:
            return
        with self._connection as connection:
            connection.executemany(_PUT, ((table, key, _json(row)) for table, key, row in rows if row is not None))
            connection.executemany(_DROP, ((table, key) for table, key, row in rows if row is None))

    def clear(self) -> None:
        with self._connection as connection:
            connection.execute("DELETE FROM held")

    def close(self) -> None:
        self._connection.close()


def _json(row: Row) -> str:
    if isinstance(row, Connection):
        row = replace(row, caller_key=None)
    return orjson.dumps(row, default=_listed).decode()


def _listed(value: Any) -> list[Any]:
    """Sets, in an order that does not change from run to run."""
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no place in a row")


def _opened(path: Path | None) -> sqlite3.Connection:
    try:
        connection = _connected(path)
    except (OSError, sqlite3.Error) as error:
        raise _trouble(path, error) from error
    try:
        _prepare(connection)
    except (sqlite3.Error, SyncengineError) as error:
        connection.close()
        raise _trouble(path, error) from error
    return connection


def _connected(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        folder.make(path.parent)
        path.touch(mode=0o600)
    # Opened by the caller's thread, used by the server's: never by both at once.
    return sqlite3.connect(path or ":memory:", timeout=0.2, check_same_thread=False)


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise SyncengineError(f"its data has version {version}, this sandbox reads {VERSION}")
    connection.execute(_SCHEMA)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _trouble(path: Path | None, error: Exception) -> SyncengineError:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return LockHeld(
            f"{path} is in use by another sandbox: wait for it, or stop it",
            code="sandbox-in-use",
        )
    return SyncengineError(f"{path}: {error}", code="sandbox-data")
