"""Read a plain manifest fast: text → items with values and places, or `None` if the file is not plain. Pure.

A plain file uses a subset of YAML that needs no judgement: sections at the left margin, their items as block mappings
with constant indentation, and values of one kind each. One regular expression, compiled for an order of keys, matches
an item; nearly all items of a file share one expression.

Any text that does not match makes the result `None` for the whole file. `reader`, which alone decides the meaning of
YAML and reports errors, then reads it. So this module may give up on any file, but must never read one differently.

Repetitions are possessive and alternatives differ in their first characters, so that time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from syncengine.document.fast_values import (
    BETWEEN,
    DOUBLE,
    DOUBLE_UNESCAPED,
    KEY,
    QUOTES,
    SKIPPED,
    NotPlain,
    list_of,
    map_of,
    scalar,
    text_of,
)

MAX_INDENT = 16
MAX_LAYOUTS = 48
"""The most different orders of keys in a file. Each takes milliseconds to compile, so with more, libyaml is faster."""


class PlainShape(Enum):
    """The form in which a field's value is written."""

    TEXT = "text"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Field:
    """A field that can be read without nodes. Without `convert`, its value is the text, list or dict as written.

    `convert` takes a text and whether it is quoted, a list of texts, or a dict, and returns the field's value, or
    `None` when the value is uncertain. The texts contain no control characters, and the keys of a dict are interned.
    """

    shape: PlainShape
    convert: Callable[..., Any] | None = None


Sections = Mapping[str, Mapping[str, Field]]


class PlainItem(NamedTuple):
    """A resource as written. `line` and `column` are the place of its first key, counted from 1."""

    section: str
    line: int
    column: int
    values: dict[str, Any]


class Plain(NamedTuple):
    """The items of a file, and its `defaults` section as text for the full reader, moved to the section's line."""

    items: list[PlainItem]
    defaults: str | None


def read(text: str, sections: Sections) -> Plain | None:
    """Return all items of a file, or `None` when anything in it is uncertain.

    `text` comes from `text.decoded`, so tabs and line ends are its only control characters.
    """
    if "\t" in text or "\r" in text or ("\\" in text and _SURROGATE.search(text)):
        return None
    whole = f"\n{text}" if text.endswith("\n") else f"\n{text}\n"
    content = _read(whole, sections)
    if content is None and " \n" in whole and "\ndefaults:" not in whole:
        return _read(_BLANKS.sub("\n", whole), sections)
    return content


def _read(text: str, sections: Sections) -> Plain | None:
    """Return the items of text in which every line is between two line feeds, or `None` when any is uncertain."""
    reading = _Reading(text, sections)
    try:
        reading.run()
    except NotPlain:
        return None
    return Plain(reading.items, reading.defaults)


_SURROGATE = re.compile(r"\\u[dD][89abAB]")
_EMPTY_LINE = re.compile(r"\n\n")
"""An expression, because it is found in half the time that `in` takes for more than one letter."""
_BLANKS = re.compile(r"(?<! ) ++\n")
_SECTION = re.compile(r"\n([A-Za-z]+):([^\n]*+)")
_FIRST_ITEM = re.compile(rf"\n( {{0,{MAX_INDENT}}}+)-( {{1,{MAX_INDENT}}}+)[A-Za-z]")
_DEFAULTS = re.compile(r"\ndefaults:[^\n]*+(?>(?:\n(?:[ #][^\n]*+)?(?=\n))*)")


_compiled = lru_cache(maxsize=256)(re.compile)


Take = Callable[[Sequence[str]], Sequence[Any]]
"""A function from the texts of a field in many items to its values, which are `None` where they are uncertain."""


def _take(field: Field) -> Take:
    """Return the function that takes a field's values from their texts."""
    convert = field.convert
    if field.shape is PlainShape.TEXT:
        if convert is None:
            return _texts_of
        return lambda tokens: [
            convert(text, token[0] in QUOTES) for text, token in zip(_texts_of(tokens), tokens, strict=True)
        ]
    parse = _PARSERS[field.shape]
    return lambda texts: [*map(parse, texts)] if convert is None else [*map(convert, map(parse, texts))]


