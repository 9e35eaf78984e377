"""A line between a machine and its database that can be cut: nothing arrives any more, and neither end is notified."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

MOST = 1 << 16


@dataclass
class Line:
    """Passes bytes on to `target` until it is cut. A mended line carries new connections; old ones are closed."""

    target: int
    listener: socket.socket
    is_cut: threading.Event = field(default_factory=threading.Event)
    ends: list[socket.socket] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)
    turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    def cut(self) -> None:
        self.is_cut.set()

    def mend(self) -> None:
        self.is_cut.clear()
        self.end()

    def end(self) -> None:
        """Close all connections."""
        with self.turn:
            for end in self.ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for thread in self.threads:
                thread.join()
            for end in self.ends:
                end.close()
            self.ends.clear()
            self.threads.clear()

    def accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            with self.turn:
                self.ends.append(near)
                if not self.is_cut.is_set():  # while cut, connections are accepted but nobody answers
                    self._join(near)

    def _join(self, near: socket.socket) -> None:
        far = socket.create_connection(("127.0.0.1", self.target))
        self.ends.append(far)
        for pair in ((near, far), (far, near)):
            self.threads.append(threading.Thread(target=self._pass, args=pair, daemon=True))
            self.threads[-1].start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while (data := source.recv(MOST)) and not self.is_cut.is_set():
                target.sendall(data)
            if not self.is_cut.is_set():
                target.shutdown(socket.SHUT_WR)


@contextmanager
def line(target: int) -> Iterator[Line]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        made = Line(target, listener)
        accepting = threading.Thread(target=made.accept, daemon=True)
        accepting.start()
        try:
            yield made
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            made.end()
