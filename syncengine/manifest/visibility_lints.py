"""Tags → warnings about tags that more people may see than intended; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import quoted
from syncengine.errors import Severity
from syncengine.manifest.lints import Shared
from syncengine.resource import Key, Kind, Resource, Source

PRIVATE = "PRIVATE"


def public_by_silence(resources: Iterable[Resource]) -> list[Resource]:
    """Return a file's tags without a declared visibility, if another of its tags is private."""
    tags = [resource for resource in resources if resource.sound and resource.key.kind is Kind.TAG]
    visibilities = [tag.body.fields.get("visibility") for tag in tags]
    if PRIVATE not in visibilities or None not in visibilities:
        return []
    return [tag for tag, visibility in zip(tags, visibilities, strict=True) if visibility is None]


def report_silence(resources: Iterable[Resource], findings: Collector) -> None:
    """Warn about a file's tags in `public_by_silence`, at the first of them."""
    silent = public_by_silence(resources)
    if not silent:
        return
    first = silent[0]
    rows = sum((tag.source.line, tag.column) == (first.source.line, first.column) for tag in silent)
    more = f", as are {len(silent) - rows:,} more," * (len(silent) > rows)
    message = (
        f"{first.key} declares no visibility, so it is PUBLIC{more or ','} while other tags in its file are PRIVATE"
    )
    findings.at(
        "public-by-silence",
        first.source.line,
        first.column,
        f"{message}: set `visibility`",
        severity=Severity.WARNING,
        address=str(first.key),
        data=first.source.data,
        more=rows - 1,
    )


class Categories:
    """The categories that have private tags, and those that have other tags, collected tag by tag."""

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
        """Yield a warning at the first private tag of each category that also has public tags."""
        for category, (key, source) in self.private.items():
            if category in self.shared:
                message = f"{key} is PRIVATE, but its category {quoted(str(category))} also has PUBLIC tags"
                yield Shared("private-in-shared-category", key, source, message)


def visible_pairs(resources: Iterable[Resource]) -> set[tuple[object, bool]]:
    """Return each category of a tag, paired with whether the tag is private."""
    return {
        (category, resource.body.fields.get("visibility") == PRIVATE)
        for resource in resources
        if resource.key.kind is Kind.TAG
        and (category := resource.body.fields.get("category") or resource.body.fields.get("tagCategoryId")) is not None
    }
