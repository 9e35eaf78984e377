"""Faults of each kind, calls that are executed late, and posted time that is offered to a webhook or a held fetch."""

import gzip
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from syncengine.sandbox.faults import Fault, Faults
from syncengine.sandbox.posted_time import answered, next_call
from tests.dripping import BODY, HEADERS, dripping
from tests.support.waiting import eventually

from .conftest import Asking, Talking
from .receiver import Receiver, receiving


def statuses(running: Talking, times: int) -> list[int]:
    return [running.call("/tag", {"name": f"T{number}"}).status_code for number in range(times)]


def test_a_fault_answers_its_requests_and_leaves_the_world_alone(running: Talking) -> None:
    """By default one request, with status, headers and body; `after` spares the first, `times: null` is for ever."""
    running.fault(operation="upsertTag", status=503, headers={"Retry-After": "7"}, body={"message": "busy"})
    response = running.call("/tag", {"name": "T"})
    assert (response.status_code, response.headers["retry-after"]) == (503, "7")
    assert response.json() == {"message": "busy"}
    assert running.tags() == []
    running.fault(operation="upsertTag", status=500, after=1, times=2)
    assert running.call("/tag/batch", {"tags": []}).status_code == 200
    assert statuses(running, 4) == [200, 500, 500, 200]
    running.fault(operation="*", status=500, times=None)
    assert statuses(running, 3) == [500, 500, 500]
    running.control.delete("/faults")
    assert statuses(running, 1) == [200]


def test_faults_are_met_in_the_order_they_were_asked_for() -> None:
    """A request meets the first fault that is due; each fault counts every request that it could have met."""
    faults = Faults()
    first, second = Fault(operation="upsertTag", status=500), Fault(operation="*", status=503, after=1, times=None)
    faults.add([first, second])
    assert [faults.take("upsertTag") for _ in range(3)] == [first, second, second]
    faults.clear()
    assert faults.take("upsertTag") is None


def cut_off(running: Talking) -> None:
    """Upsert the tag T; the connection is cut."""
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        running.call("/tag", {"name": "T"})


@pytest.mark.parametrize(("drop", "names"), [("before", []), ("after", ["T"])])
def test_a_dropped_connection_gives_no_answer(running: Talking, drop: str, names: list[str]) -> None:
    """The connection is cut before or after the request is executed, and a client cannot tell which."""
    running.fault(operation="upsertTag", drop=drop)
    cut_off(running)
    assert running.tags() == names
    assert [entry["status"] for entry in running.requests()] == [None]


@pytest.mark.parametrize("status", [200, 204, 502])
def test_a_success_can_be_lost_on_its_way(running: Talking, status: int) -> None:
    """With `apply`, the request is executed and then answered with the fault's status and body."""
    running.fault(operation="upsertTag", status=status, apply=True)
    response = running.call("/tag", {"name": "T"})
    assert (response.status_code, response.content) == (status, b"")
    assert running.tags() == ["T"]


@pytest.mark.parametrize(
    ("body", "headers", "kind"),
    [
        ("<html>Welcome</html>", {}, "text/html; charset=utf-8"),
        ('{"errors": [', {}, "text/plain; charset=utf-8"),
        ("", {}, "text/plain; charset=utf-8"),
        ("{}", {"Content-Type": "application/json"}, "application/json"),
    ],
)
def test_a_text_is_sent_as_it_is(running: Talking, body: str, headers: dict[str, str], kind: str) -> None:
    """A fault can answer 200 with HTML or truncated JSON; its own Content-Type replaces the guessed one."""
    running.fault(operation="upsertTags", body=body, headers=headers)
    response = running.call("/tag/batch", {"tags": [{"name": "T"}]})
    assert (response.status_code, response.text) == (200, body)
    assert response.headers.get_list("content-type") == [kind]
    assert running.tags() == []


