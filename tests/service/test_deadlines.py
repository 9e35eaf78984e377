"""A call ends within its time and size limits, however slow or large the answer is."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from syncengine.service.answers import Answer
from syncengine.service.client import Client
from syncengine.service.operations import FETCH_POSTED_TIME, LARGEST, UPSERT_TAGS
from tests.dripping import BODY, HEADERS, dripping

from .scripted import OK, Reply, Scripted, saying, serving
from .talking import BUSY, client, once, talk, talking

GUARD_SECONDS = 20.0
"""A call that takes longer than this fails its test."""


def dripped(before: bytes, call: Callable[[Client], Awaitable[Answer]]) -> Answer:
    async def play(url: str) -> Answer:
        async with client(url, timeout=0.1) as caller:
            return await asyncio.wait_for(call(caller), GUARD_SECONDS)

    with dripping(before) as server:
        return asyncio.run(play(server.url))


@pytest.mark.parametrize(
    ("before", "words"), [(BODY, "was not complete within 0.1 s"), (HEADERS, "within 0.1 s")], ids=["body", "headers"]
)
def test_an_answer_that_arrives_byte_by_byte_times_out(before: bytes, words: str) -> None:
    """Each byte is in time, but the attempt as a whole has a deadline; its outcome is unknown."""
    answer = dripped(before, lambda caller: caller.call(UPSERT_TAGS, {"tags": []}))
    assert (answer.status, answer.reached) == (None, True)
    assert words in answer.text


def test_a_long_poll_that_arrives_byte_by_byte_times_out() -> None:
    """The wait for its first byte has its own limit; after that, the usual limit applies."""
    answer = dripped(BODY, lambda caller: caller.call(FETCH_POSTED_TIME, timeout=0.2))
    assert (answer.status, answer.timed_out) == (None, False), (
        "an incomplete answer is trouble, unlike a fetch that nothing was posted for"
    )
    assert "was not complete within 0.3 s" in answer.text


def test_a_repeat_is_limited_by_the_time_left_for_the_call() -> None:
    """The second attempt may take an hour by its own timeout, but the call has half a second."""
    with talking(BUSY, Reply(until=asyncio.Event()), saying({}), timeout=3600.0, patience=0.5) as service:
        answer = service.wait(asyncio.wait_for(service.caller.call(UPSERT_TAGS, {}), GUARD_SECONDS))
        paths = [heard.path.removeprefix("/connect/api") for heard in service.server.heard]
    assert (answer.status, paths) == (None, ["/tag/batch", "/tag/batch", "/team/info"])


def test_an_abandoned_call_does_not_wait_for_its_answer() -> None:
    """After the second Ctrl-C, a sent request has an unknown outcome and a queued one is not sent."""

    async def play() -> Any:
        stop, abandon = asyncio.Event(), asyncio.Event()
        async with (
            serving(Reply(until=asyncio.Event())) as server,
            client(server, timeout=3600.0, concurrency=1, stop=stop, abandon=abandon) as caller,
        ):
            stop.set()
            server.on_request = abandon.set
            calls = asyncio.gather(*(caller.call(UPSERT_TAGS, {}) for _ in range(2)))
            return await asyncio.wait_for(calls, GUARD_SECONDS), len(server.heard)

    (sent, unsent), requests = asyncio.run(play())
    assert (sent.status, sent.reached, unsent.status, unsent.reached, requests) == (None, True, None, False, 1)


# --- size


def packed(content: bytes, times: int = 1) -> Reply:
    return Reply(200, gzip.compress(content, 1) * times, {"Content-Encoding": "gzip"})


LARGE: dict[str, Callable[[], Reply]] = {
    "half a megabyte that unpacks to 128": lambda: packed(bytes(128 * 1024 * 1024)),
    "as many members, of which each is small": lambda: packed(bytes(1024 * 1024), 128),
    "not packed": lambda: Reply(200, b" " * (LARGEST + 1)),
}


@pytest.mark.parametrize("large", LARGE.values(), ids=LARGE)
def test_an_answer_that_is_too_large_is_not_read(large: Callable[[], Reply]) -> None:
    """It is not repeated, as the repeat would be as large, and it takes little memory."""

    async def scene(server: Scripted, caller: Client) -> Any:
        tracemalloc.start()
        try:
            return *await once(server, caller), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    answer, requests, most = talk((large(),), scene)
    assert (answer.status, answer.understood, answer.data, requests) == (200, False, None, 1)
    assert "larger than 16 MB" in answer.text
    assert "more than" in answer.summary
    assert most < 6 * LARGEST, "memory for the server's copy and for what the client read"


def test_an_answer_of_the_largest_size_is_read() -> None:
    answer, _ = talk((packed(b'"' + b"x" * (LARGEST - 2) + b'"'),), once)
    assert (len(str(answer.data)), answer.understood) == (LARGEST - 2, True)


TEXT = b'{"errors": []}'
PACKED: dict[str, tuple[str, bytes, str]] = {
    "gzip": ("gzip", gzip.compress(TEXT), ""),
    "x-gzip": ("x-gzip", gzip.compress(TEXT), ""),
    "deflate": ("deflate", zlib.compress(TEXT), ""),
    "identity": ("identity", TEXT, ""),
    "several members": ("gzip", b"".join(gzip.compress(bytes([letter])) for letter in TEXT), ""),
    "padded": ("gzip", gzip.compress(TEXT[:3]) + bytes(512) + gzip.compress(TEXT[3:]) + bytes(512), ""),
    "cut": ("gzip", gzip.compress(TEXT)[:-9], "cannot be unpacked: it was cut short"),
    "cut in its second member": ("gzip", gzip.compress(TEXT) + gzip.compress(b" ")[:-1], "it was cut short"),
    "more behind it": ("gzip", gzip.compress(TEXT) + b"more", "the answer cannot be unpacked"),
    "not packed": ("gzip", TEXT, "the answer cannot be unpacked"),
    "other": ("br", b"anything", "an encoding that was not requested: br"),
}


@pytest.mark.parametrize(("encoding", "content", "trouble"), PACKED.values(), ids=PACKED)
def test_a_packed_answer_is_read_whole_or_repeated(encoding: str, content: bytes, trouble: str) -> None:
    """In each encoding that servers use; the repeat is told with the cause."""
    told: list[str] = []
    script = (Reply(200, content, {"Content-Encoding": encoding}), *([Reply(200, TEXT)] if trouble else []))
    with talking(*script, on_retry=lambda operation, cause, wait: told.append(cause)) as service:
        answer = service.call()
    assert answer.data == {"errors": []}
    assert [trouble in cause for cause in told] == [True] * bool(trouble), told


def test_only_gzip_is_accepted() -> None:
    """Whatever other packages are installed."""
    with talking(OK) as service:
        assert service.heard().headers["accept-encoding"] == "gzip"
