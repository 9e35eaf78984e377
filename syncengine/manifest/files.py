"""Paths → manifest files, each once and in a fixed order, or problems. Reads folders, then files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from syncengine.content import sha256_of_file
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
        try:
            with self.path.open("rb", buffering=0) as file:
                return sha256_of_file(file)
        except OSError:
            return ""

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


class _Entry(NamedTuple):
    """A file or folder, with the parts of its path below the start of the search, and its real path without links."""

    parts: tuple[str, ...]
    path: str
    real: str
    is_link: bool = False
    is_regular: bool = False

    @classmethod
    def at(cls, path: Path) -> _Entry:
        """Return the entry of the path at which a search begins."""
        return cls((), str(path), os.path.realpath(path), path.is_symlink(), _is(path.is_file))

    def below(self, entry: os.DirEntry[str]) -> _Entry:
        """Return an entry of this folder. Only links cost another system call."""
        is_link = entry.is_symlink()
        real = os.path.realpath(entry.path) if is_link else f"{self.real}{os.sep}{entry.name}"
        return _Entry((*self.parts, entry.name), entry.path, real, is_link, _is(entry.is_file))


@dataclass(slots=True)
class Search:
    """A search for manifests, with the `files` and `problems` found so far.

    `met` are the real paths visited, `names` the folders' names in messages, and `allowed` the folders that links may
    lead to.
    """

    root: Path
    context: LoadContext | None = None
    secrets: frozenset[str] = frozenset()
    files: list[ManifestFile] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    allowed: tuple[Path, ...] = ()
    suspects: list[str] = field(default_factory=list)

    def unread(self) -> Iterator[Diagnostic]:
        """Yield a warning for each file that looks like a manifest or its data, and that no manifest mentions."""
        for path in sorted(self.suspects):
            if not any(_mentions(file, path) for file in self.files):
                findings = Collector(self._name(path))
                message = "this file is not read: the name of a manifest ends in .yaml, .yml or .json"
                findings.at(UNREAD, None, None, message, severity=Severity.WARNING)
                yield from findings.found

    def start(self, base: Path) -> None:
        root, inside = self.root.resolve(), base.absolute().is_relative_to(self.root.absolute())
        self.allowed = (root,) if inside else (root, base.resolve())
        if not base.exists():
            message = f"the file or folder does not exist{where_to_go(self.root)}"
            self._problem(base, "missing-manifests", message)
        elif base.is_dir():
            if self._stays_inside(_Entry.at(base)):
                self._folder(base)
        elif base.name.lower().endswith(SUFFIXES + TEMPLATE_SUFFIXES):
            self._file(_Entry.at(base))
        else:
            self._problem(base, "not-a-manifest", "not a manifest: its name must end in .yaml, .yml or .json")

    def _folder(self, base: Path) -> None:
        for entry in sorted(self._below(base), key=attrgetter("parts")):
            self._file(entry)

    def _below(self, base: Path) -> Iterator[_Entry]:
        """Yield the entries below `base` with a manifest's suffix, visiting each real folder once."""
        waiting = [_Entry((), str(base), os.path.realpath(base))]
        while waiting:
            folder = waiting.pop()
            if folder.real in self.met:
                continue
            self.met.add(folder.real)
            for child in self._entries(folder.path):
                entry = folder.below(child)
                if _is(child.is_dir):
                    waiting.extend([entry] if self._stays_inside(entry) else [])
                elif child.name.lower().endswith(SUFFIXES + TEMPLATE_SUFFIXES):
                    yield entry
                elif _MEANT.search(child.name):
                    self.suspects.append(child.path)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as children:
                return [entry for entry in children if not entry.name.startswith(".")]
        except OSError as error:
            self._problem(folder, "unreadable-file", f"the folder cannot be read: {error.strerror or error}")
            return []

    def _file(self, entry: _Entry) -> None:
        if not entry.is_regular:
            exists = Path(entry.path).exists()
            message = "this is not a regular file" if exists else "the target of the link does not exist"
            self._problem(entry.path, "unreadable-file", message)
        elif entry.real in self.secrets:
            self._problem(entry.path, "secret-file", CONFIDENTIAL)
        elif self._stays_inside(entry) and entry.real not in self.met:
            self.met.add(entry.real)
            self.files.append(ManifestFile(Path(entry.path), self._name(entry.path), context=self.context))

    def _stays_inside(self, entry: _Entry) -> bool:
        if not entry.is_link:
            return True
        real = Path(entry.real)
        inside = next((folder for folder in self.allowed if real.is_relative_to(folder)), None)
        if inside is None:
            self._problem(entry.path, "outside-project", "the link leads outside the project's folder")
        elif any(map(is_hidden, real.relative_to(inside).parts)):
            self._problem(entry.path, "hidden-file", "the link leads to a hidden file or folder")
        else:
            return True
        return False

    def _problem(self, path: Path | str, code: str, message: str) -> None:
        findings = Collector(self._name(path))
        findings.at(code, None, None, message)
        self.problems.extend(findings.found)

    def _name(self, path: Path | str) -> str:
        folder, name = os.path.split(path)
        if folder not in self.names:
            self.names[folder] = Path(os.path.relpath(folder or ".", self.root)).as_posix()
        relative = name if self.names[folder] == "." else f"{self.names[folder]}/{name}"
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
