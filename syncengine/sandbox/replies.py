"""Replies as HTTP: JSON in, JSON or text out, and the reply that is none."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from syncengine.sandbox.faults import HttpReply
from syncengine.sandbox.long_poll import disconnected
from syncengine.sandbox.request import ApiError
from syncengine.sandbox.transfer import WIRE, travelling

BODY_BYTES = 64_000_000
"""The most bytes of a request, far more than a full batch has."""


class Cut(Response):
    """No answer: the connection ends, as with a service that dies or a proxy that gives up."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][WIRE].cut()
        # The server answers 500 for an app that returns before it has noticed that the connection is gone.
        await disconnected(receive)


async def body_of(request: Request) -> bytes:
    """The whole body; ApiError if it is too large, raised at its end, since no client listens before."""
    body, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        body += chunk if size <= BODY_BYTES else b""
    if size > BODY_BYTES:
        raise ApiError(413, f"the request is larger than {BODY_BYTES} bytes")
    return bytes(body)


def parse_body(raw: bytes) -> Any:
    """The body as JSON; no body is an empty object (docs/service.md §1)."""
    try:
        return orjson.loads(raw) if raw.strip() else {}
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"not JSON: {error}") from error


def response(reply: HttpReply) -> Response:
    if reply.status is None:
        return Cut()
    content, media_type = _content(reply.body)
    names = {name.lower() for name in reply.headers}
    kind = None if "content-type" in names else media_type
    return travelling(Response(content, reply.status, dict(reply.headers), media_type=kind), reply.transfer)


def _content(body: Any) -> tuple[bytes, str | None]:
    """Text is sent unchanged: a gateway's page, or JSON that is cut."""
    if body is None:
        return b"", None
    if isinstance(body, str):
        return body.encode(), "text/html" if body.lstrip().startswith("<") else "text/plain"
    return orjson.dumps(body), "application/json"
