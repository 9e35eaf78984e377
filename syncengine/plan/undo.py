"""Plan the undo of a run in the history, from the rows that the run changed (docs/repair.md).

Nothing is swept, and no category or activity type is deleted: those that the run created stay and are released. Tags
that the run created are retired, whatever the policy is. Reads the state, and Git for how to revert.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec.structs import replace

from syncengine.errors import Diagnostic, LockHeld, Severity, Usage
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Aim, Note, PlannedRemoval, RemovalCause, RemovalKind, is_private, may_be_held, shown
from syncengine.plan.build import plan_to
from syncengine.plan.checks import NOTHING_SELECTED
from syncengine.plan.diff import is_sent
from syncengine.plan.inputs import quarantine_in, state_warnings
from syncengine.plan.model import Basis, Options, Plan, PlanInputs, Undo
from syncengine.plan.planner import basis_of, options_of, records_in, warnings_of_approvals
from syncengine.plan.quarantine import entry_words, set_aside_now
from syncengine.plan.request import PlanRequest, Runtime, Scope
from syncengine.project import git
from syncengine.project.model import Ownership, Project
from syncengine.resource import Body, Key, Kind, Recorded, Resource, Source, Status
from syncengine.state.folder_memory import memory_of
from syncengine.state.history import REFUSED, Run
from syncengine.state.records import UndoneChange, UndoneRecord, made_of
from syncengine.state.store import State, open_state
from syncengine.state.undo import ChangedRow, fields_as

LEFT_OUT, KEPT, MADE_ANEW, NOT_UNDONE, MANAGED = "left-out", "kept", "made-anew", "not-undone", "managed"
"""The kinds of notes in the plan of an undo."""

# Tags need the ids of categories and the codes of activity types.
ORDER = {Kind.CATEGORY: 0, Kind.ACTIVITY_TYPE: 1, Kind.TAG: 2}

STAYS: Mapping[Kind, str] = {
    Kind.CATEGORY: "an undo deletes no category: created by the run, it is released and stays on the service",
    Kind.ACTIVITY_TYPE: "an undo deletes no activity type: created by the run, it is released and stays on the service",
}

PROTECTED = "protected: it stays as it is; apply `protect: false` before undoing this"


@dataclass(slots=True)
class UndoAim:
    """The aim of an undo. `left_out` are resources of the run that the undo leaves alone.

    `aside` maps resources in quarantine to the reason for leaving them out.
    """

    run: str
    recorded: Mapping[Key, Recorded]
    aside: Mapping[Key, str] = field(default_factory=dict)
    aim: Aim = field(default_factory=Aim)
    left_out: list[Key] = field(default_factory=list)

    def note(self, row: ChangedRow, kind: str, message: str) -> None:
        self.aim.notes.append(Note(row.key, kind, message, row.now.source if row.now else None))

    def leave_out(self, row: ChangedRow, why: str) -> None:
        self.left_out.append(row.key)
        self.note(row, LEFT_OUT, f"not undone: {why}")


def undo_aim(
    run: str,
    rows_of_run: Iterable[ChangedRow],
    recorded: Mapping[Key, Recorded],
    scope: Scope,
    aside: Mapping[Key, str],
    *,
    forced: bool,
) -> UndoAim:
    """Decide the aim that reverses a run's changes, except for resources in quarantine (`aside`, with reasons).

    `forced` also reverses changes of rows that later runs changed.
    """
    undo = UndoAim(run, recorded, aside)
    changes = sorted(rows_of_run, key=lambda row: (ORDER[row.key.kind], row.key.name))
    rows = {row.key: row for row in selected_rows(changes, scope) if row.is_changed or _is_left_in_doubt(row)}
    for row in list(rows.values()):
        if why := _obstacle(row, rows, aside, forced=forced):
            undo.leave_out(row, why)
    for key in undo.left_out:
        del rows[key]
    _find_renames(undo, rows)
    remade = (row for key, row in rows.items() if key not in undo.aim.renames and _is_remade(row))
    ids = {row.before.server_id: row.key.name for row in remade if row.before and row.before.server_id}
    for row in rows.values():
        _bring_back(undo, row, ids)
    _leave_out_homeless(undo, rows)
    _bring_needed_categories(undo)
    _find_reopened(undo)
    return undo


def selected_rows(changes: Iterable[ChangedRow], scope: Scope) -> list[ChangedRow]:
    """Return the rows that a selection undoes. A renamed category counts as one unit."""
    rows = list(changes)
    others = {row.renamed_to: row.key for row in rows if row.renamed_to is not None}
    others |= {old: new for new, old in others.items() if new is not None}
    units = ((row, (row.key, *([others[row.key]] if row.key in others else []))) for row in rows)
    return [row for row, unit in units if scope.selects(*((key, None) for key in unit))]


def _is_left_in_doubt(row: ChangedRow) -> bool:
    """Return whether the run left the row in doubt, and no later run resolved that."""
    return row.now is not None and row.now.doubtful and not row.others


def _obstacle(row: ChangedRow, rows: Mapping[Key, ChangedRow], aside: Mapping[Key, str], *, forced: bool) -> str | None:
    """Return why a row is left alone, or `None`. Both names of a renamed category are left alone together."""
    if row.is_erased:
        return "it was erased (`state erase`), so its former content is unknown"
    if row.forgotten or row.now is None:
        return "its row has since been removed from the state"
    if row.key in aside:
        return aside[row.key]
    if row.others and not forced:
        runs = "run" if len(row.others) == 1 else "runs"
        return f"changed again by {runs} {', '.join(row.others)} (--force undoes it anyway)"
    formers = [other for other in rows.values() if other.renamed_to == row.key]
    new = rows.get(row.renamed_to) if row.renamed_to is not None else None
    others = formers if new is None else [new]
    if any(
        other.forgotten or other.now is None or other.key in aside or (other.others and not forced) for other in others
    ):
        return f"it is the same category as {others[0].key}, which is left alone"
    return None


def _find_renames(undo: UndoAim, rows: dict[Key, ChangedRow]) -> None:
    """Find the categories that get their old names back and keep their ids."""
    for key, row in list(rows.items()):
        new = _under_its_name_of_now(undo, row)
        if new is None or row.now is None or row.now.status is not Status.DELETED or not _was_held(row):
            continue
        if new.key in undo.aside:  # under a name that the run does not know
            undo.leave_out(row, f"it is the same category as {new.key}, which is in quarantine")
            del rows[key]
        elif may_be_held(new) and new.server_id and row.now.server_id in (None, new.server_id):
            undo.aim.renames[key] = (new.key,)


def _under_its_name_of_now(undo: UndoAim, row: ChangedRow) -> Recorded | None:
    """Return the row of a renamed category under its current name, as later runs may have renamed it again."""
    new = undo.recorded.get(row.renamed_to) if row.renamed_to is not None else None
    server_id = row.before.server_id if row.before is not None else None
    if new is None or may_be_held(new) or server_id is None:
        return new
    categories = (other for other in undo.recorded.values() if other.key.kind is Kind.CATEGORY)
    return next((other for other in categories if other.server_id == server_id and may_be_held(other)), new)


def _is_remade(row: ChangedRow) -> bool:
    """Return whether the undo creates again a resource that the run deleted."""
    return _was_held(row) and row.now is not None and not may_be_held(row.now)


def _was_held(row: ChangedRow) -> bool:
    return row.before is not None and row.before.status is not Status.DELETED


def _bring_back(undo: UndoAim, row: ChangedRow, ids: Mapping[str, str]) -> None:
    now, before = row.now, row.before
    assert now is not None, "rows that are gone are left out"
    if before is None or before.status is Status.DELETED:
        if may_be_held(now):
            _take_away(undo, row, now)
        return
    differs = now.doubtful or _differs(undo, before, now)
    is_finished = not (now.status is Status.RETIRED and now.body.keywords)
    if before.status is now.status and before.status is not Status.ACTIVE and is_finished and not differs:
        return  # as it was, or a member of a renamed category, which follows it by itself
    if before.status is Status.ACTIVE or not differs:
        _restore_managed(undo, row, before, now, ids)
    else:
        undo.aim.desired[row.key] = _resource(undo, row, before, now, ids)


def _differs(undo: UndoAim, before: Recorded, now: Recorded) -> bool:
    """Return whether a resource must be sent before it is released or retired again."""
    if not may_be_held(now):
        return True
    fields, then = (fields_as(before.status, row) for row in (now, before))
    category = Key(Kind.CATEGORY, str(then.get("category")))
    if Key(Kind.CATEGORY, str(fields.get("category"))) in undo.aim.renames.get(category, ()):
        fields["category"] = category.name
    keywords = before.status is not Status.RETIRED and {*before.body.keywords} != {*now.body.keywords}
    is_sent_again = any(is_sent(now.key, name, fields.get(name), then.get(name)) for name in {**fields, **then})
    return keywords or is_sent_again or before.body.metadata != now.body.metadata


def _restore_managed(undo: UndoAim, row: ChangedRow, before: Recorded, now: Recorded, ids: Mapping[str, str]) -> None:
    """Restore a managed resource. Release or retire again an unmanaged resource whose content is unchanged."""
    if before.status is not Status.ACTIVE:
        way = RemovalKind.RETIRE if before.status is Status.RETIRED else RemovalKind.FORGET
        _let_go(undo, row, now, way, "as before the run that is undone")
        return
    undo.aim.desired[row.key] = _resource(undo, row, before, now, ids)
    if _is_remade(row) and row.key not in undo.aim.renames:
        is_category = row.key.kind is Kind.CATEGORY
        what = "the new category gets another id" if is_category else "time that had it before does not get it back"
        undo.note(row, MADE_ANEW, f"it was deleted, and {what}")
    elif now.status is Status.RELEASED:
        undo.note(row, MANAGED, "managed again, as before")


def _take_away(undo: UndoAim, row: ChangedRow, now: Recorded) -> None:
    """Retire a tag that the run created. Release categories and activity types, which an undo does not delete."""
    if any(new == (row.key,) for new in undo.aim.renames.values()):
        return
    if now.status is Status.RETIRED and not now.body.keywords:
        return
    way = RemovalKind.RETIRE if row.key.kind is Kind.TAG else RemovalKind.FORGET
    _let_go(undo, row, now, way, f"made by run {undo.run}", STAYS.get(row.key.kind, ""))


def _let_go(
    undo: UndoAim,
    row: ChangedRow,
    now: Recorded,
    way: RemovalKind,
    reason: str,
    says: str = "released as before",
) -> None:
    if now.protect:
        undo.leave_out(row, PROTECTED)
    elif row.key.kind is Kind.TAG:
        undo.aim.leaving[row.key] = PlannedRemoval(now, way, RemovalCause.UNDO, reason)
    elif now.status is not Status.RELEASED:
        undo.note(row, KEPT, says)
        undo.aim.released.append(now)


def _resource(undo: UndoAim, row: ChangedRow, before: Recorded, now: Recorded, ids: Mapping[str, str]) -> Resource:
    fields = dict(before.body.fields)
    by_id = fields.get("tagCategoryId")
    if isinstance(by_id, str) and by_id in ids:
        del fields["tagCategoryId"]
        fields["category"] = ids[by_id]
        undo.note(row, NOT_UNDONE, f"tagCategoryId {by_id} no longer exists: the tag is put into {ids[by_id]} by name")
    deleted = any(each is not None and each.status is Status.DELETED for each in (row.after, now))
    if row.key.kind is Kind.ACTIVITY_TYPE and deleted:  # or an undo that is planned again would take that back
        fields["reenableIfArchived"] = True
    shows = now.body.fields.get("visibility") if may_be_held(now) else None
    if row.key.kind is Kind.TAG and shows is not None and "visibility" not in fields:
        fields["visibility"] = shows
        undo.note(row, NOT_UNDONE, f"it stays {shows}: its visibility before the run is unknown")
    keywords = before.body.keywords
    if before.status is Status.RETIRED:
        keywords, fields["excludeTagNameKeyword"] = (), True  # or the upsert would have it tag time by its name
    source = now.source or Source(f"run {undo.run}", 1)
    body = Body(fields, keywords, before.body.metadata)
    return Resource(row.key, body, source, before.protect, status=before.status)


def _leave_out_homeless(undo: UndoAim, rows: Mapping[Key, ChangedRow]) -> None:
    """Leave out tags whose category or activity type no longer exists, or whose category is in quarantine."""
    for key, resource in list(undo.aim.desired.items()):
        if why := next(filter(None, (_lack(undo, each) for each in _references(resource))), None):
            del undo.aim.desired[key]
            undo.aim.notes = [note for note in undo.aim.notes if note.key != key]
            undo.leave_out(rows[key], why)


def _bring_needed_categories(undo: UndoAim) -> None:
    """Add the categories whose ids are unknown or in doubt, as they are recorded: their tags need the ids."""
    for resource in list(undo.aim.desired.values()):
        for key in _references(resource):
            row = undo.recorded.get(key)
            is_known = row is None or key in undo.aim.desired or bool(row.server_id and row.confirmed)
            if key.kind is Kind.CATEGORY and not is_known and row is not None:
                place = row.source or Source(f"run {undo.run}", 1)
                undo.aim.desired[key] = Resource(key, row.body, place, row.protect, status=row.status)


def _lack(undo: UndoAim, key: Key) -> str | None:
    """Return why a tag cannot refer to the resource `key`, or `None` when it can."""
    if key.kind is Kind.CATEGORY and key in undo.aside:
        return f"it needs {key}, which is in quarantine"
    return None if _will_be_there(undo, key) else f"it needs {key}, which no longer exists"


def _find_reopened(undo: UndoAim) -> None:
    """Find renames that the history does not record, by which content of a private tag becomes public again.

    A retired name that still shows the content publicly only gets its keywords back (docs/repair.md).
    """
    private = {key: one.row for key, one in undo.aim.leaving.items() if key.kind is Kind.TAG and is_private(one.row)}
    for key, resource in undo.aim.desired.items():
        row = undo.recorded.get(key)
        if key.kind is not Kind.TAG or row is None or row.status is Status.ACTIVE:
            continue
        new = {*shown(resource.body)} - {*shown(row.body)}
        formers = tuple(old for old, secret in private.items() if new & {*shown(secret.body)})
        if resource.body.fields.get("visibility") == "PUBLIC" and formers:
            undo.aim.renames[key] = formers
        for former in undo.aim.renames.get(key, ()):
            undo.aim.leaving[former] = dataclasses.replace(undo.aim.leaving[former], taken_by=key)
            private.pop(former)


def _references(resource: Resource) -> Sequence[Key]:
    if resource.key.kind is not Kind.TAG:
        return ()
    kinds = {"category": Kind.CATEGORY, "defaultActivityTypeCode": Kind.ACTIVITY_TYPE}
    names = ((kind, resource.body.fields.get(name)) for name, kind in kinds.items())
    return [Key(kind, name) for kind, name in names if isinstance(name, str) and name]


def _will_be_there(undo: UndoAim, key: Key) -> bool:
    row = undo.recorded.get(key)
    renamed = any(formers == (key,) for formers in undo.aim.renames.values())
    return key in undo.aim.desired or (row is not None and may_be_held(row) and not renamed)


LAST = "last"


def make_undo_plan(run: str, project: Project, request: PlanRequest, runtime: Runtime, *, forced: bool) -> Plan:
    """Plan to restore everything that a run changed to its content before the run. `run` is an id or `last`."""
    with open_state(project.state, write=False, now=runtime.now, memory=memory_of(project)) as state:
        done = run_to_undo(state, run, runtime.now())
        changed = (row.key for row in state.changes_of(done.id))
        scope = request.scope.of({*changed, *(row.key for row in state.rows())} if request.scope.selective else ())
        undo = _described(done, project, scope, forced=forced)
        aside = set_aside_now(quarantine_in(state, project, runtime.now()))  # as if the manifests asked for it still
        reasons = {each.key: f"it {entry_words(each, project.config_name)}" for each in aside}
        draft = undo_plan(undo, state, project, request, runtime, reasons)
        if scope.selective and not selected_rows(state.changes_of(undo.run), scope):
            message = f"no change of run {undo.run} is selected: nothing is undone"
            found = Diagnostic(severity=Severity.WARNING, code=NOTHING_SELECTED, message=message)
            draft = replace(draft, diagnostics=(*draft.diagnostics, found))
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
    return plan_back(undo, state, options_of(project, request, facts), basis, runtime.now, aside)


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
        records=records_in(state, now()),
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


def record_of(plan: Plan, undone: Sequence[UndoneChange], redoes: Collection[Key]) -> UndoneRecord:
    """Return the undone changes that a plan lifts: those that it repeats, and those that no manifest asks for any more.

    Changes that were undone after the plan was made stay, as a saved plan does not know whether manifests ask for them.
    """
    undos = set(plan.undos or ()) if plan.is_whole else set()
    return UndoneRecord(lifted=[each for each in undone if each.key in redoes or each.undone_by in undos])
