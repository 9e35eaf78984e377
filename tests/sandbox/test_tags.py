"""The sandbox keeps the service's rules for tags."""

from __future__ import annotations

from typing import Any

import pytest

from syncengine.document.validation import names_of
from syncengine.effects import Effect
from syncengine.manifest.schema import NEVER_FIELDS, Tag
from syncengine.plan.diff import KEPT
from syncengine.resource import Key, Kind
from syncengine.sandbox.bodies import TagBody, read
from syncengine.service.operations import tag_body

from .conftest import Asking


def test_an_upsert_creates_a_tag_with_its_name_as_keyword(service: Asking) -> None:
    """docs/interface.md 2.1: by default, the name is a keyword, visibility is PUBLIC and the path is `/`."""
    assert service.told("upsertTag", name="T") == {}
    assert service.tag("T") == {
        "name": "T",
        "path": "/",
        "visibility": "PUBLIC",
        "category": None,
        "keywords": ["T"],
        "metadata": {},
    }


def test_an_upsert_only_adds_keywords_and_metadata(service: Asking) -> None:
    """docs/interface.md 2.1: existing keywords and metadata names are never removed; a value is replaced."""
    service.told("upsertTag", name="T", additionalKeywords=["a", "b"], metadata={"x": "1", "y": "2"})
    service.told("upsertTag", name="T", additionalKeywords=["b", "c"], metadata={"y": "3"})
    service.told("upsertTag", name="T", additionalKeywords=[], metadata={})
    tag = service.tag("T")
    assert tag["keywords"] == ["T", "a", "b", "c"]
    assert tag["metadata"] == {"x": "1", "y": "3"}


def test_keywords_and_metadata_names_are_case_sensitive(service: Asking) -> None:
    """docs/interface.md 2.1 says so of metadata names; keywords that differ in case are two keywords as well."""
    service.told("upsertTag", name="T", additionalKeywords=["a", "A"], metadata={"x": "1", "X": "2"})
    assert service.tag("T")["keywords"] == ["A", "T", "a"]
    assert service.tag("T")["metadata"] == {"x": "1", "X": "2"}


@pytest.mark.parametrize(
    ("first", "second", "keywords"),
    [
        ({"excludeTagNameKeyword": True}, {"excludeTagNameKeyword": True}, []),
        ({"excludeTagNameKeyword": True}, {}, ["T"]),
        ({"excludeTagNameKeyword": False}, {"excludeTagNameKeyword": True}, ["T"]),
        ({}, {"excludeTagNameKeyword": None}, ["T"]),
        ({"excludeTagNameKeyword": True, "additionalKeywords": ["T"]}, {"excludeTagNameKeyword": True}, ["T"]),
    ],
)
def test_excluding_the_name_adds_no_keyword_and_removes_none(
    service: Asking, first: dict[str, Any], second: dict[str, Any], keywords: list[str]
) -> None:
    """docs/interface.md 2.1: excludeTagNameKeyword keeps the name from being added; additionalKeywords may list it."""
    service.told("upsertTag", name="T", **first)
    service.told("upsertTag", name="T", **second)
    assert service.tag("T")["keywords"] == keywords


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_description_keeps_the_old_one(service: Asking, empty: str | None) -> None:
    """docs/interface.md 2.1: an empty or null description is ignored."""
    service.told("upsertTag", name="T", description="old")
    service.told("upsertTag", name="T", description=empty)
    assert service.tag("T")["description"] == "old"


