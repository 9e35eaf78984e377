"""A service that costs next to nothing: HTTP/1.1 from memory, every call accepted. Prints its URL and serves on.

What it is asked is counted, not read: `GET /bench/counts` gives the requests for each path, and begins anew.
`GET /bench/pause/SECONDS` has batches take so long from then on.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from functools import partial

TEAM = b'{"teamName": "Bench"}'
COUNTS, PAUSE = "/bench/counts", "/bench/pause/"


class Service:
    """What all connections share."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.pause = 0.0

    def answer(self, path: str) -> bytes:
        """The content of an answer."""
        if path == COUNTS:
            said, self.counts = json.dumps(self.counts), Counter()
            return said.encode()
        if path.startswith(PAUSE):
            self.pause = float(path.removeprefix(PAUSE))
        else:
            self.counts[path] += 1
        return TEAM if path == "/team/info" else b"{}"


class Exchange(asyncio.Protocol):
    """One connection, kept alive; its bodies are passed over."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._head = b""
        self._path = ""
        self._left = -1

    def data_received(self, data: bytes) -> None:
        while data:
            if self._left < 0:
                self._head += data
                head, blank, data = self._head.partition(b"\r\n\r\n")
                if not blank:
                    return
                self._begin(head)
            taken = min(self._left, len(data))
            self._left -= taken
            data = data[taken:]
            if self._left == 0:
                self._answer()

    def _begin(self, head: bytes) -> None:
        self._head = b""
        self._path = head.split(b" ", 2)[1].decode()
        _, found, rest = head.lower().partition(b"content-length:")
        self._left = int(rest.partition(b"\r\n")[0]) if found else 0
        if self._left == 0:
            self._answer()

    def _answer(self) -> None:
        self._left = -1
        content = self._service.answer(self._path)
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        if self._service.pause and self._path.endswith("/batch"):
            asyncio.get_running_loop().call_later(self._service.pause, self._transport.write, head.encode() + content)
        else:
            self._transport.write(head.encode() + content)


async def serve(connection: Callable[[], asyncio.Protocol]) -> None:
    """Print the URL, and serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(partial(Exchange, Service())))
