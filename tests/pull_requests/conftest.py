"""A bare repository with one project, whose first manifests were merged and applied."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .clones import PROJECT, Clone, Forge, tags


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(tmp_path / "origin.git")], check=True)
    return Forge(tmp_path)


@pytest.fixture
def clone(forge: Forge) -> Clone:
    """A clone on the branch `pr`, after main was applied."""
    clone = forge.clone("clone")
    clone.git("checkout", "-q", "-b", "main")
    clone.commit(settings=PROJECT, tags=tags(Abel="one", Brun="one", Cole="one", Dorn="one", Egan="one"))
    clone.push()
    clone.apply()
    clone.git("checkout", "-q", "-b", "pr")
    return clone