@pytest.mark.parametrize(
    ("field", "value", "empty"),
    [
        ("url", "https://x", ""),
        ("externalId", "4711", ""),
        ("managedBy", "us", ""),
        ("defaultActivityTypeCode", "A1", ""),
        ("tagCategoryId", "id-1", ""),
        ("assigneeExternalIds", ["jd"], []),
    ],
)
def test_an_explicit_empty_value_clears_a_field_and_an_absent_one_keeps_it(
    service: Asking, field: str, value: Any, empty: Any
) -> None:
    """docs/service.md §3: an empty value clears the field; an absent or null one keeps it."""
    service.told("upsertTagCategories", tagCategories=[{"externalId": "c"}])
    service.told("upsertTag", name="T", **{field: value})
    service.told("upsertTag", name="T")
    service.told("upsertTag", name="T", **{field: None})
    assert service.tag("T")[field] == value
    service.told("upsertTag", name="T", **{field: empty})
    assert field not in service.tag("T")


def test_each_field_of_a_manifest_is_kept_and_can_be_cleared() -> None:
    """A field without a line in `TagBody` is not kept. What clears it, by `EMPTY`, is of the type that `TagBody` says.

    `excludeTagNameKeyword` is always sent.
    """
    kept = {str(info.alias) for info in TagBody.model_fields.values()} | {"category"}
    fields = names_of(Tag).keys() - NEVER_FIELDS
    assert fields <= kept
    cleared = fields - {"name", "excludeTagNameKeyword"} - {name for _, name in KEPT}
    read(TagBody, tag_body(Effect(key=Key(Kind.TAG, "T"), cleared=tuple(cleared)), None, spell_name=False))


@pytest.mark.parametrize("empty", ["", "/"])
def test_an_empty_path_is_the_default_one(service: Asking, empty: str) -> None:
    """docs/interface.md 2.1: default '/'."""
    service.told("upsertTag", name="T", path="/a")
    service.told("upsertTag", name="T", path=empty)
    assert service.tag("T")["path"] == "/"


def test_visibility_and_timestamps_stay_when_they_are_not_sent(service: Asking) -> None:
    """An upsert changes only the fields that it names; 0 is a valid timestamp."""
    service.told("upsertTag", name="T", visibility="PRIVATE", createdTimestamp=0, closedTimestamp=5)
    service.told("upsertTag", name="T", closedTimestamp=6)
    tag = service.tag("T")
    assert (tag["visibility"], tag["createdTimestamp"], tag["closedTimestamp"]) == ("PRIVATE", 0, 6)


WRONG = [
    ({}, "name is missing"),
    ({"name": ""}, "name is missing"),
    ({"name": "  "}, "name is missing"),
    ({"name": None}, "name is missing"),
    ({"name": 7}, "name must be a string"),
    ({"name": "T", "tagCategoryId": "nowhere"}, "tagCategoryId: there is no category nowhere"),
    ({"name": "T", "visibility": "SECRET"}, "visibility must be PUBLIC or PRIVATE"),
    ({"name": "T", "additionalKeywords": "a"}, "additionalKeywords must be an array of strings"),
    ({"name": "T", "additionalKeywords": [1]}, "additionalKeywords must be an array of strings"),
    ({"name": "T", "metadata": {"a": 1}}, "metadata must be an object of strings"),
    ({"name": "T", "excludeTagNameKeyword": "yes"}, "excludeTagNameKeyword must be true or false"),
    ({"name": "T", "createdTimestamp": "now"}, "createdTimestamp must be an integer of 64 bits"),
    ({"name": "T", "createdTimestamp": True}, "createdTimestamp must be an integer of 64 bits"),
    ({"name": "T", "createdTimestamp": 2**63}, "createdTimestamp must be an integer of 64 bits"),
    ("T", "expected an object"),
]


@pytest.mark.parametrize(("item", "words"), WRONG)
def test_a_wrong_item_fails_alone_and_the_rest_is_applied(service: Asking, item: Any, words: str) -> None:
    """docs/interface.md 7.1: an error names the position of the failed item."""
    answer = service.told("upsertTags", tags=[{"name": "A"}, item, {"name": "B"}])
    assert answer == {"errors": [{"index": 1, "errorDescription": words}]}
    assert [tag["name"] for tag in service.state()["tags"]] == ["A", "B"]


