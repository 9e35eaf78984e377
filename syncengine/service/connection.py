"""Send one request at a time over a connection by h11 and a socket, at a fifth of the processor time of httpx.

httpx stays the interface: its requests, headers, errors, events, cookies and logins. Where the environment names a
proxy for a URL, httpx's own client is used, which supports all kinds of proxies.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import httpx

from syncengine.service.causes import cause_of
from syncengine.service.http_socket import LARGE, HttpSocket
from syncengine.service.network import LAST_PORT, PORTS, ByRoute, Proxies, Trust

Trace = Callable[[str, Mapping[str, object]], Awaitable[None]]

LEAVES = "http11.send_request_headers.started"
"""httpcore's name for the moment before the first byte leaves."""

BODY_SENT = "http11.send_request_body.complete"
"""httpcore's name for the moment at which the last byte was handed to the operating system."""

_SENDABLE = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
"""A valid header value (RFC 9110, 5.5)."""

EYEBALLS_SECONDS = 0.25
"""The seconds for which one address of a host is tried before the next is tried in parallel (RFC 8305)."""

Origin = tuple[str, str, int]
"""The scheme, host and port of a URL."""

_MADE = frozenset({b"host", b"content-length", b"transfer-encoding", b"cookie", b"authorization"})
"""Headers that httpx creates or keeps, depending on the other headers."""

_FRAMING = b"transfer-encoding"
"""A header that is never sent: content always goes unchunked, with its length."""

_WITH_CONTENT = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose requests always have a Content-Length, even without content."""


class Incoming(Protocol):
    """An answer whose content is still to come; `httpx.Response` satisfies this."""

    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def aiter_raw(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request, with the headers that do not derive from its URL, content or cookies.

    `silence` is the seconds after which a connection without any progress fails. The whole call may have its own limit.
    """

    method: str
    url: httpx.URL
    headers: Sequence[tuple[bytes, bytes]]
    content: bytes | None = None
    silence: float | None = None

    def as_httpx(self, cookies: httpx.Cookies) -> httpx.Request:
        """Return the request with all of its headers."""
        headers = [header for header in self.headers if header[0].lower() != _FRAMING]
        return httpx.Request(self.method, self.url, headers=headers, cookies=cookies, content=self.content)


class KeptConnection(Protocol):
    """A connection that is kept after a call, with the cookies received over it."""

    async def send(self, outgoing: Outgoing, trace: Trace) -> Incoming:
        """Send a request. Raise `httpx.TransportError` when no answer begins."""

    async def aclose(self) -> None: ...


def connection(tls: Trust, keepalive_seconds: float, *, is_local: bool = False) -> KeptConnection:
    """Return a connection that stays open for `keepalive_seconds` after a call; `is_local`: never through a proxy."""
    direct = DirectConnection(tls, keepalive_seconds)
    proxies = None if is_local else Proxies()
    return RoutedConnection(tls, keepalive_seconds, direct, proxies) if proxies else direct


class RoutedConnection:
    """A connection to whatever the URL of a request needs: a proxy, through httpx, or the service itself."""

    def __init__(self, tls: Trust, keepalive_seconds: float, direct: DirectConnection, proxies: Proxies) -> None:
        one = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=keepalive_seconds)
        self._client = httpx.AsyncClient(transport=ByRoute(tls, one), trust_env=False)
        self._direct = direct
        self._proxies = proxies

    async def send(self, outgoing: Outgoing, trace: Trace) -> Incoming:
        if self._proxies.of(outgoing.url) is None:
            return await self._direct.send(outgoing, trace)
        request = outgoing.as_httpx(self._client.cookies)
        request.extensions = {"timeout": httpx.Timeout(outgoing.silence).as_dict(), "trace": trace}
        return await self._client.send(request, stream=True)

    async def aclose(self) -> None:
        await self._client.aclose()
        await self._direct.aclose()


