"""The control API under /sandbox: inspect the data, act as somebody else, set faults. Needs no key; local only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from syncengine.sandbox import activity_types, posting, snapshot
from syncengine.sandbox.faults import HttpReply, faults_from
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.local import endpoint
from syncengine.sandbox.replies import body_of, parse_body, response
from syncengine.sandbox.request import (
    COUNT,
    OBJECT,
    SECONDS,
    TEXT,
    ApiError,
    FieldType,
    RuleAnswer,
    RuleRequest,
    attributes,
    is_number,
    read_fields,
    read_known,
    required,
)
from syncengine.sandbox.request_log import as_json
from syncengine.sandbox.rules import RULES, Rule
from syncengine.sandbox.world import SETTINGS, Draft, Json, SandboxSettings


class ControlRequest(NamedTuple):
    """A request to the control API."""

    body: Any
    query: Mapping[str, str]


Handler = Callable[[Sandbox, ControlRequest], RuleAnswer]


def _state(sandbox: Sandbox, _request: ControlRequest) -> RuleAnswer:
    return RuleAnswer(200, snapshot.state(sandbox.world))


def _requests(sandbox: Sandbox, request: ControlRequest) -> RuleAnswer:
    since = request.query.get("since", "0")
    if not since.isdecimal():
        raise ApiError(400, "since must be the number of a request")
    return RuleAnswer(200, {"requests": list(sandbox.log.since(int(since)))})


def _reset(sandbox: Sandbox, _request: ControlRequest) -> RuleAnswer:
    sandbox.reset()
    return RuleAnswer(200, {})


def _add_faults(sandbox: Sandbox, request: ControlRequest) -> RuleAnswer:
    sandbox.faults.add(faults_from(request.body))
    return RuleAnswer(200, {})


def _clear_faults(sandbox: Sandbox, _request: ControlRequest) -> RuleAnswer:
    sandbox.faults.clear()
    return RuleAnswer(200, {})


def _late_calls(sandbox: Sandbox, _request: ControlRequest) -> RuleAnswer:
    return RuleAnswer(200, {"late": list(map(as_json, sandbox.late.pending()))})


def _execute(sandbox: Sandbox, request: ControlRequest) -> RuleAnswer:
    """Execute the late call of request `seq`, or all waiting calls in order of arrival when `seq` is not given."""
    chosen = read_fields(request.body, {"seq": COUNT}).get("seq")
    numbers = [entry.seq for entry in sandbox.late.pending() if chosen in (None, entry.seq)]
    if chosen is not None and not numbers:
        raise ApiError(404, f"there is no waiting call with seq {chosen}")
    return RuleAnswer(200, {"executed": [as_json(entry) for entry in map(sandbox.late.execute, numbers) if entry]})


def _drop_late_calls(sandbox: Sandbox, _request: ControlRequest) -> RuleAnswer:
    sandbox.late.clear()
    return RuleAnswer(200, {})


_SETTINGS = {
    "teamName": TEXT,
    "tagLimit": COUNT,
    "batchLimit": COUNT,
    "statusForItemErrors": FieldType("200 or 400", lambda value: value in (200, 400)),
    "holdSeconds": FieldType("a number of seconds, at most 60", lambda value: is_number(value) and value <= 60),
    "reofferSeconds": SECONDS,
    "retrySeconds": SECONDS,
    "webhookTimeoutSeconds": SECONDS,
    "webhookCalls": COUNT,
    "connectorConfiguration": OBJECT,
}


def _choose(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Change the settings that the body names. `tagLimit: null` removes the limit."""
    values = read_known(request.body, _SETTINGS, nullable="tagLimit")
    chosen = replace(draft.chosen, **attributes(values, SandboxSettings))
    draft.settings.put(SETTINGS, chosen)
    return RuleAnswer(200, snapshot.settings(chosen))


_DELETIONS: dict[str, tuple[Rule, dict[str, str]]] = {
    "tag": (RULES["deleteTag"], {"name": "name"}),
    "category": (RULES["deleteTagCategory"], {"name": "externalId"}),
    "activity-type": (activity_types.delete, {"name": "code"}),
    "keyword": (RULES["deleteKeyword"], {"tag": "tagName", "name": "keyword"}),
}
"""The rule that deletes each kind of resource, and the field of the rule's body for each field of the request."""


def _delete(sandbox: Sandbox, request: ControlRequest) -> RuleAnswer:
    values = read_fields(request.body, {"kind": TEXT, "name": TEXT, "tag": TEXT})
    kind = required(values, "kind")
    if kind not in _DELETIONS:
        raise ApiError(400, f"kind must be one of {', '.join(_DELETIONS)}")
    rule, names = _DELETIONS[kind]
    return sandbox.do(rule, {theirs: required(values, ours) for ours, theirs in names.items()})


def _by_rule(rule: Rule) -> Handler:
    """Return a handler that applies `rule` as another connector or a person would: not logged and without faults."""

    def handler(sandbox: Sandbox, request: ControlRequest) -> RuleAnswer:
        return sandbox.do(rule, _object(request.body))

    return handler


def _object(body: Any) -> Json:
    if not isinstance(body, dict):
        raise ApiError(400, "the body must be an object")
    return body


CONTROLS: dict[tuple[str, str], Handler] = {
    ("GET", "/state"): _state,
    ("GET", "/requests"): _requests,
    ("POST", "/reset"): _reset,
    ("POST", "/settings"): _by_rule(_choose),
    ("POST", "/faults"): _add_faults,
    ("DELETE", "/faults"): _clear_faults,
    ("GET", "/late"): _late_calls,
    ("POST", "/late/execute"): _execute,
    ("DELETE", "/late"): _drop_late_calls,
    ("POST", "/tags"): _by_rule(RULES["upsertTags"]),
    ("POST", "/categories"): _by_rule(RULES["upsertTagCategories"]),
    ("POST", "/activity-types"): _by_rule(RULES["uploadActivityTypes"]),
    ("POST", "/posted-time"): _by_rule(posting.post),
    ("POST", "/posted-time/offer"): _by_rule(posting.offer),
    ("POST", "/delete"): _delete,
}


def routes(sandbox: Sandbox) -> list[Route]:
    return [
        Route(f"/sandbox{path}", _endpoint(sandbox, handler), methods=[method])
        for (method, path), handler in CONTROLS.items()
    ]


def _endpoint(sandbox: Sandbox, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        control_request = ControlRequest(parse_body(await body_of(request)), request.query_params)
        return response(HttpReply(*handler(sandbox, control_request)))

    return endpoint(answer, lambda error: response(HttpReply(*error.answer())))
