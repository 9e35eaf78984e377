"""The JSON of items in requests to the service (docs/interface.md 2, 4; docs/planning.md 2.4)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from syncengine.effects import Effect
from syncengine.resource import Key, Kind
from syncengine.service.operations import OPERATIONS, SINGLE_BODIES, activity_type_body, category_body, tag_body
from tests.support.pages import ROOT

TAG, CATEGORY, TYPE = Key(Kind.TAG, "T-1"), Key(Kind.CATEGORY, "acme"), Key(Kind.ACTIVITY_TYPE, "A101")


def test_the_operations_are_those_of_docs_service() -> None:
    """Method and path of each (docs/service.md §1)."""
    page = (ROOT / "docs/service.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)`[^|]* \| (GET|POST) \| (/\S+) \|", page, re.MULTILINE)
    assert sorted((id, each.method, each.path) for id, each in OPERATIONS.items()) == sorted(rows)


def test_a_tag_is_sent_with_exactly_its_declared_fields() -> None:
    fields = {
        "description": "d",
        "excludeTagNameKeyword": False,
        "assigneeExternalIds": ("jd", "ab"),
        "createdTimestamp": 1714554000000,
        "visibility": "PRIVATE",
    }
    metadata = {"Client": "Acme"}
    effect = Effect(key=TAG, fields={**fields, "category": "acme"}, keywords=("EP 1", "T-1"), metadata=metadata)
    assert tag_body(effect, "id-7", spell_name=False) == {
        **fields,
        "name": "T-1",
        "tagCategoryId": "id-7",
        "assigneeExternalIds": ["jd", "ab"],
        "metadata": metadata,
        "additionalKeywords": ["EP 1"],
    }


def test_a_cleared_field_is_sent_as_an_explicit_empty_value() -> None:
    """An empty string or list, or the path `/`; fields that cannot be cleared are left out."""
    cleared = ("url", "category", "assigneeExternalIds", "path", "description", "closedTimestamp")
    empty = {"url": "", "tagCategoryId": "", "assigneeExternalIds": [], "path": "/"}
    effect = Effect(key=TAG, cleared=cleared)
    assert tag_body(effect, None, spell_name=False) == {"name": "T-1", **empty}


@pytest.mark.parametrize(
    ("excluded", "spell_name", "listed"),
    [(False, False, ["k"]), (False, True, ["k", "T-1"]), (True, False, ["k", "T-1"]), (True, True, ["k", "T-1"])],
)
def test_the_name_is_listed_as_a_keyword_if_the_service_would_not_add_it(
    excluded: bool, spell_name: bool, listed: list[str]
) -> None:
    """For a tag that declares its name as a keyword but excludes it, and for an update that must restore it."""
    effect = Effect(key=TAG, fields={"excludeTagNameKeyword": excluded}, keywords=("k", "T-1"))
    assert tag_body(effect, None, spell_name=spell_name)["additionalKeywords"] == listed


def test_a_category_is_sent_with_its_server_id_once_known() -> None:
    effect = Effect(key=CATEGORY, fields={"label": "Acme", "keywords": ("a", "b")}, cleared=("description",))
    body = {"externalId": "acme", "description": "", "label": "Acme", "keywords": ["a", "b"]}
    assert category_body(effect, None) == body
    assert category_body(effect, "id-1") == {"id": "id-1", **body}
    assert category_body(Effect(key=CATEGORY, cleared=("keywords",)), None) == {"externalId": "acme", "keywords": []}


def test_an_activity_type_is_sent_with_its_declared_flags() -> None:
    effect = Effect(key=TYPE, fields={"label": "L", "enableIfNew": True}, cleared=("description", "reenableIfArchived"))
    assert activity_type_body(effect) == {"code": "A101", "description": "", "label": "L", "enableIfNew": True}


SINGLES: dict[str, tuple[Effect, dict[str, Any]]] = {
    "addKeywords": (
        Effect(key=TAG, keywords=("k",), fields={"externalId": "4711"}),
        {"tagName": "T-1", "externalId": "4711", "additionalKeywords": ["k"]},
    ),
    "deleteKeyword": (Effect(key=TAG, keywords_dropped=("k",)), {"tagName": "T-1", "keyword": "k"}),
    "deleteTagMetadata": (
        Effect(key=TAG, metadata_dropped=("Client", "Old")),
        {"tagName": "T-1", "metadataNames": ["Client", "Old"]},
    ),
    "deleteTag": (Effect(key=TAG), {"name": "T-1"}),
    "deleteTagCategory": (Effect(key=CATEGORY), {"externalId": "acme"}),
}


@pytest.mark.parametrize("operation", SINGLE_BODIES)
def test_single_calls_have_the_specified_body(operation: str) -> None:
    """docs/interface.md 4."""
    effect, body = SINGLES[operation]
    assert SINGLE_BODIES[operation](effect) == body
