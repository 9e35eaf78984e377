"""Find the changes for which each rule is true. Rules that fail raise `Problems`.

The cost is linear in the changes: every expression is compiled once, and all rules of a kind are one function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from syncengine.document.diagnostics import Collector, in_order
from syncengine.errors import Diagnostic, Problems
from syncengine.rules.expressions import RULE_TEXT, CompiledRule, CompiledRules, RuleText, compiled, truth
from syncengine.rules.model import PolicyRule, RuleMatch, RuleSet, Subject
from syncengine.rules.schema import RuleKind
from syncengine.templating.bounds import Allowance
from syncengine.templating.filters import plain_text
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
