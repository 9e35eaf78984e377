"""Ask Git about the project's folder: its commit, uncommitted changes, and the order of commits."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from syncengine.project import git_environment, git_work_tree
from syncengine.project.git_work_tree import WorkTree, compare, object_id

ASK_SECONDS = 10.0
OBJECT_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
ANCESTORS = 200
"""How many commits before the applied one are stored: enough for the commits merged while a pipeline waits."""
CURE = git_environment.CURE


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit that is checked out; `clean` is whether the folder has no uncommitted changes.

    `tree` is the folder's tree in it, which a merge, a squash or a rebase keeps; `None` if it lacks the folder.
    """

    id: str
    clean: bool
    tree: str | None = None


def head(folder: Path) -> Commit | None:
    """Return the commit that is checked out in the folder, or `None` outside Git or when Git is not installed."""
    commit, tree = _checked_out(folder)
    if commit is None:
        return None
    compared = work_tree(folder)
    return Commit(commit, compared is not None and compared.is_clean, tree)


def tree_of(folder: Path) -> str | None:
    """Return the folder's tree in the checked-out commit, empty when it is not committed; `None` outside Git."""
    commit, tree = _checked_out(folder)
    return None if commit is None else tree or empty_tree(commit)


def empty_tree(commit: str) -> str:
    """Return the Git tree of a folder that no commit contains, in the object format of a commit's id."""
    return object_id(b"tree", b"", like=commit)


def _checked_out(folder: Path) -> tuple[str | None, str | None]:
    """Return the commit that is checked out and the folder's tree in it; each is `None` when there is none."""
    if not git_environment.names_repository(folder):
        return None, None
    answer = _git(folder, "rev-parse", "HEAD", "HEAD:./")
    ids = [word for word in (answer.stdout.split() if answer is not None else ()) if OBJECT_ID.fullmatch(word)]
    return (ids[0], ids[1] if len(ids) > 1 else None) if ids else (None, None)


def work_tree(folder: Path, *places: str) -> WorkTree | None:
    """Compare files of the work tree with HEAD, by default those of the folder; `None` when Git cannot answer."""
    answer = _git(folder, "rev-parse", "--show-toplevel", "--show-prefix")
    if answer is None or answer.returncode:
        return None
    top, prefix = answer.stdout.split("\n")[:2]
    return compare(Path(top), "HEAD", [os.path.normpath(f"{prefix}{place}") for place in places or (".",)])


def uncommitted(folder: Path, names: Iterable[str], searched: Collection[str]) -> list[str] | None:
    """Return the `names` that HEAD lacks or has with other content, and files deleted from where others are searched.

    All names are relative to the folder. Return `None` when Git cannot answer.
    """
    compared = work_tree(folder)
    if compared is None:
        return None
    here = os.path.relpath(folder.resolve(), compared.top)
    same = {os.path.relpath(path, here) for path in compared.same}
    deleted = (PurePath(os.path.relpath(path, here)) for path in compared.deleted)
    missing = (str(path) for path in deleted if any(path.is_relative_to(each) for each in searched))
    return [*(name for name in names if name not in same), *missing]


def left_out(folder: Path, places: Iterable[Path]) -> list[str]:
    """Return the files at and below `places` that a sparse checkout leaves out, by their names in the folder."""
    if not git_environment.names_repository(folder):
        return []
    names = (os.path.relpath(place.absolute(), folder.absolute()) for place in places)
    inside = [name for name in names if not name.startswith(os.pardir)]
    return (git_work_tree.left_out(folder, inside) if inside else None) or []


def is_committed(folder: Path, name: str) -> bool:
    """Return whether the commit that is checked out contains the file unchanged; `False` when Git cannot answer."""
    compared = work_tree(folder, name)
    return compared is not None and bool(compared.same)


def differing_files(folder: Path, tree: str, other: str) -> set[str] | None:
    """Return the names of files that differ between two trees, or `None` when Git does not know one of the trees."""
    answer = _git(folder, "diff-tree", "-r", "-z", "--name-only", "--no-renames", tree, other)
    return None if answer is None or answer.returncode else {*answer.stdout.split("\0")} - {""}


