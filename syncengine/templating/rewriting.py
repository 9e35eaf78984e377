"""A parsed template → the template with its loops, texts, slices and comparisons charged to a budget. Pure."""

from __future__ import annotations

import math
from typing import cast

from jinja2 import TemplateSyntaxError, nodes
from jinja2.visitor import NodeTransformer


class Bounded(NodeTransformer):
    """A rewriting that charges loops, joined texts, slices and comparisons to the budget, and rejects huge numbers."""

    def visit_Const(self, node: nodes.Const) -> nodes.Node:  # noqa: N802 - jinja2's way to name visitors
        if isinstance(node.value, float) and not math.isfinite(node.value):
            raise TemplateSyntaxError("the number is too large", node.lineno)
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - as above
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

    def _visit_loading(self, node: nodes.Include | nodes.Import | nodes.FromImport | nodes.Extends) -> nodes.Node:
        """Rewrite a list of template names so that it is evaluated as the template runs."""
        self.generic_visit(node)
        if isinstance(node.template, nodes.List | nodes.Tuple):
            node.template = filtered(node.template, "_kept")
        return node

    visit_Include = visit_Import = visit_FromImport = visit_Extends = _visit_loading  # noqa: N815 - as above

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        node.filter = filtered(cast("nodes.Node", node.filter), "_kept")
        return node


def _is_constant(node: nodes.Node) -> bool:
    """Return whether a node is a literal, so that comparing with it is fast."""
    if isinstance(node, nodes.List | nodes.Tuple):
        return all(isinstance(item, nodes.Const) for item in node.items)
    return isinstance(node, nodes.Const)


def filtered(node: nodes.Node, name: str, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(
        cast("nodes.Expr", node), name, list(arguments), [], None, None, lineno=getattr(node, "lineno", 1)
    )


def is_internal(name: object) -> bool:
    """Return whether a filter may be added to templates only by rewriting, because it trusts its arguments."""
    return isinstance(name, str) and name.startswith("_")
