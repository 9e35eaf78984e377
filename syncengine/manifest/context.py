"""The folders, variables and sources that `generate` blocks and templates of manifests may use. Values only.

Manifests in pull requests are untrusted code: they reach nothing that is not listed here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from syncengine.document.diagnostics import suggestion
from syncengine.project.delivery_schema import SourceConfig
from syncengine.project.model import Checkout, Project
from syncengine.templating.bounds import Allowance

MAX_SOURCE_BYTES = 512 * 1024 * 1024
CONFIDENTIAL = "the project file uses this file for a secret or posted time, so manifests cannot read it"
CHANGED = "changed"
"""Stands for the digest of a file that changed while it was read."""


class OutsideProject(Exception):
    """Raised for a file that manifests may not read. The message is the reason."""


class Asks(StrEnum):
    """What an input is: a data file or a template by its name, rows by their query, or that nothing is queried."""

    DATA = "data"
    TEMPLATE = "template"
    ROWS = "rows"
    OFFLINE = "offline"


class Input(NamedTuple):
    """Something that the reading of a file depended on, and the digest of what it was, or why it could not be read."""

    kind: Asks
    question: str
    digest: str


@dataclass(frozen=True)
class LoadContext:
    """The context in which all files of a project are loaded.

    `environ` has the allowed names only; `secrets` resolves references. `allowance` limits the
    processor time of all templates in a run. `memo` keeps rows of files during a run; `answers` keeps
    the rows of databases and services, which both sides of a plan share. `read` has the SHA-256 of each file that was
    read, by its path (`note`); `inputs` are those of the file that is being read (`record`). With a `checkout`, `root`
    has the files of another revision and `home` is the project's own folder. If `is_offline`, no database or service
    is queried.
    """

    root: Path = Path()
    variables: Mapping[str, Any] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    sources: Mapping[str, SourceConfig] = field(default_factory=dict, repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret_files: frozenset[Path] = frozenset()
    data_folders: tuple[str, ...] = ()
    checkout: Checkout | None = None
    home: Path | None = None
    is_offline: bool = False
    allowance: Allowance = field(default_factory=Allowance, repr=False, compare=False)
    memo: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)
    answers: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)
    read: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    inputs: dict[Input, None] = field(default_factory=dict, repr=False, compare=False)

    def record(self, kind: Asks, question: str, digest: str) -> None:
        """Record what the reading of a file depends on besides its bytes, in the order in which it was asked for."""
        self.inputs.setdefault(Input(kind, question, digest))

    def note(self, path: Path, sha256: str) -> None:
        """Note that a file was read with this digest. One that was read with two has none that is right."""
        if self.read.setdefault(str(path), sha256) != sha256:
            self.read[str(path)] = CHANGED

    def note_named(self, name: str, folder: Path, real: Path, sha256: str) -> None:
        """Note a file under its real path, and under the name by which it was found, which may be a link."""
        self.note(real, sha256)
        if (named := folder / name) != real and named.resolve() == real:
            self.note(named, sha256)

    def data(self, name: str, folder: Path) -> Path:
        """Return the path of a data file relative to `folder`. Raise `OutsideProject` if manifests may not read it."""
        return self._within(name, folder, (self._real(self.root, each) for each in ("", *self.data_folders)))

    def template(self, name: str) -> Path:
        """Return the path of a template relative to the project's folder. Raise `OutsideProject` if it is elsewhere."""
        return self._within(name, self.root, (self.root.resolve(),))

    def _real(self, folder: Path, name: str) -> Path:
        """Return the path without links. Outside a checked-out repository, resolve it from the project's own folder."""
        try:
            real = (folder / name).resolve()
        except RuntimeError:  # before Python 3.13
            raise OutsideProject("its links lead in a circle") from None
        if self.checkout is None or real.is_relative_to(self.checkout.top):
            return real
        return ((self.home or self.root) / os.path.relpath(folder, self.root) / name).resolve()

    def _within(self, name: str, folder: Path, roots: Iterable[Path]) -> Path:
        if "\0" in name or not name.strip():
            raise OutsideProject("the path is empty or has a NUL byte")
        real = self._real(folder, name)
        root = next((each for each in roots if real.is_relative_to(each)), None)
        if root is None:
            raise OutsideProject("the path leads outside the project's folder and its `dataFolders`")
        if any(map(is_hidden, real.relative_to(root).parts)):
            raise OutsideProject("manifests cannot read hidden files and folders")
        if real in self.secret_files:
            raise OutsideProject(CONFIDENTIAL)
        return real

    def name_of(self, path: Path) -> str:
        """Return a file's name for messages and rows: its path below the project, or below a configured data folder."""
        for folder in ("", *self.data_folders):
            root = self._real(self.root, folder)
            if path.is_relative_to(root):
                # Without the parts that name a version of a Kubernetes volume, which begin with two dots.
                return _decoded(Path(folder, *(p for p in path.relative_to(root).parts if not p.startswith(".."))))
        return _decoded(path)


def is_hidden(name: str) -> bool:
    """Return whether a name begins with a single dot. Names in Kubernetes volumes begin with two."""
    return name.startswith(".") and not name.startswith("..")


def near_name(path: Path) -> str:
    """Return `; did you mean …?` with the file in the folder whose name is like that of a missing one, if any."""
    with suppress(OSError):
        return suggestion(path.name, [e.name for e in os.scandir(path.parent) if e.is_file() and not is_hidden(e.name)])
    return ""


def _decoded(path: Path) -> str:
    return os.fsencode(path.as_posix()).decode("utf-8", "replace")


def context_of(
    project: Project,
    answers: dict[object, Any] | None = None,
    *,
    is_offline: bool = False,
) -> LoadContext:
    """Return the context of a project's manifests. `answers` are known rows of databases and services."""
    return LoadContext(
        root=project.files,
        home=project.root,
        checkout=project.checkout,
        variables=project.variables,
        allowed=project.allow_env,
        environ={name: project.environ[name] for name in project.allow_env if name in project.environ},
        sources=project.sources,
        secrets={} if is_offline else dict(project.environ),  # os.environ itself cannot be sent to another process
        secret_files=frozenset(project.secret_files()),
        data_folders=project.data_folders,
        is_offline=is_offline,
        answers={} if answers is None else answers,
    )
