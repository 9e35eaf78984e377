"""Groups as the service sends them, small ones."""

from __future__ import annotations

from typing import Any

from syncengine.posted_time.group import Group, read_group


def row(**given: Any) -> dict[str, Any]:
    """An hour's work in Vienna, at nine on the second of May."""
    return {
        "activity": "Word",
        "description": "Reply.docx",
        "activityHour": 2024050207,
        "firstObservedInHour": 5,
        "durationSecs": 3600,
        "timezone_name": "Europe/Vienna",
        "timezone_offset_min": 120,
        **given,
    }


def raw(group_id: str = "g1", **given: Any) -> dict[str, Any]:
    """A group with a tag, a user and one row."""
    return {
        "callerKey": "s3cr3t-caller",
        "groupId": group_id,
        "totalDurationSecs": 3600,
        "tags": [{"name": "ACME-0042"}],
        "user": {"name": "Jo Doe", "email": "jo@example.com", "externalId": "jd"},
        "timeRows": [row()],
        **given,
    }


def group(**given: Any) -> Group:
    return read_group(raw(**given))
