"""A webhook receiver in a thread, which records its calls and answers as a test says."""

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.quiet import QuietHandler, listening
from tests.support.waiting import eventually


@dataclass
class Receiver:
    """Gives the next of `answers`, or 200 when there is none; for `None` it cuts the connection."""

    url: str
    answers: deque[tuple[int, str] | None] = field(default_factory=deque)
    calls: list[dict[str, Any]] = field(default_factory=list)
    holding: threading.Event = field(default_factory=threading.Event)
    """While this event is cleared, callers wait for their answer."""

    def called(self, times: int) -> list[dict[str, Any]]:
        return eventually(lambda: self.calls if len(self.calls) >= times else [])


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(QuietHandler):
        def answer(self) -> None:
            if self.command != "POST":  # a probe
                self.say(501)
                return
            answer = receiver.answers.popleft() if receiver.answers else (200, "")
            receiver.calls.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            receiver.holding.wait()
            if answer is None:
                self.close_connection = True
                return
            status, text = answer
            self.say(status, text.encode(), {"location": receiver.url})

    with listening(Handler) as url:
        receiver = Receiver(f"{url}/hook")
        receiver.holding.set()
        try:
            yield receiver
        finally:
            receiver.holding.set()
