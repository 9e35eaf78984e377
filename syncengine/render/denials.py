"""Word the denials of a plan by the project's rules for text, Markdown and HTML. Pure (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Sequence

from syncengine.errors import Diagnostic
from syncengine.plan.judgement import POLICY_DENIED, denying_rules
from syncengine.render.words import count_of


def denials(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the denials among the diagnostics of a plan."""
    return [diagnostic for diagnostic in diagnostics if diagnostic.code == POLICY_DENIED]


def others(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics of a plan that are not denials."""
    return [diagnostic for diagnostic in diagnostics if diagnostic.code != POLICY_DENIED]


def heading(found: Sequence[Diagnostic]) -> str:
    """Return the heading that counts the denying rules; an approval does not lift a denial."""
    count = len(denying_rules(found))
    deny = "denies" if count == 1 else "deny"
    return f"Denied: {count_of(count, 'rule')} of this project {deny} this plan, so nothing in it can be applied."
