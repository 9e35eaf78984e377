"""A resource's fields with templates, and the templates' results for a row → the resource's nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping as AnyMapping
from contextlib import suppress
from typing import Any, NamedTuple, cast

from jinja2 import Undefined

from syncengine.document.nodes import Mapping, Mark, Node, Scalar, Sequence, place, quoted
from syncengine.document.text import with_line_feeds
from syncengine.manifest.generate.scalars import Compiled, without_undefined
from syncengine.manifest.schema import NEVER_EMPTY
from syncengine.resource import Kind
from syncengine.templating.filters import plain_text
from syncengine.templating.values import is_template

Results = AnyMapping[int, Any]
"""The results of a block's templates for one row, by their number."""


class Twice(ValueError):
    """Raised for two keys of a mapping with the same result. `at` is the place of the later key."""

    def __init__(self, name: str, at: Mark) -> None:
        super().__init__(f"the mapping has the key {quoted(name)} twice")
        self.at = at


class Dynamic(NamedTuple):
    """A scalar that is a template. `place` is its index in a row's results."""

    node: Scalar
    place: int

    @property
    def mark(self) -> Mark:
        return self.node.mark


Part = Any
"""A node, a `Dynamic`, or a list or mapping of parts (`_List`, `_Map`)."""


class _List(NamedTuple):
    items: list[Part]
    mark: Mark


class _Map(NamedTuple):
    pairs: list[tuple[Part, Part]]
    mark: Mark


class ResourceTemplate(NamedTuple):
    """The template of one resource in a block. `at` is its line and column, `parts` are its fields."""

    kind: Kind
    node: Mapping
    at: tuple[int, int]
    parts: list[tuple[Scalar, Part]]

    def as_node(self, results: Results, *unless: type[BaseException]) -> Mapping:
        """Return the node of the resource, as if it had been written by hand and parsed.

        A field that raises one of `unless`, such as `KeyError` for lack of a result, is left out.
        """
        keys, values = [], []
        for key, part in self.parts:
            with suppress(*unless):
                value = _node(part, results, "" if key.text in NEVER_EMPTY else '"')
                if value is not None:
                    keys.append(key)
                    values.append(value)
        return Mapping(keys, values, self.node.mark)


def resource_template(kind: Kind, node: Mapping, compiled: Compiled) -> ResourceTemplate:
    """Return the template of one resource, and register the templates of its fields in `compiled`."""
    parts = [(key, _part(value, compiled)) for key, value in zip(node.keys, node.values, strict=True)]
    return ResourceTemplate(kind, node, place(node), parts)


def _part(node: Node, compiled: Compiled) -> Part:
    if isinstance(node, Scalar):
        return Dynamic(node, compiled.leaf(node)) if is_template(node.text) else node
    if isinstance(node, Sequence):
        return _List([_part(item, compiled) for item in node.items], node.mark)
    if isinstance(node, Mapping):
        pairs = zip(node.keys, node.values, strict=True)
        return _Map([(_part(key, compiled), _part(value, compiled)) for key, value in pairs], node.mark)
    return node


def _node(part: Part, results: Results, style: str) -> Node | None:
    """Return a part as a node, or `None` when it is empty."""
    match part:
        case Dynamic():
            return _node_of(without_undefined(results[part.place]), part.mark, style)
        case _List():
            return Sequence(_items(part, results), part.mark)
        case _Map():
            return _mapping(part, results)
        case _:
            return cast("Node", part)


def _items(part: _List, results: Results) -> list[Node]:
    """Return the items of a list, with inner lists flattened and empty items left out."""
    nodes: list[Node] = []
    for item in part.items:
        node = _node(item, results, '"')
        if isinstance(node, Sequence) and isinstance(item, Dynamic):
            nodes += node.items
        elif node is not None and not (isinstance(item, Dynamic) and not (node.text or "").strip()):
            nodes.append(node)
    return nodes


def _mapping(part: _Map, results: Results) -> Node:
    keys: dict[str, Scalar] = {}
    values: dict[str, Node] = {}
    for key, value in part.pairs:
        name = _node(key, results, '"')
        inner = _node(value, results, '"')
        if isinstance(name, Scalar) and inner is not None:
            if name.text in keys:
                raise Twice(name.text, key.mark)
            keys[name.text], values[name.text] = name, inner
    return Mapping(list(keys.values()), list(values.values()), part.mark)


def _node_of(value: Any, mark: Mark, style: str) -> Node | None:
    """Return the node of a value as if written by hand. Text is quoted to stay text, and its line ends become LF."""
    if value is None or (not style and value == ""):
        return None
    if isinstance(value, Undefined):
        str(value)  # raises for an undefined value
    if isinstance(value, list | tuple):
        items = [_node_of(item, mark, '"') for item in value]
        return Sequence([item for item in items if item is not None and (item.text is None or item.text.strip())], mark)
    if isinstance(value, dict):
        entries: dict[str, Node | None] = {}
        for key, inner in value.items():
            if (name := plain_text(key)) in entries:
                raise Twice(name, mark)
            entries[name] = _node_of(inner, mark, '"')
        pairs = [(Scalar(key, mark, '"'), inner) for key, inner in entries.items() if inner is not None]
        return Mapping([key for key, _ in pairs], [inner for _, inner in pairs], mark)
    return Scalar(with_line_feeds(plain_text(value)), mark, style)
