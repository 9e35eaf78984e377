"""The tables of a state ↔ files of JSON lines, in shards whose borders move only near changed rows."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
import sqlalchemy as sa

from syncengine.state.tables import LOCK, METADATA, STATE_LOCK

MOST_ROWS, MOST_BYTES = 500, 64 * 1024
"""The maximum number of rows in a shard, and the number of bytes after which it ends."""
BORDER = 256
"""One in this many rows begins a shard at any position, so that adding or removing a row moves few borders."""
PIECE = 2000

TABLES: Mapping[str, sa.Table] = {table.name: table for table in METADATA.sorted_tables if table is not LOCK}

TRUTHS = (0, 1, None)
ALLOWED = (str, int, float, type(None))
"""The types of values in a line, apart from bytes, which are encoded as `{"b": BASE64}`."""


def columns_of(connection: sa.Connection) -> dict[str, tuple[str, ...]]:
    """Return the columns of each existing table."""
    inspector = sa.inspect(connection)
    existing = set(inspector.get_table_names())
    return {name: tuple(map(str, table.c.keys())) for name, table in TABLES.items() if name in existing}


def files_of(connection: sa.Connection, columns: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    """Return all rows as shards, by path: `TABLE/0000` and so on."""
    files: dict[str, bytes] = {}
    for name, names in columns.items():
        for number, shard in enumerate(_shards(_lines(connection, name, names))):
            files[f"{name}/{number:04d}"] = shard
    return files


def _lines(connection: sa.Connection, name: str, names: Sequence[str]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and the line of each row, ordered by key."""
    keys = [column.name for column in TABLES[name].primary_key]
    places = [names.index(key) for key in keys]
    query = f"SELECT {', '.join(names)} FROM {name} ORDER BY {', '.join(keys)}"  # noqa: S608 - names of columns
    for row in connection.exec_driver_sql(query):
        key = "\0".join(str(row[place]) for place in places).encode("utf-8", "surrogatepass")
        yield key, orjson.dumps(tuple(row), default=_written, option=orjson.OPT_APPEND_NEWLINE)


def _written(value: object) -> object:
    if isinstance(value, bytes):
        return {"b": base64.b64encode(value).decode()}
    raise TypeError


def _shards(lines: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    shard: list[bytes] = []
    size = 0
    for key, line in lines:
        is_border = zlib.crc32(key) % BORDER == 0
        if shard and (is_border or len(shard) >= MOST_ROWS or size >= MOST_BYTES):
            yield b"".join(shard)
            shard, size = [], 0
        shard.append(line)
        size += len(line)
    if shard:
        yield b"".join(shard)


def load(connection: sa.Connection, columns: Mapping[str, Sequence[str]], files: Mapping[str, bytes]) -> None:
    """Create tables with these columns and fill them. Raise `ValueError`, `LookupError` or `TypeError` for damage."""
    for name, names in columns.items():
        table = TABLES[name]
        if len(set(names)) != len(names) or not {*names} <= {*table.c.keys()}:
            raise LookupError(f"{name} has unknown or repeated columns")
        _create(connection, table, names)
        for path in sorted(path for path in files if path.startswith(f"{name}/")):
            _insert(connection, name, names, files[path])
    if unknown := {path.partition("/")[0] for path in files} - {*columns}:
        raise LookupError(f"there are rows of an unknown table: {min(unknown)}")


def _create(connection: sa.Connection, table: sa.Table, names: Sequence[str]) -> None:
    """Create a table with the columns that it had when written. An older table gets no index."""
    if len(names) == len(table.c):
        table.create(connection)
        return
    columns = (table.c[name] for name in names)
    copies = (sa.Column(c.name, c.type, primary_key=c.primary_key, nullable=c.nullable) for c in columns)
    sa.Table(table.name, sa.MetaData(), *copies).create(connection)


def _insert(connection: sa.Connection, name: str, names: Sequence[str], data: bytes) -> None:
    marks = ", ".join("?" * len(names))
    text = f"INSERT INTO {name} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of tables and columns
    rows = list(rows_of({name: data}))
    if any(len(row) != len(names) for row in rows):
        raise ValueError(f"a row of {name} has too many or too few values")
    truths = [place for place, each in enumerate(names) if isinstance(TABLES[name].c[each].type, sa.Boolean)]
    if any(row[place] not in TRUTHS for row in rows for place in truths):
        raise ValueError(f"a row of {name} has a flag that is neither true nor false")
    for start in range(0, len(rows), PIECE):
        connection.exec_driver_sql(text, rows[start : start + PIECE])


def rows_of(files: Mapping[str, bytes]) -> Iterator[tuple[object, ...]]:
    """Yield the values of each line. Raise `ValueError`, `LookupError` or `TypeError` for a damaged line."""
    for data in files.values():
        for line in data.splitlines():
            yield tuple(map(_read, orjson.loads(line)))


def _read(value: Any) -> object:
    if isinstance(value, dict):
        return base64.b64decode(value["b"], validate=True)
    if not isinstance(value, ALLOWED):
        raise TypeError("a value is neither text, nor a number, nor bytes")
    return value


# --- the lock, apart from the tables


def lock_of(connection: sa.Connection) -> bytes:
    rows = [tuple(row) for row in connection.execute(sa.select(LOCK).order_by(LOCK.c.id))]
    return orjson.dumps({"columns": list(map(str, LOCK.c.keys())), "rows": rows}, option=orjson.OPT_APPEND_NEWLINE)


def lock_rows(data: bytes) -> list[dict[str, Any]]:
    """Decode the rows of the lock's table. Raise `ValueError`, `LookupError` or `TypeError` for damaged rows."""
    content = orjson.loads(data)
    rows = [dict(zip(content["columns"], row, strict=True)) for row in content["rows"]]
    for row in rows:
        if not {*row} <= {*LOCK.c.keys()} or type(row["epoch"]) is not int or type(row["id"]) is not int:
            raise ValueError("the row of the lock is damaged")
    if not any(row["id"] == STATE_LOCK for row in rows):
        raise LookupError("the row of the lock is missing")
    return rows


def set_lock(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    connection.execute(sa.delete(LOCK))
    connection.execute(sa.insert(LOCK), [dict(row) for row in rows])
