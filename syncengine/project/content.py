"""A file that a command names → its bytes, or one sentence."""

from __future__ import annotations

from pathlib import Path

from syncengine.errors import SyncengineError


def content_of(path: Path, name: str | None = None) -> bytes:
    """Return all of a file; `name` is its name for people."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SyncengineError(f"{name or path}: cannot be read: {error.strerror}", code="unreadable-file") from None
