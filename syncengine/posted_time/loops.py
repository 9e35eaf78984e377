"""The loops of posted time: fetch groups by long polling and deliver them, and send their verdicts to the service.

`serve` runs both loops, and `time pull` one round of each. What was fetched is stored in the inbox first, and then what
the inbox holds is delivered, so that a crash loses nothing. A fetch that is in progress when its loop is stopped is
abandoned: its groups are offered again.
"""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from syncengine.errors import SyncengineError
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import (
    Acknowledged,
    Event,
    GivenUp,
    Offered,
    RetryLater,
    Taken,
    Tell,
    Unusable,
    message_of,
)
from syncengine.posted_time.pace import PACE, BackOff, Pace, each, side_by_side, slept
from syncengine.service.answers import Answer
from syncengine.service.client import Client
from syncengine.service.posted_time import (
    Group,
    Unreadable,
    fetch,
    fetch_query,
    group_id,
    groups_of,
    update_status,
)
from syncengine.state.database import LockLost
from syncengine.state.inbox import InboxWriter
from syncengine.state.inbox_model import FETCH, Acknowledgement, PostedTimeStatus

T = TypeVar("T")
SINK = "sink"
"""The `what` of an event `RetryLater` that is about a sink in trouble."""

TOGETHER = 500
"""The maximum number of groups of one answer that are stored in the inbox together: one transaction of the writer."""

SIDE_BY_SIDE = 8
"""The maximum number of status updates on their way, half of which are being recorded: the more connections
httpx has, the longer it takes for a request."""

COMPANY = 0.02
"""Seconds for which a new verdict waits for others, so that a round reads the inbox once for many."""

UNKNOWN_GROUP = "the service does not know this time group"
WEBHOOK_NOW = "the team now has a webhook, so the service accepts no status for groups fetched before"


async def deliver_and_tell(delivery: Delivery, id: str, tell: Tell) -> None:
    """Deliver a group of the inbox to the sinks that lack it, and tell its verdict."""
    verdict = await delivery.again(id)
    if verdict is not None and verdict.is_final:
        tell(Taken(id, verdict))
    elif verdict is not None:
        tell(RetryLater(SINK, f"{id} is held back and will be tried again: {verdict.message}", 0.0))


class WebhookRegistered(SyncengineError):
    """Raised when the team has a webhook, so that nothing can be fetched (409)."""

    code = "webhook-registered"


