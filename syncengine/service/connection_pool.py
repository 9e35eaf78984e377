"""Pool connections, with a limit on their number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from syncengine.service.connection import KeptConnection


class ConnectionPool:
    """Lends the most recently used idle connection; `connect` makes a new one."""

    def __init__(self, most: int, connect: Callable[[], KeptConnection]) -> None:
        self._free = asyncio.Semaphore(most)
        self._connect = connect
        self._all: list[KeptConnection] = []
        self._resting: list[KeptConnection] = []

    @asynccontextmanager
    async def one(self) -> AsyncIterator[KeptConnection]:
        """Lend a connection for one call; wait while all of them are in use."""
        async with self._free:
            connection = self._resting.pop() if self._resting else self._made()
            try:
                yield connection
            finally:
                self._resting.append(connection)

    def _made(self) -> KeptConnection:
        connection = self._connect()
        self._all.append(connection)
        return connection

    async def close(self) -> None:
        for connection in self._all:
            await connection.aclose()
