"""Manifests → all files that their resources depend on: manifests, data and templates. Reads files that name others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

from syncengine.document.diagnostics import Collector
from syncengine.manifest.context import LoadContext
from syncengine.manifest.desired import ManifestSet
from syncengine.manifest.files import ManifestFile


@dataclass(frozen=True)
class _Recording(LoadContext):
    """A context that records which files are opened through it."""

    opened: set[Path] = field(default_factory=set)

    def data(self, name: str, folder: Path) -> Path:
        path = super().data(name, folder)
        self.opened.update((path, folder / name))
        return path

    def template(self, name: str) -> Path:
        path = super().template(name)
        self.opened.update((path, self.root / name))
        return path


def input_files(manifests: ManifestSet) -> Iterator[Path]:
    """Yield the manifests and all files that they read. For a link, yield both the link and its target."""
    for file in manifests.files:
        yield from (file.path, file.path.resolve())
        if file.context is not None and file.generates():
            yield from _files_read(file, file.context)


def _files_read(file: ManifestFile, context: LoadContext) -> set[Path]:
    from syncengine.manifest.dependencies import digest_with_inputs  # it loads templates

    # An empty memo has every file opened again; `answers` stay, so that no database or service is queried again.
    recording = _Recording(**{each.name: getattr(context, each.name) for each in fields(LoadContext)} | {"memo": {}})
    data = file.content(Collector(file.name))
    if data is not None:
        digest_with_inputs(file, data, recording)
    return recording.opened
