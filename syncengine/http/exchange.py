"""Exchange one HTTP request for its whole answer, within limits of time and size, or for the cause in our own words.

Everything that sends requests uses it, with the proxies and certificates that the environment names: HTTP_PROXY,
HTTPS_PROXY, ALL_PROXY and NO_PROXY, in capitals or small letters, choose the way to a URL; SSL_CERT_FILE, SSL_CERT_DIR
and REQUESTS_CA_BUNDLE name the trusted authorities. A value with which nothing could be sent is an error
(`Misconfigured`) of the requests that need it, and of no other. No message shows a library's words, an address'
secrets, or a proxy's user or password.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import errno
import json
import os
import re
import socket
import ssl
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from itertools import repeat
from pathlib import Path
from typing import Self
from urllib.parse import quote
from urllib.request import getproxies

import httpx

from syncengine import __version__
from syncengine.errors import Usage
from syncengine.project.signals import unless_stopped

RETRIABLE = frozenset({408, 429, *range(500, 600)})
"""Statuses that a later repeat of the same request may not meet."""
SHOWN_CHARACTERS = 300
"""The maximum number of characters shown of an answer that could not be understood."""
HIDDEN = "***"
"""What is shown instead of the key."""

_BLANKS = re.compile(r"[\x00-\x20\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `content` is unpacked; `None` means that it is larger than accepted."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


def tidy(text: str) -> str:
    """Return text from outside in a form that is safe to show: on one line and cut to a sane length."""
    line = _BLANKS.sub(" ", text[: 4 * SHOWN_CHARACTERS]).strip()
    return line if len(line) <= SHOWN_CHARACTERS else line[:SHOWN_CHARACTERS] + "…"


def without(key: str, text: str) -> str:
    """Return text from outside with the key hidden, also as JSON, a URL or HTML spell it."""
    return _spelled(key).sub(HIDDEN, text)


@cache
def _spelled(key: str) -> re.Pattern[str]:
    """Return the pattern of a key in which each character may be escaped: some services write `+` as `\\u002B`."""

    def spellings(letter: str) -> str:
        in_json = json.dumps(letter)[1:-1]
        number = ord(letter)
        in_html = rf"&\#0*{number};|&\#x0*{number:x};"
        escaped = {in_json, f"\\{letter}", f"\\u{number:04x}", quote(letter, safe=""), f"%{number:02x}", escape(letter)}
        return f"(?:{re.escape(letter)}|(?i:{'|'.join((*map(re.escape, sorted(escaped - {letter})), in_html))}))"

    return re.compile("".join(map(spellings, key)))


def retry_after(header: str | None, now: float) -> float | None:
    """Return the seconds in a Retry-After header, a number or an HTTP date relative to `now` (RFC 9110 §10.2.3)."""
    if header is None:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(header))
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - now)
    return None


HEADERS = {"user-agent": f"syncengine/{__version__}", "accept-encoding": "gzip"}
"""The user agent and the accepted compression; a server may also use others that the standard library can unpack."""

NO_CONTENT = (204, 304)
"""Answers without content. Some servers send content nevertheless, which must not be read as the next answer, so that
the connection is not used again."""

NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.ProxyError,
    httpx.InvalidURL,
    httpx.LocalProtocolError,
)
"""Exceptions raised before any byte of the request reaches the other end."""

LEAVES = "http11.send_request_headers.started"
"""httpcore's name for the moment before the first byte leaves."""

WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
"""zlib's window bits by content encoding; 16 means the header of gzip."""


class Explained(httpx.TransportError):
    """A failed request whose message is ours, and may be shown."""


class Misconfigured(Explained, httpx.UnsupportedProtocol):
    """A request that cannot be sent because of a variable of the environment, which the message names."""


class ProxyTrouble(Explained, httpx.ProxyError):
    """A request that a proxy did not pass on: nothing reached the service."""


class Unfinished(Explained, httpx.RemoteProtocolError):
    """An answer that began, but did not end in time."""


class Packed(Explained, httpx.DecodingError):
    """An answer that cannot be unpacked."""


