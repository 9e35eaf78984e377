"""Rules and changes → for each rule the changes that it is true for; Problems where a rule cannot be judged.

The cost is that of the changes: every expression is compiled once, and all of a kind are one function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from syncengine.document.diagnostics import Collector, in_order
from syncengine.errors import Diagnostic, Problems
from syncengine.rules.expressions import RULE_TEXT, CompiledRule, CompiledRules, RuleText, compiled, truth
from syncengine.rules.model import PolicyRule, RuleMatch, RuleSet, Subject
from syncengine.rules.schema import RuleKind
from syncengine.templating.budget import Allowance
from syncengine.templating.filters import plain_text
from syncengine.templating.troubles import SURPRISES, trouble

MOST = 100
"""Changes of one rule that are told one by one."""
LONGEST = 1000
"""Characters of a message."""


def judge(rule_set: RuleSet, subjects: Sequence[Subject], summary: Mapping[str, int]) -> tuple[RuleMatch, ...]:
    """Return the rules that are true for any of the changes, in their order, or for the plan with this `summary`."""
    if not rule_set.rules:
        return ()
    return _Judging(_compiled(rule_set.rules), {"summary": summary}).matches(rule_set.rules, subjects)


@lru_cache(maxsize=4)
def _compiled(rules: tuple[PolicyRule, ...]) -> CompiledRules:
    """The compiled form of rules that are without errors."""
    return compiled(rules, [])


class _Judging:
    """One judgement. A rule that failed is not tried again; `found` are positions and messages by rule."""

    def __init__(self, rules: CompiledRules, plan: Mapping[str, Any]) -> None:
        self._rules = rules
        self._plan = plan
        self._found: dict[PolicyRule, tuple[list[int], list[str]]] = {}
        self._problems: list[Diagnostic] = []

    def matches(self, rules: Sequence[PolicyRule], subjects: Sequence[Subject]) -> tuple[RuleMatch, ...]:
        with Allowance().spend(len(subjects)) as deadline:
            self._rules.environment.begin(deadline, len(subjects))
            for kind, group in self._rules.by_kind.items():
                self._judge(kind, group, subjects)
        if self._problems:
            raise Problems(in_order(self._problems))
        found = ((rule, *self._found[rule]) for rule in rules if rule in self._found)
        return tuple(RuleMatch(rule, tuple(positions), tuple(messages)) for rule, positions, messages in found)

    def _judge(self, kind: RuleKind, group: Sequence[CompiledRule], subjects: Sequence[Subject]) -> None:
        """Judge all changes of a kind, or the plan."""
        changes = [] if kind is RuleKind.PLAN else [n for n, subject in enumerate(subjects) if subject.kind is kind]
        if kind is RuleKind.PLAN:
            self._judge_one(group, self._rules.truths(group), {"plan": self._plan}, None)
        truths = self._rules.truths(group)
        for n in changes:
            if not group:
                return
            failed = self._judge_one(group, truths, {**subjects[n]._asdict(), "plan": self._plan}, n)
            if failed:
                group = [each for each in group if each.rule not in failed]
                truths = self._rules.truths(group)

    def _judge_one(
        self,
        group: Sequence[CompiledRule],
        truths: Callable[[Mapping[str, Any]], list[bool]],
        variables: Mapping[str, Any],
        position: int | None,
    ) -> set[PolicyRule]:
        """Judge one change, or the plan; return the rules that failed."""
        try:
            for each, is_true in zip(group, truths(variables), strict=True):
                if is_true:
                    self._matched(each, variables, position)
        except (*SURPRISES, RuleText) as error:
            return self._explained(group, variables, error)
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
        """Report the rules that fail for a change, found by evaluating each by itself."""
        failed = {each.rule: why for each in group if (why := _failure(each, variables)) is not None}
        if not failed:  # together they took too long
            failed = dict.fromkeys((each.rule for each in group), trouble(error))
        for rule, reason in failed.items():
            self._found.pop(rule, None)
            where = f" for {variables['address']}" if "address" in variables else ""
            code, message = _told(rule, reason, where)
            at = rule.condition
            Collector(rule.file, self._problems).at(code, at.line, at.column, message, address=variables.get("address"))
        return set(failed)


IS_TEXT = ""
"""The reason of an expression that yields text."""


def _failure(each: CompiledRule, variables: Mapping[str, Any]) -> str | None:
    """Why a rule fails; None if it does not."""
    try:
        if truth(each.condition.value(variables)):
            _message(each, variables)
    except RuleText:
        return IS_TEXT
    except SURPRISES as error:
        return trouble(error)
    return None


def _told(rule: PolicyRule, reason: str, where: str) -> tuple[str, str]:
    if reason is IS_TEXT:
        cure = "compare it, or ask whether it `is not none`"
        return RULE_TEXT, f"`{rule.ruling}` of the rule {rule.name} is text{where}, not true or false: {cure}"
    return "bad-rule", f"the rule {rule.name} failed{where}: {reason}"


def _message(each: CompiledRule, variables: Mapping[str, Any]) -> str:
    """The message of a rule on one line, or the rule's name."""
    if each.message is None:
        return ""
    return " ".join(plain_text(each.message.value(variables)).split())[:LONGEST]
