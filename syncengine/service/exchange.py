"""Exchange one HTTP request for its whole answer, within limits of time and size, or for the cause in our own words.

`cause_of` is for everything that sends requests: never a library's words, without addresses and secrets.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import ssl
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import httpx

from syncengine import __version__

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


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `content` is unpacked; `None` means that it is larger than accepted."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class Explained(httpx.TransportError):
    """A failed request whose message is ours, and may be shown."""


class Misconfigured(Explained, httpx.UnsupportedProtocol):
    """A request that cannot be sent because of a variable of the environment, which the message names."""


class ProxyTrouble(Explained, httpx.ProxyError):
    """A request that a proxy did not pass on: nothing reached the service."""


class Unfinished(Explained, httpx.RemoteProtocolError):
    """An answer that began, but did not end in time."""


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
            raise httpx.DecodingError(f"the answer has an encoding that was not requested: {encoding}")
        else:
            unpacker = unpacker or zlib.decompressobj(WINDOWS[encoding])
            try:
                content += unpacker.decompress(
                    chunk, most - len(content) + 1
                )  # one more than accepted tells that it is
            except zlib.error as error:
                raise httpx.DecodingError(str(error)) from None
        if packed > most or len(content) > most:
            return None
    if unpacker is not None and not unpacker.eof:
        raise httpx.DecodingError("the answer was cut short")
    return bytes(content)


# --- causes

LISTENING = "nothing is listening at the address"
NO_HOST = "the host name cannot be resolved"
CLOSED = "the connection was closed by the other side"
NO_CONNECTION = "no connection is possible"
TOO_SLOW_TO_CONNECT = "no connection in time"
TOO_SLOW = "no answer in time"

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
    (httpx.DecodingError, "the answer cannot be unpacked"),
    (httpx.LocalProtocolError, "a header is not one line of ASCII"),
    (httpx.ConnectError, NO_CONNECTION),
    (httpx.NetworkError, CLOSED),
    (httpx.RemoteProtocolError, "the answer is not valid HTTP"),
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


def _cause_by_class(error: BaseException) -> str:
    if isinstance(error, httpx.RemoteProtocolError) and any(each in str(error) for each in _OF_AN_END):
        return CLOSED
    return next((words for family, words in _BY_CLASS if isinstance(error, family)), NO_CONNECTION)
