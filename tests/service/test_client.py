"""Requests of the service client, when they are repeated, and when a call is given up (docs/planning.md 4.5)."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import pytest

from syncengine import __version__
from syncengine.connector.connection import team_of
from syncengine.errors import Unreachable
from syncengine.http.exchange import CLOSED, retry_after
from syncengine.service.client import ATTEMPTS, Client, Endpoint
from syncengine.service.operations import OPERATIONS, START_SYNC_SESSION, TEAM_INFO, UPSERT_TAG, UPSERT_TAGS, Operation
from tests.support.ports import unused_port

from .scripted import CUT, OK, Reply, Scripted, saying
from .talking import AT_ONCE, BUSY, KEY, client, once, talk, talking

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
    """Other operations keep theirs."""
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
    """Every operation is safe to repeat."""
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
    """Nothing was sent."""

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


def test_retry_after_replaces_the_back_off() -> None:
    """Here by a date, and the clock stands just before it."""
    waits: list[float] = []
    script = (Reply(429, b"", {"Retry-After": "Tue, 14 Nov 2023 22:13:21 GMT"}), OK)
    talk(script, once, on_retry=lambda operation, why, wait: waits.append(wait), now=lambda: NOON + 0.98)
    assert waits == [pytest.approx(0.02)]


@pytest.mark.parametrize(("header", "shown"), [("301", "301"), ("1e400", "inf")])
def test_a_retry_after_beyond_five_minutes_ends_the_call(header: str, shown: str) -> None:
    """The answer explains why there was no repeat."""
    answer, requests = talk((Reply(503, b"", {"Retry-After": header}), OK), once)
    assert (answer.status, requests) == (503, 2)
    for text in (answer.summary, answer.explained):
        assert f"it asks for a retry in {shown} s, but a call may take 300 s in all" in text


def test_the_back_off_grows() -> None:
    """Without Retry-After each wait is about twice the one before."""
    waits: list[float] = []
    talk((Reply(503, b""),), once, on_retry=lambda operation, why, wait: waits.append(wait))
    assert len(waits) == ATTEMPTS - 1
    for number, wait in enumerate(waits):
        assert 0.001 * 2**number <= wait <= 0.001 * (2**number + 1)


# --- the breaker and the stop


def test_a_service_that_is_down_is_noticed_once() -> None:
    """Eight concurrent calls ask for teamInfo once; a later call is not sent."""

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
    """teamInfo succeeds, so other operations are still called."""
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
