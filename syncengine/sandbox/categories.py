"""The service's rules for tag categories (docs/interface.md 2.2, docs/service.md §1). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from syncengine.sandbox.request import TEXT, TEXTS, ApiError, RuleAnswer, RuleRequest, items, read_fields, required
from syncengine.sandbox.world import Category, Draft, Json

FIELDS = {"label": TEXT, "description": TEXT, "keywords": TEXTS}
UPSERT = {"id": TEXT, "externalId": TEXT, **FIELDS}


def upsert_categories(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Create or update categories, all or none: the first invalid item has the whole batch refused."""
    upserted: list[str] = []
    displaced: set[str] = set()
    for index, item in enumerate(items(draft, request, "tagCategories")):
        try:
            category = _upserted(draft, item, request)
        except ApiError as why:
            raise ApiError(400, f"tagCategories[{index}]: {why.message}") from why
        displaced |= _put(draft, category)
        upserted.append(category.id)
    _each_external_id_once(draft, displaced.union(upserted))
    categories = (draft.categories.get(id_) for id_ in upserted)
    return RuleAnswer(200, {"tagCategories": [as_json(category) for category in categories if category]})


def _upserted(draft: Draft, item: Any, request: RuleRequest) -> Category:
    values = read_fields(item, UPSERT)
    before = _identified(draft, values) or Category(request.new_id(), required(values, "externalId"))
    fields = {**before.fields, **{name: values[name] for name in FIELDS if name in values}}
    return replace(
        before,
        external_id=values.get("externalId") or before.external_id,
        fields={name: value for name, value in fields.items() if value not in ("", [])},
    )


def _identified(draft: Draft, values: Json) -> Category | None:
    """Find a category by its `id` if given, so that a new `externalId` renames it, otherwise by its `externalId`."""
    if not values.get("id"):
        return draft.categories.get(draft.category_ids.get(required(values, "externalId")) or "")
    category = draft.categories.get(values["id"])
    if category is None:
        raise ApiError(400, f"there is no category with id {values['id']}")
    return category


def _put(draft: Draft, category: Category) -> set[str]:
    """Put `category` into the draft and return the id of the category that had its `externalId` before, if any."""
    before = draft.categories.get(category.id)
    if before and draft.category_ids.get(before.external_id) == category.id:
        draft.category_ids.drop(before.external_id)
    owner = draft.category_ids.get(category.external_id)
    draft.category_ids.put(category.external_id, category.id)
    draft.categories.put(category.id, category)
    return {owner} if owner else set()


def _each_external_id_once(draft: Draft, ids: Iterable[str]) -> None:
    """Refuse an `externalId` that two categories share. Only checked after the batch, so that two can swap theirs."""
    for category in map(draft.categories.get, ids):
        if category and draft.category_ids.get(category.external_id) != category.id:
            raise ApiError(400, f"externalId {category.external_id} belongs to another category")


def as_json(category: Category) -> Json:
    return {"id": category.id, "externalId": category.external_id, **category.fields}


def delete_category(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Delete a category and every tag that is still in it (docs/service.md §1)."""
    external_id = required(read_fields(request.body, {"externalId": TEXT}), "externalId")
    id_ = draft.category_ids.get(external_id)
    if id_ is None:
        raise ApiError(404, f"there is no category {external_id}")
    draft.categories.drop(id_)
    for name in draft.world.members.get(id_, ()):
        draft.tags.drop(name)
    return RuleAnswer(200, {})
