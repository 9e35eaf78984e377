"""A snapshot of a state as values, and its rows as files of JSON lines; SQLAlchemy reads and writes them.

state.json       facts of the version                  lock.json    the rows of the lock
TABLE.0000       rows of a table, by primary key       ancestors    ids of earlier versions, a line each
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import Struct

from syncengine.state.info import VERSION
from syncengine.state.tables import INDEXES, LOCK, METADATA, STATE_LOCK

FORMAT = "syncengine.git-state/v2"
FAMILY = "syncengine.git-state/"
INFO_FILE, LOCK_FILE, ANCESTORS_FILE = "state.json", "lock.json", "ancestors"

KEPT = 100
"""The number of versions that can be restored."""

# A file that changes is pushed and stored whole, until the server packs it. So tables are cut where the key of a row
# says so, about every 200 rows: a change elsewhere leaves a file, and thus its blob, as it was.
BORDER, MOST_BYTES = 256, 64 * 1024

TABLES: Mapping[str, sa.Table] = {table.name: table for table in METADATA.sorted_tables if table is not LOCK}

_ROW = msgspec.json.Decoder(list[str | int | float | bool | None])
_LOCK_ROWS = msgspec.json.Decoder(list[dict[str, str | int | float | None]])


class VersionInfo(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The facts of a version. `schema` is the version of the tables."""

    lineage: str
    serial: int
    when: float
    who: str
    command: str
    rows: int
    run: str | None = None
    format: str = ""
    schema: int = 0


class Version(Struct, frozen=True):
    """A kept version, by its id."""

    id: str
    info: VersionInfo


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of the state. `id` changes with every write, `version` with every write of rows.

    `version_ids` are the versions that can be restored, newest first. `lock` is the content of the lock's file. `blobs`
    are the ids of all files by name, for the store alone.
    """

    id: str
    version_ids: tuple[str, ...]
    info: VersionInfo
    lock: bytes
    blobs: Mapping[str, str] = field(repr=False)

    @property
    def version(self) -> str:
        return self.version_ids[0]


@dataclass(frozen=True, slots=True)
class Content:
    """The content of the next version. `also` are further versions that it descends from; `keeps` versions are kept."""

    info: VersionInfo
    files: Mapping[str, bytes] = field(repr=False)
    also: tuple[str, ...] = ()
    keeps: int = KEPT


class Superseded(Exception):
    """The error when the snapshot is no longer the one that was read, or another write seems to be under way."""


def files_of(connection: sa.Connection) -> dict[str, bytes]:
    """Return the rows of all tables, by file."""
    files: dict[str, bytes] = {}
    for name, table in TABLES.items():
        lines: list[bytes] = []
        size = number = 0
        keys = [column.name for column in table.primary_key]
        for row in connection.execute(sa.select(table).order_by(*table.primary_key)):
            key = "\0".join(str(row._mapping[each]) for each in keys)
            if lines and (size >= MOST_BYTES or zlib.crc32(key.encode()) % BORDER == 0):
                files[f"{name}.{number:04d}"] = b"".join(lines)
                lines, size, number = [], 0, number + 1
            lines.append(msgspec.json.encode(tuple(row)) + b"\n")  # bytes become base64
            size += len(lines[-1])
        if lines:
            files[f"{name}.{number:04d}"] = b"".join(lines)
    return files


def rows_of(table: sa.Table, files: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table. Raise `ValueError` for a damaged line."""
    binary = [column.name for column in table.c if isinstance(column.type, sa.LargeBinary)]
    for name in sorted(files):
        for line in files[name].splitlines() if name.startswith(f"{table.name}.") else ():
            row: dict[str, Any] = dict(zip(table.c.keys(), _ROW.decode(line), strict=True))
            for column in binary:
                if row[column] is not None:
                    row[column] = base64.b64decode(str(row[column]), validate=True)
            yield row


def fill(connection: sa.Connection, head: Snapshot, files: Mapping[str, bytes]) -> None:
    """Create the tables of a snapshot and fill them. Raise a member of `FAILURES` if damaged."""
    if unknown := {name.partition(".")[0] for name in files} - {*TABLES}:
        raise LookupError(f"there are rows of an unknown table: {min(unknown)}")
    METADATA.create_all(connection)
    for index in INDEXES:
        connection.exec_driver_sql(index)
    for table in TABLES.values():
        if rows := list(rows_of(table, files)):
            connection.execute(sa.insert(table), rows)
    set_lock(connection, lock_rows(head.lock))


def lock_of(connection: sa.Connection) -> bytes:
    rows = connection.execute(sa.select(LOCK).order_by(LOCK.c.id)).mappings()
    return msgspec.json.encode([dict(row) for row in rows]) + b"\n"


def lock_rows(data: bytes) -> list[dict[str, Any]]:
    """Decode the rows of the lock's table. Raise `ValueError` or `LookupError` for damaged rows."""
    rows = _LOCK_ROWS.decode(data)
    for row in rows:
        if not {*row} <= {*LOCK.c.keys()} or type(row["epoch"]) is not int or type(row["id"]) is not int:
            raise ValueError("the row of the lock is damaged")
    if not any(row["id"] == STATE_LOCK for row in rows):
        raise LookupError("the row of the lock is missing")
    return rows


def set_lock(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    connection.execute(sa.delete(LOCK))
    connection.execute(sa.insert(LOCK), [dict(row) for row in rows])


def state_lock(head: Snapshot) -> Mapping[str, Any]:
    """Return the row of the state's lock."""
    return next(row for row in lock_rows(head.lock) if row["id"] == STATE_LOCK)


def info_of(data: bytes) -> VersionInfo | None:
    """Decode `state.json`; `None` for another version of the program. Raise `ValueError` for other content."""
    info = msgspec.json.decode(data, type=VersionInfo)
    if not info.format.startswith(FAMILY):
        raise ValueError("unknown format")
    return info if (info.format, info.schema) == (FORMAT, VERSION) else None
