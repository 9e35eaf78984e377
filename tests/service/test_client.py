"""Requests of the service client, their repeats, and their answers: key, values, time and size (docs/planning.md 4)."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from syncengine import __version__
from syncengine.connector.connection import team_of
from syncengine.errors import Unreachable
from syncengine.http.exchange import CLOSED, retry_after
from syncengine.service.answers import Answer
from syncengine.service.client import ATTEMPTS, Client, Endpoint
from syncengine.service.operations import (
    FETCH_POSTED_TIME,
    LARGEST,
    OPERATIONS,
    START_SYNC_SESSION,
    TEAM_INFO,
    UPSERT_TAG,
    UPSERT_TAGS,
    Operation,
)
from tests.dripping import BODY, HEADERS, dripping
from tests.support.quiet import unused_port

from .scripted import CUT, OK, Reply, Scripted, saying, serving
from .talking import AT_ONCE, BUSY, KEY, answer_to, client, key, once, talk, talking

NOON = 1_700_000_000.0

# --- requests


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_each_operation_has_its_method_path_key_and_body(operation: Operation) -> None:
    """The key, our version and the one encoding that we ask for are in headers, and the body, if any, is JSON."""
    body = None if operation.method == "GET" or operation is START_SYNC_SESSION else {"some": "body"}
    with talking(OK) as service:
        heard = service.heard(operation, body)
    assert (heard.method, heard.path) == (operation.method, f"/connect/api{operation.path}")
    assert (heard.headers["x-api-key"], heard.headers["user-agent"]) == (KEY, f"syncengine/{__version__}")
    assert heard.headers["accept-encoding"] == "gzip"
    sent = (heard.headers.get("content-type"), heard.body)
    assert sent == ((None, b"") if body is None else ("application/json", b'{"some":"body"}'))


def test_endpoints_overrides_method_and_path_of_an_operation() -> None:
    with talking(OK, endpoints={"upsertTag": Endpoint("PUT", "/v2/tag")}) as service:
        requests = [service.heard(operation) for operation in (UPSERT_TAG, UPSERT_TAGS)]
    assert [(heard.method, heard.path) for heard in requests] == [
        ("PUT", "/connect/api/v2/tag"),
        ("POST", "/connect/api/tag/batch"),
    ]


# --- repeats


TROUBLE = {
    **{str(status): [Reply(status, b"", AT_ONCE)] * 2 for status in (408, 429, 500, 502, 503, 504, 599)},
    "cut": [CUT, CUT],
    "a truncated answer": [Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")],
    "no http, as from another program": [Reply(raw=b"SSH-2.0-OpenSSH\r\n")],
    "no answer in time": [Reply(until=asyncio.Event())],
}


@pytest.mark.parametrize("replies", TROUBLE.values(), ids=TROUBLE)
def test_a_call_in_temporary_trouble_is_repeated(replies: list[Reply]) -> None:
    with talking(*replies, saying({"errors": []}), timeout=0.05 if replies[0].until else 30.0) as service:
        answer = service.call()
        assert (answer.status, answer.data) == (200, {"errors": []})
        assert len(service.server.heard) == len(replies) + 1


@pytest.mark.parametrize("status", [300, 303, 400, 402, 403, 404, 405, 409, 413, 422])
def test_a_refusal_is_not_repeated(status: int) -> None:
    """A repeat would not help. No redirect is followed, so the key is sent nowhere else."""
    answer, requests = talk((Reply(status, b"", {"Location": "http://127.0.0.1:1/"}),), once)
    assert (answer.status, answer.ok, answer.exhausted, requests) == (status, False, False, 1)


@pytest.mark.parametrize("status", [301, 302, 307, 308, 407, 511])
def test_an_answer_of_a_proxy_or_redirect_is_no_answer_of_the_service(status: int) -> None:
    """The service was not reached, and a repeat would not help."""
    with talking(Reply(status, b"", {"Location": "http://127.0.0.1:1/"})) as service:
        answer = service.call()
    assert (answer.status, answer.diverted, answer.reached, answer.may_land) == (None, True, False, False)
    assert (len(service.server.heard), service.caller.down) == (1, True)


@pytest.mark.parametrize(("reply", "status", "words"), [(BUSY, 503, "busy"), (CUT, None, CLOSED)])
def test_a_call_is_given_up_after_six_attempts(reply: Reply, status: int | None, words: str) -> None:
    """The answer is the last one, and the service counts as reached: without an answer, it may have executed the call.

    A `Retry-After` that was honoured is no reason.
    """
    answer, requests = talk((reply,), once)
    assert (answer.status, answer.exhausted, answer.reached) == (status, True, True)
    assert words in answer.text
    assert "asks" not in answer.summary + answer.explained
    assert requests == ATTEMPTS + 1, "the last request is teamInfo, which tells whether the whole service is down"


def test_a_refused_connection_is_not_reached() -> None:

    async def play() -> Any:
        async with client(f"http://127.0.0.1:{unused_port()}") as caller:
            return await caller.call(UPSERT_TAGS, {}), caller.down, caller.traffic

    answer, down, traffic = asyncio.run(play())
    assert (answer.status, answer.reached, answer.exhausted, down) == (None, False, True, True)
    assert "cannot connect" in answer.text
    assert (traffic.requests, traffic.reached) == (6, False)


def test_where_no_connection_is_possible_the_address_may_be_wrong() -> None:
    """A misspelt host is as likely as an outage, so the message names the setting."""

    async def ask() -> None:
        async with client(f"http://127.0.0.1:{unused_port()}") as caller:
            await team_of(caller)

    with pytest.raises(Unreachable, match=r"cannot connect: .*; check `service\.baseUrl`; if it is right, repeat unch"):
        asyncio.run(ask())


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
        ("nan", 0.0),
        ("1e400", inf),
        ("9" * 400, inf),
        *((invalid, None) for invalid in ("soon", "", None, "Tue, 14 Nov 99999 22:13:50 GMT")),
        (f"Fri, {'9' * 20} Dec 2026 23:59:59 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_an_http_date(header: str | None, seconds: float | None) -> None:
    """RFC 9110 §10.2.3, at 22:13:20; an invalid value is ignored."""
    assert retry_after(header, NOON) == seconds


@pytest.mark.parametrize(("header", "shown"), [("301", "301"), ("1e400", "inf")])
def test_a_retry_after_beyond_five_minutes_ends_the_call(header: str, shown: str) -> None:
    answer, requests = talk((Reply(503, b"", {"Retry-After": header}), OK), once)
    assert (answer.status, requests) == (503, 2)
    for text in (answer.summary, answer.explained):
        assert f"it asks for a retry in {shown} s, but a call may take 300 s in all" in text


def test_each_wait_is_twice_the_one_before_unless_the_service_asks_for_another() -> None:
    """Here it asks by a date, and the clock stands just before it."""
    waits: list[float] = []
    answer_to(Reply(503, b""), on_retry=lambda operation, why, wait: waits.append(wait))
    assert len(waits) == ATTEMPTS - 1
    for number, wait in enumerate(waits):
        assert 0.001 * 2**number <= wait <= 0.001 * (2**number + 1)
    waits.clear()
    asking = Reply(429, b"", {"Retry-After": "Tue, 14 Nov 2023 22:13:21 GMT"})
    answer_to(asking, OK, on_retry=lambda operation, why, wait: waits.append(wait), now=lambda: NOON + 0.98)
    assert waits == [pytest.approx(0.02)]


# --- the breaker and the stop


def test_a_service_that_is_down_is_noticed_once() -> None:

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
    with talking(*[BUSY] * 6, saying({"teamName": "T"}), OK) as service:
        assert (service.call().status, service.caller.down) == (503, False)
        assert service.call(UPSERT_TAG).status == 200


def test_no_call_is_repeated_after_a_stop() -> None:
    """After Ctrl-C during a wait, the call ends at once with its last answer."""
    stop = asyncio.Event()
    with talking(Reply(503, b"", {"Retry-After": "200"}), stop=stop) as service:
        service.server.on_request = stop.set
        answer = service.wait(asyncio.wait_for(service.caller.call(UPSERT_TAGS, {}), 20))
        assert (answer.status, len(service.server.heard)) == (503, 1)


def test_before_send_is_checked_before_each_attempt() -> None:
    """A process that lost its lock between two attempts does not send the second (docs/planning.md 1.5)."""
    allowed = [None]
    with talking(BUSY, before_send=allowed.pop) as service:
        with pytest.raises(IndexError):
            service.call()
        assert len(service.server.heard) == 1


# --- the key


class Rotated:
    """A key in a file that was replaced after it was read."""

    read = "old"

    def __call__(self, *, fresh: bool = False) -> str:
        self.read = "new" if fresh else self.read
        return self.read


def test_401_repeats_the_call_once_with_the_key_as_it_is_now_in_its_file() -> None:
    """If the key was replaced during the run; there is no other reason to read the file again."""
    with talking(Reply(401), OK, key=Rotated()) as service:
        assert service.call().status == 200
        assert [heard.headers["x-api-key"] for heard in service.server.heard] == ["old", "new"]
    for source, expected in ((key, 1), (Rotated(), 2)):
        answer, requests = talk((Reply(401),), once, key=source)
        assert (answer.status, requests) == (401, expected)


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_an_echoed_key_is_never_shown(status: int) -> None:
    told: list[str] = []
    reply = Reply(status, b'{"message": "key s3cret-key is wrong", "s3cret-key": 1}', AT_ONCE)
    answer = answer_to(reply, on_retry=lambda operation, why, wait: told.append(why))
    assert KEY not in repr(answer) + answer.summary + repr(told)
    assert "***" in answer.text


DESCRIBED = {"message": f"{KEY} may not", "errors": [{"index": 1, "errorDescription": f"of {KEY}"}], "id": f"{KEY}-7"}
MASKED = [{"index": 1, "errorDescription": "of ***"}]


def test_the_key_is_masked_in_messages_but_not_in_the_data_of_a_success() -> None:
    """A key such as `sandbox` may be part of a tag's name, so a success masks only the error descriptions of items."""
    assert answer_to(saying(DESCRIBED, 400)).data == {"message": "*** may not", "errors": MASKED, "id": "***-7"}
    assert answer_to(saying(DESCRIBED)).data == {**DESCRIBED, "errors": MASKED}
    assert answer_to(saying([{"groupId": KEY}])).data == [{"groupId": KEY}]
    assert answer_to(Reply(400, b"no", {"Content-Type": f"text/{KEY}"})).summary == "400 (text/***, 2 bytes)"
    assert "s3c" not in answer_to(Reply(400, b"x" * 295 + b" s3cret-key and more")).text