async def exchange(
    client: httpx.AsyncClient, request: httpx.Request, *, seconds: float, most: int, needs_content: bool = True
) -> Reply:
    """Send a request and read the whole answer of at most `most` bytes, all within `seconds`.

    Without `needs_content` the status alone is the answer: content that cannot be read is `None`, as if too large.

    Raise an `httpx.HTTPError` for every failure: `httpx.ConnectTimeout` when time ran out before a byte left,
    `httpx.ReadTimeout` when it ran out before the answer began, `Unfinished` when the answer had begun.
    """
    has_begun = False
    response: httpx.Response | None = None

    async def trace(event: str, _: Mapping[str, object]) -> None:
        nonlocal has_begun
        has_begun = has_begun or event == LEAVES

    silence = request.extensions.get("timeout", {})
    # A little less, since httpx leaves a connection open whose handshake is cancelled from outside.
    connect = min(silence.get("connect") or seconds, 0.9 * seconds)
    request.extensions = {**request.extensions, "trace": trace, "timeout": {**silence, "connect": connect}}
    try:
        async with asyncio.timeout(seconds):
            response = await client.send(request, stream=True)
            try:
                if response.status_code == 101:
                    raise httpx.RemoteProtocolError("the server switched to another protocol")
                reply = Reply(response.status_code, response.headers, await _content(response, most))
                if reply.status in NO_CONTENT:
                    await response.extensions["network_stream"].aclose()
                return reply
            finally:
                await response.aclose()
    except (httpx.HTTPError, TimeoutError) as error:
        if response is not None and not needs_content:
            return Reply(response.status_code, response.headers, None)
        if not isinstance(error, TimeoutError):
            raise
        if response is not None:
            raise Unfinished(f"the answer began but was not complete within {seconds:.3g} s") from None
        if has_begun:
            raise httpx.ReadTimeout(f"none within {seconds:.3g} s") from None
        raise httpx.ConnectTimeout(f"no connection within {seconds:.3g} s") from None


async def _content(response: httpx.Response, most: int) -> bytes | None:
    """Return the content, unpacked as it arrives, or `None` if it is larger than `most` bytes, packed or unpacked."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    packed, content, unpacker = 0, bytearray(), None
    async for chunk in response.aiter_raw():
        packed += len(chunk)
        if encoding in ("", "identity"):
            content += chunk
        elif encoding not in WINDOWS:  # seen only here, since the answer to HEAD has no body and may name any encoding
            raise Packed(f"the answer has an encoding that was not requested: {tidy(encoding)}")
        else:
            # Some servers join packed texts, or pad the last with zeros (RFC 1952 §2.2).
            while (chunk := chunk if unpacker else chunk.lstrip(b"\0")) and len(content) <= most:
                unpacker = unpacker or zlib.decompressobj(WINDOWS[encoding])
                try:
                    # One byte more than accepted tells that it is more.
                    content += unpacker.decompress(chunk, most - len(content) + 1)
                except zlib.error:
                    raise Packed("the answer cannot be unpacked") from None
                chunk, unpacker = unpacker.unused_data, None if unpacker.eof else unpacker
        if packed > most or len(content) > most:
            return None
    if unpacker is not None:
        raise Packed("the answer cannot be unpacked: it was cut short")
    return bytes(content)


# --- causes

LISTENING = "nothing is listening at the address"
NO_HOST = "the host name cannot be resolved"
CLOSED = "the connection was closed by the other side"
NO_CONNECTION = "no connection is possible"
TOO_SLOW_TO_CONNECT = "no connection in time"
TOO_SLOW = "no answer in time"
NOT_HTTP = "the answer is not valid HTTP"

_BY_NUMBER: Mapping[int, str] = {
    errno.ECONNREFUSED: LISTENING,
    errno.ECONNRESET: CLOSED,
    errno.ECONNABORTED: CLOSED,
    errno.EPIPE: CLOSED,
    errno.ETIMEDOUT: TOO_SLOW_TO_CONNECT,
    errno.EHOSTUNREACH: "there is no way to the host",
    errno.ENETUNREACH: "there is no way to the network of the host",
    errno.EACCES: "this machine does not allow the connection",
    errno.EPERM: "this machine does not allow the connection",
    errno.EADDRNOTAVAIL: "this machine has no free port or address for the connection",
    errno.EMFILE: "this process has too many open files",
    errno.ENFILE: "this machine has too many open files",
}
_NUMBER = re.compile(r"\[Errno (\d+)\]")
"""A system error in a message of asyncio, which sums up the failures of several addresses without their numbers."""

_UNTRUSTED = "its certificate is not trusted here; the variable SSL_CERT_FILE can name the authorities of your network"
_BY_VERIFICATION: Mapping[int, str] = {  # X509_V_ERR_* of OpenSSL
    9: "its certificate is not valid yet; check the clock of this machine",
    10: "its certificate has expired",
    23: "its certificate was revoked",
    62: "its certificate is for another host",
    64: "its certificate is for another address",
}
_BY_TLS: Mapping[str, str] = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS: is its address http:// instead of https://?",
    "HTTP_REQUEST": "it does not speak TLS: is its address http:// instead of https://?",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for a certificate of the client",
}
"""Causes by OpenSSL's reason."""

