"""The project file's tree → the names and files that its secrets stand in, in any of its environments; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from syncengine.document.findings import Findings
from syncengine.document.nodes import Mapping, Node, Scalar, Sequence
from syncengine.document.tables import shown
from syncengine.setting_shapes import REFERENCE_KEYS, URL

SECTIONS = ("service", "state", "sources", "postedTime")
"""Where references stand; a `{file: x}` elsewhere (metadata, variables) is no reference."""
ALWAYS = frozenset({"SYNCENGINE_API_KEY", "SYNCENGINE_STATE"})
"""Variables that hold secrets whatever the project file says."""


class SecretPlaces(NamedTuple):
    """Environment variables, and files as they are written; the state and what sinks write hold posted time."""

    names: frozenset[str] = ALWAYS
    files: frozenset[str] = frozenset()


def secret_places(parts: Iterable[Node]) -> SecretPlaces:
    """Of the top level and of every environment."""
    names, files = set(ALWAYS), set[str]()
    for part in parts:
        for section in SECTIONS:
            node = part.get(section) if isinstance(part, Mapping) else None
            if section == "state" and isinstance(node, Scalar):
                files |= state_files(node.text)
            for kind, text in _references(node):
                (names if kind == "env" else files).add(text)
        files |= set(_written_by_sinks(part))
    return SecretPlaces(frozenset(names), frozenset(files))


def _references(root: Node | None) -> Iterator[tuple[str, str]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Sequence):
            waiting += node.items
        elif isinstance(node, Mapping):
            waiting += node.values
            if len(node.keys) == 1 and node.keys[0].text in REFERENCE_KEYS and isinstance(node.values[0], Scalar):
                yield node.keys[0].text, node.values[0].text


def _written_by_sinks(part: Node) -> Iterator[str]:
    """`postedTime.deliver[].jsonl.path`."""
    posted = part.get("postedTime") if isinstance(part, Mapping) else None
    sinks = posted.get("deliver") if isinstance(posted, Mapping) else None
    for sink in sinks.items if isinstance(sinks, Sequence) else ():
        lines = sink.get("jsonl") if isinstance(sink, Mapping) else None
        path = lines.get("path") if isinstance(lines, Mapping) else None
        if isinstance(path, Scalar):
            yield path.text


def state_files(state: str) -> set[str]:
    """A SQLite database, and what stands beside it while it is open."""
    if state.startswith("sqlite"):
        state = state.partition(":///")[2].partition("?")[0]
    elif URL.match(state):
        return set()
    return {f"{state}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")} if state else set()


def check_allowed(parts: Iterable[Node], secrets: SecretPlaces, findings: Findings) -> None:
    """Templates are shown in plans, so what holds a secret cannot be allowed to them."""
    for part in parts:
        listed = part.get("allowEnv") if isinstance(part, Mapping) else None
        for item in listed.items if isinstance(listed, Sequence) else ():
            if isinstance(item, Scalar) and item.text in secrets.names:
                message = f"`allowEnv` names {shown(item.text)}, which holds a secret: no template may read it"
                findings.error("secret-allowed", item, message)
