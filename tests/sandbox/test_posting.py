"""Posting time as a user does: which fields are filled in, left out, or taken from tags and activity types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from syncengine.sandbox import posting

from .conftest import Asking

NINE = int(datetime(2026, 1, 27, 9, 30, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def service_at_nine(service: Asking) -> Asking:
    service.clock.now = NINE - 1
    return service


def composed(service: Asking, **said: Any) -> dict[str, Any]:
    service.sandbox.do(posting.post, {"groupId": "g", **said})
    group: dict[str, Any] = service.posted("g")["group"]
    return group


def test_a_group_without_fields_gets_defaults(service_at_nine: Asking) -> None:
    """docs/interface.md 2.5: the default is one hour of one person, ending now."""
    group = composed(service_at_nine)
    assert (group["totalDurationSecs"], group["totalDurationHours"], group["localDate"]) == (3600, 1.0, "2026-01-27")
    assert (group["submissionTime"], group["timestamp"], group["tags"]) == (NINE, NINE, [])
    (row,) = group["timeRows"]
    assert (row["activityHour"], row["firstObservedInHour"], row["durationSecs"]) == (2026012708, 30, 3600)
    assert row["submittedDate"] == 20260127093000000
    assert group["user"]["externalId"] == "jd"
    assert "activityType" not in group


def test_a_row_whose_duration_is_beyond_all_numbers_counts_for_nothing(service: Asking) -> None:
    """It is sent as it was posted, to try what a connector does with it."""
    group = composed(service, timeRows=[{"durationSecs": 10**400}, {"durationSecs": 60}])
    assert (group["totalDurationSecs"], group["timeRows"][0]["durationSecs"]) == (60, 10**400)


def test_totals_are_sums_of_rows_unless_the_user_edited_them(service: Asking) -> None:
    """docs/interface.md 2.5: missing fields of rows are filled in, too."""
    rows = [{"durationSecs": 1000}, {"durationSecs": 100, "description": None, "activity": "@_Call_@"}]
    group = composed(service, timeRows=rows)
    assert (group["totalDurationSecs"], group["totalDurationHours"]) == (1100, 0.31)
    assert group["timeRows"][1]["description"] is None
    assert group["timeRows"][1]["source"] == "WT_DESKTOP"
    assert composed(service, timeRows=rows, totalDurationSecs=1200)["totalDurationSecs"] == 1200
    assert composed(service, timeRows=[])["totalDurationSecs"] == 0


def test_the_local_date_follows_the_offset(service_at_nine: Asking) -> None:
    """docs/interface.md 2.5: the date in the user's time zone."""
    assert composed(service_at_nine, tzOffsetMins=-600)["localDate"] == "2026-01-26"
    ahead = composed(service_at_nine, tzOffsetMins=15 * 60)
    assert ahead["localDate"] == "2026-01-28"
    assert (ahead["timeRows"][0]["timezone_offset_min"], "timezone_name" in ahead["timeRows"][0]) == (900, False)


def test_a_field_posted_as_null_is_left_out(service: Asking) -> None:
    """Groups without user, tag, rows or date exist in practice (docs/service.md §2); null asks for one."""
    left_out = ("user", "tags", "timeRows", "localDate", "activityType", "tzOffsetMins")
    assert not composed(service, **dict.fromkeys(left_out)).keys() & set(left_out)


def test_unknown_fields_are_sent_as_posted(service: Asking) -> None:
    """Unknown fields and values are passed on, but not `status` and `callerKey`, which the service sets itself."""
    group = composed(service, colour="blue", narrativeType="NEW", status="DONE", callerKey="k")
    assert (group["colour"], group["narrativeType"]) == ("blue", "NEW")
    assert not group.keys() & {"status", "callerKey"}


def test_a_tag_comes_with_what_the_service_knows_of_it(service: Asking) -> None:
    """docs/interface.md 2.1: a posted tag carries its description and external id."""
    service.told("upsertTag", name="T", description="D", externalId="4711", url="https://example.com")
    assert composed(service, tag="T")["tags"] == [{"name": "T", "path": "/", "description": "D", "externalId": "4711"}]
    assert composed(service, tags=[{"name": "T", "externalId": "own"}])["tags"][0]["externalId"] == "own"
    assert composed(service, tag="unknown")["tags"] == [{"name": "unknown"}]


def test_the_activity_type_is_the_chosen_one_or_the_default_of_the_tag(service: Asking) -> None:
    """docs/interface.md 2.1: applied when the user has not assigned one."""
    service.told("uploadActivityTypes", activityTypes=[{"code": "A", "label": "Ay"}, {"code": "B", "label": "Be"}])
    service.told("upsertTag", name="T", defaultActivityTypeCode="A")
    assert composed(service, tag="T")["activityType"] == {"code": "A", "label": "Ay"}
    assert composed(service, tag="T", activityType="B")["activityType"] == {"code": "B", "label": "Be"}
    assert composed(service, activityType={"code": "X", "label": "Y"})["activityType"] == {"code": "X", "label": "Y"}
    assert composed(service, activityType="gone")["activityType"] == {"code": "gone"}


def test_groups_posted_in_one_operation_share_their_submission_time(service: Asking) -> None:
    """docs/interface.md 4: each group still has an id of its own."""
    answer = service.sandbox.do(posting.post, {"groups": [{}, {}, {}]}).body
    assert len({group["groupId"] for group in answer["groups"]}) == 3
    assert len({posted["group"]["submissionTime"] for posted in service.state()["postedTime"]}) == 1


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
    """An invalid group answers 400, and none of the operation's groups is posted."""
    assert service.sandbox.do(posting.post, body).status == 400
    assert service.state()["postedTime"] == []
