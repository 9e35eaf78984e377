"""What a process left behind."""

from __future__ import annotations

from typing import NamedTuple


class Ended(NamedTuple):
    """The exit code of a process, negative for a signal, and all that it wrote."""

    code: int
    out: str
    err: str
