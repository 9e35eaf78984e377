"""To wait for something that another thread, process or server does."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE_SECONDS = 60.0
"""The longest wait for something that must happen."""


def eventually(look: Callable[[], T | None], told: Callable[[], object] = lambda: "it did not happen") -> T:
    """Call `look` until its result is true, and return that result; `told` says what is seen instead of it."""
    end, pause = time.monotonic() + PATIENCE_SECONDS, 0.01
    while not (seen := look()):
        assert time.monotonic() < end, told()
        time.sleep(pause)
        # Longer pauses, since a look may cost as much as a request.
        pause = min(1.5 * pause, 0.05)
    return seen
