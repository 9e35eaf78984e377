"""One round by hand: what was left over or asked for is delivered and told, then fetch, deliver, acknowledge.

Events are told. While a sink is down nothing is fetched: what would come could only fail, for its users to see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from syncengine.posted_time.acknowledge import Acknowledging
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Tell, Waiting
from syncengine.posted_time.fetch import Fetching
from syncengine.posted_time.verdict import SinkTrouble
from syncengine.service.client import Client
from syncengine.service.posted_time import fetch_query

SINK = "sink"
"""What is waited for, in the event that a sink is down."""


async def pull(
    client: Client, delivery: Delivery, limit: int | None, *, tell: Tell, stop: asyncio.Event, call_seconds: float
) -> bool:
    """Whether it fetched. WebhookRegistered when the team has one.

    The fetch is held open until there is something, a minute at most.
    """
    fetch_query(limit)
    acknowledging = Acknowledging(client, delivery.inbox, tell, stop)
    down = await _down(delivery)
    if not down:
        await delivery.resume(stop)
        await delivery.catch_up()
        down = delivery.troubles
    await acknowledging.round()
    for trouble in down:
        tell(Waiting(SINK, f"{trouble.message} Nothing is fetched while {trouble.sink} is down.", 0.0))
    if down:
        return False
    await Fetching(client, delivery, lambda: limit, tell=tell, stop=stop, timeout=call_seconds).round()
    await acknowledging.round()
    return True


async def _down(delivery: Delivery) -> Sequence[SinkTrouble]:
    """What was in trouble when the delivery was made, and what is now: a well probe proves no right to write."""
    before = delivery.troubles
    return tuple(dict.fromkeys((*before, *await delivery.check_sinks())))
