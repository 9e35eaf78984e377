"""Refuse an apply before anything is sent or written: new states in CI, stale plans, older commits, removals.

Reads the state: rows that are done or begun, and from the history who changed them (docs/reviews.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from syncengine.apply.report import PLAN_USED
from syncengine.apply.run import PlannedContent
from syncengine.content import ValueChange, value_changes
from syncengine.errors import (
    REFUSALS,
    Diagnostic,
    GateTripped,
    PolicyDenied,
    Severity,
    StalePlan,
    SyncengineError,
    Undone,
    WrongTeam,
)
from syncengine.plan import saved
from syncengine.plan.aim import has_known_id, in_an_unknown_category, may_be_held
from syncengine.plan.checks import objections_to_redo
from syncengine.plan.diff import WRITES, Change
from syncengine.plan.gate import OPENED, RULE, Unit, gate, records_of
from syncengine.plan.inputs import is_older, not_merged, of_another_service, older_than, quarantine_in, unread
from syncengine.plan.judgement import POLICY_DENIED, going_on, judgement_of, units_of_judgement
from syncengine.plan.losses import totals_of
from syncengine.plan.model import OLDER_COMMIT, OTHER_SERVICE, Excess, Options, Plan, Since, in_words
from syncengine.plan.planner import records_in
from syncengine.plan.quarantine import set_aside_now
from syncengine.plan.request import PlanRequest
from syncengine.plan.review import ReviewedPlan, atoms, since_review
from syncengine.plan.saved import Replanned, inconsistent, keys_of, redone_by, renamed_and_going
from syncengine.project import git
from syncengine.project.model import SANDBOX, Project
from syncengine.project.references import canonical_url
from syncengine.resource import Body, Key, Kind, Recorded
from syncengine.service.operations import DELETE_KEYWORD
from syncengine.state.codec import digest
from syncengine.state.folder_memory import NEW_STATE
from syncengine.state.history import last_writer
from syncengine.state.records import REMOVAL, Facts, UndoneChange
from syncengine.state.store import State, open_state


def last_change(state: State, key: Key) -> str | None:
    """Return a description of the run that last wrote a resource, or `None` when the history has none."""
    last = last_writer(state.history(key))
    if last is None or last.run is None:
        return None
    at = datetime.fromtimestamp(last.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    who = f" by {last.user}@{last.host}" if last.user else ""
    commit = f" at commit {last.commit[:12]}" if last.commit else ""
    job = f" ({last.job_url})" if last.job_url else ""
    return f"last changed by run {last.run} ({last.command}{commit}){who}, {at}{job}"


MORE, MISSING, DENIED = "more-than-reviewed", "reviewed-missing", "reviewed-denied"
TRACED = 20  # each is a query
"""The maximum number of differences whose cause is looked up in the history."""
TOLD = 100  # the rest is counted: nobody reviews more in a refusal
SQLITE = b"SQLite format 3\0"


class MoreThanReviewed(StalePlan):
    """A refusal because today's plan makes changes that nobody reviewed, listed in `excess`."""

    code = MORE

    def __init__(self, reviewed: str, excess: Sequence[Excess]) -> None:
        super().__init__(f"today's plan does more than was reviewed in {reviewed}; nothing was sent: review a new plan")
        self.excess = tuple(excess)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the refusal, then each unreviewed change at its address."""
        more = len(self.excess) - TOLD
        rest = [Excess(f"and {more:,} more")] if more > 0 else []
        return (
            *super().diagnostics(),
            *(
                Diagnostic(severity=Severity.ERROR, code=MORE, message=each.message, address=each.address)
                for each in (*self.excess[:TOLD], *rest)
            ),
        )


@dataclass(frozen=True, slots=True)
class RecordedPast:
    """The recorded state, in the form that comparing plans needs."""

    state: State

    def rows(self, keys: Iterable[Key]) -> Mapping[Key, Recorded]:
        return self.state.get(keys)

    def plans_of(self, runs: Iterable[str | None]) -> Mapping[str, frozenset[str]]:
        ids = {run for run in runs if run}
        found = self.state.runs_of(ids) if ids else ()
        return {run.id: frozenset(filter(None, (run.plan, *run.reviewed))) for run in found}

    def last_run(self, key: Key) -> tuple[str | None, bool]:
        last = last_writer(self.state.history(key))
        return (last.run, last.operation == DELETE_KEYWORD.id) if last is not None else (None, False)


def compared(plan: Plan, reviewed: Sequence[ReviewedPlan], state: State, project: Project) -> Since:
    """Return how today's plan exceeds the reviewed ones, with the causes that the history knows."""
    since = since_review(plan, reviewed, RecordedPast(state), cache(lambda name: is_live(project, name)))
    traced = (
        replace(each, cause=last_change(state, Key.parse(each.address))) if each.address else each
        for each in since.excess[:TRACED]
    )
    return replace(since, excess=(*traced, *since.excess[TRACED:]))


