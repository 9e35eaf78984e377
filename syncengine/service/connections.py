"""A pool of HTTP connections, with one client for each and a limit on their number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx


class ConnectionPool:
    """Lends the connection that rested last; httpx's own pool looks at all of them for each call.

    `connect` makes a client; it is to be limited to one connection (`limits`).
    """

    def __init__(self, most: int, connect: Callable[[], httpx.AsyncClient]) -> None:
        self._free = asyncio.Semaphore(most)
        self._connect = connect
        self._clients: list[httpx.AsyncClient] = []
        self._resting: list[httpx.AsyncClient] = []

    @asynccontextmanager
    async def one(self) -> AsyncIterator[httpx.AsyncClient]:
        """Lend a client for one call; wait while all of them are in use."""
        async with self._free:
            client = self._resting.pop() if self._resting else self._made()
            try:
                yield client
            finally:
                self._resting.append(client)

    def _made(self) -> httpx.AsyncClient:
        client = self._connect()
        self._clients.append(client)
        return client

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()


def limits(keepalive_seconds: float) -> httpx.Limits:
    """One connection, which is kept so long after a call."""
    return httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=keepalive_seconds)
