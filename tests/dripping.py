"""An HTTP server on loopback whose answers begin and then arrive a few bytes at a time, for ever."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

HEADERS = b"HTTP/1.1 200 OK\r\n"
BODY = HEADERS + b"content-length: 1000000\r\n\r\n"
DROPS = {HEADERS: b"x-a: b\r\n", BODY: b" "}


class Dripping(socketserver.ThreadingTCPServer):
    """Answers with `before` and then drips; a path in `whole` gets its whole answer.

    `asked` is set as soon as an answer drips; `over` ends all answers.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, before: bytes, whole: Mapping[bytes, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.before = before
        self.whole = whole
        self.asked = threading.Event()
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(socketserver.StreamRequestHandler):
    server: Dripping

    def handle(self) -> None:
        try:
            while line := self.rfile.readline():
                self._read()
                whole = self.server.whole.get(line.split(b" ")[1])
                self.wfile.write(whole or self.server.before)
                if whole is None:
                    self._drip()
        except ConnectionError:
            pass  # the client has gone

    def _read(self) -> None:
        length = 0
        while (header := self.rfile.readline().lower()) not in (b"\r\n", b""):
            name, _, value = header.partition(b":")
            length = int(value) if name == b"content-length" else length
        self.rfile.read(length)

    def _drip(self) -> None:
        self.server.asked.set()
        while not self.server.over.wait(0.01):
            self.wfile.write(DROPS[self.server.before])


@contextmanager
def dripping(before: bytes, whole: Mapping[bytes, bytes] | None = None) -> Iterator[Dripping]:
    with Dripping(before, whole or {}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()
