"""Settings of calls to the service: paths of operations, the key, retries and time-outs. Values only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

ATTEMPTS = 6
PATIENCE_SECONDS = 300.0


class KeySource(Protocol):
    """Gives the API key; `fresh` reads it again (docs/planning.md 4.6: a key in a file is read again on 401)."""

    def __call__(self, *, fresh: bool = False) -> str: ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a client behaves. `timeout` and `first_wait` are seconds.

    `patience` is for all attempts of a call, the first of which may take its own time. `attempts` 1: nothing is
    repeated, which is left to the caller. `breaks` False: trouble of one call is no reason not to make the next, as in
    a process that outlives an outage. Once `stop` is set nothing is repeated (docs/planning.md 4.10); once `abandon` is
    set nothing is sent, and no answer is waited for. `before_send` is asked before each attempt and raises when nothing
    may be sent (docs/planning.md 1.5). `on_retry` hears the operation, why, and the seconds until the repeat.
    """

    timeout: float = 30.0
    concurrency: int = 8
    first_wait: float = 0.25
    attempts: int = ATTEMPTS
    patience: float = PATIENCE_SECONDS
    breaks: bool = True
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    abandon: asyncio.Event = field(default_factory=asyncio.Event)
    before_send: Callable[[], None] = lambda: None
    on_retry: Callable[[str, str, float], None] = lambda operation, why, wait: None