@pytest.mark.parametrize(
    "spelt", ['a/b"c+=', r"a\/b\"c+=", r"a/b\u0022c\u002B\u003d", "a%2Fb%22c%2B%3d", "a&#x2F;b&quot;c&#43;="]
)
def test_a_key_is_masked_however_its_letters_are_escaped(spelt: str) -> None:
    r"""As in JSON, a URL or HTML: some services write `\/` or `\u002F` for `/`, and pages of gateways `&#x2F;`."""
    reply = Reply(400, f"<p>no access with {spelt}, {{".encode())
    assert answer_to(reply, key=lambda *, fresh=False: 'a/b"c+=').text == "<p>no access with ***, {"


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
def test_the_data_of_an_answer(reply: Reply, data: object, understood: bool) -> None:
    """Parsed JSON, None for an empty body, or not understood; the content type is ignored."""
    answer = answer_to(reply)
    assert answer.ok
    assert (answer.data, answer.understood) == (data, understood)


def test_text_of_the_service_is_one_short_printable_line() -> None:
    text = answer_to(Reply(400, b"<html>\r\n\x1b[31m\x07" + b"words " * 1000)).text
    assert (len(text) <= 301, text.isprintable()) == (True, True)


# --- connections


def test_calls_run_concurrently_over_few_connections() -> None:
    """A hundred calls use four connections; no answer is sent before the fourth call has arrived."""

    async def play() -> Any:
        four = asyncio.Event()
        async with serving(Reply(until=four)) as server, client(server, concurrency=4) as caller:
            server.on_request = lambda: four.set() if server.under_way == 4 else None
            calls = asyncio.gather(*(caller.call(UPSERT_TAGS, {}) for _ in range(100)))
            return await asyncio.wait_for(calls, 20), server

    answers, server = asyncio.run(play())
    assert {answer.status for answer in answers} == {200}
    assert (len(server.heard), server.connections, server.most_at_once) == (100, 4, 4)


