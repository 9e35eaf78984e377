"""The control API: reading the sandbox's state and log, and making changes in the name of others."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from syncengine.sandbox.app import running_sandbox
from syncengine.sandbox.instance import LoggedRequest, RequestLog
from tests.support import loopback

from .conftest import Talking


def test_the_state_shows_everything_held(running: Talking) -> None:
    """The state is sorted, so that two states can be compared."""
    categories = running.post("/tagcategory/batch", {"tagCategories": [{"externalId": "c", "label": "C"}]}).json()
    id_ = categories["tagCategories"][0]["id"]
    tag = {
        "name": "T",
        "description": "D",
        "tagCategoryId": id_,
        "additionalKeywords": ["b", "a"],
        "metadata": {"m": "1"},
    }
    running.post("/tag/batch", {"tags": [tag, {"name": "S", "visibility": "PRIVATE"}]})
    running.post("/activitytype/batch", {"activityTypes": [{"code": "A", "label": "A", "enableIfNew": True}]})
    session = running.post("/activitytype/sync/start").json()["syncSessionId"]
    state = running.state()
    assert state["tags"] == [
        {"name": "S", "path": "/", "visibility": "PRIVATE", "category": None, "keywords": ["S"], "metadata": {}},
        {
            "name": "T",
            "description": "D",
            "path": "/",
            "visibility": "PUBLIC",
            "tagCategoryId": id_,
            "category": "c",
            "keywords": ["T", "a", "b"],
            "metadata": {"m": "1"},
        },
    ]
    assert state["categories"] == [{"id": id_, "externalId": "c", "label": "C"}]
    (known,) = state["activityTypes"]
    assert known.pop("touched") > 0
    assert known == {"code": "A", "label": "A", "description": "", "enabled": True, "deleted": False}
    assert [(s["syncSessionId"], s["state"]) for s in state["sessions"]] == [(session, "open")]
    assert state["settings"]["batchLimit"] == 2000


def test_the_log_has_each_request_without_the_key(running: Talking) -> None:
    """An entry has the operation, status, item count, body and session; refused requests are logged too."""
    session = running.post("/activitytype/sync/start").json()
    running.post("/activitytype/batch", {"activityTypes": [{"code": "A", "label": "A"}], **session})
    running.connector.post("/tag", content="{")
    running.post("/nowhere", {})
    running.connector.get("/team/info", headers={"x-api-key": "wrong"})
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
    assert [entry["body"] for entry in log[2:]] == ["{", {}, None]
    assert [entry["seq"] for entry in running.requests(since=log[2]["seq"])] == [log[3]["seq"], log[4]["seq"]]
    assert "wrong" not in str(log)


def arrived(log: RequestLog, body: bytes) -> LoggedRequest:
    entry = LoggedRequest("upsertTag", "POST", "/tag", {}, "", 0, items=None, session=None, body=body)
    log.add(entry)
    return entry


def test_the_log_keeps_a_bounded_number_of_requests_and_bodies() -> None:
    """The log keeps the newest requests, and never reuses a number."""
    log = RequestLog(entries=3, body_bytes=8)
    for number in range(1, 6):
        arrived(log, b"%d%d%d" % (number, number, number))
    assert [(entry["seq"], entry["body"]) for entry in log.since(0)] == [(4, 444), (5, 555)]
    assert [entry["seq"] for entry in log.since(4)] == [5]
    assert list(log.since(9)) == []
    log.clear()
    assert arrived(log, b"").seq == 6


def test_a_reset_makes_it_as_new(running: Talking) -> None:
    """A reset clears the data, the settings, the faults and the log."""
    running.post("/tag", {"name": "T"})
    running.control("/settings", {"teamName": "Other", "tagLimit": 1})
    running.fault(operation="*", status=500, times=None)
    running.control("/reset")
    assert running.requests() == []
    assert running.post("/tag", {"name": "U"}).status_code == 200
    assert running.names() == ["U"]
    assert running.state()["settings"]["teamName"] == "Sandbox"
    assert running.state()["settings"]["tagLimit"] is None


def test_settings_change_only_what_they_name(running: Talking) -> None:
    """A changed setting takes effect with the next request, and other settings stay."""
    running.control("/settings", {"tagLimit": 0, "teamName": "T"})
    running.control("/settings", {"batchLimit": 1, "statusForItemErrors": 400})
    assert running.connector.get("/team/info").json() == {"teamName": "T"}
    assert running.post("/tag", {"name": "T"}).status_code == 402
    assert running.post("/tag/batch", {"tags": [{}]}).json()["errors"][0]["index"] == 0
    assert running.post("/tag/batch", {"tags": [{}, {}]}).status_code == 400
    running.control("/settings", {"tagLimit": None})
    assert running.post("/tag", {"name": "T"}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [{"tagLimit": "1"}, {"tagLimit": -1}, {"statusForItemErrors": 500}, {"teamname": "x"}, [], {"batchLimit": True}],
)
def test_a_setting_that_is_not_understood_is_refused(running: Talking, body: Any) -> None:
    """An unknown or invalid setting answers 400, and nothing changes."""
    before = running.state()
    assert running.outsider.post("/settings", json=body).status_code == 400
    assert running.state() == before


def test_changes_of_others_are_not_logged_and_meet_no_fault(running: Talking) -> None:
    """The log and faults are for the connector under test; the service's rules hold for others, too."""
    running.fault(operation="*", status=500, times=None)
    made = running.control("/categories", {"tagCategories": [{"externalId": "theirs"}]})
    category = made["tagCategories"][0]["id"]
    running.control("/tags", {"tags": [{"name": "theirs", "tagCategoryId": category}]})
    running.control("/activity-types", {"activityTypes": [{"code": "theirs", "label": "L", "enableIfNew": True}]})
    state = running.state()
    assert state["tags"][0]["category"] == state["activityTypes"][0]["code"] == "theirs"
    assert running.requests() == []


def test_a_person_deletes_in_the_console(running: Talking) -> None:
    """Each kind can be deleted; a category is deleted with its tags, and a deleted activity type can be revived."""
    made = running.control("/categories", {"tagCategories": [{"externalId": "c"}]})
    member = {"name": "member", "tagCategoryId": made["tagCategories"][0]["id"]}
    running.control("/tags", {"tags": [{"name": "T"}, {"name": "U"}, member]})
    running.control("/activity-types", {"activityTypes": [{"code": "A", "label": "A"}]})
    running.control("/delete", {"kind": "tag", "name": "T"})
    running.control("/delete", {"kind": "keyword", "tag": "U", "name": "U"})
    running.control("/delete", {"kind": "category", "name": "c"})
    running.control("/delete", {"kind": "activity-type", "name": "A"})
    state = running.state()
    assert [(tag["name"], tag["keywords"]) for tag in state["tags"]] == [("U", [])]
    assert state["categories"] == []
    assert state["activityTypes"][0]["deleted"] is True


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


def test_since_must_be_a_number(running: Talking) -> None:
    """400, not a traceback."""
    assert running.outsider.get("/requests", params={"since": "x"}).status_code == 400


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


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.example"}, {"origin": "null"}, {"host": "evil.example"}, {"host": "10.0.0.1"}]
)
def test_a_page_of_another_site_is_refused(running: Talking, headers: dict[str, str]) -> None:
    """A foreign Origin or Host header is refused before anything is done."""
    running.post("/tag", {"name": "T"})
    assert running.outsider.post("/reset", headers=headers).status_code == 403
    assert running.names() == ["T"]
