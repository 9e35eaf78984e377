"""The example manifests are a small law firm: complete, private, and short enough for one screen per file."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.support import warm

MANIFESTS = Path(__file__).parents[2] / "manifests"
CLIENTS = {"hartmann", "northwind", "solera"}
ACTIVITIES = [f"A{number}" for number in range(101, 112)]
"""The activity codes of the UTBMS litigation code set of the American Bar Association."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with only the manifests, as in a clone."""
    folder = tmp_path_factory.mktemp("firm")
    shutil.copytree(MANIFESTS, folder / "manifests")
    return folder


def run(folder: Path, *words: str) -> str:
    done = warm.run(list(words), folder=folder, environ={"PATH": os.environ["PATH"], "HOME": str(folder)})
    assert done.code == 0, done.err
    return done.out


@pytest.fixture(scope="module")
def declared(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The declared resources, by section."""
    declared: dict[str, list[dict[str, Any]]] = json.loads(run(folder, "render", "--format", "json"))
    return declared


def test_every_matter_is_open_private_and_of_a_client(declared: dict[str, list[dict[str, Any]]]) -> None:
    """Twelve matters of three clients; the closed one has no tag."""
    tags = declared["tags"]
    assert len(tags) == 11
    assert {tag["visibility"] for tag in tags} == {"PRIVATE"}
    assert {tag["category"] for tag in tags} == {each["externalId"] for each in declared["tagCategories"]} == CLIENTS


def test_no_two_tags_share_a_keyword(declared: dict[str, list[dict[str, Any]]]) -> None:
    """Keywords and tag names are unique and have at least four characters, so that they match few words by chance."""
    words = [word.casefold() for tag in declared["tags"] for word in (tag["name"], *tag["keywords"])]
    assert [word for word, times in Counter(words).items() if times > 1 or len(word) < 4] == []


def test_the_activity_codes_are_complete_and_offered(declared: dict[str, list[dict[str, Any]]]) -> None:
    """Without enableIfNew, a new activity type would be created, but users could not choose it."""
    assert [each["code"] for each in declared["activityTypes"]] == ACTIVITIES
    assert {each.get("enableIfNew") for each in declared["activityTypes"]} == {True}


def test_validation_has_nothing_to_say(folder: Path) -> None:
    assert run(folder, "validate").startswith("No problems found.")


@pytest.mark.parametrize("path", sorted(MANIFESTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_file_is_of_one_screen_and_names_its_schema(path: Path) -> None:
    """The first line names this repository's schema, so that editors complete and check the manifest."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 30
    prefix, _, relative = lines[0].partition("$schema=")
    assert prefix == "# yaml-language-server: "
    assert (path.parent / relative).resolve() == MANIFESTS.parent / "schemas" / "manifest.schema.json"


def test_the_rules_for_them_fit_their_schema_and_their_tests_pass() -> None:
    """`syncengine test` passes in this repository's own project."""
    path = Path(__file__).parent / "policies" / "firm.yaml"
    text = path.read_text(encoding="utf-8")
    named = path.parent / text.splitlines()[0].rpartition("$schema=")[2]
    assert named.resolve() == MANIFESTS.parent / "schemas" / "policies.schema.json"
    jsonschema.validate(yaml.safe_load(text), json.loads(named.read_text(encoding="utf-8")))
    assert run(MANIFESTS.parent, "test", str(path.parent)) == "7 tests passed.\n"
