"""Posted time by hand: preview a group, select and deliver groups again, or fetch, deliver and acknowledge once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from syncengine.connector.connection import prove_team, stopping_on_signals
from syncengine.connector.registration import HealthReporter, settings_of
from syncengine.errors import Interrupted, Usage
from syncengine.posted_time.audit import PENDING
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Acknowledged, Event, RetryLater, Taken, Unusable
from syncengine.posted_time.group import NO_ID, ContentChange, last_changes, read_group
from syncengine.posted_time.loops import SINK, pull
from syncengine.posted_time.route import Prepared, Route
from syncengine.posted_time.sinks.contract import Failed, Refused, RenderedGroup, Sink
from syncengine.posted_time.templates import NeedsRow, Variables, plain
from syncengine.project.delivery_schema import Mode
from syncengine.project.model import Project
from syncengine.project.runner import Holder
from syncengine.service.client import Client
from syncengine.service.posted_time import group_id
from syncengine.state.connector import Mechanism, registered_mechanism, remember_mechanism
from syncengine.state.inbox import Inbox
from syncengine.state.inbox_model import FETCH, DeliveryStatus, GroupState, InboxEntry, PostedTimeStatus, sink_of

SAMPLE: Mapping[str, Any] = {
    "groupId": "00000000-0000-4000-8000-000000000001",
    "description": "Reply to the examiner",
    "totalDurationSecs": 10000,
    "totalDurationHours": 2.78,
    "tzOffsetMins": 120,
    "localDate": "2024-05-02",
    "groupName": "Patents EU",
    "narrativeType": "NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS",
    "status": PENDING,
    "submissionTime": 1714662000000,
    "tags": [{"name": "ACME-0042", "path": "/", "description": "Opposition", "externalId": "4711"}],
    "activityType": {"code": "A101", "label": "Plan and prepare for"},
    "user": {
        "userId": "u-1",
        "name": "Jo Doe",
        "email": "jo@example.com",
        "externalId": "jd",
        "businessRole": "Attorney",
        "experienceWeightingPercent": 100,
    },
    "durationSplitStrategy": "DIVIDE_BETWEEN_TAGS",
    "timeRows": [
        {
            "activity": "Word",
            "description": "Reply.docx",
            "activityHour": 2024050207,
            "firstObservedInHour": 5,
            "durationSecs": 6400,
            "source": "WT_DESKTOP",
            "timezone_name": "Europe/Vienna",
            "timezone_offset_min": 120,
        },
        {
            "activity": "@_Call with the client_@",
            "description": None,
            "activityHour": 2024050209,
            "firstObservedInHour": 30,
            "durationSecs": 3600,
            "source": "USER_MANUAL_TIME",
            "timezone_name": "Europe/Vienna",
            "timezone_offset_min": 120,
        },
    ],
}
"""A sample group in the form in which the service sends groups."""


async def preview(route: Route, raw: Mapping[str, object]) -> dict[str, Any]:
    """Return the preview of a group. Its `outcome` is the verdict if every target took the group.

    It is `None` if the verdict depends on the row of a lookup.
    """
    group = read_group(raw)
    has_id = group_id(raw) is not None
    prepared: Prepared | Refused | Failed | NeedsRow
    try:
        prepared = await route.prepare(group, 1, rehearse=True) if has_id else Refused(NO_ID)
    except NeedsRow as error:
        prepared = error
    document: dict[str, Any] = {"groupId": group.groupId, "outcome": PostedTimeStatus.SUCCESS, "message": None}
    if isinstance(prepared, Refused | Failed | NeedsRow):
        match prepared:
            case NeedsRow():
                document |= {"outcome": None, "message": str(prepared)}
            case Refused(message, detail):
                words = f"{message} ({detail})" if detail else message  # a user gets the first alone
                document |= {"outcome": PostedTimeStatus.REFUSED, "message": words}
            case Failed():
                document |= {"outcome": PostedTimeStatus.TROUBLE, "message": prepared.detail or prepared.message}
        return {**document, "narrative": None, "duration": None, "start": None, "sinks": []}
    seen = prepared.variables
    shown = [_shown(sink, rendered, seen) for sink, rendered in prepared.rendered_groups]
    made = {"narrative": seen.get("narrative"), "duration": plain(seen["duration"]), "start": plain(seen["start"])}
    return {**document, **made, "sinks": shown}


def _shown(sink: Sink, rendered: RenderedGroup, whole: Variables) -> dict[str, Any]:
    """Return one delivery as plain values. `tag` and `seconds` describe its part; `tag` is `None` for a whole group."""
    seen = rendered.variables
    return {
        "sink": sink.name,
        "key": rendered.key,
        "tag": None if seen is whole else seen["tag"].name,
        "seconds": seen["duration"].seconds,
        "content": sink.shown(rendered.content),
    }


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


NEEDS = "`time pull` needs `mode: fetch`"


class PullRound(NamedTuple):
    """The events of one round, and whether anything was fetched: nothing is while a sink is down."""

    has_fetched: bool
    events: Sequence[Event]

    @property
    def groups(self) -> Sequence[Taken]:
        """The last event of each group that was fetched."""
        return list({event.group_id: event for event in self.events if isinstance(event, Taken)}.values())

    @property
    def heard(self) -> Mapping[str, str]:
        """The statuses that the service accepted, by group."""
        return {event.group_id: event.status for event in self.events if isinstance(event, Acknowledged)}

    @property
    def is_well(self) -> bool:
        """Whether every group was decided without trouble and acknowledged, and nothing else failed."""
        heard = self.heard
        has_failed = any(
            isinstance(event, Unusable) or (isinstance(event, RetryLater) and event.what in ("fetch", "take", SINK))
            for event in self.events
        )
        return not has_failed and all(
            each.verdict.outcome is not PostedTimeStatus.TROUBLE and each.group_id in heard for each in self.groups
        )


async def pull_once(client: Client, project: Project, limit: int | None, environ: Mapping[str, str]) -> PullRound:
    """Fetch, deliver and acknowledge once, at most `limit` groups; tell the service which sinks are down."""
    section = project.posted_time
    if section is None:
        raise Usage("the project file has no `postedTime:`, so there is no sink: add one to deliver posted time")
    if section.mode is Mode.OFF:  # a fetch would start recording
        raise Usage(f"`postedTime.mode` is off, so nothing was fetched: {NEEDS}")
    if section.mode is Mode.WEBHOOK:
        calls = "`postedTime.mode` is webhook: the service calls `syncengine serve`, so nothing was fetched"
        raise Usage(f"{calls}; {NEEDS}")
    await prove_team(client, project)
    stop, delivery, events = asyncio.Event(), Delivery.of(project, environ), list[Event]()

    def say(why: str) -> None:
        events.append(RetryLater("registration", why, 0.0))

    delivery.configure(await settings_of(client, time.time(), project.service.connector_type, say))
    with stopping_on_signals(stop):
        async with delivery:
            with delivery.inbox.lease(Holder.here("time pull", environ), wait=0):
                chosen, seconds = limit or section.fetch_limit, project.service.timeout
                has_fetched = await pull(client, delivery, chosen, tell=events.append, stop=stop, call_seconds=seconds)
                if delivery.reported or not delivery.is_cautious:  # a sink that is only in doubt tells nothing
                    reporter, failure = HealthReporter(client, delivery.inbox.database, time.time), delivery.reported
                    if await reporter.is_news(failure) and not (answer := await reporter.tell(failure)).ok:
                        why = f"the service rejected the health report: {answer.summary}"
                        events.append(RetryLater("health", why, 0.0))
    mechanism = Mechanism(FETCH, project.base_url())  # a fetch registers a fetch client (docs/interface.md 4)
    if has_fetched and await asyncio.to_thread(registered_mechanism, project.state) != mechanism:
        await asyncio.to_thread(remember_mechanism, project.state, mechanism)
    if stop.is_set():
        raise Interrupted("interrupted; the groups that were fetched are in the inbox")
    return PullRound(has_fetched, events)
