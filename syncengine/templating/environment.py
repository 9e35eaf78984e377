"""Templates and expressions of manifests → compiled, in a sandbox of names that are allowed and work that is bounded.

Everything here is an allow list: attributes by type, filters, functions. What is not in it is undefined; so there is
nothing to escape to (`__class__`, a format string, a loader). Budgets are in `budget`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from typing import Any, cast

from jinja2 import (
    StrictUndefined,
    TemplateError,
    TemplateRuntimeError,
    TemplateSyntaxError,
    Undefined,
    nodes,
    pass_context,
)
from jinja2.environment import TemplateModule
from jinja2.filters import _GroupTuple
from jinja2.loaders import BaseLoader
from jinja2.runtime import BlockReference, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from syncengine.document.diagnostics import suggestion
from syncengine.templating.budget import (
    MAX_SECONDS,
    MAX_SOUGHT,
    Budget,
    OutOfBounds,
    TooMuch,
    bounded_range,
    check_number,
    check_operation,
    clock,
    size_of,
    steps_of,
)
from syncengine.templating.filters import plain_text
from syncengine.templating.metering import comparable, filters_of, tests_of
from syncengine.templating.values import Named, Record

MARKS = ("{{", "{%", "{#")
SURPRISES = (
    *(TemplateError, TooMuch, ArithmeticError, TypeError, ValueError, LookupError, AttributeError),
    *(RecursionError, MemoryError, AssertionError, re.error),
)
"""What a template can end in; of SyntaxError when it is compiled."""

_TEXT = frozenset(
    "upper lower title capitalize casefold swapcase strip lstrip rstrip startswith endswith split rsplit splitlines "  # noqa: SIM905 - words
    "partition rpartition removeprefix removesuffix find rfind index rindex count isdigit isalpha isalnum isnumeric "
    "isdecimal isupper islower istitle isspace isascii isidentifier replace join".split()
)
_TIME = frozenset(
    "year month day hour minute second microsecond date time isoformat weekday isoweekday timestamp".split()  # noqa: SIM905 - words
)
_ATTRIBUTES: Mapping[type, frozenset[str]] = {
    str: _TEXT,
    dict: frozenset({"get", "items", "keys", "values"}),
    list: frozenset({"index", "count"}),
    tuple: frozenset({"index", "count"}),
    _GroupTuple: frozenset({"grouper", "list"}),
    datetime: _TIME,
    date: _TIME,
    time: _TIME,
}
_OF_JINJA = (LoopContext, Macro, BlockReference, TemplateModule, Namespace)
_LOOP = frozenset(
    "index index0 revindex revindex0 first last length depth depth0 previtem nextitem cycle changed".split()  # noqa: SIM905 - words
)


class SandboxedEnvironment(ImmutableSandboxedEnvironment):
    """One for each file; `budget` is what the file has left."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, loader: BaseLoader | None = None, clock: Callable[[], float] = clock) -> None:
        super().__init__(
            undefined=StrictUndefined,
            autoescape=False,
            optimized=False,  # nothing is evaluated before there is a budget for it
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            cache_size=50,
            loader=loader,
            finalize=self._shown,
        )
        self.written = self.steps = 0
        self._clock = clock
        self.begin(clock() + MAX_SECONDS)
        self.filters = {**filters_of(lambda: self.budget), **self._own_filters()}
        self.tests.update(tests_of(lambda: self.budget))
        self.globals = {"range": bounded_range, "dict": dict, "namespace": Namespace}

    def begin(self, deadline: float, rows: int = 0) -> None:
        """Set what all rows of a block may do together, or what a file may."""
        self.deadline, self.most_steps, self.bound = deadline, steps_of(rows), size_of(rows)
        self.budget = Budget(deadline, self._clock)

    def another(self) -> Budget:
        """The budget of what comes next in a block; OutOfBounds where all before have left nothing of the block's."""
        self.steps += self.budget.spent
        budget = self.budget = Budget(self.deadline, self._clock)
        if self.steps > self.most_steps:
            raise OutOfBounds(f"the block needs more than {self.most_steps:,} turns of loops and calls for all rows")
        budget.is_in_time()
        return budget

    def _own_filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "_turns": self._turns,
            "_joined": self._joined,
            "_kept": lambda value: self.budget.took(value),
            "_part": self._slice,
            "_comparable": lambda value: comparable(self.budget, value),
        }

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        read = super()._parse(source, name, filename)
        for used in read.find_all(nodes.Filter):
            if _is_internal(used.name):
                raise TemplateSyntaxError(f"No filter named {used.name!r}.", used.lineno, name, filename)
        tree: nodes.Template = _Bounded().visit(read)
        return tree

    def call_filter(self, name: str, *given: Any, **named: Any) -> Any:
        """Of one that is named as the template runs, by `map`."""
        if _is_internal(name):
            raise TemplateRuntimeError(f"No filter named {name!r}.")
        return super().call_filter(name, *given, **named)

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._part(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Undefined) or (isinstance(argument, str) and not isinstance(obj, str)):
            return self._part(obj, argument)
        if isinstance(obj, dict | list | tuple | str):
            comparable(self.budget, argument)
            try:
                return obj[argument]
            except (LookupError, TypeError):
                pass
        return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        check_operation(self.budget, operator, left, right)
        found = super().call_binop(context, operator, left, right)
        check_number(found)
        return found

    def call(self, __context: Any, __obj: Any, *given: Any, **named: Any) -> Any:
        self.budget.step()
        if not isinstance(__obj, Macro):
            self._check_call(getattr(__obj, "__self__", None), given)
        return self.budget.took(super().call(__context, __obj, *given, **named))

    def _check_call(self, owner: Any, given: tuple[Any, ...]) -> None:
        """Of a method: it may compare what it is given with all that its owner holds."""
        if isinstance(owner, str):
            self.budget.works(len(owner))
            if any(isinstance(text, str) and len(text) > MAX_SOUGHT for text in given):
                raise TooMuch(f"a text to look for is longer than {MAX_SOUGHT:,} characters")
        elif isinstance(owner, list | tuple):
            self.budget.weigh(owner, is_written=False)
        for value in given:
            comparable(self.budget, value)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return not attr.startswith("_")

    def is_safe_callable(self, obj: Any) -> bool:
        """Whatever can be named may be called: attributes are allowed one by one."""
        return True

    def _part(self, obj: Any, name: str) -> Any:
        kind = type(obj)
        if kind is Record or kind is Named or kind is dict:
            if name in obj:
                return obj[name]
            if kind is Named:
                return self.undefined(hint=obj.missing(name))
            if kind is Record and name not in _ATTRIBUTES[dict]:
                return self.undefined(hint=obj.missing(name))
            kind = dict
        if name in _ATTRIBUTES.get(kind, ()):
            if kind is str and name in ("replace", "join"):
                return self._checked_method(obj, name)
            return getattr(obj, name)
        if isinstance(obj, _OF_JINJA) and not name.startswith("_"):
            return self._of_jinja(obj, name)
        if isinstance(obj, Undefined):
            str(obj)  # which is where an undefined value fails: it names what is missing
        return self.undefined(obj=obj, name=name)

    def _of_jinja(self, obj: Any, name: str) -> Any:
        if isinstance(obj, LoopContext) and name in _LOOP:
            return getattr(obj, name)
        if isinstance(obj, Namespace):
            return getattr(obj, name, self.undefined(obj=obj, name=name))
        if isinstance(obj, TemplateModule) and isinstance(found := getattr(obj, name, None), Macro | str):
            return found
        if isinstance(obj, BlockReference) and name == "super":
            return obj.super
        return self.undefined(obj=obj, name=name)

    def _checked_method(self, text: str, name: str) -> Callable[..., Any]:
        if name == "join":
            return lambda items: self.filters["join"](items, text)
        return lambda old, new: self.filters["replace"](text, old, new)

    @pass_context
    def _shown(self, _: object, value: Any) -> str:
        """What is written of a value; with a context, so that Jinja2 finds nothing out when it compiles."""
        return self._written(value)

    def _written(self, value: Any) -> str:
        if type(value) is not str:
            self.budget.weigh(value)
            value = plain_text(value)
        self.budget.wrote(len(value))
        return str(value)

    def _slice(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        if isinstance(value, Undefined):
            str(value)
        if not isinstance(value, str | list | tuple | range):
            raise TypeError("only texts and lists have parts like `[1:]`")
        return self.budget.took(value[start:stop:step])

    def _turns(self, items: Iterable[Any], characters: int) -> Iterable[Any]:
        if isinstance(items, Undefined):
            str(items)
        return self.budget.turns(items, characters)

    def _joined(self, parts: list[Any]) -> str:
        texts = [part if type(part) is str else self._written(part) for part in parts]
        self.budget.fits(sum(map(len, texts)))
        return "".join(texts)


class _Bounded(NodeTransformer):
    """Loops take turns, and texts are put together, under the budget."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - jinja2's way to name visitors
        size = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        node.iter = filtered(node.iter, "_turns", nodes.Const(size))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        return filtered(nodes.List(node.nodes, lineno=node.lineno), "_joined")

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return filtered(node.node, "_part", *(each or nodes.Const(None, lineno=node.lineno) for each in bounds))

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        sides = (node.expr, *(operand.expr for operand in node.ops))
        if sum(not _is_constant(side) for side in sides) > 1:
            node.expr = filtered(node.expr, "_comparable")
            for operand in node.ops:
                operand.expr = filtered(operand.expr, "_comparable")
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        if not isinstance(node.key, nodes.Const):
            node.key = filtered(node.key, "_comparable")
        return node

    def _visit_loading(self, node: Any) -> nodes.Node:
        """Which of several templates it is, is known as it runs."""
        self.generic_visit(node)
        if isinstance(node.template, nodes.List | nodes.Tuple):
            node.template = filtered(node.template, "_kept")
        return cast("nodes.Node", node)

    visit_Include = visit_Import = visit_FromImport = visit_Extends = _visit_loading  # noqa: N815 - as above

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        node.filter = filtered(cast("nodes.Node", node.filter), "_kept")
        return node


def _is_internal(name: object) -> bool:
    """Whether a filter is one of ours that only `_Bounded` and marks put into a template: they trust what is given."""
    return isinstance(name, str) and name.startswith("_")


def _is_constant(node: nodes.Node) -> bool:
    """Whether it is written out, so that a comparison with it ends soon."""
    if isinstance(node, nodes.List | nodes.Tuple):
        return all(isinstance(item, nodes.Const) for item in node.items)
    return isinstance(node, nodes.Const)


def filtered(node: nodes.Node, name: str, *given: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(cast("nodes.Expr", node), name, list(given), [], None, None, lineno=getattr(node, "lineno", 1))


def is_template(text: str) -> bool:
    return "{" in text and any(mark in text for mark in MARKS)


def unknown_names(tree: nodes.Template, known: Iterable[str]) -> list[tuple[int, str]]:
    """Names that nothing gives a value to, with their lines and a suggestion."""
    from jinja2.meta import TrackingCodeGenerator

    looking = TrackingCodeGenerator(cast("SandboxedEnvironment", tree.environment))
    looking.optimizer = None  # as `optimized=False`, which `find_undeclared_variables` does not ask for
    looking.visit(tree)
    missing = looking.undeclared_identifiers - {*known, "range", "dict", "namespace"}
    places = {n.name: n.lineno for n in reversed(list(tree.find_all(nodes.Name))) if n.name in missing}
    return [(places.get(name, 1), f"`{name}` is undefined{suggestion(name, known)}") for name in sorted(missing)]


_NO_SUCH = re.compile(r"No (filter|test) named '(\w+)'")


def syntax_trouble(error: TemplateSyntaxError, environment: SandboxedEnvironment) -> str:
    """What is wrong with a template, and the filter or test that was meant."""
    message = f"the template is wrong: {(error.message or '').rstrip('.')}"
    match = _NO_SUCH.search(message)
    if match is None:
        return message
    known = environment.filters if match[1] == "filter" else environment.tests
    named = [name for name in known if name.isidentifier() and not name.startswith("_")]
    return message + suggestion(match[2], named)


def trouble(error: BaseException) -> str:
    """What a template ended in, for a sentence."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply, or calls itself without end"
    if isinstance(error, MemoryError):
        return "it needs too much memory"
    return " ".join(str(error).split())[:300] or type(error).__name__
