"""One operation, one answer: retries, the breaker, the key, and what answers come to (engine.md 4.5, 4.6, 4.9)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from syncengine.service.client import ATTEMPTS, Answer, Client, Conduct, Endpoint, retry_after
from syncengine.service.operations import OPERATIONS, TEAM_INFO, UPSERT_TAG, UPSERT_TAGS, Operation

from .scripted import CUT, OK, Reply, Scripted, saying, serving

KEY = "s3cret-key"
AT_ONCE = {"Retry-After": "0"}
BUSY = Reply(503, b"busy", AT_ONCE)
NOON = 1_700_000_000.0


def key(*, fresh: bool = False) -> str:
    return KEY


def client(server: Scripted | str, **given: Any) -> Client:
    conduct = {
        name: given.pop(name) for name in ("timeout", "concurrency", "stop", "before_send", "on_retry") if name in given
    }
    url = server if isinstance(server, str) else server.url
    return Client(url, given.pop("key", key), conduct=Conduct(first_wait=0.001, **conduct), **given)


def talk(script: tuple[Reply, ...], scene: Callable[[Scripted, Client], Awaitable[Any]], **given: Any) -> Any:
    """Play a scene between a scripted server and a client."""

    async def play() -> Any:
        async with serving(*script) as server, client(server, **given) as caller:
            return await scene(server, caller)

    return asyncio.run(play())


async def once(server: Scripted, caller: Client) -> tuple[Answer, int]:
    """One call, and how many requests it took."""
    return await caller.call(UPSERT_TAGS, {"tags": []}), len(server.heard)


# --- what goes out


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_each_operation_is_called_at_its_place_with_the_key(operation: Operation) -> None:
    """Method and path of the table, below the base URL; the key in its header; JSON where there is a body."""

    async def scene(server: Scripted, caller: Client) -> Any:
        await caller.call(operation, None if operation.method == "GET" else {"some": "body"})
        return server.heard[0]

    heard = talk((OK,), scene)
    assert (heard.method, heard.path) == (operation.method, f"/connect/api{operation.path}")
    assert heard.headers["x-api-key"] == KEY
    if operation.method != "GET":
        assert (heard.headers["content-type"], heard.body) == ("application/json", b'{"some":"body"}')


def test_a_project_may_say_where_an_operation_is() -> None:
    """Method and path by operation id; others stay where they are."""

    async def scene(server: Scripted, caller: Client) -> Any:
        await caller.call(UPSERT_TAG, {})
        await caller.call(UPSERT_TAGS, {})
        return [(heard.method, heard.path) for heard in server.heard]

    heard = talk((OK,), scene, endpoints={"upsertTag": Endpoint("PUT", "/v2/tag")})
    assert heard == [("PUT", "/connect/api/v2/tag"), ("POST", "/connect/api/tag/batch")]


# --- what is tried again


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 599])
def test_trouble_that_may_pass_is_tried_again(status: int) -> None:
    """Twice in trouble, then answered."""
    trouble = Reply(status, b"", AT_ONCE)
    answer, requests = talk((trouble, trouble, saying({"errors": []})), once)
    assert (answer.status, answer.data, requests) == (200, {"errors": []}, 3)


@pytest.mark.parametrize("status", [300, 302, 400, 402, 403, 404, 405, 409, 413, 422])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    """A repeat cannot mend it, and a redirect is not followed with the key."""
    answer, requests = talk((Reply(status, b"", {"Location": "http://127.0.0.1:1/"}),), once)
    assert (answer.status, answer.ok, answer.exhausted, requests) == (status, False, False, 1)


def test_a_cut_connection_is_tried_again() -> None:
    """Whatever was done: every operation is safe to repeat."""
    answer, requests = talk((CUT, CUT, OK), once)
    assert (answer.ok, requests) == (True, 3)


def test_an_answer_that_is_cut_is_tried_again() -> None:
    """Half a body is no answer."""
    half = Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    answer, requests = talk((half, OK), once)
    assert (answer.ok, requests) == (True, 2)


def test_what_is_no_http_is_tried_again() -> None:
    """Something else listens there for a moment."""
    answer, requests = talk((Reply(raw=b"SSH-2.0-OpenSSH\r\n"), OK), once)
    assert (answer.ok, requests) == (True, 2)


def test_silence_is_tried_again() -> None:
    """A request that is not answered in time."""

    async def play() -> Any:
        async with serving(Reply(until=asyncio.Event()), OK) as server, client(server, timeout=0.05) as caller:
            return await once(server, caller)

    answer, requests = asyncio.run(play())
    assert (answer.ok, requests) == (True, 2)


def test_a_call_is_given_up_after_six_attempts() -> None:
    """And says what came last, and that the service was reached."""
    answer, requests = talk((BUSY,), once)
    assert (answer.status, answer.exhausted, answer.reached) == (503, True, True)
    assert "busy" in answer.text
    assert requests == ATTEMPTS + 1, "the last one asks for the team: is it the service or this call"


def test_nobody_at_the_address_is_not_reached() -> None:
    """Connection refused: nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        port = closed_soon.getsockname()[1]

    async def play() -> Any:
        async with client(f"http://127.0.0.1:{port}") as caller:
            return await caller.call(UPSERT_TAGS, {}), caller.down, caller.traffic

    answer, down, traffic = asyncio.run(play())
    assert (answer.status, answer.reached, answer.exhausted, down) == (None, False, True, True)
    assert "cannot connect" in answer.text
    assert (traffic.requests, traffic.reached) == (6, False)


