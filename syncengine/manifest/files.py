"""Paths → manifest files, each once and in a fixed order, or problems. Reads folders, then files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

from syncengine.content import sha256_at
from syncengine.document.diagnostics import Collector
from syncengine.document.reader import MAX_BYTES
from syncengine.errors import Diagnostic, Severity
from syncengine.manifest.context import CONFIDENTIAL, LoadContext, is_hidden
from syncengine.manifest.lints import UNREAD
from syncengine.project.model import FILE_NAME, MANIFESTS

SUFFIXES = (".yaml", ".yml", ".json")
TEMPLATE_SUFFIXES = (".yaml.j2", ".yml.j2", ".json.j2")

_MEANT = re.compile(r"\.(ya?ml|json)[^a-z0-9]|\.(yam|ymal|yamel|csv|tsv|xlsx?|ods)$", re.IGNORECASE)
"""Names of files that were probably meant to be manifests, such as `matters.yaml.txt`, or to be data of one."""

_PATH, _END = rb"(?:\}\})?[^\n\"'(){}\[\],:=]*", rb"(?![\w.~-])"
"""What may stand before a file's name in the same path, and what cannot follow it."""

GENERATES = b"generate"
"""The key of the section that generates resources from data."""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A manifest file. `name` is its path relative to the project's folder."""

    path: Path
    name: str
    context: LoadContext | None = field(default=None, compare=False, repr=False, kw_only=True)

    def content(self, findings: Collector) -> bytes | None:
        """Return the file's bytes, cut off beyond `MAX_BYTES`, or report a diagnostic and return `None`."""
        try:
            with self.path.open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except OSError as error:
            findings.at("unreadable-file", None, None, f"the file cannot be read: {error.strerror or error}")
            return None

    def sha256(self) -> str:
        """Return the digest of the file's bytes, or an empty string when it cannot be read."""
        return sha256_at(self.path)

    @property
    def is_template(self) -> bool:
        """Whether the whole file is a text template."""
        return self.name.lower().endswith(TEMPLATE_SUFFIXES)

    def generates(self) -> bool:
        """Return whether the file may depend on more than its own bytes: it is a template or mentions `generate`."""
        return self.is_template or GENERATES in (self.content(Collector(self.name)) or b"")

    def size(self) -> int:
        """Return the file's size in bytes, or 0 when it is unknown."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


def find(
    paths: Sequence[Path], root: Path, context: LoadContext | None = None, secrets: Collection[Path] = frozenset()
) -> Search:
    """Return the search for manifests at and below `paths`, in a project in the folder `root` (docs/manifests.md).

    A file in `secrets` is reported and not read, since messages show the content of manifests.
    """
    search = Search(root, context, frozenset(map(str, secrets)))
    for path in paths:
        search.start(path)
    return search


class Search:
    """A search for manifests, with the `files` and `problems` found so far."""

    def __init__(self, root: Path, context: LoadContext | None = None, secrets: Collection[str] = ()) -> None:
        self.root, self.context, self.secrets = root, context, secrets
        self.files: list[ManifestFile] = []
        self.problems: list[Diagnostic] = []
        self.met: set[str] = set()
        """The real paths that were visited, without links."""
        self.allowed: tuple[Path, ...] = ()
        """The folders that links may lead to."""
        self.suspects: list[str] = []
        self._names: dict[str, str] = {}
        """The names of folders in messages."""

    def unread(self) -> Iterator[Diagnostic]:
        """Yield a warning for each file that looks like a manifest or its data, and that no manifest mentions."""
        for path in sorted(self.suspects):
            if not any(_mentions(file, path) for file in self.files):
                findings = Collector(self._name(path))
                message = "this file is not read: the name of a manifest ends in .yaml, .yml or .json"
                findings.at(UNREAD, None, None, message, severity=Severity.WARNING)
                yield from findings.found

    def start(self, base: Path) -> None:
        """Find the manifests at and below a path, in the order of their paths."""
        root, inside = self.root.resolve(), base.absolute().is_relative_to(self.root.absolute())
        self.allowed = (root,) if inside else (root, base.resolve())
        if not base.exists():
            self._problem(
                base, "missing-manifests", "the file or folder does not exist: create it, or correct the path"
            )
        elif base.is_dir():
            self._folder(base)
        elif base.name.lower().endswith(SUFFIXES + TEMPLATE_SUFFIXES):
            self._file(base, os.path.realpath(base.parent))
        else:
            self._problem(base, "not-a-manifest", "not a manifest: its name must end in .yaml, .yml or .json")

    def _folder(self, base: Path) -> None:
        """Find the manifests below a folder, visiting each real folder once."""
        waiting: list[tuple[tuple[str, ...], Path | os.DirEntry[str]]] = [((), base)]
        found: list[tuple[tuple[str, ...], os.DirEntry[str], str]] = []
        while waiting:
            parts, folder = waiting.pop()
            real = os.path.realpath(folder)
            if real in self.met or (folder.is_symlink() and not self._stays_inside(os.fspath(folder), real)):
                continue
            self.met.add(real)
            try:
                with os.scandir(folder) as children:
                    entries = [entry for entry in children if not entry.name.startswith(".")]
            except OSError as error:
                self._problem(folder, "unreadable-file", f"the folder cannot be read: {error.strerror or error}")
                continue
            for entry in entries:
                if _is(entry.is_dir):
                    waiting.append(((*parts, entry.name), entry))
                elif entry.name.lower().endswith(SUFFIXES + TEMPLATE_SUFFIXES):
                    found.append(((*parts, entry.name), entry, real))
                elif _MEANT.search(entry.name):
                    self.suspects.append(entry.path)
        for _, entry, real in sorted(found, key=itemgetter(0)):
            self._file(entry, real)

    def _file(self, entry: Path | os.DirEntry[str], folder: str) -> None:
        """Add a file of the real `folder`. Only links cost another call of the system."""
        path, is_link = os.fspath(entry), entry.is_symlink()
        real = os.path.realpath(path) if is_link else f"{folder}{os.sep}{entry.name}"
        if not _is(entry.is_file):
            exists = Path(path).exists()
            message = "this is not a regular file" if exists else "the link leads to no file"
            self._problem(path, "unreadable-file", message)
        elif real in self.secrets:
            self._problem(path, "secret-file", CONFIDENTIAL)
        elif (not is_link or self._stays_inside(path, real)) and real not in self.met:
            self.met.add(real)
            self.files.append(ManifestFile(Path(path), self._name(path), context=self.context))

    def _stays_inside(self, path: str, real: str) -> bool:
        """Return whether a link leads to where manifests may be, or report where else."""
        inside = next((folder for folder in self.allowed if Path(real).is_relative_to(folder)), None)
        if inside is None:
            self._problem(path, "outside-project", "the link leads outside the project's folder")
        elif any(map(is_hidden, Path(real).relative_to(inside).parts)):
            self._problem(path, "hidden-file", "the link leads to a hidden file or folder")
        else:
            return True
        return False

    def _problem(self, path: str | os.PathLike[str], code: str, message: str) -> None:
        Collector(self._name(path), self.problems).at(code, None, None, message)

    def _name(self, path: str | os.PathLike[str]) -> str:
        folder, name = os.path.split(path)
        if folder not in self._names:
            self._names[folder] = Path(os.path.relpath(folder or ".", self.root)).as_posix()
        relative = name if self._names[folder] == "." else f"{self._names[folder]}/{name}"
        return os.fsencode(relative).decode("utf-8", "replace")


def _mentions(file: ManifestFile, path: str) -> bool:
    """Return whether a manifest contains the path of a file, relative to the manifest's folder."""
    content = file.content(Collector(file.name)) or b""
    named = re.findall(_PATH + re.escape(os.fsencode(Path(path).name)) + _END, content)
    return any(
        path.endswith(mention[2:])
        if mention.startswith("}}")  # the result of a template is unknown here
        else os.path.normpath(file.path.parent / mention) == os.path.normpath(path)
        for mention in map(str.strip, map(os.fsdecode, named))
    )


def where_to_go(folder: Path) -> str:
    """Return a hint at a project around or below, else at `syncengine init`. It is empty when `folder` is a project."""
    if (folder / FILE_NAME).exists():
        return ""
    if folder.resolve().name == MANIFESTS:  # of a project without a project file
        return f"; the project is the folder around it: run this in `{os.path.relpath(folder.resolve().parent)}`"
    with suppress(OSError):
        project = next((file.parent for file in sorted(folder.glob(f"[!.]*/{FILE_NAME}"))), None)
        if project:
            return f"; for the project in {project.name}, add `-C {os.path.relpath(project)}`"
    return "; there is no project here: run `syncengine init` to create one"


def _is(question: Callable[[], bool]) -> bool:
    """Return the answer of `question`, or false when the system cannot tell, as for a cycle of links."""
    try:
        return question()
    except OSError:
        return False
