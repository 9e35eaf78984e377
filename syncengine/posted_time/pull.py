"""One manual round: deliver and acknowledge open and requested groups, then fetch, deliver and acknowledge.

While a sink is down nothing is fetched, because a group could only fail before its user's eyes. A sink whose last
attempt failed, in any process, is tried with one group first. A failure counts only after a second try.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from syncengine.posted_time.acknowledge import Acknowledging
from syncengine.posted_time.backoff import PACE, Pace, slept
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Event, Offered, RetryLater, Taken, Tell
from syncengine.posted_time.fetch import SINK, Fetching
from syncengine.posted_time.verdict import PostedTimeStatus, SinkTrouble
from syncengine.service.client import Client
from syncengine.service.posted_time import fetch_query

__all__ = ["SINK", "pull"]


async def pull(
    client: Client,
    delivery: Delivery,
    limit: int | None,
    *,
    tell: Tell,
    stop: asyncio.Event,
    call_seconds: float,
    pace: Pace = PACE,
) -> bool:
    """Run one round, and return whether it made a fetch. Raise `WebhookRegistered` when the team has a webhook.

    The fetch waits until there are groups, for a minute at most.
    """
    fetch_query(limit)
    acknowledging = Acknowledging(client, delivery.writer, tell, stop)
    down = await _down(delivery, stop, pace)
    if not down:
        await delivery.resume(stop)
        await delivery.catch_up(stop)
        down = delivery.troubles
    await acknowledging.round()
    if not down:
        await _Round(client, delivery, limit, tell, stop, call_seconds, pace).run()
        await acknowledging.round()
    for trouble in down or delivery.troubles:
        why = f" [{trouble.detail}]" if trouble.detail else ""
        tell(RetryLater(SINK, f"{trouble.message}{why} Nothing is fetched while {trouble.sink} is down.", 0.0))
    return not down


async def _down(delivery: Delivery, stop: asyncio.Event, pace: Pace) -> Sequence[SinkTrouble]:
    """Return the troubles from building the delivery and from probing now: a good probe does not prove write access."""
    before = delivery.troubles
    await delivery.remember_troubles()
    await delivery.check_sinks()
    if delivery.troubles and not delivery.reported:
        await slept(pace.again, stop)
        await delivery.check_sinks()
    return tuple(dict.fromkeys((*before, *delivery.troubles)))


@dataclass(slots=True)
class _Round:
    """A single fetch, preceded by a fetch of only one group if a sink is in doubt."""

    client: Client
    delivery: Delivery
    limit: int | None
    tell: Tell
    stop: asyncio.Event
    call_seconds: float
    pace: Pace
    _groups: int = 0
    _troubled: list[str] = field(default_factory=list)

    async def run(self) -> None:
        if self.delivery.is_cautious:
            await self._fetched(1)
            if not self._groups or self.delivery.troubles:
                return
        await self._fetched(self.limit)
        if self.delivery.troubles and not self.delivery.reported:
            await self._again()

    async def _fetched(self, limit: int | None) -> None:
        self._groups = 0
        await Fetching(
            self.client, self.delivery, lambda: limit, tell=self._heard, stop=self.stop, timeout=self.call_seconds
        ).round()

    def _heard(self, event: Event) -> None:
        if isinstance(event, Offered):
            self._groups = event.groups
        if isinstance(event, Taken) and event.verdict.outcome is PostedTimeStatus.TROUBLE:
            self._troubled.append(event.group_id)
        self.tell(event)

    async def _again(self) -> None:
        """Deliver the failed groups once more before their failure is acknowledged, then the groups not yet begun."""
        await slept(self.pace.again, self.stop)
        for id in self._troubled:
            if verdict := await self.delivery.again(id):
                self.tell(Taken(id, verdict))
            if self.stop.is_set() or self.delivery.troubles:
                return
        await self.delivery.resume(self.stop, lambda id, verdict: self.tell(Taken(id, verdict)))
