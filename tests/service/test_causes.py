"""The cause of a failed request in words of our own, for the service client and for httpx, which sources, sinks and Git
hosts use."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from syncengine.http.exchange import CLOSED, LISTENING, cause_of
from syncengine.service.operations import TEAM_INFO

from .scripted import CUT, Reply, Scripted, serving
from .talking import client

LOCALHOST, EXPIRED = (Path(__file__).with_name(f"{name}.pem") for name in ("localhost", "expired"))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@asynccontextmanager
async def tls_server(certificate: Path) -> AsyncIterator[int]:
    """The port of a server with this certificate."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    server = await asyncio.start_server(Scripted((Reply(),)).connected, "localhost", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def by_client(url: str) -> str:
    async with client(url, patience=0.0, timeout=2.0) as caller:
        answer = await caller.call(TEAM_INFO)
        assert answer.status is None
        return answer.text


async def by_httpx(url: str) -> str:
    tls = httpx.create_ssl_context()
    async with httpx.AsyncClient(verify=tls, trust_env=False, timeout=2.0) as caller:
        try:
            return str(await caller.get(url))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return cause_of(error)


BOTH = pytest.mark.parametrize("ask", [by_client, by_httpx])
Ask = Callable[[str], Any]


@BOTH
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:{port}", LISTENING),
        ("http://localhost:{port}", LISTENING),
        ("http://no-such-host.invalid", "the host name cannot be resolved"),
        ("ftp://127.0.0.1", "not an HTTP URL"),
    ],
)
def test_an_address_that_cannot_be_reached(ask: Ask, url: str, words: str) -> None:
    """One cause for all addresses of a name, without addresses and error numbers."""
    text = asyncio.run(ask(url.format(port=free_port())))
    assert words in text
    assert "Errno" not in text


@BOTH
@pytest.mark.parametrize(
    ("certificate", "trusted", "host", "words"),
    [
        (LOCALHOST, EXPIRED, "localhost", "its certificate is not trusted here"),
        (LOCALHOST, LOCALHOST, "127.0.0.1", "its certificate is for another"),
        (EXPIRED, EXPIRED, "localhost", "its certificate has expired"),
    ],
)
def test_a_certificate_that_is_rejected(
    ask: Ask, certificate: Path, trusted: Path, host: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cause says why: untrusted, for another host, or expired."""
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))

    async def play() -> str:
        async with tls_server(certificate) as port:
            return str(await ask(f"https://{host}:{port}"))

    assert words in asyncio.run(play())


@BOTH
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (CUT, CLOSED),
        (Reply(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}"), CLOSED),
        (Reply(raw=b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "the answer is not valid HTTP"),
    ],
)
def test_an_answer_that_is_no_complete_http(ask: Ask, answer: Reply, words: str) -> None:
    """The connection is closed without an answer or during it, or speaks another protocol."""

    async def play() -> str:
        async with serving(answer) as server:
            return str(await ask(server.url))

    assert words in asyncio.run(play())


@BOTH
def test_a_plain_http_server_at_an_https_url(ask: Ask) -> None:
    """The cause names this common mistake."""

    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def play() -> str:
        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        async with server:
            return str(await ask(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"))

    assert "it does not speak TLS" in asyncio.run(play())


@BOTH
def test_a_server_that_never_answers(ask: Ask) -> None:
    """The cause is the timeout."""

    async def play() -> str:
        over = asyncio.Event()

        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.CancelledError):
                await over.wait()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with server:
            try:
                return str(await ask(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
            finally:
                over.set()

    assert "no answer" in asyncio.run(play())
