"""The two sides of a pull request, head and base: whose changes and removals, and what policy changes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from msgspec import structs

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import place
from syncengine.errors import Diagnostic, Severity, SyncengineError
from syncengine.manifest.declarations import DefaultValues, default_values
from syncengine.manifest.schema import SECTIONS
from syncengine.plan.diff import Change, is_same
from syncengine.plan.gate import Gate
from syncengine.plan.losses import SWEEP, Loss
from syncengine.plan.model import Base, BasePlan, ChangeOrigin
from syncengine.project.load import level_cure
from syncengine.project.model import Level, Limit, Project, QuarantineEntry, until_text
from syncengine.project.schema import PolicySection, limit
from syncengine.resource import Kind
from syncengine.rules.model import RuleChange, rule_changes
from syncengine.rules.read import rule_set
from syncengine.service.operations import DELETE_TAG

POLICY_CHANGED, LIMIT_LOOSENED = "policy-changed", "limit-loosened"
BASE_INVALID, NO_BASE, MERGED = "base-invalid", "base-without-project", "merge-planned"
SAID_FIRST = (POLICY_CHANGED, LIMIT_LOOSENED, BASE_INVALID, NO_BASE, MERGED)
"""The codes of diagnostics to show before a plan, in this order."""


def side_of(other: BasePlan, changes: Iterable[Change]) -> Base:
    """Return the changes that the base's plan makes too, with their reasons still empty."""
    waiting = {str(change.key): "" for change in changes if is_same(change, other.changes.get(change.key))}
    return Base("", "", waiting, sweeps=other.sweeps)


def with_origins(gate: Gate, base: Base) -> Gate:
    """Return the gate with the units marked that are the pull request's: those with a loss that does not wait."""

    def is_own(loss: Loss) -> bool:
        return not base.sweeps if loss.of == SWEEP.of else str(loss.key) not in base.waiting

    units = (structs.replace(unit, is_own=any(map(is_own, unit.losses))) for unit in gate.units)
    return structs.replace(gate, units=tuple(units))


class Whose(NamedTuple):
    """The sides whose removals need an approval that was not given."""

    own: bool = False
    theirs: bool = False

    @property
    def origins(self) -> tuple[ChangeOrigin, ...]:
        """The origins of the removals that need the approval."""
        who = ((ChangeOrigin.PULL_REQUEST, self.own), (ChangeOrigin.WAITING, self.theirs))
        return tuple(origin for origin, needs in who if needs)


def whose(gate: Gate, base: Base | None) -> Whose:
    """Return the sides whose units need an approval. A unit is the pull request's if one of its losses is."""
    sides = {unit.is_own for unit in gate.units if unit.is_open} if base is not None else set()
    return Whose(True in sides, False in sides)


NOTHING = "(none)"
_STRICTNESS = (Level.OFF, Level.WARNING, Level.ERROR)
_NAMES: Mapping[Kind, str] = {kind: name for name, kind in SECTIONS.items()}


def with_stricter_judge(head: Project, base: Project) -> Project:
    """Return the head's project, to be judged by the limits, levels and rules of both sides."""
    names = {**head.policy.diagnostics, **base.policy.diagnostics}
    levels = {name: max((_level(head, name), _level(base, name)), key=_STRICTNESS.index) for name in names}
    limits = head.policy.max_deletes.and_also(base.policy.max_deletes)
    policy = head.policy.model_copy(update={"max_deletes": limits, "diagnostics": levels})
    return replace(head, policy=policy, other_judges=(*head.other_judges, base))


def _level(project: Project, name: str) -> Level:
    return project.policy.diagnostics.get(name, Level.WARNING)


def at_levels_of_base(found: Iterable[Diagnostic], base: Project, name: str) -> Iterator[Diagnostic]:
    """Yield the head's findings without the cure of a lower level where the base (called `name`) forbids that."""
    strict = {code for code, level in base.policy.diagnostics.items() if level is Level.ERROR}
    return (_without_cure(each, name) if each.code in strict else each for each in found)


def _without_cure(found: Diagnostic, name: str) -> Diagnostic:
    if not found.message.endswith(cure := level_cure(found.code)):
        return found
    level = f"{name} has `{found.code}: error` under `policy.diagnostics`"
    why = f"{level}, and the stricter level of both sides counts"
    return structs.replace(found, message=f"{found.message.removesuffix(cure)}; {why}")


def policy_changes(head: Project, base: Project) -> Iterator[Diagnostic]:
    """Yield a warning for each change that a pull request makes to the policy or to the defaults of all manifests."""
    was, now = _settings(base), _settings(head)
    for name in dict.fromkeys((*was, *now)):
        if was.get(name) != now.get(name):
            yield _changed(head, "policy", name, was.get(name), now.get(name), head.policy_lines.get(name))
    yield from _quarantine_changes(head, base)
    yield from map(_changed_rule, rule_changes(rule_set(head), rule_set(base)))
    defaults_before, defaults = _defaults(base), _defaults(head)
    before, after = _flat(defaults_before), _flat(defaults)
    for kind, name in dict.fromkeys((*before, *after)):
        if before.get((kind, name)) != after.get((kind, name)):
            line = next((place(v)[0] for node in defaults.nodes.get(kind, ()) if (v := node.get(name))), None)
            address = f"{_NAMES[kind]}.{name}"
            yield _changed(head, "defaults", address, before.get((kind, name)), after.get((kind, name)), line)


