"""The state of a running connector, which `/readyz` and `/metrics` show."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Info, generate_latest

from syncengine import __version__
from syncengine.posted_time.drift import DriftKind
from syncengine.posted_time.events import SinkTrouble

STARTING = "starting"
NOT_RECONCILED = {
    "invalid": "the manifests or the project file are invalid",
    "configuration": "the project file on disk is not the one that was loaded: it is invalid, or not loaded yet",
    "unauthorized": "the service rejects the key",
    "unreachable": "the service cannot be reached",
    "error": "the last apply ended with an error",
}
"""The outcomes of an apply after which nothing is reconciled, and why."""

DOWN_SECONDS = 60.0
"""The seconds for which a sink is down before the process is not ready: a shorter outage needs no other process."""

STANDBY = "standby: another process holds the inbox"


class Metrics:
    """The process's counters and gauges, in a registry of their own."""

    def __init__(self) -> None:
        own = self.registry = CollectorRegistry()
        Info("syncengine", "Version of syncengine.", registry=own).info({"version": __version__})
        self.groups = Counter("syncengine_groups", "Verdicts on groups, by outcome.", ["outcome"], registry=own)
        self.statuses = Counter("syncengine_statuses", "Statuses that the service accepted.", ["status"], registry=own)
        self.given_up = Counter("syncengine_given_up", "Statuses that the service will never accept.", registry=own)
        self.troubles = Counter("syncengine_troubles", "Failed steps that are retried.", ["what"], registry=own)
        self.rejected = Counter("syncengine_webhook_rejected", "Rejected webhook calls.", ["status"], registry=own)
        self.fetches = Counter("syncengine_fetches", "Fetches that were answered.", registry=own)
        self.reconciles = Counter("syncengine_reconciles", "Applies, by outcome.", ["outcome"], registry=own)
        self.reconciled = Gauge("syncengine_reconciled_timestamp_seconds", "The last complete apply.", registry=own)
        self.quarantined = Gauge(
            "syncengine_quarantined_resources", "Resources in quarantine, or waiting for one that is.", registry=own
        )
        self.refused = Gauge(
            "syncengine_refused_resources", "Resources that the service refused, not applied since.", registry=own
        )
        self.inbox = Gauge("syncengine_inbox_groups", "Groups in the inbox, by state.", ["state"], registry=own)
        self.drift = Gauge(
            "syncengine_drift_tags",
            "Tags whose content in posted time differs from the applied content, by kind.",
            ["kind"],
            registry=own,
        )
        self.sinks = Gauge("syncengine_sink_up", "Whether a sink is up.", ["sink"], registry=own)
        self.leads = Gauge("syncengine_leads", "Whether this process holds the inbox.", registry=own)

    def text(self) -> bytes:
        return generate_latest(self.registry)


@dataclass(slots=True)
class Readiness:
    """The current state of this process. `phase` is `None` once the process is working."""

    metrics: Metrics = field(default_factory=Metrics)
    started: float = field(default_factory=time.monotonic)
    """By the monotonic clock."""
    phase: str | None = STARTING
    service: str | None = None
    """The trouble with the service or the connection, or `None`."""
    troubles: Sequence[SinkTrouble] = ()
    down_since: dict[str, float] = field(default_factory=dict)
    """When each sink in `troubles` was first found down, by the monotonic clock."""
    has_posted_time: bool = False
    configuration: str | None = None
    """The reason why a changed project file is not in effect, or `None`."""
    reconciled: str | None = None
    """The outcome of the last reconciliation, or `None` before the first."""
    warned: set[tuple[str, str]] = field(default_factory=set)
    """The code and text of warnings logged so far, each of which is logged once."""
    counts: Callable[[], dict[str, int]] = dict
    """A callback for the number of groups in the inbox, by state."""
    drift: Callable[[], Mapping[DriftKind, int]] = dict
    """A callback for the number of drifting tags, by kind."""

    def is_first(self, code: str, text: str) -> bool:
        """Return whether this warning is new, and remember it."""
        is_known = (code, text) in self.warned
        self.warned.add((code, text))
        return not is_known

    def reasons(self) -> list[str]:
        """Return the reasons why the process is not ready. An empty list when it is."""
        reasons = [reason for reason in (self.phase, self.service) if reason]
        if not self.has_posted_time and self.reconciled in NOT_RECONCILED:
            reasons.append(f"nothing is reconciled: {NOT_RECONCILED[self.reconciled]}")
        since = time.monotonic() - DOWN_SECONDS
        late = (trouble for trouble in self.troubles if self.down_since.get(trouble.sink, since) <= since)
        return reasons + [f"sink {trouble.sink}: {trouble.message}" for trouble in late]

    def note_sinks(self, troubles: Sequence[SinkTrouble]) -> None:
        """Note which sinks are down now."""
        now = time.monotonic()
        self.down_since = {trouble.sink: self.down_since.get(trouble.sink, now) for trouble in troubles}
        self.troubles = troubles
