"""What `serve` says: its log, in which no line holds a secret, and its probes with the limits of their server."""

import asyncio
import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from syncengine import __version__
from syncengine.errors import Diagnostic, Problems, Severity, SyncengineError, TroubleKind
from syncengine.http.server import BoundedProtocol, Bounds, bounded
from syncengine.posted_time.events import SinkTrouble, Taken, Verdict
from syncengine.serve.log import Log, QueuedStream, telling
from syncengine.serve.probes import DOWN_SECONDS, NOT_RECONCILED, Readiness, Server, probes
from syncengine.serve.reconcile import OUTCOMES
from syncengine.state.inbox_model import PostedTimeStatus

KEY = "k3y-never-to-be-seen"


def logged(write: Any, **given: Any) -> list[str]:
    stream = io.StringIO()
    write(Log(stream, lambda: 1_700_000_000.5, secrets=[lambda: [KEY]], **given))
    return stream.getvalue().splitlines()


def test_a_line_is_a_json_object_with_time_level_event_and_facts() -> None:
    """A fact that is None is left out."""
    (line,) = logged(lambda log: log.warning("taken", "group a", group="a", externalId=None, count=2))
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.500Z",
        "level": "warning",
        "event": "taken",
        "message": "group a",
        "group": "a",
        "count": 2,
    }


def test_text_for_people_shows_no_control_characters_and_quiet_no_infos() -> None:
    lines = logged(lambda log: log.info("x", "a\x1b[2Jb\nc"), json=False)
    assert lines == ["2023-11-14T22:13:20.500Z info: a\\x1b[2Jb\\nc"]
    lines = logged(lambda log: (log.info("x", "a"), log.warning("x", "b"), log.error("x", "c")), quiet=True)
    assert [json.loads(line)["level"] for line in lines] == ["warning", "error"]


def test_no_line_holds_a_secret() -> None:
    """Secrets are masked in messages and in facts; very short ones are not. When a secret's file is missing, the line
    is written all the same."""
    lines = logged(lambda log: log.error("x", f"they said {KEY}!", words=f"{KEY}{KEY}"))
    assert KEY not in "".join(lines)
    assert json.loads(lines[0])["message"] == "they said ***!"

    def gone() -> list[str]:
        raise SyncengineError("the file is away")

    stream = io.StringIO()
    Log(stream, lambda: 0.0, secrets=[gone, lambda: [""], lambda: ["ab"]]).info("x", "about")
    assert json.loads(stream.getvalue())["message"] == "about"


def test_each_problem_has_a_line_of_its_own_with_its_place() -> None:
    """Problems are logged as `validate` shows them."""
    place = {"severity": Severity.ERROR, "file": "syncengine.yaml", "column": 3}
    found = [Diagnostic(code=code, message=f"bad {code}", line=n, **place) for n, code in ((1, "one"), (2, "two"))]
    lines = [json.loads(line) for line in logged(lambda log: log.refusal("ended", Problems(found)))]
    assert [line["message"] for line in lines] == ["syncengine.yaml:1:3: bad one", "syncengine.yaml:2:3: bad two"]
    assert [line["code"] for line in lines] == ["one", "two"]


def test_a_reader_that_went_away_ends_nothing() -> None:
    stream = io.StringIO()
    stream.close()
    Log(stream, lambda: 0.0).error("x", "nobody hears it")


def test_a_reader_that_stopped_reading_does_not_block_the_log() -> None:
    """When nobody reads the log, lines over a limit are dropped, and their number is logged later."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "w") as written:
        stream = QueuedStream(written, most=20)
        log = Log(stream, lambda: 0.0)
        for number in range(200):
            log.info("x", f"{number} " + "x" * 10_000)
        assert log.dropped > 0
        dropped = log.dropped
        lines = [json.loads(read.readline())["message"] for _ in range(200 - dropped)]
        assert [line.split()[0] for line in lines] == [str(number) for number in range(200 - dropped)]
        log.info("y", "again")
        stream.close()
        assert [json.loads(read.readline())["message"] for _ in range(2)] == [
            "again",
            f"{dropped} lines before this were dropped: nobody read the log",
        ]


@pytest.mark.parametrize("is_blocking", [True, False], ids=["blocking", "non-blocking"])
def test_a_reader_that_is_slow_gets_every_line_whole(is_blocking: bool) -> None:
    """Also through a pipe that another process has made non-blocking, with lines longer than the pipe takes at once."""
    reader, writer = os.pipe()
    os.set_blocking(writer, is_blocking)
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "w") as written:
        stream = QueuedStream(written)
        for number in range(20):
            Log(stream, lambda: 0.0).info("x", f"{number} " + "x" * 100_000)
        time.sleep(0.1)  # until the pipe is full
        lines = [json.loads(read.readline())["message"] for _ in range(20)]
        stream.close()
    assert [line.split()[0] for line in lines] == [str(number) for number in range(20)]


def test_libraries_write_nothing_between_the_lines() -> None:
    text = "import logging; from syncengine.serve import log; log.quiet_libraries(); logging.getLogger().warning('w')"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, check=True).stderr == b""


def test_the_log_says_that_a_group_in_trouble_is_offered_again() -> None:
    """Nobody has to act."""
    trouble = Taken("a", Verdict(PostedTimeStatus.TROUBLE, "ledger cannot be reached.", detail="refused"))
    (line,) = logged(lambda log: telling(log, Readiness(), lambda outcome: None)(trouble))
    message = "group a: RETRIABLE_FAILURE: ledger cannot be reached. [refused] The service will offer it again."
    assert json.loads(line)["message"] == message


# --- probes


T = TypeVar("T")
Scene = Callable[[str], Awaitable[T]]
IN_TIME, UNREAD = 0.3, 3
HEAD = b"POST /healthz HTTP/1.1\r\nHost: x\r\n"
DOWN = SinkTrouble("pms", TroubleKind.UNREACHABLE, "pms cannot be reached.")


def serving(scene: Scene[T], application: Callable[..., Awaitable[None]] | None = None, in_time: float = IN_TIME) -> T:
    """Run a scene against the probes of a process, or against another application, on loopback."""

    async def play() -> T:
        http = bounded(BoundedProtocol, Bounds(in_time, UNREAD))
        served = application or probes(Readiness())
        server = Server(served, ("127.0.0.1", 0), setting="`--listen`", patience=1, http=http)
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
