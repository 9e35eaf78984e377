"""A socket that speaks HTTP/1.1 by h11: one request at a time → its answer.

httpx.TransportError for every failure of the other end and of the network.
"""

from __future__ import annotations

import asyncio
import select
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import h11
import httpx

LARGE = 64 * 1024
"""Bytes of a body that may not leave at once."""

LARGEST_HEAD = 100 * 1024
"""Bytes of an answer before its content."""

CLOSING_SECONDS = 1.0
"""How long the other end may take to say goodbye (TLS)."""

_DISCARD, _DELIVER = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)
"""SO_LINGER: when a socket is closed, by us or by our death, what is not sent yet is discarded, or still sent."""

_WHOLE = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED)
_NO_CONTENT = (204, 304)


class HttpSocket(asyncio.Protocol):
    """A connection. `is_open`: nothing has ended it yet.

    During a call what has not left is discarded when the connection ends: a body that the other end takes late would
    arrive after the time that the call is said to have ended, or its sender to have died (docs/planning.md 1.8).
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

    # --- heard of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._socket = transport.get_extra_info("socket")
        # Full until nearly all is with the operating system; with 0, transports of TLS would stay full for ever.
        self._transport.set_write_buffer_limits(high=1, low=0)

    def data_received(self, data: bytes) -> None:
        if self._is_idle:  # the rest of an answer that was over, or something that nobody asked for
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

    def begin(self, method: bytes, target: bytes, headers: list[tuple[bytes, bytes]], content: bytes) -> None:
        """Send the head and as much of the content as may leave at once; the rest leaves while `response` waits.

        LocalProtocolError where such a request cannot be: then nothing was sent.
        """
        try:
            head = self._http.send(h11.Request(method=method, target=target, headers=headers))
            self._http.send(h11.Data(data=content))
            self._http.send(h11.EndOfMessage())
        except h11.LocalProtocolError:  # whose words hold the value, which may be a secret
            raise httpx.LocalProtocolError("a part of the request is not one line of text") from None
        whole = memoryview(content)
        self._unsent = [whole[start : start + LARGE] for start in range(LARGE, len(content), LARGE)][::-1]
        self._is_idle = False
        self._at_its_end(_DISCARD)
        self._transport.write((head or b"") + content[:LARGE])

    async def response(self, seconds: float | None, sent: Callable[[], Awaitable[None]] | None) -> h11.Response:
        """Return the head of the answer; ReadTimeout where nothing moves for so long. `sent` hears of the last byte."""
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
        """Yield the content of the answer as it comes."""
        while not isinstance(event := self._next(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                yield event.data
            else:
                await self._moved(seconds)

    def end(self) -> None:
        """End the call. A connection whose answer is whole may be kept."""
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
        """End the connection at once."""
        self.is_open = False
        self._transport.abort()

    async def close(self) -> None:
        """Close the connection, and wait for that."""
        self._transport.close()
        if not (await asyncio.wait([self._lost], timeout=CLOSING_SECONDS))[0]:
            self.drop()

    @property
    def is_free(self) -> bool:
        """Whether a request may be sent over it: it is open, and nothing has come unasked, read or not.

        What came while nobody read would be taken for the answer to the next request.
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
        """What came next: an event of h11, or NEED_DATA."""
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        if event is h11.PAUSED:
            raise httpx.RemoteProtocolError("the answer goes on in another protocol")
        return event

    async def _moved(self, seconds: float | None) -> None:
        """Send another part, or wait until something came or left."""
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


def _announces_content(response: h11.Response) -> bool:
    """Whether an answer that has no content says that some follows: it must not be read as the next answer."""
    headers = dict(response.headers)
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
