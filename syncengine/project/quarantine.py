"""Define entries under `quarantine:` of the project file, and their end dates. Pure (docs/repair.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import Struct

from syncengine.document.instants import LATEST, bounds
from syncengine.resource import Key

DAY = 86_400
LONGEST_REMOVAL = 30
"""The maximum number of days for which a removal may be quarantined."""


class QuarantineEntry(Struct, frozen=True, gc=False):
    """A quarantined resource, the reason, and the quarantine's end in seconds since the epoch."""

    key: Key
    reason: str
    until: float | None
    line: int | None = None


def entry_of(address: str, reason: str, until: float | None, line: int | None) -> QuarantineEntry:
    return QuarantineEntry(Key.parse(address), reason, until, line)


def until_of(text: str) -> float | None:
    """Return the end of a date (UTC) or an RFC 3339 instant as seconds since epoch, or `None` for any other text."""
    found = bounds(text)
    return None if found is None or found[1] * 1000 > LATEST else max(found[1], 0)


def until_text(until: float) -> str:
    """Return the end of a quarantine for display: a date, or a date and time in UTC."""
    if until % DAY == 0:
        return f"{datetime.fromtimestamp(until - DAY, UTC):%Y-%m-%d}"
    return f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"


def is_too_late(until: float, now: float) -> bool:
    """Return whether `until` is more than `LONGEST_REMOVAL` days after `now`; a date is compared by whole days."""
    if until % DAY == 0:
        return (until - DAY) // DAY - now // DAY > LONGEST_REMOVAL
    return until - now > timedelta(days=LONGEST_REMOVAL).total_seconds()
