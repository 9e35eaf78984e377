"""The README: its examples print what it shows, it leads to every page, and it stays short."""

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.pages import ROOT, Walk, blocks, walked

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
LONGEST = 900
"""The most words of the README, so that people read it to its end."""
COUNTS = re.compile(r"\d+ (unchanged|changes|requests)")
"""Counts that depend on the other manifests of a folder."""


def runs(folder: Path, *words: str) -> str:
    done = warm.run(words, folder=folder, environ={"PATH": os.environ["PATH"], "HOME": str(folder)})
    assert done.code == 0, done.err
    return done.out


def test_the_plan_is_the_one_that_the_readme_shows(tmp_path: Path) -> None:
    """Its files are written and its commands run in order in an empty folder, and their output is compared."""
    text, walk = walked(README, Walk(tmp_path))
    assert walk == text


@pytest.mark.parametrize("beginning", ["init", "init --from-csv", "this repository"])
def test_the_quick_start_works_beside_other_manifests(tmp_path: Path, beginning: str) -> None:
    """Beside manifests of `init` or the examples, nothing is declared twice, and only counts of the plan differ."""
    if beginning == "init":
        runs(tmp_path, "init")
    elif beginning == "init --from-csv":
        shutil.copy(ROOT / "manifests/matters.csv", tmp_path)
        runs(tmp_path, "init", "--from-csv", "matters.csv", "--key", "number")
    else:
        shutil.copytree(ROOT / "manifests", tmp_path / "manifests")
    walk = Walk(tmp_path).walk(TEXT)
    assert COUNTS.sub(r"N \1", walk) == COUNTS.sub(r"N \1", TEXT)


def test_init_after_the_quick_start_makes_a_valid_project(tmp_path: Path) -> None:
    Walk(tmp_path).walk(TEXT)
    runs(tmp_path, "init")
    assert runs(tmp_path, "validate").startswith("No problems found.")


def test_the_readme_is_short() -> None:
    """Longer texts, and further plans, belong into a page of docs."""
    assert len(TEXT.split()) <= LONGEST
    assert sum("Plan: " in block for block in blocks(README, "console")) == 1


def test_the_first_paragraph_names_the_service() -> None:
    """Three sentences say what the program is, for whom, and why."""
    first = TEXT.split("\n\n")[1]
    assert "[WiseTime]" in first
    assert "WiseTime Connect API 1.3" in " ".join(first.split())
    assert len(re.findall(r"\.(?= |$)", " ".join(first.split()))) == 3


def test_every_page_of_docs_is_reached() -> None:
    """The README links to each page or to the index, which does."""
    index = ROOT / "docs/README.md"
    here = set(re.findall(r"\]\(docs/([\w.-]+)", TEXT))
    there = set(re.findall(r"\]\(([\w.-]+)", index.read_text(encoding="utf-8")))
    assert "README.md" in here
    assert {page.name for page in index.parent.glob("*.md")} <= here | there


def test_the_pictures_are_there() -> None:
    """There is a picture for light and one for dark screens, with a text for people who cannot see them."""
    sources = re.findall(r'(?:srcset|src)="([^"]+)"', TEXT)
    assert len(sources) == 2
    assert [source for source in sources if not (ROOT / source).is_file()] == []
    assert re.search(r'<img [^>]*alt="[^"]{40,}"', TEXT)
