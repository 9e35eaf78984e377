"""The memory of a process that lives for months."""

from __future__ import annotations

import ctypes
from contextlib import suppress

ARENAS = -8
"""M_ARENA_MAX of glibc's mallopt(3)."""


def share_arena() -> None:
    """Have all threads of this process allocate from one arena; to be called before the first of them starts.

    By default glibc gives each thread its own, and each keeps room for the largest configuration that it loaded. Other
    C libraries do not have the setting.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(ARENAS, 1)
