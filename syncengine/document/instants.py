"""Format a time as files write it: milliseconds since the epoch → RFC 3339. Pure."""

from __future__ import annotations

from datetime import timedelta

from syncengine.document.scalar_readers import EPOCH


def instant(milliseconds: int) -> str | None:
    """Return milliseconds since the epoch as RFC 3339, or `None` for a year that `datetime` does not support."""
    try:
        at = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return at.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")
