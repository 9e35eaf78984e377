"""The sandbox keeps the service's rules for tag categories."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Asking


def put(service: Asking, *categories: dict[str, Any]) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = service.told("upsertTagCategories", tagCategories=list(categories))["tagCategories"]
    return answer


def test_a_category_is_known_by_its_external_id(service: Asking) -> None:
    """docs/service.md §2: the answer alone has the id. Absent fields stay, empty ones are cleared."""
    full = {"id": "id-1", "externalId": "a", "label": "A", "description": "old", "keywords": ["k"]}
    assert put(service, {**full, "id": ""}, {"externalId": "b"}) == [full, {"id": "id-2", "externalId": "b"}]
    assert put(service, {"externalId": "a", "label": "B"}) == [{**full, "label": "B"}]
    assert put(service, {"externalId": "a", "description": "", "keywords": []}) == [
        {"id": "id-1", "externalId": "a", "label": "B"}
    ]


def test_an_id_with_another_external_id_renames(service: Asking) -> None:
    """A renamed category keeps its id and its tags, and its old externalId is free again."""
    put(service, {"externalId": "old", "label": "L"})
    service.told("upsertTag", name="T", tagCategoryId="id-1")
    assert put(service, {"id": "id-1", "externalId": "new"}) == [{"id": "id-1", "externalId": "new", "label": "L"}]
    assert service.tag("T")["category"] == "new"
    assert put(service, {"externalId": "old"})[0]["id"] == "id-2"


def test_two_categories_may_swap_their_external_ids_but_not_share_one(service: Asking) -> None:
    """Uniqueness of externalIds is checked after the whole batch."""
    put(service, {"externalId": "a"}, {"externalId": "b"})
    before = service.state()
    assert service.ask("upsertTagCategories", tagCategories=[{"id": "id-1", "externalId": "b"}])[0] == 400
    assert service.state() == before
    put(service, {"id": "id-1", "externalId": "b"}, {"id": "id-2", "externalId": "a"})
    assert [category["id"] for category in put(service, {"externalId": "a"}, {"externalId": "b"})] == ["id-2", "id-1"]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({}, "externalId is missing"),
        ({"externalId": ""}, "externalId is missing"),
        ({"externalId": 1}, "externalId must be a string"),
        ({"id": "no", "externalId": "x"}, "there is no category with id no"),
        ({"externalId": "x", "keywords": "k"}, "keywords must be an array of strings"),
        ("x", "expected an object"),
    ],
)
def test_one_wrong_item_refuses_the_whole_batch(service: Asking, item: Any, words: str) -> None:
    """docs/service.md §1: an invalid category answers 400, and nothing of the batch is applied."""
    answer = service.ask("upsertTagCategories", tagCategories=[{"externalId": "good"}, item])
    assert answer == (400, {"message": f"tagCategories[1]: {words}"})
    assert service.state()["categories"] == []


def test_deleting_a_category_deletes_every_tag_still_in_it(service: Asking) -> None:
    """docs/service.md §1: tags that were moved out before stay. The id of a deleted category is never given again."""
    put(service, {"externalId": "a"}, {"externalId": "b"})
    tags = {"in": "id-1", "moved": "id-1", "out": "id-1", "other": "id-2"}
    service.told("upsertTags", tags=[{"name": n, "tagCategoryId": c} for n, c in tags.items()] + [{"name": "none"}])
    service.told("upsertTags", tags=[{"name": "moved", "tagCategoryId": "id-2"}, {"name": "out", "tagCategoryId": ""}])
    assert service.told("deleteTagCategory", externalId="a") == {}
    assert [tag["name"] for tag in service.state()["tags"]] == ["moved", "none", "other", "out"]
    assert [category["externalId"] for category in service.state()["categories"]] == ["b"]
    assert put(service, {"externalId": "a"})[0]["id"] == "id-3"
    assert service.ask("upsertTag", name="T", tagCategoryId="id-1")[0] == 400


@pytest.mark.parametrize(("body", "status"), [({"externalId": "no"}, 404), ({}, 400), ({"externalId": ""}, 400)])
def test_an_unknown_category_cannot_be_deleted(service: Asking, body: dict[str, Any], status: int) -> None:
    """docs/service.md §1."""
    assert service.ask("deleteTagCategory", **body)[0] == status
