"""Seconds are counted in whole numbers, weighted and rounded as the project says."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest

from syncengine.posted_time.durations import (
    NEGATIVE,
    NOTHING,
    UNREADABLE,
    NotPositive,
    duration_of,
    half_up,
    hours,
    in_words,
    objection,
    round_up,
    rounded,
)
from syncengine.posted_time.group import digest, read_group, stored
from syncengine.project.delivery_schema import DurationFrom, DurationSection, Weighting
from tests.posted_time.samples import group, raw, row


def settings(**given: Any) -> DurationSection:
    return DurationSection.model_construct(**{"from_": None, "weighting": None, "round_up_to": None, **given})


def weighted(percent: Any, **given: Any) -> dict[str, Any]:
    return {"user": {"name": "Jo", "experienceWeightingPercent": percent}, **given}


def test_total_is_what_was_posted_and_worked_is_the_rows() -> None:
    """Both are kept apart, and `from` chooses."""
    edited = group(totalDurationSecs=5000, timeRows=[row(durationSecs=1000), row(durationSecs=2000)])
    found = duration_of(edited, settings())
    assert (found.seconds, found.totalSeconds, found.workedSeconds, found.isEdited) == (5000, 5000, 3000, True)
    assert duration_of(edited, settings(from_=DurationFrom.ROWS)).seconds == 3000


def test_what_is_missing_is_made_up_for() -> None:
    """No total: the rows. No rows: the total, even if rows were asked for."""
    assert duration_of(group(totalDurationSecs=None), settings()).seconds == 3600
    assert duration_of(group(timeRows=[]), settings(from_=DurationFrom.ROWS)).seconds == 3600


HOURS = {
    "hours alone": ({"totalDurationHours": 1.5, "timeRows": []}, 5400),
    "hours as text": ({"totalDurationHours": "1.5", "timeRows": []}, 5400),
    "hours that are no whole seconds": ({"totalDurationHours": 1.1001, "timeRows": []}, 3960),
    "hours that were changed": ({"totalDurationHours": 2, "timeRows": [row(durationSecs=3600)]}, 7200),
    "hours that are the rows', rounded": ({"totalDurationHours": 2.78, "timeRows": [row(durationSecs=10000)]}, 10000),
    "seconds and hours": ({"totalDurationSecs": 10000, "totalDurationHours": 2.78, "timeRows": []}, 10000),
    "seconds, and hours that cannot be read": ({"totalDurationSecs": 60, "totalDurationHours": "x"}, 60),
}


@pytest.mark.parametrize(("given", "expected"), HOURS.values(), ids=HOURS.keys())
def test_hours_are_the_total_where_there_are_no_seconds(given: dict[str, Any], expected: int) -> None:
    """As exact as they can be, and part of what was posted: other hours are other content."""
    posted = group(**{"totalDurationSecs": None, **given})
    found = duration_of(posted, settings())
    assert objection(posted, settings()) is None
    assert (found.seconds, found.totalSeconds) == (expected, expected)
    other = group(**{"totalDurationSecs": None, **given, "totalDurationHours": 7})
    assert (digest(other) == digest(posted)) is ("totalDurationSecs" in given)


UNKNOWN = {
    "nothing": {"timeRows": []},
    "hours that are no number": {"totalDurationHours": "x", "timeRows": []},
    "hours that are no number, beside rows": {"totalDurationHours": "1,5"},
    "rows without a duration": {"timeRows": [row(durationSecs=None)]},
    "one of the rows": {"timeRows": [row(), row(durationSecs=None)]},
}


@pytest.mark.parametrize("given", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_a_duration_that_nobody_gave_is_not_zero(given: dict[str, Any]) -> None:
    """It is unknown, and so is a sum with an unknown part."""
    assert objection(group(**{"totalDurationSecs": None, **given}), settings()) == UNREADABLE


def test_a_row_of_unknown_length_is_unknown_only_where_rows_count() -> None:
    """The posted total counts without them, unless the project counts rows."""
    posted = group(timeRows=[row(), row(durationSecs=None)])
    assert objection(posted, settings()) is None
    assert objection(posted, settings(from_=DurationFrom.ROWS)) == UNREADABLE


@pytest.mark.parametrize(
    ("percent", "seconds", "expected"),
    [
        (33.3, 3600, 1199),
        (12.5, 3600, 450),
        ("50", 3600, 1800),
        (0.1, 1000, 1),
        (7, 100, 7),
        (50, 101, 51),
        (33, 100, 33),
        (1, 49, 0),
        (1, 50, 1),
        (100, 99, 99),
    ],
)
def test_weighting_is_exact(percent: Any, seconds: int, expected: int) -> None:
    """100 s at 7 % is 7 s, not 7.000000000000001 rounded up; a half goes up."""
    rows = [row(durationSecs=seconds)]
    found = duration_of(group(**weighted(percent, totalDurationSecs=seconds, timeRows=rows)), settings())
    assert found.seconds == expected


@pytest.mark.parametrize("percent", [None, 0, -5, 101, 100.1, "x", True])
def test_a_weighting_that_is_none_does_not_weight(percent: object) -> None:
    """None, 0 and what is out of range."""
    assert duration_of(group(**weighted(percent)), settings(weighting=Weighting.ALWAYS)).seconds == 3600


@pytest.mark.parametrize("odd", [2**63, 10**30, "1h", True, [3], {}, float("nan"), float("inf"), "nan"], ids=repr)
@pytest.mark.parametrize("place", ["total", "row"])
def test_a_duration_that_cannot_be_read_is_no_duration(odd: object, place: str) -> None:
    """Neither nothing nor the rows' instead: what somebody posted is not known, and nothing else may be billed."""
    given = {"totalDurationSecs": odd} if place == "total" else {"timeRows": [row(durationSecs=odd)]}
    assert objection(group(**given), settings()) == UNREADABLE
    again = orjson.loads(stored(raw(**given)))
    assert objection(read_group(again), settings()) == UNREADABLE


