"""A service that answers as a test says, where the sandbox cannot misbehave enough: a real HTTP server on loopback.

It keeps a world by the sandbox's rules; `refuses` may answer in their place, and hears every request.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from syncengine.sandbox.instance import Sandbox as Rules
from syncengine.sandbox.rules import RULES
from syncengine.service.operations import OPERATIONS
from tests.support.quiet import QuietHandler, listening

from .bench import names_in

Refusal = tuple[int, Any]
PATHS = {operation.path: operation.id for operation in OPERATIONS.values()}


@dataclass
class Picky:
    """`refuses(operation, body)` gives the answer, or None to let the rules decide.

    `elsewhere`: further paths of operations.
    """

    url: str = ""
    rules: Rules = field(default_factory=Rules)
    refuses: Callable[[str, Any], Refusal | None] = lambda operation, body: None
    elsewhere: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, operation: str, body: Any) -> Refusal:
        with self.lock:
            self.requests.append((operation, body))
            refusal = self.refuses(operation, body)
            return refusal if refusal is not None else tuple(self.rules.do(RULES[operation], body))

    def sent(self, operation: str) -> list[list[str]]:
        """Return the names of the items of each request to `operation`."""
        return [names_in(body) for asked, body in self.requests if asked == operation]


def refusing(operation: str, name: str, status: int) -> Callable[[str, Any], Refusal | None]:
    """Refuse each whole call of the operation with an item of this name."""
    refusal = (status, {"message": "something in it is wrong"})
    return lambda asked, body: refusal if asked == operation and name in names_in(body) else None


@contextmanager
def picky() -> Iterator[Picky]:
    """A picky service that runs for the time of the block."""
    service = Picky()

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, body = service.answer({**PATHS, **service.elsewhere}[self.path], msgspec.json.decode(raw or b"{}"))
            content = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
            self.say(status, content, {"Retry-After": "0"} if status >= 500 else None)

    with closing(service.rules), listening(Handler) as service.url:
        yield service
