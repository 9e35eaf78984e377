"""The webhook receiver, an ASGI application: deliver the group of a service call, and answer with its verdict.

The caller key is compared first, in constant time; before that, nothing of a call is stored, shown or logged.
The answer is 200 only after every sink accepted the group; 400 with a sentence for the user when it is refused for
good; 401 for a wrong key; and 503 for trouble or 408 for an incomplete call, so that the service calls again
(docs/service.md §2).
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from syncengine.document.json_text import InvalidJson
from syncengine.errors import SyncengineError
from syncengine.posted_time.events import Answered, RetryLater, Taken, Tell, Verdict, message_of
from syncengine.service.answers import read_loosely
from syncengine.service.posted_time import Group, group_id
from syncengine.state.inbox_model import PostedTimeStatus

SETTING = "`postedTime.webhook.bind`"
"""Where the receiver's address is set."""
MAX_BODY = 1024 * 1024
"""The most bytes of a call, unless the project says otherwise."""
READ_SECONDS = 20.0
"""The time in which the body of a call must arrive."""

LATER = "The time could not be posted just now. It will be tried again."
REFUSED = "The time was refused."
"""The messages to the user when there is no more specific one."""

STATUSES = {PostedTimeStatus.SUCCESS: 200, PostedTimeStatus.REFUSED: 400, PostedTimeStatus.TROUBLE: 503}
WORDS = {PostedTimeStatus.SUCCESS: "", PostedTimeStatus.REFUSED: REFUSED, PostedTimeStatus.TROUBLE: LATER}


class _Rejected(Exception):
    """A call that is rejected because it is not valid posted time with our key."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def application(
    take: Callable[[Group], Awaitable[Verdict]],
    caller_key: Callable[[], str],
    *,
    path: str,
    max_body: int,
    tell: Tell,
    read_seconds: float = READ_SECONDS,
) -> ASGIApp:
    """Return an application that has `take` deliver the groups of webhook calls.

    `path` is the unescaped path of the callback URL; `/` is every path. `caller_key` is read at each call,
    as it may change; `max_body` is in bytes.
    """

    async def answer(request: Request) -> Response:
        try:
            if path.rstrip("/") and request.scope["path"].rstrip("/") != path.rstrip("/"):
                raise _Rejected(404, "Posted time is not taken at this path, only at that of the callback URL.")
            try:
                async with asyncio.timeout(read_seconds):
                    body = await _body(request, max_body)
            except TimeoutError:
                raise _Rejected(408, f"The request was not complete within {read_seconds:g} s.") from None
            group = _trusted(body, caller_key)
        except _Rejected as rejected:
            tell(Answered(rejected.status, rejected.message))
            return PlainTextResponse(rejected.message, rejected.status)
        except SyncengineError as error:
            tell(RetryLater("key", f"{error.message}; the service will call again", 0.0))
            return PlainTextResponse(LATER, 503)
        except ClientDisconnect:
            return PlainTextResponse("", 400)  # the client is gone
        id = group_id(group) or ""
        try:
            verdict = await take(group)
        except Exception as error:  # after any error, the service must call again
            tell(RetryLater("take", f"{id}: {message_of(error)}; the service will call again", 0.0))
            return PlainTextResponse(LATER, 503)
        tell(Taken(id, verdict))
        words = verdict.message if verdict.outcome is not PostedTimeStatus.SUCCESS else None
        return PlainTextResponse(words or WORDS[verdict.outcome], STATUSES[verdict.outcome])

    return Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])


async def _body(request: Request, max_body: int) -> bytes:
    """Return the whole body, or reject the call with 413 as soon as it is known to be too large."""
    too_large = _Rejected(413, f"The request is larger than {max_body} bytes.")
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > max_body:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_body:
            raise too_large
    return bytes(body)


def _trusted(body: bytes, caller_key: Callable[[], str]) -> dict[str, Any]:
    """Return the group without its caller key, or reject the call when its JSON, key or `groupId` is wrong."""
    try:
        document = read_loosely(body)
    except InvalidJson:
        raise _Rejected(400, "The request is not JSON.") from None
    key = document.pop("callerKey", None) if isinstance(document, dict) else None
    presented = (key if isinstance(key, str) else "").encode("utf-8", "surrogatepass")
    # In constant time, so that no answer tells how much of a guessed key is right; and before anything else is judged.
    if not hmac.compare_digest(presented, caller_key().encode("utf-8", "surrogatepass")):
        raise _Rejected(401, "The caller key is wrong.")
    if group_id(document) is None:
        raise _Rejected(400, "The request is not a posted time group: its groupId is missing or not a string.")
    trusted: dict[str, Any] = document
    return trusted
