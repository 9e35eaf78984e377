"""Serve `/healthz`, `/readyz`, `/metrics` and a page for people over HTTP from the event loop of the connector."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import uvicorn
from jinja2 import Environment
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from syncengine import __version__
from syncengine.errors import SyncengineError
from syncengine.serve.readiness import Readiness
from syncengine.service.connection_bounds import BoundedProtocol, Bounds, bounded, listening, origin_form

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PAGE = Environment(autoescape=True, trim_blocks=True).from_string("""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>syncengine: {{ "ready" if not reasons else "not ready" }}</title>
<h1>{{ "Ready" if not reasons else "Not ready" }}</h1>
{% for reason in reasons %}
<p>{{ reason }}</p>
{% endfor %}
{% if configuration %}
<p><b>Nothing is reconciled by the project file on disk:</b> {{ configuration }}</p>
{% endif %}
<table>
<tr><th>last apply<td>{{ reconciled or "none yet" }}
{% for state, count in groups.items() %}
<tr><th>groups {{ state }}<td>{{ count }}
{% endfor %}
{% for trouble in troubles %}
<tr><th>sink {{ trouble.sink }}<td>{{ trouble.message }}
{% endfor %}
<tr><th>up for<td>{{ uptime }}
<tr><th>version<td>{{ version }}
</table>
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
        return Response(readiness.metrics.text(), media_type=METRICS_TYPE)

    async def page(_: Request) -> Response:
        groups: dict[str, int] = {}
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
        )
        return HTMLResponse(text, headers={"Content-Security-Policy": "default-src 'none'"})

    paths = {"/": page, "/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
    return Starlette(routes=[Route(path, answer) for path, answer in paths.items()])


class Server:
    """A server of an application at an address. `stop` waits up to `patience` seconds for answers that have begun.

    `setting` is where the address stands in the settings. `http` is the protocol class of the connections, which limits
    them.
    """

    def __init__(
        self,
        application: ASGIApp,
        address: tuple[str, int],
        *,
        setting: str,
        patience: float,
        http: type[asyncio.Protocol] | None = None,
    ) -> None:
        self._application = application
        self._http = http or bounded(BoundedProtocol, Bounds())
        self._address = address
        self._setting = setting
        self._patience = patience
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Listen, and return the URL. Raise `AddressTaken` when that is not possible."""
        bound = _bound(*self._address, self._setting)
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


def _bound(host: str, port: int, setting: str) -> socket.socket:
    try:
        return listening(host, port)
    except OSError as error:
        cause = str(error.strerror or error).partition(" (while")[0]
        raise AddressTaken(f"cannot listen on {host}:{port}: {cause}; choose another address by {setting}") from None
