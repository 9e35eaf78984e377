"""Plan the undo of a run in the history, from the rows that the run changed (docs/repair.md).

Nothing is swept, and no category or activity type is deleted: those that the run created stay and are released. Tags
that the run created are retired, whatever the policy is. Reads the state, and Git for how to revert.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain

from msgspec.structs import replace

from syncengine.errors import Diagnostic, LockHeld, Severity, Usage
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Aim, Note, PlannedRemoval, RemovalCause, RemovalKind, is_private, may_be_held, shown
from syncengine.plan.build import plan_to
from syncengine.plan.checks import NOTHING_SELECTED
from syncengine.plan.diff import REMOVALS, Action, is_sent
from syncengine.plan.inputs import quarantine_in
from syncengine.plan.model import Basis, Options, Plan, PlanInputs, Undo
from syncengine.plan.planner import basis_of, options_of, records_in, with_warnings
from syncengine.plan.quarantine import entry_words, set_aside_now
from syncengine.plan.request import PlanRequest, Runtime, Scope
from syncengine.project import git
from syncengine.project.model import Ownership, Project
from syncengine.resource import Body, Key, Kind, Recorded, Resource, Source, Status
from syncengine.state.folder_memory import memory_of
from syncengine.state.history import REFUSED, ChangedRow, Run, fields_as
from syncengine.state.records import UndoneChange, UndoneRecord, made_of
from syncengine.state.store import State, open_state

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

    `aside` maps resources in quarantine to the reason for leaving them out. `begun` are the actions on the resources of
    which a run of this undo may have done a part.
    """

    run: str
    recorded: Mapping[Key, Recorded]
    aside: Mapping[Key, str] = field(default_factory=dict)
    begun: Mapping[Key, Action] = field(default_factory=dict)
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
    begun: Mapping[Key, Action],
    *,
    forced: bool,
) -> UndoAim:
    """Decide the aim that reverses a run's changes, except for resources in quarantine (`aside`, with reasons).

    `forced` also reverses changes of rows that later runs changed.
    """
    undo = UndoAim(run, recorded, aside, begun)
    changes = sorted(rows_of_run, key=lambda row: (ORDER[row.key.kind], row.key.name))
    rows = {row.key: row for row in selected_rows(changes, scope)}
    for key, row in list(rows.items()):
        # What the run left in doubt, and no later run resolved, may have been changed by it.
        if not (row.is_changed or (row.now is not None and row.now.doubtful and not row.others)):
            del rows[key]
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
    _follow_references(undo, rows)
    _find_reopened(undo)
    return undo


def selected_rows(changes: Iterable[ChangedRow], scope: Scope) -> list[ChangedRow]:
    """Return the rows that a selection undoes. A renamed category counts as one unit."""
    rows = list(changes)
    others = {row.renamed_to: row.key for row in rows if row.renamed_to is not None}
    others |= {old: new for new, old in others.items() if new is not None}
    units = ((row, (row.key, *([others[row.key]] if row.key in others else []))) for row in rows)
    return [row for row, unit in units if scope.selects(*((key, None) for key in unit))]


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
        new = undo.recorded.get(row.renamed_to) if row.renamed_to is not None else None
        server_id = row.before.server_id if row.before is not None else None
        if new is not None and not may_be_held(new) and server_id is not None:  # later runs renamed it again
            same = (each for each in undo.recorded.values() if each.server_id == server_id and may_be_held(each))
            new = next((each for each in same if each.key.kind is Kind.CATEGORY), new)
        if new is None or row.now is None or row.now.status is not Status.DELETED or not _was_held(row):
            continue
        if new.key in undo.aside:  # under a name that the run does not know
            undo.leave_out(row, f"it is the same category as {new.key}, which is in quarantine")
            del rows[key]
        elif may_be_held(new) and new.server_id and row.now.server_id in (None, new.server_id):
            undo.aim.renames[key] = (new.key,)


def _is_remade(row: ChangedRow) -> bool:
    """Return whether the undo creates again a resource that the run deleted."""
    return _was_held(row) and row.now is not None and not may_be_held(row.now)


