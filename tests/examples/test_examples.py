"""The example manifests are a small law firm: complete, private, of one screen, and aimed at nobody else's time."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm

MANIFESTS = Path(__file__).parents[2] / "manifests"
CLIENTS = {"hartmann", "northwind", "solera"}
ACTIVITIES = [f"A{number}" for number in range(101, 112)]
"""The activity codes of the UTBMS litigation code set of the American Bar Association."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the manifests alone, as a clone has them."""
    folder = tmp_path_factory.mktemp("firm")
    shutil.copytree(MANIFESTS, folder / "manifests")
    return folder


def run(folder: Path, *words: str) -> str:
    done = warm.run(list(words), folder=folder, environ={"PATH": os.environ["PATH"], "HOME": str(folder)})
    assert done.code == 0, done.err
    return done.out


@pytest.fixture(scope="module")
def declared(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What the manifests ask for, by section."""
    declared: dict[str, list[dict[str, Any]]] = json.loads(run(folder, "render", "--format", "json"))
    return declared


def test_every_matter_is_open_private_and_of_a_client(declared: dict[str, list[dict[str, Any]]]) -> None:
    """A dozen of three clients, of which one is closed and has no tag."""
    tags = declared["tags"]
    assert len(tags) == 11
    assert {tag["visibility"] for tag in tags} == {"PRIVATE"}
    assert {tag["category"] for tag in tags} == {each["externalId"] for each in declared["tagCategories"]} == CLIENTS


def test_no_keyword_stands_on_two_tags(declared: dict[str, list[dict[str, Any]]]) -> None:
    """Nor is one so short that it is part of too many words; a tag's name counts."""
    words = [word.casefold() for tag in declared["tags"] for word in (tag["name"], *tag["keywords"])]
    assert [word for word, times in Counter(words).items() if times > 1 or len(word) < 4] == []


def test_the_activity_codes_are_complete_and_offered(declared: dict[str, list[dict[str, Any]]]) -> None:
    """Without enableIfNew a new activity type is made, but nobody can choose it."""
    assert [each["code"] for each in declared["activityTypes"]] == ACTIVITIES
    assert {each.get("enableIfNew") for each in declared["activityTypes"]} == {True}


def test_validation_has_nothing_to_say(folder: Path) -> None:
    """Not even a warning."""
    assert run(folder, "validate").startswith("No problems found.")


@pytest.mark.parametrize("path", sorted(MANIFESTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_file_is_of_one_screen_and_names_its_schema(path: Path) -> None:
    """Editors complete and check a manifest by its first line; the path leads to the schema of this repository."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 30
    prefix, _, relative = lines[0].partition("$schema=")
    assert prefix == "# yaml-language-server: "
    assert (path.parent / relative).resolve() == MANIFESTS.parent / "schemas" / "manifest.schema.json"
