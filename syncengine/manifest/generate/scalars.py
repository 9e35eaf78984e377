"""Templates in scalars → one function for all of a block; each is compiled once (docs/manifests-from-data.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined, nodes
from jinja2.parser import Parser

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Scalar, place
from syncengine.templating.budget import MAX_TEXT, Budget, OutOfBounds, joined
from syncengine.templating.environment import SandboxedEnvironment
from syncengine.templating.filters import checked
from syncengine.templating.names import unknown_names
from syncengine.templating.rewriting import filtered
from syncengine.templating.troubles import syntax_trouble, trouble

MAX_TEMPLATE = 100_000
RESULT = "_result"
"""A name that no row can have."""
ITEM = 64
"""What an item of a list counts as, besides its characters."""
_UNCOMPILABLE = (SyntaxError, RecursionError, MemoryError, ValueError, AssertionError)


@dataclass(slots=True)
class Leaf:
    """A template that stands in one scalar, and its place; the function of it alone is made when it is asked for."""

    text: str
    line: int
    column: int
    environment: SandboxedEnvironment
    statements: bool = False
    alone: Callable[[Mapping[str, Any]], Any] | None = None

    def value(self, given: Mapping[str, Any]) -> Any:
        """What it comes to: of an expression its own type, else text. An undefined value fails."""
        if self.alone is None:
            self.alone = self._compiled()
        budget = self.environment.another()
        value = self.alone(given)
        if type(value) is bool or type(value) is str:
            return value
        value = settled(value)
        budget.weigh(value)
        return checked(value)

    def expression(self) -> nodes.Expr:
        """A new tree of it, as one expression."""
        tree = self.environment.parse(self.text)
        said = [part for output in tree.body for part in output.nodes]  # type: ignore[attr-defined] # all are Output
        marked = [part for part in said if not isinstance(part, nodes.TemplateData)]
        if len(said) == len(marked) == 1:
            return cast("nodes.Expr", marked[0])
        parts: list[nodes.Expr] = [
            nodes.Const(part.data) if isinstance(part, nodes.TemplateData) else part for part in said
        ]
        return filtered(nodes.List(parts, lineno=1), "_joined")

    def _compiled(self) -> Callable[[Mapping[str, Any]], Any]:
        if not self.statements:
            function = tuple_of(self.environment, [self.expression()])
            return lambda given: function(given)[0]
        template = self.environment.from_string(self.environment.parse(self.text))
        too_large = f"a value would be larger than {MAX_TEXT:,} characters"
        return lambda given: joined(template.generate(given), MAX_TEXT, too_large)


def settled(value: Any) -> Any:
    """`x if y` without an else is none; any other undefined value fails."""
    if isinstance(value, StrictUndefined):
        str(value)
    return None if isinstance(value, Undefined) else value


def tuple_of(
    environment: SandboxedEnvironment, expressions: list[nodes.Expr]
) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """One function of all expressions."""
    target = nodes.Name(RESULT, "store", lineno=1)
    body: list[nodes.Node] = [nodes.Assign(target, nodes.Tuple(expressions, "load", lineno=1), lineno=1)]
    template = environment.from_string(nodes.Template(body, lineno=1))
    render, context = template.root_render_func, template.new_context()
    names = context.parent  # a context of its own for each row would cost as much as the row

    def function(given: Mapping[str, Any]) -> tuple[Any, ...]:
        names.update(given)
        for _ in render(context):
            pass
        found: tuple[Any, ...] = context.vars[RESULT]
        return found

    return function


class Compiled:
    """The templates of a block, in the order they were met; the index of each is its place in a row's results."""

    def __init__(self, environment: SandboxedEnvironment, names: tuple[str, ...], findings: Collector) -> None:
        self._environment = environment
        self._names = names
        self._findings = findings
        self.leaves: list[Leaf] = []

    def leaf(self, node: Scalar) -> int:
        """Register a template; one that is wrong is told and stands for nothing."""
        made = self._leaf(node.text, node)
        if made is not None:
            self.leaves.append(made)
        return len(self.leaves) - 1

    def condition(self, node: Scalar) -> Leaf | None:
        """An expression, bare or in {{ }}."""
        bare = node.text.strip()
        if not bare.startswith("{{") and not self._is_expression(bare, node):
            return None
        made = self._leaf(bare if bare.startswith("{{") else f"{{{{ ({bare}\n) }}}}", node)
        if made is None:
            return None
        one = not made.statements and not (
            isinstance(expression := made.expression(), nodes.Filter) and expression.name == "_joined"
        )
        alone = made.expression() if one else None
        if alone is None or (isinstance(alone, nodes.Const) and isinstance(alone.value, str)):
            message = "`when` must be one expression that is true or false, like `row.status == 'open'`, not text"
            self._findings.error("when-text", node, message)
        return made

    def _is_expression(self, bare: str, node: Scalar) -> bool:
        """Looked at alone, so that what is wrong is said of it and not of what is put around it."""
        parser = Parser(self._environment, bare, state="variable")
        with self._told(node):
            parser.parse_expression()
            if not parser.stream.eos:
                behind = parser.stream.current
                hint = "; is `==` meant?" if behind.type == "assign" else ""
                parser.fail(f"there is more behind the expression{hint}", behind.lineno)
            return True
        return False

    @contextmanager
    def _told(self, node: Scalar) -> Iterator[None]:
        """Tell of what a template cannot be read or compiled for, and leave the block."""
        try:
            yield
        except TemplateSyntaxError as error:
            at = _first_line(node) + error.lineno - 1
            self._findings.at("bad-template", at, place(node)[1], syntax_trouble(error, self._environment))
        except _UNCOMPILABLE as error:
            self._findings.error("bad-template", node, f"the template is wrong: {trouble(error)}")

    def _leaf(self, text: str, node: Scalar) -> Leaf | None:
        line, column = place(node)
        if len(text) > MAX_TEMPLATE:
            self._findings.error("bad-template", node, "the template is too long")
            return None
        with self._told(node):
            tree = self._environment.parse(text)
            self._environment.compile(self._environment.parse(text))
            statements = not all(isinstance(part, nodes.Output) for part in tree.body)
            unknown = unknown_names(tree, self._names)
            for where, message in unknown:
                self._findings.at("unknown-name", _first_line(node) + where - 1, column, message)
            return None if unknown else Leaf(text, line, column, self._environment, statements)
        return None

    def function(self) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
        """All of them, of one row."""
        plain = [n for n, leaf in enumerate(self.leaves) if not leaf.statements]
        others = [n for n, leaf in enumerate(self.leaves) if leaf.statements]
        together = tuple_of(self._environment, [self.leaves[n].expression() for n in plain])
        if not others:
            return self._budgeted(together)
        order = {n: position for position, n in enumerate([*plain, *others])}
        alone = [self.leaves[n] for n in others]

        def function(given: Mapping[str, Any]) -> tuple[Any, ...]:
            found = (*together(given), *(leaf.value(given) for leaf in alone))
            return tuple(found[order[n]] for n in range(len(found)))

        return self._budgeted(function)

    def _budgeted(
        self, function: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    ) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
        environment = self._environment

        def run(given: Mapping[str, Any]) -> tuple[Any, ...]:
            environment.another()
            found = function(given)
            environment.written += sum(len(v) if type(v) is str else _size(environment.budget, v) for v in found)
            if environment.written > environment.bound:
                raise OutOfBounds(f"all rows of the block come to more than {environment.bound // 1024 // 1024} MB")
            return found

        return run


def _first_line(node: Scalar) -> int:
    """Where the text begins: of a block behind its indicator."""
    return place(node)[0] + (node.style in ("|", ">"))


def _size(budget: Budget, value: Any) -> int:
    """Characters of a value, its items among them."""
    if type(value) is int:
        return 0
    before = budget.characters
    parts = budget.weigh(value)
    return budget.characters - before + ITEM * (parts - 1)
