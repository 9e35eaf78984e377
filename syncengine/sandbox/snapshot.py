"""Everything that a world holds, as JSON for tests and people. Pure."""

from __future__ import annotations

from dataclasses import asdict, fields
from operator import attrgetter

from syncengine.document.text import to_camel
from syncengine.sandbox.categories import shown
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
    """Sorted by name, code or externalId, so that two states can be compared."""
    categories = sorted(world.categories.values(), key=lambda category: category.external_id)
    return {
        "tags": [tag(world, held) for _, held in sorted(world.tags.items())],
        "categories": [shown(category) for category in categories],
        "activityTypes": [asdict(known) for _, known in sorted(world.activity_types.items())],
        "sessions": [_session(session) for session in world.sessions.values()],
        "postedTime": [posted_time(posted) for posted in sorted(world.posted_time.values(), key=attrgetter("number"))],
        "connection": connection(world.connection[CONNECTION]),
        "settings": settings(world.settings.get(SETTINGS, SandboxSettings())),
    }


def tag(world: World, held: Tag) -> Json:
    """`category` is the externalId of the category whose id is `tagCategoryId`."""
    category = world.categories.get(held.category_id or "")
    return {
        "name": held.name,
        **held.fields,
        "category": category.external_id if category else None,
        "keywords": sorted(held.keywords),
        "metadata": dict(held.metadata),
    }


def _session(session: SyncSession) -> Json:
    return {"syncSessionId": session.id, "state": session.state, "started": session.started}


def posted_time(posted: PostedTime) -> Json:
    """`status` and what belongs to it is the last that was told; `told` is all of it."""
    told = [{to_camel(name): value for name, value in asdict(each).items()} for each in posted.told]
    last = told[-1] if told else {}
    return {
        "groupId": posted.id,
        "state": posted.state,
        "recorded": posted.recorded,
        "offers": list(posted.offers),
        "due": posted.due,
        "message": last.get("message"),
        "externalId": last.get("externalId"),
        "told": told,
        "group": dict(posted.group),
    }


def connection(known: Connection) -> Json:
    """The key of the webhook is only said to be there. `healthMessage` is what a user who posts is shown."""
    return {
        "mechanism": known.mechanism,
        "callbackUrl": known.callback_url,
        "callerKey": known.keyed,
        "callerKeyLost": known.key_is_lost,
        "health": dict(known.health) if known.health else None,
        "healthMessage": message(known.health),
        "connector": dict(known.connector) if known.connector else None,
    }


SETTING_NAMES = {to_camel(field.name): field.name for field in fields(SandboxSettings)}
"""What a setting is called in JSON, and here."""


def settings(chosen: SandboxSettings) -> Json:
    return {theirs: getattr(chosen, ours) for theirs, ours in SETTING_NAMES.items()}
