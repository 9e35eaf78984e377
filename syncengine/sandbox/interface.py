"""Serve the connector interface over HTTP. Each request is logged and goes through key, path, fault and rule."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from hmac import compare_digest
from typing import Any, NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from syncengine.sandbox import posted_time
from syncengine.sandbox.faults import HOLD, Fault, HttpReply, Late, reply_under
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.late_calls import LateCall
from syncengine.sandbox.long_poll import Bell, Hold
from syncengine.sandbox.replies import body_of, parse_body, response
from syncengine.sandbox.request import ApiError, RuleAnswer
from syncengine.sandbox.request_log import LoggedRequest
from syncengine.sandbox.rules import RULES, Rule
from syncengine.sandbox.world import SETTINGS
from syncengine.service.operations import FETCH_POSTED_TIME, OPERATIONS, Operation

PREFIX = "/connect/api"


def _by_path(operations: Iterable[Operation]) -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation
    return paths


PATHS = _by_path(OPERATIONS.values())


class _Call(NamedTuple):
    """A request that was read completely. `receive` reports when its client leaves."""

    body: Any
    query: Mapping[str, str]
    receive: Receive
    entry: LoggedRequest


class Interface:
    """The ASGI application of the connector interface. `stopping` ends long polls and replies that a fault delays."""

    def __init__(self, sandbox: Sandbox, api_key: str, stopping: asyncio.Event, bell: Bell) -> None:
        self._sandbox = sandbox
        self._api_key = api_key.encode()
        self._stopping = stopping
        self._hold = Hold(sandbox, bell, stopping)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            raw = await body_of(request)
            reply = await self._replied(request, raw, _read(raw), receive)
        except ApiError as error:
            reply = await self._replied(request, b"", error, receive)
        except ClientDisconnect:
            return
        await response(reply)(scope, receive, send)

    async def _replied(self, request: Request, raw: bytes, body: Any, receive: Receive) -> HttpReply:
        path = request.url.path.removeprefix(PREFIX)
        operation = PATHS.get(path, {}).get(request.method)
        entry = self._logged(operation, request, path, raw, body)
        try:
            call = _Call(body, request.query_params, receive, entry)
            reply = await self._reply(self._admitted(request, path), call)
        except ApiError as error:
            reply = HttpReply(*error.answer())
        if reply.delay and await self._stopped_within(reply.delay):
            reply = HttpReply(None)
        entry.ended(reply.status)
        return reply

    def _logged(self, operation: Operation | None, request: Request, path: str, raw: bytes, body: Any) -> LoggedRequest:
        return self._sandbox.log.arrived(
            operation.id if operation else None,
            request.method,
            path,
            items=_count(operation, body),
            session=_session_id(body),
            body=raw,
            query=dict(request.query_params),
            user_agent=request.headers.get("user-agent", ""),
            at=self._sandbox.now(),
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

    async def _reply(self, operation: Operation, call: _Call) -> HttpReply:
        fault = self._sandbox.faults.take(operation.id)
        rule: Rule | None = RULES[operation.id]
        if fault and fault.late:
            return await self._later(RULES[operation.id], call, fault, fault.late)
        if operation is FETCH_POSTED_TIME and (fault is None or fault.processes):
            rule = await self._await_posted_time(call)
        if rule is None:
            return HttpReply(None)
        if fault is None:
            return HttpReply(*self._handled(rule, call, {}))
        if fault.expire_session:
            self._sandbox.expire(_session_id(call.body))
        return reply_under(fault, lambda failing: self._handled(rule, call, failing))

    async def _later(self, rule: Rule, call: _Call, fault: Fault, late: Late) -> HttpReply:
        answers: asyncio.Queue[RuleAnswer | None] = asyncio.Queue()
        waiting = LateCall(call.entry, lambda: self._handled(rule, call, {}), answers.put_nowait)
        self._sandbox.late.hold(waiting, late.seconds)
        if late.seconds is not None:
            asyncio.get_running_loop().call_later(late.seconds, self._sandbox.late.execute, call.entry.seq)
        if late.answer != HOLD:
            return HttpReply(late.status, fault.body, fault.headers)
        answer = await self._hold.until_answered(answers, call.receive)
        return HttpReply(*answer) if answer else HttpReply(None)

    async def _await_posted_time(self, call: _Call) -> Rule | None:
        """Wait for posted time and return the rule that answers the fetch, or `None` when its client has left."""
        if self._handled(posted_time.listen, call, {}).status >= 400:
            return posted_time.fetch
        seconds = self._sandbox.world.settings[SETTINGS].hold_seconds
        return posted_time.collect if await self._hold.until_posted_time(call.receive, seconds) else None

    def _handled(self, rule: Rule, call: _Call, failing: Mapping[int, str]) -> RuleAnswer:
        if isinstance(call.body, ApiError):
            return call.body.answer()
        if not isinstance(call.body, dict):
            return ApiError(400, "the body must be an object").answer()
        return self._sandbox.do(rule, call.body, failing, call.query)

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._stopping.wait()
        except TimeoutError:
            return False


def _read(raw: bytes) -> Any:
    """Return the parsed body, or the error to answer once the key and the path are checked."""
    try:
        return parse_body(raw)
    except ApiError as error:
        return error


def _count(operation: Operation | None, body: Any) -> int | None:
    """Return the number of items in a batch, or `None` when the body is not a batch."""
    if operation is None or operation.items is None or not isinstance(body, dict):
        return None
    items = body.get(operation.items)
    return len(items) if isinstance(items, list) else None


def _session_id(body: Any) -> str | None:
    session = body.get("syncSessionId") if isinstance(body, dict) else None
    return session if isinstance(session, str) else None