@dataclass(slots=True)
class Fetching:
    """The loop that fetches and delivers groups until `stop` is set. `limit` returns the most groups to ask for.

    `call_seconds` is the time that a call of the service may take, if it is longer than that of a fetch.
    """

    client: Client
    delivery: Delivery
    limit: Callable[[], int | None]
    tell: Tell
    stop: asyncio.Event
    call_seconds: float = 0.0
    pace: Pace = PACE
    _back_off: BackOff = field(init=False)
    _pause: float = 0.0
    """The seconds to wait before the next fetch, since an error or the service's answer asked for it."""

    def __post_init__(self) -> None:
        self._back_off = BackOff(self.pace)

    async def run(self) -> None:
        """Fetch round after round. Raise `WebhookRegistered` when the team has a webhook, or `LockLost`."""
        while not self.stop.is_set():
            if self.delivery.troubles:
                await slept(self.pace.empty, self.stop)
            # Groups that the inbox holds come first: one of them tries a sink in doubt, before any other is fetched.
            elif not (await self.deliver_stored() and self.delivery.is_cautious) and not self.stop.is_set():
                await self.fetch()
                await slept(self._pause, self.stop)

    async def round(self) -> None:
        """Fetch once, and deliver the fetched groups."""
        await self.fetch()
        await self.deliver_stored()

    async def deliver_stored(self) -> int:
        """Deliver the groups of the inbox that have no verdict, and return how many were begun."""
        self._pause = 0.0
        return await self.delivery.resume(self.stop, self._deliver)

    async def _deliver(self, id: str) -> None:
        await self._try(id, deliver_and_tell(self.delivery, id, self.tell))

    async def fetch(self) -> None:
        """Fetch once, and store the fetched groups in the inbox."""
        clock = asyncio.get_running_loop().time
        began, patience = clock(), max(self.call_seconds, self.pace.fetch)
        polling = asyncio.ensure_future(fetch(self.client, self.limit(), patience))
        stopped = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait([polling, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not polling.done():
                return
            answer = polling.result()
        finally:
            stopped.cancel()
            polling.cancel()
        took = clock() - began
        groups = groups_of(answer)
        if groups is not None:
            self._back_off.reset()
            self.tell(Offered(len(groups)))
            if not groups and took < self.pace.empty:
                # A service that answers an empty fetch at once must not be asked a thousand times a second.
                self._pause = max(self._pause, self.pace.empty)
            del answer, polling  # `groups` is emptied while it is stored, to free memory
            while groups:
                piece = groups[:TOGETHER]
                del groups[:TOGETHER]
                for error in await asyncio.gather(*map(self._store, piece), return_exceptions=True):
                    if error is not None:  # all have ended before the first error is raised
                        raise error
        elif answer.status == 409:
            raise WebhookRegistered(
                f"posted time cannot be fetched: the team has a webhook, which excludes fetching ({answer.summary});"
                " set `postedTime.mode: webhook`, or run `syncengine time unregister webhook`"
            )
        else:
            # A fetch without an answer counts as empty when a proxy or gateway ended a long wait. A closed connection
            # must have lasted longer than a gateway's 408 or 504, since a broken proxy closes it too.
            if answer.status is None:
                is_quiet = answer.timed_out or (answer.reached and took >= self.pace.fetch * 2 / 3)
            else:
                is_quiet = answer.status in (408, 504) and took >= self.pace.fetch / 2
            if not is_quiet:
                self._wait("fetch", answer.summary, answer.retry_after)

    async def _store(self, group: Group | Unreadable) -> None:
        id = group.id if isinstance(group, Unreadable) else group_id(group)
        if id is None:
            why = "a fetched group has no groupId, or one that is not a string: its status cannot be reported"
            self.tell(Unusable(why))
        elif verdict := await self._try(id, self.delivery.store(group, mechanism=FETCH)):
            self.tell(Taken(id, verdict))

    async def _try(self, id: str, work: Awaitable[T]) -> T | None:
        """Return the result of work on a group, or `None` after an error: then the group is tried again later."""
        try:
            return await work
        except LockLost:
            raise
        except Exception as error:  # an error in one group must not stop the others
            self._wait("take", f"{id}: {message_of(error)}", None)
            return None

    def _wait(self, what: str, why: str, retry_after: float | None) -> None:
        seconds = self._back_off.after(retry_after)
        self._pause = max(self._pause, seconds)
        self.tell(RetryLater(what, why, seconds))


@dataclass(slots=True)
class Acknowledging:
    """The loop that sends waiting statuses until `stop` is set, and then once more. `ring` tells it of new ones.

    `has_webhook`: the team has a webhook, so that fetched groups cannot be acknowledged any longer.
    """

    client: Client
    inbox: InboxWriter
    tell: Tell
    stop: asyncio.Event
    has_webhook: bool = False
    pace: Pace = PACE
    _rung: asyncio.Event = field(default_factory=asyncio.Event)
    _again: dict[str, tuple[BackOff, float]] = field(default_factory=dict)
    """The statuses that were not accepted, each with the time (of the event loop) at which it is sent again."""
    _service: BackOff = field(init=False)
    _pause: float = 0.0
    """Seconds until the next round, if trouble of the service or the inbox ended this one; else 0."""
    _is_silent: bool = False
    """Whether the last status of this round was not answered in time."""
    _one_round: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._service = BackOff(self.pace)

    def ring(self) -> None:
        self._rung.set()

    async def run(self) -> None:
        while True:
            stopping = self.stop.is_set()
            self._rung.clear()
            pause = await self.round()
            if stopping:
                return
            await slept(pause, self.stop, *([] if self._pause else [self._rung]))
            await slept(COMPANY, self.stop)  # even when `ring` came: its verdict is rarely alone

    async def round(self) -> float:
        """Send all due statuses, after any other round has ended, and return the seconds until the next is due."""
        clock = asyncio.get_running_loop().time
        async with self._one_round:
            self._pause, self._is_silent = 0.0, False
            try:
                waiting = {verdict.group_id: verdict for verdict in await to_thread(self.inbox.inbox.waiting)}
                self._again = {id: again for id, again in self._again.items() if id in waiting}
                due = {id: self._again[id][1] if id in self._again else 0.0 for id in waiting}
                # New statuses first, then those that failed before.
                order = sorted(waiting.values(), key=lambda verdict: due[verdict.group_id])
                now = order if self.stop.is_set() else [one for one in order if due[one.group_id] <= clock()]
                await side_by_side(each(now), self._send, lambda: 0 if self._pause else SIDE_BY_SIDE)
            except LockLost:
                raise
            except SyncengineError as error:
                self._pause = self._wait("acknowledge", error.message, self._service)
            if self._pause:
                return self._pause
            return min((max(0.05, due - clock()) for _, due in self._again.values()), default=self.pace.longest)

    async def _send(self, verdict: Acknowledgement) -> None:
        """Send a status, and record the service's answer."""
        id = verdict.group_id
        answer = await update_status(self.client, id, verdict.status, verdict.message, verdict.external_id)
        if answer.ok:
            self._service.reset()
            await self.inbox.write(lambda tx: tx.acknowledge(id, verdict.status, verdict.decided, verdict.offers))
            self._again.pop(id, None)
            self.tell(Acknowledged(id, verdict.status))
        elif answer.status == 404 or (answer.status == 409 and self.has_webhook):
            why = UNKNOWN_GROUP if answer.status == 404 else WEBHOOK_NOW
            await self.inbox.write(lambda tx: tx.give_up(id, why))
            self._again.pop(id, None)
            self.tell(GivenUp(id, why))
        else:
            self._put_off(id, answer)
            await self.inbox.write(lambda tx: tx.not_accepted(id, verdict.status, answer.summary))

    def _put_off(self, id: str, answer: Answer) -> None:
        """Schedule the status to be sent again. If the service itself fails, send no further status in this round.

        The service itself has trouble if it rejects the key or cannot be reached, or after two timeouts in a row; after
        `stop`, a single timeout is enough. When several statuses fail together, report and count only the first.
        """
        was_silent, self._is_silent = self._is_silent, answer.timed_out
        if answer.timed_out:
            is_services = was_silent or self.stop.is_set()
        else:
            is_services = answer.status == 401 or (answer.status is None and not answer.reached)
        back_off = self._again[id][0] if id in self._again else BackOff(self.pace)
        if not is_services:
            seconds = self._wait(f"acknowledge {id}", answer.summary, back_off, answer.retry_after)
        else:
            self._pause = self._pause or self._wait("acknowledge", answer.summary, self._service, answer.retry_after)
            seconds = self._pause
        self._again[id] = back_off, asyncio.get_running_loop().time() + seconds

    def _wait(self, what: str, why: str, back_off: BackOff, retry_after: float | None = None) -> float:
        seconds = back_off.after(retry_after)
        self.tell(RetryLater(what, why, seconds))
        return seconds


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
    """Run one manual round, and return whether it made a fetch. Raise `WebhookRegistered` when the team has a webhook.

    Deliver and acknowledge open and requested groups, then fetch, deliver and acknowledge. The fetch waits until there
    are groups, for a minute at most. While a sink is down nothing is fetched, because a group could only fail before
    its user's eyes. A sink whose last attempt failed, in any process, is tried with one group first. A failure counts
    only after a second try, so what failed is delivered once more.
    """
    fetch_query(limit)  # which raises for a limit that the service does not take, before anything is done
    offered, troubled = 0, list[str]()

    def heard(event: Event) -> None:
        nonlocal offered
        if isinstance(event, Offered):
            offered = event.groups
        if isinstance(event, Taken) and event.verdict.outcome is PostedTimeStatus.TROUBLE:
            troubled.append(event.group_id)
        tell(event)

    deliver = partial(deliver_and_tell, delivery, tell=tell)

    async def fetch_round() -> None:
        if delivery.is_cautious:
            await Fetching(client, delivery, lambda: 1, heard, stop, call_seconds, pace).round()
            if not offered or delivery.troubles:
                return
        fetching = Fetching(client, delivery, lambda: limit, heard, stop, call_seconds, pace)
        await fetching.round()
        if not delivery.troubles or delivery.reported:
            return
        # The failed groups are delivered again before their failure is acknowledged, then the groups not yet begun.
        await slept(pace.again, stop)
        for id in tuple(troubled):
            await deliver(id)
            if stop.is_set() or delivery.troubles:
                return
        await fetching.deliver_stored()

    acknowledging = Acknowledging(client, delivery.writer, tell, stop)
    before = delivery.troubles
    await delivery.remember_troubles()
    await delivery.check_sinks()
    if delivery.troubles and not delivery.reported:
        await slept(pace.again, stop)
        await delivery.check_sinks()
    down = tuple(dict.fromkeys((*before, *delivery.troubles)))  # a good probe does not prove write access
    if not down:
        await delivery.resume(stop, deliver)
        await delivery.catch_up(stop, deliver)
        down = delivery.troubles
    await acknowledging.round()
    if not down:
        await fetch_round()
        await acknowledging.round()
    for trouble in down or delivery.troubles:
        why = f" [{trouble.detail}]" if trouble.detail else ""
        tell(RetryLater(SINK, f"{trouble.message}{why} Nothing is fetched while {trouble.sink} is down.", 0.0))
    return not down
