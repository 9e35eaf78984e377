"""Helpers that make plans and judge them by rules that a test writes inline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from syncengine.plan.build import plan
from syncengine.plan.model import Plan
from syncengine.resource import Recorded
from syncengine.rules.model import RuleSet
from syncengine.rules.read import rules_in
from tests.planning.estate import How, ask


def rules(*lines: str) -> RuleSet:
    """Read rules that are given as the contents of YAML flow mappings, without the braces."""
    text = "rules:\n" + "".join(f"  - {{{line}}}\n" for line in lines)
    return rules_in((("policies/all.yaml", text.encode()),))


def judged(manifests: str, recorded: Iterable[Recorded], *lines: str, **how: Any) -> Plan:
    asked = How(**how)
    options = replace(asked.options, rule_set=rules(*lines))
    return plan(ask(manifests), {row.key: row for row in recorded}, options, asked.basis)


def denied(manifests: str, recorded: Iterable[Recorded], expression: str, kind: str = "tag", **how: Any) -> list[str]:
    """Return the addresses that a rule with this expression denies, with `plan` for a denial without an address."""
    made = judged(manifests, recorded, f'name: r, for: {kind}, deny: "{expression}"', **how)
    return [d.address or "plan" for d in made.diagnostics if d.code == "policy-denied"]
