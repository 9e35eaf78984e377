"""The team's data: rows of JSON in one SQLite file, or in memory only. A transaction is the draft of a request.

A change is stored before its answer is sent. A killed process loses none, since SQLite has handed it to the operating
system; no commit waits for the disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syncengine.document.json_text import decode_json, encode_json
from syncengine.errors import LockHeld, SyncengineError
from syncengine.project.files import make_folder
from syncengine.service.operations import BATCH_LIMIT

Json = dict[str, Any]
"""A JSON object of a request, an answer or a row."""

VERSION = 4
"""The version of the file's layout."""

TAGS, CATEGORIES, TYPES, SESSIONS = "tags", "categories", "activity types", "sessions"
POSTED_TIME, TEAM = "posted time", "team"

# A row is found by its key, and by the two values of it that rules ask for: its link and its time `at`.
# The rowid is the order of first insertion.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS held ("table" TEXT, key TEXT, link, at INTEGER, row TEXT, PRIMARY KEY ("table", key));
CREATE INDEX IF NOT EXISTS by_link ON held ("table", link) WHERE link IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_time ON held ("table", at) WHERE at IS NOT NULL;
"""
_LINKS = {TAGS: "tagCategoryId", CATEGORIES: "externalId", POSTED_TIME: "due"}
_TIMES = {POSTED_TIME: "submitted", TYPES: "touched", SESSIONS: "started"}

_PUT = """
INSERT INTO held ("table", key, link, at, row) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET link = excluded.link, at = excluded.at, row = excluded.row
"""

SETTINGS: Mapping[str, Any] = {
    "teamName": "Sandbox",
    "tagLimit": None,
    "batchLimit": BATCH_LIMIT,
    "statusForItemErrors": 200,
    "holdSeconds": 60,
    "reofferSeconds": 480,
    "retrySeconds": 60,
    "webhookTimeoutSeconds": 30,
    "webhookCalls": 10,
    "connectorConfiguration": {},
}
"""The sandbox's settings: its behaviour where the interface leaves the service a choice.

`tagLimit` is null when the team's plan has no limit. A fetch is held for `holdSeconds`. A group is offered again
`reofferSeconds` after a fetch without acknowledgement, and `retrySeconds` after a retriable failure. A webhook is
called up to `webhookCalls` times for a group, and may take `webhookTimeoutSeconds` each time.
"""

CONNECTION: Mapping[str, Any] = {
    "mechanism": None,
    "callbackUrl": None,
    "callerKey": False,
    "health": None,
    "connector": None,
}
"""The team's connector. `mechanism` is fetch, webhook or null, and `callerKey` whether the webhook has a key.

`health` is the reported failure and `connector` the registration, both as sent.
"""


class Store:
    """The data in the SQLite file at `path`, or in memory when `path` is `None`.

    The file is locked exclusively, because another sandbox would see data that are not those of its own requests.
    `caller_key` is the webhook's key. It is the connector's secret, and is kept in memory only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.caller_key: str | None = None
        self._database = _opened(path)

    @contextmanager
    def draft(self) -> Iterator[None]:
        """Keep all changes that the block makes, or none of them when it raises."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @property
    def changes(self) -> int:
        """The number of rows changed until now, with those of drafts that were not kept."""
        return self._database.total_changes

    def get(self, table: str, key: str) -> Json | None:
        return next(self.rows(table, "AND key = ?", key), None)

    def rows(self, table: str, condition: str = "ORDER BY key", *values: Any) -> Iterator[Json]:
        """Yield the rows of a table.

        `condition` is constant SQL behind `WHERE "table" = ?` with the columns of the schema; `values` are bound. A
        caller that changes the table before it has read all of them makes a list first.
        """
        found = self._database.execute(f'SELECT row FROM held WHERE "table" = ? {condition}', (table, *values))  # noqa: S608 - constant SQL
        return (decode_json(row) for (row,) in found)

    def keys(self, table: str) -> list[str]:
        """Return the sorted keys of a table."""
        return [
            key for (key,) in self._database.execute('SELECT key FROM held WHERE "table" = ? ORDER BY key', (table,))
        ]

    def count(self, table: str, condition: str = "", *values: Any) -> int:
        statement = f'SELECT count(*) FROM held WHERE "table" = ? {condition}'  # noqa: S608 - constant SQL
        count: int = self._database.execute(statement, (table, *values)).fetchone()[0]
        return count

    def first_link(self, table: str) -> Any:
        """Return the smallest link of a table, or `None` when no row has one."""
        return self._database.execute('SELECT min(link) FROM held WHERE "table" = ?', (table,)).fetchone()[0]

    def put(self, table: str, key: str, row: Mapping[str, Any]) -> None:
        link, at = row.get(_LINKS.get(table, "")), row.get(_TIMES.get(table, ""))
        self._database.execute(_PUT, (table, key, link, at, encode_json(row).decode()))

    def drop(self, table: str, condition: str, *values: Any) -> None:
        """Delete rows of a table, by a condition as that of `rows`."""
        self._database.execute(f'DELETE FROM held WHERE "table" = ? {condition}', (table, *values))  # noqa: S608 - constant SQL

    @property
    def settings(self) -> Json:
        """The settings in force."""
        return {**SETTINGS, **(self.get(TEAM, "settings") or {})}

    @property
    def connection(self) -> Json:
        return {**CONNECTION, **(self.get(TEAM, "connection") or {})}

    def connect(self, **changes: Any) -> None:
        self.put(TEAM, "connection", {**self.connection, **changes})

    @property
    def key_is_lost(self) -> bool:
        """Whether the webhook's key was lost in a restart of the sandbox. The webhook would refuse calls without it."""
        return self.connection["callerKey"] and self.caller_key is None

    def clear(self) -> None:
        self.caller_key = None
        self._database.execute("DELETE FROM held")

    def close(self) -> None:
        self._database.close()


def _opened(path: Path | None) -> sqlite3.Connection:
    try:
        if path is not None:
            make_folder(path.parent)
    except OSError as error:
        raise SyncengineError(f"{error.filename}: {error.strerror}", code="file") from error
    try:
        if path is not None:
            path.touch(mode=0o600)
        # Opened by the caller's thread, used by the server's, never by both at once. Transactions are begun by hand.
        database = sqlite3.connect(path or ":memory:", timeout=0.2, check_same_thread=False, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SyncengineError(f"{path}: {why}", code="sandbox-data") from error
    try:
        database.executescript(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"
        )
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version in (0, VERSION):
            database.executescript(f"{_SCHEMA} PRAGMA user_version = {VERSION}")
            return database
    except sqlite3.Error as error:
        database.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            message = f"{path} is in use by another sandbox; wait for it to end, or stop it"
            raise LockHeld(message, code="sandbox-in-use") from error
        raise SyncengineError(f"{path}: {error}", code="sandbox-data") from error
    database.close()
    message = (
        f"{path}: the sandbox's data are of version {version}, and only version {VERSION} can be read; delete the"
        " file to begin with an empty sandbox"
    )
    raise SyncengineError(message, code="sandbox-data")
