"""The console page, requested without a browser: its form, its protection, and groups of any shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from syncengine.sandbox import console
from tests.support import loopback

from .conftest import Talking


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
