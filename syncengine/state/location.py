"""Refuse paths at which no state can be read; standard library only.

Every opening of a state asks here first: a path that is not there begins as an empty state, and nothing else does.
"""

from __future__ import annotations

import stat
from pathlib import Path

from syncengine.errors import SyncengineError
from syncengine.project import git
from syncengine.project.references import BESIDE


def refuse_no_state(path: Path) -> None:
    """SyncengineError for a path that can be no state: a lost link, a pipe, an empty file, a file under Git."""
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise _unfit(path, "is a link to a file that does not exist") from None
        return
    except OSError:
        return  # whoever opens it says why
    if stat.S_ISDIR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        raise _unfit(path, "is not a regular file")
    if status.st_size == 0 and not any(Path(f"{path}{suffix}").exists() for suffix in BESIDE[1:]):
        raise _unfit(path, "is an empty file, which no state ever is: restore it, or remove it to begin a new state")
    _refuse_committed(path)


def _refuse_committed(path: Path) -> None:
    """Refuse a state under Git: the author of a change could use it to claim that nothing has to be done."""
    real = path.resolve()
    if git.may_keep(real.parent, *(f"{real.name}{suffix}" for suffix in BESIDE)):
        is_under_git = f"is under Git, and is not used: `git rm --cached {real.name}` in its folder takes it out, and"
        why = f"{is_under_git} .gitignore keeps it out"
        if refusal := git.refusal(real.parent):
            why = f"may be under Git, and is not used: Git does not read its checkout ({refusal}; {git.CURE})"
        raise SyncengineError(f"state {path} {why}", code="state-in-git")


def _unfit(path: Path, why: str) -> SyncengineError:
    return SyncengineError(f"state {path} {why}", code="state-unreadable")