_BY_CLASS: tuple[tuple[type[BaseException], str], ...] = (
    (httpx.ConnectTimeout, TOO_SLOW_TO_CONNECT),
    (httpx.PoolTimeout, TOO_SLOW_TO_CONNECT),
    (httpx.TimeoutException, TOO_SLOW),
    (httpx.InvalidURL, "the address is not a valid URL"),
    (httpx.UnsupportedProtocol, "the address is not an HTTP URL, or its port is invalid"),
    (httpx.ProxyError, "the proxy refuses the connection"),
    (httpx.LocalProtocolError, "a header is not one line of ASCII"),
    (httpx.ConnectError, NO_CONNECTION),
    (httpx.NetworkError, CLOSED),
    (httpx.RemoteProtocolError, NOT_HTTP),
    (TimeoutError, TOO_SLOW),
    (OSError, NO_CONNECTION),
)


_OF_AN_END = ("disconnected", "closed connection")
"""Words of httpcore and h11 for an answer that is missing or cut, for which they have no class."""


def cause_of(error: BaseException) -> str:
    """Return the cause of an error of httpx, or of one that a request ended with, as a clause for brackets."""
    if isinstance(error, httpx.TimeoutException):  # which may have any other error of the task behind it
        return _cause_by_class(error)
    chain = list(_chain(error))
    own = next((str(each) for each in chain if isinstance(each, Explained)), None)
    return own or next(filter(None, map(_system_cause, chain)), None) or _cause_by_class(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those behind it, also those of several addresses that were tried."""
    met, waiting = set[int](), [error]
    while waiting:
        each = waiting.pop(0)
        if id(each) not in met:
            met.add(id(each))
            yield each
            # Also what `from None` hides: httpcore hides the system's error so.
            waiting += [*getattr(each, "exceptions", ()), *filter(None, (each.__cause__, each.__context__))]


def _system_cause(error: BaseException) -> str | None:
    """Return the cause that the operating system or TLS gives, if any."""
    match error:
        case ssl.SSLCertVerificationError():
            return _BY_VERIFICATION.get(error.verify_code, _UNTRUSTED)
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return CLOSED
        case ssl.SSLError():
            return _BY_TLS.get(error.reason or "", "no encrypted connection can be agreed on")
        case socket.gaierror() if error.errno == socket.EAI_AGAIN:
            return f"{NO_HOST} at the moment"
        case socket.gaierror() | UnicodeError():  # UnicodeError: a label of the name is empty or too long
            return NO_HOST
        case OSError():
            numbers = [error.errno] if error.errno else map(int, _NUMBER.findall(str(error)))
            return next((_BY_NUMBER[number] for number in numbers if number in _BY_NUMBER), None)
    return None


def is_answered(error: BaseException) -> bool:
    """Return whether the other side answered, but not by the rules of HTTP."""
    return isinstance(error, httpx.RemoteProtocolError) and not any(each in str(error) for each in _OF_AN_END)


def _cause_by_class(error: BaseException) -> str:
    if isinstance(error, httpx.RemoteProtocolError) and not is_answered(error):
        return CLOSED
    return next((words for family, words in _BY_CLASS if isinstance(error, family)), NO_CONNECTION)


Trust = Callable[[], ssl.SSLContext]

SCHEMES = ("http", "https", "socks5", "socks5h")
LAST_PORT = 65_535
DISCARD = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
"""The option of a socket that discards what has not left when it closes, also by the death of this process.

The operating system would go on sending a body for as long as the other end is willing to read, and the service would
execute a call after its recorded end (docs/planning.md 1.8). A proxy has buffers of its own.
"""
PORTS = {"http": 80, "https": 443}
AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
"""The variables that name trusted authorities. The last, of the library requests, counts where the others are unset."""

_EXEMPT = re.compile(r"(?:\[(?P<bracketed>[^]]*)\]|(?P<name>[^:]*))(?::(?P<port>\d+))?")
"""An entry of NO_PROXY with its port, if any. An IPv6 address without brackets has no port."""


# --- certificates


def authorities() -> ssl.SSLContext:
    """Load the trusted authorities, which takes longer than many a run: callers do so on demand, and once.

    Raise `Misconfigured` when a variable names none that can be loaded.
    """
    named = {name: value for name in AUTHORITIES if (value := os.environ.get(name, "").strip())}
    if len(named) > 1:
        named.pop("REQUESTS_CA_BUNDLE", None)
    file = folders = None
    for variable, value in named.items():
        if variable == "SSL_CERT_DIR" or Path(value).is_dir():
            folders = value
            if not any(map(os.access, value.split(os.pathsep), repeat(os.R_OK | os.X_OK))):
                raise Misconfigured(f"{variable} names {tidy(value)}, which is not a folder that can be read")
        else:
            file = (variable, value)
    if not named:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=file and file[1], capath=folders)
    except OSError as error:
        assert file is not None, "folders are read later"
        why = "is not a file of certificates (PEM)" if isinstance(error, ssl.SSLError) else "cannot be read"
        why = "does not exist" if isinstance(error, FileNotFoundError) else why
        raise Misconfigured(f"{file[0]} names {tidy(file[1])}, which {why}") from None


# --- proxies


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy and the variable that names it. `url` may hold a password; `__str__` does not."""

    url: str
    variable: str

    def __str__(self) -> str:
        return f"{httpx.URL(self.url).netloc.decode()} ({self.variable})"


class Proxies:
    """The proxies of the environment, as they are now. It is false where there are none."""

    def __init__(self) -> None:
        named = getproxies()
        self._exempt = tuple(filter(None, re.split(r"[,\s]+", named.pop("no", ""))))
        self._named = {scheme: url for scheme in ("http", "https", "all") if (url := named.get(scheme, "").strip())}

    def __bool__(self) -> bool:
        return bool(self._named)

    def of(self, url: httpx.URL) -> Proxy | None:
        """Return the proxy through which a URL is reached, if any. Raise `Misconfigured` if nothing can use it."""
        key = url.scheme if url.scheme in self._named else "all"
        if key not in self._named or any(is_exempt(entry, url) for entry in self._exempt):
            return None
        names = (f"{key}_proxy", f"{key}_proxy".upper())  # a name in small letters wins, as everywhere
        variable = next((name for name in names if os.environ.get(name)), "the settings of this machine")
        text = self._named[key] if "://" in self._named[key] else f"http://{self._named[key]}"
        try:
            proxy = httpx.URL(text)
        except httpx.InvalidURL:
            proxy = httpx.URL()
        if proxy.scheme not in SCHEMES or not proxy.host or not 0 < (proxy.port or PORTS["http"]) <= LAST_PORT:
            is_kind = proxy.host and proxy.scheme not in SCHEMES
            what = "a kind of proxy that is not supported" if is_kind else "no valid URL"
            raise Misconfigured(f"{variable} names {what}: expected http://HOST:PORT")
        if proxy.scheme.startswith("socks") and find_spec("socksio") is None:
            raise Misconfigured(
                f"{variable} names a SOCKS proxy, which needs the Python package socksio: install it (`pip install"
                " socksio`), name an http:// proxy, or list the host in NO_PROXY"
            )
        return Proxy(text, variable)


def is_exempt(entry: str, url: httpx.URL) -> bool:
    """Return whether an entry of NO_PROXY names a URL's host: its name, a domain above it, its address or network.

    A name may begin with a dot or `*.`, an entry may end with a port, and IPv6 addresses may have brackets. `*` names
    all hosts. What cannot be read names none.
    """
    if entry == "*":
        return True
    entry = entry.rpartition("://")[2].rstrip("/")
    if parts := _EXEMPT.fullmatch(entry):
        if parts["port"] and int(parts["port"]) != (url.port or PORTS.get(url.scheme)):
            return False
        entry = parts["name"] if parts["bracketed"] is None else parts["bracketed"]
    host = url.host.lower().rstrip(".")
    try:
        address = ip_address(host)
    except ValueError:
        name = entry.lower().removeprefix("*").strip(".")
        return bool(name) and f".{host}".endswith(f".{name}")
    try:
        return address in ip_network(entry, strict=False)
    except ValueError:  # the entry is a name
        return False


# --- clients


def check(url: str, tls: Trust) -> None:
    """Raise `Usage` if a variable of the environment prevents every request to `url`."""
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return  # which its user reports
    try:
        Proxies().of(address)
        if address.scheme == "https" and any(map(os.environ.get, AUTHORITIES)):
            tls()
    except Misconfigured as error:
        raise Usage(str(error), code="network-settings") from None


def http_client(
    headers: Mapping[str, str],
    *,
    auth: tuple[str, str] | None = None,
    tls: Trust | None = None,
    limits: httpx.Limits | None = None,
    is_local: bool = False,
) -> httpx.AsyncClient:
    """Return a client that follows no redirects, and heeds the environment only as this module does.

    `is_local` is true for a service that no proxy leads to. Making a client never fails: a variable that cannot be used
    is an error of the requests that need it.
    """
    transport = ByRoute(tls or cache(authorities), limits, is_local=is_local)
    # `exchange` limits a request as a whole; httpx's own limits are for the time without any progress.
    timeout = httpx.Timeout(None)
    return httpx.AsyncClient(timeout=timeout, headers=headers, auth=auth, transport=transport, trust_env=False)


class BlockingClient:
    """A client for code without an event loop, and the headers of its requests. Use it as a context manager.

    A request is a task of a loop of its own, since only a task can be cancelled while it waits.
    """

    def __init__(self, headers: Mapping[str, str], auth: tuple[str, str] | None = None) -> None:
        self._runner = asyncio.Runner()
        self._client = http_client({**HEADERS, **headers}, auth=auth)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def exchange(
        self,
        method: str,
        url: httpx.URL | str,
        *,
        seconds: float,
        most: int,
        json: bytes | None = None,
    ) -> Reply:
        """Return the answer to a request, as the function `exchange` does."""
        headers = None if json is None else {"content-type": "application/json"}
        request = self._client.build_request(method, url, headers=headers, content=json)
        reply = self._runner.run(unless_stopped(exchange(self._client, request, seconds=seconds, most=most)))
        if reply is None:
            raise KeyboardInterrupt
        return reply


class ByRoute(httpx.AsyncBaseTransport):
    """A transport that sends each request on the way that the environment chooses for its URL."""

    def __init__(self, tls: Trust, limits: httpx.Limits | None = None, *, is_local: bool = False) -> None:
        self._tls = tls
        self._limits = limits or httpx.Limits()
        self._proxies = None if is_local else Proxies()
        self._made: dict[tuple[Proxy | None, bool], httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.port is not None and not 0 < request.url.port <= LAST_PORT:
            raise httpx.UnsupportedProtocol(f"invalid port: {request.url.port}")
        proxy = self._proxies.of(request.url) if self._proxies else None
        is_encrypted = "https" in (request.url.scheme, proxy and httpx.URL(proxy.url).scheme)
        if (transport := self._made.get((proxy, is_encrypted))) is None:
            tls = self._tls() if is_encrypted else None
            is_tls_to_proxy = proxy is not None and proxy.url.startswith("https:")
            through = httpx.Proxy(proxy.url, ssl_context=tls if is_tls_to_proxy else None) if proxy else None
            transport = self._made[proxy, is_encrypted] = httpx.AsyncHTTPTransport(
                verify=tls or False, limits=self._limits, proxy=through, trust_env=False, socket_options=[DISCARD]
            )
        if proxy is None:
            return await transport.handle_async_request(request)
        return await _through(proxy, transport, request)

    async def aclose(self) -> None:
        for transport in self._made.values():
            await transport.aclose()


async def _through(proxy: Proxy, transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
    """Return the answer to a request sent through a proxy. Raise `ProxyTrouble` when the proxy does not pass it on."""
    try:
        response = await transport.handle_async_request(request)
    except httpx.ProxyError as error:
        status = str(error)[:3]
        status = f" ({status})" if status.isdigit() else ""
        login = ": it asks for a login" if status == " (407)" else ""
        raise ProxyTrouble(f"the proxy {proxy} refuses the connection{status}{login}") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        if isinstance(error.__cause__ and error.__cause__.__context__, ssl.SSLError):
            raise  # about the certificate of the service, which the proxy only passes on
        raise ProxyTrouble(f"the proxy {proxy} cannot be reached: {cause_of(error)}") from None
    if response.status_code == 407:
        await response.aclose()
        raise ProxyTrouble(f"the proxy {proxy} refuses the connection (407): it asks for a login")
    return response
