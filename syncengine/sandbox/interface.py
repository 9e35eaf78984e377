"""Serve the connector interface over HTTP. Each request is logged and goes through key, path, fault and rule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from hmac import compare_digest
from typing import Any

from pydantic_core import from_json, to_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from syncengine.sandbox import posted_time
from syncengine.sandbox.bodies import ApiError, Rule, RuleAnswer
from syncengine.sandbox.faults import HOLD, Fault, HttpReply, Late, LateCall, reply_under
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.long_poll import Bell, Hold, disconnected
from syncengine.sandbox.request_log import LoggedRequest
from syncengine.sandbox.rules import RULES, expire
from syncengine.service.operations import FETCH_POSTED_TIME, OPERATIONS, Operation

PREFIX = "/connect/api"

BODY_BYTES = 64_000_000
"""The maximum number of bytes of a request's body, far more than a full batch needs."""

CUT = "cut"
"""The key under which the server puts a function into each request's state that cuts the request's connection."""

PATHS: dict[str, dict[str, Operation]] = {}
"""The operations by path and method."""
for _operation in OPERATIONS.values():
    PATHS.setdefault(_operation.path, {})[_operation.method] = _operation


class Interface:
    """The ASGI application of the connector interface. `stopping` ends long polls and replies that a fault delays."""

    def __init__(self, sandbox: Sandbox, api_key: str, stopping: asyncio.Event, bell: Bell) -> None:
        self._sandbox = sandbox
        self._api_key = api_key.encode()
        self._stopping = stopping
        self._hold = Hold(sandbox, bell, stopping)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        raw, body = b"", None
        try:
            raw = await body_of(request)
            body = parse_body(raw)
        except ApiError as error:
            body = error  # answered once the key and the path are checked
        except ClientDisconnect:
            return
        path = request.url.path.removeprefix(PREFIX)
        entry = self._entry(request, path, raw, body)
        self._sandbox.log.add(entry)
        try:
            operation = self._admitted(request, path)
            reply = await self._reply(operation, body, request, entry)
        except ApiError as error:
            reply = HttpReply(error.status, error.body)
        if reply.delay:
            try:
                async with asyncio.timeout(reply.delay):
                    await self._stopping.wait()
                reply = HttpReply(None)
            except TimeoutError:
                pass
        entry.status, entry.open = reply.status, False
        await response(reply)(scope, receive, send)

    def _entry(self, request: Request, path: str, raw: bytes, body: Any) -> LoggedRequest:
        operation = PATHS.get(path, {}).get(request.method)
        fields = body if isinstance(body, dict) else {}
        items = fields.get(operation.items) if operation and operation.items else None
        return LoggedRequest(
            operation.id if operation else None,
            request.method,
            path,
            dict(request.query_params),
            request.headers.get("user-agent", ""),
            self._sandbox.now(),
            items=len(items) if isinstance(items, list) else None,
            session=session if isinstance(session := fields.get("syncSessionId"), str) else None,
            body=raw,
        )

    def _admitted(self, request: Request, path: str) -> Operation:
        """Return the operation of a request. The key is checked first: without it, not even paths are disclosed."""
        key = request.headers.get("x-api-key", "").encode()
        if not compare_digest(key, self._api_key):
            raise ApiError(401, "the x-api-key header is missing or wrong")
        if path not in PATHS:
            raise ApiError(404, f"there is nothing at {path}")
        if request.method not in PATHS[path]:
            raise ApiError(405, f"{path} accepts only {', '.join(PATHS[path])}")
        return PATHS[path][request.method]

    async def _reply(self, operation: Operation, body: Any, request: Request, entry: LoggedRequest) -> HttpReply:
        def handled(rule: Rule, failing: Mapping[int, str]) -> RuleAnswer:
            if isinstance(body, ApiError):
                return RuleAnswer(body.status, body.body)
            if not isinstance(body, dict):
                return RuleAnswer(400, {"message": "the body must be an object"})
            return self._sandbox.do(rule, body, failing, request.query_params)

        fault = self._sandbox.faults.take(operation.id)
        rule = RULES[operation.id]
        if fault and fault.late:
            return await self._later(lambda: handled(rule, {}), request, entry, fault, fault.late)
        # A fetch waits for posted time between two steps of it, unless it is refused at once.
        is_held = operation is FETCH_POSTED_TIME and (fault is None or fault.processes)
        if is_held and handled(posted_time.listen, {}).status < 400:
            seconds = self._sandbox.store.settings["holdSeconds"]
            if not await self._hold.until_posted_time(request.receive, seconds):
                return HttpReply(None)
            rule = posted_time.collect
        if fault is None:
            return HttpReply(*handled(rule, {}))
        if fault.expire_session:
            self._sandbox.do(expire, {"syncSessionId": entry.session})
        return reply_under(fault, lambda failing: handled(rule, failing))

    async def _later(
        self, execute: Callable[[], RuleAnswer], request: Request, entry: LoggedRequest, fault: Fault, late: Late
    ) -> HttpReply:
        answers: asyncio.Queue[RuleAnswer | None] = asyncio.Queue()
        self._sandbox.late.hold(LateCall(entry, execute, answers.put_nowait), late.seconds)
        if late.seconds is not None:
            asyncio.get_running_loop().call_later(late.seconds, self._sandbox.late.execute, entry.seq)
        if late.answer != HOLD:
            return HttpReply(late.status, fault.body, fault.headers or {})
        answer = await self._hold.until_answered(answers, request.receive)
        return HttpReply(*answer) if answer else HttpReply(None)


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
        return from_json(raw, allow_inf_nan=False) if raw.strip() else {}
    except ValueError as error:
        raise ApiError(400, f"the body is not valid JSON: {error}") from error


def response(reply: HttpReply) -> Response:
    """Return a reply as JSON, as text that is sent unchanged, such as a gateway's page, or as a cut connection."""
    if reply.status is None:
        return Cut()
    kind: str | None = "application/json"
    if reply.body is None:
        content, kind = b"", None
    elif isinstance(reply.body, str):
        content, kind = reply.body.encode(), "text/html" if reply.body.lstrip().startswith("<") else "text/plain"
    else:
        content = to_json(reply.body)
    if "content-type" in {name.lower() for name in reply.headers}:
        kind = None
    return Response(content, reply.status, dict(reply.headers), media_type=kind)


class Cut(Response):
    """A response that cuts the connection without an answer, as a dying service or a proxy that gives up does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][CUT]()
        # The server answers 500 for an app that returns before it has noticed that the connection is gone.
        await disconnected(receive)
