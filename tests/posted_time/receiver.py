"""An HTTP sink on loopback that answers as a test decides, and records the requests that it gets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.quiet import QuietHTTPServer


@dataclass(frozen=True)
class Got:
    """One request. `lines` are its header names in the order in which they arrived, in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    lines: tuple[str, ...] = ()


@dataclass
class Receiver:
    """`answer` returns the status and the JSON (or raw bytes) for a request.

    If it returns None, the request is recorded and the connection closed. `headers` are part of every answer.
    """

    url: str = ""
    got: list[Got] = field(default_factory=list)
    answer: Callable[[Got], tuple[int, Any] | None] = lambda got: (201, {"id": 4711})
    headers: dict[str, str] = field(default_factory=dict)

    def says(self, *answers: tuple[int, Any] | None) -> None:
        """Give these answers one after the other, and no further one."""
        following = iter(answers)
        self.answer = lambda got: next(following)

    @property
    def kept(self) -> dict[str, Any]:
        """Bodies by Idempotency-Key, as a receiver that honours the key keeps them."""
        return {got.headers["idempotency-key"]: got.body for got in self.got if got.method == "POST"}


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            got = Got(self.command, self.path, headers, body, tuple(map(str.lower, self.headers.keys())))
            receiver.got.append(got)
            answer = receiver.answer(got)
            if answer is None:
                self.close_connection = True
                return
            status, document = answer
            data = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **receiver.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self.handle_one
            raise AttributeError(name)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = QuietHTTPServer(("127.0.0.1", port), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