def test_a_request_that_was_cut_off_may_have_arrived() -> None:
    """No answer, and yet the work may be done: its outcome is unknown, not "not sent"."""
    answer, _ = talk((CUT,), once)
    assert (answer.status, answer.reached) == (None, True)


# --- Retry-After


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:10 GMT", 0.0),
        ("Tue, 14 Nov 2023 22:13:50 -0000", 30.0),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_an_http_date(header: str | None, seconds: float | None) -> None:
    """RFC 9110 §10.2.3, seen from 22:13:20; nonsense is no word at all."""
    assert retry_after(header, NOON) == seconds


@pytest.mark.parametrize("header", ["nan", "inf", "1e400", "Tue, 14 Nov 99999 22:13:50 GMT", "9" * 400])
def test_a_retry_after_that_is_no_time_does_no_harm(header: str) -> None:
    """The call ends with the answer that came: nobody waits for ever, and nothing is raised."""
    script = (Reply(503, b"", {"Retry-After": header}), OK)
    answer, requests = talk(script, once)
    assert answer.status in (200, 503)
    assert requests <= 3


@pytest.mark.parametrize("header", ["0.02", "Tue, 14 Nov 2023 22:13:21 GMT"])
def test_the_service_s_word_on_waiting_is_honoured(header: str) -> None:
    """In place of the back-off, in either form; `now` stands still here, a moment before the date."""
    waits: list[float] = []

    def heard(operation: str, why: str, wait: float) -> None:
        waits.append(wait)

    script = (Reply(429, b"", {"Retry-After": header}), OK)
    talk(script, once, on_retry=heard, now=lambda: NOON + 0.98)
    assert waits == [pytest.approx(0.02)]


def test_a_wait_beyond_five_minutes_is_not_begun() -> None:
    """The call ends with the answer that came."""
    answer, requests = talk((Reply(503, b"", {"Retry-After": "301"}), OK), once)
    assert (answer.status, requests) == (503, 2)


def test_the_back_off_grows() -> None:
    """Without a word from the service each wait is about twice the one before."""
    waits: list[float] = []
    talk((Reply(503, b""),), once, on_retry=lambda operation, why, wait: waits.append(wait))
    assert len(waits) == ATTEMPTS - 1
    for number, wait in enumerate(waits):
        assert 0.001 * 2**number <= wait <= 0.001 * (2**number + 1)


# --- the breaker and the stop


