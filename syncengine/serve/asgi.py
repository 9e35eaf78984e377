"""The webhook receiver under another ASGI server: `uvicorn --factory syncengine.serve.asgi:application`.

The project is in the current folder, or in `SYNCENGINE_FOLDER`. Everything else that `serve` does runs beside the
application, in the server's event loop and for its lifetime; the server listens and handles signals. A second worker
is a standby: it answers 503 until it has the inbox, and the service calls again. `GET /healthz` and `/readyz` answer
without reasons, because everyone who can reach the receiver can reach them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from syncengine.errors import SyncengineError, Usage
from syncengine.http_server import origin_form
from syncengine.posted_time.webhook import LATER
from syncengine.project.delivery_schema import Mode
from syncengine.project.load import load_project
from syncengine.project.model import Project
from syncengine.serve.log import Log, QueuedStream
from syncengine.serve.process import Configuration, Process
from syncengine.serve.readiness import Readiness
from syncengine.service.operations import OPERATIONS


@dataclass(slots=True)
class _Mounted:
    """An ASGI application that passes calls to the current receiver, or answers 503 when there is none."""

    receiver: ASGIApp | None = None

    def put(self, receiver: ASGIApp | None) -> None:
        self.receiver = receiver

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.receiver or PlainTextResponse(LATER, 503))(scope, receive, send)


def application() -> ASGIApp:
    """Build the application of the project. An error in the project ends the process with `serve`'s exit code."""
    stream, mounted = QueuedStream(sys.stderr), _Mounted()
    log = Log(stream, time.time)
    process = Process(_project, _serving, os.environ, log, mount=mounted.put)
    try:
        first = _receiving(process.configured())
    except SyncengineError as error:
        log.refusal("ended", error)
        stream.close()
        sys.exit(error.exit_code)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        working = asyncio.create_task(_work(process, first, log))
        yield
        process.stop()
        await working
        await asyncio.to_thread(stream.close)

    return origin_form(Starlette(routes=[*_probes(process.readiness), Mount("/", mounted)], lifespan=lifespan))


def _probes(readiness: Readiness) -> list[Route]:
    async def healthz(_: Request) -> Response:
        return JSONResponse({"alive": True})

    async def readyz(_: Request) -> Response:
        is_ready = not readiness.reasons()
        return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


async def _work(process: Process, first: Configuration, log: Log) -> None:
    """Run the delivery. An error ends only the delivery, not the server, which answers 503 from then on."""
    try:
        await process.work(first)
    except SyncengineError as error:
        log.refusal("ended", error)


def _project() -> Project:
    return load_project(
        folder=Path(os.environ.get("SYNCENGINE_FOLDER", ".")), environ=os.environ, operations=OPERATIONS
    )


def _serving(project: Project) -> AbstractContextManager[str]:
    return nullcontext(project.base_url())


def _receiving(first: Configuration) -> Configuration:
    project = first.project
    if project.is_sandbox:
        raise Usage("the embedded sandbox is not available under another server: run `syncengine serve`")
    if project.posted_time is None or project.posted_time.mode is not Mode.WEBHOOK:
        raise Usage("there is nothing to receive: set `postedTime.mode: webhook`")
    return first
