"""The sandbox over HTTP: keys, paths, methods and bodies of its interface, its control API, and its console page."""

import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from syncengine.errors import SyncengineError
from syncengine.sandbox import console
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
            own = "127.0.0.1"  # the only address of this machine
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
    running.call("/tag", {"name": "T"})
    url = running.control.base_url.copy_with(path=path)
    assert running.control.post(url, headers=headers, data={"user": "A", "minutes": "60"}).status_code == 403
    assert (running.tags(), running.state()["postedTime"]) == (["T"], [])


# --- the console page, requested without a browser: its form, its protection, and groups of any shape


@pytest.fixture
def browser(running: Talking) -> Iterator[httpx.Client]:
    """An HTTP client that sends to the console what a browser would send."""
    root = running.connector.base_url.copy_with(path="/")
    with loopback.client(base_url=root) as client:
        yield client


NO_MINUTES = ("1441", "0", "", "-1", "1.5", "soon", "٣", "9" * 5000)


@pytest.mark.parametrize(
    ("text", "seconds"), [("1", 60), ("90", 5400), ("1440", 86400), *((text, None) for text in NO_MINUTES)]
)
def test_a_duration_is_a_number_of_minutes(text: str, seconds: int | None) -> None:
    """It must be more than zero and at most a day."""
    body, problems = console.group_of({**console.EMPTY, "minutes": text})
    assert (None if problems else body["totalDurationSecs"]) == seconds


@pytest.mark.parametrize(("lines", "shares"), [("", [100]), ("a", [100]), ("a\nb\n\n c", [34, 33, 33])])
def test_the_time_is_divided_among_the_activities(lines: str, shares: list[int]) -> None:
    """The shares add up to the whole time; manual rows carry their names wrapped as in docs/service.md §2."""
    rows = console.rows_of(lines, 100)
    assert [row["durationSecs"] for row in rows] == shares
    assert [row["activity"] for row in rows] == [f"@_{name}_@" for name in lines.split() or ["empty"]]


@pytest.mark.parametrize(
    ("zone", "offset", "minutes", "name"),
    [
        ("America/Argentina/Buenos_Aires", "-180", -180, "America/Argentina/Buenos_Aires"),
        ("<b>", "99999", 0, None),
        ("Etc/GMT+3", "900", 0, "Etc/GMT+3"),
    ],
)
def test_the_browsers_time_zone_is_used(zone: str, offset: str, minutes: int, name: str | None) -> None:
    """An unknown time zone or an impossible offset is treated as absent."""
    body = console.group_of({**console.EMPTY, "zone": zone, "offset": offset, "activities": "a\nb"})[0]
    assert (body["tzOffsetMins"], [row.get("timezone_name") for row in body["timeRows"]]) == (minutes, [name, name])


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0s"), (59, "59s"), (3600, "1h"), (10000, "2h 46m 40s"), (360000, "100h"), (None, ""), (-5, "-5"), ("x", "x")],
)
def test_a_duration_is_shown_in_hours_minutes_and_seconds(seconds: Any, shown: str) -> None:
    """Parts that are zero are left out; a value that is no duration is shown unchanged."""
    assert console.shown_duration(seconds) == shown


ODD: list[dict[str, Any]] = [
    {"user": None, "tags": None, "timeRows": None, "totalDurationSecs": None, "description": None},
    {"user": {"name": None}, "tags": [{}], "timeRows": []},
    {"tags": [{"name": None}], "description": 7, "activityType": {}},
    {"tags": [{"name": {"a": 1}}], "user": {"name": ["b"]}},
    {"submissionTime": -(10**18)},
    {"totalDurationSecs": -(10**18)},
    {"timeRows": [{"durationSecs": 10**18}, {"durationSecs": -1}, {"durationSecs": "long"}]},
    {"groupId": " \u0000\"'<>&", "description": "\u202e\u0007"},
]


def test_groups_of_any_shape_are_shown(running: Talking, browser: httpx.Client) -> None:
    """docs/service.md §2: any field of a group may be missing; the page shows the group all the same."""
    for group in ODD:
        running.say("/posted-time", group)
    for path in ("/", "/console/live"):
        response = browser.get(path)
        assert (response.status_code, response.text.count("<tr data-group=")) == (200, len(ODD))


