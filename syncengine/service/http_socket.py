"""Speak HTTP/1.1 over a socket by h11, one request at a time.

Every failure of the other end or of the network is an `httpx.TransportError`.
"""

from __future__ import annotations

import asyncio
import select
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import h11
import httpx

LARGE = 64 * 1024
"""Size in bytes from which a body may not leave at once."""

LARGEST_HEAD = 100 * 1024
"""The maximum size in bytes of an answer's head."""

CLOSING_SECONDS = 1.0
"""The seconds that the other end may take to close the connection (TLS)."""

_DISCARD, _DELIVER = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)
"""SO_LINGER values: when a socket closes, also by the death of this process, discard or deliver its unsent data."""

_END = h11.EndOfMessage()
_WHOLE = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED)
_NO_CONTENT = (204, 304)


Headers = tuple[tuple[bytes, bytes], ...]
"""Names and values, in the order in which they are sent."""


class HttpSocket(asyncio.Protocol):
    """An HTTP connection. `is_open`: nothing has ended it yet.

    During a call, unsent data is discarded when the connection ends: a body that the other end accepts late would
    arrive after the recorded end of the call, or after its sender is presumed dead (docs/planning.md 1.8).
    """

    def __init__(self) -> None:
        self.is_open = True
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)
        self._transport: Any = None
        self._socket: Any = None
        self._unsent: list[memoryview] = []
        self._is_full = False
        self._is_idle = True
        self._is_last = False
        self._change: asyncio.Future[None] | None = None
        self._lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    # --- callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._socket = transport.get_extra_info("socket")
        # Full until the operating system has nearly everything; with 0, TLS transports would stay full forever.
        self._transport.set_write_buffer_limits(high=1, low=0)

    def data_received(self, data: bytes) -> None:
        if self._is_idle:  # the rest of an abandoned answer, or unsolicited data
            self.drop()
        else:
            self._http.receive_data(data)
            self._wake()

    def eof_received(self) -> None:
        self.is_open = False
        if not self._is_idle:
            self._http.receive_data(b"")
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._lost.set_result(exc)
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    def _wake(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    # --- one call

    def begin(self, method: bytes, target: bytes, headers: Headers, content: bytes) -> None:
        """Send the head and as much of the content as may leave at once; the rest leaves while `response` waits.

        Raise `LocalProtocolError` when the request is invalid; nothing was sent then.
        """
        try:
            head = self._http.send(_request(method, target, headers))
            self._http.send(h11.Data(data=content))
            self._http.send(_END)
        except h11.LocalProtocolError:  # its message contains the value, which may be a secret
            raise httpx.LocalProtocolError("a part of the request is not a single line of text") from None
        whole = memoryview(content)
        self._unsent = [whole[start : start + LARGE] for start in range(LARGE, len(content), LARGE)][::-1]
        self._is_idle = False
        self._at_its_end(_DISCARD)
        self._transport.write((head or b"") + content[:LARGE])

    async def response(self, seconds: float | None, sent: Callable[[], Awaitable[None]] | None) -> h11.Response:
        """Return the answer's head; call `sent` after the last byte. Raise `ReadTimeout` after `seconds` of silence."""
        while True:
            if sent is not None and self._has_sent:
                await sent()
                sent = None
            event = self._next()
            if isinstance(event, h11.Response):
                self._is_last = event.status_code in _NO_CONTENT and _announces_content(event)
                return event
            if event is h11.NEED_DATA:
                await self._moved(seconds)

    async def chunks(self, seconds: float | None) -> AsyncIterator[bytes]:
        """Yield the content of the answer as it arrives."""
        while not isinstance(event := self._next(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                yield event.data
            else:
                await self._moved(seconds)

    def end(self) -> None:
        """End the call. The connection may be kept if its answer is complete."""
        http = self._http
        if not self._has_sent or http.their_state not in _WHOLE:
            self.drop()
            return
        self._at_its_end(_DELIVER)
        self._is_idle = True
        if self.is_open and not self._is_last and http.their_state is h11.DONE and not http.trailing_data[0]:
            http.start_next_cycle()
        else:
            self.is_open = False
            self._transport.close()

    def drop(self) -> None:
        """Abort the connection at once."""
        self.is_open = False
        self._transport.abort()

    async def close(self) -> None:
        """Close the connection and wait until it is closed."""
        self._transport.close()
        if not (await asyncio.wait([self._lost], timeout=CLOSING_SECONDS))[0]:
            self.drop()

    @property
    def is_free(self) -> bool:
        """Whether a request may be sent: the connection is open, and nothing has arrived unasked.

        Anything that arrived while nobody was reading would be taken for the answer to the next request.
        """
        if not self.is_open:
            return False
        unread = select.poll()
        unread.register(self._socket, select.POLLIN)
        return not unread.poll(0)

    @property
    def _has_sent(self) -> bool:
        return not self._unsent and not self._is_full

    def _next(self) -> Any:
        """Return the next event of h11, or `NEED_DATA`."""
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            kind = httpx.RemoteProtocolError if self.is_open else httpx.ReadError
            raise kind(str(error)) from error
        if event is h11.PAUSED:
            raise httpx.RemoteProtocolError("the server switched to another protocol")
        return event

    async def _moved(self, seconds: float | None) -> None:
        """Send another part of the body, or wait until something arrived or left."""
        if self._lost.done():
            raise httpx.ReadError(str(self._lost.result() or "the connection was closed"))
        if self._unsent and not self._is_full and not self._transport.is_closing():
            self._transport.write(self._unsent.pop())
            return
        self._change = asyncio.get_running_loop().create_future()
        if seconds is None:
            await self._change
            return
        try:
            async with asyncio.timeout(seconds):
                await self._change
        except TimeoutError:
            raise httpx.ReadTimeout(f"none within {seconds:.3g} s") from None

    def _at_its_end(self, linger: bytes) -> None:
        with suppress(OSError):  # it is closed already
            self._socket.setsockopt(SOL_SOCKET, SO_LINGER, linger)


@lru_cache(maxsize=64)
def _request(method: bytes, target: bytes, headers: Headers) -> h11.Request:
    """Return the head of a request, checked by h11. Calls by the thousand, such as statuses, share a few heads."""
    return h11.Request(method=method, target=target, headers=list(headers))


def _announces_content(response: h11.Response) -> bool:
    """Return whether an answer without content announces some, which must not be read as the next answer."""
    headers = dict(response.headers)
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
