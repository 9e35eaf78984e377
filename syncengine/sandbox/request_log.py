"""The log of requests to the interface. Of the headers only the user agent is kept, so the log has no API keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import orjson

from syncengine.document.text import to_camel
from syncengine.sandbox.world import Json
from syncengine.service.answers import HIDDEN

ENTRIES = 100_000
"""The maximum number of requests that the log keeps."""

SECRETS = {"callerKey"}
"""Request fields whose values are not shown."""

SHOWN = ("seq", "operation", "method", "path", "query", "user_agent", "at", "status", "open", "items", "session")

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
    """A logged request. `operation` is `None` for an unknown path or method, `status` while there is no answer."""

    seq: int
    operation: str | None
    method: str
    path: str
    items: int | None
    session: str | None
    body: bytes | None
    query: Mapping[str, str]
    user_agent: str
    at: int
    status: int | None = None
    open: bool = True
    late: Lateness | None = None

    def ended(self, status: int | None) -> None:
        self.status, self.open = status, False


class RequestLog:
    def __init__(self, entries: int = ENTRIES, body_bytes: int = BODY_BYTES) -> None:
        self._entries: deque[LoggedRequest] = deque(maxlen=entries)
        self._with_body: deque[LoggedRequest] = deque()
        self._body_bytes, self._held_bytes = body_bytes, 0
        self._seq = 0

    def arrived(
        self,
        operation: str | None,
        method: str,
        path: str,
        *,
        items: int | None,
        session: str | None,
        body: bytes,
        query: Mapping[str, str],
        user_agent: str,
        at: int,
    ) -> LoggedRequest:
        """Log a request that arrived `at` (milliseconds) and return its entry. Call `ended` on the entry later."""
        self._seq += 1
        entry = LoggedRequest(self._seq, operation, method, path, items, session, body, query, user_agent, at)
        self._entries.append(entry)
        self._with_body.append(entry)
        self._held_bytes += len(body)
        while self._held_bytes > self._body_bytes or len(self._with_body) > len(self._entries):
            self._drop_oldest_body()
        return entry

    def _drop_oldest_body(self) -> None:
        entry = self._with_body.popleft()
        self._held_bytes -= len(entry.body or b"")
        entry.body = None

    def latest(self, count: int) -> Iterator[Json]:
        """Yield the newest `count` requests as JSON, newest first."""
        return map(as_json, islice(reversed(self._entries), count))

    def since(self, seq: int) -> Iterator[Json]:
        """Yield the requests after request number `seq` as JSON, oldest first."""
        first = self._entries[0].seq if self._entries else 1
        return map(as_json, islice(self._entries, max(0, seq + 1 - first), None))

    def clear(self) -> None:
        """Forget all requests. The numbering continues, so that `since` keeps its meaning."""
        self._entries.clear()
        self._with_body.clear()
        self._held_bytes = 0


def as_json(entry: LoggedRequest) -> Json:
    values = {to_camel(name): getattr(entry, name) for name in SHOWN}
    return {**values, "late": asdict(entry.late) if entry.late else None, "body": _body(entry.body)}


def _body(raw: bytes | None) -> Any:
    if not raw:
        return None
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw.decode(errors="replace")
    return {**body, **dict.fromkeys(SECRETS & body.keys(), HIDDEN)} if isinstance(body, dict) else body
