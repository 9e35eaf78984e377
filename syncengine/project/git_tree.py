"""Bring the files of a Git revision into a temporary folder, as a checkout of that revision would write them.

Git itself converts them (attributes, filters, encodings, line ends), by an index and a work tree of our own. What the
repository has of its own, its index above all, is neither read nor written: a merge and its objects live in the
temporary folder. Files in Git LFS that no filter brought are read from its local store.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from syncengine.content import sha256_of
from syncengine.document.text import MERGE_CONFLICT, as_word
from syncengine.errors import Diagnostic, Problems, Severity, SyncengineError, Usage
from syncengine.project import git_environment
from syncengine.project.git import (
    FILE,
    PROGRAM,
    SUBMODULE,
    TreeEntry,
    WorkTree,
    compare,
    entries_of,
    quoted,
)
from syncengine.project.model import Checkout, Project

FETCH_ALL = "fetch the full history first (`fetch-depth: 0` for actions/checkout, `GIT_DEPTH: 0` for GitLab)"
FORMATS = (".yaml", ".yml", ".json", ".j2", ".csv", ".tsv", ".jsonl", ".ndjson", ".txt", ".db", ".sqlite")
"""Suffixes of the Git-ignored files that can be manifests or data of manifests."""
_POINTER = re.compile(rb"version https://git-lfs[.]github[.]com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n")
NO_TEMPORARY = "temporary-folder"
NOTHING: Mapping[str, str] = {}


class GitFailed(SyncengineError):
    """The error of a Git command that failed although all that it was asked for should be there."""

    code = "git"


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
    git_dir: Path = Path()

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
        return self.text("rev-parse", "--is-shallow-repository").strip() == "true"

    def merged(self, commit: str, name: str, places: Collection[str] = ()) -> tuple[str, list[Diagnostic]]:
        """Return the tree from merging `commit` into HEAD and the work tree's changes, with warnings about conflicts.

        The changes are those in the project's folder and at `places`, relative to the repository's top. Conflicts
        outside the project's folder are warnings. Raise `Problems` for conflicts inside it.
        """
        work_tree = compare(self.top, "HEAD", [os.path.normpath(self.prefix), *places])
        if work_tree is None:
            raise GitFailed("Git cannot compare the work tree with HEAD: run `git status` to see why")
        ours = "HEAD" if work_tree.is_clean else self._commit_of(work_tree)
        if self.ask("merge-base", ours, commit).returncode != 0:
            raise Usage(f"HEAD and {name} have no common ancestor in this clone: {FETCH_ALL}")
        answer = self.ask("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, commit)
        if answer.returncode not in (0, 1):
            why = "Git 2.38 or newer is required" if answer.returncode == 129 else _why(answer)
            raise Usage(f"HEAD does not contain {name} and cannot be merged with it ({why}): merge {name} first")
        tree, *files = answer.stdout.decode("utf-8", "surrogateescape").split("\0")
        found = []
        for file in dict.fromkeys(filter(None, files)):
            inside = file.startswith(self.prefix)
            cure = (
                "merge them first; until then no plan is reliable" if inside else "it is outside the project's folder"
            )
            conflict = Diagnostic(
                severity=Severity.ERROR if inside else Severity.WARNING,
                code=MERGE_CONFLICT,
                message=f"HEAD and {name} both changed this file, and Git cannot merge it: {cure}",
                file=os.fsencode(os.path.relpath(file, self.prefix or ".")).decode("utf-8", "replace"),
            )
            found.append(conflict)
        if any(each.severity is Severity.ERROR for each in found):
            raise Problems(found)
        return tree, found

    def folder_of(self, tree: str) -> str:
        """Return the tree of the project's folder within a tree of the repository."""
        return self.text("rev-parse", "--verify", f"{tree}:{self.prefix}").strip()

    def _commit_of(self, work_tree: WorkTree) -> str:
        """Return a commit of HEAD with the changes of the work tree. It leaves no trace in the repository."""
        own = {**git_environment.author_of("2000-01-01T00:00:00Z"), "GIT_INDEX_FILE": str(self.objects / "index")}
        changed = [each.path for each in work_tree.changed if each.mode != SUBMODULE or each.oid]
        added = [path for path in work_tree.new if not path.endswith("/")]  # else a repository in this one
        paths = [self.top / path for path in (*work_tree.deleted, *changed, *added)]
        # `git add` fails for a pipe or a device.
        names = (each for each in paths if each.is_symlink() or each.is_file() or each.is_dir() or not each.exists())
        lines = "".join(f"{os.path.relpath(each, self.top)}\0" for each in names)
        self.text("read-tree", "HEAD", environ=own)
        if lines:  # without a path, Git would add whatever is there
            command = ("add", "--all", "--no-ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
            given = lines.encode("utf-8", "surrogateescape")
            self.text(*command, environ={**own, **git_environment.LITERALLY}, standard_input=given, at=self.top)
        tree = self.text("write-tree", environ=own).strip()
        return self.text("commit-tree", tree, "-p", "HEAD", "-m", "work tree", environ=own).strip()

    def ask(
        self,
        *arguments: str,
        standard_input: bytes = b"",
        environ: Mapping[str, str] = NOTHING,
        at: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run Git in the project's folder, or `at` another one. Raise `GitFailed` when it does not answer."""
        own = {**self.environ, **environ}
        try:
            return git_environment.run(
                at or self.root, arguments, seconds=git_environment.SECONDS, standard_input=standard_input, environ=own
            )
        except FileNotFoundError:
            raise GitFailed(f"{self.option} needs Git, which is not installed") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitFailed(f"git {arguments[0]} did not answer: {error}") from None

    def text(
        self,
        *arguments: str,
        standard_input: bytes = b"",
        environ: Mapping[str, str] = NOTHING,
        at: Path | None = None,
    ) -> str:
        answer = self.ask(*arguments, standard_input=standard_input, environ=environ, at=at)
        if answer.returncode != 0:
            where = f"its temporary folder is in {self.objects.parent}"
            raise GitFailed(f"git {arguments[0]} failed: {_why(answer)} ({where})")
        return answer.stdout.decode("utf-8", "surrogateescape")

    def records(self, *arguments: str) -> list[str]:
        """Return the NUL-terminated records of the output of a Git command."""
        return [each for each in self.text(*arguments).split("\0") if each]


@contextmanager
def repository(root: Path, option: str = "--base") -> Iterator[Repository]:
    """Open the Git repository of a project's folder. Raise `Usage`, which names `option`, when there is none."""
    if "\n" in str(root):
        raise Usage(f"{option} cannot be used in a folder with a line break in its path: rename the folder")
    with _temporary_folder(option) as objects:
        repo = Repository(root, root, "", objects, option=option)
        arguments = ("rev-parse", "--show-toplevel", "--show-prefix", "--git-path", "objects", "--absolute-git-dir")
        answer = repo.ask(*arguments)
        if answer.returncode != 0:
            errors = answer.stderr.decode("utf-8", "replace")
            cure = f" ({git_environment.advice(errors)})" if git_environment.is_in_repository(root) else ""
            why = f"{root} is not in a repository that Git can read: {_why(answer)}{cure}"
            raise Usage(f"{option} needs Git, and {why}")
        top, prefix, store, git_dir = answer.stdout.decode("utf-8", "surrogateescape").split("\n")[:4]
        further = git_environment.of_folder(root).get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "")
        others = [quoted(str((root / store).resolve())), further]  # a path may contain a colon
        environ = {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(filter(None, others)),
        }
        yield Repository(root, Path(top), prefix, objects, environ, option, Path(git_dir))


@contextmanager
def _temporary_folder(option: str) -> Iterator[Path]:
    """Yield a new folder that is deleted in the end. Raise `SyncengineError` when it cannot be made or is full."""
    cure = "name one that has room with the environment variable TMPDIR"
    try:
        folder = TemporaryDirectory(prefix="syncengine-", ignore_cleanup_errors=True)
    except OSError:
        message = f"{option} needs a temporary folder, and none can be written to: {cure}"
        raise SyncengineError(message, code=NO_TEMPORARY) from None
    with folder as name:
        try:
            yield Path(name).resolve()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                raise
            message = f"the temporary folder {Path(name).parent} cannot be written to ({error.strerror}): {cure}"
            raise SyncengineError(message, code=NO_TEMPORARY) from None


def index_lines(entries: Iterable[TreeEntry]) -> bytes:
    """Return entries as `git update-index -z --index-info` reads them."""
    return "".join(f"{each.mode} {each.oid}\t{each.path}\0" for each in entries).encode("utf-8", "surrogateescape")


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

    @property
    def checkout(self) -> Checkout:
        return Checkout(self.to, self.to / self.repo.prefix)

    def bring_project(self) -> None:
        """Bring all files of the project's folder, and Git-ignored ones, which are equal on both sides of a diff."""
        self.checkout.folder.mkdir(parents=True, exist_ok=True)
        self.bring(self.repo.prefix or ".")
        for path in self.ignored():
            source, target = self.repo.root / path, self.checkout.folder / path
            if source.is_file() and not source.is_symlink() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    os.link(source, target, follow_symlinks=False)
                except OSError:  # on another file system, or one without links
                    shutil.copyfile(source, target)

    def bring(self, path: str) -> None:
        """Bring a file or folder and the targets of links in it; `path` is relative to the repository's top."""
        waiting = [path]
        while waiting:
            place = os.path.normpath(waiting.pop())
            if place in self.met or place.startswith(".."):
                continue
            self.met.add(place)
            entries = [each for each in self._entries([place]) if not (self.to / each.path).exists()]
            files = [each for each in entries if each.mode != SUBMODULE]
            # A checkout converts files by the attributes in all folders above them.
            folders = {str(folder) for each in files for folder in PurePosixPath(each.path).parents}
            names = sorted(os.path.normpath(f"{folder}/.gitattributes") for folder in folders)
            missing = [name for name in names if not (self.to / name).exists()]
            attributes = [each for each in self._entries(missing) if each.mode in (FILE, PROGRAM)] if missing else []
            self.to.mkdir(parents=True, exist_ok=True)
            self._check_out(files, attributes)
            for entry in entries:
                written = self.to / entry.path
                if entry.mode == SUBMODULE:
                    self._bring_submodule(entry)
                elif not written.is_symlink():
                    self._complete(written, entry)
                else:
                    link = written.readlink()
                    target = os.path.normpath(self.repo.top / PurePosixPath(entry.path).parent / link)
                    is_inside = Path(target).is_relative_to(self.repo.top)
                    inside = os.path.relpath(target, self.repo.top)
                    if is_inside:
                        waiting.append(inside)
                    if not is_inside or link.is_absolute():  # it is made to lead to the same place from here
                        written.unlink()
                        written.symlink_to(self.to / inside if is_inside else target)

    def bring_outside(self, paths: Iterable[Path]) -> None:
        """Bring those of `paths` that lie in the checkout but outside the project's folder."""
        for path in paths:
            relative = os.path.relpath(os.path.normpath(path), self.to)
            if not relative.startswith("..") and not Path(os.path.normpath(path)).is_relative_to(self.checkout.folder):
                self.bring(relative)

    def _bring_submodule(self, entry: TreeEntry) -> None:
        """Write the files of a submodule from its own clone in the work tree, or warn when that lacks the commit."""
        clone = self.repo.top / entry.path
        if not (clone / ".git").exists():
            self._warn(entry, "it is a submodule that is not checked out here: run `git submodule update --init`")
            return
        with repository(clone, self.repo.option) as inner:
            if inner.ask("cat-file", "-e", f"{entry.oid}^{{commit}}").returncode:
                self._warn(entry, "its clone lacks that commit of the submodule: run `git submodule update`")
                return
            RevisionFiles(inner, entry.oid, self.name, self.to / entry.path, self.found).bring(".")

    def _check_out(self, entries: Sequence[TreeEntry], attributes: Sequence[TreeEntry]) -> None:
        """Write files by Git; what a filter refuses is written as it is stored, with a warning."""
        if not entries:
            return
        own = {"GIT_DIR": str(self.repo.git_dir), "GIT_WORK_TREE": str(self.to)}
        own["GIT_INDEX_FILE"] = f"{self.to}.index"
        Path(own["GIT_INDEX_FILE"]).unlink(missing_ok=True)
        lines = index_lines([*attributes, *entries])
        self.repo.text("update-index", "-z", "--index-info", environ=own, at=self.to, standard_input=lines)
        names = "".join(f"{each.path}\0" for each in entries).encode("utf-8", "surrogateescape")
        command = ("checkout-index", "-f", "-q", "-z", "--stdin")
        answer = self.repo.ask(*command, environ=own, at=self.to, standard_input=names)
        Path(own["GIT_INDEX_FILE"]).unlink(missing_ok=True)
        if answer.returncode == 0:
            return
        if len(entries) > 1:
            middle = len(entries) // 2  # all of them again: some were written in part
            self._check_out(entries[:middle], attributes)
            self._check_out(entries[middle:], attributes)
            return
        (entry,) = entries
        stored = self.repo.ask("cat-file", "blob", entry.oid)
        if stored.returncode != 0:
            raise Usage(f"the object {entry.oid} is not in this clone: {FETCH_ALL}")
        target = self.to / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_bytes(stored.stdout)
        if _POINTER.match(stored.stdout) is None:
            self._warn(entry, f"a checkout of it fails, so it is read as it is stored ({_why(answer)})")

    def _complete(self, path: Path, entry: TreeEntry) -> None:
        """Replace a Git LFS pointer by the content that it stands for, or warn when this clone lacks it."""
        if path.stat().st_size > 1024 or (pointer := _POINTER.match(path.read_bytes())) is None:
            return
        oid = pointer[1].decode()
        stored = self.repo.ask("rev-parse", "--git-path", f"lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}").stdout
        for place in (self.repo.root / os.fsdecode(stored).strip(), self.repo.top / entry.path):
            with suppress(OSError):
                content = place.read_bytes()
                if sha256_of(content) == oid:
                    path.unlink()
                    path.write_bytes(content)
                    return
        fetch = f"git lfs fetch origin {as_word(self.name)}"
        self._warn(entry, f"this clone lacks its content, which is in Git LFS: run `{fetch}`")

    def _entries(self, places: Sequence[str]) -> list[TreeEntry]:
        found = entries_of(self.repo.top, self.tree, places, self.repo.environ)
        if found is None:
            raise GitFailed(f"Git cannot list the files of {self.name}: {FETCH_ALL}")
        # A tree can be forged: no path of it may lead out of the folder, or into that of Git.
        unsafe = {"..", ".", "", ".git"}
        return [
            each
            for each in found
            if unsafe.isdisjoint(PurePosixPath(each.path).parts) and not each.path.startswith("/")
        ]

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


def places_outside(project: Project, repo: Repository) -> Iterator[str]:
    """Yield the manifests, rules and data that are in the repository, but not in the project's folder.

    The places are relative to the repository's top.
    """
    folders = (project.files / name for name in project.data_folders)
    top = project.checkout.top if project.checkout else repo.top
    for path in (*project.manifests, *project.policy_paths, *folders):
        place = os.path.relpath(path.resolve(), top)
        if not place.startswith("..") and not f"{place}/".startswith(repo.prefix):
            yield place


def load_revision(files: RevisionFiles, load: Callable[[RevisionFiles], Project]) -> Project:
    """Load the project of a revision, and bring all files that its manifests may read."""
    files.bring_project()
    project = load(files)
    folders = (project.files / name for name in project.data_folders)
    files.bring_outside((*project.manifests, *project.policy_paths, *folders))
    return project


def _why(answer: subprocess.CompletedProcess[bytes]) -> str:
    """Return the first line of Git's error output."""
    lines = answer.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit {answer.returncode}"
