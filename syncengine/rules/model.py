"""Rules, their tests, and the changes that they judge, as values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from syncengine.document.validation import names_of
from syncengine.errors import Diagnostic
from syncengine.manifest.resources import declared_keywords, written_fields
from syncengine.manifest.schema import IDENTITIES, LISTS, MODELS
from syncengine.resource import Body, Key, Kind

if TYPE_CHECKING:
    from syncengine.project.types import Written
    from syncengine.rules.read import RuleTest


class RuleKind(StrEnum):
    """The kind of resource whose changes a rule judges, or `plan` for the plan as a whole."""

    __hash__ = str.__hash__

    TAG = Kind.TAG.value
    CATEGORY = Kind.CATEGORY.value
    ACTIVITY_TYPE = Kind.ACTIVITY_TYPE.value
    PLAN = "plan"


class Ruling(StrEnum):
    """The consequence of a rule whose expression is true."""

    DENY = "deny"
    WARN = "warn"
    APPROVE = "approve"


ACTIONS = ("create", "update", "delete", "retire", "forget")


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule and its place. `by` are the people who are asked for an approval."""

    name: str
    kind: RuleKind
    ruling: Ruling
    condition: Written
    message: Written | None
    by: tuple[str, ...]
    file: str
    line: int

    @property
    def content(self) -> tuple[object, ...]:
        """The content of the rule, without its place."""
        message = self.message.text if self.message else None
        return (self.name, self.kind, self.ruling, self.condition.text, message, self.by)

    @property
    def place(self) -> str:
        """The file and line of the rule as text."""
        return f"{self.file}:{self.line}"


class RuleTestCase(NamedTuple):
    """A test of rules and manifests as it is written, and its place."""

    written: RuleTest
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The valid rules and tests of a project."""

    rules: tuple[PolicyRule, ...] = ()
    tests: tuple[RuleTestCase, ...] = ()


NO_RULES = RuleSet()


class RuleChange(NamedTuple):
    """A rule that a pull request adds, removes or changes. `before` and `after` are its forms on both sides."""

    before: PolicyRule | None
    after: PolicyRule | None

    @property
    def sentence(self) -> str:
        """The change of the rule and its place as a sentence."""
        if self.after is None:
            assert self.before is not None
            return f"rule {self.before.name} was removed (it was at {self.before.place})"
        if self.before is None:
            return f"rule {self.after.name} was added ({self.after.place})"
        forms = (f"{rule.ruling} {' '.join(rule.condition.text.split())}" for rule in (self.before, self.after))
        return f"rule {self.after.name}: {' → '.join(forms)} ({self.after.place})"


def both_sides(head: RuleSet, base: RuleSet) -> RuleSet:
    """Return the rules of both sides of a pull request, all of which apply. A rule that both have counts once.

    Where a rule asks for another approval on each side, the base's has a name of its own, and so a unit of its own.
    """
    contents = {rule.content for rule in head.rules}
    asking = {rule.name for rule in head.rules if rule.ruling is Ruling.APPROVE}
    others = [
        replace(rule, name=f"{rule.name} (base)") if rule.ruling is Ruling.APPROVE and rule.name in asking else rule
        for rule in base.rules
        if rule.content not in contents
    ]
    return RuleSet((*head.rules, *others), head.tests)


def rule_changes(head: RuleSet, base: RuleSet) -> Iterator[RuleChange]:
    """Yield the rules that differ between two sides, by name, with those of the head first."""
    before, after = ({rule.name: rule for rule in side.rules} for side in (base, head))
    for name in dict.fromkeys((*after, *before)):
        one, other = before.get(name), after.get(name)
        if one is None or other is None or one.content != other.content:
            yield RuleChange(one, other)


class Subject(NamedTuple):
    """A change to judge. `variables` returns the variables of its rules, called only if a rule is for its kind."""

    kind: RuleKind
    address: str
    variables: Callable[[], Mapping[str, Any]]


class RuleMatch(NamedTuple):
    """A rule, the positions of the changes for which it is true, and messages about the first of these changes.

    A rule for the plan as a whole has one message and no positions.
    """

    rule: PolicyRule
    positions: tuple[int, ...]
    messages: tuple[str, ...]


class MetadataView(dict[str, str]):
    """Metadata by name, in which a missing name is none."""


class NoResource(dict[str, Any]):
    """The stand-in for a missing resource: false, equal to none, and without values."""

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, NoResource)

    __hash__ = None


EMPTY: Mapping[Kind, Mapping[str, Any]] = {
    kind: {
        name: [] if name in LISTS else MetadataView() if name == "metadata" else None for name in names_of(MODELS[kind])
    }
    for kind in Kind
}
"""Every field of each kind without a value: an empty list, empty metadata, or else none."""
NOTHING: Mapping[Kind, NoResource] = {kind: NoResource(EMPTY[kind]) for kind in Kind}


def shown(key: Key, body: Body, protect: bool, previously: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a resource as a mapping with all fields of its kind."""
    view = {**EMPTY[key.kind], **written_fields(body)}
    view[IDENTITIES[key.kind]], view["protect"] = key.name, protect
    if previously:
        view["previously"] = list(previously)
    if key.kind is Kind.TAG:
        view["keywords"] = declared_keywords(key, body)
        if body.metadata:
            view["metadata"] = MetadataView(body.metadata)
    return view


class Deviation(NamedTuple):
    """A difference and its path, such as `("tags", "A", "keywords", 0)`. A missing value is `None`."""

    path: tuple[str | int, ...]
    expected: Any
    actual: Any


class RuleTestResult(NamedTuple):
    """The result of one test. `diagnostics` are unexpected errors that prevented the plan."""

    name: str
    file: str
    line: int
    deviations: tuple[Deviation, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def passes(self) -> bool:
        return not (self.deviations or self.diagnostics)
