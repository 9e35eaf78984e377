"""Compute the local start of rows and groups from their time zones. Pure, except for the machine's zone database.

A row's zone is its `timezone_name`, else its offset, else the group's offset, else UTC. A configured zone overrides
all of them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from syncengine.posted_time.group import Group, TimeRow

_MAX_OFFSET = 18 * 60


def named_zone(name: str | None) -> tzinfo | None:
    """Return the time zone with this IANA name, or `None` when it is missing or unknown."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, KeyError):  # KeyError: ZoneInfoNotFoundError
        return None


def offset_zone(minutes: int | None) -> tzinfo | None:
    """Return the zone at an offset in minutes (positive east of Greenwich), or `None` when it is missing or invalid."""
    if minutes is None or abs(minutes) > _MAX_OFFSET:
        return None
    return timezone(timedelta(minutes=minutes))


def zone_of(row: TimeRow | None, group: Group, zone: tzinfo | None = None) -> tzinfo:
    """Return the time zone of a row: the configured `zone`, its own, its group's, or UTC."""
    own = (named_zone(row.timezone_name) or offset_zone(row.timezone_offset_min)) if row else None
    return zone or own or offset_zone(group.tzOffsetMins) or UTC


def row_start(row: TimeRow, group: Group, zone: tzinfo | None = None) -> datetime | None:
    """Return the local time at which the row was first observed, or `None` when it is missing or invalid."""
    hour = row.activityHour
    if hour is None:
        return None
    minutes = row.firstObservedInHour or 0
    (year, month), (day, hour) = divmod(hour // 10_000, 100), divmod(hour % 10_000, 100)  # YYYYMMDDHH
    try:
        begin = datetime(year, month, day, hour, tzinfo=UTC)
        return (begin + timedelta(minutes=max(0, min(59, minutes)))).astimezone(zone_of(row, group, zone))
    except (ValueError, OverflowError):
        return None


def group_start(group: Group, zone: tzinfo | None = None) -> datetime | None:
    """Return the earliest start of the group's rows, else the beginning of its local date, else `None`."""
    starts = [row.start for row in group.timeRows if row.start is not None]
    if starts:
        return min(starts)
    try:
        day = datetime.strptime(group.localDate or "", "%Y-%m-%d")  # noqa: DTZ007 -- the zone is the next line's
    except ValueError:
        return None
    return day.replace(tzinfo=zone_of(None, group, zone))


def placed(group: Group, zone: tzinfo | None = None) -> Group:
    """Return the group with the local start of each row filled in."""
    rows = (row.model_copy(update={"start": row_start(row, group, zone)}) for row in group.timeRows)
    return group.model_copy(update={"timeRows": tuple(rows)})