def test_the_page_says_what_is_missing_and_how_much_it_leaves_out(running: Talking, browser: httpx.Client) -> None:
    """It marks a tag without keywords, as a retired tag is, and says when it has received no requests. Looking at the
    page is none, and meets no fault. A table shows its first rows and its total; the search finds the other tags,
    whatever their letters' case."""
    running.fault(operation="*", status=500, times=None)
    assert "has sent none since this console was started" in browser.get("/").text
    assert running.requests() == []
    names = [{"name": f"T{number:04}"} for number in range(130)]
    running.say("/tags", {"tags": [{"name": "OLD", "excludeTagNameKeyword": True}, *names]})
    shown = browser.get("/").text
    assert shown.count("tags no time") == 1
    assert (">T0098<" in shown, ">T0099<" in shown, "Only the first 100 are shown." in shown) == (True, False, True)
    found = browser.get("/console/live", params={"find": "t012"}).text
    assert (">T0129<" in found, ">T0098<" in found, "are shown." in found) == (True, False, False)


def test_the_form_posts_and_leads_back(running: Talking, browser: httpx.Client) -> None:
    """It answers with a redirect to the page, so that a reload does not post again. Without a chosen tag, a group gets
    every tag with a keyword in one of its activities."""
    running.say("/tags", {"tags": [{"name": "ACME"}, {"name": "Zürich"}, {"name": "Other"}]})
    activities = "Call with acme\nLetter to Zürich"
    for chosen in ({"tag": "T"}, {}):
        sent = {"user": "Ann", "minutes": "60", "activities": activities, **chosen}
        response = browser.post("/console/post", data=sent)
        assert (response.status_code, response.headers["location"]) == (303, "/")
    chosen, matched = (posted["group"] for posted in running.state()["postedTime"])
    assert (chosen["tags"], chosen["totalDurationSecs"]) == ([{"name": "T"}], 3600)
    assert [tag["name"] for tag in matched["tags"]] == ["ACME", "Zürich"]
    assert ">ACME, Zürich</td>" in browser.get("/").text


def test_all_errors_of_a_form_are_shown_at_once(running: Talking, browser: httpx.Client) -> None:
    """An invalid form answers 400, posts nothing, and shows the typed text again, escaped. A group that is not there
    cannot be offered, for instance from a page that was open during a reset."""
    response = browser.post("/console/post", data={"user": " ", "minutes": "x", "description": "</textarea><b>"})
    assert response.status_code == 400
    for words in ('id="user-problem"', 'id="minutes-problem"', "&lt;/textarea&gt;&lt;b&gt;"):
        assert words in response.text
    assert browser.post("/console/post", content=b"\xff\xfe%ff").status_code == 400
    assert running.state()["postedTime"] == []
    for group, status in (({"groupId": "no"}, 404), ({}, 400)):
        assert browser.post("/console/offer", data=group).status_code == status


def test_a_late_request_is_shown_with_its_later_result_and_a_long_body_in_part(
    running: Talking, browser: httpx.Client
) -> None:
    running.fault(operation="deleteTag", late={"answer": 504})
    running.call("/tag/delete", {"name": "T"})
    assert '504<br><span class="quiet">not executed yet</span>' in browser.get("/").text
    running.say("/late/execute", {})
    assert '504<br><span class="quiet">executed late: 404</span>' in browser.get("/console/live").text
    running.call("/tag/batch", {"tags": [{"name": f"T{number}", "description": "d" * 300} for number in range(2000)]})
    assert len(browser.get("/console/live").content) < 200_000


@pytest.mark.parametrize("path", ["/", "/console/live", "/console/console.js", "/console/pages.css"])
def test_the_page_loads_nothing_from_elsewhere(running: Talking, browser: httpx.Client, path: str) -> None:
    """The Content-Security-Policy forbids other sources and inline scripts."""
    response = browser.get(path)
    assert response.status_code == 200
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "unsafe" not in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"


def test_the_page_does_not_show_keys(running: Talking, browser: httpx.Client) -> None:
    """The page shows the webhook's URL, but neither its key nor the connector's credentials."""
    running.call("/postedtime/subscribe", {"callbackUrl": "http://127.0.0.1:9/hook", "callerKey": "k-5e1f"})
    answer = running.call("/team/managed/config", {"connectorType": "t"}).json()
    shown = browser.get("/").text
    assert "http://127.0.0.1:9/hook" in shown
    assert not any(secret in shown for secret in ("k-5e1f", answer["serviceKey"], answer["serviceSessionToken"]))
