"""Proxies and certificates of the environment, causes of failed requests in our own words, and odd connections.

They are the same for the service client and for the client that sources, sinks and Git hosts use.
"""

import asyncio
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from syncengine.errors import Usage
from syncengine.http.exchange import AUTHORITIES, CLOSED, LISTENING, Proxies, cause_of, exchange, http_client, is_exempt
from syncengine.service.answers import Answer
from syncengine.service.operations import FETCH_POSTED_TIME, TEAM_INFO, UPSERT_TAGS
from tests.support import warm
from tests.support.quiet import unused_port

from .scripted import CUT, EXPIRED, LOCALHOST, OK, Handler, Reply, Scripted, listening, serving
from .talking import client, talking


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str]], None]:
    """Sets variables of the environment, in which there are no proxies and no authorities."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", *AUTHORITIES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)

    def set_all(variables: Mapping[str, str]) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


async def by_client(url: str, timeout: float = 5.0) -> str:  # noqa: ASYNC109 - it is the client's own
    """The status or the cause; a cause says whether the request was sent, as the answer does."""
    async with client(url, patience=0.0, timeout=timeout) as caller:
        answer = await caller.call(TEAM_INFO)
        assert answer.reached is not answer.text.startswith("cannot connect")
        return str(answer.status or answer.text)


async def by_http_client(url: str, timeout: float = 5.0) -> str:  # noqa: ASYNC109 - it is the client's own
    async with http_client({}) as caller:
        try:
            return str((await exchange(caller, caller.build_request("GET", url), seconds=timeout, most=1_000)).status)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return cause_of(error)


BOTH = pytest.mark.parametrize("ask", [by_client, by_http_client])
Ask = Callable[..., Any]
Environ = Callable[[Mapping[str, str]], None]


def asked_of(ask: Ask, handler: Handler, certificate: Path | None = None, scheme: str = "https", **given: Any) -> str:

    async def play() -> str:
        async with listening(handler, certificate) as address:
            return str(await ask(f"{scheme}://{address}", **given))

    return asyncio.run(play())


def answering(reply: Reply = Reply()) -> Handler:  # noqa: B008 - it never changes
    return Scripted((reply,)).connected


# --- the cause of a failed request


@BOTH
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:{port}", LISTENING),
        ("http://localhost:{port}", LISTENING),
        ("http://no-such-host.invalid", "the host name cannot be resolved"),
        (f"http://ä{'b' * 70}.example", "the host name cannot be resolved"),
        ("http://256.256.256.256", "the address is not a valid URL"),
        ("http://127.0.0.1:0", "its port is invalid"),
        ("http://127.0.0.1:65536", "its port is invalid"),
        ("ftp://127.0.0.1", "not an HTTP URL"),
    ],
)
def test_an_address_that_cannot_be_reached(ask: Ask, url: str, words: str) -> None:
    """One cause for all addresses of a name, without addresses and error numbers."""
    text = asyncio.run(ask(url.format(port=unused_port())))
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
    ask: Ask, certificate: Path, trusted: Path, host: str, words: str, environ: Environ
) -> None:
    environ({"SSL_CERT_FILE": str(trusted)})

    async def at_host(url: str) -> str:
        return str(await ask(url.replace("localhost", host)))

    assert words in asked_of(at_host, answering(), certificate)


async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer without reading, and without TLS."""
    writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with closing(writer), suppress(ConnectionError, asyncio.CancelledError):
        while await reader.read(100_000):
            pass


