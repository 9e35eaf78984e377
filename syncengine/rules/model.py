"""Rules, their tests and what they judge, as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Position, Scalar, place
from syncengine.rules.schema import Expectation, RuleKind, Ruling


class TemplateText(NamedTuple):
    """An expression or a template as it is written, and its place, from 1; `style` is that of its scalar."""

    text: str
    line: int
    column: int
    style: str

    @classmethod
    def of(cls, node: Scalar) -> TemplateText:
        return cls(node.text, *place(node), node.style)

    def node(self) -> Scalar:
        """The scalar at its place."""
        return Scalar(self.text, Position(self.line - 1, self.column - 1), self.style)


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule and its place. `by` are the people who are asked for an approval."""

    name: str
    kind: RuleKind
    ruling: Ruling
    condition: TemplateText
    message: TemplateText | None
    by: tuple[str, ...]
    file: str
    line: int

    @property
    def content(self) -> tuple[object, ...]:
        """The content of a rule, without its place."""
        message = self.message.text if self.message else None
        return (self.name, self.kind, self.ruling, self.condition.text, message, self.by)

    @property
    def place(self) -> str:
        """The place, for a sentence."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class RuleTestCase:
    """One test and its place. `manifests` are mappings, and scalars with paths; `resources` are expected ones."""

    name: str
    file: str
    line: int
    recorded: MappingNode | None
    manifests: tuple[MappingNode | Scalar, ...]
    data: Mapping[str, str]
    variables: Mapping[str, str]
    expect: Expectation


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules and tests of a project, without errors."""

    rules: tuple[PolicyRule, ...] = ()
    tests: tuple[RuleTestCase, ...] = ()


NO_RULES = RuleSet()


class RuleChange(NamedTuple):
    """A rule that a pull request removes, adds or alters: `before` and `after` are its forms on both sides."""

    before: PolicyRule | None
    after: PolicyRule | None

    @property
    def sentence(self) -> str:
        """What is done to the rule, and where it stood or stands."""
        if self.after is None:
            assert self.before is not None
            return f"rule {self.before.name} is gone (it was at {self.before.place})"
        if self.before is None:
            return f"rule {self.after.name} is new ({self.after.place})"
        forms = (f"{rule.ruling} {' '.join(rule.condition.text.split())}" for rule in (self.before, self.after))
        return f"rule {self.after.name}: {' → '.join(forms)} ({self.after.place})"


def both_sides(head: RuleSet, base: RuleSet) -> RuleSet:
    """The rules of two sides of a pull request, all of which hold; one that both have counts once, as head's."""
    contents = {rule.content for rule in head.rules}
    return RuleSet((*head.rules, *(rule for rule in base.rules if rule.content not in contents)), head.tests)


def rule_changes(head: RuleSet, base: RuleSet) -> Iterator[RuleChange]:
    """The rules that differ between two sides, by name; head's first."""
    before, after = _by_name(base.rules), _by_name(head.rules)
    for name in dict.fromkeys((*after, *before)):
        one, other = before.get(name), after.get(name)
        if one is None or other is None or one.content != other.content:
            yield RuleChange(one, other)


def _by_name(rules: Iterable[PolicyRule]) -> dict[str, PolicyRule]:
    return {rule.name: rule for rule in rules}


class Subject(NamedTuple):
    """One change to judge; `variables` makes what rules see of it, when there is a rule for its kind."""

    kind: RuleKind
    address: str
    variables: Callable[[], Mapping[str, Any]]


class RuleMatch(NamedTuple):
    """A rule, the positions of the changes for which it is true, and messages of the first of them.

    A rule for the plan as a whole has one message and no positions.
    """

    rule: PolicyRule
    positions: tuple[int, ...]
    messages: tuple[str, ...]
