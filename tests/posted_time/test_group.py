"""Any JSON of the service can be read as a group, and the digest tells changed content from unchanged content."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.posted_time.durations import UNREADABLE, duration_of, objection
from syncengine.posted_time.group import EMPTY_TITLE, digest, placed, read_group, stored, without_descriptions
from syncengine.service.answers import read_loosely
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
def test_any_json_object_is_read_hashed_stored_and_measured(sent: dict[str, Any]) -> None:
    """No missing field and no odd type or value raises an error.

    The exception is a duration that cannot be read: it has a message.
    """
    found = read_group(sent)
    assert digest(found) == digest(read_group(sent))
    assert isinstance(msgspec.json.decode(stored(sent)), dict)
    placed(found)
    route = ROUTE
    if objection(found, route.duration) == UNREADABLE:
        return
    variables = route.variables(found)
    assert duration_of(found, route.duration) == variables["duration"]
    assert isinstance(route.narrative.render(variables), str)


def test_an_empty_object_is_a_group() -> None:
    found = read_group({})
    assert (found.groupId, found.tag, found.user, found.timeRows, found.localDate) == (None, None, None, (), None)


@pytest.mark.parametrize("odd", [{"\ud800": 1}, {"a\x00": []}, {5: 6}], ids=repr)
def test_an_invalid_field_name_does_not_reject_the_group(odd: dict[Any, Any]) -> None:
    """At any depth; pydantic would reject the whole group."""
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
    """The service wraps a name that a user typed as `@_Name_@`."""
    (found,) = read_group({"timeRows": [sent]}).timeRows
    assert (found.activity, found.description) == (activity, description)


def test_the_caller_key_is_not_stored() -> None:
    """It only proves to the receiver that the service is calling."""
    assert "s3cr3t" not in stored(raw())
    assert "s3cr3t" not in repr(group())


def test_characters_that_databases_reject_are_replaced() -> None:
    """NUL and half surrogate pairs."""
    assert stored({"groupId": "a\x00b", "x": ["\ud800"]}) == '{"groupId":"a�b","x":["�"]}'
    assert read_group({"groupId": "a\x00"}).groupId == "a�"


@pytest.mark.parametrize("odd", ["1", "NaN"])
def test_a_whole_number_beyond_64_bits_keeps_its_digits(odd: str) -> None:
    """It is stored as text, whether or not something else in the answer is no JSON."""
    found = read_loosely(f'{{"large": {10**40}, "least": {-(2**63)}, "odd": {odd}}}'.encode())
    kept = {"large": str(10**40), "least": -(2**63), "odd": {"1": 1, "NaN": "nan"}[odd]}
    assert json.loads(stored(found)) == kept


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
def test_fields_that_the_service_adds_do_not_change_the_digest(change: dict[str, Any]) -> None:
    """Nor does anything else that changes without the user."""
    assert digest(group(**change)) == digest(group())


@pytest.mark.parametrize("number", [3600.0, "3600", "3600.0"])
def test_the_digest_does_not_depend_on_the_form_of_a_number(number: object) -> None:
    """Integer, float or string, in the total, in a row and in hours."""
    assert digest(group(totalDurationSecs=number)) == digest(group())
    assert digest(group(timeRows=[row(durationSecs=number)])) == digest(group())
    hours = [digest(group(totalDurationSecs=None, totalDurationHours=hours)) for hours in (1, 1.0, "1.0")]
    assert len(set(hours)) == 1


@pytest.mark.parametrize("change", OTHER)
def test_a_change_by_the_user_changes_the_digest(change: dict[str, Any]) -> None:
    assert digest(group(**change)) != digest(group())


def test_the_digest_does_not_depend_on_the_order_of_rows() -> None:
    rows = [row(), row(durationSecs=5)]
    assert digest(group(timeRows=rows)) == digest(group(timeRows=rows[::-1]))


def test_narrative_only_hides_activities_and_descriptions_of_rows() -> None:
    """Durations stay."""
    (found,) = without_descriptions(group(narrativeType="NARRATIVE_ONLY")).timeRows
    assert (found.activity, found.description, found.durationSecs) == (None, None, 3600)
    assert without_descriptions(group()) == group()
