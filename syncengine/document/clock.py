"""The monotonic clock of this machine, whatever its wall clock is set to."""

from __future__ import annotations

import time


def machine_seconds() -> float:
    """Seconds since this machine was started, including suspended time where the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
