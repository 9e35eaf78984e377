"""Marks in the output of a template, with the template's line and the current data row. `source_map` removes them.

The current row is that of the innermost loop: the record itself, the first record of a group, or the first record with
the loop's value; in a macro, that of its argument. An included template belongs to the loop that includes it, and text
without a row of its own has the row of the place where it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import wraps
from typing import Any, cast

from jinja2 import nodes, pass_context

from syncengine.resource import Row
from syncengine.templating.budget import TooMuch
from syncengine.templating.metering import OF_A_TEXT, Filter, Spent
from syncengine.templating.rewriting import filtered
from syncengine.templating.values import Record

MARK, SAID, CAPTURED, INCLUDE, INCLUDED = "mark!", "said!", "captured!", "include!", "included!"
"""The names of filters that no template can spell, so that none can write marks itself."""
LINES_STAY = ("indent", "lower", "upper")
"""The filters of texts that preserve marks and the order of lines."""
_NO_DATA = frozenset({"caller", "kwargs", "varargs"})
"""The names with a special meaning in Jinja2 macros, which never stand for data rows."""


MAX_MARKED = 32_000_000
"""The most characters of marked text to store, and to write. Beyond that, a text's place is where it is output."""


class Captures:
    """Captured texts, such as the results of macros, each without marks and with its marked form stored beside it.

    A text is recognised by its object's identity, since equal text may come from elsewhere. The result of a filter is
    another object, without marks.
    """

    def __init__(self, token: str, spent: Spent) -> None:
        self.pattern = re.compile(re.escape(token) + r":(-?\d+):(\d+):(\d+)\x03")
        self._any = re.compile(re.escape(token) + r"[^\x03]*\x03")
        self._token = token
        self._spent = spent
        self._entries: dict[int, tuple[str, str]] = {}
        self._size = 0
        self._remaining = MAX_MARKED

    def capture(self, pieces: Iterable[str]) -> str:
        """Return captured text without its marks, and remember the marked form."""
        marked = "".join(pieces)
        return self._kept(self._bare(marked), marked) if self._token in marked else marked

    def knows(self, value: Any) -> bool:
        """Return whether a value is captured text, unchanged."""
        return id(value) in self._entries

    def marked(self, text: str, row: int) -> str:
        """Return a captured text with its marks, completed by `row`, or without marks beyond `MAX_MARKED`."""
        _, marked = self._entries[id(text)]
        if not self._has_room(marked):
            return text
        return marked if row < 0 else marked.replace(f"{self._token}:-1:", f"{self._token}:{row}:")

    def following(self, filter: Filter, bare: Filter) -> Filter:
        """Return `filter` with results that keep the marks of its argument. `bare` is the filter for marked text."""

        @wraps(filter)
        def follow(value: Any, *arguments: Any, **options: Any) -> Any:
            text, entry = filter(value, *arguments, **options), self._entries.get(id(value))
            if entry is None or not self._has_room(entry[1]):
                return text
            try:
                marked = bare(entry[1], *arguments, **options)
            except TooMuch:
                return text
            return self._kept(text, marked) if self._bare(marked) == text else text

        return follow

    def _bare(self, marked: str) -> str:
        self._spent().works(len(marked))
        return self._any.sub("", marked)

    def _has_room(self, marked: str) -> bool:
        """Return whether marked text may still be written. Marks have a limit because budgets of text ignore them."""
        self._remaining -= len(marked)
        return self._remaining >= 0

    def _kept(self, text: str, marked: str) -> str:
        """Return the text, and remember its marks unless it is one character, whose object may be shared."""
        if len(text) > 1 and id(text) not in self._entries:
            self._entries[id(text)] = (text, marked)
            self._size += len(marked)
            while self._size > MAX_MARKED:
                self._size -= len(self._entries.pop(next(iter(self._entries)))[1])
        return text


