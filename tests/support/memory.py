"""A folder in memory, where there is one: thousands of histories need no disk."""

from __future__ import annotations

import shutil
from pathlib import Path

_SHARED = Path("/dev/shm")

MEMORY = _SHARED if _SHARED.is_dir() else None
"""For `dir` of the functions of `tempfile`."""

ROOM = 4 * 2**30
"""Bytes that all folders of tests together may need."""


def is_roomy() -> bool:
    """Whether there is memory for all folders of tests: what a container gives is often a few megabytes."""
    return MEMORY is not None and shutil.disk_usage(MEMORY).free >= ROOM
