"""Find the unapproved losses of the last 24 hours, so that a large loss in small steps is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from syncengine.plan.diff import Action, Change, FieldChange, is_cleared
from syncengine.plan.losses import ALWAYS_ASKS, Loss, leaves, losses_of
from syncengine.resource import Key, Status
from syncengine.state.info import StateReader
from syncengine.state.journal_detail import RemovalLine
from syncengine.state.losses import ApprovalRecord

WINDOW = 86_400.0
"""The number of seconds for which an unapproved loss counts."""

LEFT_BY: Mapping[Status, Action] = {
    Status.RELEASED: Action.FORGET,
    Status.RETIRED: Action.RETIRE,
    Status.DELETED: Action.DELETE,
}


def recent_losses(state: StateReader, now: float) -> dict[Loss, float]:
    """Return all that calls and runs meant to take without an approval since `now` minus 24 hours, with the times.

    The journal has them from before the first call, each once. What came back since counts all the same: whether it is
    gone on the service is what nobody can ask.
    """
    last: dict[Loss, RemovalLine] = {}
    for line in state.removals(now - WINDOW):
        for loss in losses_of(_change(line)):
            if loss.of not in ALWAYS_ASKS:
                # A resource that leaves is the same loss whichever way it leaves.
                last[replace(loss, what="") if leaves(loss) else loss] = line
    approved: dict[Key, list[tuple[Loss, ApprovalRecord]]] = {}
    for record in state.approvals() if last else ():
        for covered in record.covers:
            approved.setdefault(covered.key, []).append((covered, record))
    return {
        loss: line.at
        for loss, line in last.items()
        if not line.approved and not any(_covers(*pair, loss, line.at) for pair in approved.get(loss.key, ()))
    }


def _covers(covered: Loss, record: ApprovalRecord, loss: Loss, at: float) -> bool:
    """Return whether an approval covered the loss at that time, also as a part of a resource that was removed."""
    is_it = leaves(covered) or (covered.of, covered.what) == (loss.of, loss.what)
    return is_it and record.at <= at and (record.used is None or at <= record.used)


def _change(line: RemovalLine) -> Change:
    """Return the change that a line records. Without a call, it is only about whether the resource leaves."""
    key, detail = line.key, line.detail
    before, after = detail.status or (None, None)
    action = LEFT_BY.get(after, Action.UPDATE) if before and after else Action.UPDATE
    if action is not Action.UPDATE or not line.is_sent:
        return Change(key=key, action=action, source=None)
    return Change(
        key=key,
        action=action,
        source=None,
        fields=tuple(
            FieldChange(n, old, new) for n, (old, new) in detail.fields.items() if is_cleared(key, n, old, new)
        ),
        keywords_deleted=detail.keywords_deleted,
        metadata_set=detail.metadata_set,
        metadata_deleted=detail.metadata_deleted,
        metadata_before={n: v for n, v in detail.metadata_before.items() if v is not None},
    )
