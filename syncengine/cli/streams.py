"""What becomes of stdout once nobody reads it."""

from __future__ import annotations

import os
import sys


def discard_stdout() -> None:
    """The reader went away, as `head` does: what is left in the buffer, and what comes, has no place to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
