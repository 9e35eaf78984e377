"""Compile the expressions and messages of rules, and report the errors in them. Pure.

Expressions work as `when:` in manifests does, with the same sandbox and limits. They see only the change, and no
variables, environment or files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from jinja2 import Undefined

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Scalar, place
from syncengine.errors import Diagnostic
from syncengine.manifest.generate.scalars import Compiled, Leaf, first_line, tuple_of, without_undefined
from syncengine.resource import Kind
from syncengine.rules.model import PolicyRule
from syncengine.rules.schema import COUNTS, RuleKind
from syncengine.rules.subjects import EMPTY, MetadataView, NoResource
from syncengine.templating.filters import writable
from syncengine.templating.names import Scope, Shape, unknown_fields
from syncengine.templating.sandbox import TemplateSandbox

EXAMPLE = "after.category == 'closed'"
RULE_TEXT = "rule-text"
"""The code of the error about a rule whose expression yields text."""

_FREE = ("range", "dict", "namespace")
"""The names that every template has."""
_PLAN = Shape("plan", {"summary": Shape("plan.summary", dict.fromkeys(COUNTS))})
_SOURCE = Shape("source", {"file": None, "line": None, "data": Shape("source.data", {"file": None, "row": None})})


def _scope(kind: RuleKind) -> Scope:
    """Return the names in templates of a kind of rule, with their known fields."""
    if kind is RuleKind.PLAN:
        return {"plan": _PLAN}
    fields = dict.fromkeys(EMPTY[Kind(kind.value)])
    sides = {side: Shape(side, fields) for side in ("before", "after")}
    return {**sides, "action": None, "address": None, "source": _SOURCE, "plan": _PLAN}


SCOPES: Mapping[RuleKind, Scope] = {kind: _scope(kind) for kind in RuleKind}


class RulesEnvironment(TemplateSandbox):
    """The sandbox of rules, in which a field of a missing resource is none, and so is missing metadata."""

    def __init__(self) -> None:
        super().__init__()
        self.tests["none"] = lambda value: value is None or isinstance(value, NoResource)

    def _attribute(self, obj: Any, name: str) -> Any:
        if isinstance(obj, dict) and name in obj:
            return obj[name]
        if obj is None:
            return None
        if isinstance(obj, MetadataView) and not self.is_safe_attribute(obj, name):
            return None
        return super()._attribute(obj, name)


class CompiledRule(NamedTuple):
    """A rule with its compiled expression and message. `message` is `None` for a rule without one."""

    rule: PolicyRule
    condition: Leaf
    message: Leaf | None


class CompiledRules(NamedTuple):
    """The compiled rules of each kind, in one environment."""

    environment: RulesEnvironment
    by_kind: Mapping[RuleKind, tuple[CompiledRule, ...]]

    def truths(self, rules: Iterable[CompiledRule]) -> Callable[[Mapping[str, Any]], list[bool]]:
        """Return one function that evaluates the expressions of all `rules` for given variables."""
        function = tuple_of(self.environment, [rule.condition.expression() for rule in rules])

        def run(variables: Mapping[str, Any]) -> list[bool]:
            return [value if value is True or value is False else truth(value) for value in function(variables)]

        return run


class RuleText(ValueError):
    """The expression of a rule yields text instead of true or false."""


def truth(value: Any) -> bool:
    """Return whether an expression's value counts as true. Raise `RuleText` for text."""
    if isinstance(value, Undefined):
        value = without_undefined(value)
    if isinstance(value, str):
        raise RuleText
    return bool(writable(value))


def compiled(rules: Iterable[PolicyRule], diagnostics: list[Diagnostic]) -> CompiledRules:
    """Compile the rules. Those with errors are left out, and their errors are added to `diagnostics`."""
    environment = RulesEnvironment()
    by_kind: dict[RuleKind, list[CompiledRule]] = defaultdict(list)
    for rule in rules:
        findings, before = Collector(rule.file, diagnostics), len(diagnostics)
        templates = Compiled(environment, tuple(SCOPES[rule.kind]), findings)
        condition = templates.condition(rule.condition.node(), rule.ruling.value, EXAMPLE, RULE_TEXT)
        if rule.message is not None:
            templates.leaf(rule.message.node())
        message = next(iter(templates.leaves), None)
        for written, leaf in ((rule.condition, condition), (rule.message, message)):
            if written is not None and leaf is not None:
                _check_fields(written.node(), leaf, rule.kind, findings)
        if condition is not None and len(diagnostics) == before:
            by_kind[rule.kind].append(CompiledRule(rule, condition, message))
    return CompiledRules(environment, {kind: tuple(some) for kind, some in by_kind.items()})


def _check_fields(node: Scalar, leaf: Leaf, kind: RuleKind, findings: Collector) -> None:
    scope = {**SCOPES[kind], **dict.fromkeys(_FREE)}
    for line, message in unknown_fields(leaf.environment.parse(leaf.text), scope):
        findings.at("unknown-name", first_line(node) + line - 1, place(node)[1], message)
