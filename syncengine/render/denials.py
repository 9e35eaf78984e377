"""Denials of a plan by the project's rules, in words that text, Markdown and HTML share; pure (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Sequence

from syncengine.errors import Diagnostic
from syncengine.plan.judgement import POLICY_DENIED, denying_rules
from syncengine.render.words import count_of


def denials(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The denials among the diagnostics of a plan."""
    return [diagnostic for diagnostic in diagnostics if diagnostic.code == POLICY_DENIED]


def others(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """All other diagnostics of a plan."""
    return [diagnostic for diagnostic in diagnostics if diagnostic.code != POLICY_DENIED]


def heading(found: Sequence[Diagnostic]) -> str:
    """Who denies the plan; no approval helps."""
    count = len(denying_rules(found))
    deny = "denies" if count == 1 else "deny"
    return f"Denied: {count_of(count, 'rule')} of this project {deny} this plan, and nothing of it can be applied."
