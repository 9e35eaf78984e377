"""Prepare the console's content: the data and the newest requests → plain values for the templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from pydantic_core import to_json

from syncengine.sandbox import state
from syncengine.sandbox.store import CATEGORIES, POSTED_TIME, TAGS, TYPES, Json, Store

ROWS = 50
"""The number of rows of a page of each table."""

CHOICES = 100
"""The number of tag names that the form offers, since a browser cannot cope with 100,000."""

BODY_CHARACTERS = 4_000
"""The maximum number of characters of a request's body that are shown."""


class View(NamedTuple):
    """What a person asks to see: tags by a part of their name, and the number of a page, from 1, for each table."""

    find: str = ""
    pages: Mapping[str, int] = MappingProxyType({})

    def table(self, name: str, total: int, rows: Callable[[int], Iterable[Json]]) -> Json:
        """Return a page of a table: its rows, its number, and the addresses of the pages before and after it.

        `rows` returns the rows of the page that begins behind a number of rows. A page beyond the last is the last one.
        """
        last = max(1, -(-total // ROWS))
        page = min(self.pages.get(name, 1), last)
        return {
            "rows": list(rows((page - 1) * ROWS)),
            "total": total,
            "page": page,
            "last": last,
            "before": self._address(name, page - 1) if page > 1 else None,
            "after": self._address(name, page + 1) if page < last else None,
        }

    def _address(self, name: str, page: int) -> str:
        """Return the address of a page of one table, which leaves the other tables as they are."""
        values = {**({"find": self.find} if self.find else {}), **self.pages, name: page}
        return f"/?{urlencode(values)}#{TABLES[name]}"


TABLES = {"posted": "posted-time", "categories": "categories", "types": "activity-types", "tags": "tags"}
"""The tables that have pages, by their names in an address, and the ids of their headings."""


def view(query: Mapping[str, str]) -> View:
    """Return what an address asks for. What is no number of a page is the first page."""
    numbers = {name: query.get(name, "") for name in TABLES}
    pages = {name: int(text) for name, text in numbers.items() if text.isascii() and text.isdigit() and len(text) < 10}
    return View(query.get("find", ""), {name: page for name, page in pages.items() if page > 1})


def live(store: Store, requests: Iterable[Json], view: View) -> Json:
    """Return the values for the parts of the page that update themselves."""
    names = [name for name in store.keys(TAGS) if view.find.casefold() in name.casefold()]

    def posted(skipped: int) -> Iterable[Json]:
        return map(posted_row, store.rows(POSTED_TIME, "ORDER BY at DESC, rowid DESC LIMIT ? OFFSET ?", ROWS, skipped))

    def categories(skipped: int) -> Iterable[Json]:
        for category in store.rows(CATEGORIES, "ORDER BY link LIMIT ? OFFSET ?", ROWS, skipped):
            yield {**category, "members": store.count(TAGS, "AND link = ?", category["id"])}

    def types(skipped: int) -> Iterable[Json]:
        return store.rows(TYPES, "ORDER BY key LIMIT ? OFFSET ?", ROWS, skipped)

    def tags(skipped: int) -> Iterable[Json]:
        chosen = names[skipped : skipped + ROWS]
        for tag in state.tags(store, f"AND key IN ({', '.join('?' * len(chosen))}) ORDER BY key", *chosen):
            yield {**tag, "link": tag.get("url") if _leads_to_a_page(tag.get("url", "")) else None}

    return {
        "team": store.settings["teamName"],
        "connection": state.connection(store),
        "posted": view.table("posted", store.count(POSTED_TIME), posted),
        "categories": view.table("categories", store.count(CATEGORIES), categories),
        "activity_types": view.table("types", store.count(TYPES), types),
        "tags": view.table("tags", len(names), tags),
        "requests": [_request_row(request) for request in requests],
        "find": view.find,
    }


def choices(store: Store) -> Json:
    """Return the form's choices: tag names, and the activity types that users may choose (docs/interface.md 2.3)."""
    return {
        "tag_names": store.keys(TAGS)[:CHOICES],
        "activity_type_choices": [each for each in store.rows(TYPES) if each["enabled"] and not each["deleted"]],
    }


def posted_row(posted: Json) -> Json:
    """Return a group's row for the page. Groups may lack any field and contain any value (docs/service.md §2)."""
    group, last = posted["group"], posted["told"][-1] if posted["told"] else None
    return {
        **state.posted_time(posted),
        "submitted": instant(posted["submitted"]),
        "user": (group.get("user") or {}).get("name"),
        "tags": [tag.get("name") for tag in group.get("tags") or ()],
        "activity_type": (group.get("activityType") or {}).get("code"),
        "duration": duration(group.get("totalDurationSecs")),
        "description": group.get("description"),
        "told_at": instant(last["at"]) if last else None,
    }


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
    text = body if isinstance(body, str) else to_json(body, indent=2).decode()
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
