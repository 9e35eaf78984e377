"""Plan of `plan --base` → its parts for people: foremost warnings, own changes, waiting changes; pure.

Renderings show the pull request's own part like any plan, and fold the waiting part behind `waiting_line`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.errors import Diagnostic
from syncengine.plan.build import narrowed
from syncengine.plan.diff import UNKNOWN_END, Change
from syncengine.plan.model import Base, ChangeOrigin, Plan
from syncengine.plan.origins import POLICY_CHANGED, SAID_FIRST, Whose, whose
from syncengine.plan.quarantine import refused_words
from syncengine.plan.state_checks import SAID_FIRST as DOUBTS_OF_STATE
from syncengine.render.escape import visible
from syncengine.render.gate import asks_about_removals_alone
from syncengine.render.words import count_of, number

SHORT = 12
"""The number of characters of a commit id that are shown."""

TRIPPED_BY: Mapping[Whose, str] = {
    Whose(own=True): "This pull request's {} need the approval.",
    Whose(theirs=True): "Only {} that were merged earlier need the approval; those of this pull request do not.",
    Whose(only_together=True): "This pull request's {} and those that were merged earlier need the approval only "
    "together.",
    Whose(theirs=True, only_together=True): "The {} that were merged earlier need the approval; those of this pull "
    "request need it only together with them.",
    Whose(own=True, theirs=True): "Both this pull request's {} and those that were merged earlier need the approval.",
}


def said_first(plan: Plan) -> list[Diagnostic]:
    """Return the diagnostics that are shown above everything else, a changed policy first."""
    first = [d for d in plan.diagnostics if d.code in SAID_FIRST]
    return sorted(first, key=lambda d: SAID_FIRST.index(d.code))


def warned_first(plan: Plan) -> list[Diagnostic]:
    """Return the doubts about the state itself, which are shown above the counts."""
    return [diagnostic for diagnostic in plan.diagnostics if diagnostic.code in DOUBTS_OF_STATE]


def first_sentence(diagnostic: Diagnostic) -> str:
    """Return a diagnostic with its severity and code; a change of policy is shown by its message alone."""
    label = "" if diagnostic.code == POLICY_CHANGED else f"{diagnostic.severity.value}[{diagnostic.code}]: "
    return f"{label}{visible(diagnostic.message)}"


def own_part(plan: Plan) -> Plan:
    """Return the plan reduced to the pull request's own changes; a plan without `--base` keeps all changes."""
    base = plan.base
    plan = with_refusals(plan)
    if base is None:
        return plan
    own = narrowed(plan, lambda change: base.origin(change.key) is ChangeOrigin.PULL_REQUEST)
    return replace(own, sweep=None) if base.sweeps else own


def with_refusals(plan: Plan) -> Plan:
    """Return the plan with the last refusal of each previously refused resource quoted in its reason."""
    if not plan.refused:
        return plan
    now = datetime.fromisoformat(plan.basis.created).timestamp()

    def quoted(change: Change) -> Change:
        if (refusal := plan.refusal(change.key)) is None:
            return change
        other = None if change.reason == UNKNOWN_END else change.reason
        reasons = (other, refused_words(refusal, now))
        return replace(change, reason="; ".join(filter(None, reasons)))

    return replace(plan, changes=tuple(map(quoted, plan.changes)), refused=UNSET)


def waiting_part(plan: Plan) -> Plan | None:
    """Return the plan reduced to the waiting changes, each with its reason; `None` when no change waits."""
    base = plan.base
    if base is None or not base.waiting:
        return None
    plan = with_refusals(plan)
    waiting = narrowed(plan, lambda change: base.origin(change.key) is ChangeOrigin.WAITING)
    changes = tuple(_with_reason(change, base) for change in waiting.changes)
    return replace(waiting, changes=changes, notes=(), sweep=plan.sweep if base.sweeps else None)


def _with_reason(change: Change, base: Base) -> Change:
    return replace(change, reason="; ".join(filter(None, (change.reason, base.waiting[str(change.key)]))))


def waiting_line(waiting: Plan) -> str:
    """Return one line that counts the waiting changes by their reasons."""
    assert waiting.base is not None
    reasons = Counter(reason.partition(":")[0] for reason in waiting.base.waiting.values())
    why = ", ".join(f"{number(count)} {reason}" for reason, count in reasons.most_common())
    return f"{count_of(len(waiting.changes), 'change')} from outside this pull request: {why}"


def compared_with(base: Base) -> str:
    """Return the words that name the revision that the plan is compared with."""
    name = f"{visible(base.ref)} ({base.commit[:SHORT]})"
    if base.is_in_git:
        return f"Compared with {name} in Git only: no state was read, so waiting changes are unknown"
    return f"compared with {name}"


def tripped_by(plan: Plan) -> str | None:
    """Return a sentence on whose removals or changes trip the gate; `None` for a plan without `--base`."""
    who = whose(plan.gate, plan.base)
    sentence = TRIPPED_BY.get(who._replace(only_together=who.only_together and not who.own))
    return sentence and sentence.format("removals" if asks_about_removals_alone(plan.gate) else "changes")
