"""Git ignores the local folder `.syncengine`."""

from __future__ import annotations

from pathlib import Path

from syncengine.project.files import make_folder
from tests.support.git import git


def test_git_ignores_a_new_folder(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make_folder(tmp_path / ".syncengine" / "sandbox")
    (tmp_path / ".syncengine" / "sandbox" / "service.db").write_bytes(b"x")
    (tmp_path / ".syncengine" / "state.db").write_bytes(b"x")
    assert git(tmp_path, "status", "--porcelain", "--untracked-files=all") == ""


def test_an_existing_folder_is_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / ".syncengine").mkdir()
    make_folder(tmp_path / ".syncengine" / "sandbox")
    make_folder(tmp_path / "states" / "team")
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".syncengine", "sandbox", "states", "team"]