def _texts_of(tokens: Sequence[str]) -> list[str]:
    """Return the texts of scalars. Most need no call."""
    return [
        text_of(token) if token[0] == "'" or "\n" in token else token[1:-1] if token[0] == '"' else token
        for token in tokens
    ]


_PARSERS: dict[PlainShape, Callable[[str], Any]] = {PlainShape.LIST: list_of, PlainShape.MAP: map_of}


class _Layout(NamedTuple):
    """An order of keys, with the expression and the converters for items that have this order."""

    order: tuple[str, ...]
    match: Callable[[str, int], re.Match[str] | None]
    takes: tuple[Take, ...]


@dataclass(slots=True)
class _Grid:
    """The form of a section's items: the text before an item's first key, and the indentation of its other keys.

    The expressions `between`, for empty lines and comments, and `double`, for double-quoted scalars, are as simple as
    the file permits. `layouts` grows when an item needs a new layout.
    """

    fields: Mapping[str, Field]
    dash: str
    indent: str
    between: str
    double: str
    layouts: list[_Layout] = field(default_factory=list)

    def layout_at(self, text: str, start: int) -> _Layout:
        """Return the layout of the item at `start`. Raise `NotPlain` for unknown or repeated keys."""
        keys = self._keys(text, start)
        if not keys or not self.fields.keys() >= set(keys) or len(set(keys)) < len(keys):
            raise NotPlain
        orders = [_merged(layout.order, keys) for layout in self.layouts]
        for layout, order in zip(self.layouts, orders, strict=True):
            if order == layout.order:
                return layout
        return self._new(next((order for order in orders if order), keys))

    def _new(self, order: tuple[str, ...]) -> _Layout:
        if len(self.layouts) >= MAX_LAYOUTS:
            raise NotPlain
        fields = [self.fields[name] for name in order]
        layout = _Layout(order, self._pattern(order).match, tuple(map(_take, fields)))
        self.layouts.insert(0, layout)
        return layout

    def _pattern(self, order: tuple[str, ...]) -> re.Pattern[str]:
        """Return the expression for a whole item that has the first key, and any other keys in this order."""
        first, *others = (f"{name}:{self._value(self.fields[name].shape)}" for name in order)
        line = f"{self.between}\n{self.indent}"
        optional = "".join(f"(?:{line}{other})?" for other in others)
        return _compiled(f"{self.dash}{first}{optional}(?=\n)(?!{line}[^ ])")

    def _value(self, shape: PlainShape) -> str:
        """Return the expression for a field's value after its `:`, as one group.

        Flow lists and maps are checked when they are parsed. Their second alternative allows brackets in texts.
        """
        if shape is PlainShape.TEXT:
            return f" ++({scalar(self.indent, self.double)})"
        if shape is PlainShape.LIST:
            return rf"( ++\[[^\]]*+\](?=\n)| ++\[[^\n]*+(?<=\])|{self._blocks('- ', '', '  ', '    ')})"
        return rf"( ++{{[^}}]*+}}(?=\n)| ++{{[^\n]*+(?<=}})|{self._blocks(f'{KEY}: ++', '  ', '    ')})"

    def _blocks(self, entry: str, *further: str) -> str:
        """Return the expression for entries on lines of their own. `entry` is the text before each entry's scalar."""
        indents = [self.indent + more for more in further]
        return "|".join(f"(?>(?:{self.between}\n{indent}{entry}{scalar(indent, self.double)})+)" for indent in indents)

    def _keys(self, text: str, start: int) -> tuple[str, ...]:
        """Return the keys of the item at `start`."""
        following = _compiled(rf"\n {{0,{self.dash.index('-') - 1}}}[^ #\n]").search(text, start + 1)
        end = following.start() if following else len(text)
        return tuple(_compiled(rf"(?:{self.dash}|\n{self.indent})([A-Za-z]+):").findall(text, start, end))


