"""An HTTP sink on loopback that answers as a test decides, and records the requests that it gets."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.quiet import QuietHandler, listening


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
    """`answer` returns status and JSON, or None to close the connection; `headers` are part of every answer."""

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

    class Handler(QuietHandler):
        def answer(self) -> None:
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
            content = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.say(status, content, receiver.headers)

    with listening(Handler, port) as receiver.url:
        yield receiver