def is_live(project: Project, name: str) -> bool:
    """Return whether the source `name` is a database or a service, whose rows come from no commit."""
    path = project.root / name
    if not path.is_file():
        return name in project.sources
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE and not git.may_keep(path.parent, path.name)


def refuse_missing(files: Sequence[str]) -> None:
    """Refuse to apply when these files of reviewed plans, if any, do not exist."""
    if files:
        names = ", ".join(files)
        message = f"the reviewed plan {names} does not exist; nothing was sent: fetch it, or leave --reviewed out"
        raise StalePlan(message, code=MISSING)


UNMERGED = "not-merged"
"""The diagnostic code of a saved plan whose manifests are not the ones checked out."""

PRECEDENCE = {code: place for place, code in enumerate(REFUSALS)}


def refuse(problems: Iterable[SyncengineError], told: Sequence[Diagnostic], remark: Callable[[str, str], None]) -> None:
    """Raise the problem that comes first in `REFUSALS`, if there is any, and remark on the others.

    What the plan itself has `told` as its diagnostics is not told again.
    """
    ordered = sorted(problems, key=lambda each: PRECEDENCE[each.code])
    for other in ordered[1:]:
        if not all(each in told for each in other.diagnostics()):
            remark(other.code, other.message)
    if ordered:
        raise ordered[0]


def problems_of(
    plan: Plan,
    repeated: Sequence[UndoneChange],
    commit: str | None,
    state: State,
    project: Project,
    request: PlanRequest,
    *,
    is_saved: bool,
) -> Iterator[SyncengineError]:
    """Yield every reason to refuse a plan of `commit` that changes `repeated` back (docs/commands.md)."""
    if denials := [diagnostic for diagnostic in plan.diagnostics if diagnostic.code == POLICY_DENIED]:
        yield PolicyDenied(denials)
    if repeated and not request.redo:
        yield Undone(tuple(objections_to_redo(repeated)))
    if plan.gate.is_closed:
        open_units = [unit for unit in plan.gate.units if unit.is_open]
        has_rules = any(unit.kind == RULE for unit in open_units)
        everything = None if has_rules else plan.gate.approve  # it does not cover rules
        approve = everything or " --approve-deletes ".join(unit.approve for unit in open_units)
        kinds = {unit.kind for unit in open_units}
        removals, opened = "removals" if kinds - {OPENED} else "", "opened tags" if OPENED in kinds else ""
        what = "changes" if has_rules else " and ".join(filter(None, (removals, opened)))
        yield GateTripped(f"{what} need an approval: {'; '.join(plan.gate.reasons)} (--approve-deletes {approve})")
    facts = state.facts()
    if commit and not request.allow_older and is_older(project.root, commit, facts):
        cure = "check out a newer commit, or apply this one with --allow-older"
        yield StalePlan(f"{older_than(commit, facts)}: {cure}", code=OLDER_COMMIT)
    if is_saved and not request.allow_unmerged and (why := not_merged(plan, project.root)):
        cure = "merge its pull request, plan again, or use --allow-unmerged"
        yield StalePlan(f"this plan was made from {why}: {cure}", code=UNMERGED)
    if request.review is not None:
        valid = [each for each in request.review.plans if not each.is_denied]
        if excess := compared(plan, valid, state, project).excess:
            files = ", ".join(each.file for each in valid) or "any plan that no rule denies (there is none)"
            yield MoreThanReviewed(files, excess)


def repeated_by(plan: Plan, state: State) -> list[UndoneChange]:
    """Return the undone changes that a plan repeats, by its calls and by what it says (docs/repair.md)."""
    undone = () if plan.undo else state.undone()
    again = redone_by(plan, state.get({effect.key for effect in plan.records}) if undone else {}, undone)
    computed = {each.key for each in again}
    return [*again, *(each for each in undone if each.key in (plan.redoes or ()) and each.key not in computed)]


def unknown_ancestry(root: Path, commit: str | None, facts: Facts) -> str | None:
    """Return that Git cannot tell whether a commit is older than the last applied one, or `None` if it can."""
    if commit is None:
        return unread(root, facts)
    return None if is_older(root, commit, facts) is not None else f"Git cannot tell whether {older_than(commit, facts)}"


def refuse_new_state(url: str) -> None:
    """Refuse to create a state in CI, where a missing one is usually a mistake (docs/planning.md 7)."""
    with open_state(url, write=False) as state:
        if not state.exists:
            message = "there is no state yet, which is usually a mistake in a CI job: create one with --new-state"
            raise GateTripped(message, code=NEW_STATE)


