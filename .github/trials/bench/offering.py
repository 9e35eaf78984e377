"""A service that offers posted time and costs next to nothing; a receiver too. Prints its URL and serves on.

`GET /bench/post/N/ROWS` has N more groups to offer, `/bench/told` tells how many were answered with SUCCESS, how often
any was told more than once, and the seconds from posting to the last answer. Everything else that is posted is taken.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from functools import partial

from trials.bench.cheap import serve

ROW = {
    "activity": "Word",
    "description": "Reply to the other side about the second draft.docx",
    "activityHour": 2024050207,
    "firstObservedInHour": 5,
    "durationSecs": 600,
    "timezone_name": "Europe/Vienna",
    "timezone_offset_min": 120,
}
USER = {"name": "Jo Doe", "email": "jo@example.com", "externalId": "jd"}


def group(number: int) -> bytes:
    """Posted time as a user posts it, with three rows."""
    rows = [{**ROW, "firstObservedInHour": minute} for minute in (5, 20, 40)]
    posted = {"groupId": f"g{number}", "totalDurationSecs": 1800, "tags": [{"name": "ACME-0042"}], "user": USER}
    return json.dumps({**posted, "timeRows": rows}).encode()


class Service:
    """What all connections share."""

    def __init__(self) -> None:
        self.posted = 0
        self.offers = deque[bytes]()
        self.told: set[str] = set()
        self.repeats = 0
        self.began = self.ended = 0.0
        self.held: Exchange | None = None
        self.limit = 25

    def answer(self, asked: Exchange, path: str, body: bytes) -> bytes | None:
        """The content of an answer; None: it is held back."""
        path, _, query = path.partition("?")
        if path.startswith("/bench/"):
            return self._controlled(path)
        if path.endswith("/postedtime"):
            self.limit = int(query.partition("limit=")[2] or 25)
            return self._offered(asked)
        if path.endswith("/postedtime/status"):
            self._hear(json.loads(body))
        return b'{"teamName": "Bench"}' if path.endswith("/team/info") else b'{"id": 4711}'

    def _controlled(self, path: str) -> bytes:
        if path.startswith("/bench/post/"):
            count, self.began = int(path.rsplit("/", 1)[1]), time.perf_counter()
            self.offers += map(group, range(self.posted, self.posted + count))
            self.posted += count
            if self.held:
                held, self.held = self.held, None
                held.send(self._offered(held) or b"[]")
            return b"{}"
        told = {"told": len(self.told), "repeats": self.repeats, "seconds": self.ended - self.began}
        return json.dumps(told).encode()

    def _offered(self, asked: Exchange) -> bytes | None:
        groups = [self.offers.popleft() for _ in range(min(self.limit, len(self.offers)))]
        if not groups:
            self.held = asked
            return None
        return b"[" + b",".join(groups) + b"]"

    def _hear(self, status: dict[str, str]) -> None:
        if status["status"] == "SUCCESS":
            self.repeats += status["timeGroupId"] in self.told
            self.told.add(status["timeGroupId"])
            self.ended = time.perf_counter()


class Exchange(asyncio.Protocol):
    """One connection, kept alive."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._service.held is self:
            self._service.held = None

    def data_received(self, data: bytes) -> None:
        self._data += data
        while True:
            head, blank, rest = self._data.partition(b"\r\n\r\n")
            if not blank:
                return
            _, found, after = head.lower().partition(b"content-length:")
            length = int(after.partition(b"\r\n")[0]) if found else 0
            if len(rest) < length:
                return
            self._data = rest[length:]
            method, path, _ = head.split(b" ", 2)
            content = b"" if method == b"HEAD" else self._service.answer(self, path.decode(), rest[:length])
            if content is not None:
                self.send(content)

    def send(self, content: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        self._transport.write(head.encode() + content)


if __name__ == "__main__":
    asyncio.run(serve(partial(Exchange, Service())))
