"""Write and read the hidden marker of our comments, with key, commit and CI run; pure."""

from __future__ import annotations

import re
from typing import NamedTuple

KEY = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._]|-(?!-)){0,99}")
"""The pattern of a key, which cannot end an HTML comment."""
_PARTS = re.compile(r" (\w+)=([0-9a-f]+)(?= )")


class RunOrder(NamedTuple):
    """A CI run, ordered by time. `id` counts on a whole host, `number` in a project; 0 means unknown."""

    id: int = 0
    number: int = 0
    attempt: int = 0


class Marker(NamedTuple):
    """The hidden marker of one comment."""

    key: str
    head: str
    run: RunOrder

    def __str__(self) -> str:
        run = f"run={self.run.number} id={self.run.id} attempt={self.run.attempt}"
        return f"{prefix(self.key)}{f'head={self.head} ' if self.head else ''}{run} -->"


def prefix(key: str) -> str:
    """Return the text with which exactly the comments with this key begin."""
    return f"<!-- syncengine:{key} "


def run_of(body: str) -> RunOrder:
    """Return the CI run that wrote a comment of ours. An unreadable marker counts as the oldest run."""
    parts = dict(_PARTS.findall(body.partition("-->")[0]))
    return RunOrder(*(_decimal(parts.get(name, "")) for name in ("id", "run", "attempt")))


def _decimal(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 20 else 0
