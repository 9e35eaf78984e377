"""The webhook receiver over HTTP: it checks the caller key and the body, delivers to the sinks, and then answers."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from syncengine.errors import SyncengineError
from syncengine.http.server import BoundedProtocol, Bounds, bounded
from syncengine.posted_time.events import Answered, Event, Taken
from syncengine.posted_time.webhook import application
from syncengine.serve.probes import Server
from syncengine.service.answers import read_json
from tests.posted_time.desk import at_work
from tests.posted_time.projects import BARE_SINK, delivering, entries, files, ids, in_ledger
from tests.posted_time.samples import raw
from tests.serve.in_process import work
from tests.serve.world import CALLER_KEY, world
from tests.support import loopback
from tests.support.quiet import unused_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

KEY = "caller-7f3a-never-to-be-seen"
LIMIT = 4096
IN_TIME = 2.0


@dataclass
class Hook:
    """A receiver that listens on loopback, and a client that calls it; both run in the loop of `wait`."""

    http: httpx.AsyncClient
    told: list[Event]
    wait: Callable[[Any], Any]

    def post(self, path: str = "/", **given: Any) -> httpx.Response:
        response: httpx.Response = self.wait(self.http.post(path, **given))
        return response

    def status(self, body: dict[str, Any], path: str = "/") -> int:
        """The status that answers a call with this body."""
        return self.post(path, json=body).status_code

    def answered(self) -> list[int]:
        return [event.status for event in self.told if isinstance(event, Answered)]


@contextmanager
def receiving(folder: Path, caller_key: Callable[[], str] = lambda: KEY, path: str = "/") -> Iterator[Hook]:
    told: list[Event] = []
    delivery = delivering(folder, BARE_SINK, "refuse: [{when: not tag, message: Assign a tag before posting.}]\n")
    take = partial(delivery.take, mechanism="webhook")
    app = application(take, caller_key, path=path, max_body=LIMIT, tell=told.append, read_seconds=IN_TIME)
    bounds = bounded(BoundedProtocol, Bounds(2 * IN_TIME))  # the application answers before the connection ends
    server = Server(app, ("127.0.0.1", 0), setting="`bind`", patience=5, http=bounds)
    with at_work(delivery) as desk:
        http = httpx.AsyncClient(base_url=desk.wait(server.start()), trust_env=False)
        try:
            yield Hook(http, told, desk.wait)
        finally:
            desk.wait(http.aclose())
            desk.wait(server.stop())


def states(folder: Path) -> dict[str, str]:
    return {id: entry.state for id, entry in entries(folder).items()}


def keyed(id: str, **given: Any) -> dict[str, Any]:
    return raw(id, callerKey=KEY, **given)


def test_a_call_is_answered_200_once_the_row_is_written(tmp_path: Path) -> None:
    """The answer is the acknowledgement: no status waits. A repeated call delivers nothing; other methods are 405."""

    async def at_once(http: httpx.AsyncClient) -> list[int]:
        calls = await asyncio.gather(*(http.post("/", json=keyed("a")) for _ in range(8)))
        return [response.status_code for response in calls]

    with receiving(tmp_path) as hook:
        assert (hook.status(keyed("a"), "/hook"), ids(tmp_path)) == (200, ["a"])
        assert [hook.status(keyed("a")), *hook.wait(at_once(hook.http))] == [200] * 9
        assert {hook.wait(hook.http.request(method, "/")).status_code for method in ("GET", "PUT", "DELETE")} == {405}
    assert (ids(tmp_path), states(tmp_path)) == (["a"], {"a": "acknowledged"})


PATHS = {
    "/hook": {"/hook": 200, "/hook/": 200, "/hook?a=b": 200, "/": 404, "/hook/x": 404, "/hooks": 404, "/HOOK": 404},
    "/a b/{x}/": {"/a%20b/%7Bx%7D": 200, "/a": 404},
    "/": {"/": 200, "/anything": 200},
}
"""Path of the callback URL → status for each called path. With a bare URL every path is accepted."""


@pytest.mark.parametrize(("path", "answers"), PATHS.items(), ids=PATHS.keys())
def test_only_calls_at_the_path_of_the_url_are_accepted(tmp_path: Path, path: str, answers: dict[str, int]) -> None:
    """Another path gets 404 whatever its key, and nothing is stored."""
    with receiving(tmp_path, path=path) as hook:
        assert {called: hook.status(keyed(called), called) for called in answers} == answers
    assert states(tmp_path).keys() == {called for called, status in answers.items() if status == 200}


def test_a_call_in_absolute_form_is_accepted(tmp_path: Path) -> None:
    """Clients that take the receiver for a forward proxy send it; servers must accept it (RFC 9112, 3.2.2)."""
    targets = {b"http://connect.example.com/h%6Fok?a=b": 200, b"http://connect.example.com/other": 404}
    with receiving(tmp_path, path="/hook") as hook:
        for target, status in targets.items():
            assert hook.post(json=keyed("a"), extensions={"target": target}).status_code == status


WRONG_KEYS: list[dict[str, Any]] = [{}, *({"callerKey": key} for key in ("", "their-secret", KEY + " ", None, [KEY]))]


def test_a_wrong_key_is_401_and_nothing_is_stored(tmp_path: Path) -> None:
    """No answer tells whether a group is known, and no key is in a file or an event."""
    with receiving(tmp_path) as hook:
        hook.post(json=keyed("known"))
        for id, given in product(("a", "known"), WRONG_KEYS):
            sent = {name: value for name, value in raw(id, tags=[{"name": "OTHER"}]).items() if name != "callerKey"}
            answer = hook.post(json={**sent, **given})
            assert (answer.status_code, answer.text) == (401, "The caller key is wrong."), given
    assert (ids(tmp_path), states(tmp_path)) == (["known"], {"known": "acknowledged"})
    assert [type(event) for event in hook.told] == [Taken, *[Answered] * 12]
    written = files(tmp_path) + repr(hook.told).encode()
    assert (KEY.encode() in written, b"their-secret" in written) == (False, False)


def test_a_body_that_is_no_posted_time_is_a_4xx(tmp_path: Path) -> None:
    """Not 408, as a repeat would not help. The receiver takes the next call."""
    odd = ({}, {"groupId": 7}, {"groupId": "a", "tags": 7, "timeRows": "x", "user": []})
    keyless = dict.fromkeys((b"[]", b'"text"', b"null"), 401)
    bodies = dict.fromkeys((b"", b"{", b"\xff\xfe", b"[" * 4000), 400) | keyless
    bodies |= dict.fromkeys((msgspec.json.encode({"callerKey": KEY, **body}) for body in odd), 400)
    with receiving(tmp_path) as hook:
        answers = {body: hook.post(content=body) for body in bodies}
        assert {body: answer.status_code for body, answer in answers.items()} == bodies
        assert {answer.headers["content-type"] for answer in answers.values()} == {"text/plain; charset=utf-8"}
        assert all(answer.text for answer in answers.values())
        assert hook.status(keyed("after")) == 200
    assert ids(tmp_path) == ["after"]


async def _endless(url: httpx.URL, head: bytes, piece: bytes) -> tuple[bytes, bool]:
    """Send a body that never ends; return the first line of the answer, and whether the connection was closed."""
    assert url.host and url.port
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n")
    writer.write(piece * (LIMIT // 1024 + 1))
    answered = await reader.readline()
    with suppress(ConnectionError):
        while not reader.at_eof():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(IN_TIME / 100)  # without it, the receiver reads gigabytes until it closes
    closed = writer.transport.is_closing() or reader.at_eof()
    writer.close()
    return answered, closed


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"Transfer-Encoding: chunked", b"400\r\n" + b" " * 1024 + b"\r\n"),
        (b"Content-Length: 99999999999", b" " * 1024),
    ],
    ids=["in-chunks", "announced"],
)
def test_a_body_that_is_too_large_is_413_and_its_connection_closed(tmp_path: Path, head: bytes, piece: bytes) -> None:
    """A body of exactly the limit is accepted, also while another has no end."""
    fitting = msgspec.json.encode(keyed("a"))
    fitting += b" " * (LIMIT - len(fitting))
    with receiving(tmp_path) as hook:
        answered, closed = hook.wait(asyncio.wait_for(_endless(hook.http.base_url, head, piece), 60))
        assert (answered.split()[1], closed, hook.answered()) == (b"413", True, [413])
        assert [hook.post(content=content).status_code for content in (fitting, fitting + b" ")] == [200, 413]


@pytest.mark.parametrize(("setting", "limit"), [("", 1 << 20), (", maxBody: 4096", 4096)], ids=["default", "set"])
def test_the_limit_of_a_body_is_that_of_the_project(setting: str, limit: int, tmp_path: Path) -> None:
    port = unused_port()
    url = f"http://127.0.0.1:{port}/hook"
    body = msgspec.json.encode(raw("a", callerKey=CALLER_KEY))

    def watch() -> None:
        eventually(lambda: estate.connection()["mechanism"] == "webhook")
        sizes = (limit, limit + 1)
        assert [loopback.post(url, content=body.ljust(size)).status_code for size in sizes] == [200, 413]

    with world(tmp_path) as estate:
        hook = f'callbackUrl: "{url}", callerKey: {{env: CALLER_KEY}}, bind: "127.0.0.1:{port}"{setting}'
        estate.settings(posted=f"  mode: webhook\n  webhook: {{{hook}}}")
        work(estate, watch)


def test_a_body_that_arrives_too_slowly_is_408(tmp_path: Path) -> None:
    """The service calls again after a 408. Other calls are answered meanwhile."""

    async def scene(http: httpx.AsyncClient) -> Any:
        url = http.base_url
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n{")
        answered = asyncio.ensure_future(reader.readline())
        served = (await http.post("/", json=keyed("a"))).status_code
        while not answered.done():
            writer.write(b" ")
            await asyncio.wait([answered], timeout=IN_TIME / 20)
        writer.close()
        return answered.result().split()[1], served

    with receiving(tmp_path) as hook:
        assert (hook.wait(scene(hook.http)), hook.answered()) == ((b"408", 200), [408])


def test_what_is_no_valid_json_does_not_reject_the_group(tmp_path: Path) -> None:
    """A program cut a title within an emoji, or a number is NaN: a refusal would be final. Whole pairs stay."""
    body = msgspec.json.encode(keyed("a", description="cut", timestamp=None)).replace(b":null", b":NaN")
    body = body.replace(b'"cut"', rb'"\ud83d\ude00 C:\\ud83d \ud83d"')
    with receiving(tmp_path) as hook:
        assert (hook.post(content=body).status_code, ids(tmp_path)) == (200, ["a"])
    assert read_json(rb'["\ud83d\ude00 C:\\ud83d \ud83d"]') == ["\U0001f600 C:\\ud83d \ufffd"]


def test_trouble_is_503_and_the_repeated_call_delivers(tmp_path: Path) -> None:
    """The answer has no text of the database driver; a refusal is 400 with the message for the user."""
    with receiving(tmp_path) as hook:
        refused = hook.post(json=keyed("no tag", tags=[]))
        assert (refused.status_code, refused.text) == (400, "Assign a tag before posting.")
        in_ledger(tmp_path, "ALTER TABLE time RENAME TO away")
        first = hook.post(json=keyed("a"))
        in_ledger(tmp_path, "ALTER TABLE away RENAME TO time")
        assert (first.status_code, bool(first.text), "no such table" in first.text) == (503, True, False)
        assert hook.status(keyed("a")) == 200
    assert ids(tmp_path) == ["a"]


def test_a_caller_key_that_cannot_be_read_is_503(tmp_path: Path) -> None:
    """For example while its file is replaced; the repeated call is delivered."""
    away = [SyncengineError("the file with the caller key is away")]

    def caller_key() -> str:
        if away:
            raise away.pop()
        return KEY

    with receiving(tmp_path, caller_key) as hook:
        assert [hook.status(keyed("a")) for _ in range(2)] == [503, 200]
