"""Read a file that the user named on the command line, or fail with a one-sentence message."""

from __future__ import annotations

import os
from pathlib import Path

from syncengine.errors import SyncengineError, Usage


def refuse_missing(path: Path, name: str | None = None, cure: str = "") -> None:
    """Raise `Usage` if nothing is at a path that the user named; `name` is the path there, `cure` the message's end."""
    if not os.path.lexists(path):
        raise Usage(f"{name or path}: no such file or folder{cure}")


def content_of(path: Path, name: str | None = None) -> bytes:
    """Return the content of a file. Raise `SyncengineError` when it is unreadable; `name` is its name there."""
    refuse_missing(path, name)
    try:
        return path.read_bytes()
    except OSError as error:
        raise SyncengineError(f"{name or path}: cannot be read: {error.strerror}", code="unreadable-file") from None
