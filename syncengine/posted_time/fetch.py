"""The fetch loop: fetch groups by long polling, and deliver them. Verdicts are sent by `acknowledge`.

A fetch that is in progress when the loop is stopped is abandoned: its groups are offered again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from syncengine.errors import SyncengineError
from syncengine.posted_time.backoff import PACE, BackOff, Pace, slept
from syncengine.posted_time.events import Offered, RetryLater, Taken, Tell, Unusable, message_of
from syncengine.posted_time.verdict import SinkTrouble, Verdict
from syncengine.posted_time.window import each, side_by_side
from syncengine.service.answers import Answer
from syncengine.service.client import Client
from syncengine.service.posted_time import Group, Unreadable, fetch, group_id, groups_of
from syncengine.state.inbox_model import FETCH
from syncengine.state.lock import LockLost

T = TypeVar("T")
SINK = "sink"
"""The `what` of an event `RetryLater` that is about a sink in trouble."""

TOGETHER = 500
"""The maximum number of groups of one answer that are stored in the inbox together."""


class WebhookRegistered(SyncengineError):
    """Raised when the team has a webhook, so that nothing can be fetched (409)."""

    code = "webhook-registered"


class FetchDelivery(Protocol):
    """The part of a delivery that the fetch loop needs."""

    @property
    def troubles(self) -> Sequence[SinkTrouble]: ...

    @property
    def is_cautious(self) -> bool: ...

    def width(self, stop: asyncio.Event) -> int: ...

    async def resume(self, stop: asyncio.Event, heard: Callable[[str, Verdict], None]) -> int: ...

    async def keep(self, raw: Mapping[str, Any], *, mechanism: str) -> Any: ...

    async def deliver(self, kept: Any) -> Verdict: ...

    async def refuse(self, group_id: str, digest: str, *, mechanism: str) -> Verdict: ...


class Fetching:
    """The loop that fetches and delivers groups until `stop` is set. `limit` returns the most groups to ask for."""

    def __init__(
        self,
        client: Client,
        delivery: FetchDelivery,
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
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await self._polled()
        if answer is None:
            return 0.0
        took = loop.time() - began
        groups = groups_of(answer)
        if groups is not None:
            del answer  # `groups` is emptied while it is stored, to free memory
            return await self._brought(groups, took)
        if answer.status == 409:
            raise WebhookRegistered(_explained(answer))
        return 0.0 if self._is_quiet(answer, took) else self._trouble(answer)

    def _is_quiet(self, answer: Answer, took: float) -> bool:
        """Return whether a fetch without an answer counts as empty, because a proxy ended a long wait.

        A closed connection must have lasted longer than a gateway's 408 or 504, since a broken proxy closes it too.
        """
        if answer.status is None:
            return answer.timed_out or (answer.reached and took >= self._pace.fetch * 2 / 3)
        return answer.status in (408, 504) and took >= self._pace.fetch / 2

    async def _polled(self) -> Answer | None:
        """Fetch, and return the answer, or `None` when `stop` was set meanwhile."""
        polling = asyncio.ensure_future(fetch(self._client, self._limit(), self._patience))
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([polling, stopped], return_when=asyncio.FIRST_COMPLETED)
            return polling.result() if polling.done() else None
        finally:
            stopped.cancel()
            polling.cancel()

    async def _brought(self, groups: list[Group | Unreadable], took: float) -> float:
        """Store all fetched groups first, so that a crash loses none, then deliver. Return the seconds to wait."""
        self._back_off.reset()
        self._tell(Offered(len(groups)))
        # A service that answers an empty fetch at once must not be asked a thousand times a second.
        self._pause = self._pace.empty if not groups and took < self._pace.empty else 0.0
        kept = await self._all_kept(groups)
        is_whole = await side_by_side(each(_emptied(kept)), self._delivered, lambda: self._delivery.width(self._stop))
        self._has_left |= not is_whole
        return self._pause

    async def _all_kept(self, groups: list[Group | Unreadable]) -> deque[tuple[str, Any]]:
        """Empty the list of fetched groups into the inbox, and return their ids and stored offers in order."""
        kept = deque[tuple[str, Any]]()
        while groups:
            piece = [(id, group) for group in groups[:TOGETHER] if (id := self._id(group))]
            del groups[:TOGETHER]
            found = await _all(self._kept(id, group) for id, group in piece)
            kept += ((id, one) for (id, _), one in zip(piece, found, strict=True) if one)
        return kept

    async def _delivered(self, kept: tuple[str, Any]) -> None:
        id, one = kept
        if verdict := await self._tried(id, self._delivery.deliver(one)):
            self._heard(id, verdict)

    def _heard(self, id: str, verdict: Verdict) -> None:
        """Report a verdict, or that the group is held back when its verdict is not final."""
        if verdict.is_final:
            self._tell(Taken(id, verdict))
        else:
            self._tell(RetryLater(SINK, f"{id} is held back and will be tried again: {verdict.message}", 0.0))

    def _id(self, group: Group | Unreadable) -> str | None:
        id = group.id if isinstance(group, Unreadable) else group_id(group)
        if id is None:
            self._tell(
                Unusable("a fetched group has no groupId, or one that is not a string: its status cannot be reported")
            )
        return id

    async def _kept(self, id: str, group: Group | Unreadable) -> Any:
        """Store a group in the inbox, or refuse an unreadable one. Return `None` when there is nothing to deliver."""
        if not isinstance(group, Unreadable):
            return await self._tried(id, self._delivery.keep(group, mechanism=FETCH))
        if verdict := await self._tried(id, self._delivery.refuse(id, group.digest, mechanism=FETCH)):
            self._tell(Taken(id, verdict))
        return None

    async def _tried(self, id: str, work: Awaitable[T]) -> T | None:
        """Return the result of work on a group, or `None` after an error: then the service offers the group again."""
        try:
            return await work
        except LockLost:
            raise
        except Exception as error:  # an error in one group must not stop the others
            self._pause = max(self._pause, self._waits("take", f"{id}: {message_of(error)}", None))
            return None

    def _trouble(self, answer: Answer) -> float:
        return self._waits("fetch", answer.summary, answer.retry_after)

    def _waits(self, what: str, why: str, retry_after: float | None) -> float:
        seconds = self._back_off.after(retry_after)
        self._tell(RetryLater(what, why, seconds))
        return seconds


def _emptied(kept: deque[T]) -> Iterator[T]:
    """Yield the items, and remove each from the queue, to free memory."""
    while kept:
        yield kept.popleft()


async def _all(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all works concurrently, and return their results, or raise the first error after all have ended."""
    found = await asyncio.gather(*works, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if not isinstance(one, BaseException)]


def _explained(answer: Answer) -> str:
    return (
        f"posted time cannot be fetched: the team has a webhook, which excludes fetching ({answer.summary});"
        " set `postedTime.mode: webhook`, or run `syncengine time unregister webhook`"
    )
