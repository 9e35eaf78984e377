"""Losses of the last 24 hours that stayed below the gate: a large loss in small steps.

The journal tells the requests, the rows whether the thing is gone: one that came back since, or never left, is no loss.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from syncengine.plan.diff import Action, Change, FieldChange, is_cleared
from syncengine.plan.losses import ALWAYS_ASKS, Earlier, Loss, is_ours, leaves, losses_of
from syncengine.resource import Key, Recorded, Status
from syncengine.state.info import StateReader
from syncengine.state.losses import ApprovalRecord, holds
from syncengine.state.removals import RemovalLine

WINDOW = 86_400.0
"""Seconds for which a removal that nobody approved counts."""

ACTIONS: Mapping[Status, Action] = {
    Status.RELEASED: Action.FORGET,
    Status.RETIRED: Action.RETIRE,
    Status.DELETED: Action.DELETE,
}


def recent_losses(state: StateReader, now: float) -> dict[Loss, Earlier]:
    """All that was taken without an approval and is not there any more."""
    removals = _unapproved(state.removals(now - WINDOW), state.approvals)
    rows = state.get({loss.key for loss in removals})
    return {
        loss: Earlier(at, _is_counted(loss, rows.get(loss.key)))
        for loss, at in removals.items()
        if _is_gone(loss, rows.get(loss.key))
    }


def _unapproved(
    removals: Iterable[RemovalLine], approvals: Callable[[], Iterable[ApprovalRecord]]
) -> dict[Loss, float]:
    """The times at which things were taken; the last run that took it decides whether that was approved."""
    last = {loss: removal for removal in removals for loss in _losses(removal) if loss.of not in ALWAYS_ASKS}
    unapproved = {loss: removal.at for loss, removal in last.items() if not removal.approved}
    covered = _Covered(approvals() if unapproved else ())
    return {loss: at for loss, at in unapproved.items() if not covered.at(loss, at)}


class _Covered:
    """Removals that approvals covered, and when."""

    def __init__(self, approvals: Iterable[ApprovalRecord]) -> None:
        self._records: defaultdict[Key, list[tuple[Loss, ApprovalRecord]]] = defaultdict(list)
        for record in approvals:
            for loss in record.covers:
                self._records[loss.key].append((loss, record))

    def at(self, loss: Loss, at: float) -> bool:
        """Whether an approval covered a removal that was taken then; a resource that leaves is its parts as well."""
        return any(
            record.at <= at and (record.used is None or at <= record.used)
            for covered, record in self._records.get(loss.key, ())
            if leaves(covered) or (covered.of, covered.what) == (loss.of, loss.what)
        )


def _losses(removal: RemovalLine) -> Iterator[Loss]:
    """A resource that leaves is one loss, whichever way it takes."""
    for loss in losses_of(_change(removal)):
        yield replace(loss, what="") if leaves(loss) else loss


def _change(removal: RemovalLine) -> Change:
    """The change that a line tells of; of one without a call, only whether the resource leaves."""
    key, detail = removal.key, removal.detail
    before, after = detail.status or (None, None)
    action = ACTIONS.get(after, Action.UPDATE) if before and after else Action.UPDATE
    if action is not Action.UPDATE or not removal.is_sent:
        return Change(key=key, action=action, source=None)
    return Change(
        key=key,
        action=action,
        source=None,
        fields=tuple(
            FieldChange(n, old, new) for n, (old, new) in detail.fields.items() if is_cleared(key, n, old, new)
        ),
        keywords_deleted=detail.keywords_deleted,
        metadata_deleted=detail.metadata_deleted,
    )


def _is_gone(loss: Loss, row: Recorded | None) -> bool:
    """Whether it is not recorded any more, or may be gone; a part of a resource that left is no loss of its own."""
    if row is None:
        return True
    if leaves(loss):
        return row.doubtful or not is_ours(row)
    return is_ours(row) and (row.doubtful or not holds(row, loss))


def _is_counted(loss: Loss, row: Recorded | None) -> bool:
    """Whether it still counts as ours: a removal without a known end may not have happened."""
    return row is not None and is_ours(row) and (leaves(loss) or holds(row, loss))
