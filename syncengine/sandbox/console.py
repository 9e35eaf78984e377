"""The console for people: a page of the data, its part that updates itself, and the form that posts time."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from syncengine.render.html import page_file
from syncengine.sandbox import instance, posting
from syncengine.sandbox.bodies import ApiError
from syncengine.sandbox.control import local
from syncengine.sandbox.instance import Sandbox
from syncengine.sandbox.store import CATEGORIES, POSTED_TIME, TAGS, TYPES, Json

if TYPE_CHECKING:
    from jinja2 import Environment

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # "no-referrer" would take the origin from our own forms
    "cache-control": "no-store",
}

ROWS = 100
"""The number of rows of each table, and of requests. The page is made anew every second."""

CHOICES = 100  # a browser cannot cope with 100,000
"""The number of tag names that the form offers."""

BODY_CHARACTERS = 4_000
"""The maximum number of characters of a request's body that are shown."""

EMPTY: Mapping[str, str] = {
    "user": "Jane Doe",
    "tag": "",
    "activityType": "",
    "description": "",
    "minutes": "60",
    "activities": "",
    "zone": "",
    "offset": "",
}
"""The initial fields of the form. The browser sets `zone` to its time zone and `offset` to its minutes ahead of UTC."""


def routes(sandbox: Sandbox) -> list[Route]:
    handlers: dict[tuple[str, str], Callable[[Sandbox, Request], Awaitable[Response]]] = {
        ("GET", "/"): _page,
        ("GET", "/console/live"): _live,
        ("POST", "/console/post"): _post,
        ("POST", "/console/offer"): _offer,
        ("GET", "/console/pages.css"): _style,
        ("GET", "/console/console.js"): _script,
    }
    return [
        Route(path, local(partial(handler, sandbox), _refusal), methods=[method])
        for (method, path), handler in handlers.items()
    ]


def _refusal(error: ApiError) -> Response:
    return PlainTextResponse(error.message, error.status, HEADERS)


async def _page(sandbox: Sandbox, request: Request) -> Response:
    return _rendered(sandbox, request, EMPTY, {})


async def _live(sandbox: Sandbox, request: Request) -> Response:
    return _html("live.html.j2", live(sandbox, request.query_params.get("find", "")))


async def _post(sandbox: Sandbox, request: Request) -> Response:
    fields = await _fields(request)
    body, problems = group_of(fields)
    if problems:
        return _rendered(sandbox, request, fields, problems)
    sandbox.do(posting.post, body)
    return RedirectResponse("/", 303, HEADERS)


async def _offer(sandbox: Sandbox, request: Request) -> Response:
    answer = sandbox.do(posting.offer, dict(await _fields(request)))
    if answer.status >= 400:
        return PlainTextResponse(answer.body["message"], answer.status, HEADERS)
    return RedirectResponse("/", 303, HEADERS)


async def _style(_sandbox: Sandbox, _request: Request) -> Response:
    return Response(page_file("pages.css"), headers=HEADERS, media_type="text/css")


async def _script(_sandbox: Sandbox, _request: Request) -> Response:
    script = files("syncengine.sandbox").joinpath("static", "console.js").read_bytes()
    return Response(script, headers=HEADERS, media_type="text/javascript")


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a submitted form."""
    return dict(parse_qsl((await request.body()).decode(errors="replace"), keep_blank_values=True))


def _rendered(sandbox: Sandbox, request: Request, fields: Mapping[str, str], problems: Mapping[str, str]) -> Response:
    """Return the whole page. Its form offers activity types that users may choose (docs/interface.md 2.3)."""
    store = sandbox.store
    variables = {
        **live(sandbox, request.query_params.get("find", "")),
        "tag_names": store.keys(TAGS)[:CHOICES],
        "activity_type_choices": [each for each in store.rows(TYPES) if each["enabled"] and not each["deleted"]],
        "fields": {**EMPTY, **fields},
        "problems": problems,
        "interface": str(request.base_url.replace(path="/connect/api")),
    }
    return _html("page.html.j2", variables, 400 if problems else 200)


def _html(template: str, variables: Mapping[str, object], status: int = 200) -> Response:
    text = environment().get_template(template).render(variables)
    return Response(text.encode(errors="replace"), status, HEADERS, "text/html")


@cache
def environment() -> Environment:
    """Return the template environment. Jinja is imported here, since most uses of the sandbox need no templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("syncengine.sandbox")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


# --- the values that the page shows


