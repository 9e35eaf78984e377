"""Read the machine's monotonic clock, which is independent of its wall clock."""

from __future__ import annotations

import time


def machine_seconds() -> float:
    """Return the seconds since the machine started, including suspended time where the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
