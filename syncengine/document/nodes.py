"""The light node tree of a document: scalars as written, lists and mappings, each with its place. Pure.

Models validate plain values (`plain`), which are texts, lists and mappings that still know their node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Protocol

from msgspec import Struct

PLAIN_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
"""Texts that YAML 1.2's core schema reads as null without quotes."""


class Mark(Protocol):
    """A place in a file, with lines and columns counted from 0 as libyaml does."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


class Position(NamedTuple):
    """A place in text that libyaml has not read."""

    line: int = 0
    column: int = 0


# A large file has hundreds of thousands of nodes, and no cycles of them, so that counting references frees them.


class Scalar(Struct, gc=False):
    """A scalar as written. `style` is empty for a plain scalar, otherwise its quote or block indicator."""

    text: str
    mark: Mark
    style: str

    @property
    def is_null(self) -> bool:
        return not self.style and self.text in PLAIN_NULLS


class Sequence(Struct, gc=False):
    text: ClassVar[None] = None
    items: list[Node]
    mark: Mark


class Mapping(Struct, gc=False):
    """A mapping. `keys` and `values` run in parallel, in the order of the file, and keys are unique."""

    text: ClassVar[None] = None
    keys: list[Scalar]
    values: list[Node]
    mark: Mark

    def get(self, name: str) -> Node | None:
        """Return the value of the key `name`, or `None`. The search is linear, so use it for a few names only."""
        return next((value for key, value in zip(self.keys, self.values, strict=True) if key.text == name), None)


class RefusedNode(Struct, gc=False):
    """A node whose problem the reader has reported, so that it is not reported again."""

    text: ClassVar[None] = None
    mark: Mark


Node = Scalar | Sequence | Mapping | RefusedNode


def place(node: Node) -> tuple[int, int]:
    """Return a node's line and column, counted from 1. A mapping is at its first key (docs/manifests.md)."""
    mark = node.keys[0].mark if isinstance(node, Mapping) and node.keys else node.mark
    return mark.line + 1, mark.column + 1


def at(node: Node | None, *names: str) -> Node | None:
    """Return the node at the path `names` of nested mapping keys, or `None`."""
    for name in names:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def items(node: Node | None) -> list[Node]:
    """Return the items of a list, none for any other node."""
    return node.items if isinstance(node, Sequence) else []


def scalars(root: Node) -> Iterator[Scalar]:
    """Yield every scalar value in the tree, without keys."""
    return (node for node in _nodes(root) if isinstance(node, Scalar))


def is_whole(root: Node) -> bool:
    """Return whether the tree has no node that was refused."""
    return not any(isinstance(node, RefusedNode) for node in _nodes(root))


def _nodes(root: Node) -> Iterator[Node]:
    """Yield every node of the tree. Lists and mappings with aliases come once."""
    waiting, met = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar | RefusedNode):
            yield node
        elif id(node) not in met:
            met.add(id(node))
            yield node
            waiting.extend(node.values if isinstance(node, Mapping) else node.items)


class TextValue(str):
    """A scalar as a plain value. `style` is empty without quotes, where some fields are numbers or flags."""

    __slots__ = ("node",)
    node: Scalar

    @property
    def is_plain(self) -> bool:
        return not self.node.style


class Items(list[Any]):
    """A list as a plain value."""

    __slots__ = ("node",)
    node: Sequence


class Fields(dict[str, Any]):
    """A mapping as a plain value."""

    __slots__ = ("node",)
    node: Mapping


NULL, REFUSED = object(), object()
"""Values that no field takes: no value (Python's `None` is an absent field), and one that the reader has refused."""


def plain(node: Node) -> Any:
    """Return a node as a plain value: `TextValue`, `Items`, `Fields`, `NULL` or `REFUSED`."""
    value: Any
    match node:
        case Scalar():
            if node.is_null:
                return NULL
            value = TextValue(node.text)
        case Sequence():
            value = Items(map(plain, node.items))
        case Mapping():
            value = Fields(zip((key.text for key in node.keys), map(plain, node.values), strict=True))
        case _:
            return REFUSED
    value.node = node
    return value


_NUMBER_OR_FLAG = "+-0123456789tTfF"
"""The characters that a number or a flag begins with."""


def light(node: Mapping) -> dict[str, Any]:
    """Return a mapping as `plain` does, but of ordinary objects, of which a hundred thousand resources have millions.

    Only quoted text that could be a number or a flag without its quotes is `TextValue`.
    """
    found: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        # Most values are scalars without quotes, which a call each would make a fifth slower.
        if type(value) is Scalar and not value.style:
            found[key.text] = NULL if value.text in PLAIN_NULLS else value.text
        else:
            found[key.text] = _light(value)
    return found


def _light(node: Node) -> Any:
    if type(node) is Scalar:
        if not node.style:
            return NULL if node.text in PLAIN_NULLS else node.text
        return plain(node) if node.text[:1] in _NUMBER_OR_FLAG else node.text
    if type(node) is Sequence:
        return [_light(item) for item in node.items]
    return light(node) if type(node) is Mapping else REFUSED


def kind_of(value: object) -> str:
    """Return a description of a plain value for a sentence: `the text "x"`, `a list`, `a mapping`."""
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    return "nothing" if value is NULL else "a list" if isinstance(value, list) else "a mapping"


def described(node: Node) -> str:
    """Return a description of a node for a sentence: `the text "x"`, `a list`, `a mapping`."""
    return kind_of(plain(node))


def quoted(text: str, limit: int = 60) -> str:
    """Return text in quotes for a message: shortened, with quotes and all that could disturb a terminal escaped."""
    visible = text if len(text) <= limit else text[: limit - 1] + "…"
    escaped = visible.replace("\\", "\\\\").replace('"', '\\"') if '"' in visible else visible
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in f'"{escaped}"')
