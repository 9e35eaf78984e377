"""The start of a row is in the row's zone, else its offset, else the group's offset, else UTC."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from syncengine.posted_time.group import group_start, placed
from tests.posted_time.samples import group, row

NOON = {"activityHour": 2024050212, "firstObservedInHour": 30}


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ({"timezone_name": "Asia/Kolkata", "timezone_offset_min": 0}, "2024-05-02T18:00:00+05:30"),
        ({"timezone_name": "No/Where", "timezone_offset_min": -300}, "2024-05-02T07:30:00-05:00"),
        ({"timezone_name": None, "timezone_offset_min": None}, "2024-05-02T13:30:00+01:00"),
        ({"timezone_name": "../etc", "timezone_offset_min": 99999}, "2024-05-02T13:30:00+01:00"),
    ],
)
def test_the_most_specific_valid_zone_is_used(zone: dict[str, Any], expected: str) -> None:
    """The group's own offset is one hour east of UTC."""
    (found,) = placed(group(tzOffsetMins=60, timeRows=[row(**NOON, **zone)])).timeRows
    assert found.start is not None
    assert found.start.isoformat() == expected


def test_postedtime_timezone_overrides_the_zone_of_a_row() -> None:
    (found,) = placed(group(timeRows=[row(**NOON)]), ZoneInfo("America/New_York")).timeRows
    assert found.start is not None
    assert found.start.isoformat() == "2024-05-02T08:30:00-04:00"


def test_a_group_starts_with_its_first_row() -> None:
    """The order of the rows does not matter, and a row without an hour is ignored."""
    rows = [row(activityHour=2024050210), row(activityHour=None), row(activityHour=2024050208)]
    found = group_start(placed(group(timeRows=rows)))
    assert found is not None
    assert found.isoformat() == "2024-05-02T10:05:00+02:00"


@pytest.mark.parametrize("hour", [0, -1, 20240502, 2024130101, 99999999999, 2024050225])
def test_an_invalid_hour_gives_no_start(hour: int) -> None:
    """The row's start is None."""
    (found,) = placed(group(timeRows=[row(activityHour=hour)])).timeRows
    assert found.start is None


def test_without_rows_the_local_date_is_the_start() -> None:
    """Without a valid local date there is no start."""
    found = group_start(group(timeRows=[], localDate="2024-05-02", tzOffsetMins=120))
    assert found is not None
    assert found.isoformat() == "2024-05-02T00:00:00+02:00"
    assert group_start(group(timeRows=[], localDate="soon")) is None
    assert group_start(group(timeRows=[])) is None
