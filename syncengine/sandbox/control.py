"""The control API under /sandbox: inspect the data, act as somebody else, set faults. Needs no key; local only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from syncengine.sandbox import posting, state
from syncengine.sandbox.bodies import (
    DONE,
    ApiError,
    Count,
    KnownBody,
    Name,
    Object,
    RequestBody,
    Rule,
    RuleAnswer,
    RuleRequest,
    Seconds,
    Text,
    read,
)
from syncengine.sandbox.faults import HttpReply, faults_from
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.interface import body_of, parse_body, response
from syncengine.sandbox.rules import RULES, delete_type
from syncengine.sandbox.store import TEAM, Store


class ControlRequest(NamedTuple):
    """A request to the control API."""

    body: Any
    query: Mapping[str, str]


Handler = Callable[[Sandbox, ControlRequest], RuleAnswer]


def _state(sandbox: Sandbox, _request: ControlRequest) -> RuleAnswer:
    return RuleAnswer(200, state.everything(sandbox.store))


def _requests(sandbox: Sandbox, request: ControlRequest) -> RuleAnswer:
    since = request.query.get("since", "0")
    if not since.isdecimal():
        raise ApiError(400, "since must be the number of a request")
    return RuleAnswer(200, {"requests": list(sandbox.log.since(int(since)))})


def _reset(sandbox: Sandbox, _request: ControlRequest) -> RuleAnswer:
    sandbox.reset()
    return DONE


def _add_faults(sandbox: Sandbox, request: ControlRequest) -> RuleAnswer:
    sandbox.faults.add(faults_from(request.body))
    return DONE


def _clear_faults(sandbox: Sandbox, _request: ControlRequest) -> RuleAnswer:
    sandbox.faults.clear()
    return DONE


def _late_calls(sandbox: Sandbox, _request: ControlRequest) -> RuleAnswer:
    return RuleAnswer(200, {"late": [entry.as_json() for entry in sandbox.late.pending()]})


class _Chosen(RequestBody):
    seq: Count = None


def _execute(sandbox: Sandbox, request: ControlRequest) -> RuleAnswer:
    """Execute the late call of request `seq`, or all waiting calls in order of arrival when `seq` is not given."""
    chosen = read(_Chosen, request.body).seq
    numbers = [entry.seq for entry in sandbox.late.pending() if chosen in (None, entry.seq)]
    if chosen is not None and not numbers:
        raise ApiError(404, f"there is no waiting call with seq {chosen}")
    executed = [entry.as_json() for number in numbers if (entry := sandbox.late.execute(number))]
    return RuleAnswer(200, {"executed": executed})


def _drop_late_calls(sandbox: Sandbox, _request: ControlRequest) -> RuleAnswer:
    sandbox.late.clear()
    return DONE


class _Settings(KnownBody):
    team_name: Text = None
    tag_limit: Count = None
    batch_limit: Count = None
    status_for_item_errors: Annotated[Literal[200, 400] | None, Field(description="200 or 400")] = None
    hold_seconds: Annotated[float | None, Field(ge=0, le=60, description="a number of seconds, at most 60")] = None
    reoffer_seconds: Seconds = None
    retry_seconds: Seconds = None
    webhook_timeout_seconds: Seconds = None
    webhook_calls: Count = None
    connector_configuration: Object = None


def _choose(store: Store, request: RuleRequest) -> RuleAnswer:
    """Change the settings that the body names. `tagLimit: null` removes the limit."""
    chosen = read(_Settings, request.body)
    limit = {"tagLimit": chosen.tag_limit} if "tag_limit" in chosen.model_fields_set else {}
    store.put(TEAM, "settings", {**store.settings, **chosen.values(), **limit})
    return RuleAnswer(200, store.settings)


class _Deletion(RequestBody):
    kind: Name
    name: Text = None
    tag: Text = None


_DELETIONS: dict[str, tuple[Rule, dict[str, str]]] = {
    "tag": (RULES["deleteTag"], {"name": "name"}),
    "category": (RULES["deleteTagCategory"], {"name": "externalId"}),
    "activity-type": (delete_type, {"name": "code"}),
    "keyword": (RULES["deleteKeyword"], {"tag": "tagName", "name": "keyword"}),
}
"""The rule that deletes each kind of resource, and the field of the rule's body for each field of the request."""


def _delete(sandbox: Sandbox, request: ControlRequest) -> RuleAnswer:
    deletion = read(_Deletion, request.body)
    if deletion.kind not in _DELETIONS:
        raise ApiError(400, f"kind must be one of {', '.join(_DELETIONS)}")
    rule, names = _DELETIONS[deletion.kind]
    fields = deletion.values()
    if missing := [name for name in names if not fields.get(name, "").strip()]:
        raise ApiError(400, f"{missing[0]} is missing")
    return sandbox.do(rule, {theirs: fields[ours] for ours, theirs in names.items()})


def _by_rule(rule: Rule) -> Handler:
    """Return a handler that applies `rule` as another connector or a person would: not logged and without faults."""

    def handler(sandbox: Sandbox, request: ControlRequest) -> RuleAnswer:
        if not isinstance(request.body, dict):
            raise ApiError(400, "the body must be an object")
        return sandbox.do(rule, request.body)

    return handler


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

    return local(answer, lambda error: response(HttpReply(error.status, error.body)))


def local(
    answer: Callable[[Request], Awaitable[Response]], refusal: Callable[[ApiError], Response]
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint for this machine and the sandbox's own pages. `refusal` turns an `ApiError` into a response.

    The `Origin` header reveals another site's page. After DNS rebinding, the site's name in the requested URL does.
    """

    async def answered(request: Request) -> Response:
        try:
            if request.client is None or not _is_here(request.client.host):
                raise ApiError(403, "the console and the control API accept requests from this machine only")
            origin = request.headers.get("origin")
            is_foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
            if is_foreign or not _is_here(request.url.hostname or ""):
                raise ApiError(403, "the console and the control API accept no requests from pages of other sites")
            return await answer(request)
        except ApiError as error:
            return refusal(error)
        except ClientDisconnect:
            return Response()

    return answered


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
