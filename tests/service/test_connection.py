"""Logins, cookies, proxies, and broken or odd connections (docs/planning.md 4.5)."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from syncengine.http.exchange import exchange, http_client
from syncengine.service.operations import FETCH_POSTED_TIME, UPSERT_TAGS

from .scripted import CUT, OK, Reply, Scripted, serving
from .talking import client, talking

PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_a_login_in_the_address_is_sent_as_a_header() -> None:
    """It is decoded, and not part of the request line or the Host header."""

    async def play() -> Any:
        async with serving(OK) as server, client(server.url.replace("//", "//jo:p%40ss@")) as caller:
            answer = await caller.call(UPSERT_TAGS, {"tags": []})
            return answer.status, server.heard[0]

    status, heard = asyncio.run(play())
    assert (status, heard.path) == (200, "/connect/api/tag/batch")
    assert heard.headers["authorization"] == "Basic " + b64encode(b"jo:p@ss").decode()
    assert "jo" not in heard.headers["host"]


def test_a_cookie_is_sent_back() -> None:
    """Load balancers use one to choose a server."""
    with talking(Reply(headers={"Set-Cookie": "server=b7; Path=/"}), OK) as service:
        assert [service.heard().headers.get("cookie") for _ in range(3)] == [None, "server=b7", "server=b7"]


def test_a_failed_tls_handshake_is_not_reached() -> None:
    """No byte of the request was sent."""

    async def play() -> Any:
        async with (
            serving(OK) as server,
            client(server.url.replace("http:", "https:"), patience=0.0, timeout=1.0) as caller,
        ):
            return await caller.call(UPSERT_TAGS, {"tags": []})

    answer = asyncio.run(play())
    assert (answer.status, answer.reached) == (None, False)
    assert answer.text.startswith("cannot connect: ")


@pytest.mark.parametrize("operation", [UPSERT_TAGS, FETCH_POSTED_TIME], ids=lambda operation: operation.id)
def test_a_closed_keep_alive_connection_is_replaced(operation: Any) -> None:
    """The service closes it after an answer, and the next call uses another one."""
    body = None if operation.method == "GET" else {}
    with talking(OK, CUT, OK) as service:
        assert [service.call(operation, body).status for _ in range(2)] == [200, 200]
        assert service.server.connections > 1


def test_a_large_body_arrives_completely_over_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one follows on the same connection."""
    certificate = Path(__file__).with_name("localhost.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)

    async def play() -> Any:
        scripted = Scripted((OK,))
        server = await asyncio.start_server(scripted.connected, "localhost", 0, ssl=tls)
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        async with server, client(url) as caller:
            answers = [await caller.call(UPSERT_TAGS, {"tags": ["x" * 3_000_000]}) for _ in range(2)]
            return [answer.status for answer in answers], scripted

    statuses, scripted = asyncio.run(play())
    assert (statuses, scripted.connections) == ([200, 200], 1)
    assert [len(heard.body) > 3_000_000 for heard in scripted.heard] == [True, True]


ODD = {
    "204 with a body": b"HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n|{}",
    "204 with an unannounced body": b"HTTP/1.1 204 No Content\r\n\r\n{}",
    "early hints": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n|HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n|1\r\n}\r\n0\r\n\r\n",
    "until the connection closes": b"HTTP/1.0 200 OK\r\n\r\n{|}",
}


@pytest.mark.parametrize("raw", ODD.values(), ids=ODD.keys())
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
        server = await asyncio.start_server(odd, "127.0.0.1", 0)
        async with server, client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", concurrency=1) as caller:
            return [(await caller.call(UPSERT_TAGS, {"tags": [number]})).ok for number in range(3)]

    assert asyncio.run(play()) == [True] * 3
    assert heard == [b'{"tags":[%d]}' % number for number in range(3)]


ANSWER = b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%s"
UNASKED = {"another answer": ANSWER % (200, 5, b'"old"'), "408": ANSWER % (408, 0, b""), "end of stream": b""}


@pytest.mark.parametrize("unasked", UNASKED.values(), ids=UNASKED.keys())
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


UPGRADE = {"connection": "upgrade", "upgrade": "h2c"}


async def sent(url: str, headers: Mapping[str, str]) -> Any:
    """The answer to a request over its own connection."""
    async with http_client(headers) as one:
        return await exchange(one, one.build_request("POST", url, content=b"{}"), seconds=5.0, most=1_000)


def test_an_answer_in_another_protocol_is_an_error() -> None:
    """A configured header may ask for an upgrade; the answer 101 must not block the call."""

    async def play() -> None:
        async with serving(Reply(101, headers={"Connection": "upgrade", "Upgrade": "h2c"})) as server:
            await sent(server.url, UPGRADE)

    with pytest.raises(httpx.RemoteProtocolError, match="another protocol"):
        asyncio.run(play())


@pytest.mark.parametrize("port", [0, 65_536, 99_999])
def test_an_invalid_port_is_an_unsupported_url(port: int) -> None:
    """The URL may come from a variable that nothing has validated."""
    with pytest.raises(httpx.UnsupportedProtocol, match=f"invalid port: {port}"):
        asyncio.run(sent(f"http://127.0.0.1:{port}/", {}))


def test_an_answer_before_the_body_is_sent_is_read() -> None:
    """For example 413 from a service that rejects a large body."""

    async def play() -> Any:
        async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with closing(writer), suppress(ConnectionError):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
                while await reader.read(1_000_000):  # drops the rest, as servers do after their answer
                    pass

        server = await asyncio.start_server(hasty, "127.0.0.1", 0, limit=1_000)
        async with server, client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout=10.0) as caller:
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
from syncengine.service.client import Client
from syncengine.service.operations import UPSERT_TAGS

async def play():
    async with Client(sys.argv[1], lambda fresh=False: "key") as caller:
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


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("256.256.256.256", "the address is not a valid URL"),
        (f"ä{'b' * 70}.example", "the host name cannot be resolved"),
    ],
)
def test_an_invalid_host_is_not_reached(host: str, why: str) -> None:
    """It has the form of a URL, so no earlier check rejects it."""

    async def play() -> Any:
        async with client(f"http://{host}", patience=0.0) as caller:
            return await caller.call(UPSERT_TAGS, {"tags": []})

    answer = asyncio.run(play())
    assert (answer.text, answer.reached) == (f"cannot connect: {why}", False)
