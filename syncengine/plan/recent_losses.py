"""Find the losses of the last 24 hours that stayed below the gate, to notice a large loss in small steps.

The journal has the requests, and the rows show whether a thing is gone. A thing that came back since or never left is
no loss.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from syncengine.plan.diff import Action, Change, FieldChange, is_cleared
from syncengine.plan.losses import ALWAYS_ASKS, Earlier, Loss, is_name, is_ours, leaves, losses_of
from syncengine.resource import Key, Recorded, Status
from syncengine.state.info import StateReader
from syncengine.state.journal_detail import RemovalLine
from syncengine.state.losses import ApprovalRecord, holds

WINDOW = 86_400.0
"""The number of seconds for which an unapproved removal counts."""

ACTIONS: Mapping[Status, Action] = {
    Status.RELEASED: Action.FORGET,
    Status.RETIRED: Action.RETIRE,
    Status.DELETED: Action.DELETE,
}


def recent_losses(state: StateReader, now: float) -> dict[Loss, Earlier]:
    """Return all that was removed without an approval since `now` minus 24 hours and is still gone."""
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
    """Return the times of unapproved losses. The last run that removed a thing decides whether that was approved."""
    last = {loss: removal for removal in removals for loss in _losses(removal) if loss.of not in ALWAYS_ASKS}
    unapproved = {loss: removal.at for loss, removal in last.items() if not removal.approved}
    covered = _Covered(approvals() if unapproved else ())
    return {loss: at for loss, at in unapproved.items() if not covered.at(loss, at)}


class _Covered:
    """The removals that approvals covered, with their times."""

    def __init__(self, approvals: Iterable[ApprovalRecord]) -> None:
        self._records: defaultdict[Key, list[tuple[Loss, ApprovalRecord]]] = defaultdict(list)
        for record in approvals:
            for loss in record.covers:
                self._records[loss.key].append((loss, record))

    def at(self, loss: Loss, at: float) -> bool:
        """Return whether an approval covered the loss at that time, also as a part of a resource that was removed."""
        return any(
            record.at <= at and (record.used is None or at <= record.used)
            for covered, record in self._records.get(loss.key, ())
            if leaves(covered) or (covered.of, covered.what) == (loss.of, loss.what)
        )


def _losses(removal: RemovalLine) -> Iterator[Loss]:
    """Yield the losses of a line. A resource that leaves is the same loss whichever way it leaves."""
    for loss in losses_of(_change(removal)):
        yield replace(loss, what="") if leaves(loss) else loss


def _change(removal: RemovalLine) -> Change:
    """Return the change that a line records. Without a call, it is only about whether the resource leaves."""
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
        metadata_set=detail.metadata_set,
        metadata_deleted=detail.metadata_deleted,
        metadata_before={n: v for n, v in detail.metadata_before.items() if v is not None},
    )


def _is_gone(loss: Loss, row: Recorded | None) -> bool:
    """Return whether the lost thing is or may be gone. A part of a resource that left is no loss of its own."""
    if row is None:
        return True
    if leaves(loss):
        return row.doubtful or not is_ours(row)
    return is_ours(row) and (row.doubtful or not holds(row, loss))


def _is_counted(loss: Loss, row: Recorded | None) -> bool:
    """Return whether the lost thing still counts as managed, as after a removal with an unknown outcome."""
    return row is not None and is_ours(row) and (leaves(loss) or holds(row, loss)) and not is_name(loss)
