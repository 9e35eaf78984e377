"""Detect changes of the project file and of the files that it names, to know when to reload them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from syncengine.document.digest import sha256_of_parts
from syncengine.project.model import Project

LOOK_SECONDS = 2.0


def fingerprint(project: Project) -> str:
    """Return a digest of all files that a reload would read. A missing or unreadable file also counts."""
    return sha256_of_parts(str(path).encode() + b"\0" + _content(path) for path in _files(project))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        return f"errno {error.errno}".encode()


def _files(project: Project) -> Iterator[Path]:
    yield from map(Path, project.digests)
    narrative = project.posted_time.narrative if project.posted_time else None
    if narrative is not None and narrative.template is not None:
        yield project.root / narrative.template.text
    webhook = project.posted_time.webhook if project.posted_time else None
    if webhook is not None and webhook.caller_key is not None and webhook.caller_key.file is not None:
        yield project.root / webhook.caller_key.file
