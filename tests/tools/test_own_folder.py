"""What a machine keeps of a project is not taken into Git by whoever adds everything."""

from __future__ import annotations

import subprocess
from pathlib import Path

from syncengine.project import folder


def untracked(project: Path) -> list[str]:
    said = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=project,
        check=True,
        capture_output=True,
        text=True,
    )
    return said.stdout.split()


def test_git_sees_nothing_of_it(tmp_path: Path) -> None:
    """Nor of a folder in it that is made at once with it."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    folder.make(tmp_path / ".syncengine" / "sandbox")
    (tmp_path / ".syncengine" / "sandbox" / "service.db").write_bytes(b"x")
    (tmp_path / ".syncengine" / "state.db").write_bytes(b"x")
    assert untracked(tmp_path) == []


def test_what_was_there_is_left_as_it_is(tmp_path: Path) -> None:
    """Somebody may commit some of it on purpose, or keep a state elsewhere."""
    (tmp_path / ".syncengine").mkdir()
    folder.make(tmp_path / ".syncengine" / "sandbox")
    folder.make(tmp_path / "states" / "team")
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".syncengine", "sandbox", "states", "team"]
