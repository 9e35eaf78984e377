"""Servers of tests, which say nothing of requests or of clients that reset their connection; and unused ports."""

import random
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import sqlalchemy as sa


class QuietHTTPServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class QuietHandler(BaseHTTPRequestHandler):
    """Handles requests of every method by `answer`, which a test defines."""

    def answer(self) -> None:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def say(self, status: int, content: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        with suppress(ConnectionError):
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """The URL of a server on loopback that handles requests like this, for the duration of the block."""
    with QuietHTTPServer(("127.0.0.1", port), handler) as server:
        # It looks so often whether it is to stop, which a test waits for.
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


RANGE = range(10_000, 32_000)
"""Below the ports that a kernel hands out to clients and to servers that ask for port 0: nobody takes one by chance."""


def unused_port() -> int:
    """A port of 127.0.0.1 that nothing listens at."""
    while True:
        port = random.SystemRandom().choice(RANGE)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


def database_answers(url: str) -> bool:
    engine = sa.create_engine(url)
    try:
        with engine.connect():
            return True
    except sa.exc.OperationalError:
        return False
    finally:
        engine.dispose()
