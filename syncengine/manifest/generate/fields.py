"""A resource's fields with templates, and the templates' results for a row → the resource's values or nodes. Pure."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as AnyMapping
from contextlib import suppress
from typing import Any, NamedTuple, cast

from jinja2 import Undefined

from syncengine.document.diagnostics import Collector
from syncengine.document.fast_reader import PlainShape
from syncengine.document.nodes import Mapping, Mark, Node, Scalar, Sequence, place, quoted
from syncengine.document.scalar_readers import is_text
from syncengine.document.text import with_line_feeds
from syncengine.manifest.generate.scalars import Compiled, without_undefined
from syncengine.manifest.schema import NEVER_EMPTY, PLAIN_SECTIONS, RESOURCE_TABLES, SECTIONS
from syncengine.resource import Kind
from syncengine.templating.filters import plain_text
from syncengine.templating.troubles import SURPRISES
from syncengine.templating.values import is_template

_PLAIN = {kind: PLAIN_SECTIONS[section] for section, kind in SECTIONS.items()}

Results = tuple[Any, ...]


class Uncertain(Exception):
    """Raised for a value that only the full reader can judge."""


class Twice(ValueError):
    """Raised for two keys of a mapping with the same result. `at` is the place of the later key."""

    def __init__(self, name: str, at: Mark) -> None:
        super().__init__(f"the mapping has the key {quoted(name)} twice")
        self.at = at


class Missing:
    """The marker for the value of a field that is left out."""


MISSING = Missing()
Take = Callable[[Results], Any]


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
    """The template of one resource in a block. `at` is its line and column.

    `constant` values are read once; `takes` compute the other values from a row's results. `parts` are all fields, from
    which nodes are built. `is_boring` is false when every row needs the full reader.
    """

    kind: Kind
    node: Mapping
    at: tuple[int, int]
    constant: dict[str, Any]
    takes: list[tuple[str, Take]]
    parts: list[tuple[Scalar, Part]]
    is_boring: bool

    def values(self, results: Results) -> dict[str, Any] | None:
        """Return the values for a row's results, or `None` when the full reader must read them."""
        if not self.is_boring:
            return None
        values = dict(self.constant)
        try:
            for name, take in self.takes:
                value = take(results)
                if value is not MISSING:
                    values[name] = value
        except Uncertain:
            return None
        return values

    def as_node(self, results: Results) -> Mapping:
        """Return the node of the resource, as if it had been written by hand and parsed."""
        keys, values = [], []
        for key, part in self.parts:
            value = _node(part, results, "" if key.text in NEVER_EMPTY else '"')
            if value is not None:
                keys.append(key)
                values.append(value)
        return Mapping(keys, values, self.node.mark)

    def sound_fields(self, results: AnyMapping[int, Any]) -> Mapping:
        """Return the node of the fields of which no template failed, so that `results` has all that they need."""
        keys, values = [], []
        for key, part in self.parts:
            with suppress(*SURPRISES):
                value = _node(part, results, "" if key.text in NEVER_EMPTY else '"')
                if value is not None:
                    keys.append(key)
                    values.append(value)
        return Mapping(keys, values, self.node.mark)


def is_dynamic(node: Node) -> bool:
    """Return whether a node contains a template anywhere."""
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, Scalar):
            if is_template(inner.text):
                return True
        elif isinstance(inner, Sequence):
            waiting += inner.items
        elif isinstance(inner, Mapping):
            waiting += [*inner.keys, *inner.values]
    return False


def resource_template(kind: Kind, node: Mapping, compiled: Compiled) -> ResourceTemplate:
    """Return the template of one resource, and register the templates of its fields in `compiled`."""
    unheard = Collector("")
    constant: dict[str, Any] = {}
    takes: list[tuple[str, Take]] = []
    parts: list[tuple[Scalar, Part]] = []
    boring = True
    for key, value in zip(node.keys, node.values, strict=True):
        reader, plain = RESOURCE_TABLES[kind].readers.get(key.text), _PLAIN[kind].get(key.text)
        if not is_dynamic(value):
            parts.append((key, value))
            boring = boring and plain is not None
            if reader is not None:
                constant[reader[0]] = reader[1](value, unheard)
            continue
        part = _part(value, compiled)
        parts.append((key, part))
        take = None if plain is None else _TAKES[plain.shape](part, plain.convert, key.text in NEVER_EMPTY)
        if take is None:
            boring = False
        else:
            takes.append((key.text, take))
    return ResourceTemplate(kind, node, place(node), constant, takes, parts, boring and not unheard.found)