def test_a_service_that_is_down_is_noticed_once() -> None:
    """Eight calls at once share one discovery; the ninth is not even sent."""

    async def scene(server: Scripted, caller: Client) -> Any:
        await asyncio.gather(*(caller.call(UPSERT_TAGS, {}) for _ in range(8)))
        before = len(server.heard)
        late = await caller.call(UPSERT_TAGS, {})
        asked_for_team = sum(heard.path.endswith(TEAM_INFO.path) for heard in server.heard)
        return caller.down, asked_for_team, late, len(server.heard) - before

    down, asked_for_team, late, sent_late = talk((BUSY,), scene)
    assert (down, asked_for_team, sent_late) == (True, 1, 0)
    assert (late.status, late.reached) == (None, False)


def test_one_operation_in_trouble_is_not_a_service_that_is_down() -> None:
    """teamInfo answers, so the others go on."""

    async def scene(server: Scripted, caller: Client) -> Any:
        answer = await caller.call(UPSERT_TAGS, {})
        return answer.status, caller.down, (await caller.call(UPSERT_TAG, {})).status

    assert talk((*[BUSY] * 6, saying({"teamName": "T"}), OK), scene) == (503, False, 200)


def test_once_stopped_nothing_is_repeated() -> None:
    """Ctrl-C while the service asks for patience: the call ends at once with what came."""

    async def play() -> Any:
        stop = asyncio.Event()
        async with serving(Reply(503, b"", {"Retry-After": "200"})) as server, client(server, stop=stop) as caller:
            server.on_request = stop.set
            return await asyncio.wait_for(caller.call(UPSERT_TAGS, {}), 20), len(server.heard)

    answer, requests = asyncio.run(play())
    assert (answer.status, requests) == (503, 1)


def test_before_each_attempt_it_is_asked_whether_it_may_be_sent() -> None:
    """A holder that lost its lock between two attempts does not send the second (engine.md 1.5)."""

    class Lost(Exception):
        pass

    allowed = iter([True, False])

    def prove() -> None:
        if not next(allowed):
            raise Lost

    async def scene(server: Scripted, caller: Client) -> int:
        with pytest.raises(Lost):
            await caller.call(UPSERT_TAGS, {})
        return len(server.heard)

    assert talk((BUSY,), scene, before_send=prove) == 1


# --- the key


class KeyFile:
    """A key in a file, as the engine reads it: once, and again when asked for a fresh one."""

    def __init__(self, path: Path) -> None:
        self.path, self.read = path, path.read_text()

    def __call__(self, *, fresh: bool = False) -> str:
        if fresh:
            self.read = self.path.read_text()
        return self.read


def test_401_reads_the_key_file_again(tmp_path: Path) -> None:
    """The key was rotated while we ran: the call is repeated with the new one."""
    path = tmp_path / "key"
    path.write_text("old")
    source = KeyFile(path)
    path.write_text("new")

    async def scene(server: Scripted, caller: Client) -> Any:
        answer = await caller.call(UPSERT_TAGS, {})
        return answer.status, [heard.headers["x-api-key"] for heard in server.heard]

    assert talk((Reply(401), OK), scene, key=source) == (200, ["old", "new"])


def test_401_with_the_same_key_is_the_answer() -> None:
    """There is nothing to repeat it with."""
    answer, requests = talk((saying({"message": "who are you"}, 401),), once)
    assert (answer.status, requests) == (401, 1)


def test_401_for_the_new_key_too_is_the_answer(tmp_path: Path) -> None:
    """One look at the file a call."""
    path = tmp_path / "key"
    path.write_text("old")
    source = KeyFile(path)
    path.write_text("new")
    answer, requests = talk((Reply(401),), once, key=source)
    assert (answer.status, requests) == (401, 2)


@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_echoed_key_is_never_shown(status: int) -> None:
    """Neither in the words nor in the data, wherever the service puts it."""
    told: list[str] = []
    reply = Reply(status, b'{"message": "key s3cret-key is wrong", "s3cret-key": 1}', AT_ONCE)
    answer, _ = talk((reply,), once, on_retry=lambda operation, why, wait: told.append(why))
    assert KEY not in repr(answer) + repr(told)
    assert "***" in answer.text


