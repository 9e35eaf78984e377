"""Read a SQLite state without SQLAlchemy, whose import takes longer than a plan of ten tags.

Only a missing state, or a state of this version at rest, is read here. Everything else (servers, damage, other
versions, a journal left by a crash) is left to `database`. The queries are equivalent to those of `queries`.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncengine.database.sqlite import connect
from syncengine.project.git_ref import is_git_ref
from syncengine.resource import Key, Kind, Recorded
from syncengine.state.codec import COLUMNS, from_values
from syncengine.state.folder_memory import MARKS, FolderMemory
from syncengine.state.info import (
    FACTS,
    LAST_LIMITS,
    SAYS_LIMITS,
    VERSION,
    Facts,
    StateReader,
    facts_of,
    limits_of,
)
from syncengine.state.location import refuse_no_state
from syncengine.state.losses import ALL_RECORDS, ApprovalRecord, record_of
from syncengine.state.refusals import (
    ALL_QUARANTINE,
    ALL_REFUSALS,
    QuarantineRecord,
    Refusal,
    quarantine_of,
    refusals_of,
)
from syncengine.state.removals import RemovalLine, removals_since
from syncengine.state.undone import ALL as ALL_UNDONE
from syncengine.state.undone import UndoneChange, undone_of

if TYPE_CHECKING:
    from syncengine.state.store import State

NO_FACTS = Facts("", None, None, False, None)
PIECE = 500
"""The number of names in one IN list."""

IN_FLIGHT = "(r.kind || '/' || r.name) IN (SELECT o.kind || '/' || n.value FROM state_open o, json_each(o.names) n)"
SEEN = ", ".join(f"(r.doubtful OR {IN_FLIGHT})" if column == "doubtful" else f"r.{column}" for column in COLUMNS)
SELECT = f"SELECT {SEEN} FROM state_rows r"  # noqa: S608 - names of columns


class SqliteReader:
    """A reader of a state at rest, in one transaction. Without a connection, it reads as a missing state: empty."""

    def __init__(self, connection: sqlite3.Connection | None, name: str = "") -> None:
        self._connection = connection
        self._name = name
        self.exists = connection is not None

    def facts(self) -> Facts:
        if self._connection is None:
            return NO_FACTS
        query = f"SELECT {', '.join(FACTS)} FROM state_facts"  # noqa: S608 - names of columns
        with as_state_errors(self._name):
            facts = facts_of(self._connection.execute(query).fetchone())
            last = self._connection.execute(LAST_LIMITS, SAYS_LIMITS).fetchone()
            return replace(facts, limits=limits_of(last and last[0]))

    def marks(self, number: int) -> list[tuple[Any, ...]]:
        """Return the marks that matter to a folder that saw the one with this number last."""
        if self._connection is None:
            return []
        with as_state_errors(self._name):
            return self._connection.execute(MARKS, {"number": number}).fetchall()

    def rows(self, kind: Kind | None = None) -> Iterator[Recorded]:
        only = "" if kind is None else " WHERE r.kind = ?"
        return self._found(f"{SELECT}{only} ORDER BY r.kind, r.name", [] if kind is None else [kind.value])

    def get(self, keys: Iterable[Key]) -> dict[Key, Recorded]:
        rows: dict[Key, Recorded] = {}
        requested = set(keys)
        for kind in Kind:
            names = sorted(key.name for key in requested if key.kind is kind)
            for start in range(0, len(names), PIECE):
                piece = names[start : start + PIECE]
                query = f"{SELECT} WHERE r.kind = ? AND r.name IN ({', '.join('?' * len(piece))})"
                rows |= {row.key: row for row in self._found(query, [kind.value, *piece])}
        return rows

    def removals(self, since: float) -> list[RemovalLine]:
        if self._connection is None:
            return []
        with as_state_errors(self._name):
            return list(removals_since(since, self._connection.execute))

    def approvals(self) -> list[ApprovalRecord]:
        if self._connection is None:
            return []
        with as_state_errors(self._name):
            return [record_of(row, json.loads) for row in self._connection.execute(ALL_RECORDS)]

    def refusals(self) -> dict[Key, Refusal]:
        with as_state_errors(self._name):
            return refusals_of(self._all(ALL_REFUSALS))

    def quarantine(self) -> list[QuarantineRecord]:
        with as_state_errors(self._name):
            return quarantine_of(self._all(ALL_QUARANTINE))

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        return [] if self._connection is None else self._connection.execute(query).fetchall()

    def undone(self) -> list[UndoneChange]:
        if self._connection is None:
            return []
        with as_state_errors(self._name):
            return [change for row in self._connection.execute(ALL_UNDONE) for change in undone_of(row)]

    def _found(self, query: str, values: Iterable[str]) -> Iterator[Recorded]:
        if self._connection is not None:
            with as_state_errors(self._name):
                yield from map(_recorded, self._connection.execute(query, list(values)))


def addresses_like(path: str, prefix: str, most: int) -> list[str]:
    """Return the first `most` addresses that begin with `prefix`. Raise `sqlite3.Error` if the file is not readable."""
    pattern = re.sub(r"([\\%_])", r"\\\1", prefix) + "%"
    query = "SELECT kind || '/' || name AS address FROM state_rows WHERE address LIKE ? ESCAPE '\\' ORDER BY 1 LIMIT ?"
    with closing(connect(Path(path), "ro", seconds=0.2)) as connection:
        return [address for (address,) in connection.execute(query, (pattern, most)) if address.startswith(prefix)]


def _recorded(row: tuple[object, ...]) -> Recorded:
    """Convert a database row to a recorded resource. SQLite has no booleans, so 0 and 1 become `False` and `True`."""
    kind, name, category, status, doubtful, confirmed, server_id, protect, *others = row
    return from_values(
        (kind, name, category, status, bool(doubtful), bool(confirmed), server_id, bool(protect), *others)
    )


@contextmanager
def as_state_errors(state: str) -> Iterator[None]:
    """Turn errors as `errors.as_state_errors` does, but import SQLAlchemy only when an error occurs."""
    try:
        yield
    except (sqlite3.Error, ValueError, RecursionError, LookupError, TypeError) as error:
        from syncengine.state.errors import diagnose

        raise diagnose(error).error(state) from error


@contextmanager
def recollection(
    url: str, now: Callable[[], float], *, create: bool = False, memory: FolderMemory | None = None
) -> Iterator[StateReader]:
    """Open the state at a path or URL for reading. Raise `SyncengineError` when it cannot be read.

    `create`: a state in Git, or one that `memory`, which must fit, knows, may be missing.
    """
    with _opened(url, now, create=create) as reader:
        if memory is not None:
            memory.recognize(reader, may_be_missing=create)
        yield reader


@contextmanager
def _opened(url: str, now: Callable[[], float], *, create: bool) -> Iterator[SqliteReader | State]:
    path = None if "://" in url else Path(url)
    is_shared = is_git_ref(url)  # others may drop its file, so that a missing file does not mean an empty state
    if is_shared:
        from syncengine.state.snapshots.open import reading_file
        from syncengine.state.snapshots.place import GitPlace

        if (path := reading_file(GitPlace(url, create=create))) is None:
            yield SqliteReader(None)
            return
    if path is not None and not is_shared:
        refuse_no_state(path)
    if path is not None and not is_shared and not path.exists():
        yield SqliteReader(None)
        return
    connection = _at_rest(path) if path is not None else None
    if connection is not None:
        try:
            yield SqliteReader(connection, url)
        finally:
            connection.close()
        return
    from syncengine.state.store import open_state

    with open_state(url, write=False, now=now, create=create) as state:
        yield state


def _at_rest(path: Path) -> sqlite3.Connection | None:
    """Return a connection in a reading transaction, or `None` if the state is not at rest or not of this version."""
    if any(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-journal")):
        return None
    connection = None
    with suppress(sqlite3.Error, UnicodeDecodeError):
        connection = connect(path, "ro", seconds=5)
        connection.execute("BEGIN")
        if connection.execute("SELECT version FROM state_facts").fetchone() == (VERSION,):
            return connection
    if connection is not None:
        connection.close()
    return None
