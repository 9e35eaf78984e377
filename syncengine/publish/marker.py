"""The marker that our comments begin with: hidden, with the key, the commit and the run that wrote it; pure."""

from __future__ import annotations

import re
from typing import NamedTuple

KEY = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._]|-(?!-)){0,99}")
"""Nothing that could end a comment of HTML."""
_PARTS = re.compile(r" (\w+)=([0-9a-f]+)(?= )")


class RunOrder(NamedTuple):
    """A run of CI; the later is the greater. `id` counts on a whole host, `number` in a project; 0: not known."""

    id: int = 0
    number: int = 0
    attempt: int = 0


class Marker(NamedTuple):
    """The marker of one comment."""

    key: str
    head: str
    run: RunOrder

    def __str__(self) -> str:
        run = f"run={self.run.number} id={self.run.id} attempt={self.run.attempt}"
        return f"{prefix(self.key)}{f'head={self.head} ' if self.head else ''}{run} -->"


def prefix(key: str) -> str:
    """The beginning of every comment with this key, and of none with another."""
    return f"<!-- syncengine:{key} "


def run_of(body: str) -> RunOrder:
    """The run that wrote a comment of ours; one that cannot be read is the oldest."""
    parts = dict(_PARTS.findall(body.partition("-->")[0]))
    return RunOrder(*(_decimal(parts.get(name, "")) for name in ("id", "run", "attempt")))


def _decimal(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 20 else 0
