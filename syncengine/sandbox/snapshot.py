"""Show all data of the sandbox as JSON, for tests and people. Pure."""

from __future__ import annotations

from dataclasses import asdict, fields
from operator import attrgetter

from syncengine.document.text import to_camel
from syncengine.sandbox.categories import as_json
from syncengine.sandbox.connector import message
from syncengine.sandbox.world import (
    CONNECTION,
    SETTINGS,
    Connection,
    Json,
    PostedTime,
    SandboxSettings,
    SyncSession,
    Tag,
    World,
)


def state(world: World) -> Json:
    """Return all data as JSON, sorted by name, code or externalId so that two snapshots can be compared."""
    categories = sorted(world.categories.values(), key=lambda category: category.external_id)
    return {
        "tags": [tag(world, row) for _, row in sorted(world.tags.items())],
        "categories": [as_json(category) for category in categories],
        "activityTypes": [asdict(each) for _, each in sorted(world.activity_types.items())],
        "sessions": [_session(session) for session in world.sessions.values()],
        "postedTime": [posted_time(posted) for posted in sorted(world.posted_time.values(), key=attrgetter("number"))],
        "connection": connection(world.connection[CONNECTION]),
        "settings": settings(world.settings.get(SETTINGS, SandboxSettings())),
    }


def tag(world: World, row: Tag) -> Json:
    """Return a tag as JSON. `category` is the externalId of the category whose id is `tagCategoryId`."""
    category = world.categories.get(row.category_id or "")
    return {
        "name": row.name,
        **row.fields,
        "category": category.external_id if category else None,
        "keywords": sorted(row.keywords),
        "metadata": dict(row.metadata),
    }


def _session(session: SyncSession) -> Json:
    return {"syncSessionId": session.id, "state": session.state, "started": session.started}


def posted_time(posted: PostedTime) -> Json:
    """Return a group as JSON. `message` and `externalId` are from the last status update; `told` has all updates."""
    updates = [{to_camel(name): value for name, value in asdict(each).items()} for each in posted.told]
    last = updates[-1] if updates else {}
    return {
        "groupId": posted.id,
        "state": posted.state,
        "recorded": posted.recorded,
        "offers": list(posted.offers),
        "due": posted.due,
        "message": last.get("message"),
        "externalId": last.get("externalId"),
        "told": updates,
        "group": dict(posted.group),
    }


def connection(row: Connection) -> Json:
    """Return the connection as JSON, without the webhook's key. `healthMessage` is shown to users who post time."""
    return {
        "mechanism": row.mechanism,
        "callbackUrl": row.callback_url,
        "callerKey": row.keyed,
        "callerKeyLost": row.key_is_lost,
        "health": dict(row.health) if row.health else None,
        "healthMessage": message(row.health),
        "connector": dict(row.connector) if row.connector else None,
    }


def settings(chosen: SandboxSettings) -> Json:
    return {to_camel(field.name): getattr(chosen, field.name) for field in fields(chosen)}
