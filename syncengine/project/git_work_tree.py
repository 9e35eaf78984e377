"""Compare files of a Git work tree with a commit, by content: flags and times of the index may hide a change.

A file is as committed if its bytes are those of the blob, or become them by the conversions of `git add`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from syncengine.project import git_environment

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
    others = _ask(top, "ls-files", "-z", "--others", "--exclude-standard", "--", *inside, environ=NO_INDEX)
    if listed is None or others is None:
        return None
    entries = {entry.path: entry for entry in listed}
    result.new = [path for path in _records(others) if path.rstrip("/") not in entries]
    unlike: list[TreeEntry] = []
    sparse = {*(left_out(top, inside) or ())}
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


def left_out(folder: Path, places: Sequence[str]) -> list[str] | None:
    """Return the files at and below `places` that a sparse checkout leaves out; `None` when Git cannot answer.

    All names are relative to the folder. Without a sparse checkout, what the index says of missing files is not asked.
    """
    values = _ask(folder, "config", "--type=bool", "--get-all", SPARSE)
    if values is None or values.stdout.split()[:-1][-1:] != [b"true"]:  # the last one is ours
        return None if values is None else []
    listed = _ask(folder, "ls-files", "-t", "-z", "--", *places)
    skipped = (line[2:] for line in (_records(listed) if listed is not None else ()) if line.startswith("S "))
    return None if listed is None else [name for name in skipped if not os.path.lexists(folder / name)]


def entries_of(
    top: Path, tree: str, places: Sequence[str], environ: Mapping[str, str] | None = None
) -> list[TreeEntry] | None:
    """Return the files of a tree at and below `places`, relative to its top; `None` when Git cannot answer."""
    some = [] if "." in places else places
    command = ("ls-tree", "-r", "-z", "--full-tree", tree, "--", *some)
    answer = _ask(top, *command, environ=environ, reads_only=environ is None)
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
        oid = _hash_of_file(path, entry.oid)
    except FileNotFoundError:
        return None
    except OSError:  # such as a file that may not be read: it is there, and nobody knows what it is
        return entry._replace(oid="")
    # Where a checkout cannot make links, it writes their targets into files.
    return entry._replace(mode=entry.mode if entry.mode in (FILE, PROGRAM, LINK) else FILE, oid=oid)


def _hash_of_file(path: Path, like: str) -> str:
    with path.open("rb") as file:
        total = _hash(like, b"blob %d\0" % os.fstat(file.fileno()).st_size)
        while part := file.read(1 << 20):
            total.update(part)
    return total.hexdigest()


def _take_submodule(entry: TreeEntry, result: WorkTree) -> None:
    """Add a submodule that is checked out, and its files, if it is at the commit that the entry names."""
    path = result.top / entry.path
    answer = _ask(path, "rev-parse", "HEAD")
    oid = answer.stdout.decode().strip() if answer else ""
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
    names = "".join(f"{quoted(path)}\n" for path in paths).encode("utf-8", "surrogateescape")
    answer = _ask(top, "hash-object", "--stdin-paths", input=names, reads_only=False)
    if answer is not None:
        return answer.stdout.decode().split()
    middle = len(paths) // 2
    return [*_cleaned(top, paths[:middle]), *_cleaned(top, paths[middle:])] if middle else [""]


def quoted(path: str) -> str:
    """Return a path as Git reads it where each path takes a line."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _records(answer: subprocess.CompletedProcess[bytes]) -> Iterator[str]:
    return filter(None, answer.stdout.decode("utf-8", "surrogateescape").split("\0"))


def _ask(
    folder: Path, *words: str, input: bytes = b"", environ: Mapping[str, str] | None = None, reads_only: bool = True
) -> subprocess.CompletedProcess[bytes] | None:
    """Return Git's answer, or `None` when it has none or fails."""
    own = git_environment.LITERALLY if environ is None else environ
    answer = git_environment.ask(folder, *words, reads_only=reads_only, standard_input=input, environ=own)
    return answer if answer is not None and answer.returncode == 0 else None
