"""The webhook receiver, an ASGI application: deliver the group of a service call, and answer with its verdict.

The caller key is compared first, in constant time; before that, nothing of a call is stored, shown or logged.
The answer is 200 only after every sink accepted the group; 400 with a sentence for the user when it is refused for
good; 401 for a wrong key; and 503 for trouble or 408 for an incomplete call, so that the service calls again
(docs/service.md §2).
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
from starlette.types import ASGIApp, Receive, Scope, Send

from syncengine.errors import SyncengineError
from syncengine.posted_time.events import Answered, RetryLater, Taken, Tell, Verdict, message_of
from syncengine.service.answers import read_loosely
from syncengine.service.posted_time import Group, group_id
from syncengine.state.inbox_model import WEBHOOK, PostedTimeStatus

MAX_BODY = 1024 * 1024
READ_SECONDS = 20.0
"""The time in which the body of a call must arrive."""
LINGER_SECONDS = 5.0
LINGER_BYTES = 64 * 1024 * 1024
"""The most bytes that are read and discarded, after the answer, from a call whose body was not read to its end."""

LATER = "The time could not be posted just now. It will be tried again."
REFUSED = "The time was refused."
"""The messages to the user when there is no more specific one."""

UNREAD = (404, 408, 413)
"""The statuses of answers to a call whose body was not read to its end."""

STATUSES = {PostedTimeStatus.SUCCESS: 200, PostedTimeStatus.REFUSED: 400, PostedTimeStatus.TROUBLE: 503}
WORDS = {PostedTimeStatus.SUCCESS: "", PostedTimeStatus.REFUSED: REFUSED, PostedTimeStatus.TROUBLE: LATER}


class WebhookDelivery(Protocol):
    """The part of a delivery that the receiver needs."""

    async def take(self, raw: Group, *, mechanism: str) -> Verdict: ...


class _Rejected(Exception):
    """A call that is rejected because it is not valid posted time with our key."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class _Farewell(PlainTextResponse):
    """An answer that is sent before the request was read to its end, and then closes the connection.

    The rest of the request is read and discarded for a while first: a client that is still sending would lose the
    answer with its connection.
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
    """A handler of webhook calls at the path `path` (`/`: at every path).

    `caller_key` is read at each call, as it may change; `max_body` is in bytes.
    """

    def __init__(
        self,
        delivery: WebhookDelivery,
        caller_key: Callable[[], str],
        *,
        path: str,
        max_body: int,
        read_seconds: float,
        tell: Tell,
    ) -> None:
        self._path = path.rstrip("/")
        self._delivery = delivery
        self._caller_key = caller_key
        self._max_body = max_body
        self._read_seconds = read_seconds
        self._tell = tell

    async def answer(self, request: Request) -> Response:
        try:
            self._check_path(request)
            group = self._trusted(await self._read(request))
        except _Rejected as rejected:
            self._tell(Answered(rejected.status, rejected.message))
            kind = _Farewell if rejected.status in UNREAD else PlainTextResponse
            return kind(rejected.message, rejected.status)
        except SyncengineError as error:
            self._tell(RetryLater("key", f"{error.message}; the service will call again", 0.0))
            return PlainTextResponse(LATER, 503)
        except ClientDisconnect:
            return PlainTextResponse("", 400)  # the client is gone
        return await self._response_to(group)

    def _check_path(self, request: Request) -> None:
        if self._path and request.scope["path"].rstrip("/") != self._path:
            raise _Rejected(404, "Posted time is not taken at this path, only at that of the callback URL.")

    async def _read(self, request: Request) -> bytes:
        """Return the whole body, or reject the call with 408 when it does not arrive in time."""
        try:
            async with asyncio.timeout(self._read_seconds):
                return await self._body(request)
        except TimeoutError:
            raise _Rejected(408, f"The request was not complete within {self._read_seconds:g} s.") from None

    async def _body(self, request: Request) -> bytes:
        """Return the whole body, or reject the call with 413 as soon as it is known to be too large."""
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
        """Return the group without its caller key, or reject the call when its JSON, key or `groupId` is wrong."""
        try:
            document = read_loosely(body)
        except orjson.JSONDecodeError:
            raise _Rejected(400, "The request is not JSON.") from None
        key = document.pop("callerKey", None) if isinstance(document, dict) else None
        if not _same(key if isinstance(key, str) else "", self._caller_key()):
            raise _Rejected(401, "The caller key is wrong.")
        if group_id(document) is None:
            raise _Rejected(400, "The request is not a posted time group: its groupId is missing or not a string.")
        trusted: dict[str, Any] = document
        return trusted

    async def _response_to(self, group: Group) -> Response:
        id = group_id(group) or ""
        try:
            verdict = await self._delivery.take(group, mechanism=WEBHOOK)
        except Exception as error:  # after any error, the service must call again
            self._tell(RetryLater("take", f"{id}: {message_of(error)}; the service will call again", 0.0))
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
    path: str,
    max_body: int,
    tell: Tell,
    read_seconds: float = READ_SECONDS,
) -> ASGIApp:
    """Return the receiver as an application that takes calls at `path`, the unescaped path of the callback URL."""
    receiver = Receiver(delivery, caller_key, path=path, max_body=max_body, read_seconds=read_seconds, tell=tell)
    return Starlette(routes=[Route("/{path:path}", receiver.answer, methods=["POST"])])
