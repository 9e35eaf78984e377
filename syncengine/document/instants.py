"""Milliseconds since epoch → RFC 3339, as files write an instant. Pure."""

from __future__ import annotations

from datetime import timedelta

from syncengine.document.scalar_readers import EPOCH


def instant(milliseconds: int) -> str | None:
    """Format milliseconds since epoch as RFC 3339; None for a year that `datetime` cannot hold."""
    try:
        at = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return at.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")
