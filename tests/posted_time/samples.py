"""Small groups of posted time, as the service sends them."""

from typing import Any

from syncengine.posted_time.group import Group, read_group


def row(**given: Any) -> dict[str, Any]:
    """One hour of work in Vienna that starts at 09:05 on 2 May 2024."""
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


def some(count: int) -> list[dict[str, Any]]:
    """Groups of different ids."""
    return [raw(f"g{number}") for number in range(count)]


def group(**given: Any) -> Group:
    return read_group(raw(**given))
