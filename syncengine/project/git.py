"""Ask Git about the project's folder: its commit, uncommitted changes, and the order of commits."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from syncengine.project import git_environment

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
    answer = _git(folder, "rev-parse", "HEAD", "HEAD:./")  # fails when there is no commit, or no such folder in it
    ids = [word for word in (answer.stdout.split() if answer is not None else ()) if OBJECT_ID.fullmatch(word)]
    return (ids[0], ids[1] if len(ids) > 1 else None) if ids else (None, None)


def work_tree(folder: Path, *places: str) -> WorkTree | None:
    """Compare files of the work tree with HEAD, by default those of the folder; `None` when Git cannot answer."""
    if (answer := _output(folder, "rev-parse", "--show-toplevel", "--show-prefix")) is None:
        return None
    top, prefix = answer.split("\n")[:2]
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
    return (_left_out_inside(folder, inside) if inside else None) or []


def is_committed(folder: Path, name: str) -> bool:
    """Return whether the commit that is checked out contains the file unchanged; `False` when Git cannot answer."""
    compared = work_tree(folder, name)
    return compared is not None and bool(compared.same)


def differing_files(folder: Path, tree: str, other: str) -> set[str] | None:
    """Return the names of files that differ between two trees, or `None` when Git does not know one of the trees."""
    answer = _output(folder, "diff-tree", "-r", "-z", "--name-only", "--no-renames", tree, other)
    return None if answer is None else {*answer.split("\0")} - {""}


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
        answer = _output(folder, "rev-list", *walk, f"--max-count={ANCESTORS + 1}", commit, "--") or ""
        found |= dict.fromkeys(answer.split()[1:])
    return list(found)


def recent(folder: Path, count: int) -> list[str]:
    """Return the newest `count` commits of the branch by first parent, newest first; an empty list outside Git."""
    return (_output(folder, "rev-list", "--first-parent", f"--max-count={count}", "HEAD") or "").split()


def default_branch(folder: Path) -> str:
    """Return the branch that `origin` shows first, else the one of the usual names that exists, else `main`."""
    if shown := _output(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"):
        return shown.strip().removeprefix("origin/")
    usual = _output(folder, "for-each-ref", "--format=%(refname:short)", "refs/heads/main", "refs/heads/master")
    return (usual or "main").split()[0]


def may_keep(folder: Path, *names: str) -> bool:
    """Return whether any of the files is under Git; `True` also when Git cannot answer inside a repository."""
    if not git_environment.is_in_repository(folder):
        return False
    return _output(folder, "ls-files", "--", *names) != ""


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
    words = (_output(folder, "rev-list", "--parents", "--max-count=1", commit, "--") or "").split()
    if not words or OBJECT_ID.fullmatch(words[0]) is None:
        return None
    return f"git revert {'-m 1 ' if len(words) > 2 else ''}{words[0][:12]}"


def contains(folder: Path, commit: str) -> bool:
    """Return whether HEAD contains the commit, as far as the clone knows."""
    return _output(folder, "merge-base", "--is-ancestor", commit, "HEAD") is not None


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


def _git(
    folder: Path,
    *words: str,
    standard_input: str = "",
    environ: Mapping[str, str] = git_environment.LITERALLY,
    reads_only: bool = True,
) -> subprocess.CompletedProcess[str] | None:
    """Run Git, by default only to read. Return `None` when it gives no answer."""
    given = standard_input.encode("utf-8", "surrogateescape")  # file names may be any bytes
    answer = git_environment.ask(folder, *words, standard_input=given, environ=environ, reads_only=reads_only)
    if answer is None:
        return None
    out, errors = (text.decode("utf-8", "surrogateescape") for text in (answer.stdout, answer.stderr))
    return subprocess.CompletedProcess(answer.args, answer.returncode, out, errors)


def _output(folder: Path, *words: str, **how: Any) -> str | None:
    """Return the output of a Git command, run as by `_git`, or `None` when it gives no answer or fails."""
    answer = _git(folder, *words, **how)
    return None if answer is None or answer.returncode else answer.stdout


FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
SPARSE = "core.sparseCheckout"
NO_INDEX = {**git_environment.LITERALLY, "GIT_INDEX_FILE": f"{os.sep}.no-index-of-git"}
"""An environment in which Git knows no file, and takes a path as it is written."""


class TreeEntry(NamedTuple):
    """One file of a Git tree, as `git ls-tree` lists it."""

    mode: str
    oid: str
    path: str


@dataclass(slots=True)
class WorkTree:
    """The files of a work tree compared with a commit; paths are relative to `top`, the top of the work tree.

    `changed` has the mode and object id of what is there, without an id where that is not known; `new` are files that
    are neither committed nor ignored; `left_out` are committed files that a sparse checkout does not bring.
    """

    top: Path
    same: set[str] = field(default_factory=set)
    changed: list[TreeEntry] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.changed or self.deleted or self.new)


def compare(top: Path, commit: str, places: Collection[str]) -> WorkTree | None:
    """Compare the files at and below `places` with a commit. Return `None` when Git cannot answer."""
    inside = [each for each in places if each != os.pardir and not each.startswith(os.pardir + os.sep)]
    result = WorkTree(top)
    if not inside:
        return result
    listed = entries_of(top, commit, inside)
    others = _output(top, "ls-files", "-z", "--others", "--exclude-standard", "--", *inside, environ=NO_INDEX)
    if listed is None or others is None:
        return None
    entries = {entry.path: entry for entry in listed}
    result.new = [path for path in _records(others) if path.rstrip("/") not in entries]
    unlike: list[TreeEntry] = []
    sparse = {*(_left_out_inside(top, inside) or ())}
    for entry in entries.values():
        if entry.mode == SUBMODULE and (top / entry.path / ".git").exists():
            _take_submodule(entry, result)
            continue
        found = _there(top, entry)
        if found is None:
            (result.left_out if entry.path in sparse else result.deleted).append(entry.path)
        elif found.oid == entry.oid:
            result.same.add(entry.path)
        elif found.oid and found.mode == entry.mode and found.mode in (FILE, PROGRAM):  # Git would wait for a pipe
            unlike.append(entry)
        else:
            result.changed.append(found)
    for entry, oid in zip(unlike, _cleaned(top, [entry.path for entry in unlike]), strict=True):
        if oid == entry.oid:
            result.same.add(entry.path)
        else:
            result.changed.append(entry._replace(oid=oid))
    return result


def _left_out_inside(folder: Path, places: Sequence[str]) -> list[str] | None:
    """Return the files at and below `places` that a sparse checkout leaves out; `None` when Git cannot answer.

    All names are relative to the folder. Without a sparse checkout, what the index says of missing files is not asked.
    """
    values = _output(folder, "config", "--type=bool", "--get-all", SPARSE)
    if values is None or values.split()[:-1][-1:] != ["true"]:  # the last one is ours
        return None if values is None else []
    listed = _output(folder, "ls-files", "-t", "-z", "--", *places)
    skipped = (line[2:] for line in _records(listed) if line.startswith("S "))
    return None if listed is None else [name for name in skipped if not os.path.lexists(folder / name)]


def entries_of(
    top: Path, tree: str, places: Sequence[str], environ: Mapping[str, str] | None = None
) -> list[TreeEntry] | None:
    """Return the files of a tree at and below `places`, relative to its top; `None` when Git cannot answer."""
    some = [] if "." in places else places
    command = ("ls-tree", "-r", "-z", "--full-tree", tree, "--", *some)
    own = git_environment.LITERALLY if environ is None else environ
    answer = _output(top, *command, environ=own, reads_only=environ is None)
    if answer is None:
        return None
    found = []
    for line in _records(answer):
        about, path = line.split("\t", 1)
        mode, _, oid = about.split()
        found.append(TreeEntry(mode, oid, path))
    return found


def object_id(kind: bytes, content: bytes, like: str) -> str:
    """Return the id of an object in the object format of the id `like`."""
    return _hash(like, b"%s %d\0" % (kind, len(content)), content).hexdigest()


def _hash(like: str, *parts: bytes) -> hashlib._Hash:
    return (hashlib.sha1 if len(like) == 40 else hashlib.sha256)(b"".join(parts))


def _there(top: Path, entry: TreeEntry) -> TreeEntry | None:
    """Return what the work tree has at the place of an entry, hashed as it is; `None` when there is nothing."""
    path = top / entry.path
    try:
        kind = path.lstat().st_mode
        if stat.S_ISLNK(kind):
            return entry._replace(mode=LINK, oid=object_id(b"blob", os.fsencode(path.readlink()), entry.oid))
        if stat.S_ISDIR(kind):
            return entry if entry.mode == SUBMODULE else None  # without its files, as a clone leaves it
        if not stat.S_ISREG(kind):
            return entry._replace(oid="")
        with path.open("rb") as file:
            total = _hash(entry.oid, b"blob %d\0" % os.fstat(file.fileno()).st_size)
            while part := file.read(1 << 20):  # a file may be larger than the memory
                total.update(part)
    except FileNotFoundError:
        return None
    except OSError:  # such as a file that may not be read: it is there, and nobody knows what it is
        return entry._replace(oid="")
    # Where a checkout cannot make links, it writes their targets into files.
    return entry._replace(mode=entry.mode if entry.mode in (FILE, PROGRAM, LINK) else FILE, oid=total.hexdigest())


def _take_submodule(entry: TreeEntry, result: WorkTree) -> None:
    """Add a submodule that is checked out, and its files, if it is at the commit that the entry names."""
    path = result.top / entry.path
    oid = (_output(path, "rev-parse", "HEAD") or "").strip()
    inner = compare(path, "HEAD", ["."]) if oid == entry.oid else None
    if inner is not None:
        result.same |= {f"{entry.path}/{each}" for each in inner.same}
    if inner is not None and inner.is_clean:
        result.same.add(entry.path)
    else:
        result.changed.append(entry._replace(oid=oid))


def _cleaned(top: Path, paths: Sequence[str]) -> list[str]:
    """Return the ids of files as `git add` would convert them, empty for those that it cannot convert."""
    if not paths:
        return []
    names = "".join(f"{quoted(path)}\n" for path in paths)
    answer = _output(top, "hash-object", "--stdin-paths", standard_input=names, reads_only=False)
    if answer is not None:
        return answer.split()
    middle = len(paths) // 2
    return [*_cleaned(top, paths[:middle]), *_cleaned(top, paths[middle:])] if middle else [""]


def quoted(path: str) -> str:
    """Return a path as Git reads it where each path takes a line."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _records(output: str | None) -> Iterator[str]:
    return filter(None, (output or "").split("\0"))