def _quarantine_changes(head: Project, base: Project) -> Iterator[Diagnostic]:
    """Yield a warning for each resource that a pull request puts into quarantine or takes out."""
    was, now = ({each.key: each for each in side.quarantine} for side in (base, head))
    for key in dict.fromkeys((*was, *now)):
        before, after = was.get(key), now.get(key)
        if _why(before) != _why(after):
            line = after.line if after else None
            yield _changed(head, "policy", f"quarantine of {key}", _why(before), _why(after), line)


def _why(entry: QuarantineEntry | None) -> str | None:
    if entry is None:
        return None
    until = f" until {until_text(entry.until)}" if entry.until is not None else ""
    return f'"{entry.reason}"{until}'


def _changed_rule(change: RuleChange) -> Diagnostic:
    rule = change.after or change.before
    assert rule is not None
    message = f"This pull request changes policy: {change.sentence}"
    return Diagnostic(
        severity=Severity.WARNING, code=POLICY_CHANGED, message=message, file=rule.file, line=rule.line, rule=rule.name
    )


def _changed(head: Project, what: str, name: str, was: str | None, now: str | None, line: int | None) -> Diagnostic:
    file = head.config_name
    where = f"{file}:{line}" if line else file
    message = f"This pull request changes {what}: {name} {was or NOTHING} → {now or NOTHING} ({where})"
    return Diagnostic(severity=Severity.WARNING, code=POLICY_CHANGED, message=message, file=file, line=line)


def _settings(project: Project) -> dict[str, str]:
    """Return the policy's settings as text, by their names in the project file."""
    policy = project.policy
    return {
        **{f"maxDeletes.{name}": each for name, each in policy.limits().items()},
        "tagRemoval": str(policy.tag_removal),
        "activityTypes": str(policy.activity_types),
        **{f"diagnostics.{name}": str(level) for name, level in policy.diagnostics.items() if level != Level.WARNING},
        **({"endpoints.deleteTag": "set"} if DELETE_TAG.id in project.service.endpoints else {}),
    }


def _defaults(project: Project) -> DefaultValues:
    if not isinstance(project.defaults, MappingNode):
        return DefaultValues()
    return default_values(project.defaults, Collector(project.config_name))


def _flat(defaults: DefaultValues) -> dict[tuple[Kind, str], str]:
    return {(kind, name): str(value) for kind, values in defaults.values.items() for name, value in values.items()}


# --- the limits of the last apply


def judged_since(policy: PolicySection, last: Mapping[str, str]) -> Mapping[str, Limit]:
    """Return the stricter limits of a policy and of the last complete apply, which the state records."""
    before = {name: read for name, text in last.items() if (read := limit(text))}
    return {name: own.and_also(before.get(name, own)) for name, own in policy.max_deletes.by_name().items()}


def loosened(project: Project, last: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a warning for each limit that was loosened since the last complete apply, and so does not count yet."""
    for name, judging in judged_since(project.policy, last).items():
        if judging != (own := project.policy.max_deletes.by_name()[name]):
            line = project.policy_lines.get(f"maxDeletes.{name}")
            message = (
                f"maxDeletes.{name} was {last[name]} at the last complete apply and is now {own}: "
                f"this plan is judged by {judging}, and {own} takes effect with the next apply"
            )
            yield Diagnostic(
                severity=Severity.WARNING, code=LIMIT_LOOSENED, message=message, file=project.config_name, line=line
            )


@dataclass(slots=True)
class Sides:
    """The head and its base at `commit`. `base` is `None` when the base has no project or an invalid one.

    `tree` is the Git tree of their merge if `is_merged`.
    """

    head: Project
    commit: str
    base: Project | None = None
    is_merged: bool = False
    tree: str = ""
    found: list[Diagnostic] = field(default_factory=list)

    def warn(self, code: str, message: str) -> None:
        self.found.append(Diagnostic(severity=Severity.WARNING, code=code, message=message))


def invalid(name: str, error: SyncengineError) -> tuple[str, str]:
    """Return the code and the message of the warning about a base that cannot be planned."""
    first = next((d for d in error.diagnostics() if d.severity is Severity.ERROR), None)
    place = f"{first.file}:{first.line}: " if first and first.file and first.line else ""
    why = f"{place}{first.message}" if first else error.message
    return BASE_INVALID, f"{name} cannot be planned, so every change counts as this pull request's: {why}"
