"""One sandbox: its data, active faults, late calls and the log of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from syncengine.sandbox.bodies import Rule, RuleAnswer, RuleRequest
from syncengine.sandbox.faults import Faults, LateCalls
from syncengine.sandbox.request_log import RequestLog
from syncengine.sandbox.rules import decide
from syncengine.sandbox.store import Json, Store

_NONE: Mapping[Any, str] = MappingProxyType({})


class Sandbox:
    """A sandbox with its data in the SQLite file `data`, or in memory when `data` is `None`. Not thread-safe."""

    def __init__(
        self,
        data: Path | None = None,
        *,
        clock: Callable[[], int] = lambda: int(time() * 1000),
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self.store = Store(data)
        self._clock, self._new_id = clock, new_id
        self._last = 0
        self.faults = Faults()
        self.log = RequestLog()
        self.late = LateCalls(self.now)
        self.on_change: Callable[[], None] = lambda: None

    def now(self) -> int:
        """Return the time in milliseconds since the epoch, never before the last request."""
        return max(self._clock(), self._last)

    def do(
        self, rule: Rule, body: Json, failing: Mapping[int, str] = _NONE, query: Mapping[str, str] = _NONE
    ) -> RuleAnswer:
        """Apply a rule, store its changes and return its answer."""
        # Each request has an instant of its own: uploads before and after the start of a session can be told apart.
        self._last = max(self._clock(), self._last + 1)
        before = self.store.changes
        answer = decide(self.store, rule, RuleRequest(body, self._last, self._new_id, failing, query))
        if answer.status < 400 and self.store.changes != before:
            self.on_change()
        return answer

    def reset(self) -> None:
        """Reset the sandbox: no data, default settings, no faults, no late calls and an empty log."""
        self.late.clear()
        self.store.clear()
        self.faults.clear()
        self.log.clear()
        self.on_change()

    def close(self) -> None:
        self.store.close()
