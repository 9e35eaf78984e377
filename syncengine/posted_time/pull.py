"""One round by hand: what was left over is delivered and told, then fetch, deliver, acknowledge. Events are told."""

from __future__ import annotations

import asyncio

from syncengine.posted_time.acknowledge import Acknowledging
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Tell
from syncengine.posted_time.fetch import Fetching
from syncengine.service.client import Client
from syncengine.service.posted_time import fetch_query


async def pull(
    client: Client, delivery: Delivery, limit: int | None, *, tell: Tell, stop: asyncio.Event, call_seconds: float
) -> None:
    """WebhookRegistered when the team has one. The fetch is held open until there is something, a minute at most."""
    fetch_query(limit)
    acknowledging = Acknowledging(client, delivery.inbox, tell, stop)
    await delivery.resume(stop)
    await acknowledging.round()
    await Fetching(client, delivery, lambda: limit, tell=tell, stop=stop, timeout=call_seconds).round()
    await acknowledging.round()
