"""Build the context of a test's manifests from the project and the test's data, without access to anything else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from syncengine.manifest.context import LoadContext, context_of
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.project.model import Project
from syncengine.rules.model import RuleTestCase


class OfflineSources(dict[str, Any]):
    """The sources of a test, none of which can be queried."""

    def get(self, name: str, default: Any = None) -> Any:
        raise SourceTrouble(f"a test is offline and cannot query the source `{name}`: test its template with a file")


@dataclass(frozen=True)
class OfflineContext(LoadContext):
    """The context of a test. `files` maps the path of each data file to the file that replaces it."""

    files: Mapping[Path, Path] = field(default_factory=dict)

    def data(self, name: str, folder: Path) -> Path:
        return self.files.get(_normal(folder / name)) or super().data(name, folder)

    def name_of(self, path: Path) -> str:
        return super().name_of(next((place for place, file in self.files.items() if file == path), path))


def offline_context(test: RuleTestCase, project: Project, folder: Path) -> OfflineContext:
    """Return the project's context without its environment and sources, with the test's data written into `folder`."""
    context = context_of(project)
    parts = {each.name: getattr(context, each.name) for each in fields(context) if each.name != "memo"}
    parts |= {"variables": {**context.variables, **test.variables}, "environ": {}, "secrets": {}}
    return OfflineContext(**{**parts, "sources": OfflineSources()}, files=_written(test, project.root, folder))


def _written(test: RuleTestCase, root: Path, folder: Path) -> dict[Path, Path]:
    """Write each data file, and return it by its paths relative to the test's folder and to the project's."""
    files: dict[Path, Path] = {}
    for n, (name, text) in enumerate(test.data.items()):
        file = folder / f"{n}{Path(name).suffix}"
        file.write_text(text, encoding="utf-8")
        files |= {_normal(base / name): file for base in ((root / test.file).parent, root)}
    return files


def _normal(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - the file need not be there
