"""The URLs of databases, without a driver: a plain path is a file of SQLite. Pure."""

from __future__ import annotations

from pathlib import Path


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database; None for another URL."""
    scheme, colon, rest = url.partition("://")
    if not colon:
        return Path(url)
    return Path(rest.removeprefix("/").partition("?")[0]) if scheme.startswith("sqlite") else None
