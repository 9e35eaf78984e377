"""An HTTP server on loopback whose answers begin and then arrive a few bytes at a time, for ever."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.support.quiet import QuietHandler, listening

HEADERS = b"HTTP/1.1 200 OK\r\n"
BODY = HEADERS + b"content-length: 1000000\r\n\r\n"
DROPS = {HEADERS: b"x-a: b\r\n", BODY: b" "}


@dataclass
class Dripping:
    """`asked` is set as soon as an answer drips; `over` ends all answers."""

    url: str = ""
    asked: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def dripping(before: bytes, whole: Mapping[bytes, bytes] | None = None) -> Iterator[Dripping]:
    """A server that answers with `before` and then drips; a path in `whole` gets its whole answer."""
    server = Dripping()

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            with suppress(ConnectionError):  # the client has gone
                if answer := (whole or {}).get(self.path.encode()):
                    self.wfile.write(answer)
                    return
                self.wfile.write(before)
                server.asked.set()
                while not server.over.wait(0.01):
                    self.wfile.write(DROPS[before])
            self.close_connection = True

    with listening(Handler) as server.url:
        try:
            yield server
        finally:
            server.over.set()
