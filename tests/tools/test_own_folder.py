"""Git ignores the local folder `.syncengine`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from syncengine.project.files import make_folder


def untracked(project: Path) -> list[str]:
    said = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=project,
        check=True,
        capture_output=True,
        text=True,
    )
    return said.stdout.split()


def test_git_ignores_a_new_folder(tmp_path: Path) -> None:
    """Files in a new `.syncengine` folder and in its subfolders are ignored by Git."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    make_folder(tmp_path / ".syncengine" / "sandbox")
    (tmp_path / ".syncengine" / "sandbox" / "service.db").write_bytes(b"x")
    (tmp_path / ".syncengine" / "state.db").write_bytes(b"x")
    assert untracked(tmp_path) == []


def test_an_existing_folder_is_left_unchanged(tmp_path: Path) -> None:
    """No ignore file is added to an existing `.syncengine` folder or to another folder."""
    (tmp_path / ".syncengine").mkdir()
    make_folder(tmp_path / ".syncengine" / "sandbox")
    make_folder(tmp_path / "states" / "team")
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".syncengine", "sandbox", "states", "team"]
