"""The sandbox offers posted time: to a registered webhook, which a real server receives, or to a held fetch."""

import gzip
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from syncengine.sandbox.posted_time import answered, next_call
from tests.dripping import BODY, HEADERS, dripping
from tests.support.waiting import eventually

from .conftest import Asking, Talking
from .receiver import Receiver, receiving


@pytest.fixture
def receiver(running: Talking) -> Iterator[Receiver]:
    """A receiver that is registered with the sandbox, which retries at once."""
    running.say("/settings", {"retrySeconds": 0})
    with receiving() as receiver:
        body = {"callbackUrl": receiver.url, "callerKey": "the caller's key"}
        assert running.call("/postedtime/subscribe", body).status_code == 200
        yield receiver


def became(running: Talking, *states: str) -> list[dict[str, Any]]:
    """Wait until the posted groups have these states, and return the groups."""

    def look() -> list[dict[str, Any]]:
        posted: list[dict[str, Any]] = running.state()["postedTime"]
        return posted if [each["state"] for each in posted] == list(states) else []

    return eventually(look)


def told(posted: dict[str, Any]) -> list[tuple[int | None, str, str | None]]:
    return [(each["http"], each["status"], each["message"]) for each in posted["told"]]


def test_the_webhook_is_called_once_with_each_group_and_its_key(running: Talking, receiver: Receiver) -> None:
    """docs/interface.md 6: the payload is the group with the caller key, which neither log nor state shows."""
    running.say("/posted-time", {"groupId": "g", "description": "D"})
    (posted,) = became(running, "success")
    assert receiver.calls == [{**posted["group"], "callerKey": "the caller's key", "status": "PENDING"}]
    assert running.requests()[0]["body"] == {"callbackUrl": receiver.url, "callerKey": "***"}
    assert "the caller's key" not in str(running.requests()) + str(running.state())
    ids = [f"g{number}" for number in range(50)]
    running.say("/posted-time", {"groups": [{"groupId": id_} for id_ in ids]})
    became(running, *["success"] * 51)
    assert sorted(call["groupId"] for call in receiver.calls) == sorted(["g", *ids])


FINAL = [
    *((status, "success", "") for status in (200, 201, 204, 299)),
    *((status, "failed", "Assign a tag.") for status in (400, 401, 404, 409, 422, 428, 429)),
]


@pytest.mark.parametrize(("status", "state", "message"), FINAL)
def test_a_2xx_is_a_success_and_a_4xx_refused_for_good(
    running: Talking, receiver: Receiver, status: int, state: str, message: str
) -> None:
    """docs/service.md §2: any 4xx but 408 is final, and its plain-text body is shown to the user. A fault for `*` does
    not meet the calls."""
    running.fault(operation="*", status=500, times=None)
    receiver.answers.append((status, message))
    running.say("/posted-time", {})
    (posted,) = became(running, state)
    assert (posted["message"] or "", posted["due"], len(receiver.calls)) == (message, None, 1)
    assert told(posted) == [(status, "FAILURE" if message else "SUCCESS", message or None)]


@pytest.mark.parametrize("answer", [(500, "busy"), (503, "busy"), (408, "busy"), (302, "busy"), None])
def test_anything_else_is_called_again(running: Talking, receiver: Receiver, answer: tuple[int, str] | None) -> None:
    """docs/service.md §2: after any other answer, the same group is sent again until it is accepted."""
    receiver.answers.extend([answer, answer])
    running.say("/posted-time", {"groupId": "g"})
    (posted,) = became(running, "success")
    assert [call["groupId"] for call in receiver.calls] == ["g", "g", "g"]
    again = (answer[0] if answer else None, "RETRIABLE_FAILURE")
    assert [(http, what) for http, what, _ in told(posted)] == [again, again, (200, "SUCCESS")]


