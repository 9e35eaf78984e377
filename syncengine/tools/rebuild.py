"""Build the rows of a state as if a Git revision had just been applied. Reads Git, manifests and the cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from syncengine.errors import Diagnostic, Severity
from syncengine.manifest.desired import ManifestSet, manifest_set
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT
from syncengine.plan.base import has_project
from syncengine.plan.planner import declared_by
from syncengine.project.git_tree import RevisionFiles, load_revision, repository
from syncengine.project.model import Project
from syncengine.project.references import setting_problem
from syncengine.resource import Recorded, Resource

Load = Callable[[RevisionFiles], Project]
"""A function that loads the project from the files of a revision, with the command's options."""

OPTION = "--from-git"
IGNORED = "ignored-inputs"
"""The diagnostic code of inputs that no commit contains."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The rows of a rebuilt state, with the commit, its project and the row counts of its sources."""

    commit: str
    project: Project
    rows: tuple[Recorded, ...]
    sources: Mapping[str, int]
    diagnostics: tuple[Diagnostic, ...]


def rebuilt(revision: str, project: Project, load: Load) -> Rebuilt:
    """Return the rows that a revision declares, without those made from databases and services, which Git lacks.

    Raise `Problems` when the revision is invalid.
    """
    with repository(project.root, OPTION) as repo:
        commit = repo.commit(revision)
        files = RevisionFiles(repo, commit, revision, repo.objects / "revision")
        files.bring_project()
        if not has_project(files.checkout):
            raise setting_problem("no-project", f"{revision} has no project in this folder")
        there = load_revision(files, load).without_secrets()
        manifests = manifest_set(there, is_offline=True)
        desired = declared_by(there, manifests)
        diagnostics = (*files.found, *_left_out(desired.diagnostics), *_ignored(files, manifests))
        rows = tuple(_row(resource) for resource in desired.resources.values())
        return Rebuilt(commit, there, rows, desired.rows_of_sources(), diagnostics)


def _row(resource: Resource) -> Recorded:
    """Return the row of a resource that a revision declares; the resource may or may not exist on the service."""
    return Recorded(
        resource.key,
        resource.body,
        doubtful=True,
        confirmed=True,
        source=resource.source,
        protect=resource.protect,
    )


def _left_out(diagnostics: tuple[Diagnostic, ...]) -> Iterator[Diagnostic]:
    """Yield a warning for each block or template whose rows are not in Git."""
    for each in diagnostics:
        if each.code == SOURCE_LEFT_OUT:
            what = each.message.partition(";")[0]
            yield replace(each, message=f"{what}: resources made from its rows are not recorded; the next apply does")


def _ignored(files: RevisionFiles, manifests: ManifestSet) -> Iterator[Diagnostic]:
    """Yield a warning for each input that Git ignores, because it was read in its current version."""
    ignored = {os.path.normpath(files.checkout.folder / name): name for name in files.ignored()}
    inputs = {os.path.normpath(path) for path in manifests.inputs()} if ignored else set()
    for path in sorted(inputs & ignored.keys()):
        message = "Git ignores this file: its current version was read, not the one at that commit"
        yield Diagnostic(severity=Severity.WARNING, code=IGNORED, message=message, file=ignored[path])
