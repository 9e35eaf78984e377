"""Rebuild a lost state: record the rows of a Git revision as if it had just been applied (`state rebuild`).

Reads Git, manifests and the cache, and writes the state.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from syncengine.apply.guards import refuse_other_service
from syncengine.errors import Diagnostic, Severity, SyncengineError, WrongTeam
from syncengine.manifest.desired import ManifestSet, manifest_set
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT
from syncengine.plan.base import has_project
from syncengine.plan.inputs import InputsChanged
from syncengine.plan.planner import declared_by
from syncengine.plan.request import Runtime
from syncengine.project import git
from syncengine.project.git_tree import RevisionFiles, load_revision, repository
from syncengine.project.model import Project
from syncengine.project.references import setting_problem
from syncengine.resource import REBUILD, Kind, Recorded, Resource
from syncengine.state.history import Run
from syncengine.state.holder import Holder
from syncengine.state.store import State, open_state
from syncengine.tools.state_edits import writing

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


def rebuilt(revision: str, project: Project, load: Load, *, replaces: bool, create: bool) -> Rebuilt:
    """Return the rows that a revision declares, without those made from databases and services, which Git lacks.

    Raise `Problems` when the revision is invalid, and `SyncengineError` when the state has rows, unless it `replaces`
    them.
    """
    project.base_url()  # or its absence would be found only once all is read
    with open_state(project.state, write=False, create=create) as state:
        _refuse_rows(state, replaces=replaces)
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


def _refuse_rows(state: State, *, replaces: bool) -> None:
    if not replaces and next(iter(state.rows()), None) is not None:
        message = (
            "the state exists and has rows: use --replace to overwrite the rows that Git declares and keep all others;"
            " to send only a few resources again, use `apply --reassert --target ADDRESS`"
        )
        raise SyncengineError(message, code="state-has-rows")


def record(project: Project, new: Rebuilt, revision: str, *, replaces: bool, create: bool) -> None:
    """Write all rows, or none, as one run of the history. Raise `InputsChanged` if `revision` is another commit now."""
    runtime = Runtime(os.environ)
    holder = Holder.here("state rebuild", os.environ)
    run = Run.here(REBUILD + runtime.new_id(), runtime.now(), holder, os.environ)
    base_url, team = project.base_url(), project.service.team
    with writing(project, "state rebuild", create=create) as state:
        with repository(project.root, OPTION) as repo:
            if (now := repo.commit(revision)) != new.commit:
                message = f"{revision} was {new.commit[:10]} and is {now[:10]} now: nothing was recorded; repeat this"
                raise InputsChanged(message)
        facts = state.facts()
        refuse_other_service(facts, base_url)
        if None not in (facts.team, team) and facts.team != team:
            raise WrongTeam(f"the state belongs to team {facts.team!r}, but the project to team {team!r}")
        _refuse_rows(state, replaces=replaces)
        ids = {row.key: row.server_id for row in state.rows(Kind.CATEGORY)}
        with state.together():
            begun = dataclasses.replace(run, commit=new.commit, clean=True, limits=new.project.policy.limits())
            state.begin_run(begun, ancestors=git.ancestors(project.root, new.commit))
            state.put([replace(row, server_id=ids.get(row.key) or row.server_id) for row in new.rows])
            state.doubt_all()
            state.begin_lineage(base_url=base_url, team=team)
            state.use_up_approvals((*project.approvals, *new.project.approvals))
            state.end_run("complete", {"applied": len(new.rows)}, new.sources)
