"""Paths → manifest files, each once and in a fixed order, or what is wrong with them. Reads folders, then files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from syncengine.document.findings import Findings
from syncengine.document.reader import MAX_BYTES
from syncengine.errors import Diagnostic
from syncengine.manifest.given import Given

SUFFIXES = (".yaml", ".yml", ".json")
TEMPLATE_SUFFIXES = (".yaml.j2", ".yml.j2", ".json.j2")

GENERATES = b"generate"
"""What a manifest holds that makes resources of data."""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A file that holds manifests; `name` is relative to the project's folder."""

    path: Path
    name: str
    given: Given | None = field(default=None, compare=False, repr=False, kw_only=True)

    def content(self, findings: Findings) -> bytes | None:
        """Its bytes, and not more of them than shows that it is too large; why not goes to the findings."""
        try:
            with self.path.open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except OSError as error:
            findings.at("unreadable-file", None, None, f"the file cannot be read: {error.strerror or error}")
            return None

    @property
    def is_template(self) -> bool:
        """Whether all of it is a text template."""
        return self.name.lower().endswith(TEMPLATE_SUFFIXES)

    def generates(self) -> bool:
        """Whether it depends on more than its own bytes; true as well where that only seems so."""
        return self.is_template or GENERATES in (self.content(Findings(self.name)) or b"")

    def size(self) -> int:
        """In bytes; 0 if that cannot be said."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


@dataclass(frozen=True, slots=True)
class Found:
    files: tuple[ManifestFile, ...]
    problems: tuple[Diagnostic, ...] = ()


def find(paths: Sequence[Path], root: Path, given: Given | None = None) -> Found:
    """The manifests at and below `paths`, of a project in the folder `root` (product.md §2)."""
    search = _Search(root, given)
    for path in paths:
        search.start(path)
    return Found(tuple(search.files), tuple(search.problems))


@dataclass(slots=True)
class _Search:
    root: Path
    given: Given | None = None
    files: list[ManifestFile] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    met: set[Path] = field(default_factory=set)
    allowed: tuple[Path, ...] = ()

    def start(self, base: Path) -> None:
        root, inside = self.root.resolve(), base.absolute().is_relative_to(self.root.absolute())
        self.allowed = (root,) if inside else (root, base.resolve())
        if not base.exists():
            self._problem(base, "missing-manifests", "there is no such file or folder")
        elif base.is_dir():
            if self._stays_inside(base):
                self._folder(base)
        elif base.name.endswith(SUFFIXES + TEMPLATE_SUFFIXES):
            self._file(base)
        else:
            self._problem(base, "not-a-manifest", f"a manifest's name ends in {', '.join(SUFFIXES)}")

    def _folder(self, base: Path) -> None:
        for path in sorted(self._below(base), key=lambda p: p.relative_to(base).parts):
            self._file(path)

    def _below(self, base: Path) -> Iterator[Path]:
        """Everything below `base` that is named like a manifest, without following a link in a circle."""
        waiting = [base]
        while waiting:
            folder = waiting.pop()
            if (real := folder.resolve()) in self.met:
                continue
            self.met.add(real)
            for path in self._entries(folder):
                if path.is_dir():
                    waiting.extend([path] if self._stays_inside(path) else [])
                elif path.name.lower().endswith(SUFFIXES + TEMPLATE_SUFFIXES):
                    yield path

    def _entries(self, folder: Path) -> list[Path]:
        try:
            return [path for path in folder.iterdir() if not path.name.startswith(".")]
        except OSError as error:
            self._problem(folder, "unreadable-file", f"the folder cannot be read: {error.strerror or error}")
            return []

    def _file(self, path: Path) -> None:
        if not path.exists():
            self._problem(path, "unreadable-file", "the link points to a file that does not exist")
        elif not stat.S_ISREG(path.stat().st_mode):
            self._problem(path, "unreadable-file", "this is not a regular file")
        elif self._stays_inside(path) and (real := path.resolve()) not in self.met:
            self.met.add(real)
            self.files.append(ManifestFile(path, self._name(path), given=self.given))

    def _stays_inside(self, path: Path) -> bool:
        if not path.is_symlink() or any(path.resolve().is_relative_to(folder) for folder in self.allowed):
            return True
        self._problem(path, "outside-project", "the link leads out of the project's folder")
        return False

    def _problem(self, path: Path, code: str, message: str) -> None:
        findings = Findings(self._name(path))
        findings.at(code, None, None, message)
        self.problems.extend(findings.found)

    def _name(self, path: Path) -> str:
        relative = Path(os.path.relpath(path, self.root)).as_posix()
        return os.fsencode(relative).decode("utf-8", "replace")
