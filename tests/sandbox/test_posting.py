"""Posting time as a user does: fields that are filled in, left out, or taken from tags, keywords and activity types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from syncengine.sandbox import console, posting

from .conftest import Asking


def composed(service: Asking, **said: Any) -> dict[str, Any]:
    service.sandbox.do(posting.post, {"groupId": "g", **said})
    group: dict[str, Any] = service.posted("g")["group"]
    return group


def test_a_group_without_fields_gets_defaults(service: Asking) -> None:
    """docs/interface.md 2.5: one hour of one person, ending now, on the date in the user's time zone."""
    now = int(datetime(2026, 1, 27, 9, 30, tzinfo=UTC).timestamp() * 1000)
    service.clock.now = now - 1
    group = composed(service)
    assert (group["totalDurationSecs"], group["totalDurationHours"], group["localDate"]) == (3600, 1.0, "2026-01-27")
    assert (group["submissionTime"], group["timestamp"], group["tags"]) == (now, now, [])
    (row,) = group["timeRows"]
    assert (row["activityHour"], row["firstObservedInHour"], row["durationSecs"]) == (2026012708, 30, 3600)
    assert row["submittedDate"] == 20260127093000000
    assert group["user"]["externalId"] == "jd"
    assert "activityType" not in group
    assert composed(service, tzOffsetMins=-600)["localDate"] == "2026-01-26"
    ahead = composed(service, tzOffsetMins=15 * 60)
    assert ahead["localDate"] == "2026-01-28"
    assert (ahead["timeRows"][0]["timezone_offset_min"], "timezone_name" in ahead["timeRows"][0]) == (900, False)


def test_totals_are_sums_of_rows_unless_the_user_edited_them(service: Asking) -> None:
    """docs/interface.md 2.5: missing fields of rows are filled in, too. A duration beyond all numbers is just sent."""
    rows = [{"durationSecs": 1000}, {"durationSecs": 100, "description": None}, {"durationSecs": 10**400}]
    group = composed(service, timeRows=rows)
    assert (group["totalDurationSecs"], group["totalDurationHours"]) == (1100, 0.31)
    assert (group["timeRows"][1]["description"], group["timeRows"][1]["source"]) == (None, "WT_DESKTOP")
    assert group["timeRows"][2]["durationSecs"] == 10**400
    assert composed(service, timeRows=rows, totalDurationSecs=1200)["totalDurationSecs"] == 1200
    assert composed(service, timeRows=[])["totalDurationSecs"] == 0


def test_unknown_fields_are_sent_as_posted_and_null_leaves_a_field_out(service: Asking) -> None:
    """Groups without user, tag, rows or date exist in practice (docs/service.md §2). `status` and `callerKey` are set
    by the service itself."""
    left_out = ("user", "tags", "timeRows", "localDate", "activityType", "tzOffsetMins")
    group = composed(service, colour="blue", status="DONE", callerKey="k", **dict.fromkeys(left_out))
    assert group["colour"] == "blue"
    assert not group.keys() & {*left_out, "status", "callerKey"}


def test_a_tag_comes_with_what_the_service_knows_of_it(service: Asking) -> None:
    """docs/interface.md 2.1: its description and external id, and its default activity type if no other is chosen."""
    service.told("uploadActivityTypes", activityTypes=[{"code": "A", "label": "Ay"}, {"code": "B", "label": "Be"}])
    service.told("upsertTag", name="T", description="D", externalId="4711", defaultActivityTypeCode="A")
    group = composed(service, tag="T")
    assert group["tags"] == [{"name": "T", "path": "/", "description": "D", "externalId": "4711"}]
    assert group["activityType"] == {"code": "A", "label": "Ay"}
    assert composed(service, tags=[{"name": "T", "externalId": "own"}])["tags"][0]["externalId"] == "own"
    assert composed(service, tag="unknown")["tags"] == [{"name": "unknown"}]
    assert composed(service, tag="T", activityType="B")["activityType"] == {"code": "B", "label": "Be"}
    for chosen, sent in (({"code": "X", "label": "Y"}, {"code": "X", "label": "Y"}), ("gone", {"code": "gone"})):
        assert composed(service, activityType=chosen)["activityType"] == sent


@pytest.mark.parametrize(
    "body",
    [
        {"groups": {}},
        {"groups": [{}, 7]},
        {"tags": ["T"]},
        {"timeRows": ["row"]},
        {"totalDurationSecs": "1h"},
        {"totalDurationSecs": 10**400},
        {"groupId": 7},
        {"user": "Jane"},
        {"submissionTime": "now"},
        {"tzOffsetMins": 10**15},
    ],
)
def test_what_cannot_be_posted_is_refused(service: Asking, body: dict[str, Any]) -> None:
    """An invalid group answers 400, and none of the operation's groups is posted. Groups of one operation have ids of
    their own, and share their submission time (docs/interface.md 4)."""
    assert service.sandbox.do(posting.post, body).status == 400
    assert service.state()["postedTime"] == []
    answer = service.sandbox.do(posting.post, {"groups": [{}, {}, {}]}).body
    assert len({group["groupId"] for group in answer["groups"]}) == 3
    assert len({posted["group"]["submissionTime"] for posted in service.state()["postedTime"]}) == 1


