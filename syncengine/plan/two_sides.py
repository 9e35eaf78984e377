"""Plan a project against a base revision in Git, with the origin of each change (docs/reviews.md).

Reads Git, manifests, cache and state as `planner` does. Without a state, two revisions are compared: the resources of
the base count as recorded, and no state, key or other secret is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace as with_fields
from typing import Any

from msgspec.structs import replace

from syncengine.errors import Diagnostic, Problems, SyncengineError
from syncengine.manifest.desired import manifest_set
from syncengine.plan.git_with_git import plan_in_git
from syncengine.plan.inputs import Inputs, consistent
from syncengine.plan.model import Base, BasePlan, Plan
from syncengine.plan.origins import MERGED, NO_BASE
from syncengine.plan.planner import plan_in, plan_of_other, warnings_of_approvals
from syncengine.plan.policy_changes import at_levels_of_base, policy_changes, with_stricter_judge
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.plan.scope import Scope
from syncengine.plan.sides import Sides, invalid
from syncengine.plan.state_checks import state_warnings
from syncengine.plan.tree import with_inputs
from syncengine.plan.waiting import why_they_wait
from syncengine.project import git
from syncengine.project.git_tree import Repository, RevisionFiles, load_revision, places_outside, repository
from syncengine.project.model import FILE_NAME, MANIFESTS, Checkout, Project
from syncengine.rules.read import rule_set
from syncengine.state.folder_memory import memory_of
from syncengine.state.info import StateReader, recollection

Load = Callable[[RevisionFiles], Project]
"""A function that loads the project from the files of a revision, with the options of the command."""


def plan_two_sides(
    revision: str, project: Project, load: Load, request: PlanRequest, runtime: Runtime, *, uses_state: bool = True
) -> Plan:
    """Plan `project`, and mark the changes that its base would make too. Plan again while the inputs change."""
    return consistent(project, lambda today: _planned(revision, today, load, request, runtime, uses_state=uses_state))


def _planned(
    revision: str, project: Project, load: Load, request: PlanRequest, runtime: Runtime, *, uses_state: bool
) -> Plan:
    with ExitStack() as stack:
        repo = stack.enter_context(repository(project.root))
        commit = repo.commit(revision)
        sides = _sides(repo, commit, revision, project, load)
        make = _with_state if uses_state else plan_in_git
        with _warnings_before_errors(sides, revision):
            draft = make(sides, revision, request, runtime)
    base = replace(draft.base or Base("", ""), ref=revision, commit=commit, is_merged=sides.is_merged)
    return replace(draft, compared=base, diagnostics=(*sides.found, *draft.diagnostics))


def _sides(repo: Repository, commit: str, name: str, project: Project, load: Load) -> Sides:
    sides = Sides(project, commit)
    if not git.contains(project.root, commit):
        tree, conflicts = repo.merged(commit, name, list(places_outside(project, repo)))
        files = RevisionFiles(repo, tree, f"the merge with {name}", repo.objects / "merge")
        sides.warn(MERGED, f"this branch is behind {name}: the plan is for the merge of both")
        sides.found += conflicts
        with _warnings_before_errors(sides, name):
            sides.head, sides.is_merged, sides.tree = load_revision(files, load), True, repo.folder_of(tree)
        sides.found += files.found
    files = RevisionFiles(repo, commit, name, repo.objects / "base")
    try:
        files.bring_project()
        if has_project(files.checkout):
            sides.base = load_revision(files, load)
            rule_set(sides.base)
        else:
            sides.warn(NO_BASE, f"{name} has no project in this folder: every change counts as this pull request's")
    except Problems as problems:
        sides.base = None
        sides.warn(*invalid(name, problems))
    sides.found += files.found
    if sides.base is not None:
        with _warnings_before_errors(sides, name):
            _judge_by_both(sides, sides.base)
    return sides


def _judge_by_both(sides: Sides, base: Project) -> None:
    """Judge the head by both policies, and report policy changes first, even when the head's rules cannot be read."""
    changes: list[Diagnostic] = []
    try:
        for change in policy_changes(sides.head, base):
            changes.append(change)
    finally:
        sides.found[:0] = changes
    sides.head = with_stricter_judge(sides.head, base)


@contextmanager
def _warnings_before_errors(sides: Sides, name: str) -> Iterator[None]:
    """Raise errors of the head together with the earlier warnings, which come first."""
    try:
        yield
    except Problems as problems:
        found = problems.found if sides.base is None else at_levels_of_base(problems.found, sides.base, name)
        raise Problems([*sides.found, *found]) from None


def has_project(checkout: Checkout) -> bool:
    return any((checkout.folder / name).exists() for name in (FILE_NAME, MANIFESTS))


# --- with a state


def _with_state(sides: Sides, name: str, request: PlanRequest, runtime: Runtime) -> Plan:
    answers = dict[object, Any]()
    inputs = Inputs.of(sides.head, manifest_set(sides.head, answers))
    return inputs.planned(lambda: _against_state(inputs, answers, sides, name, request, runtime))


def _against_state(
    inputs: Inputs, answers: dict[object, Any], sides: Sides, name: str, request: PlanRequest, runtime: Runtime
) -> Plan:
    project = inputs.project
    with recollection(project.state, runtime.now, create=request.new_state, memory=memory_of(project)) as state:
        other = _other(sides, name, state, answers, request, runtime)
        draft = plan_in(state, inputs.manifests, project, request, runtime, other)
        warnings = state_warnings(project, state, draft.basis.commit)
        base = draft.base or Base("", "")
        if request.saves:
            draft = with_inputs(draft, sides.head, inputs.manifests, sides.tree if sides.is_merged else "")
        base = replace(base, waiting=why_they_wait(base.waiting, sides.commit, state))
        approval_warnings = warnings_of_approvals(draft, state, project, request)
        return replace(draft, compared=base, diagnostics=(*warnings, *draft.diagnostics, *approval_warnings))


def _other(
    sides: Sides, name: str, state: StateReader, answers: dict[object, Any], request: PlanRequest, runtime: Runtime
) -> BasePlan:
    """Return the plan of the whole base, or an empty one when the base is invalid."""
    if sides.base is None:
        return BasePlan()
    # With the head's service: both are planned in one state.
    base = with_fields(sides.base, service=with_fields(sides.base.service, base_url=sides.head.service.base_url))
    everything = with_fields(request, scope=Scope(no_delete=request.scope.no_delete))
    try:
        return plan_of_other(state, manifest_set(base, answers), base, everything, runtime)
    except SyncengineError as error:
        sides.warn(*invalid(name, error))
        return BasePlan()
