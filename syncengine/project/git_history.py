"""Bring each historical state of the project's files into a folder, from a revision's first commit to its last.

Nothing is checked out: Git lists the commits that touched the files, and only the blobs that differ from one commit to
the next are written. Each commit comes after its parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from syncengine.errors import Usage
from syncengine.project.git_tree import FETCH_ALL, Repository, RevisionFiles
from syncengine.project.git_work_tree import TreeEntry

COMMITS_AT_ONCE = 200
"""The number of commits that are compared together."""


class Visit(NamedTuple):
    """A commit that touched the files: its id, its tree and its date."""

    commit: str
    tree: str
    day: str

    def __str__(self) -> str:
        return f"{self.commit[:10]} ({self.day})"


def refuse_shallow(repo: Repository) -> None:
    """Raise `Usage` if the clone is shallow, because a part of its history is missing."""
    if repo.is_shallow:
        raise Usage(f"this clone is shallow and lacks the history of the manifests: {FETCH_ALL}")


def visits(repo: Repository, revision: str, places: Sequence[str]) -> list[Visit]:
    """Return the commits in the history of `revision` that touched `places`, given relative to the repository's top."""
    how = ("log", "-z", "--topo-order", "--reverse", "--full-history", "--no-show-signature", "--format=%H %T %cs")
    return [Visit(*line.split(" ")) for line in repo.records(*how, revision, "--", *_from_top(places))]


def walk(
    files: RevisionFiles, history: Sequence[Visit], places: Sequence[str]
) -> Iterator[tuple[Visit, list[TreeEntry]]]:
    """Bring the files of each commit in turn into the folder, and yield the commit with its changed entries."""
    repo = files.repo
    before = repo.ask("hash-object", "-t", "tree", "--stdin").stdout.decode().strip()  # a tree without files
    for start in range(0, len(history), COMMITS_AT_ONCE):
        some = history[start : start + COMMITS_AT_ONCE]
        differences = list(_differences(repo, [before, *(visit.tree for visit in some)], places))
        before = some[-1].tree
        for visit, entries in zip(some, differences, strict=True):
            files.follow(visit.commit, entries)
            yield visit, entries


def _differences(repo: Repository, trees: Sequence[str], places: Sequence[str]) -> Iterator[list[TreeEntry]]:
    """Yield the files in which each tree differs from its predecessor."""
    pairs = "".join(f"{old} {new}\n" for old, new in pairwise(trees))
    how = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--full-index", "--", *_from_top(places))
    answer = repo.ask(*how, standard_input=pairs.encode())
    if answer.returncode != 0:
        raise Usage(f"this clone does not have the full history: {FETCH_ALL}")
    entries: list[TreeEntry] = []
    count = 0
    words = iter(answer.stdout.decode("utf-8", "surrogateescape").split("\0"))
    for word in words:
        heads, colon, about = word.partition(":")  # a line for each pair of trees, then a file of the last of them
        for _ in heads.splitlines():
            if count:
                yield entries
            entries, count = [], count + 1
        if colon:
            _, mode, _, oid, _ = about.split(" ")
            entries.append(TreeEntry(mode, oid, next(words)))
    if count:
        yield entries


def _from_top(places: Iterable[str]) -> list[str]:
    return [f":(top,literal){place}" if place else ":/" for place in places]


def former_folders(repo: Repository, revision: str, file: str) -> list[str]:
    """Return the folders where the project file used to be, as path prefixes relative to the repository's top."""
    how = ("log", "--follow", "-M", "-z", "--name-status", "--format=", "--no-show-signature")
    words = iter(repo.records(*how, revision, "--", file))
    folders: dict[str, None] = {}
    for status in words:
        old = PurePosixPath(next(words))
        if status[0] in "RC":
            new = PurePosixPath(next(words))
            if status[0] == "R" and old.name == new.name:
                folders["" if old.parent == PurePosixPath() else f"{old.parent}/"] = None
    return [folder for folder in folders if folder != repo.prefix]
