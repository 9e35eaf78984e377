"""The state of a running connector, and `/healthz`, `/readyz`, `/metrics` and a page for people, which show it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

import uvicorn
from jinja2 import Environment
from prometheus_client import CollectorRegistry, Counter, Gauge, Info, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from syncengine import __version__
from syncengine.errors import SyncengineError
from syncengine.http.server import BoundedProtocol, Bounds, bounded, listening, origin_form
from syncengine.posted_time.drift import DriftKind
from syncengine.posted_time.events import SinkTrouble
from syncengine.render.html import digest, page_file

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


METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>syncengine: {{ "ready" if not reasons else "not ready" }}</title>
<style>{{ style | safe }}</style>
</head>
<body>
<main>
<header><p class="product"><b>syncengine</b> serve</p><h1>{{ "Ready" if not reasons else "Not ready" }}</h1></header>
{% if reasons %}
<section class="error">
{% for reason in reasons %}
<p>{{ reason }}</p>
{% endfor %}
</section>
{% endif %}
{% if configuration %}
<section class="warning"><h2>Nothing is reconciled by the project file on disk</h2><p>{{ configuration }}</p></section>
{% endif %}
<section>
<table>
<tbody>
<tr><th scope="row">last apply</th><td>{{ reconciled or "none yet" }}</td></tr>
{% for state, count in groups.items() %}
<tr><th scope="row">groups {{ state }}</th><td>{{ "{:,}".format(count) }}</td></tr>
{% endfor %}
{% for trouble in troubles %}
<tr><th scope="row">sink {{ trouble.sink }}</th><td class="failed">{{ trouble.message }}</td></tr>
{% endfor %}
<tr><th scope="row">up for</th><td>{{ uptime }}</td></tr>
<tr><th scope="row">version</th><td>{{ version }}</td></tr>
</tbody>
</table>
</section>
</main>
</body>
</html>
""")
"""What the probes tell, for a person: no people, no time that they posted, no secrets."""


class AddressTaken(SyncengineError):
    """Raised when an address is in use, or this process may not listen on it."""

    code = "address"


def probes(readiness: Readiness) -> Starlette:
    """Return the application that answers probes about this process."""

    async def healthz(_: Request) -> Response:
        return JSONResponse({"alive": True})

    async def readyz(_: Request) -> Response:
        reasons = readiness.reasons()
        body = {
            "ready": not reasons,
            "reasons": reasons,
            "reconciled": readiness.reconciled,
            "configuration": readiness.configuration,
        }
        return JSONResponse(body, 503 if reasons else 200)

    async def metrics(_: Request) -> Response:
        with suppress(SyncengineError):  # a database in trouble must not hide the other figures
            for state, count in (await asyncio.to_thread(readiness.counts)).items():
                readiness.metrics.inbox.labels(state).set(count)
        with suppress(SyncengineError):
            for kind, count in (await asyncio.to_thread(readiness.drift)).items():
                readiness.metrics.drift.labels(kind.value).set(count)
        return Response(generate_latest(readiness.metrics.registry), media_type=METRICS_TYPE)

    async def page(_: Request) -> Response:
        groups: dict[str, int] = {}
        style = page_file("pages.css")
        with suppress(SyncengineError):
            groups = await asyncio.to_thread(readiness.counts)
        text = PAGE.render(
            reasons=readiness.reasons(),
            configuration=readiness.configuration,
            reconciled=readiness.reconciled,
            groups=groups,
            troubles=readiness.troubles,
            uptime=timedelta(seconds=int(time.monotonic() - readiness.started)),
            version=__version__,
            style=style,
        )
        policy = f"default-src 'none'; style-src {digest(style)}; base-uri 'none'; form-action 'none'"
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    paths = {"/": page, "/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
    return Starlette(routes=[Route(path, answer) for path, answer in paths.items()])


class Server:
    """A server of an application at an address. `stop` waits up to `patience` seconds for answers that have begun.

    `setting` is where the address stands in the settings. `http` is the protocol class of the connections, which limits
    them. `bound` is a socket that listens at the address already.
    """

    def __init__(
        self,
        application: ASGIApp,
        address: tuple[str, int],
        *,
        setting: str,
        patience: float,
        http: type[asyncio.Protocol] | None = None,
        bound: socket.socket | None = None,
    ) -> None:
        self._application = application
        self._http = http or bounded(BoundedProtocol, Bounds())
        self._address = address
        self._setting = setting
        self._patience = patience
        self._bound = bound
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Listen, and return the URL. Raise `AddressTaken` when that is not possible."""
        bound, self._bound = self._bound or bound_at(*self._address, self._setting), None
        config = uvicorn.Config(
            origin_form(self._application),
            http=self._http,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=int(self._patience),
        )
        self._server = _Quiet(config)
        self._running = asyncio.create_task(self._server.serve(sockets=[bound]))
        await self._server.up.wait()
        host, port = bound.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def stop(self) -> None:
        if self._running is not None:
            self._server.should_exit = True
            await self._running
            self._running = None


class _Quiet(uvicorn.Server):
    """A `uvicorn` server that leaves signals to the process, and sets `up` when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bound_at(host: str, port: int, setting: str) -> socket.socket:
    """Return a socket that listens at an address, which `setting` sets. Raise `AddressTaken` if it cannot."""
    try:
        return listening(host, port)
    except OSError as error:
        cause = str(error.strerror or error).partition(" (while")[0]
        raise AddressTaken(f"cannot listen on {host}:{port}: {cause}; choose another address by {setting}") from None
