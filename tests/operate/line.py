"""A line between a machine and its database that can be cut: nothing arrives any more, and neither end is notified."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

MOST = 1 << 16


class Line:
    """Passes bytes on to `target` until it is cut. Once it is mended, connections that lost bytes are closed."""

    def __init__(self, target: int) -> None:
        self.target, self.port = target, 0
        self.is_whole, self.is_over, self.is_listening = asyncio.Event(), asyncio.Event(), threading.Event()
        self.is_whole.set()

    def cut(self) -> None:
        self.loop.call_soon_threadsafe(self.is_whole.clear)

    def mend(self) -> None:
        self.loop.call_soon_threadsafe(self.is_whole.set)

    async def work(self) -> None:
        self.loop = asyncio.get_running_loop()
        async with await asyncio.start_server(self._join, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            self.is_listening.set()
            await self.is_over.wait()

    async def _join(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            far, forth = await asyncio.open_connection("127.0.0.1", self.target)
            await asyncio.gather(self._pass(near, forth), self._pass(far, back))
        back.close()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while (data := await source.read(MOST)) and self.is_whole.is_set():
                target.write(data)
                await target.drain()
            await self.is_whole.wait()
        finally:
            target.close()


@contextmanager
def line(target: int) -> Iterator[Line]:
    made = Line(target)
    working = threading.Thread(target=asyncio.run, args=[made.work()])
    working.start()
    made.is_listening.wait()
    try:
        yield made
    finally:
        made.loop.call_soon_threadsafe(made.is_over.set)
        working.join()