@pytest.mark.parametrize(("item", "words"), [pair for pair in WRONG if isinstance(pair[0], dict)])
def test_a_wrong_single_tag_is_refused(service: Asking, item: dict[str, Any], words: str) -> None:
    """docs/service.md §1: 400."""
    assert service.ask("upsertTag", **item) == (400, {"message": words})
    assert service.state()["tags"] == []


def test_a_tag_named_twice_in_a_batch_takes_both_in_order(service: Asking) -> None:
    """Items are applied one after the other."""
    first = {"name": "T", "description": "1", "additionalKeywords": ["a"]}
    service.told("upsertTags", tags=[first, {"name": "T", "description": "2"}])
    assert service.tag("T")["description"] == "2"
    assert service.tag("T")["keywords"] == ["T", "a"]


def test_keywords_are_added_to_a_tag(service: Asking) -> None:
    """docs/interface.md 4: the existing keywords stay."""
    service.told("upsertTag", name="T", additionalKeywords=["a"])
    assert service.told("addKeywords", tagName="T", additionalKeywords=["a", "b"]) == {}
    assert service.tag("T")["keywords"] == ["T", "a", "b"]


def test_a_keyword_is_deleted_even_when_it_is_the_name(service: Asking) -> None:
    """docs/interface.md 4: the next upsert that does not exclude the name adds it again."""
    service.told("upsertTag", name="T", additionalKeywords=["a"])
    assert service.told("deleteKeyword", tagName="T", keyword="T") == {}
    assert service.tag("T")["keywords"] == ["a"]
    service.told("upsertTag", name="T")
    assert service.tag("T")["keywords"] == ["T", "a"]


def test_metadata_is_deleted_also_where_a_name_is_already_gone(service: Asking) -> None:
    """docs/service.md §1: deleting metadata that does not exist answers 200."""
    service.told("upsertTag", name="T", metadata={"x": "1", "y": "2"})
    assert service.told("deleteTagMetadata", tagName="T", metadataNames=["x", "never"]) == {}
    assert service.told("deleteTagMetadata", tagName="T", metadataNames=["x"]) == {}
    assert service.tag("T")["metadata"] == {"y": "2"}


def test_a_deleted_tag_is_gone_and_made_anew_it_is_empty(service: Asking) -> None:
    """docs/service.md §1: deleteTag is outside the interface; a tag that is created again starts empty."""
    service.told("upsertTag", name="T", description="old", additionalKeywords=["a"])
    assert service.told("deleteTag", name="T") == {}
    service.told("upsertTag", name="T")
    assert service.tag("T")["keywords"] == ["T"]
    assert "description" not in service.tag("T")


@pytest.mark.parametrize(
    ("operation", "body", "status"),
    [
        ("addKeywords", {"tagName": "no", "additionalKeywords": ["a"]}, 404),
        ("deleteKeyword", {"tagName": "no", "keyword": "a"}, 404),
        ("deleteKeyword", {"tagName": "T", "keyword": "no"}, 404),
        ("deleteTagMetadata", {"tagName": "no", "metadataNames": ["a"]}, 404),
        ("deleteTag", {"name": "no"}, 404),
        ("addKeywords", {"additionalKeywords": ["a"]}, 400),
        ("addKeywords", {"tagName": "T"}, 400),
        ("deleteKeyword", {"tagName": "T"}, 400),
        ("deleteKeyword", {"tagName": 5, "keyword": "a"}, 400),
        ("deleteTagMetadata", {"tagName": "T"}, 400),
        ("deleteTagMetadata", {"tagName": "T", "metadataNames": "a"}, 400),
        ("deleteTag", {}, 400),
    ],
)
def test_what_is_unknown_is_404_and_what_is_incomplete_is_400(
    service: Asking, operation: str, body: dict[str, Any], status: int
) -> None:
    """docs/service.md §1; nothing changes."""
    service.told("upsertTag", name="T", metadata={"a": "1"})
    before = service.state()
    assert service.ask(operation, **body)[0] == status
    assert service.state() == before
