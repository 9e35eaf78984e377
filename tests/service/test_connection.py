"""Logins, cookies, proxies, and broken or odd connections (docs/planning.md 4.5)."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from contextlib import closing, suppress
from typing import Any

import httpx
import pytest

from syncengine.http.exchange import exchange, http_client
from syncengine.service.operations import FETCH_POSTED_TIME, UPSERT_TAGS

from .scripted import CUT, LOCALHOST, OK, Reply, Scripted, listening, serving
from .talking import client, talking


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_a_login_in_the_address_is_sent_as_a_header() -> None:
    """It is decoded, and not part of the request line or the Host header."""

    async def play() -> Any:
        async with serving(OK) as server, client(server.url.replace("//", "//jo:p%40ss@")) as caller:
            await caller.call(UPSERT_TAGS, {})
            return server.heard[0]

    heard = asyncio.run(play())
    assert heard.path == "/connect/api/tag/batch"
    assert heard.headers["authorization"] == "Basic " + b64encode(b"jo:p@ss").decode()
    assert "jo" not in heard.headers["host"]


def test_a_cookie_is_sent_back() -> None:
    """Load balancers use one to choose a server."""
    with talking(Reply(headers={"Set-Cookie": "server=b7; Path=/"}), OK) as service:
        assert [service.heard().headers.get("cookie") for _ in range(3)] == [None, "server=b7", "server=b7"]


@pytest.mark.parametrize("operation", [UPSERT_TAGS, FETCH_POSTED_TIME], ids=lambda operation: operation.id)
def test_a_closed_keep_alive_connection_is_replaced(operation: Any) -> None:
    """The service closes it after an answer, and the next call uses another one."""
    body = None if operation.method == "GET" else {}
    with talking(OK, CUT, OK) as service:
        assert [service.call(operation, body).status for _ in range(2)] == [200, 200]
        assert service.server.connections > 1


def test_a_large_body_arrives_completely_over_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one follows on the same connection."""
    monkeypatch.setenv("SSL_CERT_FILE", str(LOCALHOST))
    scripted = Scripted((OK,))

    async def play() -> list[int | None]:
        async with listening(scripted.connected, LOCALHOST) as address, client(f"https://{address}") as caller:
            return [(await caller.call(UPSERT_TAGS, {"tags": ["x" * 3_000_000]})).status for _ in range(2)]

    assert (asyncio.run(play()), scripted.connections) == ([200, 200], 1)
    assert [len(heard.body) > 3_000_000 for heard in scripted.heard] == [True, True]


ODD = {
    "204 with a body": b"HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n|{}",
    "204 with an unannounced body": b"HTTP/1.1 204 No Content\r\n\r\n{}",
    "early hints": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n|HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n|1\r\n}\r\n0\r\n\r\n",
    "until the connection closes": b"HTTP/1.0 200 OK\r\n\r\n{|}",
}


@pytest.mark.parametrize("raw", ODD.values(), ids=ODD)
def test_an_odd_answer_does_not_affect_the_next_one(raw: bytes) -> None:
    """Each body is sent once, and no rest of an answer is read as the next answer."""
    heard = []

    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                heard.append(await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0])))
                for part in raw.split(b"|"):
                    writer.write(part)
                    await asyncio.sleep(0.01)
                if raw.startswith(b"HTTP/1.0"):
                    return

    async def play() -> Any:
        async with listening(odd) as address, client(f"http://{address}", concurrency=1) as caller:
            return [(await caller.call(UPSERT_TAGS, {"tags": [number]})).ok for number in range(3)]

    assert asyncio.run(play()) == [True] * 3
    assert heard == [b'{"tags":[%d]}' % number for number in range(3)]


ANSWER = b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%s"
UNASKED = {"another answer": ANSWER % (200, 5, b'"old"'), "408": ANSWER % (408, 0, b""), "end of stream": b""}


