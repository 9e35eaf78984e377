"""The log of requests to the interface. Of the headers only the user agent is kept, so the log has no API keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from pydantic_core import from_json

from syncengine.sandbox.store import Json
from syncengine.service.answers import HIDDEN

ENTRIES = 100_000
"""The maximum number of requests that the log keeps."""

BODY_BYTES = 32_000_000
"""The maximum number of bytes of request bodies that the log keeps. The oldest bodies are dropped first."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """The state of a late call: the times when it is `due` and was `executed`, and the `status` of its answer."""

    due: int | None
    executed: int | None = None
    status: int | None = None


@dataclass(slots=True)
class LoggedRequest:
    """A logged request. `operation` is `None` for an unknown path or method, `status` while there is no answer.

    `at` is in milliseconds.
    """

    operation: str | None
    method: str
    path: str
    query: Mapping[str, str]
    user_agent: str
    at: int
    items: int | None
    session: str | None
    body: bytes | None
    seq: int = 0
    status: int | None = None
    open: bool = True
    late: Lateness | None = None

    def as_json(self) -> Json:
        values = asdict(self)
        return {**values, "userAgent": values.pop("user_agent"), "body": _shown(self.body)}


def _shown(raw: bytes | None) -> Any:
    """Return the parsed body, or its text when it is not JSON. The webhook's key is hidden."""
    if not raw:
        return None
    try:
        body = from_json(raw, allow_inf_nan=False)
    except ValueError:
        return raw.decode(errors="replace")
    return {**body, "callerKey": HIDDEN} if isinstance(body, dict) and "callerKey" in body else body


class RequestLog:
    def __init__(self, entries: int = ENTRIES, body_bytes: int = BODY_BYTES) -> None:
        self._entries: deque[LoggedRequest] = deque(maxlen=entries)
        self._with_body: deque[LoggedRequest] = deque()
        self._body_bytes, self._held_bytes = body_bytes, 0
        self._seq = 0

    def add(self, entry: LoggedRequest) -> None:
        """Log a request that arrived, and number it."""
        self._seq += 1
        entry.seq = self._seq
        self._entries.append(entry)
        self._with_body.append(entry)
        self._held_bytes += len(entry.body or b"")
        while self._held_bytes > self._body_bytes or len(self._with_body) > len(self._entries):
            oldest = self._with_body.popleft()
            self._held_bytes -= len(oldest.body or b"")
            oldest.body = None

    def latest(self, count: int) -> Iterator[Json]:
        """Yield the newest `count` requests as JSON, newest first."""
        return (entry.as_json() for entry in islice(reversed(self._entries), count))

    def since(self, seq: int) -> Iterator[Json]:
        """Yield the requests after request number `seq` as JSON, oldest first."""
        first = self._entries[0].seq if self._entries else 1
        return (entry.as_json() for entry in islice(self._entries, max(0, seq + 1 - first), None))

    def clear(self) -> None:
        """Forget all requests. The numbering continues, so that `since` keeps its meaning."""
        self._entries.clear()
        self._with_body.clear()
        self._held_bytes = 0
