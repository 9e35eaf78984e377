"""Tags beside the tags around them → suspicions about who may see them, and about matters that have ended; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from syncengine.document.nodes import quoted
from syncengine.manifest.lints import Shared
from syncengine.resource import Body, Key, Kind, Resource, Source

PRIVATE = "PRIVATE"

Told = tuple[str, str]
"""A code and a message."""


def is_closed_with_keywords(body: Body) -> bool:
    """A matter that is closed and still takes time."""
    return bool(body.keywords) and "closedTimestamp" in body.fields


def closed_with_keywords(body: Body) -> Told:
    words = ", ".join(quoted(word) for word in body.keywords[:3])
    return "closed-with-keywords", (
        f"the matter is closed, and {words} still tag time: `keywords: []` and `excludeTagNameKeyword: true` end that"
    )


def public_by_silence(tags: Sequence[Resource]) -> list[Resource]:
    """Tags of a file that say nothing of their visibility, where at least half of the others are private."""
    said = [tag.body.fields.get("visibility") for tag in tags]
    if PRIVATE not in said or None not in said:
        return []
    if 2 * said.count(PRIVATE) < len(said) - 1:
        return []
    return [tag for tag, visibility in zip(tags, said, strict=True) if visibility is None]


def public_by_silence_told(tag: Resource) -> Told:
    return "public-by-silence", (
        f"{tag.key} says nothing of its visibility and is PUBLIC, while its neighbours are PRIVATE: say which"
    )


class Categories:
    """Which categories have private tags, and which others; taken tag by tag, and asked at the end."""

    __slots__ = ("private", "shared")

    def __init__(self) -> None:
        self.private: dict[object, tuple[Key, Source]] = {}
        self.shared: set[object] = set()

    def take(self, resource: Resource) -> None:
        fields: Mapping[str, Any] = resource.body.fields
        category = fields.get("category") or fields.get("tagCategoryId")
        if category is None or resource.key.kind is not Kind.TAG:
            return
        if fields.get("visibility") != PRIVATE:
            self.shared.add(category)
        elif category not in self.private:
            self.private[category] = resource.key, resource.source

    def mixed(self) -> Iterable[Shared]:
        """The first private tag of each category that tags for everyone's eyes are in too."""
        for category, (key, source) in self.private.items():
            if category in self.shared:
                message = f"{key} is PRIVATE, and its category {quoted(str(category))} is shared with public tags"
                yield Shared("private-in-shared-category", key, source, message)


def visible_pairs(resources: Iterable[Resource]) -> set[tuple[object, bool]]:
    """The categories of tags, each with whether the tag is private."""
    return {
        (category, resource.body.fields.get("visibility") == PRIVATE)
        for resource in resources
        if resource.key.kind is Kind.TAG
        and (category := resource.body.fields.get("category") or resource.body.fields.get("tagCategoryId")) is not None
    }
