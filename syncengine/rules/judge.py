"""Compile the expressions and messages of rules, and find the changes for which each rule is true.

Expressions work as `when:` in manifests does, with the same sandbox and limits. They see only the change, and no
variables, environment or files. Rules that fail raise `Problems`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from syncengine.document.diagnostics import Collector, in_order
from syncengine.document.nodes import place
from syncengine.document.validation import names_of
from syncengine.errors import Diagnostic, Problems
from syncengine.manifest.generate.scalars import Compiled, Leaf, first_line
from syncengine.resource import Kind
from syncengine.rules.model import (
    EMPTY,
    MetadataView,
    NoResource,
    PolicyRule,
    RuleKind,
    RuleMatch,
    RuleSet,
    Subject,
)
from syncengine.rules.read import ExpectedSummary
from syncengine.templating.bounds import Allowance
from syncengine.templating.filters import plain_text
from syncengine.templating.names import Scope, Shape, unknown_fields
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.troubles import SURPRISES, trouble

MOST = 100
"""The number of changes of one rule that get a message each. A person reads no more; a million fill memory."""
LONGEST = 1000
"""The largest number of characters in a message."""
RULE_TEXT = "rule-text"
"""The code of the error about a rule whose expression yields text."""

_PLAN = Shape("plan", {"summary": Shape("plan.summary", dict.fromkeys(names_of(ExpectedSummary)))})
_SOURCE = Shape("source", {"file": None, "line": None, "data": Shape("source.data", {"file": None, "row": None})})


def _scope(kind: RuleKind) -> Scope:
    """Return the names in templates of a kind of rule, with their known fields."""
    if kind is RuleKind.PLAN:
        return {"plan": _PLAN}
    fields = dict.fromkeys(EMPTY[Kind(kind.value)])
    sides = {side: Shape(side, fields) for side in ("before", "after")}
    return {**sides, "action": None, "address": None, "source": _SOURCE, "plan": _PLAN}


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


def compiled(rules: Iterable[PolicyRule], diagnostics: list[Diagnostic]) -> tuple[CompiledRule, ...]:
    """Compile the rules. Those with errors are left out, and their errors are added to `diagnostics`."""
    environment, found = RulesEnvironment(), list[CompiledRule]()
    for rule in rules:
        findings, before, scope = Collector(rule.file, diagnostics), len(diagnostics), _scope(rule.kind)
        templates = Compiled(environment, tuple(scope), findings)
        example = "after.category == 'closed'"
        condition = templates.condition(rule.condition.node(), rule.ruling.value, example, RULE_TEXT)
        message = None if rule.message is None else templates.leaf(rule.message.node())
        names = {**scope, **dict.fromkeys(("range", "dict", "namespace"))}
        for written, leaf in ((rule.condition, condition), (rule.message, message)):
            if written is not None and leaf is not None:
                node = written.node()
                for line, words in unknown_fields(environment.parse(leaf.text), names):
                    findings.at("unknown-name", first_line(node) + line - 1, place(node)[1], words)
        if condition is not None and len(diagnostics) == before:
            found.append(CompiledRule(rule, condition, message))
    return tuple(found)


@lru_cache(maxsize=4)
def _compiled(rules: tuple[PolicyRule, ...]) -> tuple[CompiledRule, ...]:
    """Return the compiled form of rules without errors. Two sides of a pull request and a test run ask again."""
    return compiled(rules, [])


def judge(
    rule_set: RuleSet, subjects: Iterable[Subject], count: int, summary: Mapping[str, int]
) -> tuple[RuleMatch, ...]:
    """Return the rules that are true for any of `count` changes or for the plan with this `summary`, in their order.

    Raise `Problems` with the first failure of each rule, which is not evaluated again.
    """
    plan = {"summary": summary}
    found: dict[PolicyRule, tuple[list[int], list[str]]] = {}
    problems: list[Diagnostic] = []
    running: dict[RuleKind, list[CompiledRule]] = {kind: [] for kind in RuleKind}
    for each in _compiled(rule_set.rules):
        running[each.rule.kind].append(each)

    def evaluate(each: CompiledRule, variables: Mapping[str, Any], position: int | None) -> None:
        rule, address = each.rule, variables.get("address")
        where = f" for {address}" if address else ""
        try:
            value = each.condition.value(variables)
            if not isinstance(value, str):
                if value:
                    positions, messages = found.setdefault(rule, ([], []))
                    positions += () if position is None else (position,)
                    if len(messages) < MOST:
                        text = plain_text(each.message.value(variables)) if each.message else ""
                        messages.append(" ".join(text.split())[:LONGEST])
                return
            cure = "compare the text, or test whether it `is not none`"
            code, message = RULE_TEXT, f"yields text{where} instead of true or false: {cure}"
            message = f"`{rule.ruling}` of rule {rule.name} {message}"
        except SURPRISES as error:
            code, message = "bad-rule", f"rule {rule.name} failed{where}: {trouble(error)}"
        running[rule.kind].remove(each)
        found.pop(rule, None)
        at = rule.condition
        Collector(rule.file, problems).at(code, at.line, at.column, message, address=address)

    with Allowance().spend(count):
        for each in tuple(running[RuleKind.PLAN]):
            evaluate(each, {"plan": plan}, None)
        for position, subject in enumerate(subjects):
            if rules := running[subject.kind]:
                variables = {**subject.variables(), "address": subject.address, "plan": plan}
                for each in tuple(rules):  # one that fails leaves the list
                    evaluate(each, variables, position)
    if problems:
        raise Problems(in_order(problems))
    return tuple(
        RuleMatch(rule, tuple(found[rule][0]), tuple(found[rule][1])) for rule in rule_set.rules if rule in found
    )