def test_the_traffic_is_counted_without_teaminfo() -> None:
    """So the numbers match the requests of the plan."""
    with talking(OK, BUSY, OK, Reply(404)) as service:
        service.call(TEAM_INFO, None)
        service.call(UPSERT_TAGS)
        service.call(UPSERT_TAG)
        traffic = service.caller.traffic
    assert (traffic.requests, traffic.retries) == (3, 1)
    assert traffic.statuses == {"upsertTags": {503, 200}, "upsertTag": {404}}


# --- time

GUARD_SECONDS = 20.0
"""A call that takes longer than this fails its test."""


@pytest.mark.parametrize(
    ("before", "operation", "longest", "words"),
    [
        (BODY, UPSERT_TAGS, None, "was not complete within 0.1 s"),
        (HEADERS, UPSERT_TAGS, None, "within 0.1 s"),
        (BODY, FETCH_POSTED_TIME, 0.2, "was not complete within 0.3 s"),
    ],
    ids=["body", "headers", "long poll"],
)
def test_an_answer_that_arrives_byte_by_byte_times_out(
    before: bytes, operation: Operation, longest: float | None, words: str
) -> None:
    """Each byte is in time, but the attempt as a whole has a deadline; its outcome is unknown.

    The first byte of a long poll may take `longest`; only without one does nothing count as posted.
    """

    async def play(url: str) -> Answer:
        async with client(url, timeout=0.1) as caller:
            return await asyncio.wait_for(caller.call(operation, timeout=longest), GUARD_SECONDS)

    with dripping(before) as server:
        answer = asyncio.run(play(server.url))
    assert (answer.status, answer.reached) == (None, True)
    assert answer.timed_out is (before == HEADERS)
    assert words in answer.text


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
    answer = answer_to(packed(b'"' + b"x" * (LARGEST - 2) + b'"'))
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
    script = (Reply(200, content, {"Content-Encoding": encoding}), Reply(200, TEXT))
    with talking(*script, on_retry=lambda operation, cause, wait: told.append(cause)) as service:
        assert service.call().data == {"errors": []}
    assert [trouble in cause for cause in told] == [True] * bool(trouble), told
