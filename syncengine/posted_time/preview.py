"""Preview the delivery of a group to each sink as plain values, without reading or writing any target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncengine.posted_time.audit import PENDING
from syncengine.posted_time.group import NO_ID, read_group
from syncengine.posted_time.route import Prepared, Route
from syncengine.posted_time.sinks.contract import Failed, Refused, RenderedGroup, Sink
from syncengine.posted_time.templates import NeedsRow, Variables, plain
from syncengine.service.posted_time import group_id
from syncengine.state.inbox_model import PostedTimeStatus

SAMPLE: Mapping[str, Any] = {
    "groupId": "00000000-0000-4000-8000-000000000001",
    "description": "Reply to the examiner",
    "totalDurationSecs": 10000,
    "totalDurationHours": 2.78,
    "tzOffsetMins": 120,
    "localDate": "2024-05-02",
    "groupName": "Patents EU",
    "narrativeType": "NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS",
    "status": PENDING,
    "submissionTime": 1714662000000,
    "tags": [{"name": "ACME-0042", "path": "/", "description": "Opposition", "externalId": "4711"}],
    "activityType": {"code": "A101", "label": "Plan and prepare for"},
    "user": {
        "userId": "u-1",
        "name": "Jo Doe",
        "email": "jo@example.com",
        "externalId": "jd",
        "businessRole": "Attorney",
        "experienceWeightingPercent": 100,
    },
    "durationSplitStrategy": "DIVIDE_BETWEEN_TAGS",
    "timeRows": [
        {
            "activity": "Word",
            "description": "Reply.docx",
            "activityHour": 2024050207,
            "firstObservedInHour": 5,
            "durationSecs": 6400,
            "source": "WT_DESKTOP",
            "timezone_name": "Europe/Vienna",
            "timezone_offset_min": 120,
        },
        {
            "activity": "@_Call with the client_@",
            "description": None,
            "activityHour": 2024050209,
            "firstObservedInHour": 30,
            "durationSecs": 3600,
            "source": "USER_MANUAL_TIME",
            "timezone_name": "Europe/Vienna",
            "timezone_offset_min": 120,
        },
    ],
}
"""A sample group in the form in which the service sends groups."""


async def preview(route: Route, raw: Mapping[str, object]) -> dict[str, Any]:
    """Return the preview of a group. Its `outcome` is the verdict if every target took the group.

    It is `None` if the verdict depends on the row of a lookup.
    """
    group = read_group(raw)
    has_id = group_id(raw) is not None
    prepared: Prepared | Refused | Failed | NeedsRow
    try:
        prepared = await route.prepare(group, 1, rehearse=True) if has_id else Refused(NO_ID)
    except NeedsRow as error:
        prepared = error
    document: dict[str, Any] = {"groupId": group.groupId, "outcome": PostedTimeStatus.SUCCESS, "message": None}
    if isinstance(prepared, Refused | Failed | NeedsRow):
        match prepared:
            case NeedsRow():
                document |= {"outcome": None, "message": str(prepared)}
            case Refused(message, detail):
                words = f"{message} ({detail})" if detail else message  # a user gets the first alone
                document |= {"outcome": PostedTimeStatus.REFUSED, "message": words}
            case Failed():
                document |= {"outcome": PostedTimeStatus.TROUBLE, "message": prepared.detail or prepared.message}
        return {**document, "narrative": None, "duration": None, "start": None, "sinks": []}
    seen = prepared.variables
    shown = [_shown(sink, rendered, seen) for sink, rendered in prepared.rendered_groups]
    made = {"narrative": seen.get("narrative"), "duration": plain(seen["duration"]), "start": plain(seen["start"])}
    return {**document, **made, "sinks": shown}


def _shown(sink: Sink, rendered: RenderedGroup, whole: Variables) -> dict[str, Any]:
    """Return one delivery as plain values. `tag` and `seconds` describe its part; `tag` is `None` for a whole group."""
    seen = rendered.variables
    return {
        "sink": sink.name,
        "key": rendered.key,
        "tag": None if seen is whole else seen["tag"].name,
        "seconds": seen["duration"].seconds,
        "content": sink.shown(rendered.content),
    }