def _merged(order: tuple[str, ...], keys: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the order with missing keys inserted, each after its predecessor, or `None` when the orders conflict."""
    if order[0] != keys[0]:
        return None
    result, after = list(order), 0
    for key in keys:
        if key not in result:
            result.insert(after, key)
        elif result.index(key) < after:
            return None
        after = result.index(key) + 1
    return tuple(result)


class _Reading:
    """The progress of reading a file. `pos` is the line feed before line `line`, which is read next."""

    __slots__ = ("between", "defaults", "double", "items", "line", "met", "pos", "sections", "text")

    def __init__(self, text: str, sections: Sections) -> None:
        self.text, self.sections = text, sections
        self.between = f"(?>{BETWEEN}*)" if "#" in text or _EMPTY_LINE.search(text) else ""
        self.double = DOUBLE_UNESCAPED if "\\" in text else DOUBLE
        self.pos, self.line = 0, 1
        self.items: list[PlainItem] = []
        self.defaults: str | None = None
        self.met = set[str]()

    def run(self) -> None:
        self._skip()
        while self.pos < len(self.text) - 1:
            if (match := _SECTION.match(self.text, self.pos)) is None or match[1] in self.met:
                raise NotPlain
            self.met.add(match[1])
            if match[1] == "defaults":
                self._defaults()
            else:
                self._section(match)
            self._skip()

    def _go(self, end: int) -> None:
        self.line += self.text.count("\n", self.pos, end)
        self.pos = end

    def _skip(self) -> None:
        if self.between and (skipped := SKIPPED.match(self.text, self.pos)):
            self._go(skipped.end())

    def _defaults(self) -> None:
        if (match := _DEFAULTS.match(self.text, self.pos)) is None:
            raise NotPlain
        self.defaults = "\n" * (self.line - 1) + match.group()[1:] + "\n"
        self._go(match.end())

    def _section(self, match: re.Match[str]) -> None:
        section, rest = match[1], match[2]
        if section not in self.sections or rest not in ("", " []"):
            raise NotPlain
        self._go(match.end())
        if not rest:
            self._items(section)

    def _items(self, section: str) -> None:
        """Read items up to the first text that is not an item; `run` decides whether that is allowed."""
        self._skip()
        grid = self._grid(self.sections[section])
        text, column = self.text, len(grid.indent) + 1
        layout = grid.layout_at(text, self.pos)
        match, pos, line = layout.match, self.pos, self.line
        rows: list[tuple[str | None, ...]] = []
        lines: list[int] = []
        while True:
            if (item := match(text, pos)) is None:
                values = _values(layout, rows)
                self.items += [PlainItem(section, at, column, own) for at, own in zip(lines, values, strict=True)]
                rows, lines = [], []
                self.pos, self.line = pos, line
                self._skip()
                if not text.startswith(grid.dash, self.pos):
                    return
                layout = grid.layout_at(text, self.pos)
                match, pos, line = layout.match, self.pos, self.line
                if (item := match(text, pos)) is None:
                    raise NotPlain
            rows.append(item.groups())
            lines.append(line)
            end = item.end()
            line += text.count("\n", pos, end)
            pos = end

    def _grid(self, fields: Mapping[str, Field]) -> _Grid:
        """Return the form of the section's first item, which all its items must have."""
        first = _FIRST_ITEM.match(self.text, self.pos)
        if first is None:
            raise NotPlain
        indent = " " * (len(first[1]) + 1 + len(first[2]))
        return _Grid(fields, f"\n{first[1]}-{first[2]}", indent, self.between, self.double)


def _values(layout: _Layout, rows: Sequence[tuple[str | None, ...]]) -> list[dict[str, Any]]:
    """Return the values of items of one layout, each in the order of the file. Fields are taken column by column."""
    columns = [_column(take, texts) for take, texts in zip(layout.takes, zip(*rows, strict=True), strict=False)]
    return [
        {name: value for name, value in zip(layout.order, row, strict=True) if value is not None}
        for row in zip(*columns, strict=True)
    ]


def _column(take: Take, texts: Sequence[str | None]) -> Sequence[Any]:
    """Return a field's value in each item, `None` where it is absent. Raise `NotPlain` when any value is uncertain."""
    present = [text for text in texts if text is not None]
    values = take(present)
    if None in values:
        raise NotPlain
    if len(present) == len(texts):
        return values
    rest = iter(values)
    return [None if text is None else next(rest) for text in texts]
