"""Versions of a state that is kept in Git → documents and text; pure."""

from __future__ import annotations

from collections.abc import Sequence

from syncengine.render.escape import visible
from syncengine.render.json import Document
from syncengine.render.words import count_of, when
from syncengine.state.snapshots.snapshot import Version

FORMAT = "syncengine.state-versions/v1"
LETTERS = 12
"""The number of characters of a version's id that are shown; they suffice to restore the version."""


def versions_document(versions: Sequence[Version]) -> Document:
    return {"format": FORMAT, "versions": [_document(version) for version in versions]}


def _document(version: Version) -> Document:
    info = version.info
    return {
        "id": version.id,
        "number": info.serial,
        "when": when(info.when),
        "who": info.who,
        "command": info.command,
        "run": info.run,
        "rows": info.rows,
    }


def versions_text(versions: Sequence[Version]) -> str:
    """Return one line for each version."""
    return "".join(_line(version) + "\n" for version in versions) or "There are no versions.\n"


def _line(version: Version) -> str:
    info = version.info
    run = f"  run {info.run}" if info.run else ""
    return visible(
        f"{version.id[:LETTERS]}  {when(info.when)}  {info.rows:>6} rows  {info.command}{run}  by {info.who}"
    )


def restored_text(version: Version) -> str:
    count = count_of(version.info.rows, "resource")
    return (
        f"Restored version {version.id[:LETTERS]} of {when(version.info.when)} with {count}; all rows are doubtful, and"
        " the next apply sends them again.\n"
    )