def _was_held(row: ChangedRow) -> bool:
    return row.before is not None and row.before.status is not Status.DELETED


def _bring_back(undo: UndoAim, row: ChangedRow, ids: Mapping[str, str]) -> None:
    """Take away what the run made; restore what was managed; let go again of what was not, sent first if it differs."""
    key, now, before = row.key, row.now, row.before
    assert now is not None, "rows that are gone are left out"
    if before is None or before.status is Status.DELETED:
        is_renamed = any(new == (key,) for new in undo.aim.renames.values())
        is_done = now.status is Status.RETIRED and not now.body.keywords
        if may_be_held(now) and not (is_renamed or is_done):
            way = RemovalKind.RETIRE if key.kind is Kind.TAG else RemovalKind.FORGET
            _let_go(undo, row, now, way, f"made by run {undo.run}", STAYS.get(key.kind, ""))
        return
    if before.status is Status.ACTIVE:
        undo.aim.desired[key] = _resource(undo, row, before, now, ids)
        if _is_remade(row) and key not in undo.aim.renames:
            is_category = key.kind is Kind.CATEGORY
            what = "the new category gets another id" if is_category else "time that had it before does not get it back"
            undo.note(row, MADE_ANEW, f"it was deleted, and {what}")
        elif now.status is Status.RELEASED:
            undo.note(row, MANAGED, "managed again, as before")
        return
    # Otherwise it is as it was, or a member of a renamed category, which follows it by itself.
    is_elsewhere = before.status is not now.status or (now.status is Status.RETIRED and bool(now.body.keywords))
    # What is left of a change that a run of this undo began stays what was reviewed: the doubt that a removal left is
    # no reason to send the resource, and one that was sent is not removed, if only keywords are left to delete.
    action = undo.begun.get(key)
    again = now.doubtful if action is None else action not in REMOVALS and (now.doubtful or is_elsewhere)
    if again or _differs(undo, before, now):
        undo.aim.desired[key] = _resource(undo, row, before, now, ids)
    elif is_elsewhere:
        way = RemovalKind.RETIRE if before.status is Status.RETIRED else RemovalKind.FORGET
        _let_go(undo, row, now, way, "as before the run that is undone")


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


def _follow_references(undo: UndoAim, rows: Mapping[Key, ChangedRow]) -> None:
    """Leave out tags that need what is gone or in quarantine, and add the categories whose ids tags need.

    A category whose id is unknown or in doubt is sent as it is recorded.
    """
    old_names = set(chain.from_iterable(undo.aim.renames.values()))
    kinds = {"category": Kind.CATEGORY, "defaultActivityTypeCode": Kind.ACTIVITY_TYPE}
    for tag, resource in list(undo.aim.desired.items()):
        names = ((kind, resource.body.fields.get(name)) for name, kind in kinds.items() if tag.kind is Kind.TAG)
        needed: list[Key] = []
        for key in [Key(kind, name) for kind, name in names if isinstance(name, str) and name]:
            row = undo.recorded.get(key)
            why = None
            if key.kind is Kind.CATEGORY and key in undo.aside:
                why = f"it needs {key}, which is in quarantine"
            elif key not in undo.aim.desired and (row is None or not may_be_held(row) or key in old_names):
                why = f"it needs {key}, which no longer exists"
            if why is not None:
                del undo.aim.desired[tag]
                undo.aim.notes = [note for note in undo.aim.notes if note.key != tag]
                undo.leave_out(rows[tag], why)
                needed = []
                break
            if key.kind is Kind.CATEGORY and row is not None and not (row.server_id and row.confirmed):
                needed.append(key)
        for key in needed:
            row = undo.recorded[key]
            place = row.source or Source(f"run {undo.run}", 1)
            undo.aim.desired.setdefault(key, Resource(key, row.body, place, row.protect, status=row.status))


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


LAST = "last"


