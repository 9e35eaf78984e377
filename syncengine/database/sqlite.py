"""Open a SQLite file without SQLAlchemy. A file that does not exist is not created."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote


class SqliteConnection(sqlite3.Connection):
    """A connection that knows which file it has open. SQLite goes on writing to a file that was removed or replaced."""

    file: Path
    identity: tuple[int, int] | None

    def __del__(self) -> None:
        # A pool that was disposed of drops a connection that work which was given up brings back: from Python 3.13 on,
        # a warning if it is open. One that could not be opened cannot be closed, either.
        with suppress(sqlite3.Error):
            self.close()

    def is_replaced(self) -> bool:
        """Return whether there is no file any more where it was opened, or another one."""
        return self.identity is None or identity(self.file) != self.identity


def identity(file: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file, or `None` if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connect(file: Path, mode: str, seconds: float) -> SqliteConnection:
    """Open a connection that begins no transaction by itself and waits `seconds` for locks. `mode` is `ro` or `rw`."""
    uri = f"file:{quote(os.fsencode(file.absolute()))}?mode={mode}"
    before = identity(file)  # not after opening it: a file that is replaced in between is so opened once more
    connection = SqliteConnection(uri, uri=True, timeout=seconds, isolation_level=None, check_same_thread=False)
    connection.file, connection.identity = file, before
    return connection