def test_a_duration_below_zero_is_refused() -> None:
    """Nobody works for less than no time; where rows below zero add up to more, that counts."""
    assert objection(group(totalDurationSecs=-100), settings()) == NEGATIVE
    assert (
        objection(group(timeRows=[row(durationSecs=-1), row(durationSecs=2)], totalDurationSecs=1), settings()) is None
    )


BELOW_ZERO = {
    "the total": ({"totalDurationSecs": -5}, {}),
    "less than a second": ({"totalDurationSecs": -0.4, "timeRows": []}, {}),
    "so little of it that nothing is left": (weighted(1, totalDurationSecs=-5), {"weighting": Weighting.ALWAYS}),
    "hours": ({"totalDurationSecs": None, "totalDurationHours": "-1.5", "timeRows": []}, {}),
    "the rows": ({"timeRows": [row(durationSecs=-5)]}, {"from_": DurationFrom.ROWS}),
    "the total, where the rows count": ({"totalDurationSecs": -5}, {"from_": DurationFrom.ROWS}),
}


@pytest.mark.parametrize("unit", [None, 360.0])
@pytest.mark.parametrize(("given", "chosen"), BELOW_ZERO.values(), ids=BELOW_ZERO.keys())
def test_what_is_below_zero_is_refused_before_it_is_rounded(
    given: dict[str, Any], chosen: dict[str, Any], unit: float | None
) -> None:
    """-5 s are not six minutes, whatever is rounded, weighted or counted."""
    assert objection(group(**given), settings(**chosen, round_up_to=unit)) == NEGATIVE


def test_nothing_is_delivered_as_nothing_and_never_rounded_up() -> None:
    """0 s are 0 s; with a unit they are refused, so that nobody pays six minutes for nothing. A part of a second that
    weighting left is more than nothing."""
    nothing = group(totalDurationSecs=0, timeRows=[])
    assert (objection(nothing, settings()), duration_of(nothing, settings()).seconds) == (None, 0)
    assert objection(nothing, settings(round_up_to=360.0)) == NOTHING
    little = group(**weighted(1, totalDurationSecs=49, timeRows=[row(durationSecs=49)]))
    assert (objection(little, settings(round_up_to=360.0)), duration_of(little, settings()).seconds) == (None, 0)
    assert duration_of(little, settings(round_up_to=360.0)).seconds == 360


@pytest.mark.parametrize("seconds", [0, -1, -360, -0.5, Decimal(0)])
def test_nothing_that_is_not_positive_can_be_rounded_up(seconds: int | Decimal) -> None:
    """Upwards from below zero is towards zero, which is no rounding that anybody wants."""
    with pytest.raises(NotPositive):
        round_up(seconds, 360)


def test_an_edited_total_is_weighted_only_always() -> None:
    """Who typed a total meant that total."""
    edited = group(**weighted(50, totalDurationSecs=4000))
    untouched = group(**weighted(50))
    by = {w: (duration_of(edited, settings(weighting=w)).seconds, duration_of(untouched, settings(weighting=w)).seconds)
          for w in Weighting}  # fmt: skip
    assert by == {
        Weighting.ALWAYS: (2000, 1800),
        Weighting.NEVER: (4000, 3600),
        Weighting.UNLESS_EDITED: (4000, 1800),
    }


def test_rounding_up_comes_last() -> None:
    """And hours are of what is delivered."""
    found = duration_of(group(**weighted(50)), settings(round_up_to=360.0, weighting=Weighting.ALWAYS))
    assert (found.seconds, found.hours) == (1800, Decimal("0.5"))
    assert duration_of(group(totalDurationSecs=3601), settings(round_up_to=360.0)).seconds == 3960


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (10000, "2h 46m 40s"), (86400, "1d"), (93784, "1d 2h 3m 4s"), (-60, "-1m")],
)
def test_durations_in_words_keep_days(seconds: int, words: str) -> None:
    """A week of 40 hours reads as days and hours."""
    assert in_words(seconds) == words


def test_halves_go_up() -> None:
    """Not to the even neighbour, and 2.675 is 2.675."""
    assert [half_up(Decimal(text)) for text in ("0.5", "1.5", "2.5", "-2.5", "2.49")] == [1, 2, 3, -3, 2]
    assert (rounded(2.675, 2), hours(10000, 3), hours(1, 2)) == (Decimal("2.68"), Decimal("2.778"), Decimal("0.00"))


@pytest.mark.parametrize(
    ("seconds", "unit", "expected"),
    [(0, 0, 0), (0.2, 360, 360), (1, 360, 360), (360, 360, 360), (361, 360, 720), (7, 0, 7)],
)
def test_rounding_up_to_a_unit(seconds: int, unit: int, expected: int) -> None:
    """Six minutes are six minutes; no unit, no rounding."""
    assert round_up(seconds, unit) == expected