def test_the_sandbox_gives_up_after_a_number_of_calls(running: Talking, receiver: Receiver) -> None:
    """docs/service.md §2: a group that is posted again is sent again."""
    running.say("/settings", {"webhookCalls": 3})
    receiver.answers.extend([(500, "no room")] * 3)
    running.say("/posted-time", {"groupId": "g"})
    (posted,) = became(running, "failed")
    assert (len(receiver.calls), posted["message"]) == (3, "gave up after call 3: no room")
    running.say("/posted-time", {"groupId": "g"})
    became(running, "success")
    assert len(receiver.calls) == 4


def test_a_receiver_that_does_not_answer_is_called_again(running: Talking) -> None:
    """While it is there, it is called without a key, since the webhook was registered without one."""
    running.say("/settings", {"retrySeconds": 0, "webhookTimeoutSeconds": 0.05})
    with receiving() as receiver:
        receiver.holding.clear()
        assert running.call("/postedtime/subscribe", {"callbackUrl": receiver.url}).status_code == 200
        running.say("/posted-time", {})
        assert "callerKey" not in receiver.called(2)[0]
        running.say("/settings", {"webhookTimeoutSeconds": 30})
        receiver.holding.set()
        (posted,) = became(running, "success")
        assert told(posted)[0] == (None, "RETRIABLE_FAILURE", "no answer within 0.05 s")
    running.say("/settings", {"retrySeconds": 60})
    running.say("/posted-time", {})
    posted = became(running, "success", "retrying")[1]
    assert told(posted) == [(None, "RETRIABLE_FAILURE", "no answer: nothing is listening at the address")]


def test_calls_stop_after_the_webhook_is_unregistered(running: Talking, receiver: Receiver) -> None:
    """docs/interface.md 6: a group that the webhook has not accepted is offered to the next fetch client."""
    running.say("/settings", {"retrySeconds": 60})
    receiver.answers.append((503, "busy"))
    running.say("/posted-time", {"groupId": "g"})
    became(running, "retrying")
    assert running.call("/postedtime/unsubscribe").status_code == 200
    running.say("/posted-time/offer", {"groupId": "g"})
    assert [group["groupId"] for group in running.connector.get("/postedtime").json()] == ["g"]
    assert len(receiver.calls) == 1


@pytest.mark.parametrize(("drop", "calls"), [("before", 1), ("after", 2)])
def test_a_fault_loses_a_call_or_its_answer(running: Talking, receiver: Receiver, drop: str, calls: int) -> None:
    """When its answer is lost, the receiver gets the same group a second time. A fault can also be the answer."""
    running.fault(operation="webhookCall", drop=drop)
    running.say("/posted-time", {"groupId": "g"})
    (posted,) = became(running, "success")
    assert told(posted)[0] == (None, "RETRIABLE_FAILURE", "the call was dropped")
    running.fault(operation="webhookCall", status=400)
    running.say("/posted-time", {})
    became(running, "success", "failed")
    assert [call["groupId"] for call in receiver.calls] == ["g"] * calls


@pytest.mark.parametrize(
    ("before", "size", "message"),
    [(HEADERS, 0, (None, "FAILURE")), (BODY, 0, (None, "FAILURE")), (BODY, 64 * 1024 * 1024, (400, "FAILURE"))],
    ids=["dripping headers", "a dripping body", "a large answer"],
)
def test_an_answer_that_drips_or_is_too_large_is_not_read(
    running: Talking, before: bytes, size: int, message: tuple[int | None, str]
) -> None:
    """The timeout is for the whole call, however slowly bytes arrive; a small answer can unpack to a huge text."""
    running.say("/settings", {"webhookTimeoutSeconds": 30 if size else 0.2, "webhookCalls": 1})
    packed = gzip.compress(bytes(size), 1)
    head = b"HTTP/1.1 400 No\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    with dripping(before, {b"/": head + packed} if size else {}) as server:
        assert running.call("/postedtime/subscribe", {"callbackUrl": f"{server.url}/"}).status_code == 200
        running.say("/posted-time", {})
        (posted,) = became(running, "failed")
    words = "" if size else "gave up after call 1: no answer within 0.2 s"
    assert told(posted) == [(*message, words)]


