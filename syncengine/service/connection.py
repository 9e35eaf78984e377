"""Connections: one request at a time → its answer. By h11 over a socket, at a fifth of the processor time of httpx.

httpx stays the interface: its requests, headers, errors, events, cookies and logins. Where the environment names a
proxy, httpx's own client is used, which knows all kinds of them.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Protocol
from urllib.request import getproxies

import httpx

from syncengine.service.http_socket import LARGE, HttpSocket

Trace = Callable[[str, Mapping[str, object]], Awaitable[None]]

LEAVES = "http11.send_request_headers.started"
"""httpcore's name for the moment before the first byte leaves."""

BODY_SENT = "http11.send_request_body.complete"
"""httpcore's name for the moment that the last byte was handed to the operating system."""

_SENDABLE = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
"""The value of a header (RFC 9110, 5.5)."""

EYEBALLS_SECONDS = 0.25
"""How long one address of a host is tried before the next is tried beside it (RFC 8305)."""

Origin = tuple[str, str, int]
"""Scheme, host and port."""


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
    """Return a connection that is kept so long after a call; behind a proxy one by httpx, which knows all kinds."""
    if not getproxies():
        return DirectConnection(tls, keepalive_seconds)
    one = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=keepalive_seconds)
    return httpx.AsyncClient(limits=one, verify=tls)


class DirectConnection:
    """One connection without a proxy."""

    def __init__(self, tls: ssl.SSLContext, keepalive_seconds: float) -> None:
        self.cookies = httpx.Cookies()
        self._tls = tls
        self._keepalive_seconds = keepalive_seconds
        self._socket: HttpSocket | None = None
        self._origin: Origin | None = None
        self._ended = 0.0

    async def send(self, request: httpx.Request, *, stream: bool) -> Incoming:
        """Send a request whose content is bytes; httpx.TransportError where no answer begins."""
        limits, trace = request.extensions.get("timeout", {}), request.extensions.get("trace")
        content = request.content
        if request.url.userinfo:
            next(httpx.BasicAuth(request.url.username, request.url.password).auth_flow(request))
        headers = [(name, _sendable(value)) for name, value in request.headers.raw]
        connected = await self._connected(_origin(request.url), limits.get("connect"))
        if trace is not None:
            await trace(LEAVES, {})
        try:
            connected.begin(request.method.encode(), request.url.raw_path, headers, content)
            sent = None if trace is None or len(content) < LARGE else lambda: trace(BODY_SENT, {})
            response = await connected.response(limits.get("read"), sent)
        except BaseException:
            connected.drop()
            raise
        found = httpx.Headers(list(response.headers))
        if "set-cookie" in found:
            answer = httpx.Response(response.status_code, headers=found, request=request)
            self.cookies.extract_cookies(answer)
        return _Incoming(response.status_code, found, connected.chunks(limits.get("read")), self._end)

    async def aclose(self) -> None:
        if self._socket is not None:
            await self._socket.close()

    async def _connected(self, origin: Origin, seconds: float | None) -> HttpSocket:
        """The connection that is kept, or another one."""
        is_late = asyncio.get_running_loop().time() - self._ended > self._keepalive_seconds
        if self._socket is not None and (is_late or origin != self._origin):
            await self._socket.close()
        if self._socket is None or not self._socket.is_open:
            self._socket, self._origin = await _opened(origin, self._tls, seconds), origin
        return self._socket

    def _end(self) -> None:
        assert self._socket is not None, "it has sent"
        self._socket.end()
        self._ended = asyncio.get_running_loop().time()


class _Incoming:
    """An answer that has begun."""

    def __init__(
        self, status: int, headers: httpx.Headers, chunks: AsyncIterator[bytes], end: Callable[[], None]
    ) -> None:
        self.status_code = status
        self.headers = headers
        self._chunks = chunks
        self._end = end

    def aiter_raw(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        self._end()


async def _opened(origin: Origin, tls: ssl.SSLContext, seconds: float | None) -> HttpSocket:
    """Connect; ConnectError or ConnectTimeout."""
    scheme, host, port = origin
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds):
            _, opened = await loop.create_connection(
                HttpSocket,
                host,
                port,
                ssl=tls if scheme == "https" else None,
                happy_eyeballs_delay=EYEBALLS_SECONDS,
            )
            return opened
    except TimeoutError as error:
        raise httpx.ConnectTimeout(str(error)) from error
    except (OSError, UnicodeError) as error:  # UnicodeError: no name can be that long
        raise httpx.ConnectError(str(error)) from error


def _origin(url: httpx.URL) -> Origin:
    return url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)


@lru_cache(maxsize=64)
def _sendable(value: bytes) -> bytes:
    if _SENDABLE.fullmatch(value) is None:
        raise httpx.LocalProtocolError("a header is not one line of text")
    return value
