"""One sandbox: its data, active faults, calls that are executed late, and the log of requests to the interface."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import uuid4

from syncengine.document.json_text import InvalidJson, decode_json
from syncengine.http.exchange import HIDDEN
from syncengine.sandbox.bodies import ApiError, Rule, RuleAnswer, RuleRequest
from syncengine.sandbox.faults import Faults
from syncengine.sandbox.rules import health_message
from syncengine.sandbox.store import CATEGORIES, POSTED_TIME, SESSIONS, TAGS, TYPES, Json, Store

ENTRIES, LOGGED_BYTES = 100_000, 32_000_000
"""The maximum number of requests that the log keeps, and of bytes of their bodies. The oldest requests go first."""

_NONE: Mapping[Any, str] = MappingProxyType({})


@dataclass(slots=True)
class LoggedRequest:
    """A logged request. Of the headers only the user agent is kept, so that the log has no API keys.

    `operation` is `None` for an unknown path or method, `status` while there is no answer, and `at` is in milliseconds.
    `late` is the state of a call that is executed late: the times when it is `due` and was `executed`, and the `status`
    of its answer then.
    """

    operation: str | None
    method: str
    path: str
    query: Mapping[str, str]
    user_agent: str
    at: int
    items: int | None
    session: str | None
    body: bytes
    seq: int = 0
    status: int | None = None
    open: bool = True
    late: Json | None = None

    def as_json(self) -> Json:
        """Return the entry with its body parsed, or as text when it is not JSON. The webhook's key is hidden."""
        values = asdict(self)
        body: Any = None
        if self.body:
            try:
                body = decode_json(self.body)
            except InvalidJson:
                body = self.body.decode(errors="replace")
            if isinstance(body, dict) and "callerKey" in body:
                body["callerKey"] = HIDDEN
        return {**values, "userAgent": values.pop("user_agent"), "body": body}


class RequestLog:
    def __init__(self, entries: int = ENTRIES, body_bytes: int = LOGGED_BYTES) -> None:
        self._entries: deque[LoggedRequest] = deque()
        self._most, self._most_bytes = entries, body_bytes
        self._seq = self._bytes = 0

    def add(self, entry: LoggedRequest) -> None:
        """Log a request that arrived, and number it."""
        self._seq += 1
        entry.seq = self._seq
        self._entries.append(entry)
        self._bytes += len(entry.body)
        while len(self._entries) > self._most or (self._bytes > self._most_bytes and len(self._entries) > 1):
            self._bytes -= len(self._entries.popleft().body)

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
        self._bytes = 0


class LateCall(NamedTuple):
    """A call to execute late. `tell` passes the answer to a client that still waits, or `None` for a dropped call."""

    entry: LoggedRequest
    execute: Callable[[], RuleAnswer]
    tell: Callable[[RuleAnswer | None], None]


class Sandbox:
    """A sandbox with its data in the SQLite file `data`, or in memory when `data` is `None`. Not thread-safe.

    `late` are the waiting late calls by the number of their request, in order of arrival. A late call acts on the data
    at the time of its execution, after all requests that came in between.
    """

    def __init__(
        self,
        data: Path | None = None,
        *,
        clock: Callable[[], int] = lambda: int(time() * 1000),
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self.store = Store(data)
        self._clock, self._new_id, self._last = clock, new_id, 0
        self.faults = Faults()
        self.log = RequestLog()
        self.late: dict[int, LateCall] = {}
        self._changed = asyncio.Event()

    def now(self) -> int:
        """Return the time in milliseconds since the epoch, never before the last request."""
        return max(self._clock(), self._last)

    def do(
        self, rule: Rule, body: Json, failing: Mapping[int, str] = _NONE, query: Mapping[str, str] = _NONE
    ) -> RuleAnswer:
        """Return a rule's answer, with all its changes stored, or none when it refuses the request."""
        # Each request has an instant of its own: uploads before and after the start of a session can be told apart.
        self._last = max(self._clock(), self._last + 1)
        before = self.store.changes
        try:
            with self.store.draft():
                answer = rule(self.store, RuleRequest(body, self._last, self._new_id, failing, query))
        except ApiError as error:
            return RuleAnswer(error.status, error.body)
        if self.store.changes != before:
            self._wake()
        return answer

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()  # for those who wait from now on

    async def change(self, seconds: float | None = None) -> None:
        """Return when the data change, or after `seconds` unless `None`."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)

    def seconds_until_due(self) -> float | None:
        """Return the seconds until a group is offered, or `None` when none will be unless the data change."""
        due = self.store.first_link(POSTED_TIME)
        return None if due is None else max(0.0, (due - self.now()) / 1000)

    def hold(self, call: LateCall, seconds: float | None) -> None:
        """Keep a call that is due after `seconds`, or that is executed only on request when `seconds` is `None`."""
        due = None if seconds is None else self.now() + int(seconds * 1000)
        call.entry.late = {"due": due, "executed": None, "status": None}
        self.late[call.entry.seq] = call

    def execute_late(self, number: int) -> LoggedRequest | None:
        """Execute the call of request `number` now and return its log entry, or `None` when it is not waiting."""
        call = self.late.pop(number, None)
        if call is None:
            return None
        answer = call.execute()
        call.entry.late = {"due": None, "executed": self.now(), "status": answer.status}
        call.tell(answer)
        return call.entry

    def drop_late(self) -> None:
        """Drop the waiting calls. They are never executed, and clients that are held get no answer."""
        while self.late:
            call = self.late.pop(next(iter(self.late)))
            call.entry.late = None
            call.tell(None)

    def reset(self) -> None:
        """Reset the sandbox: no data, default settings, no faults, no late calls and an empty log."""
        self.drop_late()
        self.store.clear()
        self.faults.clear()
        self.log.clear()
        self._wake()

    def close(self) -> None:
        self.store.close()


# --- all data as JSON, for tests and people


def everything(store: Store) -> Json:
    """Return all data as JSON, sorted by name, code or externalId so that two states can be compared."""
    return {
        "tags": list(tags(store)),
        "categories": list(store.rows(CATEGORIES, "ORDER BY link")),
        "activityTypes": list(store.rows(TYPES)),
        "sessions": list(store.rows(SESSIONS, "ORDER BY at")),
        "postedTime": [posted_time(posted) for posted in store.rows(POSTED_TIME, "ORDER BY rowid")],
        "connection": connection(store),
        "settings": store.settings,
    }


def tags(store: Store, condition: str = "ORDER BY key", *values: str) -> Iterator[Json]:
    """Yield tags as JSON. `category` is the externalId of the category whose id is `tagCategoryId`."""
    names = {category["id"]: category["externalId"] for category in store.rows(CATEGORIES)}
    return ({**tag, "category": names.get(tag.get("tagCategoryId"))} for tag in store.rows(TAGS, condition, *values))


def posted_time(posted: Json) -> Json:
    """Return a group as JSON. `message` and `externalId` are from the last status update; `told` has all updates."""
    last = posted["told"][-1] if posted["told"] else {}
    shown = {name: posted[name] for name in ("groupId", "state", "recorded", "offers", "due", "told", "group")}
    return {**shown, "message": last.get("message"), "externalId": last.get("externalId")}


def connection(store: Store) -> Json:
    """Return the connection as JSON, without the webhook's key. `healthMessage` is shown to users who post time."""
    row = store.connection
    return {**row, "callerKeyLost": store.key_is_lost, "healthMessage": health_message(row)}
