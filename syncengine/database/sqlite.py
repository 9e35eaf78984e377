"""Open a SQLite file without SQLAlchemy. A file that does not exist is not created."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote


def connect(file: Path, mode: str, seconds: float) -> sqlite3.Connection:
    """Open a connection that begins no transaction by itself and waits `seconds` for locks. `mode` is `ro` or `rw`."""
    uri = f"file:{quote(str(file.absolute()))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=seconds, isolation_level=None, check_same_thread=False)
