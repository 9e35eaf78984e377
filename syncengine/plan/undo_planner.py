"""Plan the undo of a run in the history (docs/repair.md). Reads the state, and Git for how to revert."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from syncengine.document.gc_pause import no_collection
from syncengine.errors import Diagnostic, LockHeld, Severity, Usage
from syncengine.manifest.desired import Desired
from syncengine.plan.approvals import records_of
from syncengine.plan.build import plan_to
from syncengine.plan.checks import NOTHING_SELECTED
from syncengine.plan.gate import StateRecords
from syncengine.plan.model import Basis, Options, Plan, PlanInputs, Undo
from syncengine.plan.planner import basis_of, options_of, warnings_of_approvals
from syncengine.plan.quarantine import entry_words, set_aside_now
from syncengine.plan.recent_losses import recent_losses
from syncengine.plan.request import PlanRequest, Runtime
from syncengine.plan.scope import Scope
from syncengine.plan.state_checks import quarantine_in, state_warnings
from syncengine.plan.undo import selected_rows, undo_aim
from syncengine.project import git
from syncengine.project.model import Project
from syncengine.project.schema import Ownership
from syncengine.resource import Key
from syncengine.state.folder_memory import memory_of
from syncengine.state.history import REFUSED, Run
from syncengine.state.store import State, open_state
from syncengine.state.undone import UndoneChange, UndoneRecord, made_of

LAST = "last"


def make_undo_plan(run: str, project: Project, request: PlanRequest, runtime: Runtime, *, forced: bool) -> Plan:
    """Plan to restore everything that a run changed to its content before the run. `run` is an id or `last`."""
    with open_state(project.state, write=False, now=runtime.now, memory=memory_of(project)) as state:
        done = run_to_undo(state, run, runtime.now())
        changed = (row.key for row in state.changes_of(done.id))
        scope = request.scope.of({*changed, *(row.key for row in state.rows())} if request.scope.selective else ())
        undo = _described(done, project, scope, forced=forced)
        draft = undo_plan(undo, state, project, request, runtime, _set_aside(project, state, runtime))
        if scope.selective and not selected_rows(state.changes_of(undo.run), scope):
            draft = replace(draft, diagnostics=(*draft.diagnostics, _nothing_selected(undo)))
        warnings = state_warnings(project, state, None)
        approval_warnings = warnings_of_approvals(draft, state, project, request)
        return replace(draft, diagnostics=(*warnings, *draft.diagnostics, *approval_warnings))


def undo_plan(
    undo: Undo, state: State, project: Project, request: PlanRequest, runtime: Runtime, aside: Mapping[Key, str]
) -> Plan:
    """Plan the undo of a known run in a state that is already open. The work tree is not read.

    `aside` maps resources in quarantine to the reason for leaving them out.
    """
    facts = state.facts()
    basis: Basis = replace(basis_of(project, facts, runtime), commit=None, tree=None)
    with no_collection():
        return plan_back(undo, state, options_of(project, request, facts), basis, runtime.now, aside)


def _nothing_selected(undo: Undo) -> Diagnostic:
    message = f"no change of run {undo.run} is selected: nothing is undone"
    return Diagnostic(severity=Severity.WARNING, code=NOTHING_SELECTED, message=message)


def _set_aside(project: Project, state: State, runtime: Runtime) -> dict[Key, str]:
    """Return the resources in quarantine with the reasons, assuming that the manifests have not changed since."""
    aside = set_aside_now(quarantine_in(state, project, runtime.now()))
    return {each.key: f"it {entry_words(each, project.config_name)}" for each in aside}


def plan_back(
    undo: Undo, state: State, options: Options, basis: Basis, now: Callable[[], float], aside: Mapping[Key, str] = {}
) -> Plan:
    """Return the plan that undoes a run, by the rules and limits of the options."""
    scope = Scope(targets=undo.targets, excludes=undo.excludes)
    rules = dataclasses.replace(options.rules, activity_types=Ownership.ADDITIVE)  # `exact` would cause a sweep
    recorded = {row.key: row for row in state.rows()}
    target = undo_aim(undo.run, state.changes_of(undo.run), recorded, scope, aside, forced=undo.forced)
    draft = plan_to(
        target.aim,
        recorded,
        recorded,
        Desired(),
        replace(options, scope=scope, rules=rules),
        basis,
        records=StateRecords(lambda: recent_losses(state, now()), lambda: records_of(state.approvals())),
    )
    left_out = tuple(sorted(map(str, target.left_out)))
    undo = replace(undo, left_out=left_out)
    return replace(draft, undo=undo, is_whole=False, set_aside=tuple(aside), inputs=PlanInputs())


def record_of_undo(undo: Undo, state: State, run: str) -> UndoneRecord:
    """Return the record of the undo `run`, with the content that the undone run had made.

    Content that the undo makes again, or that another undo of the same run had undone, no longer counts as undone by an
    earlier undo.
    """
    left_out, scope = {*undo.left_out}, Scope(targets=undo.targets, excludes=undo.excludes)
    rows = selected_rows(state.changes_of(undo.run), scope)
    taken_back = {row.key: row for row in rows if row.is_changed and str(row.key) not in left_out}
    changes = (UndoneChange(key, made_of(row.before, row.after), undo.run, run) for key, row in taken_back.items())
    earlier, family = [each for each in state.undone() if each.key in taken_back], state.family_of(undo.run)
    lifted = [each for each in earlier if each.undone_by in family or each.is_made_by_row(taken_back[each.key].before)]
    return UndoneRecord(lifted, [change for change in changes if change.marks])


def run_to_undo(state: State, name: str, now: float) -> Run:
    """Return the run to undo, by its id, the beginning of its id, or `last`. Raise `Usage` when it cannot be undone."""
    run = state.writing_run() if name == LAST else _named(state, name)
    if run is None:
        raise Usage("no run of this state has changed anything yet: there is nothing to undo")
    lock = state.current_lock() if run.ended is None else None  # a killed run has no end either
    if lock is not None and lock.seems_at_work(now):
        raise LockHeld(f"run {run.id} is still under way: {lock}")
    if run.outcome == REFUSED:
        raise Usage(f"run {run.id} was refused: it changed nothing ({run.reason})")
    if run.plan is None:
        raise Usage(f"run {run.id} was `{run.command}`, which changes only the state: only an apply can be undone")
    if state.was_pruned(run):
        cause = "removed by `state prune`, or by the limits of a state in Git"
        raise Usage(f"the history of run {run.id} is no longer kept ({cause}), so the run cannot be undone")
    if not state.has_changed(run.id):
        raise Usage(f"run {run.id} changed nothing: there is nothing to undo")
    if state.was_erased(run.id):
        raise Usage(f"everything that run {run.id} changed was erased (`state erase`), so the run cannot be undone")
    return run


def _named(state: State, name: str) -> Run:
    runs = state.runs_like(name)
    exact = [run for run in runs if run.id == name]
    if not runs:
        raise Usage(f"the history has no run {name}: `syncengine state history` lists the runs")
    if len(runs) > 1 and not exact:
        few = ", ".join(run.id for run in runs[:5]) + (", …" if len(runs) > 5 else "")
        raise Usage(f"{name} is the beginning of several run ids: {few}")
    return (exact or runs)[0]


def _described(run: Run, project: Project, scope: Scope, *, forced: bool) -> Undo:
    is_of_commit = run.commit is not None and run.clean is not False and run.undoes is None
    return Undo(
        run=run.id,
        command=run.command,
        started=datetime.fromtimestamp(run.started, UTC).isoformat(timespec="seconds"),
        commit=run.commit,
        revert=git.revert_of(project.root, run.commit) if run.commit and is_of_commit else None,
        forced=forced,
        targets=scope.targets,
        excludes=scope.excludes,
    )
