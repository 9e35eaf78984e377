"""Bring the files of a Git revision into a temporary folder, from Git's objects: nothing is checked out.

Files equal to those of the work tree are linked or copied, so that they are the same as after a checkout (Git LFS, line
endings). All other files are written from Git's objects, those in Git LFS from its local store. The repository is never
written to: a merge and its objects live in the temporary folder.
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
FETCH_ALL = "fetch the full history first (`fetch-depth: 0` for actions/checkout, `GIT_DEPTH: 0` for GitLab)"
FILE, PROGRAM, LINK, SUBMODULE, GONE = "100644", "100755", "120000", "160000", "000000"
FORMATS = (".yaml", ".yml", ".json", ".j2", ".csv", ".tsv", ".jsonl", ".ndjson", ".txt", ".db", ".sqlite")
"""Suffixes of the Git-ignored files that can be manifests or data of manifests."""
_POINTER = re.compile(rb"version https://git-lfs[.]github[.]com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n")
NOTHING: Mapping[str, str] = {}
_MERGER = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "syncengine"), ("EMAIL", "syncengine@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}
"""The author of the temporary commit that a merge of the work tree needs."""


class TreeEntry(NamedTuple):
    """One file of a Git tree, as `git ls-tree` lists it; the mode `000000` marks a deleted file."""

    mode: str
    oid: str
    path: str


@dataclass(frozen=True, slots=True)
class Repository:
    """The Git repository that contains the folder `root`; `prefix` is the path from the repository's `top` to `root`.

    New objects go to the folder `objects`. `option` is the command-line option by which the user names a revision.
    """

    root: Path
    top: Path
    prefix: str
    objects: Path
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    option: str = "--base"

    def commit(self, revision: str) -> str:
        """Return the id of the commit that `revision` names. Raise `Usage` when there is none."""
        name = f"{revision}^{{commit}}"
        answer = None if revision.startswith("-") else self.ask("rev-parse", "--verify", "--quiet", name)
        if answer is None or answer.returncode != 0:
            shallow = "shallow " if self.is_shallow else ""
            raise Usage(
                f"this {shallow}clone has no commit {revision}: {FETCH_ALL}, or choose another with {self.option}"
            )
        return answer.stdout.decode().strip()

    @property
    def is_shallow(self) -> bool:
        return self._text("rev-parse", "--is-shallow-repository").strip() == "true"

    @property
    def is_clean(self) -> bool:
        """Whether the project's folder has no uncommitted changes."""
        return not self._text("status", "--porcelain", "--", ".")

    def merged(self, commit: str, name: str) -> tuple[str, list[Diagnostic]]:
        """Return the tree from merging `commit` into HEAD and the work tree's changes, with warnings about conflicts.

        Conflicts outside the project's folder are warnings. Raise `Problems` for conflicts inside it.
        """
        ours = "HEAD" if self.is_clean else self._of_work_tree()
        if self.ask("merge-base", ours, commit).returncode != 0:
            raise Usage(f"HEAD and {name} have no common ancestor in this clone: {FETCH_ALL}")
        answer = self.ask("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, commit)
        if answer.returncode not in (0, 1):
            why = "Git 2.38 or newer is required" if answer.returncode == 129 else _why(answer)
            raise Usage(f"HEAD does not contain {name} and cannot be merged with it ({why}): merge {name} first")
        tree, *files = answer.stdout.decode("utf-8", "surrogateescape").split("\0")
        found = [self._conflict(file, name) for file in dict.fromkeys(filter(None, files))]
        if any(each.severity is Severity.ERROR for each in found):
            raise Problems(found)
        return tree, found

    def folder_of(self, tree: str) -> str:
        """Return the tree of the project's folder within a tree of the repository."""
        return self._text("rev-parse", "--verify", f"{tree}:{self.prefix}").strip()

    def _conflict(self, file: str, name: str) -> Diagnostic:
        inside = file.startswith(self.prefix)
        cure = "merge them first; until then no plan is reliable" if inside else "it is outside the project's folder"
        return Diagnostic(
            severity=Severity.ERROR if inside else Severity.WARNING,
            code="merge-conflict",
            message=f"HEAD and {name} both changed this file, and Git cannot merge it: {cure}",
            file=os.fsencode(os.path.relpath(file, self.prefix or ".")).decode("utf-8", "replace"),
        )

    def _of_work_tree(self) -> str:
        """Return a commit of the work tree, without ignored files. The commit leaves no trace in the repository."""
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
            return subprocess.run(  # noqa: S603 - fixed words, ids from Git, and a revision that begins with no dash
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
        """Return the NUL-terminated records of the output of a Git command."""
        return [each for each in self._text(*arguments).split("\0") if each]

    def blobs(self, oids: Iterable[str]) -> Iterator[bytes]:
        """Yield the contents of objects, in the order of `oids`."""
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
    """Open the Git repository of a project's folder. Raise `Usage`, which names `option`, when there is none."""
    with TemporaryDirectory(prefix="syncengine-") as folder:
        objects = Path(folder).resolve()
        repo = Repository(root, root, "", objects)
        answer = repo.ask("rev-parse", "--show-toplevel", "--show-prefix", "--git-path", "objects")
        if answer.returncode != 0:
            raise Usage(f"{option} needs Git, and {root} is not in a repository that Git can read: {_why(answer)}")
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
    """The files of a commit or tree, brought into the folder `to` on demand.

    `found` collects warnings about unavailable files.
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
        """Bring all files of the project's folder, and Git-ignored ones, which are equal on both sides of a diff."""
        self.checkout.folder.mkdir(parents=True, exist_ok=True)
        self.bring(self.repo.prefix or ".")
        for path in self.ignored():
            source, target = self.repo.root / path, self.checkout.folder / path
            if _is_there(source) and not target.exists():
                _place(source, target)

    def bring(self, path: str) -> None:
        """Bring a file or folder and the targets of links in it; `path` is relative to the repository's top."""
        waiting = [path]
        while waiting:
            place = os.path.normpath(waiting.pop())
            if place in self.met or place.startswith(".."):
                continue
            self.met.add(place)
            waiting += self._brought([] if place == "." else [place])

    def bring_outside(self, paths: Iterable[Path]) -> None:
        """Bring those of `paths` that lie in the checkout but outside the project's folder."""
        for path in paths:
            relative = os.path.relpath(os.path.normpath(path), self.to)
            if not relative.startswith("..") and not os.path.normpath(path).startswith(str(self.checkout.folder)):
                self.bring(relative)

    def follow(self, revision: str, changes: Iterable[TreeEntry], contents: Mapping[str, bytes]) -> None:
        """Turn the files into those of `revision`, which differs by `changes`; `contents` are blobs by object id."""
        self.tree = self.name = revision
        entries = [each for each in changes if _is_inside(each.path)]
        for entry in entries:
            self._drop(self.to / entry.path)
        for link in self._put([each for each in entries if each.mode != GONE], contents):
            self.bring(link)

    def _drop(self, target: Path) -> None:
        """Delete a file and the folders that this leaves empty. Overwriting could alter a hard-linked work tree."""
        with suppress(OSError):
            target.unlink()
            for folder in target.relative_to(self.to).parents[:-1]:
                (self.to / folder).rmdir()

    def _brought(self, places: list[str]) -> list[str]:
        return self._put([each for each in self._entries(places) if not (self.to / each.path).exists()])

    def _put(self, entries: Iterable[TreeEntry], contents: Mapping[str, bytes] | None = None) -> list[str]:
        """Write files from the work tree or from Git's objects, and return the targets of links among them."""
        clean = self._clean()
        others: list[TreeEntry] = []
        for entry in entries:
            if entry.mode == SUBMODULE:
                self._warn(entry, "it is a submodule, whose files are not compared")
            elif entry.mode != LINK and clean.get(entry.path) == entry.oid and _is_there(self.repo.top / entry.path):
                _place(self.repo.top / entry.path, self.to / entry.path)
            else:
                others.append(entry)
        return self._written(sorted(others, key=lambda each: each.mode == LINK), contents)

    def _written(self, entries: list[TreeEntry], contents: Mapping[str, bytes] | None) -> list[str]:
        """Write files from objects, links last so that nothing is written through a link; return the links' targets."""
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
        """Return the content that a Git LFS pointer refers to, or `content` itself when this clone lacks it."""
        if len(content) > 1024 or (pointer := _POINTER.match(content)) is None:
            return content
        oid = pointer[1].decode()
        stored = self.repo.ask("rev-parse", "--git-path", f"lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}").stdout
        with suppress(OSError):
            return (self.repo.root / os.fsdecode(stored).strip()).read_bytes()
        self._warn(entry, f"this clone lacks its content, which is in Git LFS: run `git lfs fetch origin {self.name}`")
        return content

    def _entries(self, places: list[str]) -> Iterator[TreeEntry]:
        for line in self.repo.records("ls-tree", "-r", "-z", "--full-tree", self.tree, "--", *places):
            about, path = line.split("\t", 1)
            mode, _, oid = about.split()
            if _is_inside(path):
                yield TreeEntry(mode, oid, path)

    def _clean(self) -> dict[str, str]:
        """Return the object id of each work tree file that is equal to its version in the index."""
        if self.clean is None:
            top = (":/",)
            dirty = set(self.repo.records("diff-files", "--name-only", "-z", "--", *top))
            lines = (line.split("\t", 1) for line in self.repo.records("ls-files", "-s", "-z", "--full-name", *top))
            files = {path: about.split()[1] for about, path in lines if about.startswith((FILE, PROGRAM))}
            self.clean = {path: oid for path, oid in files.items() if path not in dirty}
        return self.clean

    def ignored(self) -> Iterator[str]:
        """Yield Git-ignored files that manifests may read, except hidden ones."""
        command = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", ".")
        for path in self.repo.records(*command):
            if path.lower().endswith(FORMATS) and not any(part.startswith(".") for part in PurePosixPath(path).parts):
                yield path

    def _warn(self, entry: TreeEntry, why: str) -> None:
        file = os.fsencode(os.path.relpath(entry.path, self.repo.prefix or ".")).decode("utf-8", "replace")
        message = f"cannot read this file at {self.name}: {why}"
        self.found.append(Diagnostic(severity=Severity.WARNING, code="base-incomplete", message=message, file=file))


def load_revision(files: RevisionFiles, load: Callable[[RevisionFiles], Project]) -> Project:
    """Load the project of a revision, and bring all files that its manifests may read."""
    files.bring_project()
    project = load(files)
    folders = (project.files / name for name in project.data_folders)
    files.bring_outside((*project.manifests, *project.policy_paths, *folders))
    return project


def _is_inside(path: str) -> bool:
    """Return whether a path from a tree, which can be forged, stays inside the folder."""
    return not {"..", ".", "", ".git"}.intersection(PurePosixPath(path).parts) and not path.startswith("/")


def _is_there(path: Path) -> bool:
    """Return whether `path` is a regular file; a sparse checkout lacks some files."""
    return path.is_file() and not path.is_symlink()


def _place(source: Path, target: Path) -> None:
    """Link a file, or copy it where linking fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(source, target)


def _why(answer: subprocess.CompletedProcess[bytes]) -> str:
    """Return the first line of Git's error output."""
    lines = answer.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit {answer.returncode}"
