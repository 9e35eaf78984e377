"""Posted time gets the tags whose keywords occur in the text of its rows (docs/interface.md 2.1)."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Asking


def tags_of(service: Asking, *rows: dict[str, Any], **said: Any) -> list[str]:
    service.post("g", **{"timeRows": list(rows), **said})
    return [tag["name"] for tag in service.posted("g")["group"].get("tags", [])]


@pytest.fixture
def matters(service: Asking) -> Asking:
    """Two tags with keywords, and one without."""
    service.told("upsertTag", name="ACME-0042", additionalKeywords=["EP 1234567"], externalId="4711")
    service.told("upsertTag", name="Zürich AG", excludeTagNameKeyword=True, additionalKeywords=["Zürich"])
    service.told("upsertTag", name="Retired", excludeTagNameKeyword=True)
    return service


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Letter on EP 1234567.docx", ["ACME-0042"]),
        ("re: acme-0042, draft", ["ACME-0042"]),
        ("@_ZÜRICH calls_@", ["Zürich AG"]),
        ("Zu\u0308rich", ["Zürich AG"]),
        ("XACME-00421", ["ACME-0042"]),
        ("EP 1234567 for Zürich", ["ACME-0042", "Zürich AG"]),
        ("EP1234567", []),
        ("Retired", []),
        ("", []),
    ],
)
@pytest.mark.parametrize("field", ["activity", "description"])
def test_a_row_gets_the_tags_whose_keywords_it_holds(matters: Asking, field: str, text: str, names: list[str]) -> None:
    """Matching ignores case and finds parts of words, in the activity or the description; spaces must agree."""
    assert tags_of(matters, {"activity": None, "description": "", field: text}) == names


def test_each_row_counts_and_each_by_itself(matters: Asking) -> None:
    """A group gets the tags of all its rows; a keyword does not match across two rows."""
    first, second = {"description": "EP 12"}, {"description": "34567", "activity": "zürich"}
    assert tags_of(matters, first, second) == ["Zürich AG"]
    assert tags_of(matters, {"description": "EP 1234567"}, second) == ["ACME-0042", "Zürich AG"]


def test_a_tag_that_is_chosen_is_the_tag(matters: Asking) -> None:
    """docs/service.md §2: a chosen tag, an empty list of tags or `matchKeywords: false` switches matching off."""
    row = {"description": "EP 1234567"}
    assert tags_of(matters, row, tag="Zürich AG") == ["Zürich AG"]
    assert tags_of(matters, row, tags=[]) == []
    assert tags_of(matters, row, tags=None) == []
    assert tags_of(matters, row, matchKeywords=False) == []


def test_a_matched_tag_has_the_fields_of_a_chosen_one(matters: Asking) -> None:
    """A matched tag has the same fields as a chosen one, and the group does not say that it was matched."""
    tags_of(matters, {"description": "EP 1234567"}, matchKeywords=True)
    group = matters.posted("g")["group"]
    assert group["tags"] == [{"name": "ACME-0042", "path": "/", "externalId": "4711"}]
    assert "matchKeywords" not in group


def test_a_retired_tag_tags_nobodys_time(matters: Asking) -> None:
    """A tag whose keywords were deleted is not matched any more."""
    matters.told("deleteKeyword", tagName="Zürich AG", keyword="Zürich")
    assert tags_of(matters, {"description": "Zürich"}) == []
