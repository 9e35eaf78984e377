"""Lints on visibility: tags without one beside private tags, and private tags in a category with public ones."""

from __future__ import annotations

import pytest

from syncengine.document.diagnostics import Collector
from syncengine.manifest.lints import mixed_categories, public_by_silence, report_silence
from syncengine.resource import Body, Key, Kind, Resource, Source

PRIVATE, PUBLIC, SILENT = "PRIVATE", "PUBLIC", None


def tag(name: str, visibility: str | None, line: int = 1, *, sound: bool = True, **fields: str) -> Resource:
    said = {"visibility": visibility} if visibility else {}
    return Resource(Key(Kind.TAG, name), Body({**said, **fields}), Source("all.yaml", line), column=5, sound=sound)


@pytest.mark.parametrize(
    ("visibilities", "silent"),
    [
        ([], []),
        ([SILENT], []),
        ([PRIVATE], []),
        ([PRIVATE, SILENT], [1]),
        ([SILENT, PRIVATE, PRIVATE], [0]),
        ([PRIVATE, SILENT, SILENT], [1, 2]),
        ([PRIVATE, SILENT, SILENT, SILENT], [1, 2, 3]),
        ([PRIVATE, PUBLIC, SILENT], [2]),
        ([PRIVATE, PUBLIC, PUBLIC, SILENT], [3]),
        ([PUBLIC, SILENT], []),
    ],
)
def test_a_tag_without_visibility_is_reported_beside_a_private_one(
    visibilities: list[str | None], silent: list[int]
) -> None:
    """One private tag among many public ones is enough."""
    tags = [tag(f"T-{n}", visibility) for n, visibility in enumerate(visibilities)]
    assert [found.key.name for found in public_by_silence(tags)] == [f"T-{n}" for n in silent]


def test_categories_and_invalid_tags_are_not_reported() -> None:
    """A category has no visibility, and that of a tag with errors is unknown."""
    category = Resource(Key(Kind.CATEGORY, "c"), Body({}), Source("all.yaml", 1))
    assert public_by_silence([tag("A", PRIVATE), category, tag("B", SILENT, sound=False)]) == []


def test_tags_of_one_template_without_visibility_are_reported_once() -> None:
    """The first one is named."""
    findings = Collector("all.yaml")
    private = [tag(f"P-{n}", PRIVATE) for n in range(3)]
    report_silence([*private, *(tag(f"S-{n}", SILENT, 9) for n in range(2))], findings)
    report_silence([*private, tag("other", SILENT, 12)], findings)
    assert [(d.code, d.line, d.column, d.address) for d in findings.found] == [
        ("public-by-silence", 9, 5, "tag/S-0"),
        ("public-by-silence", 12, 5, "tag/other"),
    ]


MIXED = {
    "both": ([tag("A", PRIVATE, category="c"), tag("B", PUBLIC, category="c")], ["A"]),
    "silence is public": ([tag("B", SILENT, category="c"), tag("A", PRIVATE, category="c")], ["A"]),
    "by the service's id": ([tag("A", PRIVATE, tagCategoryId="7"), tag("B", PUBLIC, tagCategoryId="7")], ["A"]),
    "the first is told": (
        [tag("A", PRIVATE, category="c"), tag("B", PRIVATE, category="c"), tag("C", PUBLIC, category="c")],
        ["A"],
    ),
    "private only": ([tag("A", PRIVATE, category="c"), tag("B", PRIVATE, category="c")], []),
    "two categories": ([tag("A", PRIVATE, category="c"), tag("B", PUBLIC, category="d")], []),
    "no category": ([tag("A", PRIVATE), tag("B", PUBLIC)], []),
}


@pytest.mark.parametrize(("tags", "told"), MIXED.values(), ids=MIXED)
def test_a_private_tag_in_a_category_with_public_tags_is_reported(tags: list[Resource], told: list[str]) -> None:
    """It is reported once for each category, as users who see the category notice the private tag."""
    assert [shared.key.name for shared in mixed_categories(tags)] == told
