"""The control API: reading the sandbox's state and log, and making changes in the name of others."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from syncengine.sandbox.app import running_sandbox
from syncengine.sandbox.instance import LoggedRequest, RequestLog
from tests.support import loopback

from .conftest import Talking


def test_the_log_has_each_request_without_the_key(running: Talking) -> None:
    """Its operation, status, item count, session, query, user agent and body; refused requests are logged too."""
    session = running.post("/activitytype/sync/start", headers={"User-Agent": "syncengine/9"}).json()
    running.post("/activitytype/batch", {"activityTypes": [{"code": "A", "label": "A"}], **session})
    running.connector.post("/tag", content="{")
    running.post("/nowhere", {}, headers={"User-Agent": ""})
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
    assert running.outsider.get("/requests", params={"since": "x"}).status_code == 400
    assert not any(key in str(log) for key in ("wrong", running.connector.headers["x-api-key"]))


def test_the_log_keeps_a_bounded_number_of_requests_and_bodies() -> None:
    """The log keeps the newest requests, and never reuses a number."""
    log = RequestLog(entries=3, body_bytes=8)

    def arrived(body: bytes) -> LoggedRequest:
        entry = LoggedRequest("upsertTag", "POST", "/tag", {}, "", 0, items=None, session=None, body=body)
        log.add(entry)
        return entry

    for number in range(1, 6):
        arrived(b"%d%d%d" % (number, number, number))
    assert [(entry["seq"], entry["body"]) for entry in log.since(0)] == [(4, 444), (5, 555)]
    assert [entry["seq"] for entry in log.since(4)] == [5]
    assert list(log.since(9)) == []
    log.clear()
    assert arrived(b"").seq == 6


def test_a_reset_makes_it_as_new(running: Talking) -> None:
    """A reset clears the data, the settings, the faults and the log."""
    running.post("/tag", {"name": "T"})
    running.control("/settings", {"teamName": "Other", "tagLimit": 1})
    running.fault(operation="*", status=500, times=None)
    running.control("/reset")
    assert running.requests() == []
    assert running.post("/tag", {"name": "U"}).status_code == 200
    state = running.state()
    assert [tag["name"] for tag in state["tags"]] == ["U"]
    settings = state["settings"]
    assert (settings["teamName"], settings["tagLimit"], settings["batchLimit"]) == ("Sandbox", None, 2000)


def test_settings_change_only_what_they_name(running: Talking) -> None:
    running.control("/settings", {"tagLimit": 0, "teamName": "T"})
    running.control("/settings", {"batchLimit": 1})
    assert running.connector.get("/team/info").json() == {"teamName": "T"}
    assert running.post("/tag", {"name": "T"}).status_code == 402
    assert running.post("/tag/batch", {"tags": [{}, {}]}).status_code == 400
    running.control("/settings", {"tagLimit": None})
    assert running.post("/tag", {"name": "T"}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [{"tagLimit": "1"}, {"tagLimit": -1}, {"statusForItemErrors": 500}, {"teamname": "x"}, [], {"batchLimit": True}],
)
def test_a_setting_that_is_not_understood_is_refused(running: Talking, body: Any) -> None:
    before = running.state()
    assert running.outsider.post("/settings", json=body).status_code == 400
    assert running.state() == before


def test_others_change_what_they_like_unlogged_and_without_faults(running: Talking) -> None:
    """The log and faults are for the connector under test. A category is deleted with its tags."""
    running.fault(operation="*", status=500, times=None)
    made = running.control("/categories", {"tagCategories": [{"externalId": "c"}]})
    member = {"name": "member", "tagCategoryId": made["tagCategories"][0]["id"]}
    running.control("/tags", {"tags": [{"name": "T"}, {"name": "U"}, member]})
    running.control("/activity-types", {"activityTypes": [{"code": "A", "label": "A"}]})
    assert running.state()["tags"][2]["category"] == "c"
    for kind, name, more in (
        ("tag", "T", {}),
        ("keyword", "U", {"tag": "U"}),
        ("category", "c", {}),
        ("activity-type", "A", {}),
    ):
        running.control("/delete", {"kind": kind, "name": name, **more})
    state = running.state()
    assert [(tag["name"], tag["keywords"]) for tag in state["tags"]] == [("U", [])]
    assert (state["categories"], state["activityTypes"][0]["deleted"]) == ([], True)
    assert running.requests() == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "tag", "name": "no"}, 404),
        ({"kind": "category", "name": "no"}, 404),
        ({"kind": "activity-type", "name": "no"}, 404),
        ({"kind": "thing", "name": "no"}, 400),
        ({"kind": "tag"}, 400),
        ({"kind": "keyword", "name": "a"}, 400),
    ],
)
def test_deleting_something_unknown_is_an_error(running: Talking, body: dict[str, str], status: int) -> None:
    """The error lets a test notice a misspelt name."""
    assert running.outsider.post("/delete", json=body).status_code == status


def _own_address() -> str:
    """An address of this machine that is not loopback, if it has one; the connected UDP socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def test_control_api_and_console_are_for_this_machine_only() -> None:
    """A sandbox that listens on the network serves its interface to others, but not its control API and console."""
    own = _own_address()
    inside = 200 if own.startswith("127.") else 403
    with running_sandbox(host=own) as running:
        assert loopback.get(f"{running.control_url}/state").status_code == inside
        assert loopback.get(running.console_url).status_code == inside
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
    running.post("/tag", {"name": "T"})
    url = running.outsider.base_url.copy_with(path=path)
    assert running.outsider.post(url, headers=headers, data={"user": "A", "minutes": "60"}).status_code == 403
    assert (running.names(), running.state()["postedTime"]) == (["T"], [])
