"""The webhook receiver, an ASGI application: a call of the service → inbox and sinks → the answer it is told by.

The key is compared before anything else of a call is looked at, in constant time; until then nothing of it is stored,
shown or logged. 2xx only after every sink accepted; 400 with the sentence for the user who posted where it is refused
for good; 503 for trouble, and 408 for a call that does not come to its end, so that the service calls again; 401 for a
wrong key (docs/service.md §2).
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from syncengine.errors import SyncengineError
from syncengine.posted_time.events import Answered, RetryLater, Taken, Tell, message_of
from syncengine.posted_time.verdict import PostedTimeStatus, Verdict
from syncengine.service.answers import read_loosely
from syncengine.service.posted_time import Group, group_id
from syncengine.state.inbox_states import WEBHOOK

MAX_BODY = 1024 * 1024
BIND = ("127.0.0.1", 8080)
READ_SECONDS = 20.0
"""How long the body of a call may take to come."""
LINGER_SECONDS = 5.0
LINGER_BYTES = 64 * 1024 * 1024
"""What is thrown away, after its answer, of a body that is too large."""

LATER = "The time could not be posted just now. It will be tried again."
REFUSED = "The time was refused."
"""What the user is told where nobody message_of it better."""

UNREAD = (408, 413)
"""Answers to a call whose body was not read to its end."""

STATUSES = {PostedTimeStatus.SUCCESS: 200, PostedTimeStatus.REFUSED: 400, PostedTimeStatus.TROUBLE: 503}
WORDS = {PostedTimeStatus.SUCCESS: "", PostedTimeStatus.REFUSED: REFUSED, PostedTimeStatus.TROUBLE: LATER}


class WebhookDelivery(Protocol):
    """The part of a delivery that the receiver needs."""

    async def take(self, raw: Group, *, mechanism: str) -> Verdict: ...


class _Rejected(Exception):
    """A call that is no posted time of ours."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class _Farewell(PlainTextResponse):
    """An answer to a request that is not read to its end.

    It goes out at once. A client that sends before it listens is let go on for a while, since a connection that is
    closed on it takes the answer along; then it is closed.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [*self.raw_headers, (b"connection", b"close")]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                await _thrown_away(receive)
        await send({"type": "http.response.body", "body": b""})


async def _thrown_away(receive: Receive) -> None:
    rest, more = LINGER_BYTES, True
    while more and rest > 0:
        message = await receive()
        rest -= len(message.get("body", b""))
        more = message.get("more_body", False)


class Receiver:
    """Answers calls. `caller_key` is looked up at each call, so that it may change; `max_body` is in bytes."""

    def __init__(
        self,
        delivery: WebhookDelivery,
        caller_key: Callable[[], str],
        *,
        max_body: int,
        read_seconds: float,
        tell: Tell,
    ) -> None:
        self._delivery = delivery
        self._caller_key = caller_key
        self._max_body = max_body
        self._read_seconds = read_seconds
        self._tell = tell

    async def answer(self, request: Request) -> Response:
        try:
            group = self._trusted(await self._read(request))
        except _Rejected as rejected:
            self._tell(Answered(rejected.status, rejected.message))
            kind = _Farewell if rejected.status in UNREAD else PlainTextResponse
            return kind(rejected.message, rejected.status)
        except SyncengineError as error:
            self._tell(RetryLater("key", f"{error.message}; the service calls again", 0.0))
            return PlainTextResponse(LATER, 503)
        except ClientDisconnect:
            return PlainTextResponse("", 400)  # nobody hears it
        return await self._response_to(group)

    async def _read(self, request: Request) -> bytes:
        """The whole body; refused when it does not come in time."""
        try:
            async with asyncio.timeout(self._read_seconds):
                return await self._body(request)
        except TimeoutError:
            raise _Rejected(408, f"The request was not complete within {self._read_seconds:g} s.") from None

    async def _body(self, request: Request) -> bytes:
        """The whole body; refused as soon as it is known to be too large."""
        too_large = _Rejected(413, f"The request is larger than {self._max_body} bytes.")
        announced = request.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > self._max_body:
            raise too_large
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._max_body:
                raise too_large
        return bytes(body)

    def _trusted(self, body: bytes) -> dict[str, Any]:
        """The group, without the key that it came with: that is a secret, and no part of it."""
        try:
            document = read_loosely(body)
        except orjson.JSONDecodeError:
            raise _Rejected(400, "The request is not JSON.") from None
        key = document.pop("callerKey", None) if isinstance(document, dict) else None
        if not _same(key if isinstance(key, str) else "", self._caller_key()):
            raise _Rejected(401, "The caller key is wrong.")
        if group_id(document) is None:
            raise _Rejected(400, "The request is not a posted time group: its groupId is missing, or not text.")
        trusted: dict[str, Any] = document
        return trusted

    async def _response_to(self, group: Group) -> Response:
        id = group_id(group) or ""
        try:
            verdict = await self._delivery.take(group, mechanism=WEBHOOK)
        except Exception as error:  # whatever it is, the service is to call again
            self._tell(RetryLater("take", f"{id}: {message_of(error)}; the service calls again", 0.0))
            return PlainTextResponse(LATER, 503)
        self._tell(Taken(id, verdict))
        words = verdict.message if verdict.outcome is not PostedTimeStatus.SUCCESS else None
        return PlainTextResponse(words or WORDS[verdict.outcome], STATUSES[verdict.outcome])


def _same(key: str, expected: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(key.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"))


def application(
    delivery: WebhookDelivery,
    caller_key: Callable[[], str],
    *,
    max_body: int,
    tell: Tell,
    read_seconds: float = READ_SECONDS,
) -> Starlette:
    """The receiver as an application of its own, at every path: a proxy before it may have changed the path."""
    receiver = Receiver(delivery, caller_key, max_body=max_body, read_seconds=read_seconds, tell=tell)
    return Starlette(routes=[Route("/{path:path}", receiver.answer, methods=["POST"])])