def _part(node: Node, compiled: Compiled) -> Part:
    if isinstance(node, Scalar):
        return Dynamic(node, compiled.leaf(node)) if is_template(node.text) else node
    if isinstance(node, Sequence):
        return _List([_part(item, compiled) for item in node.items], node.mark)
    if isinstance(node, Mapping):
        pairs = zip(node.keys, node.values, strict=True)
        return _Map([(_part(key, compiled), _part(value, compiled)) for key, value in pairs], node.mark)
    return node


# --- boring values


def _visible(value: Any) -> str:
    """Return printable text, or a whole number as text. Raise `Uncertain` for any other value."""
    if type(value) is str and value.isprintable():
        return value
    if type(value) is int:
        return str(value)
    raise Uncertain


def _is_plain(part: Dynamic | Scalar) -> bool:
    """Return whether a part is a template, or text that every reader takes as it is written."""
    return isinstance(part, Dynamic) or (is_text(part) and part.text.isprintable())


def _take_text(part: Part, convert: Any, may_be_left_out: bool) -> Take | None:
    if not isinstance(part, Dynamic):
        return None
    index = part.place

    def take(results: Results) -> Any:
        value = results[index]
        if value is None or (may_be_left_out and value == ""):
            return MISSING
        text = _visible(value)
        if convert is None:
            return text
        if (converted := convert(text, False)) is None:
            raise Uncertain
        return converted

    return take


def _take_list(part: Part, convert: Any, may_be_left_out: bool) -> Take | None:
    parts = [part] if isinstance(part, Dynamic) else part.items if isinstance(part, _List) else None
    if parts is None or not all(isinstance(item, Dynamic | Scalar) for item in parts):
        return None
    if not all(_is_plain(item) and (isinstance(item, Dynamic) or item.text.strip()) for item in parts):
        return None
    plan = [item.place if isinstance(item, Dynamic) else item for item in parts]
    whole = isinstance(part, Dynamic)

    def take(results: Results) -> Any:
        strings: list[str] = []
        for item in plan:
            value = item.text if isinstance(item, Scalar) else results[item]
            if type(value) is list:
                strings += [_visible(inner) for inner in value if inner is not None and inner != ""]
            elif whole:
                raise Uncertain
            elif value is not None and value != "":
                strings.append(_visible(value))
        texts = [text for text in strings if text.strip()]
        if (converted := convert(texts)) is None:
            raise Uncertain
        return converted

    return take


def _take_map(part: Part, convert: Any, may_be_left_out: bool) -> Take | None:
    if not isinstance(part, _Map):
        return None
    if not all(isinstance(side, Dynamic | Scalar) for pair in part.pairs for side in pair):
        return None
    if not all(_is_plain(value) and (isinstance(key, Scalar) or _is_plain(key)) for key, value in part.pairs):
        return None
    plan = [tuple(s.place if isinstance(s, Dynamic) else s.text for s in pair) for pair in part.pairs]

    def take(results: Results) -> Any:
        strings: dict[str, str] = {}
        for key, value in plan:
            name = key if type(key) is str else _visible(results[key])
            text = value if type(value) is str else results[value]
            if text is not None:
                strings[name] = _visible(text)
        if len(strings) < len(plan) and any(type(key) is int for key, _ in plan):
            raise Uncertain
        if (converted := convert(strings)) is None:
            raise Uncertain
        return converted

    return take


_TAKES = {PlainShape.TEXT: _take_text, PlainShape.LIST: _take_list, PlainShape.MAP: _take_map}


# --- nodes


def _node(part: Part, results: Results | AnyMapping[int, Any], style: str) -> Node | None:
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


def _items(part: _List, results: Results | AnyMapping[int, Any]) -> list[Node]:
    """Return the items of a list, with inner lists flattened and empty items left out."""
    nodes: list[Node] = []
    for item in part.items:
        node = _node(item, results, '"')
        if isinstance(node, Sequence) and isinstance(item, Dynamic):
            nodes += node.items
        elif node is not None and not (isinstance(item, Dynamic) and not (node.text or "").strip()):
            nodes.append(node)
    return nodes


def _mapping(part: _Map, results: Results | AnyMapping[int, Any]) -> Node:
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
