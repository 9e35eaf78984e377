"""The templates in a block's scalars → functions of a row, each compiled once (docs/manifests-from-data.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined, nodes
from jinja2.parser import Parser

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Scalar, place
from syncengine.templating.bounds import MAX_TEXT, join_pieces, weighed
from syncengine.templating.filters import writable
from syncengine.templating.names import unknown_names
from syncengine.templating.sandbox import TemplateSandbox, filtered
from syncengine.templating.troubles import column_hint, syntax_trouble, trouble

MAX_TEMPLATE = 100_000
RESULT = "_result"
"""The variable that a compiled function stores its results in, a name that no row can have."""
_UNCOMPILABLE = (SyntaxError, RecursionError, MemoryError, ValueError, AssertionError)


@dataclass(slots=True)
class Leaf:
    """A template in one scalar, and its place. Its own function is compiled when it is first called."""

    text: str
    line: int
    column: int
    environment: TemplateSandbox
    statements: bool = False
    alone: Callable[[Mapping[str, Any]], Any] | None = None

    def value(self, variables: Mapping[str, Any]) -> Any:
        """Return the template's value. Only an expression keeps its type; anything else is text. Raise if undefined."""
        if self.alone is None:
            self.alone = self._compiled()
        value = self.alone(variables)
        if type(value) is bool or type(value) is str:
            return value
        return writable(weighed(without_undefined(value)))

    def expression(self) -> nodes.Expr:
        """Return a new syntax tree of the template as one expression."""
        tree = self.environment.parse(self.text)
        pieces = [part for output in tree.body for part in output.nodes]  # type: ignore[attr-defined] # all are Output
        marked = [part for part in pieces if not isinstance(part, nodes.TemplateData)]
        if len(pieces) == len(marked) == 1:
            return cast("nodes.Expr", marked[0])
        parts: list[nodes.Expr] = [
            nodes.Const(part.data) if isinstance(part, nodes.TemplateData) else part for part in pieces
        ]
        return filtered(nodes.List(parts, lineno=1), "~")

    def _compiled(self) -> Callable[[Mapping[str, Any]], Any]:
        if not self.statements:
            function = tuple_of(self.environment, [self.expression()])
            return lambda variables: function(variables)[0]
        template = self.environment.from_string(self.environment.parse(self.text))
        too_large = f"a value would be larger than {MAX_TEXT:,} characters"
        return lambda variables: join_pieces(template.generate(variables), MAX_TEXT, too_large)


def without_undefined(value: Any) -> Any:
    """Return the value, with `None` for an `x if y` without `else`. Raise for any other undefined value."""
    if isinstance(value, StrictUndefined):
        str(value)
    return None if isinstance(value, Undefined) else value


def tuple_of(
    environment: TemplateSandbox, expressions: list[nodes.Expr]
) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Return one compiled function that returns the values of all expressions."""
    target = nodes.Name(RESULT, "store", lineno=1)
    body: list[nodes.Node] = [nodes.Assign(target, nodes.Tuple(expressions, "load", lineno=1), lineno=1)]
    template = environment.from_string(nodes.Template(body, lineno=1))
    render, context = template.root_render_func, template.new_context()
    names = context.parent  # a context of its own for each row would cost as much as the row

    def function(variables: Mapping[str, Any]) -> tuple[Any, ...]:
        names.update(variables)
        for _ in render(context):
            pass
        values: tuple[Any, ...] = context.vars[RESULT]
        return values

    return function


class Compiled:
    """The templates of a block. The index of each is its place in a row's results."""

    def __init__(self, environment: TemplateSandbox, names: tuple[str, ...], findings: Collector) -> None:
        self._environment = environment
        self._names = names
        self._findings = findings
        self.leaves: list[Leaf] = []

    def leaf(self, node: Scalar) -> int:
        """Register a template, and return its index. A template with errors is reported instead."""
        leaf = self._leaf(node.text, node)
        if leaf is not None:
            self.leaves.append(leaf)
        return len(self.leaves) - 1

    def condition(
        self, node: Scalar, setting: str = "when", example: str = "row.status == 'open'", code: str = "when-text"
    ) -> Leaf | None:
        """Return the expression of `setting`, bare or in {{ }}, or `None`. Text is an error with this `code`."""
        bare = node.text.strip()
        if not bare.startswith("{{") and not self._is_expression(bare, node):
            return None
        leaf = self._leaf(bare if bare.startswith("{{") else f"{{{{ ({bare}\n) }}}}", node)
        if leaf is None:
            return None
        one = not leaf.statements and not (
            isinstance(expression := leaf.expression(), nodes.Filter) and expression.name == "~"
        )
        alone = leaf.expression() if one else None
        if alone is None or (isinstance(alone, nodes.Const) and isinstance(alone.value, str)):
            message = f"`{setting}` must be one expression that is true or false, such as `{example}`, not text"
            self._findings.error(code, node, message)
        return leaf

    def _is_expression(self, bare: str, node: Scalar) -> bool:
        """Return whether the text is an expression. It is parsed without braces, so that errors do not name them."""
        parser = Parser(self._environment, bare, state="variable")
        with self._reported(node):
            parser.parse_expression()
            if not parser.stream.eos:
                behind = parser.stream.current
                hint = "; did you mean `==`?" if behind.type == "assign" else ""
                parser.fail(f"there is text after the expression{hint}", behind.lineno)
            return True
        return False

    @contextmanager
    def _reported(self, node: Scalar) -> Iterator[None]:
        """Report errors that are raised while a template is parsed or compiled."""
        try:
            yield
        except TemplateSyntaxError as error:
            at = first_line(node) + error.lineno - 1
            self._findings.at("bad-template", at, place(node)[1], syntax_trouble(error, self._environment, node.text))
        except _UNCOMPILABLE as error:
            self._findings.error("bad-template", node, f"the template is not valid: {trouble(error)}")

    def _leaf(self, text: str, node: Scalar) -> Leaf | None:
        line, column = place(node)
        if len(text) > MAX_TEMPLATE:
            self._findings.error("bad-template", node, f"the template is longer than {MAX_TEMPLATE:,} characters")
            return None
        with self._reported(node):
            tree = self._environment.parse(text)
            self._environment.compile(self._environment.parse(text))
            statements = not all(isinstance(part, nodes.Output) for part in tree.body)
            unknown = unknown_names(tree, self._names)
            for where, message in unknown:
                hint = column_hint(node.text)
                self._findings.at("unknown-name", first_line(node) + where - 1, column, f"{message}{hint}")
            return None if unknown else Leaf(text, line, column, self._environment, statements)
        return None


def first_line(node: Scalar) -> int:
    """Return the line on which a scalar's text begins: in a block scalar, the line after its indicator."""
    return place(node)[0] + (node.style in ("|", ">"))