# --- tags by the keywords in the text of rows (docs/interface.md 2.1)


def tags_of(service: Asking, *rows: dict[str, Any], **said: Any) -> list[str]:
    service.post("g", **{"timeRows": list(rows), **said})
    return [tag["name"] for tag in service.posted("g")["group"].get("tags", [])]


@pytest.fixture
def matters(service: Asking) -> Asking:
    """Two tags with keywords, and one without."""
    service.told("upsertTag", name="ACME-0042", additionalKeywords=["EP 1234567"], externalId="4711")
    service.told("upsertTag", name="Zürich AG", excludeTagNameKeyword=True, additionalKeywords=["Zürich"])
    service.told("upsertTag", name="Retired", excludeTagNameKeyword=True)
    return service


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Letter on EP 1234567.docx", ["ACME-0042"]),
        ("re: acme-0042, draft", ["ACME-0042"]),
        ("@_ZÜRICH calls_@", ["Zürich AG"]),
        ("Zu\u0308rich", ["Zürich AG"]),
        ("XACME-00421", ["ACME-0042"]),
        ("EP 1234567 for Zürich", ["ACME-0042", "Zürich AG"]),
        ("EP1234567", []),
        ("Retired", []),
        ("", []),
    ],
)
@pytest.mark.parametrize("field", ["activity", "description"])
def test_a_row_gets_the_tags_whose_keywords_it_holds(matters: Asking, field: str, text: str, names: list[str]) -> None:
    """Matching ignores case and finds parts of words, in the activity or the description; spaces must agree."""
    assert tags_of(matters, {"activity": None, "description": "", field: text}) == names


def test_each_row_is_matched_by_itself_unless_a_tag_is_chosen(matters: Asking) -> None:
    """docs/service.md §2: a chosen tag, an empty list of tags or `matchKeywords: false` switches matching off. A
    keyword does not match across two rows, nor once it is deleted, as for a retired tag."""
    first, second = {"description": "EP 12"}, {"description": "34567", "activity": "zürich"}
    assert tags_of(matters, first, second) == ["Zürich AG"]
    assert tags_of(matters, {"description": "EP 1234567"}, second) == ["ACME-0042", "Zürich AG"]
    row = {"description": "EP 1234567"}
    for said in ({"tags": []}, {"tags": None}, {"matchKeywords": False}):
        assert tags_of(matters, row, **said) == []
    assert tags_of(matters, row, tag="Zürich AG") == ["Zürich AG"]
    assert tags_of(matters, row, matchKeywords=True) == ["ACME-0042"]
    group = matters.posted("g")["group"]
    assert (group["tags"], "matchKeywords" in group) == (
        [{"name": "ACME-0042", "path": "/", "externalId": "4711"}],
        False,
    )
    matters.told("deleteKeyword", tagName="ACME-0042", keyword="EP 1234567")
    assert tags_of(matters, row) == []


# --- the fields and types of docs/interface.md 2.5 and 2.6


def shape(texts: str, numbers: str = "", **fields: Any) -> Any:
    """A type of objects with these fields, none of which is required, and no other field."""
    types = {**dict.fromkeys(texts.split(), str), **dict.fromkeys(numbers.split(), int), **fields}
    return msgspec.defstruct("Shape", [(name, kind, None) for name, kind in types.items()], forbid_unknown_fields=True)


USER = shape("userId name email externalId businessRole", "experienceWeightingPercent")
ROW = shape(
    "activity description modifier activityTypeCode source timezone_name",
    "activityHour firstObservedInHour durationSecs submittedDate timezone_offset_min",
)
GROUP = shape(
    "callerKey groupId description formattedNarrative localDate groupName narrativeType status durationSplitStrategy",
    "totalDurationSecs tzOffsetMins timestamp submissionTime",
    totalDurationHours=float,
    tags=list[shape("name path description externalId")],  # type: ignore[misc] # it is a type that is made here
    timeRows=list[ROW],
    activityType=shape("code label"),
    user=USER,
    originatingUser=USER,
)


@pytest.mark.parametrize(
    "posted",
    [
        {},
        {"tag": "T", "activityType": "A", "originatingUser": {"name": "Ann"}},
        {"tags": [{"name": "T"}], "totalDurationSecs": 1234, "tzOffsetMins": -120},
        {"user": None, "tags": None, "timeRows": None, "localDate": None},
        console.group_of({**console.EMPTY, "user": "Ann Bell", "tag": "T", "activities": "a\nb"})[0],
    ],
)
def test_a_posted_group_has_the_shape_of_the_specification(service: Asking, posted: dict[str, Any]) -> None:
    """A fetched or listed group has only known fields of the right type; a missing field is absent, never null."""
    service.told("upsertTag", name="T", description="D", externalId="4711", defaultActivityTypeCode="A")
    service.told("uploadActivityTypes", activityTypes=[{"code": "A", "label": "Ay"}])
    service.told("registerFetchClient")
    service.sandbox.do(posting.post, posted)
    for operation in ("fetchPostedTime", "listPostedTime"):
        (group,) = service.get(operation)[1]
        msgspec.convert(group, GROUP)
        assert {"groupId", "status", "submissionTime"} <= group.keys()
