"""The connector interface over HTTP: key, path, fault, rule, answer: in this order, each request in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from hmac import compare_digest
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from syncengine.sandbox.asked import Answer, Refused
from syncengine.sandbox.faults import Reply, reply_under
from syncengine.sandbox.replies import parsed, response
from syncengine.sandbox.request_log import Entry
from syncengine.sandbox.rules import RULES
from syncengine.sandbox.sandbox import Sandbox
from syncengine.service.operations import OPERATIONS, Operation

PREFIX = "/connect/api"


def _by_path(operations: Iterable[Operation]) -> dict[str, dict[str, Operation]]:
    """Path → method → operation."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation
    return paths


PATHS = _by_path(OPERATIONS.values())


class Interface:
    """An ASGI application. `stopping` ends the waiting of replies that a fault delays."""

    def __init__(self, sandbox: Sandbox, api_key: str, stopping: asyncio.Event) -> None:
        self._sandbox = sandbox
        self._api_key = api_key.encode()
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            raw = await request.body()
        except ClientDisconnect:
            return
        reply = await self._replied(request, raw)
        await response(reply)(scope, receive, send)

    async def _replied(self, request: Request, raw: bytes) -> Reply:
        path = request.url.path.removeprefix(PREFIX)
        operation = PATHS.get(path, {}).get(request.method)
        body = _read(raw)
        entry = self._logged(operation, request.method, path, raw, body)
        try:
            reply = self._reply(self._admitted(request, path), body)
        except Refused as refused:
            reply = Reply(*refused.answer())
        if reply.delay and await self._stopped_within(reply.delay):
            reply = Reply(None)
        entry.status = reply.status
        return reply

    def _logged(self, operation: Operation | None, method: str, path: str, raw: bytes, body: Any) -> Entry:
        return self._sandbox.log.arrived(
            operation.id if operation else None,
            method,
            path,
            items=_count(operation, body),
            session=_session_id(body),
            body=raw,
        )

    def _admitted(self, request: Request, path: str) -> Operation:
        """The key comes before anything else: without it not even paths are told apart."""
        key = request.headers.get("x-api-key", "").encode()
        if not compare_digest(key, self._api_key):
            raise Refused(401, "the x-api-key header is missing or wrong")
        if path not in PATHS:
            raise Refused(404, f"there is nothing at {path}")
        if request.method not in PATHS[path]:
            raise Refused(405, f"{path} takes {', '.join(PATHS[path])}")
        return PATHS[path][request.method]

    def _reply(self, operation: Operation, body: Any) -> Reply:
        fault = self._sandbox.faults.take(operation.id)
        if fault is None:
            return Reply(*self._handled(operation, body, {}))
        if fault.expire_session:
            self._sandbox.expire(_session_id(body))
        return reply_under(fault, lambda failing: self._handled(operation, body, failing))

    def _handled(self, operation: Operation, body: Any, failing: Mapping[int, str]) -> Answer:
        if isinstance(body, Refused):
            return body.answer()
        if not isinstance(body, dict):
            return Refused(400, "an object is expected").answer()
        return self._sandbox.do(RULES[operation.id], body, failing)

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._stopping.wait()
        except TimeoutError:
            return False


def _read(raw: bytes) -> Any:
    """The body, or why it is none: said when its turn comes, after the key and the path."""
    try:
        return parsed(raw)
    except Refused as refused:
        return refused


def _count(operation: Operation | None, body: Any) -> int | None:
    """Items of a batch; None where there is no batch."""
    if operation is None or operation.items is None or not isinstance(body, dict):
        return None
    items = body.get(operation.items)
    return len(items) if isinstance(items, list) else None


def _session_id(body: Any) -> str | None:
    found = body.get("syncSessionId") if isinstance(body, dict) else None
    return found if isinstance(found, str) else None
