"""A template's syntax tree → one whose result carries marks, and a result → its text and the origin of each character.

A mark says which line of which file writes the text behind it. Further marks enclose a loop or a captured text, such as
that of a macro, and name the data row of a loop's turn. A turn without a row of its own, such as a word of a cell,
belongs to that of the loop around it; so does a captured text. The result of a filter has no marks, so it has the line
and the row of where it is written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import wraps
from typing import Any

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from syncengine.document.text import LINE_END
from syncengine.resource import Row, Source
from syncengine.templating.sandbox import filtered
from syncengine.templating.values import Record

ROW = "row of"
"""The name of the filter that writes the mark of a turn. No template can spell it."""
_VISIBLE = re.compile(r"\S")


class Captured(str):
    """Captured text, whose marked form is written in its place. What a filter makes of it is another text."""

    __slots__ = ("marked",)
    marked: str


class Marks:
    """The marks of one rendering. No template can write one, since `token` is random."""

    def __init__(self, token: str) -> None:
        self.rows: list[Row] = []
        self.files: list[str] = []
        self._token = token
        self._pattern = re.compile(f"\x02{token}([^\x03]*)\x03")
        self._firsts: dict[Any, Row] = {}

    def mark(self, what: str) -> str:
        return f"\x02{self._token}{what}\x03"

    def row(self, values: Any) -> str:
        """Return the mark of a turn with these values of its loop: an empty text if none is of a data row."""
        row = self._row_of(values)
        if row is None:
            return ""
        if not self.rows or self.rows[-1] is not row:
            self.rows.append(row)
        return self.mark(f"r{len(self.rows) - 1}")

    def captured(self, marked: str, text: str | None = None) -> Captured:
        """Return a text with this marked form."""
        captured = Captured(self._pattern.sub("", marked) if text is None else text)
        captured.marked = f"{self.mark('(')}{marked}{self.mark(')')}"
        return captured

    def following(self, filter: Callable[..., str]) -> Callable[..., str]:
        """Return a filter that keeps marks, such as one that only adds blanks to lines."""

        @wraps(filter)
        def follow(value: Any, *arguments: Any, **options: Any) -> str:
            text = filter(value, *arguments, **options)
            return self.captured(filter(value.marked, *arguments, **options), text) if type(value) is Captured else text

        return follow

    def remembering(self, mapped: Callable[..., Any]) -> Callable[..., Any]:
        """Return the filter `map`, extended to remember the first row that each value came from."""

        @wraps(mapped)
        def remember(context: Any, value: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
            current: list[Any] = [None]

            def items() -> Iterator[Any]:
                for current[0] in value or ():
                    yield current[0]

            for result in mapped(context, items(), *arguments, **options):
                row = self._row_of(current[0])
                if row is not None and isinstance(result, str | int | Decimal):
                    self._firsts.setdefault(result, row)
                yield result

        return remember

    def added(self, tree: nodes.Template, name: str) -> nodes.Template:
        """Return the syntax tree of the template `name` with marks in its text."""
        self.files.append(name)
        _Marking(self, len(self.files) - 1).visit(tree)
        return tree

    def places(self, marked: str) -> tuple[str, Places]:
        """Return a rendered text without its marks, and the origins of its parts."""
        pieces = self._pattern.split(marked)
        text = "".join(pieces[::2])
        return text, Places(text, list(self._origins(pieces)))

    def _origins(self, pieces: Sequence[str]) -> Iterator[tuple[int, Source]]:
        """Yield an offset and an origin wherever the text of another line or row begins; the first offset is 0."""
        stack = [Source(self.files[0], 1)]
        last, offset = (0, stack[0]), len(pieces[0])
        for mark, text in zip(pieces[1::2], pieces[2::2], strict=True):
            match mark[0]:
                case "(":
                    stack.append(stack[-1])
                case ")":
                    stack.pop()
                case "r":
                    stack[-1] = stack[-1]._replace(data=self.rows[int(mark[1:])])
                case _:
                    file, line = mark.split(":")
                    stack[-1] = Source(self.files[int(file)], int(line), stack[-1].data)
            if text:
                if stack[-1] != last[1]:
                    if offset:
                        yield last
                    last = (offset, stack[-1])
                offset += len(text)
        yield last

    def _row_of(self, value: Any) -> Row | None:
        """Return the row of a record, of the first in a list (a group's), of a tuple's first, or of a mapped value."""
        if type(value) is Record:
            return value.row
        if isinstance(value, list):
            return self._row_of(value[0]) if value and type(value[0]) is Record else None
        if isinstance(value, tuple):
            return next((row for part in value if (row := self._row_of(part))), None)
        return self._firsts.get(value) if isinstance(value, str | int | Decimal) else None


def marked_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """Yield pieces of text, with captured ones in their marked form."""
    return (piece.marked if type(piece) is Captured else piece for piece in pieces)


class _Marking(NodeTransformer):
    """The addition of marks to a syntax tree: before each line of text, around each loop, and at each of its turns."""

    def __init__(self, marks: Marks, file: int) -> None:
        self._marks = marks
        self._file = file

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802 - jinja2's way to name visitors
        parts: list[nodes.Expr] = []
        marked = 0
        for part in node.nodes:
            is_text = isinstance(part, nodes.TemplateData)
            lines = re.findall(r"[^\n]*\n|[^\n]+", part.data) if isinstance(part, nodes.TemplateData) else [""]
            for number, line in enumerate(lines, part.lineno):
                if number != marked:
                    parts.append(self._data(f"{self._file}:{number}"))
                    marked = number
                parts.append(nodes.TemplateData(line, lineno=number) if is_text else part)
        node.nodes = parts
        return node

    def visit_For(self, node: nodes.For) -> list[nodes.Node]:  # noqa: N802 - as above
        self.generic_visit(node)
        names = [n.name for n in (node.target, *node.target.find_all(nodes.Name)) if isinstance(n, nodes.Name)]
        values = nodes.Tuple(
            [nodes.Name(name, "load", lineno=node.lineno) for name in names], "load", lineno=node.lineno
        )
        node.body.insert(0, nodes.Output([filtered(values, ROW)], lineno=node.lineno))
        begin, end = (nodes.Output([self._data(what)], lineno=node.lineno) for what in "()")
        return [begin, *self._with_line(node), end]

    def visit_FilterBlock(self, node: nodes.FilterBlock) -> list[nodes.Node]:  # noqa: N802 - as above
        self.generic_visit(node)
        return self._with_line(node)

    visit_CallBlock = visit_Include = visit_FilterBlock  # noqa: N815 - as above

    def _with_line(self, node: nodes.Node) -> list[nodes.Node]:
        return [nodes.Output([self._data(f"{self._file}:{node.lineno}")], lineno=node.lineno), node]

    def _data(self, mark: str) -> nodes.TemplateData:
        return nodes.TemplateData(self._marks.mark(mark), lineno=1)


class Places:
    """The origin of each character of `text`.

    `marks` are ascending offsets, the first of them 0, each with the template's line, and the data row, that wrote the
    text from there on.
    """

    def __init__(self, text: str, marks: Sequence[tuple[int, Source]]) -> None:
        self.marks = marks
        self._text = text
        self._offsets = [offset for offset, _ in marks]
        self._lines = [0, *(end.end() for end in LINE_END.finditer(text)), len(text) + 1]

    def _offset(self, line: int, column: int) -> int:
        """Return the offset of the first visible character at or after a column of a line; both count from 1."""
        begin, end = self._line(line)
        offset = min(begin + column - 1, end - 1)
        visible = _VISIBLE.search(self._text, offset, end)
        return visible.start() if visible else offset

    def line(self, line: int) -> int:
        """Return the template's line that wrote the beginning of a line of the text."""
        return self.at(line, 1).line

    def at(self, line: int, column: int) -> Source:
        """Return the origin of the text at a line and column."""
        return self.marks[bisect_right(self._offsets, self._offset(line, column)) - 1][1]

    def _line(self, line: int) -> tuple[int, int]:
        """Return the offsets at which a line begins and ends; those of the last line for lines beyond it."""
        n = min(max(line, 1), len(self._lines) - 1)
        return self._lines[n - 1], self._lines[n]
