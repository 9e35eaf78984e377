"""Fetch posted time by hand: one round of fetching, delivering and acknowledging, and what became of its groups."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from syncengine.connector.connection import prove_team, stopping_on_signals
from syncengine.connector.registration import HealthReporter, settings_of
from syncengine.errors import Interrupted, Usage
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Acknowledged, Event, RetryLater, Taken, Unusable
from syncengine.posted_time.loops import SINK, pull
from syncengine.project.delivery_schema import Mode
from syncengine.project.model import Project
from syncengine.service.client import Client
from syncengine.state.connector import Mechanism, registered_mechanism, remember_mechanism
from syncengine.state.holder import Holder
from syncengine.state.inbox_model import FETCH, PostedTimeStatus

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
