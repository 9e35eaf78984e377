"""One sandbox: its data and their storage, active faults, late calls and the log of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from time import time
from types import MappingProxyType
from uuid import uuid4

from syncengine.sandbox import activity_types
from syncengine.sandbox.faults import Faults
from syncengine.sandbox.late_calls import LateCalls
from syncengine.sandbox.request import RuleAnswer, RuleRequest
from syncengine.sandbox.request_log import RequestLog
from syncengine.sandbox.rules import Rule, decide
from syncengine.sandbox.storage import Storage
from syncengine.sandbox.world import Draft, Json, World

_NONE: Mapping[int, str] = MappingProxyType({})
_NO_QUERY: Mapping[str, str] = MappingProxyType({})


class Sandbox:
    """A sandbox with its data in the SQLite file `data`, or in memory when `data` is `None`. Not thread-safe."""

    def __init__(
        self,
        data: Path | None = None,
        *,
        clock: Callable[[], int] = lambda: int(time() * 1000),
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._storage = Storage(data)
        self._clock, self._new_id = clock, new_id
        self._last = 0
        self.world = self._storage.load()
        self.faults = Faults()
        self.log = RequestLog()
        self.late = LateCalls(self.now)
        self.on_change: Callable[[], None] = lambda: None

    def now(self) -> int:
        """Return the time in milliseconds since the epoch, never before the last request."""
        return max(self._clock(), self._last)

    def do(
        self, rule: Rule, body: Json, failing: Mapping[int, str] = _NONE, query: Mapping[str, str] = _NO_QUERY
    ) -> RuleAnswer:
        """Apply a rule, store its changes and return its answer."""
        # Each request has an instant of its own: uploads before and after the start of a session can be told apart.
        self._last = max(self._clock(), self._last + 1)
        answer, changes = decide(self.world, rule, RuleRequest(body, self._last, self._new_id, failing, query))
        self._storage.write(changes)
        self.world.apply(changes)
        if changes:
            self.on_change()
        return answer

    def expire(self, session_id: str | None) -> None:
        """Expire a sync session, or every open session when `session_id` is `None`, as the service does in time."""

        def rule(draft: Draft, _request: RuleRequest) -> RuleAnswer:
            activity_types.expire(draft, session_id)
            return RuleAnswer(200, {})

        self.do(rule, {})

    def reset(self) -> None:
        """Reset the sandbox: no data, default settings, no faults, no late calls and an empty log."""
        self.late.clear()
        self._storage.clear()
        self.world = World()
        self.faults.clear()
        self.log.clear()
        self.on_change()

    def close(self) -> None:
        self._storage.close()