def refuse_other_service(facts: Facts, base_url: str) -> None:
    """Refuse a state that belongs to another service (docs/planning.md 1.6)."""
    if of_another_service(facts, base_url):
        message = f"the state belongs to {facts.base_url}, but the project's service is {base_url}"
        raise WrongTeam(f"{message}; if the service moved, run `syncengine state rebind`", code=OTHER_SERVICE)


def refuse_sandbox(plan: Plan, project: Project) -> None:
    """Refuse a saved plan of the sandbox for any other service, even if no other is known."""
    if plan.basis.base_url == SANDBOX and not project.is_sandbox:
        raise StalePlan("the plan was made for the embedded sandbox: apply it with --sandbox")


def refuse_elsewhere(plan: Plan, state: State, base_url: str) -> None:
    """Refuse a saved plan that was used, or was made for another state, service or team (docs/planning.md 6)."""
    facts = state.facts()
    if plan.changes_something and state.plan_ended(plan.id):
        raise StalePlan(f"plan {plan.id} was already applied: plan again to see what remains", code=PLAN_USED)
    lineage = facts.lineage if facts.team else ""
    if plan.basis.lineage not in ("", lineage) or canonical_url(plan.basis.base_url) != canonical_url(base_url):
        raise StalePlan("the plan was made for another state or service: plan again")
    if plan.basis.team not in (None, facts.team):
        raise StalePlan(f"the plan is for team {plan.basis.team!r}, the state for team {facts.team!r}")


def refuse_quarantined(plan: Plan, state: State, project: Project, now: float) -> None:
    """Refuse a saved plan that would send a resource that was quarantined after planning (docs/repair.md)."""
    aside = list(set_aside_now(quarantine_in(state, project, now)))
    content = PlannedContent(plan)
    actions = {change.key: change.action for change in plan.changes} if aside else {}
    for entry in aside:
        key, refused, action = entry.key, entry.refusal.content, actions.get(entry.key)
        is_removal = refused.startswith(REMOVAL)  # or a cascade, however the resource itself was to be removed
        sends = action is not None and (
            bool(plan.undo) or (action not in WRITES if is_removal else content.of(key, action) == refused)
        )
        if sends or (plan.sweep is not None and key.kind is Kind.ACTIVITY_TYPE):
            raise StalePlan(f"the plan is stale, plan again: {key} was quarantined after the plan was made")


def refuse_changed(plan: Plan, state: State) -> None:
    """Refuse a saved plan whose recorded rows have changed since it was made (docs/planning.md 6).

    Rows that an interrupted run of this plan wrote are fine. If the plan sweeps, it must know all activity types, and
    all members of categories that it deletes.
    """
    rows = state.get(plan.prior)
    differing = [
        (key, "it changed since the plan was made")
        for key, expected in plan.prior.items()
        if digest(row := rows.get(key)) != expected and not (row is not None and row.plan == plan.id)
    ]
    added = (row.key for row in _grouped(plan, state) if row.key not in plan.prior)
    differing += [(key, "it was added since the plan was made") for key in added]
    differing += [(key, "its id, which tags need, is no longer known") for key in _missing_categories(plan, state)]
    if not differing:
        return
    changes = {change.key: change for change in plan.changes}
    words = []
    for key, why in differing[:5]:  # each with a query of the history
        values = in_words(_values_changed(changes[key], rows.get(key))) if key in changes else ""
        reasons = "; ".join(filter(None, (values, last_change(state, key))))
        words.append(f"{key}: {why}" + (f" ({reasons})" if reasons else ""))
    more = f" and {len(differing) - 5} more" if len(differing) > 5 else ""
    raise StalePlan(f"the plan is stale: {'; '.join(words)}{more}; plan again")


def _missing_categories(plan: Plan, state: State) -> Iterator[Key]:
    """Yield the categories that a plan does not send, but whose ids its tags need, and which no longer have one.

    They were deleted or put in doubt since. No repetition of the plan would bring them back.
    """
    desired = {each.key: each.body.fields for each in plan.inputs.desired}
    names = dict.fromkeys(fields.get("category") for key, fields in desired.items() if key.kind is Kind.TAG)
    asked = [key for name in names if name and (key := Key(Kind.CATEGORY, str(name))) not in desired]
    rows = state.get(asked)
    return (key for key in asked if (row := rows.get(key)) is None or not has_known_id(row))


def _values_changed(change: Change, row: Recorded | None) -> tuple[ValueChange, ...]:
    """Return the planned-from values that the row no longer has; empty if only its doubt differs."""
    body, parts = row.body if row is not None else Body(), atoms(change)
    now = {
        "fields": {name: body.fields.get(name) for part, name in parts if part == "fields"},
        "keywords": {word: word in body.keywords for part, word in parts if part == "keywords"},
        "metadata": {name: body.metadata.get(name) for part, name in parts if part == "metadata"},
    }
    planned = {kind: {name: before for (part, name), (before, _) in parts.items() if part == kind} for kind in now}
    return value_changes(planned, now) if planned != now else ()


