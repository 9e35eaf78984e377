"""Serve the connector interface over HTTP: answer a connector's requests, and call its webhook.

Each request is logged and goes through key, path, fault and rule.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hmac import compare_digest
from typing import Any

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from syncengine.document.json_text import InvalidJson, decode_json, encode_json
from syncengine.http.exchange import HEADERS, Unfinished, cause_of, exchange, http_client
from syncengine.sandbox import posted_time
from syncengine.sandbox.bodies import ApiError, RuleAnswer
from syncengine.sandbox.faults import HOLD, WEBHOOK_CALL, Fault, HttpReply, reply_under
from syncengine.sandbox.instance import LateCall, LoggedRequest, Sandbox
from syncengine.sandbox.posted_time import FETCH, WEBHOOK
from syncengine.sandbox.rules import RULES, expire
from syncengine.sandbox.store import Json
from syncengine.service.operations import FETCH_POSTED_TIME, OPERATIONS, Operation

PREFIX = "/connect/api"

CUT = "cut"
"""The key under which the server puts a function into each request's state that cuts the request's connection."""

PATHS: dict[str, dict[str, Operation]] = {}
"""The operations by path and method."""
for _operation in OPERATIONS.values():
    PATHS.setdefault(_operation.path, {})[_operation.method] = _operation


class Interface:
    """The ASGI application of the connector interface. `stopping` ends long polls and replies that a fault delays."""

    def __init__(self, sandbox: Sandbox, api_key: str, stopping: asyncio.Event) -> None:
        self._sandbox = sandbox
        self._api_key = api_key.encode()
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = request.url.path.removeprefix(PREFIX)
        raw, body = b"", None
        try:
            raw = await request.body()
            body = parse_body(raw)
        except ApiError as error:
            body = error  # answered once the key and the path are checked
        except ClientDisconnect:
            return
        operation = PATHS.get(path, {}).get(request.method)
        fields = body if isinstance(body, dict) else {}
        items = fields.get(operation.items) if operation and operation.items else None
        session = fields.get("syncSessionId")
        entry = LoggedRequest(
            operation.id if operation else None,
            request.method,
            path,
            dict(request.query_params),
            request.headers.get("user-agent", ""),
            self._sandbox.now(),
            items=len(items) if isinstance(items, list) else None,
            session=session if isinstance(session, str) else None,
            body=raw,
        )
        self._sandbox.log.add(entry)
        try:
            # The key is checked first: without it, not even paths are disclosed.
            if not compare_digest(request.headers.get("x-api-key", "").encode(), self._api_key):
                raise ApiError(401, "the x-api-key header is missing or wrong")
            if path not in PATHS:
                raise ApiError(404, f"there is nothing at {path}")
            if operation is None:
                raise ApiError(405, f"{path} accepts only {', '.join(PATHS[path])}")
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

    async def _reply(self, operation: Operation, body: Any, request: Request, entry: LoggedRequest) -> HttpReply:
        sandbox, rule = self._sandbox, RULES[operation.id]

        def handled(failing: Mapping[int, str]) -> RuleAnswer:
            if isinstance(body, ApiError):
                return RuleAnswer(body.status, body.body)
            if not isinstance(body, dict):
                return RuleAnswer(400, {"message": "the body must be an object"})
            return sandbox.do(rule, body, failing, request.query_params)

        fault = sandbox.faults.take(operation.id)
        if fault and fault.late:
            answers: asyncio.Queue[RuleAnswer | None] = asyncio.Queue()
            sandbox.hold(LateCall(entry, lambda: handled({}), answers.put_nowait), fault.late.seconds)
            if fault.late.seconds is not None:
                asyncio.get_running_loop().call_later(fault.late.seconds, sandbox.execute_late, entry.seq)
            if fault.late.answer != HOLD:
                status = fault.late.answer if isinstance(fault.late.answer, int) else None
                return HttpReply(status, fault.body, fault.headers or {})
            answer = asyncio.ensure_future(answers.get())
            await self._is_connected_after(answer, request.receive)
            executed = answer.result() if answer.done() and not answer.cancelled() else None
            return HttpReply(*executed) if executed else HttpReply(None)
        if operation is FETCH_POSTED_TIME and (fault is None or fault.processes):
            # A fetch waits for posted time between two steps of it, unless the first one refuses it.
            rule = posted_time.listen
            if handled({}).status < 400:
                due = asyncio.ensure_future(_posted_time_due(sandbox))
                if not await self._is_connected_after(due, request.receive, sandbox.store.settings["holdSeconds"]):
                    return HttpReply(None)
                rule = posted_time.collect
        if fault is None:
            return HttpReply(*handled({}))
        if fault.expire_session:
            sandbox.do(expire, {"syncSessionId": entry.session})
        return reply_under(fault, handled)

    async def _is_connected_after(
        self, event: asyncio.Future[Any], receive: Receive, seconds: float | None = None
    ) -> bool:
        """Wait until the event, at most `seconds`, or until the sandbox stops. Return whether the client is there."""
        disconnection, stopped = map(asyncio.ensure_future, (disconnected(receive), self._stopping.wait()))
        tasks: set[asyncio.Future[Any]] = {disconnection, stopped, event}
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return not disconnection.done()
        finally:
            for task in tasks:
                task.cancel()


async def _posted_time_due(sandbox: Sandbox) -> None:
    """Return when a group is due, or when no fetch client is registered any more (docs/interface.md 4)."""
    while sandbox.store.connection["mechanism"] == FETCH:
        until = sandbox.seconds_until_due()
        if until == 0:
            return
        await sandbox.change(until)


async def disconnected(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def parse_body(raw: bytes) -> Any:
    """Return the parsed JSON body. An empty body counts as an empty object (docs/service.md §1)."""
    try:
        return decode_json(raw) if raw.strip() else {}
    except InvalidJson:
        raise ApiError(400, "the body is not valid JSON") from None


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
        content = encode_json(reply.body)
    if "content-type" in {name.lower() for name in reply.headers}:
        kind = None
    return Response(content, reply.status, dict(reply.headers), media_type=kind)


class Cut(Response):
    """A response that cuts the connection without an answer, as a dying service or a proxy that gives up does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][CUT]()
        # The server answers 500 for an app that returns before it has noticed that the connection is gone.
        await disconnected(receive)


