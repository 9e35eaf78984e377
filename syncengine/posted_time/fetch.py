"""Fetch groups by long polling, and deliver them: the loop of `serve`, and the one round of `time pull`.

Verdicts are sent by `acknowledge`. A fetch that is in progress when the loop is stopped is abandoned: its groups are
offered again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from syncengine.errors import SyncengineError
from syncengine.posted_time.acknowledge import Acknowledging
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Event, Offered, RetryLater, Taken, Tell, Unusable, Verdict, message_of
from syncengine.posted_time.pace import PACE, BackOff, Pace, each, side_by_side, slept
from syncengine.service.answers import Answer
from syncengine.service.client import Client
from syncengine.service.posted_time import Group, Unreadable, fetch, fetch_query, group_id, groups_of
from syncengine.state.inbox_model import FETCH, PostedTimeStatus
from syncengine.state.lock import LockLost

T = TypeVar("T")
SINK = "sink"
"""The `what` of an event `RetryLater` that is about a sink in trouble."""

TOGETHER = 500
"""The maximum number of groups of one answer that are stored in the inbox together: one transaction of the writer."""


class WebhookRegistered(SyncengineError):
    """Raised when the team has a webhook, so that nothing can be fetched (409)."""

    code = "webhook-registered"


class Fetching:
    """The loop that fetches and delivers groups until `stop` is set. `limit` returns the most groups to ask for."""

    def __init__(
        self,
        client: Client,
        delivery: Delivery,
        limit: Callable[[], int | None],
        *,
        tell: Tell,
        stop: asyncio.Event,
        timeout: float = 0.0,
        pace: Pace = PACE,
    ) -> None:
        self._client = client
        self._delivery = delivery
        self._limit = limit
        self._tell = tell
        self._stop = stop
        self._patience = max(timeout, pace.fetch)
        self._pace = pace
        self._back_off = BackOff(pace)
        self._pause = 0.0
        self._has_left = True
        """Whether the inbox may have groups whose delivery has not begun, as is assumed at start."""

    async def run(self) -> None:
        """Fetch round after round. Raise `WebhookRegistered` when the team has a webhook, or `LockLost`."""
        while not self._stop.is_set():
            pause = self._pace.empty if self._delivery.troubles else await self._trial_or_round()
            if pause:
                await slept(pause, self._stop)

    async def _trial_or_round(self) -> float:
        """Deliver stored groups, which tries a sink in doubt; if there are none, fetch. Return the seconds to wait."""
        if self._delivery.is_cautious or self._has_left:
            self._has_left = False
            if await self._delivery.resume(self._stop, self._heard):
                self._has_left = self._delivery.width(self._stop) == 0
                return 0.0
        return await self.round()

    async def round(self) -> float:
        """Fetch once, deliver the fetched groups, and return the seconds to wait before the next fetch."""
        began = asyncio.get_running_loop().time()
        polling = asyncio.ensure_future(fetch(self._client, self._limit(), self._patience))
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([polling, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not polling.done():
                return 0.0
            answer = polling.result()
        finally:
            stopped.cancel()
            polling.cancel()
        took = asyncio.get_running_loop().time() - began
        groups = groups_of(answer)
        if groups is not None:
            del answer, polling  # `groups` is emptied while it is stored, to free memory
            return await self._take(groups, took)
        if answer.status == 409:
            raise WebhookRegistered(
                f"posted time cannot be fetched: the team has a webhook, which excludes fetching ({answer.summary});"
                " set `postedTime.mode: webhook`, or run `syncengine time unregister webhook`"
            )
        return 0.0 if self._is_quiet(answer, took) else self._wait("fetch", answer.summary, answer.retry_after)

    def _is_quiet(self, answer: Answer, took: float) -> bool:
        """Return whether a fetch without an answer counts as empty, because a proxy ended a long wait.

        A closed connection must have lasted longer than a gateway's 408 or 504, since a broken proxy closes it too.
        """
        if answer.status is None:
            return answer.timed_out or (answer.reached and took >= self._pace.fetch * 2 / 3)
        return answer.status in (408, 504) and took >= self._pace.fetch / 2

    async def _take(self, groups: list[Group | Unreadable], took: float) -> float:
        """Store all fetched groups first, so that a crash loses none, then deliver. Return the seconds to wait."""
        self._back_off.reset()
        self._tell(Offered(len(groups)))
        # A service that answers an empty fetch at once must not be asked a thousand times a second.
        self._pause = self._pace.empty if not groups and took < self._pace.empty else 0.0
        stored = deque[tuple[str, Any]]()
        while groups:
            piece = [(id, group) for group in groups[:TOGETHER] if (id := self._id(group))]
            del groups[:TOGETHER]
            found = await asyncio.gather(*(self._store(id, group) for id, group in piece), return_exceptions=True)
            for (id, _), one in zip(piece, found, strict=True):  # all have ended before the first error is raised
                if isinstance(one, BaseException):
                    raise one
                if one:
                    stored.append((id, one))

        def emptied() -> Iterator[tuple[str, Any]]:
            while stored:
                yield stored.popleft()  # a group that was delivered is kept in memory no longer

        is_whole = await side_by_side(each(emptied()), self._deliver, lambda: self._delivery.width(self._stop))
        self._has_left |= not is_whole
        return self._pause

    def _id(self, group: Group | Unreadable) -> str | None:
        id = group.id if isinstance(group, Unreadable) else group_id(group)
        if id is None:
            self._tell(
                Unusable("a fetched group has no groupId, or one that is not a string: its status cannot be reported")
            )
        return id

    async def _store(self, id: str, group: Group | Unreadable) -> Any:
        """Store a group in the inbox, or refuse an unreadable one. Return `None` when there is nothing to deliver."""
        if not isinstance(group, Unreadable):
            return await self._try(id, self._delivery.keep(group, mechanism=FETCH))
        if verdict := await self._try(id, self._delivery.refuse(id, group.digest, mechanism=FETCH)):
            self._tell(Taken(id, verdict))
        return None

    async def _deliver(self, stored: tuple[str, Any]) -> None:
        id, kept = stored
        if verdict := await self._try(id, self._delivery.deliver(kept)):
            self._heard(id, verdict)

    def _heard(self, id: str, verdict: Verdict) -> None:
        """Report a verdict, or that the group is held back when its verdict is not final."""
        if verdict.is_final:
            self._tell(Taken(id, verdict))
        else:
            self._tell(RetryLater(SINK, f"{id} is held back and will be tried again: {verdict.message}", 0.0))

    async def _try(self, id: str, work: Awaitable[T]) -> T | None:
        """Return the result of work on a group, or `None` after an error: then the service offers the group again."""
        try:
            return await work
        except LockLost:
            raise
        except Exception as error:  # an error in one group must not stop the others
            self._pause = max(self._pause, self._wait("take", f"{id}: {message_of(error)}", None))
            return None

    def _wait(self, what: str, why: str, retry_after: float | None) -> float:
        seconds = self._back_off.after(retry_after)
        self._tell(RetryLater(what, why, seconds))
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
    only after a second try.
    """
    fetch_query(limit)  # which raises for a limit that the service does not take, before anything is done
    acknowledging = Acknowledging(client, delivery.writer, tell, stop)
    before = delivery.troubles
    await delivery.remember_troubles()
    await delivery.check_sinks()
    if delivery.troubles and not delivery.reported:
        await slept(pace.again, stop)
        await delivery.check_sinks()
    down = tuple(dict.fromkeys((*before, *delivery.troubles)))  # a good probe does not prove write access
    if not down:
        await delivery.resume(stop)
        await delivery.catch_up(stop)
        down = delivery.troubles
    await acknowledging.round()
    if not down:
        await _fetch_round(client, delivery, limit, tell, stop, call_seconds, pace)
        await acknowledging.round()
    for trouble in down or delivery.troubles:
        why = f" [{trouble.detail}]" if trouble.detail else ""
        tell(RetryLater(SINK, f"{trouble.message}{why} Nothing is fetched while {trouble.sink} is down.", 0.0))
    return not down


