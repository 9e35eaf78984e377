"""Store the sandbox's world as rows of JSON in one SQLite file, or only in memory.

Changes are stored before the answer is sent. A killed process loses no change, because SQLite has handed it to the
operating system; no commit waits for the disk.
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
"""The version of the file's content. Version 1 had no posted time and no connection, and version 2 kept sessions in
activity types; both can still be read."""

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
    """The sandbox's data in the SQLite file at `path`, or in memory when `path` is `None`.

    The file is locked exclusively, because two sandboxes would overwrite each other's data.
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
    """Return a set's items in sorted order, so that equal rows are written as equal text."""
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"a row cannot contain a value of type {type(value).__name__}")


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
        raise SyncengineError(f"the data has version {version}, above {VERSION}, the latest known; upgrade syncengine")
    connection.execute(_SCHEMA)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _trouble(path: Path | None, error: Exception) -> SyncengineError:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return LockHeld(
            f"{path} is in use by another sandbox; wait for it to end, or stop it",
            code="sandbox-in-use",
        )
    return SyncengineError(f"{path}: {error}", code="sandbox-data")
