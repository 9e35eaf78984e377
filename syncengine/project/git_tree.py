"""A revision of the project in Git → its files in a temporary folder, read from Git's objects: nothing is checked out.

Files that are equal to those of the work tree are links to them, or copies, so that they are as a checkout would make
them (Git LFS, line ends). Others come from the objects as they are stored, of Git LFS from its own objects. The
repository is never written to: a merge and its objects live in the temporary folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from syncengine.errors import Diagnostic, Problems, Severity, Usage
from syncengine.project import git_environment
from syncengine.project.model import Checkout, Project

GIT_SECONDS = 120.0
FETCH_ALL = "fetch its history first (`fetch-depth: 0` of actions/checkout, `GIT_DEPTH: 0` of GitLab)"
FILE, PROGRAM, LINK, SUBMODULE, GONE = "100644", "100755", "120000", "160000", "000000"
FORMATS = (".yaml", ".yml", ".json", ".j2", ".csv", ".tsv", ".jsonl", ".ndjson", ".txt", ".db", ".sqlite")
"""Endings of ignored files that manifests may be, or read."""
_POINTER = re.compile(rb"version https://git-lfs[.]github[.]com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n")
NOTHING: Mapping[str, str] = {}
_MERGER = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "syncengine"), ("EMAIL", "syncengine@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}
"""The author of a commit that only the merge of a work tree needs."""


class TreeEntry(NamedTuple):
    """A file of a tree, as `git ls-tree` tells it; mode `000000` is one that is no longer there."""

    mode: str
    oid: str
    path: str


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository that `root` is in; `prefix` leads from its top to `root`. `objects`: a folder for new objects.

    `option`: the option of the command that names a revision.
    """

    root: Path
    top: Path
    prefix: str
    objects: Path
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    option: str = "--base"

    def commit(self, revision: str) -> str:
        """The id of the commit that `revision` names; Usage where there is none."""
        name = f"{revision}^{{commit}}"
        answer = None if revision.startswith("-") else self.ask("rev-parse", "--verify", "--quiet", name)
        if answer is None or answer.returncode != 0:
            shallow = " of this shallow clone" if self.is_shallow else ""
            raise Usage(f"there is no commit {revision}{shallow}: {FETCH_ALL}, or name another with {self.option}")
        return answer.stdout.decode().strip()

    @property
    def is_shallow(self) -> bool:
        return self._text("rev-parse", "--is-shallow-repository").strip() == "true"

    @property
    def is_clean(self) -> bool:
        """Whether the project's folder has no changes of its own."""
        return not self._text("status", "--porcelain", "--", ".")

    def merged(self, commit: str, name: str) -> tuple[str, list[Diagnostic]]:
        """The tree of merging `commit` into the commit that is checked out, changes of the work tree included.

        Problems for conflicts in the project's folder; those elsewhere are warnings.
        """
        ours = "HEAD" if self.is_clean else self._of_work_tree()
        if self.ask("merge-base", ours, commit).returncode != 0:
            raise Usage(f"HEAD and {name} have no commit in common here: {FETCH_ALL}")
        answer = self.ask("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, commit)
        if answer.returncode not in (0, 1):
            why = "Git 2.38 or newer is needed for that" if answer.returncode == 129 else _why(answer)
            raise Usage(f"HEAD does not contain {name}, and their merge cannot be made: {why}; or merge {name} first")
        tree, *files = answer.stdout.decode("utf-8", "surrogateescape").split("\0")
        found = [self._conflict(file, name) for file in dict.fromkeys(filter(None, files))]
        if any(each.severity is Severity.ERROR for each in found):
            raise Problems(found)
        return tree, found

    def folder_of(self, tree: str) -> str:
        """The tree of the project's folder in a tree of the repository."""
        return self._text("rev-parse", "--verify", f"{tree}:{self.prefix}").strip()

    def _conflict(self, file: str, name: str) -> Diagnostic:
        inside = file.startswith(self.prefix)
        cure = "no plan can be right until they are merged" if inside else "it is outside the project's folder"
        return Diagnostic(
            severity=Severity.ERROR if inside else Severity.WARNING,
            code="merge-conflict",
            message=f"HEAD and {name} both changed this file, and Git cannot merge it: {cure}",
            file=os.fsencode(os.path.relpath(file, self.prefix or ".")).decode("utf-8", "replace"),
        )

    def _of_work_tree(self) -> str:
        """A commit of the work tree as it is, ignored files aside. It leaves no trace in the repository."""
        index = self.objects / "index"
        real = self.root / self._text("rev-parse", "--git-path", "index").strip()
        if real.exists():
            shutil.copyfile(real, index)
        own = {**_MERGER, "GIT_INDEX_FILE": str(index)}
        self._text("add", "--all", "--", ".", environ=own)
        tree = self._text("write-tree", environ=own).strip()
        return self._text("commit-tree", tree, "-p", "HEAD", "-m", "work tree", environ=own).strip()

    def ask(
        self, *arguments: str, standard_input: bytes = b"", environ: Mapping[str, str] = NOTHING
    ) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-C", str(self.root), *arguments]
        own = {**git_environment.of_folder(self.root), **self.environ, **environ}
        try:
            return subprocess.run(  # noqa: S603 - words of ours, ids of Git, and a revision that begins with no dash
                command, input=standard_input, capture_output=True, timeout=GIT_SECONDS, check=False, env=own
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Usage(f"git {arguments[0]} did not answer: {error}") from None

    def _text(self, *arguments: str, environ: Mapping[str, str] = NOTHING) -> str:
        answer = self.ask(*arguments, environ=environ)
        if answer.returncode != 0:
            raise Usage(f"git {arguments[0]} failed: {_why(answer)}")
        return answer.stdout.decode("utf-8", "surrogateescape")

    def records(self, *arguments: str) -> list[str]:
        """Answers that end in NUL."""
        return [each for each in self._text(*arguments).split("\0") if each]

    def blobs(self, oids: Iterable[str]) -> Iterator[bytes]:
        """The contents of objects, in their order."""
        names = list(oids)
        output = self.ask("cat-file", "--batch", standard_input="".join(f"{oid}\n" for oid in names).encode()).stdout
        at = 0
        for oid in names:
            end = output.index(b"\n", at) if b"\n" in output[at : at + 200] else -1
            header = output[at:end].split()
            if end < 0 or len(header) != 3:
                raise Usage(f"the object {oid} is not in this clone: {FETCH_ALL}")
            size = int(header[2])
            yield output[end + 1 : end + 1 + size]
            at = end + size + 2


@contextmanager
def repository(root: Path, option: str = "--base") -> Iterator[Repository]:
    """The repository of a project's folder; Usage where there is none. `option`: the one that asks for it."""
    with TemporaryDirectory(prefix="syncengine-") as folder:
        objects = Path(folder).resolve()
        repo = Repository(root, root, "", objects)
        answer = repo.ask("rev-parse", "--show-toplevel", "--show-prefix", "--git-path", "objects")
        if answer.returncode != 0:
            raise Usage(f"{option} reads Git, and {root} is in no repository that Git can read: {_why(answer)}")
        top, prefix, store = answer.stdout.decode("utf-8", "surrogateescape").split("\n")[:3]
        further = git_environment.of_folder(root).get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "")
        others = [str((root / store).resolve()), further]
        environ = {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(filter(None, others)),
            "GIT_OPTIONAL_LOCKS": "0",
        }
        yield Repository(root, Path(top), prefix, objects, environ, option)


@dataclass(slots=True)
class RevisionFiles:
    """The files of a commit or a tree, brought into a folder as far as they are asked for.

    `found` are warnings about files that cannot be had.
    """

    repo: Repository
    tree: str
    name: str
    to: Path
    found: list[Diagnostic] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    clean: dict[str, str] | None = None

    @property
    def checkout(self) -> Checkout:
        return Checkout(self.to, self.to / self.repo.prefix)

    def bring_project(self) -> None:
        """Bring all files of the project's folder, and those that Git ignores, which are the same on both sides."""
        self.checkout.folder.mkdir(parents=True, exist_ok=True)
        self.bring(self.repo.prefix or ".")
        for path in self.ignored():
            source, target = self.repo.root / path, self.checkout.folder / path
            if _is_there(source) and not target.exists():
                _place(source, target)

    def bring(self, path: str) -> None:
        """Bring a file or a folder, and the targets of links in it; `path` is relative to the repository's top."""
        waiting = [path]
        while waiting:
            place = os.path.normpath(waiting.pop())
            if place in self.met or place.startswith(".."):
                continue
            self.met.add(place)
            waiting += self._brought([] if place == "." else [place])

    def bring_outside(self, paths: Iterable[Path]) -> None:
        """Bring places of the checkout that are beside the project's folder."""
        for path in paths:
            relative = os.path.relpath(os.path.normpath(path), self.to)
            if not relative.startswith("..") and not os.path.normpath(path).startswith(str(self.checkout.folder)):
                self.bring(relative)

    def follow(self, revision: str, changes: Iterable[TreeEntry], contents: Mapping[str, bytes]) -> None:
        """Turn the files into those of another commit, which differ by `changes`; `contents` are those by object."""
        self.tree = self.name = revision
        entries = [each for each in changes if _is_inside(each.path)]
        for entry in entries:
            self._drop(self.to / entry.path)
        for link in self._put([each for each in entries if each.mode != GONE], contents):
            self.bring(link)

    def _drop(self, target: Path) -> None:
        """Delete a file, and the folders that are empty without it: never write into one that the work tree has too."""
        with suppress(OSError):
            target.unlink()
            for folder in target.relative_to(self.to).parents[:-1]:
                (self.to / folder).rmdir()

    def _brought(self, places: list[str]) -> list[str]:
        return self._put([each for each in self._entries(places) if not (self.to / each.path).exists()])

    def _put(self, entries: Iterable[TreeEntry], contents: Mapping[str, bytes] | None = None) -> list[str]:
        """Put files where they belong, from the work tree or from objects; where links lead."""
        clean = self._clean()
        others: list[TreeEntry] = []
        for entry in entries:
            if entry.mode == SUBMODULE:
                self._warn(entry, "it is a submodule: its files are not compared")
            elif entry.mode != LINK and clean.get(entry.path) == entry.oid and _is_there(self.repo.top / entry.path):
                _place(self.repo.top / entry.path, self.to / entry.path)
            else:
                others.append(entry)
        return self._written(sorted(others, key=lambda each: each.mode == LINK), contents)

    def _written(self, entries: list[TreeEntry], contents: Mapping[str, bytes] | None) -> list[str]:
        """Write contents of objects, links last so that nothing is written through one; where the links lead."""
        links = []
        blobs = (
            self.repo.blobs(each.oid for each in entries) if contents is None else (contents[e.oid] for e in entries)
        )
        for entry, content in zip(entries, blobs, strict=True):
            target = self.to / entry.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if entry.mode == LINK:
                leads = os.fsdecode(content)
                target.symlink_to(leads)
                links.append(PurePosixPath(entry.path).parent / leads)
            else:
                target.write_bytes(self._smudged(entry, content))
        return [str(link) for link in links if not link.is_absolute()]

    def _smudged(self, entry: TreeEntry, content: bytes) -> bytes:
        """The content of a file of Git LFS, where this clone has it."""
        if len(content) > 1024 or (pointer := _POINTER.match(content)) is None:
            return content
        oid = pointer[1].decode()
        stored = self.repo.ask("rev-parse", "--git-path", f"lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}").stdout
        with suppress(OSError):
            return (self.repo.root / os.fsdecode(stored).strip()).read_bytes()
        self._warn(entry, f"it is in Git LFS, and this clone does not have it: `git lfs fetch origin {self.name}`")
        return content

    def _entries(self, places: list[str]) -> Iterator[TreeEntry]:
        for line in self.repo.records("ls-tree", "-r", "-z", "--full-tree", self.tree, "--", *places):
            about, path = line.split("\t", 1)
            mode, _, oid = about.split()
            if _is_inside(path):
                yield TreeEntry(mode, oid, path)

    def _clean(self) -> dict[str, str]:
        """The objects of files that stand in the work tree as they are in the index."""
        if self.clean is None:
            top = (":/",)
            dirty = set(self.repo.records("diff-files", "--name-only", "-z", "--", *top))
            lines = (line.split("\t", 1) for line in self.repo.records("ls-files", "-s", "-z", "--full-name", *top))
            files = {path: about.split()[1] for about, path in lines if about.startswith((FILE, PROGRAM))}
            self.clean = {path: oid for path, oid in files.items() if path not in dirty}
        return self.clean

    def ignored(self) -> Iterator[str]:
        """Ignored files that manifests may read; nothing hidden."""
        command = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", ".")
        for path in self.repo.records(*command):
            if path.lower().endswith(FORMATS) and not any(part.startswith(".") for part in PurePosixPath(path).parts):
                yield path

    def _warn(self, entry: TreeEntry, why: str) -> None:
        file = os.fsencode(os.path.relpath(entry.path, self.repo.prefix or ".")).decode("utf-8", "replace")
        message = f"at {self.name} this file cannot be read: {why}"
        self.found.append(Diagnostic(severity=Severity.WARNING, code="base-incomplete", message=message, file=file))


def load_revision(files: RevisionFiles, load: Callable[[RevisionFiles], Project]) -> Project:
    """The project of a revision, with all files that its manifests may read."""
    files.bring_project()
    project = load(files)
    folders = (project.files / name for name in project.data_folders)
    files.bring_outside((*project.manifests, *project.policy_paths, *folders))
    return project


def _is_inside(path: str) -> bool:
    """Whether a path of a tree, which anybody may have forged, stays in the folder."""
    return not {"..", ".", "", ".git"}.intersection(PurePosixPath(path).parts) and not path.startswith("/")


def _is_there(path: Path) -> bool:
    """Whether it is a regular file; of a sparse checkout not every file is there."""
    return path.is_file() and not path.is_symlink()


def _place(source: Path, target: Path) -> None:
    """Link a file, or copy it where that is not possible."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(source, target)


def _why(answer: subprocess.CompletedProcess[bytes]) -> str:
    """The first line of Git's own words."""
    lines = answer.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit {answer.returncode}"
