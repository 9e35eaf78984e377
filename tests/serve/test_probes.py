"""The probes of a process: when it is ready, and the limits of a connection to their HTTP server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from syncengine import __version__
from syncengine.errors import TroubleKind
from syncengine.http.server import BoundedProtocol, Bounds, bounded
from syncengine.posted_time.events import SinkTrouble
from syncengine.serve.probes import DOWN_SECONDS, NOT_RECONCILED, Readiness, Server, probes
from syncengine.serve.reconcile import OUTCOMES

T = TypeVar("T")
Scene = Callable[[str], Awaitable[T]]
IN_TIME, UNREAD = 0.3, 3
HEAD = b"POST /healthz HTTP/1.1\r\nHost: x\r\n"
DOWN = SinkTrouble("pms", TroubleKind.UNREACHABLE, "pms cannot be reached.")


def serving(scene: Scene[T], application: Callable[..., Awaitable[None]] | None = None, in_time: float = IN_TIME) -> T:
    """Run a scene against the probes of a process, or against another application, on loopback."""

    async def play() -> T:
        http = bounded(BoundedProtocol, Bounds(in_time, UNREAD))
        server = Server(
            application or probes(Readiness()), ("127.0.0.1", 0), setting="`--listen`", patience=1, http=http
        )
        url = await server.start()
        try:
            async with asyncio.timeout(60):
                return await scene(url)
        finally:
            await server.stop()

    return asyncio.run(play())


async def opened(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def alive(url: str) -> int:
    async with httpx.AsyncClient(trust_env=False) as http:
        return (await http.get(f"{url}/healthz")).status_code


def ready(**given: object) -> Readiness:
    return Readiness(phase=None, **given)  # type: ignore[arg-type] # as a test calls it


def test_a_sink_that_is_down_counts_after_a_minute() -> None:
    """A sink's restart takes less than that, and until then another process would not do better."""
    readiness = ready(has_posted_time=True)
    readiness.note_sinks((DOWN,))
    assert readiness.reasons() == []
    readiness.down_since["pms"] -= DOWN_SECONDS
    readiness.note_sinks((DOWN,))
    assert readiness.reasons() == ["sink pms: pms cannot be reached."]
    readiness.note_sinks(())
    readiness.note_sinks((DOWN,))
    assert readiness.reasons() == []


@pytest.mark.parametrize("outcome", OUTCOMES.values())
def test_invalid_manifests_count_where_there_is_nothing_but_manifests(outcome: str) -> None:
    """With posted time, the process stays ready: an invalid manifest must not keep webhook calls from it."""
    assert bool(ready(reconciled=outcome).reasons()) == (outcome in NOT_RECONCILED)
    assert ready(reconciled=outcome, has_posted_time=True).reasons() == []


def test_the_page_shows_what_the_probes_answer() -> None:
    readiness = ready(configuration="line 3: <b> is no setting", reconciled="complete")
    readiness.note_sinks((DOWN,))
    readiness.counts = lambda: {"received": 7}

    async def scene(url: str) -> str:
        async with httpx.AsyncClient(trust_env=False) as http:
            return (await http.get(url)).text

    page = serving(scene, probes(readiness))
    for words in ("<h1>Ready</h1>", "line 3: &lt;b&gt; is no setting", "complete", "<td>7", DOWN.message, __version__):
        assert words in page


# --- their server


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_the_address_of_all_takes_both_families() -> None:
    """`[::]` listens on IPv4 and IPv6, whatever the system's default for IPv6 sockets is."""

    async def play() -> list[int]:
        server = Server(probes(Readiness()), ("::", 0), setting="`--listen`", patience=1)
        port = (await server.start()).rpartition(":")[2]
        try:
            return [await alive(f"http://{host}:{port}") for host in ("127.0.0.1", "[::1]")]
        finally:
            await server.stop()

    assert asyncio.run(play()) == [200, 200]


@pytest.mark.parametrize("begin", [b"", b"GET", HEAD], ids=["nothing", "half a line", "half a head"])
def test_a_request_that_does_not_come_is_cut(begin: bytes) -> None:
    """An unfinished request is answered with 408 and closed; other requests are answered."""

    async def scene(url: str) -> tuple[bytes, int]:
        reader, writer = await opened(url)
        writer.write(begin)
        answer = await reader.read()
        writer.close()
        return answer.split(b"\r\n")[0], await alive(url)

    assert serving(scene) == (b"HTTP/1.1 408 Request Timeout", 200)


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (HEAD, b"A: b\r\n"),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", b" "),
        (HEAD.replace(b"POST", b"GET") + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
    ids=["head", "body", "chunks of a GET"],
)
def test_a_request_without_an_end_is_cut(begin: bytes, piece: bytes) -> None:
    """Sending a few bytes now and then does not extend the time of a request, whether it is answered or not."""

    async def scene(url: str) -> int:
        reader, writer = await opened(url)
        writer.write(begin)
        with suppress(ConnectionError):
            while not (reader.at_eof() or writer.transport.is_closing()):
                writer.write(piece)
                await writer.drain()
                with suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(4096), IN_TIME / 20)
        writer.close()
        return await alive(url)

    assert serving(scene) == 200


def test_the_oldest_of_too_many_unfinished_requests_makes_room() -> None:
    """Each new connection over the limit closes the oldest unfinished one; a whole request is answered."""

    async def scene(url: str) -> tuple[bytes, int]:
        waiting = [await opened(url) for _ in range(UNREAD)]
        waiting.append(await opened(url))
        answer = await waiting[0][0].read()
        status = await alive(url)
        for _, writer in waiting:
            writer.close()
        return answer.split(b" ")[1], status

    assert serving(scene, in_time=600) == (b"408", 200)


def test_an_answer_that_takes_its_time_is_not_cut() -> None:
    """The time limit is for requests, not for answers; each request of a connection has its own."""

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await asyncio.sleep(2 * IN_TIME)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def scene(url: str) -> list[int]:
        async with httpx.AsyncClient(trust_env=False) as http:
            return [(await http.post(url, content=b"x")).status_code for _ in range(2)]

    assert serving(scene, slow) == [200, 200]
