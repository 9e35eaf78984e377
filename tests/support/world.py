"""What a sandbox's store holds, in the shapes that tests compare."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from syncengine.sandbox.store import CATEGORIES, POSTED_TIME, SESSIONS, TAGS, TEAM, TYPES, Store


class Tag(NamedTuple):
    fields: Mapping[str, Any]
    keywords: frozenset[str]
    metadata: Mapping[str, str]


class Category(NamedTuple):
    id: str
    external_id: str
    fields: Mapping[str, Any]


class ActivityType(NamedTuple):
    description: str
    deleted: bool


class World(NamedTuple):
    """A copy: tags by name, categories by id, activity types by code, and the ids of categories by externalId."""

    tags: Mapping[str, Tag]
    categories: Mapping[str, Category]
    activity_types: Mapping[str, ActivityType]
    category_ids: Mapping[str, str]


def world(store: Store) -> World:
    tags, categories = {}, {}
    for row in store.rows(TAGS):
        keywords, metadata = frozenset(row.pop("keywords")), row.pop("metadata")
        tags[row.pop("name")] = Tag(row, keywords, metadata)
    for row in store.rows(CATEGORIES):
        id_, external_id = row.pop("id"), row.pop("externalId")
        categories[id_] = Category(id_, external_id, row)
    types = {row["code"]: ActivityType(row["description"], row["deleted"]) for row in store.rows(TYPES)}
    return World(tags, categories, types, {each.external_id: id_ for id_, each in categories.items()})


def copy(store: Store, into: Store) -> None:
    for table in (TAGS, CATEGORIES, TYPES, SESSIONS, POSTED_TIME, TEAM):
        for key in store.keys(table):
            into.put(table, key, store.get(table, key) or {})
