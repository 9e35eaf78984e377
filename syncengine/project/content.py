"""Read a file that the user named on the command line, or fail with a one-sentence message."""

from __future__ import annotations

from pathlib import Path

from syncengine.errors import SyncengineError


def content_of(path: Path, name: str | None = None) -> bytes:
    """Return the content of a file. Raise `SyncengineError` when it is unreadable; `name` is its name there."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SyncengineError(f"{name or path}: cannot be read: {error.strerror}", code="unreadable-file") from None
