"""Read request bodies as JSON, and turn replies into responses of JSON or text, or into a cut connection."""

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
"""The maximum number of bytes of a request's body, far more than a full batch needs."""


class Cut(Response):
    """A response that cuts the connection without an answer, as a dying service or a proxy that gives up does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][WIRE].cut()
        # The server answers 500 for an app that returns before it has noticed that the connection is gone.
        await disconnected(receive)


async def body_of(request: Request) -> bytes:
    """Return the whole body. Raise `ApiError` when it is too large, but only at its end: no client listens earlier."""
    body, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        body += chunk if size <= BODY_BYTES else b""
    if size > BODY_BYTES:
        raise ApiError(413, f"the request is larger than {BODY_BYTES} bytes")
    return bytes(body)


def parse_body(raw: bytes) -> Any:
    """Return the parsed JSON body. An empty body counts as an empty object (docs/service.md §1)."""
    try:
        return orjson.loads(raw) if raw.strip() else {}
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"the body is not valid JSON: {error}") from error


def response(reply: HttpReply) -> Response:
    if reply.status is None:
        return Cut()
    content, media_type = _content(reply.body)
    names = {name.lower() for name in reply.headers}
    kind = None if "content-type" in names else media_type
    return travelling(Response(content, reply.status, dict(reply.headers), media_type=kind), reply.transfer)


def _content(body: Any) -> tuple[bytes, str | None]:
    """Return a body's bytes and media type. Text is sent unchanged, such as a gateway's page or truncated JSON."""
    if body is None:
        return b"", None
    if isinstance(body, str):
        return body.encode(), "text/html" if body.lstrip().startswith("<") else "text/plain"
    return orjson.dumps(body), "application/json"
