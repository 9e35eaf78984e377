"""Git variables of another repository, as hooks set them, and user settings of Git that hide changes."""

import os
from pathlib import Path

import pytest

from syncengine.project.git import head
from syncengine.project.git_tree import repository
from tests.support.git import commit_all, git


def committed(folder: Path, text: str) -> str:
    folder.mkdir()
    (folder / "file").write_text(text)
    git(folder, "init", "-q")
    return commit_all(folder)


def state_of(folder: Path) -> tuple[str, bool] | None:
    """The commit that is checked out, and whether nothing is changed."""
    found = head(folder)
    return found and (found.id, found.clean)


@pytest.mark.parametrize("relative", [True, False])
def test_a_project_has_the_commit_of_its_own_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, relative: bool
) -> None:
    """`GIT_DIR` of another repository is ignored, as in a hook that runs the program."""
    commit = committed(tmp_path / "project", "ours")
    committed(tmp_path / "deployed", "theirs")
    monkeypatch.setenv("GIT_DIR", "." if relative else str(tmp_path / "deployed" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "deployed" / ".git" / "index"))
    assert state_of(tmp_path / "project") == (commit, True)
    with repository(tmp_path / "project") as repo:
        assert repo.commit("HEAD") == commit


def test_git_dir_is_used_for_a_folder_without_its_own_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repository may be kept elsewhere on purpose."""
    commit = committed(tmp_path / "project", "ours")
    (tmp_path / "project" / ".git").rename(tmp_path / "kept.git")
    assert state_of(tmp_path / "project") is None
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "kept.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "project"))
    assert state_of(tmp_path / "project") == (commit, True)


def test_a_new_file_and_a_pipe_in_place_of_one_are_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`showUntrackedFiles = no` in the user's Git settings is ignored, and no pipe is read, as that would block."""
    commit = committed(tmp_path / "project", "ours")
    (tmp_path / "gitconfig").write_text("[status]\n showUntrackedFiles = no\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    new, file = tmp_path / "project" / "new", tmp_path / "project" / "file"
    new.touch()
    assert state_of(tmp_path / "project") == (commit, False)
    new.unlink()
    file.unlink()
    os.mkfifo(file)
    assert state_of(tmp_path / "project") == (commit, False)


def test_what_git_cannot_add_has_no_part_in_a_merge(tmp_path: Path) -> None:
    """A pipe, and another repository in the folder, are left as they are, and everything else is merged."""
    folder = tmp_path / "project"
    committed(folder, "ours")
    git(folder, "checkout", "-qb", "other")
    commit_all(folder)
    git(folder, "checkout", "-q", "-")
    os.mkfifo(folder / "pipe")
    committed(folder / "inner", "theirs")
    with repository(folder) as repo:
        tree, found = repo.merged(repo.commit("other"), "other")
        assert (repo.text("ls-tree", "--name-only", tree), found) == ("file\n", [])
