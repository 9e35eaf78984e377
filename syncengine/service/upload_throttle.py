"""Track large bodies that are still being sent, so that no long work begins meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from syncengine.service.connection import BODY_SENT, Trace
from syncengine.service.http_socket import LARGE

PATIENCE_SECONDS = 1.0


class Departures:
    """Lets callers wait until no large body is being sent.

    Preparing a batch keeps the event loop busy. Doing so while another batch is being sent would delay that one, then
    the next, until all connections wait for the service at the same time and then all for us.
    """

    def __init__(self) -> None:
        self._leaving: set[object] = set()
        self._none = asyncio.Event()
        self._none.set()

    async def over(self) -> None:
        """Wait until no large body is being sent, or for `PATIENCE_SECONDS`: the service, not we, is slow then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while self._leaving:
                    await self._none.wait()

    @contextmanager
    def of(self, content: bytes | None) -> Iterator[Trace | None]:
        """Yield a trace that notices when `content` was sent; `None` when it is small enough to leave at once."""
        if content is None or len(content) < LARGE:
            yield None
            return
        ticket = object()
        self._leaving.add(ticket)
        self._none.clear()

        async def trace(event: str, _: Mapping[str, object]) -> None:
            if event == BODY_SENT:
                self._leave(ticket)

        try:
            yield trace
        finally:
            self._leave(ticket)

    def _leave(self, ticket: object) -> None:
        self._leaving.discard(ticket)
        if not self._leaving:
            self._none.set()
