"""Read everything that the history of a revision ever declared, from Git's objects and files in a temporary folder.

From commit to commit only changed files are read. A file that cannot be read at some commit is skipped with a warning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields

from syncengine.errors import Diagnostic, Problems, Severity, SyncengineError
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.desired import manifest_set
from syncengine.manifest.files import SUFFIXES, TEMPLATE_SUFFIXES, ManifestFile
from syncengine.manifest.load import read_one
from syncengine.manifest.read_file import NO_DEFAULTS
from syncengine.manifest.reading import ReadFile
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT
from syncengine.project.git_history import Visit, former_folders, refuse_shallow, visits, walk
from syncengine.project.git_tree import Repository, RevisionFiles, places_outside
from syncengine.project.git_work_tree import GONE, TreeEntry
from syncengine.project.model import FILE_NAME, Project
from syncengine.templating.budget import Allowance
from syncengine.tools.rebuild.rows import EverDeclared

PASSED_OVER = "history-passed-over"
"""The diagnostic code of an input that cannot be read at some commit."""

Load = Callable[[RevisionFiles], Project]
"""A function that loads the project from the files of a revision, with the command's options."""


def ever_declared(repo: Repository, commit: str, project: Project, load: Load) -> tuple[EverDeclared, list[Diagnostic]]:
    """Return everything that the history of a commit declared, with warnings about inputs that could not be read."""
    refuse_shallow(repo)
    result, doubts = EverDeclared(), _Doubts()
    name = project.config.name if project.config else FILE_NAME
    for number, prefix in enumerate((repo.prefix, *former_folders(repo, commit, name))):
        there = with_fields(repo, prefix=prefix)
        files = RevisionFiles(there, commit, commit, repo.objects / f"history-{number}")
        places = [prefix, *places_outside(project, repo)]
        reading = _Reading(files, load, result, doubts)
        for visit, entries in walk(files, visits(there, commit, places), places):
            reading.read(visit, entries)
    return result, doubts.diagnostics()


@dataclass(slots=True)
class _Doubts:
    """Inputs that could not be read, each with the first such commit and the number of later ones."""

    first: dict[tuple[str, str, str], str] = field(default_factory=dict)
    more: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def add(self, visit: Visit, code: str, file: str, message: str) -> None:
        key = (code, file, message)
        if self.first.setdefault(key, str(visit)) != str(visit):
            self.more[key] = self.more.get(key, 0) + 1

    def add_all(self, visit: Visit, diagnostics: Iterable[Diagnostic]) -> None:
        """Add the first error of each file, and the sources that are not in Git."""
        files = set()
        for each in diagnostics:
            file = f"{each.file}:{each.line}" if each.line else each.file or ""
            if each.code == SOURCE_LEFT_OUT:
                self.add(visit, SOURCE_LEFT_OUT, each.file or "", each.message)
            elif each.severity is Severity.ERROR and each.file not in files:
                files.add(each.file)
                self.add(visit, PASSED_OVER, file, f"{each.message}: skipped")

    def diagnostics(self) -> list[Diagnostic]:
        return [
            Diagnostic(severity=Severity.WARNING, code=code, message=self._message(first, (code, file, message)))
            for (code, file, message), first in self.first.items()
        ]

    def _message(self, first: str, key: tuple[str, str, str]) -> str:
        _, file, message = key
        others = f" and {self.more[key]:,} later commit{'s' if self.more[key] > 1 else ''}" if key in self.more else ""
        return f"at {first}{others}: {f'{file}: ' if file else ''}{message}"


@dataclass(slots=True)
class _Reading:
    """The project at the current commit: its manifests, and how each was last read."""

    files: RevisionFiles
    load: Load
    result: EverDeclared
    doubts: _Doubts
    project: Project | None = None
    defaults: DefaultValues = NO_DEFAULTS
    by_path: dict[str, ManifestFile] = field(default_factory=dict)
    making: dict[str, ReadFile] = field(default_factory=dict)

    def read(self, visit: Visit, entries: Sequence[TreeEntry]) -> None:
        """Read the files that a commit changed, once they are in the folder."""
        config = None if self.project is None else self.project.config
        name = f"{self.files.repo.prefix}{config.name if config else FILE_NAME}"
        everything = self.project is None or any(entry.path == name for entry in entries)
        if everything:
            self._load(visit)
        if self.project is None:
            return
        if everything or any(entry.mode == GONE or self._is_new(entry) for entry in entries):
            self._find(visit)
        paths = {entry.path for entry in entries}
        self._take(visit, list(self.by_path if everything else self.by_path.keys() & paths))
        if everything or not paths <= self.by_path.keys() - self.making.keys():
            self._take(visit, [path for path in self.making if path in self.by_path and path not in paths])

    def _is_new(self, entry: TreeEntry) -> bool:
        return entry.path not in self.by_path and entry.path.lower().endswith((*SUFFIXES, *TEMPLATE_SUFFIXES))

    def _load(self, visit: Visit) -> None:
        self.project = None
        try:
            self.project = self.load(self.files).without_secrets()
        except Problems as problems:
            self.doubts.add_all(visit, problems.found)
        except SyncengineError as error:
            self.doubts.add(visit, PASSED_OVER, "", f"{error.message}: skipped")

    def _find(self, visit: Visit) -> None:
        assert self.project is not None
        manifests = manifest_set(self.project, is_offline=True)
        self.defaults = manifests.defaults
        self.by_path = {os.path.relpath(file.path.resolve(), self.files.to): file for file in manifests.files}
        self.making = {path: read for path, read in self.making.items() if path in self.by_path}
        self.doubts.add_all(visit, (each for each in manifests.found if each.code != "missing-manifests"))

    def _take(self, visit: Visit, paths: Sequence[str]) -> None:
        """Read files again, each with its own time limit for templates; a generating file reuses previous results."""
        context = None
        for path in paths:
            file = self.by_path[path]
            if context is None and file.context is not None:
                context = with_fields(file.context, memo={}, allowance=Allowance(), compares_parts=0)
            former = self.making.pop(path, None)
            read = read_one(with_fields(file, context=context), self.defaults, former and former.packed)
            if file.generates():
                self.making[path] = read
            self.doubts.add_all(visit, read.reading.found)
            if not any(each.severity is Severity.ERROR for each in read.reading.found):
                for resource in read.reading.resources:
                    self.result.take(resource)
