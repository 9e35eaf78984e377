"""How an answer travels when a fault has a say in it: filled up with blanks, compressed, or a byte at a time."""

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
"""The key of a `Wire` in each request's state, where the server puts it."""

CHUNK = 1 << 20
GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Wire:
    """A connection below HTTP: write bytes to it, end it, or cut it."""

    write: Callable[[bytes], None]
    close: Callable[[], None]
    cut: Callable[[], None]


def travelling(answer: Response, transfer: Transfer) -> Response:
    """The answer with its way of travelling; unchanged by default."""
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
    """The body, and blanks up to `size`: JSON keeps its meaning, and little memory is used."""
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
    """A response written below HTTP, which has no word for half a head; it ends where the connection ends."""

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
