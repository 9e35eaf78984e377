"""The state of a running connector: the answer of /readyz, and the counts of the metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Info, generate_latest

from syncengine import __version__
from syncengine.posted_time.drift.model import DriftKind
from syncengine.posted_time.verdict import SinkTrouble

STARTING = "starting"
STANDBY = "standby: another process holds the inbox"


class Metrics:
    """Counters and gauges in a registry of their own."""

    def __init__(self) -> None:
        own = self.registry = CollectorRegistry()
        Info("syncengine", "This program.", registry=own).info({"version": __version__})
        self.groups = Counter("syncengine_groups", "Groups taken, by verdict.", ["outcome"], registry=own)
        self.statuses = Counter("syncengine_statuses", "Statuses the service accepted.", ["status"], registry=own)
        self.given_up = Counter("syncengine_given_up", "Groups that the service does not know.", registry=own)
        self.troubles = Counter("syncengine_troubles", "Steps that are tried again.", ["what"], registry=own)
        self.rejected = Counter("syncengine_webhook_rejected", "Calls without posted time.", ["status"], registry=own)
        self.fetches = Counter("syncengine_fetches", "Fetches that were answered.", registry=own)
        self.reconciles = Counter("syncengine_reconciles", "Applies, by how they ended.", ["outcome"], registry=own)
        self.reconciled = Gauge("syncengine_reconciled_timestamp_seconds", "The last complete apply.", registry=own)
        self.quarantined = Gauge(
            "syncengine_quarantined_resources", "Resources in quarantine, and those that wait with them.", registry=own
        )
        self.refused = Gauge(
            "syncengine_refused_resources", "Resources that were refused, and not applied since.", registry=own
        )
        self.inbox = Gauge("syncengine_inbox_groups", "Groups in the inbox, by state.", ["state"], registry=own)
        self.drift = Gauge(
            "syncengine_drift_tags",
            "Tags that posted time shows otherwise than applied, by kind.",
            ["kind"],
            registry=own,
        )
        self.sinks = Gauge("syncengine_sink_up", "Whether a sink is well.", ["sink"], registry=own)
        self.leads = Gauge("syncengine_leads", "Whether this process holds the inbox.", registry=own)

    def text(self) -> bytes:
        return generate_latest(self.registry)


@dataclass(slots=True)
class Readiness:
    """The state of this process at this moment. `alive`: no loop has ended that should run."""

    metrics: Metrics = field(default_factory=Metrics)
    phase: str | None = STARTING
    service: str | None = None
    """What is wrong with the service, or between us and it."""
    troubles: Sequence[SinkTrouble] = ()
    configuration: str | None = None
    """Why a changed project file is not in effect."""
    reconciled: str | None = None
    """How the last reconciliation ended."""
    warned: set[tuple[str, str]] = field(default_factory=set)
    """Code and text of warnings that were given: each is given once."""
    counts: Callable[[], dict[str, int]] = dict
    """Groups in the inbox, by state."""
    drift: Callable[[], Mapping[DriftKind, int]] = dict
    """Tags that drift, by kind."""

    def is_first(self, code: str, text: str) -> bool:
        """Whether this warning was not given yet; it is from now on."""
        is_known = (code, text) in self.warned
        self.warned.add((code, text))
        return not is_known

    def reasons(self) -> list[str]:
        """Why it is not ready; none when it is."""
        reasons = [reason for reason in (self.phase, self.service) if reason]
        return reasons + [f"sink {trouble.sink}: {trouble.message}" for trouble in self.troubles]
