"""Everything that a world holds, as JSON for tests and people. Pure."""

from __future__ import annotations

from syncengine.sandbox.categories import shown
from syncengine.sandbox.world import SETTINGS, ActivityType, Json, Session, Settings, Tag, World


def state(world: World) -> Json:
    """Sorted by name, code or externalId, so that two states can be compared."""
    categories = sorted(world.categories.values(), key=lambda category: category.external_id)
    return {
        "tags": [_tag(world, tag) for _, tag in sorted(world.tags.items())],
        "categories": [shown(category) for category in categories],
        "activityTypes": [_activity_type(known) for _, known in sorted(world.activity_types.items())],
        "sessions": [_session(session) for session in world.sessions.values()],
        "settings": settings(world.settings.get(SETTINGS, Settings())),
    }


def _tag(world: World, tag: Tag) -> Json:
    """`category` is the externalId of the category whose id is `tagCategoryId`."""
    category = world.categories.get(tag.category_id or "")
    return {
        "name": tag.name,
        **tag.fields,
        "category": category.external_id if category else None,
        "keywords": sorted(tag.keywords),
        "metadata": dict(tag.metadata),
    }


def _activity_type(known: ActivityType) -> Json:
    return {
        "code": known.code,
        "label": known.label,
        "description": known.description,
        "enabled": known.enabled,
        "deleted": known.deleted,
        "touched": known.touched,
    }


def _session(session: Session) -> Json:
    return {"syncSessionId": session.id, "state": session.state, "started": session.started}


def settings(chosen: Settings) -> Json:
    return {
        "teamName": chosen.team_name,
        "tagLimit": chosen.tag_limit,
        "batchLimit": chosen.batch_limit,
        "statusForItemErrors": chosen.status_for_item_errors,
    }
