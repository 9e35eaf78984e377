"""Any JSON of the service can be read as a group; what changed in it is told by its digest and listed by field."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
from syncengine.posted_time.group import (
    EMPTY_TITLE,
    ContentChange,
    changes,
    changes_of,
    digest,
    group_start,
    last_changes,
    placed,
    read_group,
    stored,
)
from syncengine.project.delivery_schema import DurationFrom, DurationSection, Weighting
from syncengine.render.posted_time import changes_lines
from syncengine.service.answers import read_loosely
from syncengine.state.inbox_model import InboxEntry, Offer
from tests.posted_time.projects import bare_route
from tests.posted_time.samples import group, raw, row
from tests.support.inbox import open_inbox
from tests.support.profiles import tried

ROUTE = bare_route()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([*raw(), "localDate", "tzOffsetMins", "activityType", "narrativeType"])
ROWS = st.lists(st.dictionaries(st.sampled_from(list(row())), JSON, max_size=6), max_size=3)
ANYTHING = st.dictionaries(NAMES, JSON, max_size=8) | st.builds(
    lambda whole, rows: {**whole, "timeRows": rows}, st.dictionaries(NAMES, JSON, max_size=4), ROWS
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ANYTHING)
def test_any_json_object_is_read_hashed_stored_and_measured(sent: dict[str, Any]) -> None:
    """No missing field and no odd type or value raises an error; a duration that cannot be read has a message."""
    found = read_group(sent)
    assert digest(found) == digest(read_group(sent))
    assert isinstance(msgspec.json.decode(stored(sent)), dict)
    placed(found)
    if objection(found, ROUTE.duration) != UNREADABLE:
        variables = ROUTE.variables(found)
        assert duration_of(found, ROUTE.duration) == variables["duration"]
        assert isinstance(ROUTE.narrative.render(variables), str)


def test_an_invalid_field_name_does_not_reject_the_group() -> None:
    """At any depth; pydantic would reject the whole group."""
    odd: dict[Any, Any] = {"\ud800": 1, "a\x00": [], 5: 6}
    found = read_group({**raw(), **odd, "tags": [{"name": "ACME-0042", **odd}], "user": {"name": "Jo", **odd}})
    assert (found.groupId, found.tag and found.tag.name, found.user and found.user.name) == ("g1", "ACME-0042", "Jo")


MANUAL: list[tuple[dict[str, Any], str, str | None]] = [
    ({"activity": "@_Phone call_@", "description": None}, "Phone call", None),
    ({"activity": "@_empty_@", "description": "@_empty_@"}, EMPTY_TITLE, EMPTY_TITLE),
    ({"activity": None, "description": ""}, EMPTY_TITLE, ""),
    ({"activity": "  ", "description": "x"}, EMPTY_TITLE, "x"),
    ({"activity": "a @ b_c"}, "a @ b_c", None),
]


def test_manual_names_are_unwrapped_and_empty_titles_named() -> None:
    """The service wraps a name that a user typed as `@_Name_@`."""
    found = read_group({"timeRows": [sent for sent, *_ in MANUAL]}).timeRows
    assert [(row.activity, row.description) for row in found] == [(row[1], row[2]) for row in MANUAL]


def test_a_group_is_stored_without_its_caller_key_and_what_databases_reject() -> None:
    """NUL and half surrogate pairs are replaced; the key only proves to the receiver that the service is calling."""
    assert "s3cr3t" not in stored(raw()) + repr(group())
    assert stored({"groupId": "a\x00b", "x": ["\ud800"]}) == '{"groupId":"a�b","x":["�"]}'
    assert read_group({"groupId": "a\x00"}).groupId == "a�"


def test_a_whole_number_beyond_64_bits_keeps_its_digits() -> None:
    """It is stored as text, whether or not something else in the answer is no JSON."""
    for odd, kept in (("1", 1), ("NaN", "nan")):
        found = read_loosely(f'{{"large": {10**40}, "least": {-(2**63)}, "odd": {odd}}}'.encode())
        assert json.loads(stored(found)) == {"large": str(10**40), "least": -(2**63), "odd": kept}


SAME: list[dict[str, Any]] = [
    {"callerKey": "other"},
    {"status": "SUCCESS"},
    {"submissionTime": 5},
    {"formattedNarrative": "x"},
    {"newField": 1},
    {"tags": [{"name": "ACME-0042", "description": "renamed since", "externalId": "9"}]},
    {"user": {"name": "Jo Married", "externalId": "jd", "experienceWeightingPercent": 50}},
]
OTHER: list[dict[str, Any]] = [
    {"totalDurationSecs": 3601},
    {"description": "x"},
    {"tags": []},
    {"tags": [{"name": "ACME-0043"}]},
    {"timeRows": []},
    {"timeRows": [row(durationSecs=1)]},
    {"timeRows": [row(description="x")]},
    {"timeRows": [row(), row()]},
    {"activityType": {"code": "A101"}},
    {"user": {"externalId": "xx"}},
    {"narrativeType": "NARRATIVE_ONLY"},
]


@pytest.mark.parametrize("change", SAME)
def test_fields_that_the_service_adds_are_no_change(change: dict[str, Any]) -> None:
    """Nor is anything else that changes without the user: neither the digest nor the list of changes shows it."""
    assert (digest(group(**change)), told({}, change)) == (digest(group()), [])


@pytest.mark.parametrize("number", [3600.0, "3600", "3600.0"])
def test_the_digest_depends_neither_on_the_form_of_a_number_nor_on_the_order_of_rows(number: object) -> None:
    """Integer, float or string, in the total, in a row and in hours."""
    rows = [row(durationSecs=number), row(durationSecs=5)]
    assert digest(group(timeRows=rows)) == digest(group(timeRows=[row(durationSecs=5), row()]))
    assert digest(group(totalDurationSecs=number)) == digest(group())
    hours = [digest(group(totalDurationSecs=None, totalDurationHours=hours)) for hours in (1, 1.0, "1.0")]
    assert len(set(hours)) == 1


@pytest.mark.parametrize("change", OTHER)
def test_a_change_by_the_user_changes_the_digest_and_is_listed(change: dict[str, Any]) -> None:
    assert digest(group(**change)) != digest(group())
    assert told({}, change)


# --- the list of changes


def told(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, object, object]]:
    found = changes(stored(raw("g", **before)), stored(raw("g", **after)))
    return [(one.field, one.before, one.after) for one in found]


CHANGED: list[tuple[dict[str, Any], dict[str, Any], list[tuple[str, object, object]]]] = [
    ({"description": "x"}, {"description": "y"}, [("description", "x", "y")]),
    ({"description": "x"}, {"description": None}, [("description", "x", None)]),
    ({"tags": [{"name": "A"}]}, {"tags": [{"name": "B"}]}, [("tags[0]", "A", "B")]),
    ({"tags": [{"name": "A"}]}, {"tags": []}, [("tags[0]", "A", None)]),
    ({"tags": [{"name": "A"}]}, {"tags": [{"name": n} for n in "AC"]}, [("tags[1]", None, "C")]),
    ({"timeRows": [row()]}, {"timeRows": [row(durationSecs=5)]}, [("timeRows[0].durationSecs", 3600, 5)]),
    (
        {"timeRows": [row(), row(description="Mail")]},
        {"timeRows": [row(description="Mail", activityHour=2024050209), row()]},
        [("timeRows[1].activityHour", 2024050207, 2024050209)],
    ),
    ({"user": {"externalId": "jd"}}, {"user": {"externalId": "xx"}}, [("user", "jd", "xx")]),
    ({"activityType": {"code": "A101"}}, {"activityType": None}, [("activityType", "A101", None)]),
]


def test_a_change_names_its_field_with_old_and_new_value() -> None:
    """Fields have the names of the API. A row that only moved is no change."""
    assert [told(before, after) for before, after, _ in CHANGED] == [expected for *_, expected in CHANGED]


@settings(deadline=None, max_examples=tried(25), suppress_health_check=[HealthCheck.too_slow])
@given(ANYTHING, ANYTHING)
def test_any_two_contents_can_be_compared(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two different digests have at least one difference, shown in printable lines of at most 80 columns."""
    found = changes(stored(one), stored(other))
    assert found or digest(read_group(one)) == digest(read_group(other))
    assert all(len(line) <= 80 and line.isprintable() for line in changes_lines(found))