def is_older(folder: Path, commit: str, than: str) -> bool | None:
    """Return whether `commit` is a strict ancestor of `than`; `None` when Git does not know (a shallow clone)."""
    if commit == than:
        return False
    answer = _git(folder, "merge-base", "--is-ancestor", commit, than)
    return None if answer is None or answer.returncode not in (0, 1) else answer.returncode == 0


def ancestors(folder: Path, commit: str) -> list[str]:
    """Return the last `ANCESTORS` commits before `commit`: by first parent, then by date. Empty when Git knows none.

    Both walks are needed: merging a branch may bring more commits, with later dates, than the main branch had for days.
    """
    found: dict[str, None] = {}
    for walk in (["--first-parent"], []):
        answer = _git(folder, "rev-list", *walk, f"--max-count={ANCESTORS + 1}", commit, "--")
        found |= dict.fromkeys(answer.stdout.split()[1:] if answer is not None and answer.returncode == 0 else [])
    return list(found)


def recent(folder: Path, count: int) -> list[str]:
    """Return the newest `count` commits of the branch by first parent, newest first; an empty list outside Git."""
    answer = _git(folder, "rev-list", "--first-parent", f"--max-count={count}", "HEAD")
    return answer.stdout.split() if answer is not None and answer.returncode == 0 else []


def default_branch(folder: Path) -> str:
    """Return the branch that `origin` shows first, else the one of the usual names that exists, else `main`."""
    answer = _git(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if answer is not None and not answer.returncode:
        return answer.stdout.strip().removeprefix("origin/")
    answer = _git(folder, "for-each-ref", "--format=%(refname:short)", "refs/heads/main", "refs/heads/master")
    found = answer.stdout.split() if answer is not None else []
    return found[0] if found else "main"


def may_keep(folder: Path, *names: str) -> bool:
    """Return whether any of the files is under Git; `True` also when Git cannot answer inside a repository."""
    if not git_environment.is_in_repository(folder):
        return False
    answer = _git(folder, "ls-files", "--", *names)
    return answer is None or answer.returncode != 0 or bool(answer.stdout)


def refusal(folder: Path) -> str | None:
    """Return Git's reason for refusing to read the folder's repository; `None` when it is readable or there is none."""
    if not git_environment.is_in_repository(folder):
        return None
    answer = _git(folder, "rev-parse", "--git-dir")
    return None if answer is None or answer.returncode == 0 else answer.stderr.strip().partition("\n")[0]


def revert_of(folder: Path, commit: str) -> str | None:
    """Return the command that reverts a commit (a merge relative to its first parent), or `None` when Git lacks it."""
    if OBJECT_ID.fullmatch(commit) is None:  # a state that others can write supplies it: it could be an option
        return None
    answer = _git(folder, "rev-list", "--parents", "--max-count=1", commit, "--")
    words = answer.stdout.split() if answer is not None and answer.returncode == 0 else []
    if not words or OBJECT_ID.fullmatch(words[0]) is None:
        return None
    return f"git revert {'-m 1 ' if len(words) > 2 else ''}{words[0][:12]}"


def contains(folder: Path, commit: str) -> bool:
    """Return whether HEAD contains the commit, as far as the clone knows."""
    answer = _git(folder, "merge-base", "--is-ancestor", commit, "HEAD")
    return answer is not None and answer.returncode == 0


def index_of(folder: Path) -> Path | None:
    """Return the index of the work tree that contains a folder, without asking Git, or `None` when there is none."""
    place = folder.resolve()
    marker = next((each / ".git" for each in (place, *place.parents) if (each / ".git").exists()), None)
    if marker is None or marker.is_dir():
        return marker and marker / "index"
    try:  # the marker of a linked work tree or a submodule names its folder
        return marker.parent / marker.read_text(encoding="utf-8").removeprefix("gitdir:").strip() / "index"
    except (OSError, UnicodeDecodeError):
        return None


def lock_of(index: Path) -> Path:
    """Return the file that exists while Git writes an index, or a work tree and then its index."""
    return index.with_name("index.lock")


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    answer = git_environment.ask(folder, *arguments, seconds=ASK_SECONDS)
    if answer is None:
        return None
    out, errors = (text.decode("utf-8", "surrogateescape") for text in (answer.stdout, answer.stderr))
    return subprocess.CompletedProcess(answer.args, answer.returncode, out, errors)  # file names may be any bytes