class Marking:
    """The marks of one file, and the filters that write them. They take a context so that each runs every time."""

    def __init__(self, token: str, spent: Spent) -> None:
        self.rows: list[Row] = []
        self.captures = Captures(token, spent)
        self._token = token
        self._spent = spent
        self._included: list[Record | None] = []
        self._firsts: dict[Any, Record] = {}

    def filters(self, filters: dict[str, Filter]) -> dict[str, Filter]:
        """Return the filters that write marks, and versions of `filters` that preserve them."""
        return {
            MARK: self._mark,
            SAID: self._with_place,
            CAPTURED: self._captured,
            INCLUDE: self._include,
            INCLUDED: self._end_include,
            "map": self._remembering(filters["map"]),
            **{name: self.captures.following(filters[name], OF_A_TEXT[name]) for name in LINES_STAY},
        }

    @pass_context
    def _mark(self, context: Any, line: int, file: int, at_hand: tuple[Any, ...]) -> str:
        return f"{self._token}:{self._row(at_hand)}:{file}:{line}\x03"

    @pass_context
    def _with_place(self, context: Any, value: Any, line: int, file: int, at_hand: tuple[Any, ...]) -> Any:
        """Return a value, or captured text with its marks and a mark of the place where it is written."""
        if not self.captures.knows(value):
            return value
        marked = self.captures.marked(value, self._row(at_hand))
        self._spent().wrote(len(value) - len(marked))  # the marks in it were counted when they were written
        return marked + self._mark(context, line, file, at_hand)

    @pass_context
    def _captured(self, context: Any, value: Any, at_hand: tuple[Any, ...]) -> Any:
        return self.captures.marked(value, self._row(at_hand)) if self.captures.knows(value) else value

    @pass_context
    def _include(self, context: Any, line: int, file: int, at_hand: tuple[Any, ...]) -> str:
        mark = self._mark(context, line, file, at_hand)
        self._included.append(self._at_hand(at_hand))
        return mark

    @pass_context
    def _end_include(self, context: Any, line: int) -> str:
        self._included.pop()
        return ""

    def _row(self, at_hand: tuple[Any, ...]) -> int:
        """Return the number of the current data row, or -1 when there is none."""
        record = self._at_hand(at_hand)
        if record is None:
            return -1
        if not self.rows or self.rows[-1] is not record.row:
            self.rows.append(record.row)
        return len(self.rows) - 1

    def _at_hand(self, values: tuple[Any, ...]) -> Record | None:
        record_at_hand = next((record for value in values if (record := self._record_of(value)) is not None), None)
        return self._included[-1] if record_at_hand is None and self._included else record_at_hand

    def _record_of(self, value: Any) -> Record | None:
        if type(value) is Record:
            return value
        if isinstance(value, list):
            return value[0] if value and type(value[0]) is Record else None
        if isinstance(value, tuple):
            return next((record for part in value if (record := self._record_of(part)) is not None), None)
        return self._firsts.get(value) if isinstance(value, str | int | Decimal) else None

    def _remembering(self, mapped: Callable[..., Any]) -> Callable[..., Any]:
        """Return the filter `map`, extended to remember the first record that each value came from."""

        @wraps(mapped)
        def remembering(context: Any, value: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
            current: list[Any] = [None]

            def items() -> Iterator[Any]:
                for current[0] in value or ():
                    yield current[0]

            for result in mapped(context, items(), *arguments, **options):
                record = self._record_of(current[0])
                if record is not None and isinstance(result, str | int | Decimal):
                    self._firsts.setdefault(result, record)
                yield result

        return remembering


def mark_all(body: list[nodes.Node], file: int, targets: tuple[str, ...] = ()) -> None:
    """Add marks to `body` wherever text is written or captured, as in the body of a macro."""
    body[:] = [each for node in body for each in _marked(node, file, targets)]


def _marked(node: nodes.Node, file: int, targets: tuple[str, ...]) -> Iterator[nodes.Node]:
    at_hand = nodes.Tuple([nodes.Name(name, "load", lineno=node.lineno) for name in targets], "load")
    match node:
        case nodes.Output():
            node.nodes = list(_pieces(node.nodes, file, at_hand))
        case nodes.For():
            names = [n.name for n in node.target.find_all(nodes.Name)]
            own = [node.target.name] if isinstance(node.target, nodes.Name) else names
            mark_all(node.body, file, (*own, *targets))
            mark_all(node.else_, file, targets)
            yield _captured(node, at_hand) if node.recursive else node
            return
        case nodes.If():
            for part in (node.body, list[nodes.Node](node.elif_), node.else_):
                mark_all(part, file, targets)
        case nodes.With() | nodes.Block() | nodes.Scope() | nodes.AssignBlock():
            mark_all(node.body, file, () if isinstance(node, nodes.Block) else targets)
        case nodes.Macro():
            mark_all(node.body, file, (*_arguments(node), *targets))
        case nodes.CallBlock():
            mark_all(node.body, file, (*_arguments(node), *targets))
            yield _output(_mark_of(MARK, node.lineno, file, at_hand))
            yield _captured(node, at_hand)
            return
        case nodes.FilterBlock():
            mark_all(node.body, file, targets)
            node.filter = filtered(node.filter, CAPTURED, at_hand)
            yield _output(_mark_of(MARK, node.lineno, file, at_hand))
        case nodes.Include():
            yield _output(_mark_of(INCLUDE, node.lineno, file, at_hand))
            yield node
            yield _output(filtered(nodes.Const(node.lineno, lineno=node.lineno), INCLUDED))
            return
    yield node


def _arguments(node: nodes.Macro | nodes.CallBlock) -> list[str]:
    """Return the names of the arguments of a macro, or of the body of a call, that can be data rows."""
    return [argument.name for argument in node.args if argument.name not in _NO_DATA]


def _captured(node: nodes.Stmt, at_hand: nodes.Tuple) -> nodes.Node:
    """Return a statement that writes captured text, wrapped in the filter that adds its marks."""
    return nodes.FilterBlock([node], filtered(cast("nodes.Node", None), CAPTURED, at_hand), lineno=node.lineno)


def _output(piece: nodes.Expr) -> nodes.Output:
    return nodes.Output([piece], lineno=piece.lineno)


def _pieces(parts: Iterable[nodes.Expr], file: int, at_hand: nodes.Tuple) -> Iterator[nodes.Expr]:
    """Yield the parts of an output, with a mark where a line of the template begins."""
    marked = 0
    for part in _lines(parts):
        if part.lineno != marked:
            marked = part.lineno
            yield _mark_of(MARK, marked, file, at_hand)
        is_data = isinstance(part, nodes.TemplateData)
        yield part if is_data else filtered(part, SAID, nodes.Const(marked), nodes.Const(file), at_hand)


def _lines(parts: Iterable[nodes.Expr]) -> Iterator[nodes.Expr]:
    """Yield the parts of an output, with data split into lines and `a ~ b` into two texts."""
    for part in parts:
        if isinstance(part, nodes.TemplateData):
            for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+", part.data), part.lineno):
                yield nodes.TemplateData(line, lineno=number)
        elif isinstance(part, nodes.Filter) and part.name == "_joined" and isinstance(part.node, nodes.List):
            yield from _lines(part.node.items)
        else:
            yield part


def _mark_of(filter: str, line: int, file: int, at_hand: nodes.Tuple) -> nodes.Expr:
    return filtered(nodes.Const(line, lineno=line), filter, nodes.Const(file), at_hand)
