"""Serve the console to this machine only: the page, its part that updates itself, and its two forms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from syncengine.render.html import page_file
from syncengine.sandbox import posting
from syncengine.sandbox.bodies import ApiError
from syncengine.sandbox.console import form, page
from syncengine.sandbox.control import local
from syncengine.sandbox.instance import Sandbox

if TYPE_CHECKING:
    from jinja2 import Environment

PACKAGE = "syncengine.sandbox.console"

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # "no-referrer" would take the origin from our own forms
    "cache-control": "no-store",
}

REQUESTS = 50
"""The number of logged requests that the page shows."""

BODY_BYTES = 100_000
"""The maximum number of bytes of a form. A larger one was not filled in by a person."""


@cache
def environment() -> Environment:
    """Return the template environment. Jinja is imported here, since most uses of the sandbox need no templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


async def _page(sandbox: Sandbox, request: Request) -> Response:
    return _rendered(sandbox, request)


def _rendered(
    sandbox: Sandbox,
    request: Request,
    fields: Mapping[str, str] = form.EMPTY,
    problems: Mapping[str, str] | None = None,
) -> Response:
    variables = {
        **_live_values(sandbox, request),
        **page.choices(sandbox.store),
        "fields": {**form.EMPTY, **fields},
        "problems": problems or {},
        "interface": str(request.base_url.replace(path="/connect/api")),
    }
    return _html("page.html.j2", variables, 400 if problems else 200)


async def _live(sandbox: Sandbox, request: Request) -> Response:
    return _html("live.html.j2", _live_values(sandbox, request))


def _live_values(sandbox: Sandbox, request: Request) -> dict[str, object]:
    return page.live(sandbox.store, sandbox.log.latest(REQUESTS), page.view(request.query_params))


def _html(template: str, variables: Mapping[str, object], status: int = 200) -> Response:
    text = environment().get_template(template).render(variables)
    return Response(text.encode(errors="replace"), status, HEADERS, "text/html")


async def _post(sandbox: Sandbox, request: Request) -> Response:
    fields = await _fields(request)
    filled = form.read(fields)
    if filled.problems:
        return _rendered(sandbox, request, fields, filled.problems)
    sandbox.do(posting.post, filled.body)
    return RedirectResponse("/", 303, HEADERS)


async def _offer(sandbox: Sandbox, request: Request) -> Response:
    answer = sandbox.do(posting.offer, dict(await _fields(request)))
    if answer.status >= 400:
        return PlainTextResponse(answer.body["message"], answer.status, HEADERS)
    return RedirectResponse("/", 303, HEADERS)


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a submitted form. Raise `ApiError` when the form is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            raise ApiError(413, "the form is too large")
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))


async def _style(_sandbox: Sandbox, _request: Request) -> Response:
    return Response(page_file("pages.css"), headers=HEADERS, media_type="text/css")


async def _script(_sandbox: Sandbox, _request: Request) -> Response:
    script = files(PACKAGE).joinpath("static", "console.js").read_bytes()
    return Response(script, headers=HEADERS, media_type="text/javascript")


_ROUTES: dict[tuple[str, str], Callable[[Sandbox, Request], Awaitable[Response]]] = {
    ("GET", "/"): _page,
    ("GET", "/console/live"): _live,
    ("POST", "/console/post"): _post,
    ("POST", "/console/offer"): _offer,
    ("GET", "/console/pages.css"): _style,
    ("GET", "/console/console.js"): _script,
}


def routes(sandbox: Sandbox) -> list[Route]:
    return [
        Route(path, local(partial(handler, sandbox), _refusal), methods=[method])
        for (method, path), handler in _ROUTES.items()
    ]


def _refusal(error: ApiError) -> Response:
    return PlainTextResponse(error.message, error.status, HEADERS)
