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
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from syncengine.errors import SyncengineError, Usage
from syncengine.http.server import origin_form
from syncengine.posted_time.webhook import LATER
from syncengine.project.delivery_schema import Mode
from syncengine.project.load import load_project
from syncengine.serve.log import Log, QueuedStream
from syncengine.serve.process import Process
from syncengine.service.operations import OPERATIONS


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
    log, folder = Log(stream, time.time), Path(os.environ.get("SYNCENGINE_FOLDER", "."))
    process = Process(
        lambda: load_project(folder=folder, environ=os.environ, operations=OPERATIONS),
        lambda project: nullcontext(project.base_url()),
        os.environ,
        log,
        mount=mounted.put,
    )
    try:
        first = process.configured()
        if first.project.is_sandbox:
            raise Usage("the embedded sandbox is not available under another server: run `syncengine serve`")
        if first.project.posted_time is None or first.project.posted_time.mode is not Mode.WEBHOOK:
            raise Usage("there is nothing to receive: set `postedTime.mode: webhook`")
    except SyncengineError as error:
        log.refusal("ended", error)
        stream.close()
        sys.exit(error.exit_code)

    async def work() -> None:
        try:
            await process.work(first)
        except SyncengineError as error:  # it ends only the delivery, not the server, which answers 503 from then on
            log.refusal("ended", error)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        working = asyncio.create_task(work())
        yield
        process.stop()
        await working
        await asyncio.to_thread(stream.close)

    async def healthz(_: Request) -> Response:
        return JSONResponse({"alive": True})

    async def readyz(_: Request) -> Response:
        is_ready = not process.readiness.reasons()
        return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)

    routes = [Route("/healthz", healthz), Route("/readyz", readyz), Mount("/", mounted)]
    return origin_form(Starlette(routes=routes, lifespan=lifespan))
