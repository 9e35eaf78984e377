"""The project's folder in Git: its commit, whether the tree is clean, and which commit came first."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ASK_SECONDS = 10.0
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
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if commit is None or commit.returncode != 0:
        return None
    changes = _git(folder, "status", "--porcelain", "--", ".")
    is_clean = changes is not None and changes.returncode == 0 and not changes.stdout
    return Commit(commit.stdout.strip(), is_clean, _tree(folder))


def _tree(folder: Path) -> str | None:
    """The tree of a folder at the commit that is checked out."""
    tree = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD:./")
    return tree.stdout.strip() if tree is not None and tree.returncode == 0 else None


def is_older(folder: Path, commit: str, than: str) -> bool | None:
    """Whether `commit` is a strict ancestor of `than`; None when Git does not know (a shallow clone)."""
    if commit == than:
        return False
    answer = _git(folder, "merge-base", "--is-ancestor", commit, than)
    return None if answer is None or answer.returncode not in (0, 1) else answer.returncode == 0


def recent(folder: Path, count: int) -> list[str]:
    """The last commits of the branch, the newest first, without those that merges brought; none outside Git."""
    answer = _git(folder, "rev-list", "--first-parent", f"--max-count={count}", "HEAD")
    return answer.stdout.split() if answer is not None and answer.returncode == 0 else []


def may_keep(folder: Path, *names: str) -> bool:
    """Whether one of these files is under Git; True as well where it may be and Git does not say."""
    folder = folder.resolve()
    if not any((each / ".git").exists() for each in (folder, *folder.parents)):
        return False
    answer = _git(folder, "ls-files", "--", *names)
    return answer is None or answer.returncode != 0 or bool(answer.stdout)


def contains(folder: Path, commit: str) -> bool:
    """Whether HEAD contains the commit, as far as the clone knows."""
    answer = _git(folder, "merge-base", "--is-ancestor", commit, "HEAD")
    return answer is not None and answer.returncode == 0


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(  # noqa: S603 - words of ours and the user's own folder, nothing of a manifest
            command, capture_output=True, text=True, timeout=ASK_SECONDS, check=False, env={**os.environ, **READS_ONLY}
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
