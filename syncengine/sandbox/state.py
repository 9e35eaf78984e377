"""Show all data of the sandbox as JSON, for tests and people."""

from __future__ import annotations

from collections.abc import Iterator

from syncengine.sandbox.rules import health_message
from syncengine.sandbox.store import CATEGORIES, POSTED_TIME, SESSIONS, TAGS, TYPES, Json, Store


def everything(store: Store) -> Json:
    """Return all data as JSON, sorted by name, code or externalId so that two states can be compared."""
    return {
        "tags": list(tags(store)),
        "categories": list(store.rows(CATEGORIES, "ORDER BY link")),
        "activityTypes": list(store.rows(TYPES)),
        "sessions": list(store.rows(SESSIONS, "ORDER BY at")),
        "postedTime": [posted_time(posted) for posted in store.rows(POSTED_TIME, "ORDER BY rowid")],
        "connection": connection(store),
        "settings": store.settings,
    }


def tags(store: Store, condition: str = "ORDER BY key", *values: str) -> Iterator[Json]:
    """Yield tags as JSON. `category` is the externalId of the category whose id is `tagCategoryId`."""
    names = {category["id"]: category["externalId"] for category in store.rows(CATEGORIES)}
    return ({**tag, "category": names.get(tag.get("tagCategoryId"))} for tag in store.rows(TAGS, condition, *values))


def posted_time(posted: Json) -> Json:
    """Return a group as JSON. `message` and `externalId` are from the last status update; `told` has all updates."""
    last = posted["told"][-1] if posted["told"] else {}
    shown = {name: posted[name] for name in ("groupId", "state", "recorded", "offers", "due", "told", "group")}
    return {**shown, "message": last.get("message"), "externalId": last.get("externalId")}


def connection(store: Store) -> Json:
    """Return the connection as JSON, without the webhook's key. `healthMessage` is shown to users who post time."""
    row = store.connection
    return {**row, "callerKeyLost": store.key_is_lost, "healthMessage": health_message(row)}
