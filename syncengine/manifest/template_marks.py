"""Marks in what a template writes: its own line, and the data row at hand. They are taken out again.

The row at hand is that of the innermost loop: the record itself, the first one of a group, or the first one that had
the value that is gone through. A template that is included stands in the loop that includes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import wraps
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.visitor import NodeTransformer

from syncengine.manifest.records import Record
from syncengine.manifest.templates import filtered
from syncengine.resource import Row

LINES_STAY = frozenset({"indent", "lower", "upper"})
"""Filters of a block that leave marks, and the order of lines, as they are."""
_CAPTURES = (nodes.Macro, nodes.CallBlock, nodes.AssignBlock, nodes.FilterBlock)


class Marking:
    """What the marks of one file say, and the filters that write them; with a context, so that each runs each time."""

    def __init__(self, token: str) -> None:
        self.rows: list[Row] = []
        self.pattern = re.compile(re.escape(token) + r":(\d+):(\d+):(-?\d+)\x03")
        self._token = token
        self._included: list[Record | None] = []
        self._captured = 0
        self._firsts: dict[Any, Record] = {}

    def filters(self, mapped: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
        """`mapped` is the filter `map`."""
        return {
            "_mark": self._mark,
            "_include": self._include,
            "_included": self._leave,
            "_capture": self._capture,
            "map": self._remembering(mapped),
        }

    @pass_context
    def _mark(self, context: Any, line: int, file: int, at_hand: tuple[Any, ...]) -> str:
        if self._captured:
            return ""
        record = self._at_hand(at_hand)
        if record is not None and (not self.rows or self.rows[-1] is not record.row):
            self.rows.append(record.row)
        return f"{self._token}:{file}:{line}:{-1 if record is None else len(self.rows) - 1}\x03"

    @pass_context
    def _include(self, context: Any, line: int, file: int, at_hand: tuple[Any, ...]) -> str:
        mark = self._mark(context, line, file, at_hand)
        self._included.append(self._at_hand(at_hand))
        return mark

    @pass_context
    def _leave(self, context: Any, line: int) -> str:
        self._included.pop()
        return ""

    @pass_context
    def _capture(self, context: Any, change: int) -> str:
        self._captured += change
        return ""

    def _at_hand(self, values: tuple[Any, ...]) -> Record | None:
        found = next((record for value in values if (record := self._record_of(value)) is not None), None)
        return self._included[-1] if found is None and self._included else found

    def _record_of(self, value: Any) -> Record | None:
        if type(value) is Record:
            return value
        if isinstance(value, list):
            return value[0] if value and type(value[0]) is Record else None
        if isinstance(value, tuple):
            return next((record for part in value if (record := self._record_of(part)) is not None), None)
        return self._firsts.get(value) if isinstance(value, str | int | Decimal) else None

    def _remembering(self, mapped: Callable[..., Any]) -> Callable[..., Any]:
        """`map`, which remembers the first record that each value came from."""

        @wraps(mapped)
        def remembering(context: Any, value: Any, *given: Any, **named: Any) -> Iterator[Any]:
            taken: list[Any] = [None]

            def items() -> Iterator[Any]:
                for taken[0] in value or ():
                    yield taken[0]

            for result in mapped(context, items(), *given, **named):
                record = self._record_of(taken[0])
                if record is not None and isinstance(result, str | int | Decimal):
                    self._firsts.setdefault(result, record)
                yield result

        return remembering


def mark_all(body: list[nodes.Node], file: int, targets: tuple[str, ...] = ()) -> None:
    """Marks where text goes straight into the result: not in what is captured first, as the body of a macro is."""
    body[:] = [each for node in body for each in _marked(node, file, targets)]


def _marked(node: nodes.Node, file: int, targets: tuple[str, ...]) -> Iterator[nodes.Node]:
    at_hand = nodes.Tuple([nodes.Name(name, "load", lineno=node.lineno) for name in targets], "load")
    match node:
        case nodes.Output():
            node.nodes = list(_pieces(node, file, at_hand))
        case nodes.For():
            names = [n.name for n in node.target.find_all(nodes.Name)]
            own = [node.target.name] if isinstance(node.target, nodes.Name) else names
            mark_all(node.body, file, (*own, *targets))
            mark_all(node.else_, file, targets)
        case nodes.If():
            for part in (node.body, list[nodes.Node](node.elif_), node.else_):
                mark_all(part, file, targets)
        case nodes.With() | nodes.Block() | nodes.Scope():
            mark_all(node.body, file, () if isinstance(node, nodes.Block) else targets)
        case nodes.FilterBlock() if _names(node.filter) <= LINES_STAY:
            mark_all(node.body, file, targets)
        case nodes.CallBlock() | nodes.FilterBlock():
            yield _output(_mark_of("_mark", node.lineno, file, at_hand))
        case nodes.Include():
            yield _output(_mark_of("_include", node.lineno, file, at_hand))
            yield node
            yield _output(filtered(nodes.Const(node.lineno, lineno=node.lineno), "_included"))
            return
    if isinstance(node, _CAPTURES) and not (isinstance(node, nodes.FilterBlock) and _names(node.filter) <= LINES_STAY):
        _Unmarked().generic_visit(node)
    yield node


class _Unmarked(NodeTransformer):
    """What is included in something that is captured has no marks."""

    def visit_Include(self, node: nodes.Include) -> list[nodes.Node]:  # noqa: N802 - jinja2's way to name visitors
        before, after = (filtered(nodes.Const(n, lineno=node.lineno), "_capture") for n in (1, -1))
        return [_output(before), node, _output(after)]


def _names(chain: nodes.Filter | None) -> set[str]:
    """The filters of a block."""
    found = set()
    while chain is not None:
        found.add(chain.name)
        chain = chain.node if isinstance(chain.node, nodes.Filter) else None
    return found


def _output(piece: nodes.Expr) -> nodes.Output:
    return nodes.Output([piece], lineno=piece.lineno)


def _pieces(node: nodes.Output, file: int, at_hand: nodes.Tuple) -> Iterator[nodes.Expr]:
    for part in node.nodes:
        if not isinstance(part, nodes.TemplateData):
            yield _mark_of("_mark", part.lineno, file, at_hand)
            yield part
            continue
        for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+", part.data), part.lineno):
            yield _mark_of("_mark", number, file, at_hand)
            yield nodes.TemplateData(line, lineno=number)


def _mark_of(filter: str, line: int, file: int, at_hand: nodes.Tuple) -> nodes.Expr:
    return filtered(nodes.Const(line, lineno=line), filter, nodes.Const(file), at_hand)
