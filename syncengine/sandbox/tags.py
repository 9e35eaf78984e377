"""The service's rules for tags (docs/interface.md 2.1, docs/service.md §2). Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from syncengine.sandbox.request import (
    FLAG,
    INTEGER,
    TEXT,
    TEXT_MAP,
    TEXTS,
    VISIBILITY,
    ApiError,
    RuleAnswer,
    RuleRequest,
    each,
    read_fields,
    required,
)
from syncengine.sandbox.world import Draft, Json, Tag

FIELDS = {
    "description": TEXT,
    "tagCategoryId": TEXT,
    "path": TEXT,
    "managedBy": TEXT,
    "externalId": TEXT,
    "defaultActivityTypeCode": TEXT,
    "url": TEXT,
    "visibility": VISIBILITY,
    "assigneeExternalIds": TEXTS,
    "createdTimestamp": INTEGER,
    "modifiedTimestamp": INTEGER,
    "closedTimestamp": INTEGER,
}
"""The fields of a tag besides its name, keywords and metadata."""

DEFAULTS: Json = {"path": "/", "visibility": "PUBLIC"}

UPSERT = {
    **FIELDS,
    "name": TEXT,
    "excludeTagNameKeyword": FLAG,
    "metadata": TEXT_MAP,
    "additionalKeywords": TEXTS,
}


def upsert_tag(draft: Draft, request: RuleRequest) -> RuleAnswer:
    _upsert(draft, request.body, request)
    _within_plan(draft)
    return RuleAnswer(200, {})


def upsert_tags(draft: Draft, request: RuleRequest) -> RuleAnswer:
    answer = each(draft, request, "tags", _upsert)
    _within_plan(draft)
    return answer


def _upsert(draft: Draft, item: Any, _request: RuleRequest) -> None:
    values = read_fields(item, UPSERT)
    name = required(values, "name")
    category = values.get("tagCategoryId")
    if category and draft.categories.get(category) is None:
        raise ApiError(400, f"tagCategoryId: there is no category {category}")
    before = draft.tags.get(name) or Tag(name, DEFAULTS)
    draft.tags.put(
        name,
        Tag(
            name,
            fields=_fields(before, values),
            keywords=before.keywords | _keywords(name, values),
            metadata={**before.metadata, **values.get("metadata", {})},
        ),
    )


def _fields(before: Tag, values: Json) -> Json:
    """Return a tag's fields after an upsert. An empty value clears a field other than the description, where it is
    ignored (docs/interface.md 2.1)."""
    changes = {name: value for name, value in values.items() if name in FIELDS and (value or name != "description")}
    fields = {**before.fields, **changes}
    return {**DEFAULTS, **{name: value for name, value in fields.items() if value not in ("", [])}}


def _keywords(name: str, values: Json) -> frozenset[str]:
    """Return the keywords that an upsert adds, which include the tag's name unless excluded (docs/interface.md 2.1)."""
    keywords = frozenset(values.get("additionalKeywords", ()))
    return keywords if values.get("excludeTagNameKeyword") else keywords | {name}


def _within_plan(draft: Draft) -> None:
    limit, growth = draft.chosen.tag_limit, draft.tags.growth()
    if limit is not None and growth > 0 and len(draft.world.tags) + growth > limit:
        raise ApiError(402, f"the team's plan allows {limit} tags")


def add_keywords(draft: Draft, request: RuleRequest) -> RuleAnswer:
    values = read_fields(request.body, {"tagName": TEXT, "externalId": TEXT, "additionalKeywords": TEXTS})
    tag = _named(draft, required(values, "tagName"))
    keywords = frozenset(required(values, "additionalKeywords"))
    draft.tags.put(tag.name, replace(tag, keywords=tag.keywords | keywords))
    return RuleAnswer(200, {})


def delete_keyword(draft: Draft, request: RuleRequest) -> RuleAnswer:
    values = read_fields(request.body, {"tagName": TEXT, "keyword": TEXT})
    name, keyword = required(values, "tagName"), required(values, "keyword")
    tag = _named(draft, name)
    if keyword not in tag.keywords:
        raise ApiError(404, f"tag {name} has no keyword {keyword}")
    draft.tags.put(name, replace(tag, keywords=tag.keywords - {keyword}))
    return RuleAnswer(200, {})


def delete_metadata(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Delete metadata of a tag by name. Unknown names are ignored (docs/service.md §1)."""
    values = read_fields(request.body, {"tagName": TEXT, "metadataNames": TEXTS})
    tag, names = _named(draft, required(values, "tagName")), set(required(values, "metadataNames"))
    metadata = {name: value for name, value in tag.metadata.items() if name not in names}
    draft.tags.put(tag.name, replace(tag, metadata=metadata))
    return RuleAnswer(200, {})


def delete_tag(draft: Draft, request: RuleRequest) -> RuleAnswer:
    tag = _named(draft, required(read_fields(request.body, {"name": TEXT}), "name"))
    draft.tags.drop(tag.name)
    return RuleAnswer(200, {})


def _named(draft: Draft, name: str) -> Tag:
    tag = draft.tags.get(name)
    if tag is None:
        raise ApiError(404, f"there is no tag {name}")
    return tag
