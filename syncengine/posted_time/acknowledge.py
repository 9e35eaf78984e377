"""The acknowledgement loop: send the verdicts in the inbox as status updates until the service accepts them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from functools import partial

from syncengine.errors import SyncengineError
from syncengine.posted_time.events import Acknowledged, GivenUp, RetryLater, Tell
from syncengine.posted_time.inbox_writer import InboxWriter
from syncengine.posted_time.pace import PACE, WIDTH, BackOff, Pace, side_by_side, slept
from syncengine.service.answers import Answer
from syncengine.service.client import Client
from syncengine.service.posted_time import update_status
from syncengine.state.inbox_model import Acknowledgement
from syncengine.state.lock import LockLost

SIDE_BY_SIDE = 8
"""The maximum number of status updates sent at the same time; the client may allow fewer."""

COMPANY = 0.02
"""Seconds for which a new verdict waits for others, so that a round reads the inbox once for many."""

UNKNOWN_GROUP = "the service does not know this time group"
WEBHOOK_NOW = "the team now has a webhook, so the service accepts no status for groups fetched before"


@dataclass(slots=True)
class _Again:
    """The time (of the event loop) at which a status that was not accepted is sent again."""

    back_off: BackOff
    due: float = 0.0


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
    _again: dict[str, _Again] = field(default_factory=dict)
    _service: BackOff = field(init=False)
    _down: bool = False
    """Whether the service or the inbox is in trouble, so that `ring` does not end the wait."""
    _pause: float = 0.0
    """Seconds until the next round, if the service's trouble ended this one; else 0."""
    _silent: bool = False
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
            await slept(pause, self.stop, *([] if self._down else [self._rung]))
            await slept(COMPANY, self.stop)  # even when `ring` came: its verdict is rarely alone

    async def round(self) -> float:
        """Send all due statuses, after any other round has ended, and return the seconds until the next is due."""
        async with self._one_round:
            self._down = self._silent = False
            self._pause = 0.0
            turns = asyncio.Semaphore(SIDE_BY_SIDE)

            async def in_turn(verdicts: Iterable[Acknowledgement]) -> AsyncIterator[Acknowledgement]:
                for verdict in verdicts:
                    await turns.acquire()  # until an answer has come: what was answered is recorded beside the others
                    yield verdict

            try:
                waiting = await self.inbox.waiting()
                # New statuses first, then those that failed before.
                due = {id: again.due for id, again in self._again.items()}
                order = sorted(waiting, key=lambda verdict: due.get(verdict.group_id, 0.0))
                send = partial(self._send, turns)
                if not await side_by_side(in_turn(order), send, lambda: 0 if self._pause else WIDTH):
                    return self._pause
            except LockLost:
                raise
            except SyncengineError as error:
                return self._wait("acknowledge", error.message, self._service, None)
            ids = {verdict.group_id for verdict in waiting}
            self._again = {id: again for id, again in self._again.items() if id in ids}
            now = asyncio.get_running_loop().time()
            return min((max(0.05, again.due - now) for again in self._again.values()), default=self.pace.longest)

    async def _send(self, turns: asyncio.Semaphore, verdict: Acknowledgement) -> None:
        """Send a status if it is due, end its turn, and record the service's answer."""
        id = verdict.group_id
        again = self._again.setdefault(id, _Again(BackOff(self.pace)))
        try:
            if again.due > asyncio.get_running_loop().time() and not self.stop.is_set():
                return
            answer = await update_status(self.client, id, verdict.status, verdict.message, verdict.external_id)
        finally:
            turns.release()
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
            self._put_off(id, again, answer)
            await self.inbox.write(lambda tx: tx.not_accepted(id, verdict.status, answer.summary))

    def _put_off(self, id: str, again: _Again, answer: Answer) -> None:
        """Schedule the status to be sent again. If the service itself fails, send no further status in this round.

        The service itself has trouble if it rejects the key or cannot be reached, or after two timeouts in a row; after
        `stop`, a single timeout is enough. When several statuses fail together, report and count only the first.
        """
        silent_before, self._silent = self._silent, answer.timed_out
        if answer.timed_out:
            is_services = silent_before or self.stop.is_set()
        else:
            is_services = answer.status == 401 or (answer.status is None and not answer.reached)
        if not is_services:
            seconds = self._wait(f"acknowledge {id}", answer.summary, again.back_off, answer)
        elif self._pause:
            seconds = self._pause
        else:
            seconds = self._pause = self._wait("acknowledge", answer.summary, self._service, answer)
        again.due = asyncio.get_running_loop().time() + seconds

    def _wait(self, what: str, why: str, back_off: BackOff, answer: Answer | None) -> float:
        self._down |= back_off is self._service
        seconds = back_off.after(answer.retry_after if answer else None)
        self.tell(RetryLater(what, why, seconds))
        return seconds
