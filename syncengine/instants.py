"""Read and write instants and durations (RFC 3339 ↔ milliseconds, `5m` → seconds), and read the machine's clock."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST, LATEST = -62_135_596_800_000, 253_402_300_799_999
"""The first and the last millisecond of the years 1 to 9999, which are all that calendars of programs agree on."""
_DAYS_31, _DAYS_30 = r"(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])", r"(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
DATE = rf"[0-9]{{4}}-(?:{_DAYS_31}|{_DAYS_30}|02-(?:0[1-9]|[12][0-9]))"
"""The pattern of a date, in which February always has 29 days. Editors read it in JSON Schemas."""
_HOURS, _SIXTY = "([01][0-9]|2[0-3])", "([0-5][0-9])"
RFC3339 = re.compile(rf"({DATE})[Tt ]{_HOURS}:{_SIXTY}:{_SIXTY}(?:\.([0-9]{{1,9}}))?(?:[Zz]|([+-]){_HOURS}:{_SIXTY})")


def milliseconds(text: str) -> int | None:
    """Return an RFC 3339 date-time as milliseconds since the epoch, or `None` for other text."""
    if (match := RFC3339.fullmatch(text)) is None:
        return None
    date, hour, minute, second, fraction, sign, hours, minutes = match.groups()
    year, month, day = map(int, date.split("-"))
    try:
        local = datetime(year, month, day, int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError:  # the year 0, or 29 February of a common year
        return None
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    return (local - EPOCH - offset) // timedelta(milliseconds=1) + int((fraction or "0").ljust(3, "0")[:3])


def bounds(text: str) -> tuple[float, float] | None:
    """Return the start and the end of a date in UTC, or an RFC 3339 instant twice, in seconds since the epoch.

    Return `None` for other text.
    """
    if (at := milliseconds(text)) is not None:
        return at / 1000, at / 1000
    at = milliseconds(f"{text}T00:00:00Z")
    return None if at is None else (at / 1000, at / 1000 + 86_400)


def instant(milliseconds: int) -> str | None:
    """Return milliseconds since the epoch as RFC 3339, or `None` for a year that `datetime` does not support."""
    try:
        at = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return at.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")


DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def span(text: str) -> float | None:
    """Return the seconds of a duration such as `5m` or `0s`, or `None` for text that is no duration."""
    match = DURATION.fullmatch(text)
    return float(match[1]) * _SECONDS[match[2]] if match else None


def duration(text: str) -> float | None:
    """Return the seconds of a duration such as `5m`, or `None` for zero and for text that is no duration."""
    return span(text) or None


def machine_seconds() -> float:
    """Return the seconds since the machine started, including suspended time where the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
