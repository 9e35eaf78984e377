"""Whatever the service sends becomes a group, and two offers of one content are told from two contents."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.posted_time.durations import UNREADABLE, duration_of, objection
from syncengine.posted_time.group import EMPTY_TITLE, digest, placed, read_group, stored, without_descriptions
from tests.posted_time.projects import bare_route
from tests.posted_time.samples import group, raw, row

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
def test_nothing_that_comes_is_too_odd(sent: dict[str, Any]) -> None:
    """Reading, hashing, storing, placing, measuring: no field's absence, type or value keeps a group from it.

    Save a duration that cannot be read, which is told in a sentence.
    """
    found = read_group(sent)
    assert digest(found) == digest(read_group(sent))
    assert isinstance(orjson.loads(stored(sent)), dict)
    placed(found)
    route = ROUTE
    if objection(found, route.settings.duration) == UNREADABLE:
        return
    variables = route.variables(found)
    assert duration_of(found, route.settings.duration) == variables["duration"]
    assert isinstance(route.narrative.render(variables), str)


def test_a_group_without_anything_is_a_group() -> None:
    """No rows, no tag, no user, no local date."""
    found = read_group({})
    assert (found.groupId, found.tag, found.user, found.timeRows, found.localDate) == (None, None, None, (), None)


@pytest.mark.parametrize("odd", [{"\ud800": 1}, {"a\x00": []}, {5: 6}], ids=repr)
def test_a_name_that_is_no_text_loses_nobody_their_time(odd: dict[Any, Any]) -> None:
    """At any depth; a reader that refuses such names (pydantic does) refused the whole group."""
    found = read_group({**raw(), **odd, "tags": [{"name": "ACME-0042", **odd}], "user": {"name": "Jo", **odd}})
    assert (found.groupId, found.tag and found.tag.name, found.user and found.user.name) == ("g1", "ACME-0042", "Jo")


@pytest.mark.parametrize(
    ("sent", "activity", "description"),
    [
        ({"activity": "@_Phone call_@", "description": None}, "Phone call", None),
        ({"activity": "@_empty_@", "description": "@_empty_@"}, EMPTY_TITLE, EMPTY_TITLE),
        ({"activity": None, "description": ""}, EMPTY_TITLE, ""),
        ({"activity": "  ", "description": "x"}, EMPTY_TITLE, "x"),
        ({"activity": "a @ b_c"}, "a @ b_c", None),
    ],
)
def test_manual_names_are_unwrapped_and_empty_titles_named(
    sent: dict[str, Any], activity: str, description: str | None
) -> None:
    """`@_Name_@` is how the service wraps what a user typed."""
    (found,) = read_group({"timeRows": [sent]}).timeRows
    assert (found.activity, found.description) == (activity, description)


def test_the_caller_key_is_not_stored() -> None:
    """It proves the service to the receiver, and to nobody else."""
    assert "s3cr3t" not in stored(raw())
    assert "s3cr3t" not in repr(group())


def test_text_that_no_database_holds_is_made_to_fit() -> None:
    """NUL and halves of surrogate pairs."""
    assert stored({"groupId": "a\x00b", "x": ["\ud800"]}) == '{"groupId":"a�b","x":["�"]}'
    assert read_group({"groupId": "a\x00"}).groupId == "a�"


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
def test_what_the_service_adds_does_not_make_another_content(change: dict[str, Any]) -> None:
    """Nor what changes without the user."""
    assert digest(group(**change)) == digest(group())


@pytest.mark.parametrize("number", [3600.0, "3600", "3600.0"])
def test_a_number_is_the_same_in_any_form(number: object) -> None:
    """In the total, in a row and in hours: JSON has one kind of number."""
    assert digest(group(totalDurationSecs=number)) == digest(group())
    assert digest(group(timeRows=[row(durationSecs=number)])) == digest(group())
    hours = [digest(group(totalDurationSecs=None, totalDurationHours=hours)) for hours in (1, 1.0, "1.0")]
    assert len(set(hours)) == 1


@pytest.mark.parametrize("change", OTHER)
def test_what_the_user_changed_makes_another_content(change: dict[str, Any]) -> None:
    """Each of these is another piece of work."""
    assert digest(group(**change)) != digest(group())


def test_the_order_of_rows_is_no_content() -> None:
    """The service may list them as it likes."""
    rows = [row(), row(durationSecs=5)]
    assert digest(group(timeRows=rows)) == digest(group(timeRows=rows[::-1]))


def test_narrative_only_hides_what_rows_were_about() -> None:
    """Their user chose so; durations and times stay."""
    (found,) = without_descriptions(group(narrativeType="NARRATIVE_ONLY")).timeRows
    assert (found.activity, found.description, found.durationSecs) == (None, None, 3600)
    assert without_descriptions(group()) == group()
