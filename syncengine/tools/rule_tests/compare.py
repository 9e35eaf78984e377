"""Compare a plan with the expectations of a test. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import asdict

from syncengine.document.model import names_of
from syncengine.document.text import to_camel
from syncengine.manifest.desired import Desired
from syncengine.manifest.items import item_of
from syncengine.manifest.schema import IDENTITIES, SECTIONS
from syncengine.plan.judgement import asking_rules, denying_rules, warning_rules
from syncengine.plan.model import Plan
from syncengine.resource import Kind, Resource
from syncengine.rules.results import Deviation
from syncengine.rules.schema import Expectation

Wanted = Mapping[Kind, Iterable[Resource]]
"""The expected resources, by kind."""


def differences(expect: Expectation, plan: Plan, desired: Desired, wanted: Wanted) -> tuple[Deviation, ...]:
    """Return the deviations from every expectation that is set."""
    expected: dict[str, Any] = {}
    actual: dict[str, Any] = {}
    for name, attribute in names_of(Expectation).items():
        value = getattr(expect, attribute)
        if value is None or name == "errors":
            continue
        if (kind := SECTIONS.get(name)) is not None:
            expected[name], actual[name] = _items(wanted[kind]), _declared(desired, kind)
        else:
            expected[name] = value if isinstance(value, dict) else sorted(value)
            actual[name] = FACTS[name](plan, value)
    return tuple(deviations(expected, actual))


def _summary(plan: Plan, value: Mapping[str, int]) -> dict[str, int]:
    counts = {to_camel(name): count for name, count in asdict(plan.summary).items()}
    return {name: counts[name] for name in value}


def _changes(plan: Plan, value: Any) -> dict[str, str] | list[str]:
    actions = {str(change.key): change.action.word for change in plan.changes}
    return actions if isinstance(value, dict) else sorted(actions)


FACTS: Mapping[str, Callable[[Plan, Any], Any]] = {
    "denied": lambda plan, _: sorted(denying_rules(plan.diagnostics)),
    "warned": lambda plan, _: sorted(warning_rules(plan.diagnostics)),
    "approve": lambda plan, _: sorted(asking_rules(plan.gate)),
    "summary": _summary,
    "changes": _changes,
}


def _declared(desired: Desired, kind: Kind) -> dict[str, Any]:
    return _items(resource for resource in desired.resources.values() if resource.key.kind is kind)


def _items(resources: Iterable[Resource]) -> dict[str, Any]:
    """Return resources by name, each as a manifest would declare it."""
    return {resource.key.name: _without_identity(resource) for resource in resources}


def _without_identity(resource: Resource) -> dict[str, Any]:
    return {name: value for name, value in item_of(resource).items() if name != IDENTITIES[resource.key.kind]}


def deviations(expected: Any, actual: Any) -> Iterator[Deviation]:
    """Yield every difference between two JSON values, at its path and ordered by path."""
    if expected == actual:
        return
    from deepdiff.diff import DeepDiff  # loads pydantic: import it only when there is something to compare

    found = DeepDiff(expected, actual, view="tree", threshold_to_diff_deeper=0)
    levels = sorted((level for levels in found.values() for level in levels), key=lambda level: str(level.path()))
    for level in levels:
        yield Deviation(tuple(level.path(output_format="list")), _value(level.t1), _value(level.t2))


def _value(value: Any) -> Any:
    """Return a value of deepdiff, or `None` for its marker of an absent value."""
    return value if isinstance(value, str | int | float | list | dict) else None