@BOTH
@pytest.mark.parametrize(
    ("handler", "scheme", "words"),
    [
        (answering(CUT), "http", CLOSED),
        (answering(Reply(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}")), "http", CLOSED),
        (answering(Reply(raw=b"SSH-2.0-OpenSSH_9.2\r\n\r\n")), "http", "the answer is not valid HTTP"),
        (plain, "https", "it does not speak TLS"),
        (silent, "http", "no answer"),
    ],
    ids=["cut", "cut short", "not HTTP", "not TLS", "silent"],
)
def test_a_server_without_a_whole_answer(ask: Ask, handler: Handler, scheme: str, words: str) -> None:
    assert words in asked_of(ask, handler, scheme=scheme, timeout=0.3 if handler is silent else 5.0)


def test_a_server_that_is_silent_before_tls_is_not_reached() -> None:
    """No byte of the request was sent."""
    assert asked_of(by_client, silent, timeout=2.0) == "cannot connect: no connection in time"


# --- proxies


@pytest.mark.parametrize(
    ("entry", "named", "others"),
    [
        ("*", ["http://a.example"], []),
        ("example.com", ["http://example.com", "https://api.Example.com:8443"], ["http://notexample.com"]),
        (".example.com", ["http://api.example.com"], []),
        ("*.example.com", ["http://api.example.com"], []),
        ("EXAMPLE.com.", ["http://api.example.com"], []),
        ("example.com:8080", ["http://example.com:8080"], ["http://example.com"]),
        ("example.com:443", ["https://example.com"], []),
        ("https://example.com/", ["https://example.com"], []),
        ("127.0.0.1", ["http://127.0.0.1:8766"], []),
        ("0.0.1", [], ["http://127.0.0.1"]),
        ("10.0.0.0/8", ["http://10.20.30.40"], ["http://11.0.0.1"]),
        ("10.1.2.3/8", ["http://10.20.30.40"], []),
        ("::1", ["http://[::1]:8080"], []),
        ("[::1]", ["http://[::1]:8080"], []),
        ("[::1]:8080", ["http://[0:0:0:0:0:0:0:1]:8080"], ["http://[::1]:8081"]),
        ("fd00::/8", ["http://[fd12::7]"], ["http://10.0.0.1"]),
        ("::1/128", ["http://[::1]"], []),
        ("localhost", ["http://localhost"], ["http://127.0.0.1"]),
        *((odd, [], ["http://a.example"]) for odd in ("[", "[::1", "fd00::/999", ":", ".", "a b", "http://", "::x")),
    ],
)
def test_no_proxy_names_hosts(entry: str, named: list[str], others: list[str]) -> None:
    """Names, domains, addresses and networks, with ports; an invalid entry matches no host."""
    assert [url for url in (*named, *others) if is_exempt(entry, httpx.URL(url))] == named


@pytest.mark.parametrize(
    ("variables", "url", "way"),
    [
        ({"HTTP_PROXY": "one:1", "ALL_PROXY": "two:2"}, "http://a", "one:1 (HTTP_PROXY)"),
        ({"HTTP_PROXY": "one:1", "ALL_PROXY": "two:2"}, "https://a", "two:2 (ALL_PROXY)"),
        ({"https_proxy": "http://me:secret@one:1"}, "https://a", "one:1 (https_proxy)"),
        ({"https_proxy": "one:1", "HTTPS_PROXY": "two:2"}, "https://a", "one:1 (https_proxy)"),
        ({"https_proxy": "one:1"}, "http://a", "None"),
        ({"https_proxy": "one:1", "no_proxy": "a"}, "https://a", "None"),
        *(({"ALL_PROXY": "one:1", "NO_PROXY": f"b{by}a{by}"}, "http://a", "None") for by in (",", " ", ", ", " , ,")),
        ({"http_proxy": " http://one:1 "}, "http://a", "one:1 (http_proxy)"),
        ({"http_proxy": "http://[::1]:3128"}, "http://a", "[::1]:3128 (http_proxy)"),
    ],
)
def test_each_scheme_has_its_proxy_variable(variables: dict[str, str], url: str, way: str, environ: Environ) -> None:
    """A lower-case name has precedence, a value without a scheme is an HTTP proxy, and a login is not shown."""
    environ(variables)
    assert str(Proxies().of(httpx.URL(url))) == way


NO_URL = "ALL_PROXY names no valid URL"
USELESS = {
    ("ALL_PROXY", "socks5://10.0.0.1:1080"): "ALL_PROXY names a SOCKS proxy, which needs the Python package socksio",
    ("ALL_PROXY", "socks4://me:secret@10.0.0.1:1"): "a kind of proxy that is not supported: expected http://HOST:PORT",
    ("ALL_PROXY", "http://[::1"): NO_URL,
    ("ALL_PROXY", "http://me:secret@proxy:99999"): NO_URL,
    ("ALL_PROXY", "http://"): NO_URL,
    ("ALL_PROXY", "http://proxy:port"): NO_URL,
    ("SSL_CERT_FILE", "/no/such/firm-ca.pem"): "SSL_CERT_FILE names /no/such/firm-ca.pem, which does not exist",
    ("SSL_CERT_FILE", __file__): f"SSL_CERT_FILE names {__file__}, which is not a file of certificates",
    ("SSL_CERT_DIR", "/no/such/folder"): "SSL_CERT_DIR names /no/such/folder",
    ("REQUESTS_CA_BUNDLE", "/no/such/bundle.pem"): "REQUESTS_CA_BUNDLE names /no/such/bundle.pem",
}
if find_spec("socksio"):
    USELESS.pop(("ALL_PROXY", "socks5://10.0.0.1:1080"))


@pytest.mark.parametrize(("variable", "words"), USELESS.items(), ids=str)
def test_a_variable_that_cannot_be_used_is_named(variable: tuple[str, str], words: str, environ: Environ) -> None:
    """The error shows no login, and only comes for requests that would use the proxy or the certificates."""
    environ(dict([variable]))
    with pytest.raises(Usage) as refusal:
        asyncio.run(by_client("https://service.example"))
    assert words in str(refusal.value)
    text = asyncio.run(by_http_client("https://service.example"))
    assert words in text
    assert "secret" not in f"{text} {refusal.value}"
    environ({"NO_PROXY": "localhost,[::1],fd00::/8"})
    assert [asked_of(ask, answering(), scheme="http") for ask in (by_client, by_http_client)] == ["200", "200"]


@BOTH
def test_a_proxy_gets_the_whole_url_and_its_login(ask: Ask, environ: Environ) -> None:

    async def play() -> Any:
        async with serving() as proxy:
            environ({"http_proxy": proxy.url.removesuffix("/connect/api").replace("//", "//me:s3cret@")})
            return await ask("http://service.invalid/x"), proxy.heard[0]

    status, heard = asyncio.run(play())
    assert status == "200"
    assert heard.path.startswith("http://service.invalid/x")
    assert heard.headers["proxy-authorization"].startswith("Basic ")


@BOTH
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_fails_is_named(ask: Ask, scheme: str, environ: Environ) -> None:
    port = unused_port()
    environ({"ALL_PROXY": f"http://me:s3cret@127.0.0.1:{port}"})
    text = asyncio.run(ask(f"{scheme}://service.invalid"))
    assert f"the proxy 127.0.0.1:{port} (ALL_PROXY) cannot be reached: nothing is listening" in text

    async def by_proxy(url: str) -> str:
        environ({"ALL_PROXY": url})
        return str(await ask(f"{scheme}://service.invalid"))

    text = asked_of(by_proxy, answering(Reply(407, headers={"Proxy-Authenticate": "Basic"})), scheme="http")
    assert "(ALL_PROXY) refuses the connection (407): it asks for a login" in text


# --- certificates


@BOTH
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_certificate_authorities_of_the_environment_are_trusted(ask: Ask, variable: str, environ: Environ) -> None:
    environ({variable: str(LOCALHOST)})
    assert asked_of(ask, answering(), LOCALHOST) == "200"


async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
    ask: Ask, trusted: Path, words: str, environ: Environ
) -> None:
    """A rejected certificate is not reported as trouble with the proxy."""

    async def through_a_proxy(url: str) -> str:
        async with listening(tunnel) as proxy:
            environ({"SSL_CERT_FILE": str(trusted), "HTTPS_PROXY": f"http://{proxy}"})
            return str(await ask(url))

    text = asked_of(through_a_proxy, answering(), LOCALHOST)
    assert (words in text, "proxy" in text) == (True, False)


# --- connections (docs/planning.md 4.5)


def test_a_login_in_the_address_is_sent_as_a_header() -> None:
    with talking(OK, login="jo:p%40ss@") as service:
        heard = service.heard()
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


def test_a_large_body_arrives_completely_over_tls(environ: Environ) -> None:
    environ({"SSL_CERT_FILE": str(LOCALHOST)})
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
        assert asyncio.run(play(url_of(server))) == ["one", "two"]
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


@pytest.fixture
def narrow() -> Iterator[socket.socket]:
    """A server that accepts connections and takes little before it reads."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        yield server


def url_of(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}"


def all_from(connection: socket.socket) -> bytes:
    content = b""
    with connection, suppress(ConnectionError):
        while chunk := connection.recv(1_000_000):
            content += chunk
    return content


LARGE = 60_000


@pytest.mark.parametrize(
    "variables",
    [{}, {"NO_PROXY": "localhost,[::1]"}, {"HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "127.0.0.1"}],
    ids=["no proxy", "only NO_PROXY", "proxy and NO_PROXY"],
)
def test_nothing_is_sent_after_a_call_timed_out(
    variables: dict[str, str], environ: Environ, narrow: socket.socket
) -> None:
    """A service that starts to read after the timeout never gets the whole request.

    The same holds if the environment names proxies, but none for this service.
    """
    environ(variables)

    async def play() -> tuple[Answer, bytes]:
        async with client(url_of(narrow), timeout=0.5, patience=0.0) as caller:
            answer = await caller.call(UPSERT_TAGS, {"tags": ["x" * LARGE]})
            return answer, await asyncio.to_thread(lambda: all_from(narrow.accept()[0]))

    answer, content = asyncio.run(play())
    assert (answer.status, answer.reached) == (None, True)
    assert content.startswith(b"POST ")
    assert len(content) < LARGE


def send(url: str) -> None:
    async def play() -> None:
        async with client(url) as caller:
            await caller.call(UPSERT_TAGS, {"tags": ["x" * LARGE]})

    asyncio.run(play())


def test_nothing_is_sent_after_the_process_was_killed(narrow: socket.socket) -> None:
    """The kernel must not go on sending the buffers of a dead process."""
    with warm.working(send, url_of(narrow)) as sender:
        service, _ = narrow.accept()
        service.recv(1, socket.MSG_PEEK)
        sender.kill()
    content = all_from(service)
    assert content.startswith(b"POST ")
    assert len(content) < LARGE
