"""Durations are whole seconds, chosen, weighted and rounded as the project configures."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from syncengine.posted_time.durations import (
    NEGATIVE,
    NOTHING,
    UNREADABLE,
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
    """`from` chooses which of the two is delivered."""
    edited = group(totalDurationSecs=5000, timeRows=[row(durationSecs=1000), row(durationSecs=2000)])
    found = duration_of(edited, settings())
    assert (found.seconds, found.totalSeconds, found.workedSeconds, found.isEdited) == (5000, 5000, 3000, True)
    assert duration_of(edited, settings(from_=DurationFrom.ROWS)).seconds == 3000


def test_a_missing_total_or_missing_rows_are_substituted() -> None:
    """Without a total the rows count; without rows the total counts, even with `from: rows`."""
    assert duration_of(group(totalDurationSecs=None), settings()).seconds == 3600
    assert duration_of(group(timeRows=[]), settings(from_=DurationFrom.ROWS)).seconds == 3600


HOURS = {
    "hours alone": ({"totalDurationHours": 1.5, "timeRows": []}, 5400),
    "hours as text": ({"totalDurationHours": "1.5", "timeRows": []}, 5400),
    "hours that are not whole seconds": ({"totalDurationHours": 1.1001, "timeRows": []}, 3960),
    "hours that were changed": ({"totalDurationHours": 2, "timeRows": [row(durationSecs=3600)]}, 7200),
    "hours that match the rows, rounded": ({"totalDurationHours": 2.78, "timeRows": [row(durationSecs=10000)]}, 10000),
    "seconds and hours": ({"totalDurationSecs": 10000, "totalDurationHours": 2.78, "timeRows": []}, 10000),
    "seconds and unreadable hours": ({"totalDurationSecs": 60, "totalDurationHours": "x"}, 60),
}


@pytest.mark.parametrize(("given", "expected"), HOURS.values(), ids=HOURS.keys())
def test_hours_are_the_total_where_there_are_no_seconds(given: dict[str, Any], expected: int) -> None:
    """If the total comes in hours only, other hours are another content."""
    posted = group(**{"totalDurationSecs": None, **given})
    found = duration_of(posted, settings())
    assert objection(posted, settings()) is None
    assert (found.seconds, found.totalSeconds) == (expected, expected)
    other = group(**{"totalDurationSecs": None, **given, "totalDurationHours": 7})
    assert (digest(other) == digest(posted)) is ("totalDurationSecs" in given)


UNKNOWN = {
    "no duration at all": {"timeRows": []},
    "hours that are no number": {"totalDurationHours": "x", "timeRows": []},
    "hours that are no number, with rows": {"totalDurationHours": "1,5"},
    "rows without a duration": {"timeRows": [row(durationSecs=None)]},
    "one row without a duration": {"timeRows": [row(), row(durationSecs=None)]},
}


@pytest.mark.parametrize("given", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_an_unknown_duration_is_unreadable_and_not_zero(given: dict[str, Any]) -> None:
    """A sum with an unknown part is unknown as well."""
    assert objection(group(**{"totalDurationSecs": None, **given}), settings()) == UNREADABLE


def test_a_row_of_unknown_length_is_unknown_only_where_rows_count() -> None:
    """The posted total is used in spite of such a row, except with `from: rows`."""
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
    """7 % of 100 s is 7 s, not 7.000000000000001 s rounded up; halves are rounded up."""
    rows = [row(durationSecs=seconds)]
    found = duration_of(group(**weighted(percent, totalDurationSecs=seconds, timeRows=rows)), settings())
    assert found.seconds == expected


@pytest.mark.parametrize("percent", [None, 0, -5, 101, 100.1, "x", True])
def test_a_missing_or_invalid_weighting_is_ignored(percent: object) -> None:
    """Including 0 and percentages outside 0 to 100."""
    assert duration_of(group(**weighted(percent)), settings(weighting=Weighting.ALWAYS)).seconds == 3600


@pytest.mark.parametrize("odd", [2**63, 10**30, "1h", True, [3], {}, float("nan"), float("inf"), "nan"], ids=repr)
@pytest.mark.parametrize("place", ["total", "row"])
def test_a_duration_that_cannot_be_read_is_refused(odd: object, place: str) -> None:
    """It is neither zero nor replaced by the rows: nothing but the posted time may be billed."""
    given = {"totalDurationSecs": odd} if place == "total" else {"timeRows": [row(durationSecs=odd)]}
    assert objection(group(**given), settings()) == UNREADABLE
    again = msgspec.json.decode(stored(raw(**given)))
    assert objection(read_group(again), settings()) == UNREADABLE


def test_a_duration_below_zero_is_refused() -> None:
    """A negative row is accepted if the sum of the rows is positive."""
    assert objection(group(totalDurationSecs=-100), settings()) == NEGATIVE
    assert (
        objection(group(timeRows=[row(durationSecs=-1), row(durationSecs=2)], totalDurationSecs=1), settings()) is None
    )


BELOW_ZERO = {
    "the total": ({"totalDurationSecs": -5}, {}),
    "a fraction of a second": ({"totalDurationSecs": -0.4, "timeRows": []}, {}),
    "weighted to less than a second": (weighted(1, totalDurationSecs=-5), {"weighting": Weighting.ALWAYS}),
    "hours": ({"totalDurationSecs": None, "totalDurationHours": "-1.5", "timeRows": []}, {}),
    "the rows": ({"timeRows": [row(durationSecs=-5)]}, {"from_": DurationFrom.ROWS}),
    "the total, with `from: rows`": ({"totalDurationSecs": -5}, {"from_": DurationFrom.ROWS}),
}


@pytest.mark.parametrize("unit", [None, 360.0])
@pytest.mark.parametrize(("given", "chosen"), BELOW_ZERO.values(), ids=BELOW_ZERO.keys())
def test_a_negative_duration_is_refused_before_rounding(
    given: dict[str, Any], chosen: dict[str, Any], unit: float | None
) -> None:
    """-5 s never become six minutes, whatever is rounded, weighted or chosen."""
    assert objection(group(**given), settings(**chosen, round_up_to=unit)) == NEGATIVE


def test_zero_seconds_are_never_rounded_up() -> None:
    """0 s are delivered as 0 s, but refused if the project rounds up. A fraction of a second left by weighting is
    rounded up."""
    nothing = group(totalDurationSecs=0, timeRows=[])
    assert (objection(nothing, settings()), duration_of(nothing, settings()).seconds) == (None, 0)
    assert objection(nothing, settings(round_up_to=360.0)) == NOTHING
    little = group(**weighted(1, totalDurationSecs=49, timeRows=[row(durationSecs=49)]))
    assert (objection(little, settings(round_up_to=360.0)), duration_of(little, settings()).seconds) == (None, 0)
    assert duration_of(little, settings(round_up_to=360.0)).seconds == 360


def test_an_edited_total_is_weighted_only_with_weighting_always() -> None:
    """`unless-edited` leaves a total that the user typed as it is."""
    edited = group(**weighted(50, totalDurationSecs=4000))
    untouched = group(**weighted(50))
    by = {w: (duration_of(edited, settings(weighting=w)).seconds, duration_of(untouched, settings(weighting=w)).seconds)
          for w in Weighting}  # fmt: skip
    assert by == {Weighting.ALWAYS: (2000, 1800), Weighting.NEVER: (4000, 3600), Weighting.UNLESS_EDITED: (4000, 1800)}


def test_rounding_up_comes_last() -> None:
    """After weighting; hours are computed from the rounded seconds."""
    found = duration_of(group(**weighted(50)), settings(round_up_to=360.0, weighting=Weighting.ALWAYS))
    assert (found.seconds, found.hours) == (1800, Decimal("0.5"))
    assert duration_of(group(totalDurationSecs=3601), settings(round_up_to=360.0)).seconds == 3960


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (10000, "2h 46m 40s"), (86400, "1d"), (93784, "1d 2h 3m 4s"), (-60, "-1m")],
)
def test_durations_in_words_use_days(seconds: int, words: str) -> None:
    assert in_words(seconds) == words


def test_halves_are_rounded_up() -> None:
    """Not to the nearest even number, and 2.675 counts as exactly 2.675."""
    assert [half_up(Decimal(text)) for text in ("0.5", "1.5", "2.5", "-2.5", "2.49")] == [1, 2, 3, -3, 2]
    assert (rounded(2.675, 2), hours(10000, 3), hours(1, 2)) == (Decimal("2.68"), Decimal("2.778"), Decimal("0.00"))


@pytest.mark.parametrize(
    ("seconds", "unit", "expected"),
    [(0, 0, 0), (0.2, 360, 360), (1, 360, 360), (360, 360, 360), (361, 360, 720), (7, 0, 7)],
)
def test_round_up_to_a_multiple_of_the_unit(seconds: int, unit: int, expected: int) -> None:
    """A unit of zero means no rounding."""
    assert round_up(seconds, unit) == expected