@pytest.mark.parametrize("unasked", UNASKED.values(), ids=UNASKED)
def test_unsolicited_data_is_no_answer_to_the_next_request(unasked: bytes) -> None:
    """The event loop is blocked, so the data is still unread in the kernel: the next request uses another
    connection."""
    has_sent = threading.Event()

    def serve(server: socket.socket) -> None:
        first, _ = server.accept()
        with first:
            first.recv(100_000)
            first.sendall(ANSWER % (200, 5, b'"one"'))
            time.sleep(0.1)  # so that the first answer is read before
            first.sendall(unasked)
            if not unasked:
                first.shutdown(socket.SHUT_WR)
            has_sent.set()
            second, _ = server.accept()
        with second:
            second.recv(100_000)
            second.sendall(ANSWER % (200, 5, b'"two"'))

    async def play(url: str) -> list[object]:
        async with client(url, patience=0.0, timeout=5.0) as caller:
            answers = [(await caller.call(UPSERT_TAGS, {})).data]
            has_sent.wait()  # blocks the event loop
            return [*answers, (await caller.call(UPSERT_TAGS, {})).data]

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        assert asyncio.run(play(f"http://127.0.0.1:{server.getsockname()[1]}")) == ["one", "two"]
        thread.join()


def test_an_answer_in_another_protocol_is_an_error() -> None:
    """A configured header may ask for an upgrade; the answer 101 must not block the call."""
    upgrade = {"connection": "upgrade", "upgrade": "h2c"}

    async def play() -> None:
        async with serving(Reply(101, headers=upgrade)) as server, http_client(upgrade) as one:
            await exchange(one, one.build_request("POST", server.url, content=b"{}"), seconds=5.0, most=1_000)

    with pytest.raises(httpx.RemoteProtocolError, match="another protocol"):
        asyncio.run(play())


def test_an_answer_before_the_body_is_sent_is_read() -> None:
    """For example 413 from a service that rejects a large body."""

    async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
            while await reader.read(1_000_000):  # drops the rest, as servers do after their answer
                pass

    async def play() -> Any:
        async with listening(hasty, limit=1_000) as address, client(f"http://{address}", timeout=10.0) as caller:
            return (await caller.call(UPSERT_TAGS, {"tags": ["x" * 32_000_000]})).status

    assert asyncio.run(play()) == 413


@pytest.mark.parametrize(
    "variables",
    [{}, {"NO_PROXY": "localhost,[::1]"}, {"HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "127.0.0.1"}],
    ids=["no proxy", "only NO_PROXY", "proxy and NO_PROXY"],
)
def test_nothing_is_sent_after_a_call_timed_out(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that starts to read after the timeout never gets the whole request.

    The same holds if the environment names proxies, but none for this service.
    """
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    size = 60_000

    async def play() -> tuple[Any, bytes]:
        over, received = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await over.wait()
            content = b""
            with suppress(ConnectionError):
                while chunk := await reader.read(1_000_000):
                    content += chunk
            writer.close()
            if content.startswith(b"POST "):  # not teamInfo, which is sent to find out whether the service is down
                received.set_result(content)

        narrow = socket.create_server(("127.0.0.1", 0))
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        url = f"http://127.0.0.1:{narrow.getsockname()[1]}"
        server = await asyncio.start_server(late, sock=narrow, limit=1_000)
        async with server, client(url, timeout=0.5, patience=0.0) as caller:
            answer = await caller.call(UPSERT_TAGS, {"tags": ["x" * size]})
            over.set()
            return answer, await received

    answer, content = asyncio.run(play())
    assert (answer.status, answer.reached) == (None, True)
    assert len(content) < size


CALLER = """\
import asyncio, sys
from tests.service.talking import UPSERT_TAGS, client

async def play():
    async with client(sys.argv[1]) as caller:
        await caller.call(UPSERT_TAGS, {"tags": ["x" * 60_000]})

asyncio.run(play())
"""


def test_nothing_is_sent_after_the_process_was_killed() -> None:
    """The kernel must not go on sending the buffers of a dead process."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        sender = subprocess.Popen([sys.executable, "-c", CALLER, url])
        service, _ = server.accept()
        with service:
            service.recv(1, socket.MSG_PEEK)
            sender.kill()
            sender.wait()
            content = b""
            with suppress(ConnectionError):
                while chunk := service.recv(1_000_000):
                    content += chunk
    assert content.startswith(b"POST ")
    assert len(content) < 60_000