def test_the_first_20_differences_are_shown_in_80_columns_without_escapes() -> None:
    """Of a long text only the part that differs is shown; an added row is summarized; the last line counts the rest."""
    long = "Reply to the examiner, " * 20
    found = (
        ContentChange("description", f"{long}as posted", f"{long}as changed"),
        ContentChange("timeRows[1]", None, {"activity": "\x1b[31mWord", "durationSecs": 60, "description": None}),
        ContentChange("totalDurationSecs", 60, float("nan")),
        *(ContentChange(f"timeRows[{at}].durationSecs", at, at + 1) for at in range(22)),
    )
    lines = list(changes_lines(found))
    assert lines[:3] == [
        '    description: …xaminer, as posted" → …xaminer, as changed"',
        '    timeRows[1]: none → activity "\\x1b[31mWord", durationSecs 60',
        "    totalDurationSecs: 60 → unreadable",
    ]
    more = "    … and 5 more; `syncengine time show --format json` lists all of them"
    assert (len(lines), lines[-1]) == (21, more)


def test_each_offer_is_compared_with_the_content_accepted_at_that_time(tmp_path: Path) -> None:
    """A revision replaces the content before it, and offers before the revision are no longer compared."""

    def offer(seconds: int) -> Offer:
        sent = raw("g1", totalDurationSecs=seconds)
        return Offer("g1", digest(read_group(sent)), stored(sent), "fetch")

    def told_by(entry: InboxEntry) -> dict[int, list[tuple[object, object]]]:
        found = changes_of(entry, inbox.story("g1"))
        return {place: [(one.before, one.after) for one in changed] for place, changed in found.items()}

    with open_inbox(str(tmp_path / "state.db"), write=True) as inbox:
        inbox.receive(offer(1))
        assert told_by(inbox.receive(offer(2))) == {1: [(1, 2)]}
        inbox.revise(offer(2))
        inbox.receive(offer(2))
        entry = inbox.receive(offer(3))
        assert told_by(entry) == {4: [(2, 3)]}
        assert [one.after for one in last_changes(entry, inbox.story("g1"))] == [3]
        inbox.receive(offer(2))
        assert last_changes(entry, inbox.story("g1")) == ()


