"""A raw HTTP server on loopback that answers with scripted bytes."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

LOCALHOST, EXPIRED = (Path(__file__).with_name(f"{name}.pem") for name in ("localhost", "expired"))
"""A certificate of `localhost`, and one that has expired, each with its key."""

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Heard:
    """One request that the server got. Connections are numbered from 1."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass(frozen=True)
class Reply:
    """`raw` is sent unchanged and then the connection is closed; if it is empty, it is closed without an answer.

    The answer waits until `until` is set.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    until: asyncio.Event | None = None

    def bytes(self) -> bytes:
        if self.raw is not None:
            return self.raw
        head = [f"HTTP/1.1 {self.status} Told", f"Content-Length: {len(self.body)}"]
        head += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join(head).encode() + b"\r\n\r\n" + self.body


CUT = Reply(raw=b"")
OK = Reply()


def saying(value: object, status: int = 200) -> Reply:
    return Reply(status, msgspec.json.encode(value))


@dataclass
class Scripted:
    """Answers with `script`, one reply for each request, and then repeats the last one. It counts connections and
    requests."""

    script: Sequence[Reply]
    url: str = ""
    heard: list[Heard] = field(default_factory=list)
    connections: int = 0
    under_way: int = 0
    most_at_once: int = 0
    on_request: Callable[[], object] = lambda: None

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._talk(reader, writer, self.connections)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client closed the connection, or the test is over
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            reply = self._next(Heard(method, path, headers, body, connection))
            self.under_way += 1
            self.most_at_once = max(self.most_at_once, self.under_way)
            self.on_request()
            if reply.until is not None:
                await reply.until.wait()
            self.under_way -= 1
            writer.write(reply.bytes())
            await writer.drain()
            if reply.raw is not None:
                return

    def _next(self, heard: Heard) -> Reply:
        self.heard.append(heard)
        return self.script[min(len(self.heard), len(self.script)) - 1]


@asynccontextmanager
async def listening(handler: Handler, certificate: Path | None = None, **options: Any) -> AsyncIterator[str]:
    """The address (`localhost:PORT`) of a server that talks by itself, over TLS if it has a certificate."""
    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    server = await asyncio.start_server(handler, "localhost", 0, ssl=tls, **options)
    async with server:
        yield f"localhost:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def serving(*script: Reply) -> AsyncIterator[Scripted]:
    scripted = Scripted(script or (OK,))
    server = await asyncio.start_server(scripted.connected, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    scripted.url = f"http://{host}:{port}/connect/api"
    try:
        yield scripted
    finally:
        server.close()
