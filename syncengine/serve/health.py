"""Check the sinks every minute, and report each new trouble to the service once (docs/service.md §2)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from syncengine.connector.registration import HealthReporter
from syncengine.posted_time.backoff import PACE, Pace, slept
from syncengine.posted_time.verdict import SinkTrouble
from syncengine.serve.log import Log
from syncengine.serve.readiness import Readiness


class DeliveryHealth(Protocol):
    """The part of a delivery that the health loop needs."""

    @property
    def is_cautious(self) -> bool: ...

    async def check_sinks(self) -> tuple[SinkTrouble, ...]: ...


class Checking:
    """The loop that checks the sinks until `stop` is set. Call `wake` if a sink fails, so that users know at once."""

    def __init__(
        self,
        delivery: DeliveryHealth,
        reporter: HealthReporter,
        sinks: Sequence[str],
        *,
        log: Log,
        readiness: Readiness,
        stop: asyncio.Event,
        pace: Pace = PACE,
    ) -> None:
        self._delivery = delivery
        self._reporter = reporter
        self._sinks = sinks
        self._log = log
        self._readiness = readiness
        self._stop = stop
        self._pace = pace
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        while not self._stop.is_set():
            self._woken.clear()
            await slept(await self.check(), self._stop, self._woken)

    async def check(self) -> float:
        """Check the sinks once, report changes, and return the seconds until the next check."""
        troubles = await self._delivery.check_sinks()
        self._show(troubles)
        is_accepted = True
        in_doubt = self._delivery.is_cautious
        if (troubles or not in_doubt) and await self._reporter.is_news(troubles):
            is_accepted = await self._tell(troubles)
        return self._pace.down if in_doubt or not is_accepted else self._pace.well

    def _show(self, troubles: tuple[SinkTrouble, ...]) -> None:
        down = {trouble.sink for trouble in troubles}
        for trouble in troubles:
            if trouble not in self._readiness.troubles:
                detail = f" [{trouble.detail}]" if trouble.detail else ""
                then = f"Posted time waits until the sink has recovered; checking again in {self._pace.down:g} s."
                message = f"sink {trouble.sink}: {trouble.message}{detail} {then}"
                self._log.error("sink-down", message, sink=trouble.sink, kind=trouble.kind.value)
        for sink in sorted({trouble.sink for trouble in self._readiness.troubles} - down):
            self._log.info("sink-up", f"sink {sink} has recovered", sink=sink)
        for sink in {*self._sinks, *down}:
            self._readiness.metrics.sinks.labels(sink).set(sink not in down)
        self._readiness.note_sinks(troubles)

    async def _tell(self, troubles: tuple[SinkTrouble, ...]) -> bool:
        answer = await self._reporter.tell(troubles)
        if answer.ok:
            state = "a health failure" if troubles else "all sinks are up"
            self._log.info("health", f"reported to the service: {state}")
        else:
            self._log.warning("health", f"the service did not accept the health report: {answer.summary}; retrying")
        return answer.ok
