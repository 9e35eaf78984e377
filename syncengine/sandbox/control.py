"""The control API under /sandbox: inspect the data, act as somebody else, set faults. Needs no key; local only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from syncengine.sandbox import posting
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
from syncengine.sandbox.instance import Sandbox, everything
from syncengine.sandbox.interface import parse_body, response
from syncengine.sandbox.rules import RULES, delete_type
from syncengine.sandbox.store import TEAM, Store


class _Chosen(RequestBody):
    seq: Count = None


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

_BY_RULE: dict[str, Rule] = {
    "/settings": _choose,
    "/tags": RULES["upsertTags"],
    "/categories": RULES["upsertTagCategories"],
    "/activity-types": RULES["uploadActivityTypes"],
    "/posted-time": posting.post,
    "/posted-time/offer": posting.offer,
}
"""What a POST to a path does, as another connector or a person would: not logged and without faults."""

_PATHS = ("/state", "/requests", "/reset", "/faults", "/late", "/late/execute", "/delete", *_BY_RULE)
_METHODS = {"/state": ["GET"], "/requests": ["GET"], "/faults": ["POST", "DELETE"], "/late": ["GET", "DELETE"]}


def _answer(sandbox: Sandbox, method: str, path: str, body: Any, query: Mapping[str, str]) -> RuleAnswer:
    if path in _BY_RULE:
        if not isinstance(body, dict):
            raise ApiError(400, "the body must be an object")
        return sandbox.do(_BY_RULE[path], body)
    match method, path:
        case _, "/state":
            return RuleAnswer(200, everything(sandbox.store))
        case _, "/requests":
            since = query.get("since", "0")
            if not since.isdecimal():
                raise ApiError(400, "since must be the number of a request")
            return RuleAnswer(200, {"requests": list(sandbox.log.since(int(since)))})
        case _, "/reset":
            sandbox.reset()
        case "POST", "/faults":
            sandbox.faults.add(faults_from(body))
        case "DELETE", "/faults":
            sandbox.faults.clear()
        case "GET" | "HEAD", "/late":
            return RuleAnswer(200, {"late": [call.entry.as_json() for call in sandbox.late.values()]})
        case "DELETE", "/late":
            sandbox.drop_late()
        case _, "/late/execute":  # that of request `seq`, or all waiting calls in order of arrival
            chosen = read(_Chosen, body).seq
            numbers = [seq for seq in sandbox.late if chosen in (None, seq)]
            if chosen is not None and not numbers:
                raise ApiError(404, f"there is no waiting call with seq {chosen}")
            executed = [entry.as_json() for number in numbers if (entry := sandbox.execute_late(number))]
            return RuleAnswer(200, {"executed": executed})
        case _, "/delete":
            deletion = read(_Deletion, body)
            if deletion.kind not in _DELETIONS:
                raise ApiError(400, f"kind must be one of {', '.join(_DELETIONS)}")
            rule, names = _DELETIONS[deletion.kind]
            fields = deletion.values()
            if missing := [name for name in names if not fields.get(name, "").strip()]:
                raise ApiError(400, f"{missing[0]} is missing")
            return sandbox.do(rule, {theirs: fields[ours] for ours, theirs in names.items()})
    return DONE


def routes(sandbox: Sandbox) -> list[Route]:
    async def answer(request: Request) -> Response:
        body = parse_body(await request.body())
        path = request.url.path.removeprefix("/sandbox")
        return response(HttpReply(*_answer(sandbox, request.method, path, body, request.query_params)))

    endpoint = local(answer, lambda error: response(HttpReply(error.status, error.body)))
    return [Route(f"/sandbox{path}", endpoint, methods=_METHODS.get(path, ["POST"])) for path in _PATHS]


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
