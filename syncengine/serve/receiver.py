"""Expose the webhook receiver of a shift, until every group in hand is finished."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.types import ASGIApp

from syncengine.errors import SyncengineError
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.webhook import WebhookDelivery
from syncengine.serve.log import Log
from syncengine.serve.probes import Server
from syncengine.service.posted_time import Group

SETTING = "`postedTime.webhook.bind`"
LAST_ANSWERS = 10.0
"""The maximum number of seconds for sending answers, once everything is delivered."""


class Closing(SyncengineError):
    """Raised for a call that arrives while the receiver stops, so that the service calls again."""

    code = "closing"


@dataclass(slots=True)
class InHand:
    """A delivery that counts its groups in hand, so that all can be finished before it ends."""

    delivery: WebhookDelivery
    _count: int = 0
    _is_closing: bool = False
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, raw: Group, *, mechanism: str) -> Verdict:
        if self._is_closing:
            raise Closing("this receiver is stopping")
        self._count += 1
        try:
            return await self.delivery.take(raw, mechanism=mechanism)
        finally:
            self._count -= 1
            self._look()

    async def finish(self) -> None:
        """Take no further calls, and wait for those in hand, which the sinks' timeouts limit."""
        self._is_closing = True
        self._look()
        await self._idle.wait()

    def _look(self) -> None:
        if self._is_closing and not self._count:
            self._idle.set()


@asynccontextmanager
async def exposed(
    receiver: ASGIApp,
    in_hand: InHand,
    bind: tuple[str, int],
    log: Log,
    mount: Callable[[ASGIApp | None], None] | None,
    bound: socket.socket | None,
) -> AsyncIterator[None]:
    """Let the receiver answer for the duration of the block, at `bind`, where `bound` may listen, or where mounted."""
    if mount is not None:
        mount(receiver)
        try:
            yield
        finally:
            await in_hand.finish()
            mount(None)
        return
    server = Server(receiver, bind, setting=SETTING, patience=LAST_ANSWERS, bound=bound)
    log.info("receiving", f"the webhook receiver listens on {await server.start()}")
    try:
        yield
    finally:
        await in_hand.finish()
        await server.stop()
