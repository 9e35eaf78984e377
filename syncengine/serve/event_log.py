"""Turn events of posted time into log lines, counters and readiness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncengine.posted_time.events import (
    Acknowledged,
    Answered,
    Event,
    GivenUp,
    Offered,
    RetryLater,
    Taken,
    Unusable,
)
from syncengine.posted_time.verdict import PostedTimeStatus
from syncengine.render.words import count_of
from syncengine.serve.log import Log
from syncengine.serve.readiness import Readiness

PATIENT = 3
"""The number of failed fetches in a row after which the service counts as unreachable."""


class Telling:
    """A listener that logs events, and updates metrics and readiness. `on_verdict` gets each verdict after that."""

    def __init__(self, log: Log, readiness: Readiness, on_verdict: Callable[[PostedTimeStatus], None]) -> None:
        self._log = log
        self._readiness = readiness
        self._on_verdict = on_verdict
        self._troubles = 0

    def __call__(self, event: Event) -> None:
        _ROWS[type(event)](self, event)

    def offered(self, event: Offered) -> None:
        self._health()
        self._readiness.metrics.fetches.inc()
        if event.groups:
            self._log.info("fetched", f"fetched {count_of(event.groups, 'group')} of posted time", groups=event.groups)

    def verdict(self, event: Taken) -> None:
        verdict = event.verdict
        self._readiness.metrics.groups.labels(verdict.outcome.value).inc()
        say = self._log.info if verdict.outcome is PostedTimeStatus.SUCCESS else self._log.warning
        words = f": {verdict.message}" if verdict.message else ""
        why = f" [{verdict.detail}]" if verdict.detail else ""
        then = " The service will offer it again." if verdict.outcome is PostedTimeStatus.TROUBLE else ""
        say(
            "taken",
            f"group {event.group_id}: {verdict.outcome.value}{words}{why}{then}",
            group=event.group_id,
            outcome=verdict.outcome.value,
            externalId=verdict.external_id,
        )
        self._on_verdict(verdict.outcome)

    def unusable(self, event: Unusable) -> None:
        self._log.warning("unusable", event.why)

    def acknowledged(self, event: Acknowledged) -> None:
        self._health()
        self._readiness.metrics.statuses.labels(event.status).inc()
        self._log.info(
            "acknowledged",
            f"group {event.group_id}: the service accepted {event.status}",
            group=event.group_id,
            status=event.status,
        )

    def given_up(self, event: GivenUp) -> None:
        self._readiness.metrics.given_up.inc()
        self._log.error("given-up", f"group {event.group_id}: {event.why}", group=event.group_id)

    def waiting(self, event: RetryLater) -> None:
        what = event.what.partition(" ")[0]
        self._readiness.metrics.troubles.labels(what).inc()
        self._troubles += what == "fetch"
        if self._troubles >= PATIENT:
            self._readiness.service = f"posted time cannot be fetched: {event.why}"
        again = f"; retrying in {event.seconds:.1f} s" if event.seconds else ""
        self._log.warning("waiting", f"{event.what}: {event.why}{again}", what=what)

    def answered(self, event: Answered) -> None:
        self._readiness.metrics.rejected.labels(str(event.status)).inc()
        message = f"rejected a webhook call with status {event.status}: {event.why}"
        self._log.warning("rejected", message, status=event.status)

    def _health(self) -> None:
        self._troubles = 0
        self._readiness.service = None


_ROWS: dict[type[Event], Callable[[Telling, Any], None]] = {
    Offered: Telling.offered,
    Taken: Telling.verdict,
    Unusable: Telling.unusable,
    Acknowledged: Telling.acknowledged,
    GivenUp: Telling.given_up,
    RetryLater: Telling.waiting,
    Answered: Telling.answered,
}
