"""Provide environment variables for running Git on a folder, without those that name another repository."""

from __future__ import annotations

import os
from pathlib import Path

OF_ANOTHER_REPOSITORY = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    *("GIT_NAMESPACE", "GIT_COMMON_DIR", "GIT_SHALLOW_FILE", "GIT_QUARANTINE_PATH", "GIT_PREFIX", "GIT_GRAFT_FILE"),
    *("GIT_CONFIG", "GIT_DEFAULT_HASH", "GIT_REPLACE_REF_BASE", "GIT_INTERNAL_SUPER_PREFIX", "SSH_ASKPASS"),
)
"""Variables that Git hooks set for another repository, or that open a password prompt on the screen."""


def of_folder(folder: Path) -> dict[str, str]:
    """Return the environment for Git in a folder; variables may name the repository only when no parent has `.git`."""
    return of_no_repository() if is_in_repository(folder) else dict(os.environ)


def is_in_repository(folder: Path) -> bool:
    """Return whether the folder or one of its parents contains `.git`, without asking Git."""
    place = folder.resolve()
    return any((each / ".git").exists() for each in (place, *place.parents))


def names_repository(folder: Path) -> bool:
    """Return whether Git may find a repository for a folder; if not, there is no need to start Git."""
    return "GIT_DIR" in os.environ or is_in_repository(folder)


def of_no_repository() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_REPOSITORY}
