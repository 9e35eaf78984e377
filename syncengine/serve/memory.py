"""Limit the memory of a process that runs for months."""

from __future__ import annotations

import ctypes
from contextlib import suppress

ARENAS = -8
"""The parameter M_ARENA_MAX of glibc's mallopt(3)."""


def share_arena() -> None:
    """Make all threads of this process allocate from one arena. Call it before the first thread starts.

    By default, glibc gives threads arenas of their own, and each keeps the memory for the largest configuration that
    was loaded in it. Other C libraries do not have the setting.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(ARENAS, 1)
