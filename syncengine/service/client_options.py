"""Define settings of calls to the service: operation paths, the key, retries and time-outs. Values only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

ATTEMPTS = 6
PATIENCE_SECONDS = 300.0


class KeySource(Protocol):
    """A source of the API key; `fresh` reads a key in a file again, after a 401 (docs/planning.md 4.6)."""

    def __call__(self, *, fresh: bool = False) -> str: ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str


@dataclass(frozen=True, slots=True)
class Conduct:
    """The behaviour of a client. `timeout` and `first_wait` are in seconds.

    `patience` is the limit in seconds for all attempts of a call, the first of which may take its own time. `attempts`
    1: nothing is retried, the caller does that. `breaks` `False`: a failed call does not prevent the next, as in a
    process that outlives an outage. `is_local`: the service is part of this process, and no proxy leads to it. Once
    `stop` is set nothing is retried (docs/planning.md 4.10); once `abandon` is set nothing is sent and no answer is
    awaited. `before_send` is called before each attempt and raises when nothing may be sent (docs/planning.md 1.5).
    `on_retry` receives the operation, the reason, and the seconds until the retry.
    """

    timeout: float = 30.0
    concurrency: int = 8
    first_wait: float = 0.25
    attempts: int = ATTEMPTS
    patience: float = PATIENCE_SECONDS
    breaks: bool = True
    is_local: bool = False
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    abandon: asyncio.Event = field(default_factory=asyncio.Event)
    before_send: Callable[[], None] = lambda: None
    on_retry: Callable[[str, str, float], None] = lambda operation, why, wait: None
