"""What generating manifests may use besides their own text: folders, variables, sources. Values only.

Manifests are untrusted code where pull requests are planned: whatever is not listed here cannot be reached by them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncengine.delivery_file import Source
from syncengine.manifest.lints import CONTAINED
from syncengine.settings import Level, Project

MAX_SOURCE_BYTES = 512 * 1024 * 1024


class OutsideProject(Exception):
    """A file that manifests may not read; the message says why."""


@dataclass(frozen=True)
class Given:
    """The same for all files of a project. `environ` holds the allowed names alone, `secrets` resolves references.

    `compares_parts`: the parts of keywords are asked for, which costs a third of reading (`containment`).
    `memo` keeps what sources of one run have said, so that a digest and a reading stand on the same rows.
    """

    root: Path = Path()
    variables: Mapping[str, Any] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    sources: Mapping[str, Source] = field(default_factory=dict, repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret_files: frozenset[str] = frozenset()
    compares_parts: bool = False
    memo: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "memo": {}}

    def inside(self, name: str, folder: Path) -> Path:
        """The file `name`, as seen from `folder`; OutsideProject if manifests may not read it."""
        if "\0" in name or not name.strip():
            raise OutsideProject("the path is not one")
        path = folder / name
        root, real = self.root.resolve(), path.resolve()
        if not real.is_relative_to(root):
            raise OutsideProject("the path leads out of the project's folder")
        inner = real.relative_to(root)
        if any(part.startswith(".") for part in inner.parts):
            raise OutsideProject("hidden files and folders are no sources")
        if str(inner) in self.secret_files:
            raise OutsideProject("the project file says that a secret is in there")
        return real

    def name_of(self, path: Path) -> str:
        """A file as diagnostics name it."""
        relative = Path(os.path.relpath(path, self.root.resolve())).as_posix()
        return os.fsencode(relative).decode("utf-8", "replace")


def given_by(project: Project) -> Given:
    """What the manifests of a project may use."""
    key = project.service.api_key
    secret_names = {"SYNCENGINE_API_KEY", *([key.origin.removeprefix("environment variable ")] if key else [])}
    allowed = tuple(name for name in project.allow_env if name not in secret_names)
    files = {str(Path(file)) for file in project.secret_files()}
    return Given(
        root=project.root,
        variables=project.variables,
        allowed=allowed,
        environ={name: project.environ[name] for name in allowed if name in project.environ},
        sources=project.sources,
        secrets=dict(project.environ),  # os.environ itself cannot be sent to another process
        secret_files=frozenset(files),
        compares_parts=project.policy.diagnostics.get(CONTAINED, Level.OFF) is not Level.OFF,
    )


NOTHING_GIVEN = Given()
