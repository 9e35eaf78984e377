"""Pydantic and deepdiff are loaded by the commands that they serve: both take long to load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_imports import PROGRAM
from tests.contract.documents import APPLY, LONG_AGO, saved_approval
from tests.contract.program import restore, surroundings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def situation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with posted time, its state, its inbox and a saved plan."""
    return restore(tmp_path_factory.mktemp("planned"), "planned")


def loaded(folder: Path, *words: str) -> dict[str, bool]:
    """Which of the two a run of the program ends with, whatever it finds."""
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, cwd=folder, env=surroundings(folder), capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code in (0, 1, 2, 3, 4), done.stderr
    return {name: name in modules for name in ("pydantic", "deepdiff")}


@pytest.mark.parametrize("words", [("time", "--help"), ("plan", "--help"), ("--version",)], ids=" ".join)
def test_what_reads_no_file_loads_neither(situation: Path, words: tuple[str, ...]) -> None:
    """In a project with posted time."""
    assert loaded(situation, *words) == {"pydantic": False, "deepdiff": False}


@pytest.mark.parametrize(
    ("words", "has_deepdiff"),
    [
        (("validate",), False),
        (("render",), False),
        (("plan",), False),
        (("show", "saved.plan"), False),
        (("state", "list"), False),
        (("state", "history"), False),
        (("adopt", "held.csv"), False),
        (("time", "inbox"), False),
        (("time", "show", "g-posted"), False),
        (("time", "show", "g-changed"), True),
        (("time", "audit", *LONG_AGO), False),
        (("schema",), False),
        ((*APPLY, saved_approval(), "saved.plan"), False),
        (("connector", "check"), False),
        (("init", "made"), False),
    ],
    ids=str,
)
def test_who_needs_them_loads_them(situation: Path, words: tuple[str, ...], has_deepdiff: bool) -> None:
    """Pydantic for each file that people write, for posted groups and for what the sandbox is sent."""
    assert loaded(situation, *words) == {"pydantic": True, "deepdiff": has_deepdiff}
