"""Compute the removals that a plan's approvals cover once its apply begins, and warn about unused approvals. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from syncengine.errors import Diagnostic, Severity
from syncengine.plan.gate import Gate
from syncengine.plan.judgement import rule_units
from syncengine.plan.losses import SWEEP, Loss, losses_of
from syncengine.plan.model import Plan
from syncengine.plan.units import Approval, KnownApprovals, is_approvable_by_line, line_text, loss_of
from syncengine.state.losses import Approved

UNUSED, USED = "approval-unused", "approval-used"
CODES = frozenset({UNUSED, USED})
"""The codes of warnings about approvals, which every plan computes anew."""


def approved_of(plan: Plan) -> Approved:
    """Return the losses that a plan's approvals cover, including its lines under `removed:`."""
    losses = [loss for change in plan.changes for loss in losses_of(change)]
    ruled = [loss for unit in rule_units(plan.gate) for loss in unit.losses]
    swept = [loss for loss in [loss_of(plan.sweep)] if loss is not None]
    uses: defaultdict[str, list[Loss]] = defaultdict(list)
    for unit in plan.gate.units:
        if unit.approved is not None:
            uses[unit.approved.text] += unit.losses
    lines = set(plan.gate.lines)
    for change in plan.changes:
        if change.key in lines and is_approvable_by_line(change):
            uses[line_text(change)] += losses_of(change)
    return Approved(
        {text: tuple(some) for text, some in uses.items()},
        frozenset((*losses, *swept, *ruled)),
        frozenset(change.key for change in plan.changes),
        plan.is_whole,
        # What is in quarantine, and the sweep if an activity type is.
        frozenset((*plan.set_aside, *(SWEEP.key for key in plan.set_aside if key.kind is SWEEP.key.kind))),
        plan.undo.run if plan.undo and not (plan.undo.targets or plan.undo.excludes) else None,
    )


def approval_warnings(gate: Gate, approvals: Iterable[Approval], records: KnownApprovals) -> Iterator[Diagnostic]:
    """Yield warnings about approvals that were used before or that match no removal of the plan.

    An approval with which a run began is in use until all that it covers has settled, even if nothing of it is planned.
    """
    texts = {gate.whole, *(text for unit in gate.units for text in (unit.approve, *unit.also))}
    in_use = {*(unit.approve for unit in gate.begun), *records.texts_under_way}
    for approval in approvals:
        spent = records.spent.get(approval.text)
        if approval.text in texts or approval.text in in_use:
            continue
        code, message = UNUSED, "approves nothing in this plan: it is for other removals, another team or another state"
        if spent:
            at = datetime.fromtimestamp(spent.used or spent.at, UTC)
            code, message = USED, f"was used by run {spent.run} at {at:%Y-%m-%d %H:%M} UTC and approves nothing more"
        cure = "; remove the line" if approval.line is not None else f" ({approval.by})"
        yield Diagnostic(
            severity=Severity.WARNING,
            code=code,
            message=f"{approval.text} {message}{cure}",
            file=approval.by if approval.line is not None else None,
            line=approval.line,
            column=1 if approval.line is not None else None,
        )