# --- the start


def start(zone: ZoneInfo | None = None, **given: Any) -> str:
    """The start of a row in a group whose own offset is one hour east of UTC."""
    (found,) = placed(
        group(tzOffsetMins=60, timeRows=[row(**{"activityHour": 2024050212, "firstObservedInHour": 30, **given})]), zone
    ).timeRows
    return found.start.isoformat() if found.start else "none"


@pytest.mark.parametrize(
    ("name", "offset", "expected"),
    [
        ("Asia/Kolkata", 0, "2024-05-02T18:00:00+05:30"),
        ("No/Where", -300, "2024-05-02T07:30:00-05:00"),
        (None, None, "2024-05-02T13:30:00+01:00"),
        ("../etc", 99999, "2024-05-02T13:30:00+01:00"),
    ],
)
def test_a_row_starts_in_its_zone_else_its_offset(name: str | None, offset: int | None, expected: str) -> None:
    """`postedTime.timezone` overrides each of them."""
    assert start(timezone_name=name, timezone_offset_min=offset) == expected
    assert start(ZoneInfo("America/New_York"), timezone_name=name) == "2024-05-02T08:30:00-04:00"


def test_a_group_starts_with_its_first_row_else_on_its_local_date() -> None:
    """The order of the rows does not matter, and a row without an hour is ignored."""
    rows = [row(activityHour=2024050210), row(activityHour=None), row(activityHour=2024050208)]
    by_row = group_start(placed(group(timeRows=rows)))
    by_date = group_start(group(timeRows=[], localDate="2024-05-02", tzOffsetMins=120))
    assert (str(by_row), str(by_date)) == ("2024-05-02 10:05:00+02:00", "2024-05-02 00:00:00+02:00")
    assert group_start(group(timeRows=[], localDate="soon")) is group_start(group(timeRows=[])) is None


