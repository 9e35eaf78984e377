"""Answers have exactly the fields and types of docs/interface.md 2.5 and 2.6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from syncengine.sandbox import console, posting

from .conftest import Asking

NUMBER = (int, float)

TAG = {"name": str, "path": str, "description": str, "externalId": str}
USER = {
    **dict.fromkeys(("userId", "name", "email", "externalId", "businessRole"), str),
    "experienceWeightingPercent": int,
}
ROW = {
    **dict.fromkeys(("activity", "description", "modifier", "activityTypeCode", "source", "timezone_name"), str),
    **dict.fromkeys(("activityHour", "firstObservedInHour", "durationSecs", "submittedDate"), int),
    "timezone_offset_min": int,
}
GROUP: Mapping[str, Any] = {
    **dict.fromkeys(("callerKey", "groupId", "description", "formattedNarrative", "localDate", "groupName"), str),
    **dict.fromkeys(("narrativeType", "status", "durationSplitStrategy"), str),
    **dict.fromkeys(("totalDurationSecs", "tzOffsetMins", "timestamp", "submissionTime"), int),
    "totalDurationHours": NUMBER,
    "tags": [TAG],
    "timeRows": [ROW],
    "activityType": {"code": str, "label": str},
    "user": USER,
    "originatingUser": USER,
}
REGISTRATION = {
    **dict.fromkeys(("serviceId", "serviceKey", "serviceIdExpiry", "serviceSessionToken", "groupName"), str),
    "regionName": str,
    "connectorConfiguration": {},
}


def misfits(value: Any, shape: Any, place: str = "") -> list[str]:
    """Where the value differs from the shape: a type, a list of one shape, or a mapping of the allowed fields."""
    if isinstance(shape, list):
        assert isinstance(value, list)
        return [found for each in value for found in misfits(each, shape[0], f"{place}[]")]
    if isinstance(shape, Mapping):
        assert isinstance(value, dict)
        unknown = [f"{place}.{name} is unknown" for name in value.keys() - shape.keys()]
        known = value.keys() & shape.keys()
        return unknown + [found for name in known for found in misfits(value[name], shape[name], f"{place}.{name}")]
    return [] if isinstance(value, shape) and not isinstance(value, bool) else [f"{place} is {value!r}"]


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
        assert misfits(group, GROUP) == []
        assert {"groupId", "status", "submissionTime"} <= group.keys()


def test_the_answer_to_a_registration_has_the_shape_of_the_specification(service: Asking) -> None:
    """The answer has all of the fields."""
    answer = service.told("registerConnector")
    assert misfits(answer, REGISTRATION) == []
    assert answer.keys() == REGISTRATION.keys()
