"""Rows and groups → local instants, by the zones that they name; pure, but for the zones of this machine.

A row's zone is its `timezone_name`, else its offset, else the group's offset, else UTC; a zone that is set wins.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from syncengine.posted_time.group import Group, TimeRow

_MAX_OFFSET = 18 * 60


def named_zone(name: str | None) -> tzinfo | None:
    """The zone of this name; None when there is none."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, KeyError):  # KeyError: ZoneInfoNotFoundError
        return None


def offset_zone(minutes: int | None) -> tzinfo | None:
    """East of Greenwich is positive."""
    if minutes is None or abs(minutes) > _MAX_OFFSET:
        return None
    return timezone(timedelta(minutes=minutes))


def zone_of(row: TimeRow | None, group: Group, zone: tzinfo | None = None) -> tzinfo:
    """Return the time zone of a row: the configured `zone`, its own, its group's, or UTC."""
    own = (named_zone(row.timezone_name) or offset_zone(row.timezone_offset_min)) if row else None
    return zone or own or offset_zone(group.tz_offset_mins) or UTC


def row_start(row: TimeRow, group: Group, zone: tzinfo | None = None) -> datetime | None:
    """The local time at which the row was first observed; None if it does not say."""
    hour = row.activity_hour
    if hour is None:
        return None
    minutes = row.first_observed_in_hour or 0
    (year, month), (day, hour) = divmod(hour // 10_000, 100), divmod(hour % 10_000, 100)  # YYYYMMDDHH
    try:
        begin = datetime(year, month, day, hour, tzinfo=UTC)
        return (begin + timedelta(minutes=max(0, min(59, minutes)))).astimezone(zone_of(row, group, zone))
    except (ValueError, OverflowError):
        return None


def group_start(group: Group, zone: tzinfo | None = None) -> datetime | None:
    """The first row's instant, of rows with their start; without any the beginning of the local date, or None."""
    starts = [row.start for row in group.time_rows if row.start is not None]
    if starts:
        return min(starts)
    try:
        day = datetime.strptime(group.local_date or "", "%Y-%m-%d")  # noqa: DTZ007 -- the zone is the next line's
    except ValueError:
        return None
    return day.replace(tzinfo=zone_of(None, group, zone))


def placed(group: Group, zone: tzinfo | None = None) -> Group:
    """The group with the local start of each row."""
    return replace(group, time_rows=tuple(replace(row, start=row_start(row, group, zone)) for row in group.time_rows))
