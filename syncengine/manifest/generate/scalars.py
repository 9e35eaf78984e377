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

# Jinja2 parses and compiles a template before any limit of time or memory holds.
MAX_TEMPLATE = 100_000
RESULT = "_result"
"""The variable that a compiled function stores its results in, a name that no row can have."""


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
        if self.alone is None and self.statements:
            template = self.environment.from_string(self.environment.parse(self.text))
            too_large = f"a value would be larger than {MAX_TEXT:,} characters"
            self.alone = lambda variables: join_pieces(template.generate(variables), MAX_TEXT, too_large)
        elif self.alone is None:
            self.alone = function_of(self.environment, self.expression())
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


def without_undefined(value: Any) -> Any:
    """Return the value, with `None` for an `x if y` without `else`. Raise for any other undefined value."""
    if isinstance(value, StrictUndefined):
        str(value)
    return None if isinstance(value, Undefined) else value


def function_of(environment: TemplateSandbox, expression: nodes.Expr) -> Callable[[Mapping[str, Any]], Any]:
    """Return a compiled function that returns the value of an expression, not the text that a template would write."""
    body: list[nodes.Node] = [nodes.Assign(nodes.Name(RESULT, "store", lineno=1), expression, lineno=1)]
    template = environment.from_string(nodes.Template(body, lineno=1))
    render, context = template.root_render_func, template.new_context()
    names = context.parent  # a context of its own for each row would cost as much as the row

    def function(variables: Mapping[str, Any]) -> Any:
        names.update(variables)
        for _ in render(context):
            pass
        return context.vars[RESULT]

    return function


@dataclass(frozen=True, slots=True)
class Compiled:
    """The compiler of the templates in scalars. `names` are their variables; errors are reported to `findings`."""

    environment: TemplateSandbox
    names: tuple[str, ...]
    findings: Collector

    def leaf(self, node: Scalar, text: str = "") -> Leaf | None:
        """Return the template in a scalar, or of another `text` in its place; `None` if it has errors."""
        text, (line, column) = text or node.text, place(node)
        if len(text) > MAX_TEMPLATE:
            self.findings.error("bad-template", node, f"the template is longer than {MAX_TEMPLATE:,} characters")
            return None
        with self._reported(node):
            tree = self.environment.parse(text)
            self.environment.compile(self.environment.parse(text))
            statements = not all(isinstance(part, nodes.Output) for part in tree.body)
            unknown = unknown_names(tree, self.names)
            for where, message in unknown:
                hint = column_hint(node.text)
                self.findings.at("unknown-name", first_line(node) + where - 1, column, f"{message}{hint}")
            return None if unknown else Leaf(text, line, column, self.environment, statements)
        return None

    def condition(
        self, node: Scalar, setting: str = "when", example: str = "row.status == 'open'", code: str = "when-text"
    ) -> Leaf | None:
        """Return the expression of `setting`, bare or in {{ }}, or `None`. Text is an error with this `code`."""
        text = node.text.strip()
        if not text.startswith("{{"):
            is_expression = False
            with self._reported(node):
                # It is parsed without braces first, so that errors do not name them.
                parser = Parser(self.environment, text, state="variable")
                parser.parse_expression()
                if not parser.stream.eos:
                    behind = parser.stream.current
                    hint = "; did you mean `==`?" if behind.type == "assign" else ""
                    parser.fail(f"there is text after the expression{hint}", behind.lineno)
                is_expression = True
            if not is_expression:
                return None
            text = f"{{{{ ({text}\n) }}}}"
        leaf = self.leaf(node, text)
        if leaf is None:
            return None
        alone = None if leaf.statements else leaf.expression()
        is_text = isinstance(alone, nodes.Const) and isinstance(alone.value, str)
        if alone is None or is_text or (isinstance(alone, nodes.Filter) and alone.name == "~"):
            message = f"`{setting}` must be one expression that is true or false, such as `{example}`, not text"
            self.findings.error(code, node, message)
        return leaf

    @contextmanager
    def _reported(self, node: Scalar) -> Iterator[None]:
        """Report errors that are raised while a template is parsed or compiled."""
        try:
            yield
        except TemplateSyntaxError as error:
            at = first_line(node) + error.lineno - 1
            self.findings.at("bad-template", at, place(node)[1], syntax_trouble(error, self.environment, node.text))
        except (SyntaxError, RecursionError, MemoryError, ValueError, AssertionError) as error:
            self.findings.error("bad-template", node, f"the template is not valid: {trouble(error)}")


def first_line(node: Scalar) -> int:
    """Return the line on which a scalar's text begins: in a block scalar, the line after its indicator."""
    return place(node)[0] + (node.style in ("|", ">"))
