"""The light tree of one document: scalars as written, lists and mappings, each with its place. Values only; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

PLAIN_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
"""What YAML 1.2's core schema reads as null when it is not quoted."""


class Mark(Protocol):
    """A place as libyaml counts it, from 0."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


class Position(NamedTuple):
    """The mark of what libyaml has not read."""

    line: int = 0
    column: int = 0


@dataclass(slots=True)
class Scalar:
    """Text as written. `style` is empty for a plain scalar, else its quote or block indicator."""

    text: str
    mark: Mark
    style: str

    @property
    def is_null(self) -> bool:
        return not self.style and self.text in PLAIN_NULLS


@dataclass(slots=True)
class Sequence:
    text: ClassVar[None] = None
    items: list[Node]
    mark: Mark


@dataclass(slots=True)
class Mapping:
    """`keys` and `values` run in parallel, in the order of the file; no key is there twice."""

    text: ClassVar[None] = None
    keys: list[Scalar]
    values: list[Node]
    mark: Mark

    def get(self, name: str) -> Node | None:
        """The value under `name`, by a search from the top: for the few, not for every field."""
        return next((value for key, value in zip(self.keys, self.values, strict=True) if key.text == name), None)


@dataclass(slots=True)
class RefusedNode:
    """A node that the reader has already complained about, so that nobody does it again."""

    text: ClassVar[None] = None
    mark: Mark


Node = Scalar | Sequence | Mapping | RefusedNode


def place(node: Node) -> tuple[int, int]:
    """Line and column, from 1. A mapping stands where its first key stands (docs/manifests.md)."""
    mark = node.keys[0].mark if isinstance(node, Mapping) and node.keys else node.mark
    return mark.line + 1, mark.column + 1


def at(node: Node | None, *names: str) -> Node | None:
    """What stands under these names, one in the other."""
    for name in names:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def scalars(root: Node) -> Iterator[Scalar]:
    """Every scalar value below `root`, keys left out."""
    return (node for node in _nodes(root) if isinstance(node, Scalar))


def is_whole(root: Node) -> bool:
    """Whether nothing in it was refused."""
    return not any(isinstance(node, RefusedNode) for node in _nodes(root))


def _nodes(root: Node) -> Iterator[Node]:
    """Every value; one that has aliases is met once."""
    waiting, met = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar | RefusedNode):
            yield node
        elif id(node) not in met:
            met.add(id(node))
            yield node
            waiting.extend(node.values if isinstance(node, Mapping) else node.items)


def described(node: Node) -> str:
    """What was found, for a sentence: `the text "x"`, `a list`, `a mapping`."""
    match node:
        case Scalar():
            return "nothing" if node.is_null else f"the text {quoted(node.text)}"
        case Sequence():
            return "a list"
        case _:
            return "a mapping"


def quoted(text: str, limit: int = 60) -> str:
    """Text for a message: short, its own quotes escaped, and without anything that could disturb a terminal."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"') if '"' in shown else shown
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in f'"{escaped}"')
