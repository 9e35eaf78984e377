"""Proxies and certificates of the environment: which requests use them, and the errors for invalid ones."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from syncengine.errors import Usage
from syncengine.http.exchange import AUTHORITIES, Proxies, cause_of, http_client, is_exempt
from syncengine.service.operations import TEAM_INFO

from .scripted import OK, Reply, Scripted, serving
from .talking import client
from .test_causes import EXPIRED, LOCALHOST, free_port

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", *AUTHORITIES)


@pytest.fixture(autouse=True)
def a_plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def by_client(url: str) -> str:
    async with client(url, patience=0.0, timeout=5.0) as caller:
        answer = await caller.call(TEAM_INFO)
        assert not (answer.status is None and answer.reached)
        return str(answer.status or answer.text)


async def by_http_client(url: str) -> str:
    async with http_client({}) as caller:
        try:
            return str((await caller.get(url, timeout=5.0)).status_code)
        except httpx.HTTPError as error:
            return cause_of(error)


BOTH = pytest.mark.parametrize("ask", [by_client, by_http_client])
Ask = Callable[[str], Any]


@pytest.mark.parametrize(
    ("entry", "url", "is_named"),
    [
        ("*", "http://a.example", True),
        ("example.com", "http://example.com", True),
        ("example.com", "https://api.Example.com:8443", True),
        (".example.com", "http://api.example.com", True),
        ("*.example.com", "http://api.example.com", True),
        ("EXAMPLE.com.", "http://api.example.com", True),
        ("example.com", "http://notexample.com", False),
        ("example.com:8080", "http://example.com:8080", True),
        ("example.com:8080", "http://example.com", False),
        ("example.com:443", "https://example.com", True),
        ("https://example.com/", "https://example.com", True),
        ("127.0.0.1", "http://127.0.0.1:8766", True),
        ("0.0.1", "http://127.0.0.1", False),
        ("10.0.0.0/8", "http://10.20.30.40", True),
        ("10.0.0.0/8", "http://11.0.0.1", False),
        ("10.1.2.3/8", "http://10.20.30.40", True),
        ("::1", "http://[::1]:8080", True),
        ("[::1]", "http://[::1]:8080", True),
        ("[::1]:8080", "http://[0:0:0:0:0:0:0:1]:8080", True),
        ("[::1]:8081", "http://[::1]:8080", False),
        ("fd00::/8", "http://[fd12::7]", True),
        ("::1/128", "http://[::1]", True),
        ("fd00::/8", "http://10.0.0.1", False),
        ("localhost", "http://localhost", True),
        ("localhost", "http://127.0.0.1", False),
        *((odd, "http://a.example", False) for odd in ("[", "[::1", "fd00::/999", ":", ".", "a b", "http://", "::x")),
    ],
)
def test_no_proxy_names_hosts(entry: str, url: str, is_named: bool) -> None:
    """Names, domains, addresses and networks, with ports; an invalid entry matches no host."""
    assert is_exempt(entry, httpx.URL(url)) is is_named


@pytest.mark.parametrize("separator", [",", " ", ", ", " , ,"])
def test_no_proxy_is_a_list(separator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are separated by commas or blanks."""
    monkeypatch.setenv("ALL_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", separator.join(["localhost", "fd00::/8", "example.com"]))
    proxies = Proxies()
    ways = [str(proxies.of(httpx.URL(f"http://{host}"))) for host in ("localhost", "[fd00::1]", "example.com", "b.c")]
    assert ways == ["None"] * 3 + ["proxy:3128 (ALL_PROXY)"]


def test_no_proxy_alone_configures_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "localhost,[::1],fd00::/8")
    assert not Proxies()


