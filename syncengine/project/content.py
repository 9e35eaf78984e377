"""Read a file that the user named on the command line, or fail with a one-sentence message."""

from __future__ import annotations

import os
from pathlib import Path

from syncengine.document.diagnostics import suggestion
from syncengine.errors import SyncengineError, Usage


def refuse_missing(path: Path, name: str | None = None, cure: str = "") -> None:
    """Raise `Usage` if nothing is at a path that the user named; `name` is the path there, `cure` the message's end."""
    if not os.path.lexists(path):
        raise Usage(f"{name or path}: no such file or folder{cure or _nearest(path)}")


def _nearest(path: Path) -> str:
    try:
        return suggestion(path.name, sorted(each.name for each in path.parent.iterdir()))
    except OSError:
        return ""


def content_of(path: Path, name: str | None = None) -> bytes:
    """Return the content of a file. Raise `SyncengineError` when it is unreadable; `name` is its name there."""
    refuse_missing(path, name)
    if path.is_dir():
        raise Usage(f"{name or path}: is a folder, but a file is expected")
    try:
        return path.read_bytes()
    except OSError as error:
        raise SyncengineError(f"{name or path}: cannot be read: {error.strerror}", code="unreadable-file") from None
