"""A bare repository with one project, whose first manifests were merged and applied."""

import shutil
from pathlib import Path

import pytest

from tests.support.once import made_once

from .clones import PROJECT, Clone, Forge, tags


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    return Forge(tmp_path)


def _make(folder: Path) -> None:
    clone = Forge(folder).clone("clone")
    clone.git("checkout", "-q", "-b", "main")
    clone.commit(settings=PROJECT, tags=tags(Abel="one", Brun="one", Cole="one", Dorn="one", Egan="one"))
    clone.push()
    clone.apply()
    clone.git("checkout", "-q", "-b", "pr")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A clone on the branch `pr`, after main was applied: a copy, whose remote is the copied repository."""
    made, remote = made_once("forge", _make), tmp_path / "origin.git"
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    clone = Clone(tmp_path / "clone")
    clone.git("remote", "set-url", "origin", f"file://{remote}")
    clone.git("status")  # git need not read files again that are as they were
    return clone
