"""Prepare the console's content: the data and the newest requests → plain values for the templates. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from heapq import nlargest, nsmallest
from itertools import islice
from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit

import orjson

from syncengine.sandbox import snapshot
from syncengine.sandbox.categories import as_json as category_as_json
from syncengine.sandbox.world import CONNECTION, SETTINGS, Json, PostedTime, World

ROWS = 100
"""The maximum number of rows of each table, since a browser cannot cope with 100,000 tags."""

BODY_CHARACTERS = 4_000
"""The maximum number of characters of a request's body that are shown."""


def live(world: World, requests: Iterable[Json], find: str = "") -> Json:
    """Return the values for the part of the page that updates itself. `find` selects tags by a part of their name."""
    names = [name for name in world.tags if find.casefold() in name.casefold()]
    categories = sorted(world.categories.values(), key=lambda category: category.external_id)
    return {
        "team": world.settings[SETTINGS].team_name,
        "connection": snapshot.connection(world.connection[CONNECTION]),
        "posted": _table(
            [
                posted_row(posted)
                for posted in nlargest(ROWS, world.posted_time.values(), key=attrgetter("submitted", "number"))
            ],
            len(world.posted_time),
        ),
        "tags": _table([_tag_row(world, name) for name in nsmallest(ROWS, names)], len(names)),
        "categories": _table(
            [
                {**category_as_json(category), "members": len(world.members.get(category.id, ()))}
                for category in islice(categories, ROWS)
            ],
            len(categories),
        ),
        "activity_types": _table(
            [asdict(world.activity_types[code]) for code in nsmallest(ROWS, world.activity_types)],
            len(world.activity_types),
        ),
        "requests": [_request_row(request) for request in requests],
        "find": find,
    }


def choices(world: World) -> Json:
    """Return the form's choices: tag names, and the activity types that users may choose (docs/interface.md 2.3)."""
    types = (activity_type for _, activity_type in sorted(world.activity_types.items()))
    return {
        "tag_names": nsmallest(ROWS, world.tags),
        "activity_type_choices": [
            activity_type for activity_type in types if activity_type.enabled and not activity_type.deleted
        ],
    }


def _table(rows: Sequence[Json], total: int) -> Json:
    return {"rows": rows, "total": total, "more": total - len(rows)}


def posted_row(posted: PostedTime) -> Json:
    """Return a group's row for the page. Groups may lack any field and contain any value (docs/service.md §2)."""
    group, last = posted.group, posted.told[-1] if posted.told else None
    return {
        **snapshot.posted_time(posted),
        "submitted": instant(posted.submitted),
        "user": (group.get("user") or {}).get("name"),
        "tags": [tag.get("name") for tag in group.get("tags") or ()],
        "activity_type": (group.get("activityType") or {}).get("code"),
        "duration": duration(group.get("totalDurationSecs")),
        "description": group.get("description"),
        "told_at": instant(last.at) if last else None,
    }


def _tag_row(world: World, name: str) -> Json:
    row = snapshot.tag(world, world.tags[name])
    return {**row, "link": row.get("url") if _leads_to_a_page(row.get("url", "")) else None}


def _leads_to_a_page(url: str) -> bool:
    """Return whether a URL is http or https. A manifest's URL may be anything, even a script."""
    try:
        return urlsplit(url).scheme in ("http", "https")
    except ValueError:
        return False


def _request_row(request: Json) -> Json:
    query = "&".join(f"{name}={value}" for name, value in request["query"].items())
    return {
        **request,
        "at": instant(request["at"]),
        "target": request["path"] + (f"?{query}" if query else ""),
        "lateness": _lateness(request["late"]),
        "body": _body(request["body"]),
    }


def _lateness(late: Json | None) -> str | None:
    """Return words for the state of a late call and its status, or `None` for a call that is not late."""
    if late is None:
        return None
    return "not executed yet" if late["executed"] is None else f"executed late: {late['status']}"


def _body(body: Any) -> str | None:
    if body is None:
        return None
    text = body if isinstance(body, str) else orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()
    return text if len(text) <= BODY_CHARACTERS else text[:BODY_CHARACTERS] + "…"


def instant(milliseconds: int) -> str:
    """Return a time in UTC to the second, or its plain number when it is beyond the calendar."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)


def duration(seconds: Any) -> str:
    """Return seconds as `2h 46m 40s`, leaving out zeros."""
    if not isinstance(seconds, int) or seconds < 0:
        return "" if seconds is None else str(seconds)
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return " ".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