class DirectConnection:
    """A connection without a proxy."""

    def __init__(self, tls: Trust, keepalive_seconds: float) -> None:
        self._cookies = httpx.Cookies()
        self._tls = tls
        self._keepalive_seconds = keepalive_seconds
        self._socket: HttpSocket | None = None
        self._origin: Origin | None = None
        self._ended = 0.0

    async def send(self, outgoing: Outgoing, trace: Trace) -> Incoming:
        content, silence = outgoing.content or b"", outgoing.silence
        headers = tuple([(name, _sendable(value)) for name, value in self._headers(outgoing)])
        connected = await self._connected(_origin(outgoing.url), silence)
        await trace(LEAVES, {})
        try:
            connected.begin(outgoing.method.encode(), outgoing.url.raw_path, headers, content)
            sent = None if len(content) < LARGE else lambda: trace(BODY_SENT, {})
            response = await connected.response(silence, sent)
        except BaseException:
            connected.drop()
            raise
        found = _text_of(response.headers)
        if "set-cookie" in found:
            raw = list(response.headers)
            answer = httpx.Response(response.status_code, headers=raw, request=outgoing.as_httpx(self._cookies))
            self._cookies.extract_cookies(answer)
        return _Incoming(response.status_code, found, connected.chunks(silence), self._end)

    async def aclose(self) -> None:
        if self._socket is not None:
            await self._socket.close()

    def _headers(self, outgoing: Outgoing) -> Sequence[tuple[bytes, bytes]]:
        """Return all headers, as httpx would create them; most requests need only Host and their length added."""
        url, own = outgoing.url, outgoing.headers
        if self._cookies.jar or url.userinfo or not _MADE.isdisjoint([name.lower() for name, _ in own]):
            request = outgoing.as_httpx(self._cookies)
            if url.userinfo:
                next(httpx.BasicAuth(url.username, url.password).auth_flow(request))
            return request.headers.raw
        if outgoing.content is None and outgoing.method not in _WITH_CONTENT:
            return [(b"Host", url.netloc), *own]
        return [(b"Host", url.netloc), *own, (b"Content-Length", b"%d" % len(outgoing.content or b""))]

    async def _connected(self, origin: Origin, seconds: float | None) -> HttpSocket:
        """Return the kept connection, or a new one."""
        is_late = asyncio.get_running_loop().time() - self._ended > self._keepalive_seconds
        if self._socket is not None and (is_late or origin != self._origin or not self._socket.is_free):
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
        self, status: int, headers: Mapping[str, str], chunks: AsyncIterator[bytes], end: Callable[[], None]
    ) -> None:
        self.status_code = status
        self.headers = headers
        self._chunks = chunks
        self._end = end

    def aiter_raw(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        self._end()


async def _opened(origin: Origin, tls: Trust, seconds: float | None) -> HttpSocket:
    """Open a connection. Raise `httpx.ConnectError` or `httpx.ConnectTimeout` on failure."""
    scheme, host, port = origin
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds):
            _, opened = await loop.create_connection(
                HttpSocket,
                host,
                port,
                ssl=tls() if scheme == "https" else None,
                happy_eyeballs_delay=EYEBALLS_SECONDS,
            )
            return opened
    except TimeoutError as error:
        raise httpx.ConnectTimeout(str(error)) from error
    except (OSError, UnicodeError) as error:  # UnicodeError: the host name is too long
        raise httpx.ConnectError(cause_of(error)) from error


def _text_of(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Return headers as text, by their names in lower case."""
    found = dict[str, str]()
    for name, value in headers:
        text, before = value.decode("latin-1"), found.get(key := name.decode("ascii"))
        found[key] = text if before is None else f"{before}, {text}"
    return found


def _origin(url: httpx.URL) -> Origin:
    if url.scheme not in ("http", "https") or not url.raw_host:
        raise httpx.UnsupportedProtocol(f"not an HTTP URL (scheme: {url.scheme or 'none'})")
    port = PORTS[url.scheme] if url.port is None else url.port
    if not 0 < port <= LAST_PORT:
        raise httpx.UnsupportedProtocol(f"invalid port: {port}")
    return url.scheme, url.raw_host.decode("ascii"), port


@lru_cache(maxsize=64)
def _sendable(value: bytes) -> bytes:
    if _SENDABLE.fullmatch(value) is None:
        raise httpx.LocalProtocolError("the value of a header must be a single line of text")
    return value
