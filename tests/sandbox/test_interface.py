"""The sandbox over HTTP: the keys, paths, methods and bodies of its interface, and its control API."""

from __future__ import annotations

import signal
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from syncengine.errors import SyncengineError
from syncengine.sandbox.app import API_KEY, running_sandbox
from syncengine.sandbox.instance import LoggedRequest, RequestLog
from syncengine.service.operations import OPERATIONS, Operation
from tests.support import loopback

from .conftest import Talking


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_each_operation_answers_at_its_path_and_method(running: Talking, operation: Operation) -> None:
    """Called with an empty object, an operation succeeds or names what is missing; its path is never unknown."""
    running.say("/settings", {"holdSeconds": 0})
    response = running.connector.request(operation.method, operation.path, json={})
    assert response.status_code in (200, 204, 400, 404)
    assert "there is nothing at" not in response.text
    assert [entry["operation"] for entry in running.requests()] == [operation.id]
    assert running.connector.delete(operation.path).status_code == 405


@pytest.mark.parametrize("key", [None, "", "wrong", "Sandbox", "schlüssel"])
@pytest.mark.parametrize("path", ["/tag", "/nowhere", "/team/info"])
def test_without_the_key_everything_is_401(running: Talking, key: str | None, path: str) -> None:
    """docs/interface.md 5: the key is checked before the path, the method, the body and any fault."""
    running.fault(operation="*", status=503)
    headers = {} if key is None else {b"x-api-key": key.encode()}
    url = running.connector.base_url.join(f"/connect/api{path}")
    assert loopback.post(url, headers=headers, content="{").status_code == 401
    # A path must match exactly.
    assert [running.call(path, {}).status_code for path in ("/nowhere", "/tag/", "/", "/tag/metadata")] == [404] * 4


@pytest.mark.parametrize("body", ["{", "[]", '"text"', "null", "[1", '{"name": "\\ud800"}', b"\xff"])
def test_a_body_that_is_no_json_object_is_400(running: Talking, body: str | bytes) -> None:
    """The next request on the same connection still works. Names of any script come through."""
    assert running.connector.post("/tag", content=body).status_code == 400
    name = "Ærø – 商標 🏷 \u0000'"
    assert running.call("/tag", {"name": name}).status_code == 200
    assert running.tags() == [name]


