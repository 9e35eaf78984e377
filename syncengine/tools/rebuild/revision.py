"""Build the rows of a state as if a Git revision had just been applied. Reads Git, manifests and the cache."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.desired import ManifestSet, manifest_set
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT
from syncengine.plan.planner import declared_by
from syncengine.plan.two_sides import has_project
from syncengine.project.git_tree import RevisionFiles, load_revision, repository
from syncengine.project.model import Project
from syncengine.project.references import setting_problem
from syncengine.resource import Recorded, Status
from syncengine.tools.rebuild.history import Load, ever_declared
from syncengine.tools.rebuild.rows import EverDeclared, declared_row

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

    @property
    def released(self) -> int:
        """The number of resources that the revision no longer declares."""
        return sum(row.status is Status.RELEASED for row in self.rows)


def rebuilt(revision: str, project: Project, load: Load, *, all_history: bool, allow_missing: bool) -> Rebuilt:
    """Return the rows that a revision declares, and with `all_history` those that its whole history declared.

    Raise `Problems` when the revision is invalid, or needs sources that are not in Git, unless `allow_missing`.
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
        diagnostics = [*files.found, *_left_out(desired.diagnostics, allow_missing), *_ignored(files, manifests)]
        ever = EverDeclared()
        if all_history:
            ever, doubts = ever_declared(repo, commit, there, load)
            diagnostics += doubts
        declared = {key: declared_row(resource) for key, resource in desired.resources.items()}
        return Rebuilt(commit, there, tuple(ever.rows(declared)), desired.rows_of_sources(), tuple(diagnostics))


def _left_out(diagnostics: tuple[Diagnostic, ...], allow_missing: bool) -> Iterator[Diagnostic]:
    """Yield a warning for each block or template whose rows are lost. Raise `Problems` unless `allow_missing`."""
    missing = [each for each in diagnostics if each.code == SOURCE_LEFT_OUT]
    if missing and not allow_missing:
        cure = "its rows cannot be rebuilt from Git; use --allow-missing-sources to record everything else"
        sentences = (f"{each.message.partition(';')[0].removeprefix('left out: ')}: {cure}" for each in missing)
        raise Problems(
            [
                replace(each, severity=Severity.ERROR, message=sentence)
                for each, sentence in zip(missing, sentences, strict=True)
            ]
        )
    for each in missing:
        yield replace(each, message=f"{each.message.partition(';')[0]}: resources made from its rows are not recorded")


def _ignored(files: RevisionFiles, manifests: ManifestSet) -> Iterator[Diagnostic]:
    """Yield a warning for each input that Git ignores, because it was read in its current version."""
    ignored = {os.path.normpath(files.checkout.folder / name): name for name in files.ignored()}
    inputs = {os.path.normpath(path) for path in manifests.inputs()} if ignored else set()
    for path in sorted(inputs & ignored.keys()):
        message = "Git ignores this file: its current version was read, not the one at that commit"
        yield Diagnostic(severity=Severity.WARNING, code=IGNORED, message=message, file=ignored[path])