def make_undo_plan(run: str, project: Project, request: PlanRequest, runtime: Runtime, *, forced: bool) -> Plan:
    """Plan to restore everything that a run changed to its content before the run. `run` is an id or `last`."""
    with open_state(project.state, write=False, now=runtime.now, memory=memory_of(project)) as state:
        done = run_to_undo(state, run, runtime.now())
        changed = (row.key for row in state.changes_of(done.id))
        scope = request.scope.of({*changed, *(row.key for row in state.rows())} if request.scope.selective else ())
        is_of_commit = done.commit is not None and done.clean is not False and done.undoes is None
        undo = Undo(
            run=done.id,
            command=done.command,
            started=datetime.fromtimestamp(done.started, UTC).isoformat(timespec="seconds"),
            commit=done.commit,
            revert=git.revert_of(project.root, done.commit) if done.commit and is_of_commit else None,
            forced=forced,
            targets=scope.targets,
            excludes=scope.excludes,
        )
        aside = set_aside_now(quarantine_in(state, project, runtime.now()))  # as if the manifests asked for it still
        reasons = {each.key: f"it {entry_words(each, project.config_name)}" for each in aside}
        draft = undo_plan(undo, state, project, request, runtime, reasons)
        if scope.selective and not selected_rows(state.changes_of(undo.run), scope):
            message = f"no change of run {undo.run} is selected: nothing is undone"
            found = Diagnostic(severity=Severity.WARNING, code=NOTHING_SELECTED, message=message)
            draft = replace(draft, diagnostics=(*draft.diagnostics, found))
        return with_warnings(draft, state, project, request)


def undo_plan(
    undo: Undo,
    state: State,
    project: Project,
    request: PlanRequest,
    runtime: Runtime,
    aside: Mapping[Key, str] = {},
    saved: Plan | None = None,
) -> Plan:
    """Plan the undo of a known run in a state that is already open. The work tree is not read.

    `aside` maps resources in quarantine to the reason for leaving them out. `saved` is the plan of this undo that is
    made again, which knows them.
    """
    facts = state.facts()
    basis: Basis = replace(basis_of(project, facts, runtime), commit=None, tree=None)
    return plan_back(undo, state, options_of(project, request, facts), basis, runtime.now, aside, saved)


def plan_back(
    undo: Undo,
    state: State,
    options: Options,
    basis: Basis,
    now: Callable[[], float],
    aside: Mapping[Key, str],
    saved: Plan | None,
) -> Plan:
    """Return the plan that undoes a run, by the rules and limits of the options. `saved` is as in `undo_plan`."""
    begun: Mapping[Key, Action] = {}
    if saved is not None:
        aside = dict.fromkeys(saved.set_aside, "it was in quarantine")
        begun = {change.key: change.action for change in saved.changes}
    scope = Scope(targets=undo.targets, excludes=undo.excludes)
    rules = dataclasses.replace(options.rules, activity_types=Ownership.ADDITIVE)  # `exact` would cause a sweep
    recorded = {row.key: row for row in state.rows()}
    target = undo_aim(undo.run, state.changes_of(undo.run), recorded, scope, aside, begun, forced=undo.forced)
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
    found = [state.writing_run()] if name == LAST else state.runs_like(name)
    if not found:
        raise Usage(f"the history has no run {name}: `syncengine state history` lists the runs")
    exact = [run for run in found if run is not None and run.id == name]
    if len(found) > 1 and not exact:
        few = ", ".join(run.id for run in found[:5] if run is not None) + (", …" if len(found) > 5 else "")
        raise Usage(f"{name} is the beginning of several run ids: {few}")
    run = (exact or found)[0]
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


def record_of(plan: Plan, undone: Sequence[UndoneChange], redoes: Collection[Key]) -> UndoneRecord:
    """Return the undone changes that a plan lifts: those that it repeats, and those that no manifest asks for any more.

    Changes that were undone after the plan was made stay, as a saved plan does not know whether manifests ask for them.
    """
    undos = set(plan.undos or ()) if plan.is_whole else set()
    return UndoneRecord(lifted=[each for each in undone if each.key in redoes or each.undone_by in undos])
