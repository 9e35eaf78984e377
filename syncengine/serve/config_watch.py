"""Detect changes of the project file and of the files that it names, and tell which settings a reload changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from syncengine.document.comparison import compare
from syncengine.document.diagnostics import Collector
from syncengine.document.digest import sha256_of, sha256_of_parts
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Scalar
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import read
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


# --- settings by name, never their values, which may be secret

SHOWN_CHANGES = 10
"""The most changed settings that a line of the log names."""


def settings_in(config: Path | None) -> Mapping[str, str]:
    """Return a digest of each setting of a project file by its name, such as `serve.every`. Empty without a file."""
    try:
        roots = read(config.read_bytes(), Collector(config.name)).roots if config is not None else ()
    except OSError:
        return {}
    return {name: digest for root in roots for name, digest in _leaves(root, "")}


def _leaves(node: Node, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, MappingNode):
        for key, value in zip(node.keys, node.values, strict=True):
            yield from _leaves(value, f"{name}.{key.text}" if name else key.text)
    elif isinstance(node, SequenceNode):
        for number, item in enumerate(node.items):
            yield from _leaves(item, f"{name}[{number}]")
    elif isinstance(node, Scalar):
        yield name, sha256_of(node.text)


def changes_between(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the settings that a reload changed, as a clause for the log."""
    compared = compare(before, after)
    names = (
        *(f"{name} was added" for name in compared.new),
        *(f"{name} was removed" for name in compared.gone),
        *(f"{name} was changed" for name in compared.different),
    )
    more = f", and {len(names) - SHOWN_CHANGES} more" if len(names) > SHOWN_CHANGES else ""
    return f"{', '.join(names[:SHOWN_CHANGES])}{more}" if names else "no setting was changed"
