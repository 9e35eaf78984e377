"""How much a template of posted time may do for one value: steps, time, size. A budget for each rendering.

Whatever a group holds and whatever a template says, the delivery of all others goes on, and a stop is heard.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

from jinja2 import TemplateSyntaxError, Undefined, nodes, pass_context
from jinja2.filters import FILTERS
from jinja2.visitor import NodeTransformer

from syncengine.templating.budget import MAX_TEXT, Budget, TooMuch, check_operation

__all__ = [
    "BOUNDED",
    "Bounded",
    "TooMuch",
    "Unfit",
    "check_call",
    "check_operation",
    "limited",
    "shown",
    "spent",
    "worth",
]

SECONDS = 3.0
"""How long one value may take: all else waits for it."""

_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited() -> Iterator[None]:
    """A budget for what is rendered in this block."""
    before = _budget.set(Budget(time.monotonic() + SECONDS))
    try:
        yield
    finally:
        _budget.reset(before)


def spent() -> Budget:
    """What is left."""
    return _budget.get() or Budget(time.monotonic() + SECONDS)


@pass_context
def shown(_: object, value: Any) -> Any:
    """What is written of a value: of none nothing. With a context, so that Jinja2 renders nothing when it compiles."""
    return "" if value is None else worth(value)


def worth(value: Any) -> Any:
    """A value as it can be delivered: what is made item by item is a list; Unfit for what is no value at all."""
    if isinstance(value, Iterator):
        value = list(spent().turns(value, 0))
    if callable(value) and not isinstance(value, Undefined):
        raise Unfit("a function is no value; it is called with ()")
    if isinstance(value, float) and not math.isfinite(value):
        raise Unfit("a number without bounds is no value")
    spent().weigh(value)  # which is where an undefined value fails
    return value


class Unfit(Exception):
    """What a template comes to cannot be delivered."""


class Bounded(NodeTransformer):
    """Loops take turns under the budget; numbers have bounds."""

    def visit_Const(self, node: nodes.Const) -> nodes.Node:  # noqa: N802 - as below
        if isinstance(node.value, float) and not math.isfinite(node.value):
            raise TemplateSyntaxError("the number is too large", node.lineno)
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - jinja2's way to name visitors
        size = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        turns: list[nodes.Expr] = [nodes.Const(size)]
        node.iter = nodes.Filter(node.iter, "_turns", turns, [], None, None, lineno=node.lineno)
        return node


def _turns(items: Iterable[Any], characters: int) -> Iterable[Any]:
    if isinstance(items, Undefined):
        str(items)  # which is where an undefined value fails
    return () if items is None else spent().turns(items, characters)


def _replaced(value: Any, old: str, new: str, count: object = None) -> int:
    text = str(value)
    return len(text) + (text.count(old) if old else len(text) + 1) * len(new)


def _formatted(value: Any, *given: Any, **named: Any) -> int:
    """The widths and precisions that a format asks for; `*` and nested fields take them from the values."""
    text = str(value)
    return MAX_TEXT + 1 if re.search(r"%[^a-z]*\*|\{[^}]*\{", text) else sum(map(int, re.findall(r"\d+", text)))


def _indented(value: str, width: int | str = 4, *_: Any, **__: Any) -> int:
    return len(value) + (value.count("\n") + 1) * (width if isinstance(width, int) else len(width))


_SIZES: Mapping[str, Callable[..., int]] = {
    "center": lambda value, width=80: max(len(value), width),
    "indent": _indented,
    "replace": _replaced,
    "format": _formatted,
    "batch": lambda value, linecount, fill_with=None: linecount,
    "slice": lambda value, slices, fill_with=None: slices,
}
_METHODS: Mapping[str, Callable[..., int]] = {
    **{name: lambda text, width, fill=" ": width for name in ("center", "ljust", "rjust", "zfill")},
    "expandtabs": lambda text, size=8: len(text) * size,
    "replace": _replaced,
    "format": _formatted,
    "format_map": _formatted,
    "join": lambda text, parts: sum(len(part) + len(text) for part in parts),
    "translate": lambda text, table: MAX_TEXT + 1,
}


def check_call(called: Any, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Refuse a method of a text whose result would not fit."""
    spent().step()
    owner = getattr(getattr(called, "__wrapped__", called), "__self__", None)
    size = _METHODS.get(getattr(called, "__name__", "")) if isinstance(owner, str) else None
    if size is not None:
        spent().fits(size(owner, *given, **named))


def _sized(name: str, size: Callable[..., int]) -> Callable[..., Any]:
    """Jinja2's own filter, for what fits."""
    theirs = FILTERS[name]
    first = 1 if hasattr(theirs, "jinja_pass_arg") else 0

    @wraps(theirs)
    def wrapped(*given: Any, **named: Any) -> Any:
        spent().fits(size(*given[first:], **named))
        return theirs(*given, **named)

    return wrapped


@wraps(FILTERS["join"])
def _joined(context: Any, value: Any, d: str = "", attribute: Any = None) -> Any:
    parts = value if isinstance(value, Undefined) else list(value)
    spent().weigh(parts)
    return FILTERS["join"](context, parts, d, attribute)


BOUNDED: Mapping[str, Callable[..., Any]] = {
    **{name: _sized(name, size) for name, size in _SIZES.items()},
    "join": _joined,
    "_turns": _turns,
}
"""Filters instead of those of Jinja2, whose results have a bound."""