async def _fetch_round(
    client: Client,
    delivery: Delivery,
    limit: int | None,
    tell: Tell,
    stop: asyncio.Event,
    call_seconds: float,
    pace: Pace,
) -> None:
    """Fetch once, preceded by a fetch of only one group if a sink is in doubt, and deliver what failed once more."""
    offered = 0
    troubled = list[str]()

    def heard(event: Event) -> None:
        nonlocal offered
        if isinstance(event, Offered):
            offered = event.groups
        if isinstance(event, Taken) and event.verdict.outcome is PostedTimeStatus.TROUBLE:
            troubled.append(event.group_id)
        tell(event)

    if delivery.is_cautious:
        await Fetching(client, delivery, lambda: 1, tell=heard, stop=stop, timeout=call_seconds).round()
        if not offered or delivery.troubles:
            return
    await Fetching(client, delivery, lambda: limit, tell=heard, stop=stop, timeout=call_seconds).round()
    if not delivery.troubles or delivery.reported:
        return
    # The failed groups are delivered again before their failure is acknowledged, then the groups not yet begun.
    await slept(pace.again, stop)
    for id in troubled:
        if verdict := await delivery.again(id):
            tell(Taken(id, verdict))
        if stop.is_set() or delivery.troubles:
            return
    await delivery.resume(stop, lambda id, verdict: tell(Taken(id, verdict)))
