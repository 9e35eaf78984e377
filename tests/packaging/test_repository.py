"""The repository's own workflows and forms fit the published schemas, and leak nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from syncengine import __version__
from syncengine.tools.init.jobs import ACTIONS

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
NOTES = ROOT / ".github/scripts/release_notes.py"


def checked(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAMS / "check-jsonschema"), "--builtin-schema", schema, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_fits_the_published_schema(path: Path) -> None:
    done = checked("vendor.github-workflows", path)
    assert done.returncode == 0, done.stdout


def test_an_analyser_of_workflows_finds_nothing() -> None:
    """Actions are pinned, no script contains a template, and no job has an unused permission."""
    command = [
        str(PROGRAMS / "zizmor"),
        "--offline",
        "--persona=pedantic",
        "--no-progress",
        "--format",
        "json",
        *map(str, WORKFLOWS),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout) == [], done.stdout


def test_an_action_is_the_same_commit_wherever_it_is_used() -> None:
    """Our workflows, the action and the workflows for users pin the same commit, with its version in a comment."""
    texts = [path.read_text(encoding="utf-8") for path in [*WORKFLOWS, ROOT / "action.yml"]]
    texts += [f"uses: {action}" for action in ACTIONS.values()]
    uses = [line.partition("uses: ")[2] for text in texts for line in text.splitlines() if "uses: " in line]
    pins = dict(re.fullmatch(r"([\w/-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)", use).groups() for use in uses)  # type: ignore[union-attr] # each matches
    assert uses
    assert all(use == f"{action}@{pins[action]}" for use in uses for action in [use.partition("@")[0]])


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_fits_the_published_schema(path: Path) -> None:
    """Every field has the id and the label that the schema requires."""
    done = checked(f"vendor.github-issue-{'config' if path.stem == 'config' else 'forms'}", path)
    assert done.returncode == 0, done.stdout


def test_every_version_of_python_that_is_promised_is_tested() -> None:
    """CI tests every version from the minimum in `requires-python` on."""
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    versions = ci["jobs"]["test"]["strategy"]["matrix"]["python"]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'requires-python = ">=(.+)"', text) == versions[:1]
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text) == versions
    assert versions == ["3.11", "3.12", "3.13", "3.14"]


def notes(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(NOTES), *arguments], capture_output=True, text=True, check=False)


def test_a_release_has_the_notes_of_the_changelog(tmp_path: Path) -> None:
    """The notes are the changelog's section of the version; the version is printed for later jobs."""
    done = notes(__version__, str(tmp_path / "notes"))
    assert (done.returncode, done.stdout) == (0, f"{__version__}\n"), done.stderr
    text = (tmp_path / "notes").read_text(encoding="utf-8")
    assert "\n## " not in text
    assert text in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8") + "\n"


def test_a_tag_of_another_version_is_no_release(tmp_path: Path) -> None:
    """A tag that differs from the program's version fails the release."""
    done = notes("9.9.9", str(tmp_path / "notes"))
    assert (done.returncode, "9.9.9" in done.stderr) == (1, True)
