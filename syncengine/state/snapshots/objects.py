"""Read and write Git's blobs, trees and commits as bytes in a repository, without calling Git."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE, FOLDER = b"100644", b"40000"
WHO = "syncengine <syncengine@localhost>"
_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class CommitObject:
    """A Git commit, by the ids of its tree and its parents."""

    tree: str
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ObjectWriter:
    """A writer of loose objects to a bare repository. `algorithm` is sha1 or sha256."""

    folder: Path
    algorithm: str

    def blob(self, data: bytes) -> str:
        return self._write(b"blob", data)

    def blob_id(self, data: bytes) -> str:
        return self._id(b"blob", data)

    def tree(self, files: Mapping[str, str], folders: Mapping[str, str]) -> str:
        """Write a tree of blobs and subtrees, given by name and id, and return its id."""
        entries = [(name.encode(), FILE, id) for name, id in files.items()]
        # Git sorts the name of a folder as if it ended with a slash.
        entries += [(name.encode() + b"/", FOLDER, id) for name, id in folders.items()]
        lines = (b"%s %s\0%s" % (mode, name.rstrip(b"/"), bytes.fromhex(id)) for name, mode, id in sorted(entries))
        return self._write(b"tree", b"".join(lines))

    def commit(self, tree: str, parents: Sequence[str], when: int, message: str) -> str:
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"author {WHO} {when} +0000", f"committer {WHO} {when} +0000", "", message]
        return self._write(b"commit", ("\n".join(lines) + "\n").encode())

    def _id(self, kind: bytes, data: bytes) -> str:
        return hashlib.new(self.algorithm, b"%s %d\0" % (kind, len(data)) + data, usedforsecurity=False).hexdigest()

    def _write(self, kind: bytes, data: bytes) -> str:
        id = self._id(kind, data)
        place = self.folder / "objects" / id[:2] / id[2:]
        if place.exists():
            os.utime(place)  # so that `git gc` does not drop it before it is used
            return id
        place.parent.mkdir(exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent, prefix="tmp_obj_")
        with os.fdopen(handle, "wb") as file:
            file.write(zlib.compress(b"%s %d\0" % (kind, len(data)) + data, 1))
        Path(name).replace(place)
        return id


def read_tree(data: bytes, width: int) -> tuple[dict[str, str], dict[str, str]]:
    """Return a tree's files and folders: ids of `width` bytes, by name. Raise `ValueError` for other data."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    at = 0
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = data[at:end].partition(b" ")
        id = data[end + 1 : end + 1 + width].hex()
        if len(id) != 2 * width or mode not in (FILE, FOLDER):
            raise ValueError("a tree contains something other than files and folders")
        (files if mode == FILE else folders)[name.decode()] = id
        at = end + 1 + width
    return files, folders


def read_commit(data: bytes) -> CommitObject:
    """Decode a commit. Raise `ValueError` if it has no tree."""
    lines: Iterable[str] = data.partition(b"\n\n")[0].decode(errors="replace").splitlines()
    pairs = [line.partition(" ")[::2] for line in lines]
    trees = [id for word, id in pairs if word == "tree" and is_id(id)]
    if len(trees) != 1:
        raise ValueError("a commit has no tree")
    return CommitObject(trees[0], tuple(id for word, id in pairs if word == "parent" and is_id(id)))
