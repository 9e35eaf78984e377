"""A folder in memory, where there is one: thousands of histories need no disk."""

from pathlib import Path

_SHARED = Path("/dev/shm")

MEMORY = _SHARED if _SHARED.is_dir() else None
"""For `dir` of the functions of `tempfile`."""