def test_an_invalid_hour_gives_no_start() -> None:
    for hour in (0, -1, 20240502, 2024130101, 99999999999, 2024050225):
        assert (hour, start(activityHour=hour)) == (hour, "none")


# --- durations


def durations(**given: Any) -> DurationSection:
    return DurationSection.model_construct(**{"from_": None, "weighting": None, "round_up_to": None, **given})


def weighted(percent: Any, **given: Any) -> dict[str, Any]:
    return {"user": {"name": "Jo", "experienceWeightingPercent": percent}, **given}


def test_total_is_what_was_posted_and_worked_is_the_rows() -> None:
    """`from` chooses which of the two is delivered. What is missing is substituted by the other."""
    edited = group(totalDurationSecs=5000, timeRows=[row(durationSecs=1000), row(durationSecs=2000)])
    found = duration_of(edited, durations())
    assert (found.seconds, found.totalSeconds, found.workedSeconds, found.isEdited) == (5000, 5000, 3000, True)
    assert duration_of(edited, durations(from_=DurationFrom.ROWS)).seconds == 3000
    assert duration_of(group(totalDurationSecs=None), durations()).seconds == 3600
    assert duration_of(group(timeRows=[]), durations(from_=DurationFrom.ROWS)).seconds == 3600


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
    found = duration_of(posted, durations())
    assert objection(posted, durations()) is None
    assert (found.seconds, found.totalSeconds) == (expected, expected)
    other = group(**{"totalDurationSecs": None, **given, "totalDurationHours": 7})
    assert (digest(other) == digest(posted)) is ("totalDurationSecs" in given)


EXACT = [(33.3, 3600, 1199), (12.5, 3600, 450), ("50", 3600, 1800), (0.1, 1000, 1), (7, 100, 7), (50, 101, 51),
         (33, 100, 33), (1, 49, 0), (1, 50, 1), (100, 99, 99)]  # fmt: skip


@pytest.mark.parametrize(("percent", "seconds", "expected"), EXACT)
def test_weighting_is_exact(percent: Any, seconds: int, expected: int) -> None:
    """7 % of 100 s is 7 s, not 7.000000000000001 s rounded up; halves are rounded up."""
    rows = [row(durationSecs=seconds)]
    found = duration_of(group(**weighted(percent, totalDurationSecs=seconds, timeRows=rows)), durations())
    assert found.seconds == expected


def test_a_missing_or_invalid_weighting_is_ignored() -> None:
    """Including 0 and percentages outside 0 to 100."""
    for percent in (None, 0, -5, 101, 100.1, "x", True):
        found = duration_of(group(**weighted(percent)), durations(weighting=Weighting.ALWAYS))
        assert (percent, found.seconds) == (percent, 3600)


ODD: list[Any] = [2**63, 10**30, "1h", True, [3], {}, float("nan"), float("inf"), "nan"]


UNKNOWN: list[dict[str, Any]] = [
    *({"totalDurationSecs": odd} for odd in ODD),
    *({"timeRows": [row(durationSecs=odd)]} for odd in ODD),
    *(
        {"totalDurationSecs": None, **given}
        for given in (
            {"timeRows": []},
            {"totalDurationHours": "x", "timeRows": []},
            {"totalDurationHours": "1,5"},
            {"timeRows": [row(durationSecs=None)]},
            {"timeRows": [row(), row(durationSecs=None)]},
        )
    ),
]


@pytest.mark.parametrize("given", UNKNOWN, ids=repr)
def test_a_duration_that_cannot_be_read_is_refused(given: dict[str, Any]) -> None:
    """It is neither zero nor replaced by the rows: nothing but the posted time may be billed."""
    for sent in (raw(**given), msgspec.json.decode(stored(raw(**given)))):
        assert objection(read_group(sent), durations()) == UNREADABLE


