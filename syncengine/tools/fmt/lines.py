"""Classify each line of a YAML text: content, comment, blank, or the inside of a longer scalar. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

import yaml

Token = Any
"""A token of `yaml.tokens`, whose classes are untyped."""


class Is(Enum):
    """The kind of a line."""

    CONTENT = "content"
    COMMENT = "comment"
    BLANK = "blank"
    INSIDE = "inside"
    MARKER = "marker"


class Line(NamedTuple):
    """A line of YAML; `column` and `remark` are where its content and the comment after it start, from 0."""

    text: str
    kind: Is
    column: int
    remark: int | None = None

    @property
    def depth(self) -> float:
        """The depth of the line's indentation; a list item is deeper than a key in the same column."""
        return self.column + (0.5 if self.text.startswith("-", self.column) else 0.0)


def lines_of(text: str) -> list[Line]:
    """Return the lines of valid YAML. Raise `yaml.YAMLError` when it is invalid."""
    rows = text.split("\n")
    if rows[-1] == "":
        rows.pop()
    inside, ends = _spans(text, rows)
    return [_line(row, number in inside, ends.get(number)) for number, row in enumerate(rows)]


def _spans(text: str, rows: Sequence[str]) -> tuple[set[int], dict[int, int]]:
    """Return the numbers of lines inside scalars, and the end of each line's last token; -1 means a later line."""
    inside: set[int] = set()
    ends: dict[int, int] = {}
    for token in yaml.scan(text, Loader=yaml.CLoader):
        start, end = token.start_mark, token.end_mark
        if end.line > start.line:
            inside.update(range(start.line + 1, _last(token, rows) + 1))
            ends[start.line] = -1
        ends[end.line] = end.column
    return inside, ends


def _last(token: Token, rows: Sequence[str]) -> int:
    """Return the last line of a scalar; blank lines after a block belong to it only with a `+` (like `|+`)."""
    start, end = token.start_mark, token.end_mark
    last = int(end.line) if end.column else int(end.line) - 1
    if getattr(token, "style", None) in ("|", ">") and "+" not in rows[start.line][start.column :].split("#")[0]:
        while last > start.line and not rows[min(last, len(rows) - 1)].strip():
            last -= 1
    return last


def _line(text: str, inside: bool, end: int | None) -> Line:
    stripped = text.lstrip(" ")
    column = len(text) - len(stripped)
    if inside:
        return Line(text, Is.INSIDE, column)
    if not stripped.strip():
        return Line("", Is.BLANK, 0)
    if stripped.startswith("#"):
        return Line(text.rstrip(), Is.COMMENT, column)
    if not column and text.startswith(("---", "...", "%")):
        return Line(text, Is.MARKER, 0)
    remark = text.find("#", end) if end is not None and end >= 0 and text[end:].lstrip().startswith("#") else None
    return Line(text, Is.CONTENT, column, remark)


def comments_of(text: str) -> list[str]:
    """Return every comment, in the order of the text."""
    return [
        line.text[line.remark :].rstrip() if line.remark is not None else line.text.strip()
        for line in lines_of(text)
        if line.kind is Is.COMMENT or line.remark is not None
    ]


def enclosing(lines: Sequence[Line], number: int) -> list[int]:
    """Return the numbers of the content lines before line `number` that enclose it, outermost first."""
    found: list[int] = []
    for at in range(number, -1, -1):
        if lines[at].kind is Is.MARKER:
            break
        if lines[at].kind is Is.CONTENT and (not found or lines[at].depth < lines[found[-1]].depth):
            found.append(at)
    return found[::-1]