@pytest.mark.parametrize("status", [None, 400])
def test_chosen_items_fail_and_the_others_are_applied(running: Talking, status: int | None) -> None:
    """The answer is 200 or 400 with the chosen errors, even for an index that the batch does not have."""
    errors = [{"index": 1, "errorDescription": "no"}, {"index": 99, "errorDescription": "what"}]
    running.fault(operation="upsertTags", itemErrors=errors, **({"status": status} if status else {}))
    response = running.call("/tag/batch", {"tags": [{"name": "A"}, {"name": "B"}, {}]})
    missing = {"index": 2, "errorDescription": "name is missing"}
    assert (response.status_code, response.json()) == (status or 200, {"errors": [errors[0], missing, errors[1]]})
    assert running.tags() == ["A"]


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        *(("uploadActivityTypes", "batch"), ("completeSyncSession", "sync/complete")),
        ("cancelSyncSession", "sync/cancel"),
    ],
)
def test_a_session_can_be_gone_when_it_is_used(running: Talking, operation: str, path: str) -> None:
    """`expireSession` ends the session that the request names; other sessions stay open."""
    first, other = (running.call("/activitytype/sync/start").json() for _ in range(2))
    running.fault(operation=operation, expireSession=True)
    gone = running.call(f"/activitytype/{path}", {"activityTypes": [], **first})
    assert gone.status_code == (400 if path == "batch" else 404)
    assert running.call("/activitytype/sync/complete", other).status_code == 200


def test_a_delayed_answer_comes_late_for_work_done_at_once(running: Talking) -> None:
    """A request with a delay is executed at once; other requests are answered meanwhile."""
    running.fault(operation="upsertTag", delay=30)
    with pytest.raises(httpx.ReadTimeout):
        running.call("/tag", {"name": "T"}, timeout=0.05)
    assert running.tags() == ["T"]
    running.fault(operation="upsertTag", delay=0.01)
    assert running.call("/tag", {"name": "U"}).status_code == 200


# --- calls that are executed late: after other calls, and whether or not a client waits for the answer


def pending(running: Talking) -> Any:
    return running.control.get("/late").json()["late"]


def execute(running: Talking, **body: Any) -> Any:
    return running.control.post("/late/execute", json=body).json()["executed"]


@contextmanager
def asking(running: Talking, path: str, body: Any) -> Iterator[Future[httpx.Response]]:
    """Make a call that the sandbox holds, and yield its future answer."""
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(running.call, path, body, timeout=30)
        eventually(lambda: bool(pending(running)))
        yield answer


def test_a_call_is_executed_when_its_time_has_come_or_a_test_says_so(running: Talking) -> None:
    """With `seconds` after that time, else by the control API. It is answered at once, or cut off."""
    running.fault(operation="upsertTag", late={"seconds": 0.05, "answer": 504})
    assert statuses(running, 1) == [504]
    eventually(lambda: running.tags() == ["T0"])
    running.fault(operation="upsertTag", late={"answer": 202})
    running.fault(operation="upsertTag", late={"answer": "cut"})
    assert running.call("/tag", {"name": "late"}).status_code == 202
    cut_off(running)
    assert running.call("/tag", {"name": "meanwhile"}).status_code == 200
    assert running.tags() == ["T0", "meanwhile"]
    assert [entry["status"] for entry in pending(running)] == [202, None]
    assert [entry["late"]["status"] for entry in execute(running)] == [200, 200]
    assert running.tags() == ["T", "T0", "late", "meanwhile"]
    assert pending(running) == []


def test_a_late_call_works_on_the_state_at_its_execution(running: Talking) -> None:
    """A late delete of a category also deletes the tags that were added after the call was answered. It can be refused
    by then. The log has the status that was answered, here with a gateway's page, and the late one."""
    category = {"tagCategories": [{"externalId": "c", "label": "C"}]}
    running.call("/tagcategory/batch", category)
    running.fault(operation="deleteTagCategory", late={"answer": 504})
    assert running.call("/tagcategory/delete", {"externalId": "c"}).status_code == 504
    id_ = running.call("/tagcategory/batch", category).json()["tagCategories"][0]["id"]
    running.call("/tag/batch", {"tags": [{"name": "T", "tagCategoryId": id_}, {"name": "U"}]})
    execute(running)
    assert (running.tags(), running.state()["categories"]) == (["U"], [])
    page, headers = "<html>Gateway Time-out</html>", {"Retry-After": "1"}
    running.fault(operation="deleteTag", body=page, headers=headers, late={"answer": 504})
    response = running.call("/tag/delete", {"name": "T"})
    assert (response.status_code, response.text, response.headers["retry-after"]) == (504, page, "1")
    (executed,) = execute(running)
    assert (executed["status"], executed["late"]["status"]) == (504, 404)
    assert executed["late"]["executed"] >= executed["at"]
    assert running.requests()[-1]["late"] == executed["late"]


