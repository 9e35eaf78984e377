"""Track calls of earlier runs that may still be executed, and calls of this run that wait (docs/planning.md 1.8)."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from syncengine.document.clock import machine_seconds
from syncengine.effects import Effect
from syncengine.plan.calls import Call, Item, Step
from syncengine.resource import Key, Recorded
from syncengine.state.landing import DEFAULT_SECONDS, Attempt, Outstanding, Question, Questions, aims_of

Rows = Callable[[Iterable[Key]], Mapping[Key, Recorded]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long calls may take to land, and how long this run waits for them, in seconds on this machine's own clock.

    `window` counts from when the sender of a call could send no more; `until` is the end of waiting.
    """

    window: float = DEFAULT_SECONDS
    until: float = math.inf
    seconds: Callable[[], float] = machine_seconds
    now: Callable[[], float] = time.time
    pause: Callable[[asyncio.Event, float], Awaitable[None]] = field(default=lambda *wait: pause(*wait))


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait for the given seconds, or until `stop` is set."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


class _Aims:
    """The aims of the few resources that late calls name, looked up when first needed."""

    def __init__(self, effects: Callable[[], Iterable[Effect]], rows: Rows) -> None:
        self._leaves = effects
        self._rows = rows
        self._aims: dict[Key, Recorded | None] = {}
        self._missing: set[Key] = set()

    def expect(self, keys: Iterable[Key]) -> None:
        self._missing.update(key for key in keys if key not in self._aims)

    def __call__(self, key: Key) -> Recorded | None:
        if key in self._missing:
            self._aims |= aims_of(self._missing, self._rows(self._missing), self._leaves())
            self._missing.clear()
        return self._aims.get(key)


class Landing:
    """The calls of one run that wait for late calls of earlier runs.

    `deferred` are the parts of calls to send last, with their stages. `gave_up`: the time to wait was too short.
    """

    def __init__(
        self,
        patience: Patience,
        effects: Callable[[], Iterable[Effect]],
        rows: Rows,
        id_of: Callable[[str], str | None],
    ) -> None:
        self.patience = patience
        self.deferred: list[tuple[Step, Call]] = []
        self.defers_sweep = False
        self.question: Question | None = None
        self.gave_up = False
        self.number = 1
        self._aims = _Aims(effects, rows)
        self._questions = Questions(self._aims, id_of)
        self._waiting: set[Key] = set()

    def expect(self, outstanding: Iterable[Outstanding]) -> None:
        """Register calls of earlier runs that may still be executed."""
        now = self.patience.seconds()
        for late in outstanding:
            self._add(late.attempt, now + late.remaining)

    def give_up(self, attempt: Attempt, at: float) -> None:
        """Register an attempt that was given up at time `at` and may still be executed."""
        self._add(attempt, at + self.patience.window)

    def _add(self, attempt: Attempt, until: float) -> None:
        self._aims.expect(effect.key for effect in attempt.effects)
        self._questions.add(attempt, until)

    def waits(self, effects: Iterable[Effect], needs: Iterable[Key] = ()) -> bool:
        """Return whether effects must wait: a late call would disturb them, or a key that they need is waiting."""
        if not (self._questions or self._waiting):
            return False
        effects = tuple(effects)
        if not self._waiting.isdisjoint((*needs, *(effect.key for effect in effects))):
            return True
        question = self._questions.of(effects, self.patience.seconds())
        if question is not None and (self.question is None or question.until > self.question.until):
            self.question = question
        return question is not None

    def holds_back(self, key: Key) -> bool:
        """Return whether a call for the resource was deferred in this round."""
        return key in self._waiting

    def defer(self, step: Step, call: Call, items: Iterable[Item]) -> None:
        """Postpone the given items of a call until late calls have landed."""
        part = Call(call.id, call.operation, tuple(items))
        self.deferred.append((step, part))
        self._waiting.update(effect.key for item in part.items for effect in item.effects)

    def defer_sweep(self, removals: Iterable[Effect]) -> None:
        """Postpone the sweep until late calls have landed."""
        self.defers_sweep = True
        self._waiting.update(effect.key for effect in removals)

    @property
    def remaining(self) -> float:
        """The seconds until the waiting calls can be sent."""
        until = self.question.until if self.question else 0.0
        return max(0.0, until - self.patience.seconds())

    @property
    def exceeds_patience(self) -> bool:
        return self.patience.seconds() + self.remaining > self.patience.until

    def again(self) -> tuple[list[tuple[Step, Call]], bool]:
        """Begin another round, with new call names: return the deferred calls, and whether the sweep was deferred."""
        self.number += 1
        deferred, sweeps = self.deferred, self.defers_sweep
        self.deferred, self.defers_sweep, self.question = [], False, None
        self._waiting.clear()
        return deferred, sweeps

    def journal_name(self, call: Call, items: Iterable[Item]) -> str:
        """Return the journal's name of a call with the given items; a part never gets the name of the whole call."""
        whole = self.number == 1 and len(tuple(items)) == len(call.items)
        return call.id if whole else f"{call.id}~{self.number}"

    def why(self) -> str:
        """Return the reason for waiting, for display."""
        assert self.question is not None, "nothing waits"
        return f"an earlier {self.question.operation} of {self.question.key} may still be executed"

    def when(self) -> str:
        """Return the earliest time (UTC) at which a run may proceed."""
        at = math.ceil(self.patience.now() + self.remaining)
        return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S} UTC"
