"""A bare repository with one project, whose first manifests were merged and applied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.git import bare
from tests.support.once import made_once

from .clones import PROJECT, Clone, Forge, tags


def forged(folder: Path) -> Forge:
    forge = Forge(folder)
    bare(forge.bare)
    return forge


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    found = Forge(tmp_path)
    return found if found.bare.exists() else forged(tmp_path)


def _make(folder: Path) -> None:
    clone = forged(folder).clone("clone")
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
    clone = Forge(tmp_path).at("clone")
    config = clone.folder / ".git" / "config"
    lines = config.read_text().splitlines(keepends=True)
    config.write_text("".join(f"\turl = file://{remote}\n" if "\turl = " in line else line for line in lines))
    clone.git("status")  # git need not read files again that are as they were
    return clone
