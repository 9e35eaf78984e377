"""The example manifests keep their promises: complete, unambiguous, and aimed at nobody else's time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

MANIFESTS = Path(__file__).parents[2] / "manifests"
FILES = sorted(MANIFESTS.rglob("*.yaml"))

LITIGATION_TASKS = {
    *("L110", "L120", "L130", "L140", "L150", "L160", "L190"),
    *("L210", "L220", "L230", "L240", "L250", "L260"),
    *("L310", "L320", "L330", "L340", "L350", "L390"),
    *("L410", "L420", "L430", "L440", "L450", "L460", "L470"),
    *("L510", "L520", "L530"),
}
ACTIVITIES = {f"A{number}" for number in range(101, 112)}

Declared = dict[str, Any]


def declared(section: str) -> list[Declared]:
    """All resources of one section over all files, with the file's defaults under them."""
    return [resource for path in FILES for resource in _of_file(path, section)]


def _of_file(path: Path, section: str) -> Iterator[Declared]:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    defaults = document.get("defaults", {}).get(section, {})
    return ({**defaults, **resource} for resource in document.get(section, []))


def effective_keywords(tag: Declared) -> set[str]:
    """Folded, since keywords that differ only by case match the same text (docs/planning.md 2.3)."""
    name = [] if tag.get("excludeTagNameKeyword") else [tag["name"]]
    return {keyword.casefold() for keyword in [*tag["keywords"], *name]}


def repeated(values: Iterator[str]) -> list[str]:
    return [value for value, times in Counter(values).items() if times > 1]


def test_there_are_at_least_sixty_projects() -> None:
    """The examples are a real estate, not a handful of toys."""
    assert len(declared("tags")) >= 60


def test_no_two_tags_share_a_name() -> None:
    """A tag's name is its identity, also for people who do not look at case."""
    assert repeated(tag["name"].casefold() for tag in declared("tags")) == []


def test_no_keyword_stands_on_two_tags() -> None:
    """One text in a window title points at one project; names count as keywords unless excluded."""
    assert repeated(keyword for tag in declared("tags") for keyword in effective_keywords(tag)) == []


def test_no_keyword_is_so_short_that_it_catches_everyones_time() -> None:
    """Three letters are part of too many words."""
    assert [keyword for tag in declared("tags") for keyword in effective_keywords(tag) if len(keyword) < 4] == []


def test_every_category_of_a_tag_is_declared() -> None:
    """A category that is not declared is an error of the plan."""
    categories = {category["externalId"] for category in declared("tagCategories")}
    assert {tag["category"] for tag in declared("tags")} == categories


def test_every_category_says_what_it_is() -> None:
    """Label, description and keywords are what users see of a category and find it by."""
    for category in declared("tagCategories"):
        assert category["label"]
        assert category["description"]
        assert category["keywords"]


def test_every_tag_links_to_its_repository() -> None:
    """The link in the console, the id in the other system and one keyword are the same repository."""
    for tag in declared("tags"):
        assert tag["url"] == f"https://github.com/{tag['externalId']}"
        assert tag["externalId"] in tag["keywords"]


def test_tags_are_public_and_managed_here() -> None:
    """The defaults of each file reach all of its tags."""
    assert {(tag["visibility"], tag["managedBy"]) for tag in declared("tags")} == {("PUBLIC", "syncengine")}


def test_the_code_sets_are_complete() -> None:
    """All litigation tasks and all activities of the UTBMS, each once, and no phase headings."""
    codes = [activity["code"] for activity in declared("activityTypes")]
    assert sorted(codes) == sorted(LITIGATION_TASKS | ACTIVITIES)


def test_activity_types_are_offered_to_users() -> None:
    """Without enableIfNew a new activity type is created but not offered."""
    assert {activity.get("enableIfNew") for activity in declared("activityTypes")} == {True}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_names_its_schema(path: Path) -> None:
    """Editors complete and check a manifest by its first line; the path leads to the schema of this repository."""
    first_line = path.read_text(encoding="utf-8").partition("\n")[0]
    prefix, _, relative = first_line.partition("$schema=")
    assert prefix == "# yaml-language-server: "
    assert (path.parent / relative).resolve() == MANIFESTS.parent / "schemas" / "manifest.schema.json"
