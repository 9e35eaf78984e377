"""Run the sandbox as a server: in the foreground for people, in a thread beside an apply or a test."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from syncengine.errors import SyncengineError
from syncengine.http.server import listening, origin_form
from syncengine.sandbox import console, control
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.interface import CUT, PREFIX, Interface, call_webhook

LOOPBACK = "127.0.0.1"
API_KEY = "sandbox"


@dataclass(frozen=True, slots=True)
class RunningSandbox:
    """The URLs of a running sandbox, for the interface, the control API and the console page, and its API key."""

    url: str
    control_url: str
    api_key: str
    console_url: str


def serve(
    host: str,
    port: int,
    data: Path | None,
    api_key: str = API_KEY,
    *,
    ready: Callable[[RunningSandbox], None] = lambda running: None,
) -> None:
    """Serve until SIGINT or SIGTERM, then return.

    Port 0 chooses a free port; `ready` is called with the resulting URLs. Raise `SyncengineError` when the address or
    the file cannot be used, and `LockHeld` when another sandbox uses the file.
    """
    with closing(Sandbox(data)) as sandbox, closing(_bound(host, port)) as bound:
        server = _Server(sandbox, api_key, log_level="error", on_ready=lambda: ready(_running(bound, api_key)))
        server.run([bound])


@contextmanager
def running_sandbox(
    data: Path | None = None,
    *,
    api_key: str = API_KEY,
    host: str = LOOPBACK,
    port: int = 0,
) -> Iterator[RunningSandbox]:
    """Run a sandbox in a thread of this process while the block runs. It answers when the block is entered."""
    with closing(Sandbox(data)) as sandbox, closing(_bound(host, port)) as bound:
        started = threading.Event()
        server = _Server(sandbox, api_key, log_level="critical", on_ready=started.set)
        running = _running(bound, api_key)
        # With an event loop of its own, because the apply beside it blocks and ends its loop as it likes. A daemon: a
        # process that is interrupted in the block's end must not wait for it.
        thread = threading.Thread(target=server.run, args=([bound],), name="sandbox", daemon=True)
        thread.start()
        try:
            started.wait()
            yield running
        finally:
            server.should_exit = True
            thread.join()


def _bound(host: str, port: int) -> socket.socket:
    try:
        return listening(host, port)
    except OSError as error:
        cause = str(error.strerror).partition(" (while")[0]
        message = (
            f"cannot listen on {host}:{port}: {cause}; choose another address with --host and --port, or any free port"
            " with --port 0"
        )
        raise SyncengineError(message, code="sandbox-address") from error


def _running(bound: socket.socket, api_key: str) -> RunningSandbox:
    host, port = bound.getsockname()[:2]
    origin = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    return RunningSandbox(f"{origin}{PREFIX}", f"{origin}/sandbox", api_key, f"{origin}/")


class _Protocol(H11Protocol):
    """HTTP/1.1 that lets a reply cut its connection, which ASGI lacks."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        # Head and body are two writes: without this option, each answer waits 40 ms for the client's acknowledgement.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.app_state = {**self.app_state, CUT: transport.abort}


class _Server(uvicorn.Server):
    """A server that calls `on_ready` once it answers, ends delayed replies when it stops, and returns on a signal."""

    def __init__(
        self,
        sandbox: Sandbox,
        api_key: str,
        *,
        log_level: str,
        on_ready: Callable[[], None],
    ) -> None:
        self._sandbox, self._on_ready = sandbox, on_ready
        self._stopping = asyncio.Event()  # ends replies that are still waiting
        interface = Route(f"{PREFIX}/{{path:path}}", Interface(sandbox, api_key, self._stopping))
        config = uvicorn.Config(
            origin_form(Starlette(routes=[*console.routes(sandbox), interface, *control.routes(sandbox)])),
            http=_Protocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level=log_level,
            access_log=False,
            # longer than clients keep an idle connection, so that none is closed under a request
            timeout_keep_alive=75,
            # `shutdown` has ended all that waits: the rest are clients that do not read
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._calling = asyncio.create_task(call_webhook(self._sandbox))
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        self._calling.cancel()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True
