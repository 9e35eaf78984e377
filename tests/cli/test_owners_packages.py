"""Pydantic and deepdiff, which load slowly, are loaded only by the commands that use them."""

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
    """A project with posted time, a state, an inbox and a saved plan."""
    return restore(tmp_path_factory.mktemp("planned"), "planned")


def loaded(folder: Path, *words: str) -> dict[str, bool]:
    """Which of the two packages are loaded when the program ends."""
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, cwd=folder, env=surroundings(folder), capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code in (0, 1, 2, 3, 4), done.stderr
    return {name: name in modules for name in ("pydantic", "deepdiff")}


@pytest.mark.parametrize("words", [("time", "--help"), ("plan", "--help"), ("--version",)], ids=" ".join)
def test_help_and_version_load_neither(situation: Path, words: tuple[str, ...]) -> None:
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
def test_each_command_loads_only_what_it_uses(situation: Path, words: tuple[str, ...], has_deepdiff: bool) -> None:
    """All load pydantic to validate files, posted groups or requests. Only showing a changed group loads deepdiff."""
    assert loaded(situation, *words) == {"pydantic": True, "deepdiff": has_deepdiff}