def test_a_call_that_is_held_gets_its_own_answer_or_is_lost_for_good(running: Talking) -> None:
    """With `hold`, the client gets no answer until the call is executed. DELETE drops the call and cuts it off."""
    running.fault(operation="upsertTagCategories", times=2, late={"answer": "hold"})
    with asking(running, "/tagcategory/batch", {"tagCategories": [{"externalId": "c"}]}) as answer:
        assert [(entry["open"], entry["status"]) for entry in pending(running)] == [(True, None)]
        execute(running)
        assert answer.result().json()["tagCategories"][0]["externalId"] == "c"
    with asking(running, "/tagcategory/batch", {"tagCategories": [{"externalId": "lost"}]}) as answer:
        assert running.control.delete("/late").status_code == 200
        with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
            answer.result()
    assert execute(running) == []
    assert [category["externalId"] for category in running.state()["categories"]] == ["c"]


def test_a_call_is_executed_although_its_client_has_gone(running: Talking) -> None:
    """A client that disconnects, as a killed process does, does not stop its call."""
    running.fault(operation="upsertTag", late={})
    url = running.connector.base_url
    with socket.create_connection((url.host, url.port or 0)) as client:
        head = f"POST /connect/api/tag HTTP/1.1\r\nHost: x\r\nx-api-key: {running.connector.headers['x-api-key']}\r\n"
        client.sendall(f'{head}Content-Length: 12\r\n\r\n{{"name":"T"}}'.encode())
        eventually(lambda: bool(pending(running)))
    eventually(lambda: not pending(running)[0]["open"])
    assert running.tags() == []
    execute(running)
    assert running.tags() == ["T"]


def test_calls_are_executed_in_the_order_in_which_they_came_or_one_by_one(running: Talking) -> None:
    """`/late/execute` executes one call by its number or all in order; a number that does not wait is 404."""
    running.fault(operation="upsertTag", times=None, late={"answer": 504})
    for description in ("first", "second", "third"):
        running.call("/tag", {"name": "T", "description": description})
    first, second, third = (entry["seq"] for entry in pending(running))
    assert [entry["seq"] for entry in execute(running, seq=second)] == [second]
    assert running.state()["tags"][0]["description"] == "second"
    assert running.control.post("/late/execute", json={"seq": second}).status_code == 404
    assert [entry["seq"] for entry in execute(running)] == [first, third]
    assert running.state()["tags"][0]["description"] == "third"
    assert execute(running) == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("*", "expected an object"),
        ({}, "operation is missing"),
        ({"operation": "upsertTagz"}, "operation must be the id of an operation or *"),
        ({"operation": "*", "satus": 500}, "unknown field: satus"),
        ({"operation": "*", "status": 99}, "status must be a status from 200 to 599"),
        ({"operation": "*", "drop": "now"}, "drop must be before or after"),
        ({"operation": "*", "delay": -1}, "delay must be a number of seconds"),
        ({"operation": "*", "times": -1}, "times must be a non-negative integer"),
        ({"operation": "upsertTag", "itemErrors": []}, "can have itemErrors"),
        ({"operation": "upsertTags", "itemErrors": [{}]}, "index is missing"),
        ({"operation": "*", "late": 5}, "expected an object"),
        ({"operation": "*", "late": {"second": 5}}, "unknown field: second"),
        ({"operation": "*", "late": {"seconds": -1}}, "seconds must be a number of seconds"),
        ({"operation": "*", "late": {"answer": "no"}}, "answer must be a status, cut or hold"),
        ({"operation": "*", "late": {"answer": 99}}, "answer must be a status, cut or hold"),
        ({"operation": "*", "late": {}, "status": 500, "drop": "after"}, "late cannot be combined with drop, status"),
        ({"operation": "webhookCall", "late": {}}, "webhookCall cannot be late"),
    ],
)
def test_a_fault_that_is_not_understood_is_refused(running: Talking, fault: Any, words: str) -> None:
    """One invalid fault refuses the whole list: otherwise a test with a misspelt fault would prove nothing."""
    whole = ([{"operation": "*", "status": 500}, fault], words), (fault, "the body must be an array of faults")
    for faults, message in whole:
        response = running.control.post("/faults", json=faults)
        assert (response.status_code, message in response.json()["message"]) == (400, True)
    assert statuses(running, 1) == [200]


# --- offers of posted time


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