def live(sandbox: Sandbox, find: str) -> Json:
    """Return the values for the parts of the page that update themselves, with the tags whose names contain `find`."""
    store = sandbox.store
    names = [name for name in store.keys(TAGS) if find.casefold() in name.casefold()]
    first = names[:ROWS]

    def tags() -> Iterator[Json]:
        for tag in instance.tags(store, f"AND key IN ({', '.join('?' * len(first))}) ORDER BY key", *first):
            try:  # a manifest's URL may be anything, even a script
                is_page = urlsplit(tag.get("url", "")).scheme in ("http", "https")
            except ValueError:
                is_page = False
            yield {**tag, "link": tag["url"] if is_page else None}

    def categories() -> Iterator[Json]:
        for category in store.rows(CATEGORIES, "ORDER BY link LIMIT ?", ROWS):
            yield {**category, "members": store.count(TAGS, "AND link = ?", category["id"])}

    posted = map(posted_row, store.rows(POSTED_TIME, "ORDER BY at DESC, rowid DESC LIMIT ?", ROWS))
    types = store.rows(TYPES, "ORDER BY key LIMIT ?", ROWS)
    return {
        "team": store.settings["teamName"],
        "connection": instance.connection(store),
        "posted": {"total": store.count(POSTED_TIME), "rows": list(posted)},
        "categories": {"total": store.count(CATEGORIES), "rows": list(categories())},
        "activity_types": {"total": store.count(TYPES), "rows": list(types)},
        "tags": {"total": len(names), "rows": list(tags())},
        "requests": [_request_row(request) for request in sandbox.log.latest(ROWS)],
        "find": find,
    }


def posted_row(posted: Json) -> Json:
    """Return a group's row for the page. Groups may lack any field and contain any value (docs/service.md §2)."""
    group, last = posted["group"], posted["told"][-1] if posted["told"] else None
    return {
        **instance.posted_time(posted),
        "submitted": instant(posted["submitted"]),
        "user": (group.get("user") or {}).get("name"),
        "tags": [tag.get("name") for tag in group.get("tags") or ()],
        "activity_type": (group.get("activityType") or {}).get("code"),
        "duration": shown_duration(group.get("totalDurationSecs")),
        "description": group.get("description"),
        "told_at": instant(last["at"]) if last else None,
    }


def _request_row(request: Json) -> Json:
    query = "&".join(f"{name}={value}" for name, value in request["query"].items())
    late, body, lateness = request["late"], request["body"], None
    if late is not None:
        lateness = "not executed yet" if late["executed"] is None else f"executed late: {late['status']}"
    if body is not None:
        body = body if isinstance(body, str) else json.dumps(body, indent=2, ensure_ascii=False)
        body = body if len(body) <= BODY_CHARACTERS else body[:BODY_CHARACTERS] + "…"
    return {
        **request,
        "at": instant(request["at"]),
        "target": request["path"] + (f"?{query}" if query else ""),
        "lateness": lateness,
        "body": body,
    }


def instant(milliseconds: int) -> str:
    """Return a time in UTC to the second, or its plain number when it is beyond the calendar."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)


def shown_duration(seconds: Any) -> str:
    """Return seconds as `2h 46m 40s`, leaving out zeros."""
    if not isinstance(seconds, int) or seconds < 0:
        return "" if seconds is None else str(seconds)
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return " ".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


# --- the form that posts time

_OFFSET = re.compile(r"-?\d{1,3}")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{1,63}")


def group_of(fields: Mapping[str, str]) -> tuple[Json, dict[str, str]]:
    """Return the group to post for the fields of a form, and the problems that forbid it, as sentences by field."""
    texts = {name: fields.get(name, "").strip() for name in EMPTY}
    problems: dict[str, str] = {}
    is_number = texts["minutes"].isascii() and texts["minutes"].isdigit() and len(texts["minutes"]) <= 4
    seconds = 60 * int(texts["minutes"]) if is_number else 0
    if not 0 < seconds <= 24 * 3600:
        problems["minutes"] = "Enter a number of minutes from 1 to 1440."
    if not texts["user"]:
        problems["user"] = "Enter the user's name."
    offset = int(texts["offset"]) if _OFFSET.fullmatch(texts["offset"]) else 0
    zone = {"timezone_name": texts["zone"]} if _ZONE.fullmatch(texts["zone"]) else {}
    words = re.findall(r"\w+", texts["user"].casefold())
    body: Json = {
        # With ids of its own for each name, so that a sink can tell people apart.
        "user": {
            "userId": f"user-{'-'.join(words)}",
            "name": texts["user"],
            "email": f"{'.'.join(words)}@example.com",
            "externalId": "".join(word[0] for word in words),
        },
        "description": texts["description"],
        "totalDurationSecs": seconds,
        "tzOffsetMins": offset if abs(offset) <= 14 * 60 else 0,  # no local time is farther from UTC
        "timeRows": [{**zone, **row} for row in rows_of(texts["activities"], seconds)],
        **{name: texts[name] for name in ("tag", "activityType") if texts[name]},
    }
    return body, problems


def rows_of(activities: str, seconds: int) -> list[Json]:
    """Return a row per line, or a single row without lines. The rows share the time; the first gets the remainder."""
    names = [line.strip() for line in activities.splitlines() if line.strip()] or ["empty"]
    share, remainder = divmod(seconds, len(names))
    return [
        {
            "durationSecs": share + (0 if number else remainder),
            "activity": f"@_{name}_@",
            "description": "",
            "source": "USER_MANUAL_TIME",
        }
        for number, name in enumerate(names)
    ]
