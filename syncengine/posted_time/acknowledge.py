"""The acknowledgement loop: verdicts in the inbox → status updates, each repeated until the service has accepted it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from syncengine.errors import SyncengineError
from syncengine.posted_time.events import Acknowledged, GivenUp, Tell, Waiting
from syncengine.posted_time.pace import PACE, BackOff, Pace, slept
from syncengine.service.answers import Answer
from syncengine.service.client import Client
from syncengine.service.posted_time import update_status
from syncengine.store.inbox import Acknowledgement
from syncengine.store.lock import LockLost

UNKNOWN_GROUP = "the service does not know this time group"
WEBHOOK_NOW = "the team has a webhook now, and the service takes no status of what was fetched before"


class Verdicts(Protocol):
    """What the loop needs of an inbox."""

    def waiting(self) -> Iterable[Acknowledgement]: ...
    def acknowledged(self, group_id: str, status: str) -> None: ...
    def unaccepted(self, group_id: str, status: str, why: str) -> None: ...
    def given_up(self, group_id: str, why: str) -> None: ...


@dataclass(slots=True)
class _Again:
    """When a status that was not accepted is sent again."""

    back_off: BackOff
    due: float = 0.0


@dataclass(slots=True)
class Acknowledging:
    """Sends what waits until `stop`, and once more then. `ring` it when there may be something new.

    `has_webhook`: nothing of what was fetched can be acknowledged any more.
    """

    client: Client
    inbox: Verdicts
    tell: Tell
    stop: asyncio.Event
    has_webhook: bool = False
    pace: Pace = PACE
    _rung: asyncio.Event = field(default_factory=asyncio.Event)
    _again: dict[str, _Again] = field(default_factory=dict)
    _service: BackOff = field(init=False)
    _down: bool = False
    """The service or the inbox is in trouble: nothing is sent before its time, however much is new."""

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

    async def round(self) -> float:
        """Send everything that is due: seconds until something is again."""
        self._down = False
        try:
            waiting = await asyncio.to_thread(lambda: list(self.inbox.waiting()))
            for verdict in waiting:
                pause = await self._sent(verdict)
                if pause:
                    return pause
        except LockLost:
            raise
        except SyncengineError as error:
            return self._waits("acknowledge", error.message, self._service, None)
        return self._until_due(waiting)

    async def _sent(self, verdict: Acknowledgement) -> float:
        """Send one status; seconds to wait when it is the service that is in trouble, not this status."""
        id, now = verdict.group_id, asyncio.get_running_loop().time()
        again = self._again.setdefault(id, _Again(BackOff(self.pace)))
        if again.due > now and not self.stop.is_set():
            return 0.0
        answer = await update_status(self.client, id, verdict.status, verdict.message, verdict.external_id)
        if answer.ok:
            return await self._accepted(verdict)
        if answer.status == 404 or (answer.status == 409 and self.has_webhook):
            return await self._gave_up(verdict, UNKNOWN_GROUP if answer.status == 404 else WEBHOOK_NOW)
        await asyncio.to_thread(self.inbox.unaccepted, id, verdict.status, answer.said)
        if answer.status in (401, 403) or (answer.status is None and (answer.timed_out or not answer.reached)):
            return self._waits("acknowledge", answer.said, self._service, answer)
        again.due = now + self._waits(f"acknowledge {id}", answer.said, again.back_off, answer)
        return 0.0

    async def _accepted(self, verdict: Acknowledgement) -> float:
        self._service.reset()
        await asyncio.to_thread(self.inbox.acknowledged, verdict.group_id, verdict.status)
        del self._again[verdict.group_id]
        self.tell(Acknowledged(verdict.group_id, verdict.status))
        return 0.0

    async def _gave_up(self, verdict: Acknowledgement, why: str) -> float:
        await asyncio.to_thread(self.inbox.given_up, verdict.group_id, why)
        del self._again[verdict.group_id]
        self.tell(GivenUp(verdict.group_id, why))
        return 0.0

    def _waits(self, what: str, why: str, back_off: BackOff, answer: Answer | None) -> float:
        self._down |= back_off is self._service
        seconds = back_off.after(answer.retry_after if answer else None)
        self.tell(Waiting(what, why, seconds))
        return seconds

    def _until_due(self, waiting: Iterable[Acknowledgement]) -> float:
        ids = {verdict.group_id for verdict in waiting}
        self._again = {id: again for id, again in self._again.items() if id in ids}
        now = asyncio.get_running_loop().time()
        return min((max(0.05, again.due - now) for again in self._again.values()), default=self.pace.longest)
