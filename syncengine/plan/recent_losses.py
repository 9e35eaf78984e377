"""Losses of the last 24 hours that stayed below the gate: a large loss in small steps.

The journal tells the requests, the rows whether the thing is gone: one that came back since, or never left, is no loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from syncengine.plan.diff import ALTERNATIVES, Action, Change, FieldChange, is_cleared
from syncengine.plan.gate import ALWAYS_ASKS, LEAVES_AS, Earlier, Loss, is_ours, losses_of
from syncengine.resource import Recorded, Status
from syncengine.state.info import StateReader
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
    removals = _unapproved(state.removals(now - WINDOW))
    rows = state.get({loss.key for loss in removals})
    return {
        loss: Earlier(at, _is_counted(loss, rows.get(loss.key)))
        for loss, at in removals.items()
        if _is_gone(loss, rows.get(loss.key))
    }


def _unapproved(removals: Iterable[RemovalLine]) -> dict[Loss, float]:
    """When each thing was taken; the last run that took it decides whether that was approved."""
    last = {loss: removal for removal in removals for loss in _losses(removal) if loss.of not in ALWAYS_ASKS}
    return {loss: removal.at for loss, removal in last.items() if not removal.approved}


def _losses(removal: RemovalLine) -> Iterator[Loss]:
    """A resource that leaves is one loss, whichever way it takes."""
    for loss in losses_of(_change(removal)):
        yield replace(loss, what="") if loss.of in LEAVES_AS.values() else loss


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
    if loss.of in LEAVES_AS.values():
        return row.doubtful or not is_ours(row)
    return is_ours(row) and (row.doubtful or not _holds(row, loss))


def _is_counted(loss: Loss, row: Recorded | None) -> bool:
    """Whether it still counts as ours: a removal without a known end may not have happened."""
    return row is not None and is_ours(row) and (loss.of in LEAVES_AS.values() or _holds(row, loss))


def _holds(row: Recorded, loss: Loss) -> bool:
    body = row.body
    if loss.of == "fields":
        names = (loss.what, ALTERNATIVES.get(loss.what, loss.what))
        return any(body.fields.get(name) not in (None, "", ()) for name in names)
    return loss.what in (body.keywords if loss.of == "keywords" else body.metadata)