def test_a_key_at_the_cut_is_not_half_shown() -> None:
    """Text is cut after the key was taken out."""
    answer, _ = talk((Reply(400, b"x" * 295 + b" s3cret-key and more"),), once)
    assert "s3c" not in answer.text


# --- what answers come to


@pytest.mark.parametrize(
    ("reply", "data", "understood"),
    [
        (saying({"errors": []}), {"errors": []}, True),
        (saying([1, 2]), [1, 2], True),
        (Reply(200, b""), None, True),
        (Reply(200, b" \r\n "), None, True),
        (Reply(raw=b"HTTP/1.1 204 No Content\r\n\r\n"), None, True),
        (Reply(200, b"<html>log in</html>", {"Content-Type": "text/html"}), None, False),
        (Reply(200, b'{"errors": ['), None, False),
        (Reply(200, b'{"a": NaN}'), None, False),
        (Reply(200, b"\xff\xfe\x00"), None, False),
        (Reply(200, b"null"), None, False),
        (Reply(200, b'{"errors": []}', {"Content-Type": "text/html"}), {"errors": []}, True),
    ],
    ids=["object", "list", "empty", "blank", "204", "html", "cut", "nan", "bytes", "null", "wrong type"],
)
def test_what_an_answer_holds(reply: Reply, data: object, understood: bool) -> None:
    """Parsed JSON, nothing, or not understood; the content type is not believed."""
    answer, _ = talk((reply,), once)
    assert answer.ok
    assert (answer.data, answer.understood) == (data, understood)


def test_a_body_that_cannot_be_unpacked_is_no_answer() -> None:
    """A gateway that says gzip and sends something else."""
    garbled = Reply(200, b"not gzip at all", {"Content-Encoding": "gzip"})
    answer, requests = talk((garbled, OK), once)
    assert (answer.ok, requests) == (True, 2)


def test_foreign_words_are_one_line_of_a_sane_length() -> None:
    """Control characters that would paint a terminal are gone."""
    page = b"<html>\r\n\x1b[31m\x07" + b"words " * 1000
    answer, _ = talk((Reply(400, page),), once)
    assert len(answer.text) <= 301
    assert answer.text.isprintable()


# --- connections


def test_connections_are_kept_and_bounded() -> None:
    """A hundred calls over at most four connections, four at once."""

    async def play() -> Any:
        async with serving(OK) as server, client(server, concurrency=4) as caller:
            await asyncio.gather(*(caller.call(UPSERT_TAGS, {}) for _ in range(100)))
            return server

    server = asyncio.run(play())
    assert len(server.heard) == 100
    assert server.connections <= 4
    assert server.most_at_once <= 4


def test_concurrency_is_used() -> None:
    """Four calls are under way together: none is answered before the fourth has arrived."""

    async def play() -> int:
        all_there = asyncio.Event()
        async with serving(Reply(until=all_there)) as server, client(server, concurrency=4) as caller:
            server.on_request = lambda: all_there.set() if server.under_way == 4 else None
            answers = await asyncio.wait_for(
                asyncio.gather(*(caller.call(UPSERT_TAGS, {}) for _ in range(4))), timeout=20
            )
            assert all(answer.ok for answer in answers)
            return server.most_at_once

    assert asyncio.run(play()) == 4


def test_calls_in_a_row_share_one_connection() -> None:
    """Keep-alive: a thousand keyword deletes do not open a thousand connections."""

    async def scene(server: Scripted, caller: Client) -> int:
        for _ in range(20):
            await caller.call(UPSERT_TAGS, {})
        return server.connections

    assert talk((OK,), scene) == 1


def test_the_traffic_is_counted_without_the_question_for_the_team() -> None:
    """As the plan counts requests."""

    async def scene(server: Scripted, caller: Client) -> Any:
        await caller.call(TEAM_INFO)
        await caller.call(UPSERT_TAGS, {})
        await caller.call(UPSERT_TAG, {})
        return caller.traffic.requests, caller.traffic.retries, caller.traffic.statuses

    script = (OK, BUSY, OK, Reply(404))
    assert talk(script, scene) == (3, 1, {"upsertTags": {503, 200}, "upsertTag": {404}})
