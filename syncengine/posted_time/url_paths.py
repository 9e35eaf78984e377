"""Templates of URL paths, in which values are percent-encoded and the project's own text is left unchanged. Pure.

So no value can begin a new segment, begin a query or lead to a parent, whatever a tag is called. Literal text in an
expression is the project's own text: `{{ '/time?draft=1' if tag }}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from jinja2 import nodes
from jinja2.filters import do_urlencode
from jinja2.loaders import BaseLoader
from jinja2.visitor import NodeTransformer

from syncengine.templating.deliveries import DeliverySandbox, Fields
from syncengine.templating.filters import Filter

UPWARDS = frozenset({".", ".."})


class Quoting(NodeTransformer):
    """A visitor that makes a template percent-encode every value that it writes into a path."""

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802 - jinja2's way to name visitors
        node.nodes = [_quoting(part) for part in node.nodes]
        return node


def _quoting(part: nodes.Expr) -> nodes.Expr:
    match part:
        case nodes.TemplateData():
            return part
        case nodes.Const() if isinstance(part.value, str):
            return part
        case nodes.CondExpr():
            otherwise = nodes.Const("") if part.expr2 is None else _quoting(part.expr2)
            return nodes.CondExpr(part.test, _quoting(part.expr1), otherwise, lineno=part.lineno)
        case nodes.Concat():
            return nodes.Concat([_quoting(inner) for inner in part.nodes], lineno=part.lineno)
        case nodes.Filter() if part.name == "urlencode":
            return nodes.Filter(part.node, "encoded value", [], [], None, None, lineno=part.lineno)
        case _:
            return nodes.Filter(part, "quoted value", [], [], None, None, lineno=part.lineno)


class PathSandbox(DeliverySandbox):
    """A template sandbox that percent-encodes every value, also in included templates."""

    rewritings = (Quoting, *DeliverySandbox.rewritings)

    def __init__(self, fields: Fields, filters: Mapping[str, Filter], loader: BaseLoader) -> None:
        super().__init__(fields, {**filters, "quoted value": self._quoted, "encoded value": self._encoded}, loader)

    def _quoted(self, value: Any) -> str:
        """Return a value as one piece of a path or query, with all but letters, digits and `-._~` percent-encoded."""
        return quote(str(self.finalized(value)), safe="")

    def _encoded(self, value: Any) -> str:
        """Return the result of the filter `urlencode`: a query for a mapping or pairs, else an encoded value."""
        is_query = isinstance(value, Iterable) and not isinstance(value, str)
        return do_urlencode(value) if is_query else self._quoted(value)


def upwards(path: str) -> str | None:
    """Return the first segment that a reader may take for `.` or `..`, even encoded or with parameters, or `None`."""
    plain = unquote(path.partition("#")[0].partition("?")[0]).replace("\\", "/")
    return next((part for part in plain.split("/") if part.partition(";")[0] in UPWARDS), None)


def unfit(template: nodes.Template) -> str | None:
    """Return the reason why a template can never render a valid path, or `None`."""
    texts = [text.data for text in template.find_all(nodes.TemplateData)]
    is_constant = all(isinstance(part, nodes.Output) for part in template.body) and len(texts) == len(_parts(template))
    if not all(map(str.isprintable, texts)):
        return "a path must be one line of printable characters"
    if any(upwards(text if is_constant else f"-{text}-") for text in texts):  # a value may extend either end
        return "a path must not contain the segments `.` or `..`"
    return None


def _parts(template: nodes.Template) -> list[nodes.Expr]:
    return [part for output in template.find_all(nodes.Output) for part in output.nodes]