def test_an_answer_about_older_content_does_not_count_for_newer_content(service: Asking) -> None:
    """When a user posts a group again during its call, only the answer to the newer call counts."""
    service.told("registerWebhook", callbackUrl="http://127.0.0.1:9/")
    offers = []
    for description in ("old", "new"):
        service.post("g", description=description)
        offers.append(service.sandbox.do(next_call, {}).body["offer"])
    for offer, status, state in zip(offers, (200, 422), ("offered", "failed"), strict=True):
        service.sandbox.do(answered, {"groupId": "g", "status": status, "text": "", "offer": offer})
        assert service.posted("g")["state"] == state


def ids(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [group["groupId"] for group in response.json()]


def test_a_fetch_is_answered_when_time_is_posted_or_its_client_unregistered(running: Talking) -> None:
    """A held fetch has registered its client, so that posted time is recorded, and answered to one of two fetches. A
    fetch whose client is unregistered gets an empty array, and does not register the client again."""

    def fetch() -> Future[httpx.Response]:
        """Start a fetch, and wait until the sandbox holds it."""
        before = len(running.requests())
        answer = pool.submit(running.connector.get, "/postedtime", timeout=90)
        eventually(lambda: len(running.requests()) > before)
        return answer

    with ThreadPoolExecutor() as pool:
        fetches = fetch(), fetch()
        assert running.state()["connection"]["mechanism"] == "fetch"
        assert [(entry["open"], entry["status"]) for entry in running.requests()] == [(True, None)] * 2
        running.say("/posted-time", {"groupId": "g"})
        assert sorted(ids(each.result()) for each in fetches) == [[], ["g"]]
        held = fetch()
        assert running.call("/postedtime/unregisterfetchclient").status_code == 200
        assert ids(held.result()) == []
        assert running.state()["connection"]["mechanism"] is None


def test_a_fetch_is_answered_when_a_group_becomes_due_again_or_its_time_is_over(running: Talking) -> None:
    running.say("/settings", {"reofferSeconds": 0.2})
    running.connector.post("/postedtime/registerfetchclient")
    running.say("/posted-time", {"groupId": "g"})
    for _ in range(2):
        assert ids(running.connector.get("/postedtime", timeout=90)) == ["g"]
    running.say("/settings", {"reofferSeconds": 60, "holdSeconds": 0.01})
    assert ids(running.connector.get("/postedtime")) == []


def test_a_client_that_has_left_takes_no_group_with_it(running: Talking) -> None:
    """After a connector is killed during its fetch, the next fetch gets the group at once."""
    url, key = running.connector.base_url, running.connector.headers["x-api-key"]
    with socket.create_connection((url.host, url.port or 0)) as killed:
        killed.sendall(f"GET {url.path}postedtime HTTP/1.1\r\nHost: h\r\nx-api-key: {key}\r\n\r\n".encode())
        eventually(running.requests)
    running.connector.get("/team/info")
    running.say("/posted-time", {"groupId": "g"})
    assert ids(running.connector.get("/postedtime")) == ["g"]
    assert len(running.state()["postedTime"][0]["offers"]) == 1


@pytest.mark.parametrize(("drop", "offers"), [("before", 0), ("after", 1)])
def test_an_answer_that_is_lost_has_offered_the_group(running: Talking, drop: str, offers: int) -> None:
    """A connection that is cut after the fetch was executed counts as an offer; cut before, it does not. A fetch that
    meets a fault, or is refused, is not held, and registers nobody."""
    running.fault(operation="fetchPostedTime", status=503)
    assert running.connector.get("/postedtime").status_code == 503
    assert running.state()["connection"]["mechanism"] is None
    running.call("/postedtime/registerfetchclient")
    running.say("/posted-time", {"groupId": "g"})
    running.fault(operation="fetchPostedTime", drop=drop)
    with pytest.raises(httpx.RemoteProtocolError):
        running.connector.get("/postedtime")
    assert len(running.state()["postedTime"][0]["offers"]) == offers
    running.call("/postedtime/unregisterfetchclient")
    running.call("/postedtime/subscribe", {"callbackUrl": "http://127.0.0.1:9/"})
    assert running.connector.get("/postedtime").status_code == 409
