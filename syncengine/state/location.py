"""Refuse paths that cannot be a state; standard library only.

Every opening of a state checks its path here first. Only a path that does not exist begins as an empty state.
"""

from __future__ import annotations

import stat
from pathlib import Path

from syncengine.document.text import as_word
from syncengine.errors import SyncengineError
from syncengine.project import git
from syncengine.project.references import BESIDE


def refuse_no_state(path: Path) -> None:
    """Raise `SyncengineError` for a path that cannot be a state: a dangling link, a pipe, an empty or tracked file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise _unfit(path, "is a link to a file that does not exist") from None
        return
    except OSError:
        return  # opening the file reports the reason
    if stat.S_ISDIR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        raise _unfit(path, "is not a regular file")
    if status.st_size == 0 and not any(Path(f"{path}{suffix}").exists() for suffix in BESIDE[1:]):
        raise _unfit(path, "is empty, which no state is: restore it, or remove it and begin a new one with --new-state")
    _refuse_committed(path)


def _refuse_committed(path: Path) -> None:
    """Refuse a state tracked by Git: the author of a change could use it to claim that nothing has to be done."""
    real = path.resolve()
    if git.may_keep(real.parent, *(f"{real.name}{suffix}" for suffix in BESIDE)):
        cure = f"run `git rm --cached -- {as_word(real.name)}` in its folder, and add it to .gitignore"
        why = f"is tracked by Git and is not used: {cure}"
        if refusal := git.refusal(real.parent):
            why = f"may be tracked by Git and is not used: Git cannot read the checkout ({refusal}; {git.CURE})"
        raise SyncengineError(f"state {path} {why}", code="state-in-git")


def _unfit(path: Path, why: str) -> SyncengineError:
    return SyncengineError(f"state {path} {why}", code="state-unreadable")
