"""Exchange one HTTP request for its whole answer, within limits of time and size, however slowly it arrives."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import httpx

from syncengine import __version__
from syncengine.service.causes import Unfinished

HEADERS = {"user-agent": f"syncengine/{__version__}", "accept-encoding": "gzip"}
"""The user agent and the accepted compression; a server may also use others that the standard library can unpack."""

NO_CONTENT = (204, 304)
"""Answers without content. Some servers send content nevertheless, which must not be read as the next answer, so that
the connection is not used again."""

LEAVES = "http11.send_request_headers.started"
"""httpcore's name for the moment before the first byte leaves."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `content` is unpacked; `None` means that it is larger than accepted."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None


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
    unpacked = Unpacked(response.headers.get("content-encoding", ""), most)
    async for chunk in response.aiter_raw():
        if not unpacked.takes(chunk):
            return None
    return unpacked.whole()


class Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Unpacked:
    """Content unpacked as it arrives, up to `most` bytes. Raise `httpx.DecodingError` for an unsupported encoding."""

    def __init__(self, encoding: str, most: int) -> None:
        self._encoding = encoding
        self._most = most
        self._packed = 0
        self._unpacker: Unpacker | None = None
        self._content = bytearray()

    def takes(self, chunk: bytes) -> bool:
        """Return whether the content, including this chunk, is within the limit."""
        self._packed += len(chunk)
        if self._packed > self._most:
            return False
        # Only once there is a body: the answer to HEAD has none, and may name any encoding.
        self._unpacker = self._unpacker or _unpacker(self._encoding.strip().lower())
        try:
            self._content += self._unpacker.decompress(chunk, self._most - len(self._content) + 1)
        except zlib.error as error:
            raise httpx.DecodingError(str(error)) from None
        return len(self._content) <= self._most

    def whole(self) -> bytes:
        """Return the whole content, after the last chunk."""
        if self._unpacker is not None and not self._unpacker.eof:
            raise httpx.DecodingError("the answer was cut short")
        return bytes(self._content)


class _Plain:
    """Content that is not packed."""

    eof = True

    def decompress(self, data: bytes, _: int, /) -> bytes:
        return data


def _unpacker(encoding: str) -> Unpacker:
    match encoding:
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip":
            return zlib.decompressobj(zlib.MAX_WBITS | 16)
        case "deflate":
            return zlib.decompressobj()
    raise httpx.DecodingError(f"the answer has an encoding that was not requested: {encoding}")