# --- calls of the webhook

AT_ONCE = 4
"""The maximum number of webhook calls at the same time."""

LARGEST = 1024 * 1024  # a user is shown the beginning of its text
"""The maximum number of bytes of a webhook's answer."""


async def call_webhook(sandbox: Sandbox) -> None:
    """Call the registered webhook with each group as it becomes due, a few at once, until cancelled."""
    while sandbox.store.connection["mechanism"] != WEBHOOK:
        await sandbox.change()
    # The receiver is the developer's own, so that no proxy leads to it.
    async with http_client({"accept-encoding": HEADERS["accept-encoding"]}, is_local=True) as http:
        await asyncio.gather(*(_call_in_turn(sandbox, http) for _ in range(AT_ONCE)))


async def _call_in_turn(sandbox: Sandbox, http: httpx.AsyncClient) -> None:
    store = sandbox.store
    while True:
        call = sandbox.do(posted_time.next_call, {}).body
        if call is None:
            is_called = store.connection["mechanism"] == WEBHOOK and not store.key_is_lost
            await sandbox.change(sandbox.seconds_until_due() if is_called else None)
            continue
        fault = sandbox.faults.take(WEBHOOK_CALL) or Fault(operation=WEBHOOK_CALL)
        await asyncio.sleep(fault.delay)
        status, text = None, "the call was dropped"
        if fault.processes:
            answer = await _answer_of(http, call, store.settings["webhookTimeoutSeconds"])
            status, text = (status, text) if fault.drop else answer
        if fault.answers and not fault.drop:
            status, text = fault.status or 200, ""
        record = {"groupId": call["payload"]["groupId"], "offer": call["offer"], "status": status, "text": text}
        sandbox.do(posted_time.answered, record)


async def _answer_of(http: httpx.AsyncClient, call: Json, seconds: float) -> tuple[int | None, str]:
    """Make a call and return the status and text of its answer. The status is `None` without an answer."""
    try:
        request = http.build_request("POST", call["url"], json=call["payload"], timeout=seconds)
        reply = await exchange(http, request, seconds=seconds, most=LARGEST)
    except (httpx.TimeoutException, Unfinished):
        return None, f"no answer within {seconds:g} s"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return None, f"no answer: {cause_of(error)}"
    kind = {"content-type": reply.headers.get("content-type", "")}
    return reply.status, httpx.Response(reply.status, headers=kind, content=reply.content or b"").text
