"""Find the changes for which each rule is true. Rules that fail raise `Problems`.

The cost is linear in the changes: every expression is compiled once, and all rules of a kind are one function.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from jinja2 import Undefined

from syncengine.document.diagnostics import Collector, in_order
from syncengine.document.nodes import Scalar, place
from syncengine.errors import Diagnostic, Problems
from syncengine.manifest.generate.scalars import Compiled, Leaf, first_line, tuple_of, without_undefined
from syncengine.resource import Kind
from syncengine.rules.model import (
    COUNTS,
    EMPTY,
    MetadataView,
    NoResource,
    PolicyRule,
    RuleKind,
    RuleMatch,
    RuleSet,
    Subject,
)
from syncengine.templating.bounds import Allowance
from syncengine.templating.filters import plain_text, writable
from syncengine.templating.names import Scope, Shape, unknown_fields
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.troubles import SURPRISES, trouble

MOST = 100
"""The number of changes of one rule that get a message each."""
LONGEST = 1000
"""The largest number of characters in a message."""


def judge(
    rule_set: RuleSet, subjects: Iterable[Subject], count: int, summary: Mapping[str, int]
) -> tuple[RuleMatch, ...]:
    """Return the rules that are true for any of `count` changes or for the plan with this `summary`, in their order."""
    return _Judging(_compiled(rule_set.rules), {"summary": summary}).matches(rule_set.rules, subjects, count)


@lru_cache(maxsize=4)
def _compiled(rules: tuple[PolicyRule, ...]) -> CompiledRules:
    """Return the compiled form of rules without errors."""
    return compiled(rules, [])


class _Group(NamedTuple):
    """The rules of one kind, and the function that evaluates them."""

    rules: Sequence[CompiledRule]
    truths: Callable[[Mapping[str, Any]], list[bool]]

    @classmethod
    def of(cls, compiled_rules: CompiledRules, rules: Sequence[CompiledRule]) -> _Group:
        return cls(rules, compiled_rules.truths(rules))


class _Judging:
    """One judgement of a plan, which evaluates no rule again that failed once."""

    def __init__(self, rules: CompiledRules, plan: Mapping[str, Any]) -> None:
        self._rules = rules
        self._plan = plan
        self._found: dict[PolicyRule, tuple[list[int], list[str]]] = {}
        self._problems: list[Diagnostic] = []

    def matches(self, rules: Sequence[PolicyRule], subjects: Iterable[Subject], count: int) -> tuple[RuleMatch, ...]:
        """Judge the plan, then each of `count` changes. Raise `Problems` when a rule fails."""
        with Allowance().spend(count):
            if plan_rules := self._rules.by_kind.get(RuleKind.PLAN):
                self._judge_one(_Group.of(self._rules, plan_rules), {"plan": self._plan}, None)
            self._judge_each(subjects)
        if self._problems:
            raise Problems(in_order(self._problems))
        found = ((rule, *self._found[rule]) for rule in rules if rule in self._found)
        return tuple(RuleMatch(rule, tuple(positions), tuple(messages)) for rule, positions, messages in found)

    def _judge_each(self, subjects: Iterable[Subject]) -> None:
        groups = {kind: _Group.of(self._rules, rules) for kind, rules in self._rules.by_kind.items()}
        for position, subject in enumerate(subjects):
            if (group := groups.get(subject.kind)) is None:
                continue
            variables = {**subject.variables(), "address": subject.address, "plan": self._plan}
            if failed := self._judge_one(group, variables, position):
                groups[subject.kind] = _Group.of(self._rules, [r for r in group.rules if r.rule not in failed])

    def _judge_one(self, group: _Group, variables: Mapping[str, Any], position: int | None) -> set[PolicyRule]:
        """Judge one change, or the plan, and return the rules that failed."""
        try:
            values = group.truths(variables)
            if True in values:
                for each, is_true in zip(group.rules, values, strict=True):
                    if is_true:
                        self._matched(each, variables, position)
        except SURPRISES as error:
            return self._explained(group.rules, variables, error)
        return set()

    def _matched(self, each: CompiledRule, variables: Mapping[str, Any], position: int | None) -> None:
        positions, messages = self._found.setdefault(each.rule, ([], []))
        if position is not None:
            positions.append(position)
        if len(messages) < MOST:
            messages.append(_message(each, variables))

    def _explained(
        self, group: Sequence[CompiledRule], variables: Mapping[str, Any], error: BaseException
    ) -> set[PolicyRule]:
        """Report the rules that fail for a change, by evaluating each rule separately, and return them."""
        failed = {each.rule: why for each in group if (why := _failure(each, variables)) is not None}
        if not failed:  # together they took too long
            failed = dict.fromkeys((each.rule for each in group), trouble(error))
        for rule, reason in failed.items():
            self._found.pop(rule, None)
            where = f" for {variables['address']}" if "address" in variables else ""
            code, message = _diagnosis(rule, reason, where)
            at = rule.condition
            Collector(rule.file, self._problems).at(code, at.line, at.column, message, address=variables.get("address"))
        return set(failed)


IS_TEXT = ""
"""The reason for the failure of an expression that yields text."""


def _failure(each: CompiledRule, variables: Mapping[str, Any]) -> str | None:
    """Return why a rule fails, or `None` if it does not."""
    try:
        if truth(each.condition.value(variables)):
            _message(each, variables)
    except RuleText:
        return IS_TEXT
    except SURPRISES as error:
        return trouble(error)
    return None


def _diagnosis(rule: PolicyRule, reason: str, where: str) -> tuple[str, str]:
    if reason is IS_TEXT:
        cure = "compare the text, or test whether it `is not none`"
        return RULE_TEXT, f"`{rule.ruling}` of rule {rule.name} yields text{where} instead of true or false: {cure}"
    return "bad-rule", f"rule {rule.name} failed{where}: {reason}"


def _message(each: CompiledRule, variables: Mapping[str, Any]) -> str:
    """Return a rule's message on one line, or an empty text if the rule has none."""
    if each.message is None:
        return ""
    return " ".join(plain_text(each.message.value(variables)).split())[:LONGEST]


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
