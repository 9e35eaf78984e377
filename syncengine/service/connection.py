"""Connections: one request at a time → its answer. By aiohttp, at half the processor time of httpx's own.

httpx stays the interface: its requests, headers, errors, events, cookies and logins. Where the environment names a
proxy, httpx's own client is used, which knows all kinds of them.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import SimpleNamespace
from typing import Protocol
from urllib.request import getproxies

import aiohttp
import httpx
from aiohttp import AddrInfoType
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import BytesPayload
from yarl import URL

Trace = Callable[[str, Mapping[str, object]], Awaitable[None]]

LEAVES = "http11.send_request_headers.started"
"""httpcore's name for the moment before the first byte leaves."""

BODY_SENT = "http11.send_request_body.complete"
"""httpcore's name for the moment that the last byte was handed to the operating system."""

LARGE = 64 * 1024
"""Bytes of a body that may not leave at once."""

_DISCARD, _DELIVER = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)
"""SO_LINGER: when a socket is closed, by us or by our death, what is not sent yet is discarded, or still sent."""

_SENDABLE = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
"""The value of a header (RFC 9110, 5.5)."""

_ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.ServerTimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ServerDisconnectedError, httpx.RemoteProtocolError),
    (aiohttp.ClientConnectionError, httpx.ReadError),
    (aiohttp.ClientError, httpx.RemoteProtocolError),
)
"""aiohttp's errors, the particular ones first."""


class Incoming(Protocol):
    """An answer whose content is still to come; httpx.Response is one."""

    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> httpx.Headers: ...
    def aiter_raw(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


class KeptConnection(Protocol):
    """A connection that is kept after a call; httpx.AsyncClient is one, or several."""

    @property
    def cookies(self) -> httpx.Cookies: ...
    async def send(self, request: httpx.Request, *, stream: bool) -> Incoming: ...
    async def aclose(self) -> None: ...


def connection(tls: ssl.SSLContext, keepalive_seconds: float) -> KeptConnection:
    """Return a connection to the service that is kept so long after a call."""
    return lenient_connection(tls, keepalive_seconds) if getproxies() else DirectConnection(tls, keepalive_seconds)


def lenient_connection(tls: ssl.SSLContext, keepalive_seconds: float) -> KeptConnection:
    """Return one by httpx, which knows all kinds of proxies and reads answers against the rules: a 204 with content."""
    one = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=keepalive_seconds)
    return httpx.AsyncClient(limits=one, verify=tls)


class DirectConnection:
    """One connection without a proxy."""

    def __init__(self, tls: ssl.SSLContext, keepalive_seconds: float) -> None:
        self.cookies = httpx.Cookies()
        self._tls = tls
        self._keepalive_seconds = keepalive_seconds
        self._opened: aiohttp.ClientSession | None = None
        self._sockets: list[socket.socket] = []

    async def send(self, request: httpx.Request, *, stream: bool) -> Incoming:
        """Send a request whose content is bytes; httpx.TransportError where no answer begins."""
        limits, trace = request.extensions.get("timeout", {}), request.extensions.get("trace")
        content = request.content
        if request.url.userinfo:
            next(httpx.BasicAuth(request.url.username, request.url.password).auth_flow(request))
        headers = [(name.decode("ascii"), _sendable(value)) for name, value in request.headers.raw]
        self._at_its_end(_DISCARD)
        with _as_httpx(), self._dropped_on_failure():
            response = await self._session().request(
                request.method,
                _url(str(request.url)),
                headers=headers,
                data=_Body(content, trace) if trace is not None and len(content) >= LARGE else content or None,
                allow_redirects=False,
                timeout=_timeout(limits.get("connect"), limits.get("read")),
                trace_request_ctx=trace,
            )
        if "set-cookie" in response.headers:
            answer = httpx.Response(response.status, headers=response.raw_headers, request=request)
            self.cookies.extract_cookies(answer)
        return _Incoming(response, self._ended)

    async def aclose(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            self._opened = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=1, keepalive_timeout=self._keepalive_seconds, ssl=self._tls, socket_factory=self._socket
                ),
                cookie_jar=aiohttp.DummyCookieJar(),  # httpx keeps them
                skip_auto_headers=("User-Agent", "Content-Type"),
                auto_decompress=False,
                trace_configs=[_events()],
                middlewares=(_once,),
            )
        return self._opened

    def _socket(self, address: AddrInfoType) -> socket.socket:
        made = socket.socket(*address[:3])
        self._sockets = [*(one for one in self._sockets if one.fileno() >= 0), made]
        self._at_its_end(_DISCARD)
        return made

    @contextmanager
    def _dropped_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._drop()
            raise

    def _ended(self, *, whole: bool) -> None:
        if whole:
            self._at_its_end(_DELIVER)
        else:
            self._drop()

    def _drop(self) -> None:
        for one in self._sockets:
            with suppress(OSError):  # it is closed already
                one.shutdown(socket.SHUT_RDWR)

    def _at_its_end(self, linger: bytes) -> None:
        """Decide the fate of what is not sent yet when the connection ends.

        During a call it never leaves then: a body that a service takes late would arrive after the time that the call
        is said to have ended, or its sender to have died (docs/planning.md 1.8).
        """
        for one in self._sockets:
            with suppress(OSError):  # it is closed already
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


class _Incoming:
    """An answer of aiohttp."""

    def __init__(self, response: aiohttp.ClientResponse, ended: Callable[..., None]) -> None:
        self.status_code = response.status
        self._ended = ended
        self.headers = httpx.Headers(list(response.raw_headers))
        self._response = response

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        with _as_httpx():
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        self._ended(whole=self._response.connection is None)
        self._response.release()


class _Body(BytesPayload):
    """A large body, which tells when it was handed to the operating system."""

    def __init__(self, content: bytes, trace: Trace) -> None:
        super().__init__(memoryview(content[:0]))
        self._content = memoryview(content)
        self._size = len(content)
        self._trace = trace

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        for begin in range(0, len(self._content), LARGE):
            await writer.write(self._content[begin : begin + LARGE])
        await writer.drain()
        await self._trace(BODY_SENT, {})


def _events() -> aiohttp.TraceConfig:
    """Tell the trace of a request before its first byte leaves."""

    async def leaves(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        if context.trace_request_ctx is not None:
            await context.trace_request_ctx(LEAVES, {})

    events = aiohttp.TraceConfig()
    events.on_connection_create_end.append(leaves)
    events.on_connection_reuseconn.append(leaves)
    return events


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request; aiohttp would repeat a GET or PUT by itself where it sees an error of its own."""
    with _as_httpx():
        return await send(request)


@lru_cache(maxsize=64)
def _url(text: str) -> URL:
    return URL(text, encoded=True).with_user(None)


@lru_cache(maxsize=16)
def _timeout(connect: float | None, read: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=connect, sock_read=read)


@lru_cache(maxsize=64)
def _sendable(value: bytes) -> str:
    if _SENDABLE.fullmatch(value) is None:
        raise httpx.LocalProtocolError("a header is not one line of text")
    return value.decode()


@contextmanager
def _as_httpx() -> Iterator[None]:
    """Raise httpx.TransportError where aiohttp raises its own; ConnectError and ConnectTimeout: no byte has left."""
    try:
        yield
    except aiohttp.ClientError as error:
        raise next(ours for theirs, ours in _ERRORS if isinstance(error, theirs))(str(error)) from error
