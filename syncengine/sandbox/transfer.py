"""Send an answer as a fault demands: padded with blanks, compressed, or a byte at a time."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from syncengine.sandbox.faults import Transfer
from syncengine.sandbox.long_poll import disconnected

WIRE = "wire"
"""The key under which the server puts a `Wire` into each request's state."""

CHUNK = 1 << 20
GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Wire:
    """A raw connection below HTTP, with functions to write bytes to it, close it and cut it."""

    write: Callable[[bytes], None]
    close: Callable[[], None]
    cut: Callable[[], None]


def travelling(answer: Response, transfer: Transfer) -> Response:
    """Return an answer that is sent as `transfer` demands. The default transfer leaves the answer unchanged."""
    if transfer == Transfer():
        return answer
    chunks = filled(bytes(answer.body), transfer.size)
    headers = [header for header in answer.raw_headers if header[0] != b"content-length"]
    if transfer.gzip:
        chunks, headers = compressed(chunks), [*headers, (b"content-encoding", b"gzip")]
    if transfer.drip is not None:
        return _Dripping(answer.status_code, headers, chunks, transfer)
    streamed = StreamingResponse(_each(chunks), answer.status_code)
    streamed.raw_headers = headers
    return streamed


def filled(body: bytes, size: int) -> Iterator[bytes]:
    """Yield the body, then blanks up to `size` bytes in chunks that need little memory. JSON keeps its meaning."""
    yield body
    for start in range(len(body), size, CHUNK):
        yield b" " * min(CHUNK, size - start)


def compressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=GZIP)
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()


async def _each(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
        await asyncio.sleep(0)  # others are served between two chunks


class _Dripping(Response):
    """A response written a byte at a time to the raw connection, since ASGI cannot send half a head. It ends with the
    connection."""

    def __init__(
        self, status: int, headers: list[tuple[bytes, bytes]], chunks: Iterable[bytes], transfer: Transfer
    ) -> None:
        lines = [f"HTTP/1.1 {status} {_phrase(status)}".encode(), *(b": ".join(pair) for pair in headers)]
        head = b"\r\n".join([*lines, b"connection: close", b"", b""])
        self._at_once = b"" if transfer.drip_head else head
        self._dripping = _bytes(chain([head] if transfer.drip_head else [], chunks))
        self._pause = transfer.drip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wire: Wire = scope["state"][WIRE]
        disconnection = asyncio.ensure_future(disconnected(receive))
        try:
            wire.write(self._at_once)
            for piece in self._dripping:
                wire.write(piece)
                if (await asyncio.wait({disconnection}, timeout=self._pause))[0]:
                    return
            wire.close()
            await disconnection
        finally:
            disconnection.cancel()
            wire.cut()  # also when the sandbox stops: the server would add an answer of its own


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _bytes(chunks: Iterable[bytes]) -> Iterator[bytes]:
    return (chunk[at : at + 1] for chunk in chunks for at in range(len(chunk)))