def planned_again(plan: Plan, state: State, *, deletes_tags: bool) -> Replanned:
    """Plan a saved plan again from what it holds and today's rows (`saved.planned_again`)."""
    _, going = renamed_and_going(plan)
    if any(row.server_id is None for row in state.get(Key(Kind.CATEGORY, name) for name in going).values()):
        tag = in_an_unknown_category({row.key: row for row in state.rows()}, {})
        if tag is not None:
            why = f"tag {tag.name} may be in a category that it deletes, whose id is unknown"
            raise StalePlan(f"the plan is stale: {why}; plan again")
    return saved.planned_again(
        plan,
        rows_of(plan, state),
        is_begun=state.plan_began(plan.id),
        owns=state.facts().owns_activity_types,
        deletes_tags=deletes_tags,
    )


def refuse_more_than_rest(plan: Plan, again: Plan, state: State) -> None:
    """Refuse a saved plan that was begun if more is to do than its own runs left of it."""
    if not state.plan_began(plan.id):
        return
    basis, sweep = plan.basis, plan.sweep
    reviewed = ReviewedPlan(
        file="the saved plan",
        plan=plan.id,
        base_url=basis.base_url,
        team=basis.team,
        lineage=basis.lineage,
        environment=basis.environment or None,
        changes={change.key: change for change in plan.changes},
        sweep=frozenset(sweep.known) if sweep else None,
    )
    if excess := since_review(again, [reviewed], RecordedPast(state), lambda name: False).excess:
        first = "; ".join(f"{each.address}: {each.why}" if each.address else each.why for each in excess[:5])
        raise StalePlan(f"the plan is stale, more is to do than was left of it: {first}; plan again")


def rows_of(plan: Plan, state: State) -> dict[Key, Recorded]:
    """Return the rows from which a saved plan is planned again."""
    renamed, _ = renamed_and_going(plan)
    groups = (*state.members(renamed), *_grouped(plan, state)) if renamed else _grouped(plan, state)
    return {**state.get(keys_of(plan)), **{row.key: row for row in groups}}


def _grouped(plan: Plan, state: State) -> Iterator[Recorded]:
    """Yield rows of which a plan must know all: activity types if it sweeps, members of categories that it deletes."""
    if plan.sweep is not None:
        yield from (row for row in state.rows(Kind.ACTIVITY_TYPE) if may_be_held(row))
    _, going = renamed_and_going(plan)
    if going:
        yield from state.members(going)


def undone_again(plan: Plan, again: Plan, state: State) -> Plan:
    """Return `again`, the undo of the run that a saved plan names, computed today; refuse a plan that shows another."""
    if not state.plan_began(plan.id):
        left_out = [each.undo.left_out if each.undo else () for each in (plan, again)]
        if plan.changes != again.changes or left_out[0] != left_out[1]:
            raise inconsistent("it does not undo the run that it names")
    earlier = frozenset(plan.diagnostics)
    more = (diagnostic for diagnostic in again.diagnostics if diagnostic not in earlier)
    return replace(again, basis=plan.basis, diagnostics=(*plan.diagnostics, *more))


def with_gate_of_today(plan: Plan, again: Replanned, state: State, options: Options, now: float) -> Plan:
    """Return a saved plan that was planned again with the gate and the rules of today.

    It is judged with the removals and spent approvals of other runs since. One that was begun is only finished, under
    the approvals of then.
    """
    made, rows = again.plan, rows_of(plan, state)
    begun, found = state.plan_began(plan.id), state.approvals()
    approvals, diagnostics = records_of(found), plan.diagnostics
    if begun:
        rules: tuple[Sequence[Unit], Sequence[Unit]] = ((), tuple(going_on(found, plan.id)))
    else:
        judgement = judgement_of(options.rule_set, again.differences, rows, plan.summary)
        units, goes_on = units_of_judgement(judgement, again.differences, approvals, plan.basis.owner)
        # What a rule asked for when the plan was reviewed needs its approval, whatever has become of the rule.
        names = {unit.name for unit in (*units, *goes_on)}
        rules = ((*units, *(unit for unit in plan.gate.of_rules if unit.name not in names)), goes_on)
        more = (each for each in judgement.diagnostics if each not in plan.diagnostics)
        diagnostics = (*plan.diagnostics, *more)
    totals = totals_of(state.rows())
    judged = gate(
        () if begun and not plan.gate.tripped else again.differences,
        rows,
        options.limits,
        sweep=None if begun and not plan.gate.tripped else made.sweep,
        owner=made.basis.owner,
        lines=plan.gate.lines,
        shrunk=() if begun else plan.gate.shrunk,
        rules=rules,
        records=records_in(state, now)._replace(totals=lambda: totals),
    )
    return replace(made, gate=judged, diagnostics=diagnostics)