def test_an_odd_row_does_no_harm_where_the_total_counts() -> None:
    posted = group(timeRows=[row(), row(durationSecs=None)])
    assert objection(posted, durations()) is None
    assert objection(posted, durations(from_=DurationFrom.ROWS)) == UNREADABLE
    rows = [row(durationSecs=-1), row(durationSecs=2)]
    assert objection(group(timeRows=rows, totalDurationSecs=1), durations()) is None


BELOW_ZERO: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"totalDurationSecs": -100}, {}),
    ({"totalDurationSecs": -0.4, "timeRows": []}, {}),
    (weighted(1, totalDurationSecs=-5), {"weighting": Weighting.ALWAYS}),
    ({"totalDurationSecs": None, "totalDurationHours": "-1.5", "timeRows": []}, {}),
    ({"timeRows": [row(durationSecs=-5)]}, {"from_": DurationFrom.ROWS}),
    ({"totalDurationSecs": -5}, {"from_": DurationFrom.ROWS}),
]


@pytest.mark.parametrize("unit", [None, 360.0])
@pytest.mark.parametrize(("given", "chosen"), BELOW_ZERO)
def test_a_negative_duration_is_refused(given: dict[str, Any], chosen: dict[str, Any], unit: float | None) -> None:
    """-5 s never become six minutes, whatever is rounded, weighted or chosen."""
    assert objection(group(**given), durations(**chosen, round_up_to=unit)) == NEGATIVE


def test_zero_seconds_are_never_rounded_up() -> None:
    """They are refused if the project rounds up. A fraction of a second left by weighting is rounded up."""
    nothing = group(totalDurationSecs=0, timeRows=[])
    assert (objection(nothing, durations()), duration_of(nothing, durations()).seconds) == (None, 0)
    assert objection(nothing, durations(round_up_to=360.0)) == NOTHING
    little = group(**weighted(1, totalDurationSecs=49, timeRows=[row(durationSecs=49)]))
    assert (objection(little, durations(round_up_to=360.0)), duration_of(little, durations()).seconds) == (None, 0)
    assert duration_of(little, durations(round_up_to=360.0)).seconds == 360


def test_an_edited_total_is_weighted_only_with_weighting_always() -> None:
    """`unless-edited` leaves a total that the user typed as it is."""
    edited = group(**weighted(50, totalDurationSecs=4000))
    untouched = group(**weighted(50))
    by = {w: [duration_of(each, durations(weighting=w)).seconds for each in (edited, untouched)] for w in Weighting}
    assert by == {Weighting.ALWAYS: [2000, 1800], Weighting.NEVER: [4000, 3600], Weighting.UNLESS_EDITED: [4000, 1800]}


def test_rounding_up_comes_last() -> None:
    """After weighting; hours are computed from the rounded seconds."""
    found = duration_of(group(**weighted(50)), durations(round_up_to=360.0, weighting=Weighting.ALWAYS))
    assert (found.seconds, found.hours) == (1800, Decimal("0.5"))
    assert duration_of(group(totalDurationSecs=3601), durations(round_up_to=360.0)).seconds == 3960


IN_WORDS = {0: "0s", 59: "59s", 60: "1m", 10000: "2h 46m 40s", 86400: "1d", 93784: "1d 2h 3m 4s", -60: "-1m"}


def test_durations_in_words_use_days() -> None:
    assert {seconds: in_words(seconds) for seconds in IN_WORDS} == IN_WORDS


def test_halves_are_rounded_up() -> None:
    """Not to the nearest even number, and 2.675 counts as exactly 2.675. A unit of zero means no rounding."""
    assert [half_up(Decimal(text)) for text in ("0.5", "1.5", "2.5", "-2.5", "2.49")] == [1, 2, 3, -3, 2]
    assert (rounded(2.675, 2), hours(10000, 3), hours(1, 2)) == (Decimal("2.68"), Decimal("2.778"), Decimal("0.00"))
    assert [round_up(seconds, 360) for seconds in (0.2, 360, 361)] == [360, 360, 720]
    assert (round_up(7, 0), round_up(0, 0)) == (7, 0)