@pytest.mark.parametrize(
    ("variables", "url", "way"),
    [
        ({"HTTP_PROXY": "one:1", "ALL_PROXY": "two:2"}, "http://a", "one:1 (HTTP_PROXY)"),
        ({"HTTP_PROXY": "one:1", "ALL_PROXY": "two:2"}, "https://a", "two:2 (ALL_PROXY)"),
        ({"https_proxy": "http://me:secret@one:1"}, "https://a", "one:1 (https_proxy)"),
        ({"https_proxy": "one:1", "HTTPS_PROXY": "two:2"}, "https://a", "one:1 (https_proxy)"),
        ({"https_proxy": "one:1"}, "http://a", "None"),
        ({"https_proxy": "one:1", "no_proxy": "a"}, "https://a", "None"),
        ({"http_proxy": " http://one:1 "}, "http://a", "one:1 (http_proxy)"),
        ({"http_proxy": "http://[::1]:3128"}, "http://a", "[::1]:3128 (http_proxy)"),
    ],
)
def test_each_scheme_has_its_proxy_variable(
    variables: dict[str, str], url: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lower-case name has precedence, a value without a scheme is an HTTP proxy, and a login is not shown."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(Proxies().of(httpx.URL(url))) == way


BAD = {
    "socks5://10.0.0.1:1080": "ALL_PROXY names a SOCKS proxy, which needs the Python package socksio",
    "socks4://me:secret@10.0.0.1:1080": "ALL_PROXY names a kind of proxy that is not supported: expected http://HOST:PORT",
    "http://[::1": "ALL_PROXY names no valid URL",
    "http://me:secret@proxy:99999": "ALL_PROXY names no valid URL",
    "http://": "ALL_PROXY names no valid URL",
    "http://proxy:port": "ALL_PROXY names no valid URL",
}
if find_spec("socksio"):
    BAD.pop("socks5://10.0.0.1:1080")


@pytest.mark.parametrize(("value", "words"), BAD.items(), ids=BAD.keys())
def test_a_proxy_that_cannot_be_used_is_named(value: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error shows the variable but not its value, and only comes for requests that would use the proxy."""
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(Usage) as refusal:
        asyncio.run(by_client("http://service.example"))
    assert words in str(refusal.value)
    text = asyncio.run(by_http_client("http://service.example"))
    assert words in text
    assert "secret" not in f"{text} {refusal.value}"

    async def excepted(ask: Ask) -> str:
        async with serving(OK) as server:
            return str(await ask(server.url))

    monkeypatch.setenv("NO_PROXY", "127.0.0.1,[::1],fd00::/8")
    assert [asyncio.run(excepted(ask)) for ask in (by_client, by_http_client)] == ["200", "200"]


@BOTH
def test_a_proxy_gets_the_whole_url_and_its_login(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection to the service is opened."""

    async def play() -> Any:
        async with serving(OK) as proxy:
            address = proxy.url.removesuffix("/connect/api")
            monkeypatch.setenv("http_proxy", address.replace("//", "//me:s3cret@"))
            return await ask("http://service.invalid/x"), proxy.heard[0]

    status, heard = asyncio.run(play())
    assert status == "200"
    assert heard.path.startswith("http://service.invalid/x")
    assert heard.headers["proxy-authorization"].startswith("Basic ")


@BOTH
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_fails_is_named(ask: Ask, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not listen or requires a login: nothing reached the service."""
    port = free_port()
    monkeypatch.setenv("ALL_PROXY", f"http://me:s3cret@127.0.0.1:{port}")
    text = asyncio.run(ask(f"{scheme}://service.invalid"))
    assert f"the proxy 127.0.0.1:{port} (ALL_PROXY) cannot be reached: nothing is listening" in text

    async def wanting_a_login() -> str:
        async with serving(Reply(407, headers={"Proxy-Authenticate": "Basic"})) as proxy:
            monkeypatch.setenv("ALL_PROXY", proxy.url.removesuffix("/connect/api"))
            return str(await ask(f"{scheme}://service.invalid"))

    assert "(ALL_PROXY) refuses the connection (407): it asks for a login" in asyncio.run(wanting_a_login())


FILES = {
    "SSL_CERT_FILE": "/no/such/firm-ca.pem",
    "SSL_CERT_DIR": "/no/such/folder",
    "REQUESTS_CA_BUNDLE": "/no/such/bundle.pem",
}


@pytest.mark.parametrize(("variable", "path"), FILES.items(), ids=FILES.keys())
def test_a_missing_certificate_file_is_named_with_its_variable(
    variable: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a usage error and not repeated, and does not matter without TLS."""
    monkeypatch.setenv(variable, path)
    with pytest.raises(Usage, match=f"{variable} names {path}"):
        asyncio.run(by_client("https://service.invalid"))
    assert f"{variable} names {path}" in asyncio.run(by_http_client("https://service.invalid"))

    async def without_tls(ask: Ask) -> str:
        async with serving(OK) as server:
            return str(await ask(server.url))

    assert [asyncio.run(without_tls(ask)) for ask in (by_client, by_http_client)] == ["200", "200"]


def test_a_file_without_certificates_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example a saved HTML page."""
    (tmp_path / "ca.pem").write_text("<html>")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with pytest.raises(Usage, match="is not a file of certificates"):
        asyncio.run(by_client("https://service.invalid"))


@BOTH
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_certificate_authorities_of_the_environment_are_trusted(
    ask: Ask, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both by the service client and by the client for sources, sinks and Git hosts."""
    monkeypatch.setenv(variable, str(LOCALHOST))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(LOCALHOST)

    async def play() -> str:
        server = await asyncio.start_server(Scripted((OK,)).connected, "localhost", 0, ssl=tls)
        async with server:
            return str(await ask(f"https://localhost:{server.sockets[0].getsockname()[1]}"))

    assert asyncio.run(play()) == "200"


async def _tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A proxy that only supports CONNECT."""
    with closing(writer), suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
        method, place, _ = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)
        assert method == b"CONNECT"
        far_reader, far_writer = await asyncio.open_connection(*place.decode().rsplit(":", 1))
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")

        async def passed_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with closing(target), suppress(ConnectionError):
                while chunk := await source.read(100_000):
                    target.write(chunk)
                    await target.drain()

        await asyncio.gather(passed_on(reader, far_writer), passed_on(far_reader, writer))


@BOTH
@pytest.mark.parametrize(
    ("trusted", "words"),
    [(LOCALHOST, "200"), (EXPIRED, "its certificate is not trusted here")],
    ids=["trusted", "untrusted"],
)
def test_the_certificate_of_the_service_is_checked_through_a_proxy(
    ask: Ask, trusted: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rejected certificate is not reported as trouble with the proxy."""
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(LOCALHOST)

    async def play() -> str:
        server = await asyncio.start_server(Scripted((OK,)).connected, "localhost", 0, ssl=tls)
        proxy = await asyncio.start_server(_tunnel, "127.0.0.1", 0)
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        async with server, proxy:
            return str(await ask(f"https://localhost:{server.sockets[0].getsockname()[1]}"))

    text = asyncio.run(play())
    assert (words in text, "proxy" in text) == (True, False)
