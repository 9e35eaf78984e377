"""What servers of ours share: a listening socket, paths, and bounds on the time in which a request must arrive.

The bounds hold whatever the application answers and whether or not it reads the body: a connection whose request is not
complete in time is closed, and when too many are incomplete, the oldest is closed. A complete request may wait for its
answer as long as necessary, and does not count.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

READ_SECONDS = 30.0
"""The seconds in which a request must arrive, a megabyte of posted time over a slow line."""
MOST_UNREAD = 200
"""The number of requests that may be arriving: far fewer than the 1,024 files that a process may commonly open."""

LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@dataclass(slots=True)
class Bounds:
    """The bounds of a server's connections. `unread` are those whose request is still arriving, the oldest first."""

    read_seconds: float = READ_SECONDS
    most_unread: int = MOST_UNREAD
    unread: dict[BoundedProtocol, None] = field(default_factory=dict)


class BoundedProtocol(H11Protocol):
    """An HTTP/1.1 protocol that tracks when a request begins and when it has arrived in full."""

    bounds: ClassVar[Bounds]
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # A cycle is one request and its answer; the last one stays until the head of the next request is complete.
        cycle = self.cycle
        is_whole = cycle is not None and not cycle.more_body and not cycle.response_complete
        (self._end if is_whole else self._begin)()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        """Start the time limit of a request that is arriving."""
        unread = self.bounds.unread
        if self in unread:
            return
        unread[self] = None
        self._timer = self.loop.call_later(self.bounds.read_seconds, self._late)
        if len(unread) > self.bounds.most_unread:
            next(iter(unread))._late()

    def _end(self) -> None:
        """Stop waiting for the request: it has arrived, or never will."""
        self.bounds.unread.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def _late(self) -> None:
        self._end()
        self.cut()

    def cut(self) -> None:
        """Close the connection; first answer 408 unless an answer has begun."""
        if self.cycle is None or not self.cycle.response_started:
            self.transport.write(LATE)
        self.transport.close()


Bounded = TypeVar("Bounded", bound=BoundedProtocol)


def bounded(protocol: type[Bounded], bounds: Bounds) -> type[Bounded]:
    """Return the protocol class of one server, whose connections share `bounds`."""
    return type(protocol.__name__, (protocol,), {"bounds": bounds})


def origin_form(application: ASGIApp) -> ASGIApp:
    """Return the application with every path in origin-form.

    A server must accept the absolute-form too (RFC 9112, 3.2.2), which clients of a forward proxy send; uvicorn passes
    it on as the path.
    """

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith("/"):
            path = urlsplit(scope["raw_path"].decode("latin-1")).path or "/"
            scope = {**scope, "path": unquote(path), "raw_path": path.encode("latin-1")}
        await application(scope, receive, send)

    return call


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; at `::`, for IPv4 too if the machine can. Raise `OSError`."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    is_both = address[0] == "::" and socket.has_dualstack_ipv6()
    return socket.create_server(address, family=family, dualstack_ipv6=is_both)
