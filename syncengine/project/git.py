"""The project's folder in Git: its commit, whether the tree is clean, and which commit came first."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from syncengine.project import git_environment

ASK_SECONDS = 10.0
OBJECT_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
ANCESTORS = 200
"""Commits before the one that is applied that are kept: as many as may be merged while a pipeline waits."""
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The tree of a folder that no commit has."""
CURE = "`git status` says the cure"
"""Where Git refuses to read a checkout."""
READS_ONLY = {"GIT_OPTIONAL_LOCKS": "0"}
"""So that a question does not write the index anew."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit that is checked out; `clean`: the folder has no changes of its own.

    `tree`: the folder's content in it, which a merge, a squash or a rebase keeps; None where it is not in the commit.
    """

    id: str
    clean: bool
    tree: str | None = None


def head(folder: Path) -> Commit | None:
    """Return the commit of the folder; None when it is not under Git or Git is not installed."""
    commit, tree = _checked_out(folder)
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=normal", "--", ".")
    return Commit(commit, changes is not None and changes.returncode == 0 and not changes.stdout, tree)


def tree_of(folder: Path) -> str | None:
    """Return the tree of the folder in the commit that is checked out, which may be empty; None outside Git."""
    commit, tree = _checked_out(folder)
    return None if commit is None else tree or EMPTY_TREE


def _checked_out(folder: Path) -> tuple[str | None, str | None]:
    """The commit, and the tree that it has of the folder."""
    if not git_environment.names_repository(folder):
        return None, None
    answer = _git(folder, "rev-parse", "HEAD", "HEAD:./")
    ids = [word for word in (answer.stdout.split() if answer is not None else ()) if OBJECT_ID.fullmatch(word)]
    return (ids[0], ids[1] if len(ids) > 1 else None) if ids else (None, None)


def uncommitted(folder: Path, names: Iterable[str]) -> list[str] | None:
    """Return those of the files, relative to the folder, that its commit does not hold as they are, and all that were
    deleted since; None where Git does not say.
    """
    kept = _git(folder, "ls-files", "-z", "--", ".")
    differing = _git(
        folder, "diff", "--no-ext-diff", "--no-renames", "--relative", "--name-status", "-z", "HEAD", "--", "."
    )
    if kept is None or differing is None or kept.returncode or differing.returncode:
        return None
    words = differing.stdout.split("\0")
    changes = dict(zip(words[1::2], words[::2], strict=False))
    tracked = {*kept.stdout.split("\0")}
    deleted = [name for name, status in changes.items() if status == "D"]
    return [*(name for name in names if name not in tracked or name in changes), *deleted]


def is_committed(folder: Path, name: str) -> bool:
    """Whether the commit that is checked out holds a file as it is; False as well where Git does not say."""
    answers = (
        _git(folder, "ls-files", "--error-unmatch", "--", name),
        _git(folder, "diff", "--no-ext-diff", "--quiet", "HEAD", "--", name),
    )
    return all(answer is not None and answer.returncode == 0 for answer in answers)


def differing_files(folder: Path, tree: str, other: str) -> set[str] | None:
    """Return the names of files that differ between two trees; None where Git does not know one of them."""
    answer = _git(folder, "diff-tree", "-r", "-z", "--name-only", "--no-renames", tree, other)
    return None if answer is None or answer.returncode else {*answer.stdout.split("\0")} - {""}


def is_older(folder: Path, commit: str, than: str) -> bool | None:
    """Whether `commit` is a strict ancestor of `than`; None when Git does not know (a shallow clone)."""
    if commit == than:
        return False
    answer = _git(folder, "merge-base", "--is-ancestor", commit, than)
    return None if answer is None or answer.returncode not in (0, 1) else answer.returncode == 0


def ancestors(folder: Path, commit: str) -> list[str]:
    """The last commits of the branch before this one, and the last by their dates; none that Git does not know.

    A branch that is merged may bring more commits, with later dates, than there were on this one for days.
    """
    found: dict[str, None] = {}
    for walk in (["--first-parent"], []):
        answer = _git(folder, "rev-list", *walk, f"--max-count={ANCESTORS + 1}", commit, "--")
        found |= dict.fromkeys(answer.stdout.split()[1:] if answer is not None and answer.returncode == 0 else [])
    return list(found)


def recent(folder: Path, count: int) -> list[str]:
    """The last commits of the branch, the newest first, without those that merges brought; none outside Git."""
    answer = _git(folder, "rev-list", "--first-parent", f"--max-count={count}", "HEAD")
    return answer.stdout.split() if answer is not None and answer.returncode == 0 else []


def may_keep(folder: Path, *names: str) -> bool:
    """Whether one of these files is under Git; True as well where it may be and Git does not say."""
    if not git_environment.is_in_repository(folder):
        return False
    answer = _git(folder, "ls-files", "--", *names)
    return answer is None or answer.returncode != 0 or bool(answer.stdout)


def refusal(folder: Path) -> str | None:
    """Git's words where it refuses to read the repository of a folder; None where it reads it, and outside of one."""
    if not git_environment.is_in_repository(folder):
        return None
    answer = _git(folder, "rev-parse", "--git-dir")
    return None if answer is None or answer.returncode == 0 else answer.stderr.strip().partition("\n")[0]


def revert_of(folder: Path, commit: str) -> str | None:
    """The command that takes a commit back, of a merge its first parent's side; None where Git does not know it."""
    if OBJECT_ID.fullmatch(commit) is None:  # of a state that others may write: it could be an option
        return None
    answer = _git(folder, "rev-list", "--parents", "--max-count=1", commit, "--")
    words = answer.stdout.split() if answer is not None and answer.returncode == 0 else []
    if not words or OBJECT_ID.fullmatch(words[0]) is None:
        return None
    return f"git revert {'-m 1 ' if len(words) > 2 else ''}{words[0][:12]}"


def contains(folder: Path, commit: str) -> bool:
    """Whether HEAD contains the commit, as far as the clone knows."""
    answer = _git(folder, "merge-base", "--is-ancestor", commit, "HEAD")
    return answer is not None and answer.returncode == 0


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(  # noqa: S603 - words of ours and the user's own folder, nothing of a manifest
            command,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",  # names of files may be any bytes
            timeout=ASK_SECONDS,
            check=False,
            env={**git_environment.of_folder(folder), **READS_ONLY},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
