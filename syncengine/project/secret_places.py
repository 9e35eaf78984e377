"""Find the environment variables and files that hold a project's secrets, in any of its environments. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from syncengine.document.nodes import Mapping, Node, Scalar, Sequence, at
from syncengine.document.urls import REFERENCE_KEYS, Reference
from syncengine.project.delivery_schema import FILES, SINKS
from syncengine.project.references import ALWAYS, SecretPlaces

SECTIONS = ("service", "state", "sources", "postedTime")
"""Sections that may contain references; a `{file: x}` elsewhere (metadata, variables) is plain data."""


def secret_places(parts: Iterable[Node]) -> SecretPlaces:
    """Return the places of secrets at the top level and in every environment."""
    parts = tuple(parts)
    names, files = set(ALWAYS), set[str]()
    for part in parts:
        for section in SECTIONS:
            for kind, text in _references(at(part, section)):
                (names if kind == "env" else files).add(text)
        files |= set(_written_by_sinks(part))
    return SecretPlaces(frozenset(names), frozenset(files), frozenset(_databases(parts)))


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


def _sinks(part: Node) -> list[Node]:
    found = at(part, "postedTime", "deliver")
    return found.items if isinstance(found, Sequence) else []


def _written_by_sinks(part: Node) -> Iterator[str]:
    """Yield the files that sinks write, given as `postedTime.deliver[].jsonl.path`."""
    for sink in _sinks(part):
        for kind, model in SINKS.items():
            for name in FILES.get(model, ()):
                path = at(sink, kind, name)
                if isinstance(path, Scalar):
                    yield path.text


def _databases(parts: Collection[Node]) -> Iterator[str | Reference]:
    """Yield the databases of the state and of sinks, which name theirs by URL or by source."""
    for part in parts:
        yield from _place(at(part, "state"))
        for sink in _sinks(part):
            yield from _place(at(sink, "sql", "url"))
            source = at(sink, "sql", "source")
            if isinstance(source, Scalar):
                for other in parts:  # the source may be defined in any of them
                    yield from _place(at(other, "sources", source.text, "sql"))


def _place(node: Node | None) -> Iterator[str | Reference]:
    if isinstance(node, Scalar):
        yield node.text
    for kind, text in _references(node):
        yield Reference(**{kind: text})