def test_an_embedded_sandbox_leaves_signal_handlers_and_threads_as_they_were() -> None:
    """A sandbox that runs inside `apply` must not change how `apply` handles signals. A second one names the address.
    An operation without a body takes an empty one or none (docs/service.md §1)."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    threads = threading.active_count()
    with running_sandbox(api_key="k") as running:
        key = {"x-api-key": "k"}
        assert loopback.get(f"{running.url}/team/info", headers=key).json() == {"teamName": "Sandbox"}
        for body in (b"", b"{}", b" "):
            answer = loopback.post(f"{running.url}/activitytype/sync/start", headers=key, content=body)
            assert answer.status_code == 200
        assert {number: signal.getsignal(number) for number in handlers} == handlers
        port = urlsplit(running.url).port or 0
        with (
            pytest.raises(SyncengineError, match=rf"127.0.0.1:{port}: Address already in use; .* --port"),
            running_sandbox(port=port),
        ):
            pass
    assert threading.active_count() == threads
    with pytest.raises(httpx.ConnectError):
        loopback.get(f"{running.url}/team/info")


@pytest.mark.parametrize("path", ["/team/info", "/postedtime"], ids=["a delayed answer", "a held fetch"])
def test_a_sandbox_stops_although_a_client_waits(path: str) -> None:
    """A client that waits for a delayed answer is cut off; a held fetch may still be answered."""
    with loopback.client(headers={"x-api-key": API_KEY}) as client, running_sandbox() as running:
        loopback.post(f"{running.control_url}/faults", json=[{"operation": "teamInfo", "delay": 3600}])
        ended: list[str] = []

        def wait() -> None:
            try:
                ended.append(client.get(f"{running.url}{path}", timeout=60).text)
            except httpx.RemoteProtocolError:
                ended.append("cut off")

        waiting = threading.Thread(target=wait)
        waiting.start()
        while not loopback.get(f"{running.control_url}/requests").json()["requests"]:
            pass
    waiting.join()
    assert ended in (["cut off"], ["[]"])


# --- the control API: reading state and log, and making changes in the name of others


def test_the_log_has_each_request_without_the_key(running: Talking) -> None:
    """Its operation, status, item count, session, query, user agent and body; refused requests are logged too."""
    session = running.call("/activitytype/sync/start", headers={"User-Agent": "syncengine/9"}).json()
    running.call("/activitytype/batch", {"activityTypes": [{"code": "A", "label": "A"}], **session})
    running.connector.post("/tag", content="{")
    running.call("/nowhere", {}, headers={"User-Agent": ""})
    running.connector.get("/team/info", headers={"x-api-key": "wrong"}, params={"limit": 7})
    log = running.requests()
    assert [(e["operation"], e["method"], e["path"], e["status"], e["items"]) for e in log] == [
        ("startSyncSession", "POST", "/activitytype/sync/start", 200, None),
        ("uploadActivityTypes", "POST", "/activitytype/batch", 200, 1),
        ("upsertTag", "POST", "/tag", 400, None),
        (None, "POST", "/nowhere", 404, None),
        ("teamInfo", "GET", "/team/info", 401, None),
    ]
    assert log[1]["session"] == session["syncSessionId"]
    assert log[1]["body"]["activityTypes"] == [{"code": "A", "label": "A"}]
    assert not any(entry["open"] for entry in log)
    assert [log[number]["body"] for number in (0, 2, 3, 4)] == [None, "{", {}, None]
    assert (log[0]["userAgent"], log[3]["userAgent"], log[4]["query"]) == ("syncengine/9", "", {"limit": "7"})
    assert [entry["seq"] for entry in running.requests(since=log[2]["seq"])] == [log[3]["seq"], log[4]["seq"]]
    assert running.control.get("/requests", params={"since": "x"}).status_code == 400
    assert not any(key in str(log) for key in ("wrong", running.connector.headers["x-api-key"]))


def test_the_log_keeps_a_bounded_number_of_requests_and_bodies() -> None:
    """The log keeps the newest requests, and never reuses a number."""
    log = RequestLog(entries=3, body_bytes=8)
    for number in range(1, 7):
        body = b"%d%d%d" % (number, number, number)
        log.add(LoggedRequest("upsertTag", "POST", "/tag", {}, "", 0, items=None, session=None, body=body))
        if number == 5:
            assert [(entry["seq"], entry["body"]) for entry in log.since(0)] == [(4, 444), (5, 555)]
            assert [entry["seq"] for entry in log.since(4)] == [5]
            assert list(log.since(9)) == []
            log.clear()
    assert [entry["seq"] for entry in log.since(0)] == [6]


def test_settings_change_only_what_they_name_until_a_reset_makes_all_as_new(running: Talking) -> None:
    """A reset clears the data, the settings, the faults and the log."""
    running.say("/settings", {"tagLimit": 0, "teamName": "T"})
    running.say("/settings", {"batchLimit": 1})
    assert running.connector.get("/team/info").json() == {"teamName": "T"}
    assert running.call("/tag", {"name": "T"}).status_code == 402
    assert running.call("/tag/batch", {"tags": [{}, {}]}).status_code == 400
    running.say("/settings", {"tagLimit": None})
    assert running.call("/tag", {"name": "T"}).status_code == 200
    running.fault(operation="*", status=500, times=None)
    running.say("/reset")
    assert running.requests() == []
    assert running.call("/tag", {"name": "U"}).status_code == 200
    assert running.tags() == ["U"]
    settings = running.state()["settings"]
    assert (settings["teamName"], settings["tagLimit"], settings["batchLimit"]) == ("Sandbox", None, 2000)


def test_others_change_what_they_like_unlogged_and_without_faults(running: Talking) -> None:
    """The log and faults are for the connector under test. A category is deleted with its tags."""
    running.fault(operation="*", status=500, times=None)
    made = running.control.post("/categories", json={"tagCategories": [{"externalId": "c"}]}).json()
    member = {"name": "member", "tagCategoryId": made["tagCategories"][0]["id"]}
    running.say("/tags", {"tags": [{"name": "T"}, {"name": "U"}, member]})
    running.say("/activity-types", {"activityTypes": [{"code": "A", "label": "A"}]})
    assert running.state()["tags"][2]["category"] == "c"
    for kind, name in (("tag", "T"), ("category", "c"), ("activity-type", "A")):
        running.say("/delete", {"kind": kind, "name": name})
    running.say("/delete", {"kind": "keyword", "name": "U", "tag": "U"})
    state = running.state()
    assert [(tag["name"], tag["keywords"]) for tag in state["tags"]] == [("U", [])]
    assert (state["categories"], state["activityTypes"][0]["deleted"]) == ([], True)
    assert running.requests() == []


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        *(("/delete", {"kind": kind, "name": "no"}, 404) for kind in ("tag", "category", "activity-type")),
        *(("/delete", each, 400) for each in ({"kind": "thing", "name": "a"}, {"kind": "tag"})),
        ("/delete", {"kind": "keyword", "name": "a"}, 400),
        *(("/settings", each, 400) for each in ({"tagLimit": "1"}, {"tagLimit": -1}, {"statusForItemErrors": 500})),
        *(("/settings", each, 400) for each in ({"teamname": "x"}, [], {"batchLimit": True})),
    ],
)
def test_what_the_control_api_does_not_understand_is_an_error(
    running: Talking, path: str, body: Any, status: int
) -> None:
    """The error lets a test notice a misspelt name."""
    before = running.state()
    assert running.control.post(path, json=body).status_code == status
    assert running.state() == before


def test_control_api_and_console_are_for_this_machine_only() -> None:
    """A sandbox that listens on the network serves its interface to others, but not its control API and console."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # which sends nothing
            own = str(probe.getsockname()[0])
        except OSError:
            pytest.skip("this machine has no address but loopback")
    with running_sandbox(host=own) as running:
        assert loopback.get(f"{running.control_url}/state").status_code == 403
        assert loopback.get(running.console_url).status_code == 403
        answer = loopback.get(f"{running.url}/team/info", headers={"x-api-key": running.api_key})
        assert answer.status_code == 200


FOREIGN = (
    *({"origin": origin} for origin in ("https://evil.example", "null", "http://127.0.0.1:1")),
    *({"host": host} for host in ("evil.example", "10.0.0.1")),
)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("path", ["/sandbox/reset", "/console/post", "/console/offer"])
def test_a_page_of_another_site_is_refused(running: Talking, headers: dict[str, str], path: str) -> None:
    """A foreign Origin or Host header is refused before anything is done."""
    running.call("/tag", {"name": "T"})
    url = running.control.base_url.copy_with(path=path)
    assert running.control.post(url, headers=headers, data={"user": "A", "minutes": "60"}).status_code == 403
    assert (running.tags(), running.state()["postedTime"]) == (["T"], [])
