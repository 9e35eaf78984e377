"""Build the JSON of one planned item (docs/interface.md 2, 4). Pure.

Only declared fields are sent. A field that is no longer declared is sent explicitly empty (docs/planning.md 2.4); a
tag's description and timestamps cannot be cleared and are omitted.
"""

from __future__ import annotations

from collections.abc import Mapping

from syncengine.effects import Effect
from syncengine.resource import Kind

JsonObject = dict[str, object]

EMPTY: Mapping[str, object] = {"path": "/", "assigneeExternalIds": []}
"""Values that mean empty, for fields whose empty value is not the empty text."""

UNCLEARABLE: Mapping[Kind, frozenset[str]] = {
    Kind.TAG: frozenset({"description", "createdTimestamp", "modifiedTimestamp", "closedTimestamp"}),
    Kind.CATEGORY: frozenset(),
    Kind.ACTIVITY_TYPE: frozenset(),
}
"""Fields that the service does not clear when they are sent empty (docs/interface.md 2.1)."""


def tag(effect: Effect, category_id: str | None, *, spell_name: bool) -> JsonObject:
    """Return a tag for `upsertTag` and `upsertTags`. `category_id` is the service's id for the field `category`."""
    name = effect.key.name
    body: JsonObject = {"name": name}
    for cleared in effect.cleared:
        if cleared not in UNCLEARABLE[Kind.TAG]:
            body["tagCategoryId" if cleared == "category" else cleared] = EMPTY.get(cleared, "")
    for field, value in effect.fields.items():
        if field == "category":
            body["tagCategoryId"] = category_id if value else ""
        else:
            body[field] = list(value) if isinstance(value, tuple) else value
    if effect.metadata:
        body["metadata"] = dict(effect.metadata)
    keywords = additional_keywords(effect, spell_name=spell_name)
    if keywords:
        body["additionalKeywords"] = keywords
    return body


def additional_keywords(effect: Effect, *, spell_name: bool) -> list[str]:
    """Return the keywords to list, without the name unless the service would not add it by itself."""
    if spell_name or effect.fields.get("excludeTagNameKeyword"):
        return list(effect.keywords)
    return [k for k in effect.keywords if k != effect.key.name]


def category(effect: Effect, server_id: str | None) -> JsonObject:
    """Return a category for `upsertTagCategories`, with its id if the service has assigned one."""
    body: JsonObject = {"id": server_id} if server_id else {}
    body["externalId"] = effect.key.name
    body.update({name: [] if name == "keywords" else "" for name in effect.cleared})
    body.update({n: list(v) if isinstance(v, tuple) else v for n, v in effect.fields.items()})
    return body


def activity_type(effect: Effect) -> JsonObject:
    """Return an activity type for `uploadActivityTypes`."""
    body: JsonObject = {"code": effect.key.name}
    body.update({name: "" for name in effect.cleared if name == "description"})
    body.update(effect.fields)
    return body


def keyword_add(effect: Effect) -> JsonObject:
    body: JsonObject = {"tagName": effect.key.name, "additionalKeywords": list(effect.keywords)}
    external_id = effect.fields.get("externalId")
    return body | {"externalId": external_id} if external_id else body


def keyword_delete(effect: Effect) -> JsonObject:
    (keyword,) = effect.keywords_dropped
    return {"tagName": effect.key.name, "keyword": keyword}


def metadata_delete(effect: Effect) -> JsonObject:
    return {"tagName": effect.key.name, "metadataNames": list(effect.metadata_dropped)}


def category_delete(effect: Effect) -> JsonObject:
    return {"externalId": effect.key.name}


def tag_delete(effect: Effect) -> JsonObject:
    return {"name": effect.key.name}
