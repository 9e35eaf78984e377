"""Select groups of the inbox that a person wants delivered again, and deliver them. Reads and writes the inbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.group import ContentChange, last_changes
from syncengine.project.model import Project
from syncengine.state.holder import Holder
from syncengine.state.inbox import Inbox
from syncengine.state.inbox_model import DeliveryStatus, GroupState, InboxEntry, sink_of


@dataclass(frozen=True, slots=True)
class Selection:
    """The groups to deliver again, and those that are left out: conflicts, and `reduced` ones without their content.

    `without` has each group that a sink is not to get, because it was decided without that sink.
    """

    group_ids: Sequence[str]
    conflicts: Sequence[str] = ()
    reduced: int = 0
    without: Sequence[tuple[InboxEntry, str]] = ()


def in_conflict(entries: Iterable[InboxEntry]) -> list[InboxEntry]:
    return [entry for entry in entries if entry.state is GroupState.CONFLICT]


def settle(inbox: Inbox, entries: Iterable[InboxEntry]) -> dict[str, tuple[ContentChange, ...]]:
    """Settle the conflicts among these groups in favour of the sinks, and return the changes that each was about."""
    changes = {entry.group_id: last_changes(entry, inbox.story(entry.group_id)) for entry in in_conflict(entries)}
    inbox.write(lambda tx: tx.settle(list(changes)))
    return changes


def selected(entries: Sequence[InboxEntry], project: Project) -> Selection:
    """Select these groups for the sinks that lack them. Pure."""
    sinks = [
        sink.name.text
        for sink in (project.posted_time and project.posted_time.deliver) or ()
        if sink.when is None  # a sink with a condition may not have been meant for a group
    ]
    conflicts = [entry.group_id for entry in in_conflict(entries)]
    return Selection(
        [entry.group_id for entry in entries if entry.group_id not in conflicts],
        conflicts,
        without=[(entry, sink) for entry in entries for sink in sinks if entry.was_decided_without(sink)],
    )


def taken_by(inbox: Inbox, sink: str, since: float) -> Selection:
    """Select the groups that a sink took since `since` (seconds since the epoch), oldest first."""
    # By one reading of the inbox, as another process may deliver meanwhile.
    deliveries = [
        (found.last, entry)
        for entry in inbox.delivered_since(since)
        for found in entry.deliveries
        if sink_of(found.sink) == sink and found.status is DeliveryStatus.ACCEPTED and found.last >= since
    ]
    took = list(dict.fromkeys(entry for _, entry in sorted(deliveries, key=itemgetter(0))))
    conflicts = [entry.group_id for entry in in_conflict(took)]
    whole = [entry.group_id for entry in took if entry.body and entry.group_id not in conflicts]
    return Selection(whole, conflicts, len(took) - len(conflicts) - len(whole))


def deliver_again(
    project: Project,
    environ: Mapping[str, str],
    group_ids: Sequence[str],
    settings: Callable[[], Mapping[str, Any] | None],
) -> list[InboxEntry]:
    """Deliver these groups now, and return them. Raise `LockHeld` while another process holds the inbox.

    `settings` returns those of the registration, which templates may need, or `None`.
    """
    delivery = Delivery.of(project, environ)

    async def delivering() -> list[InboxEntry]:
        async with delivery:
            with delivery.inbox.lease(Holder.here("time retry", environ), wait=0):
                if group_ids:
                    delivery.configure(await asyncio.to_thread(settings))
                for id in group_ids:
                    await delivery.again(id)
                return [entry for id in group_ids if (entry := delivery.inbox.entry(id))]

    return asyncio.run(delivering())
