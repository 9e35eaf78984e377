"""Refuse an apply before anything is sent or written: new states in CI, stale plans, older commits, removals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from syncengine.apply.causes import last_change
from syncengine.apply.refused_content import RefusedContent
from syncengine.apply.staleness import Mismatch, changed_since, mismatches
from syncengine.document.setting_types import canonical_url
from syncengine.errors import GateTripped, PolicyDenied, StalePlan, Undone, WrongTeam
from syncengine.plan.aim import Rules, may_be_held
from syncengine.plan.approvals import KnownApprovals, records_of, records_of_plan
from syncengine.plan.consistency import Present, prove
from syncengine.plan.diff import Change, Diff, Difference
from syncengine.plan.gate import Gate, JudgedRows, StateRecords, gate
from syncengine.plan.judgement import POLICY_DENIED, judgement_of, units_of_judgement
from syncengine.plan.losses import totals_of_contents
from syncengine.plan.model import Plan
from syncengine.plan.quarantine import set_aside_now
from syncengine.plan.recent_losses import recent_losses
from syncengine.plan.review import WRITES
from syncengine.plan.rule_units import going_on, rule_units, with_rules
from syncengine.plan.saved_aim import inconsistent
from syncengine.plan.shrinking import loses_rows_of_data
from syncengine.plan.since import in_words
from syncengine.plan.state_checks import (
    OLDER_COMMIT,
    OTHER_SERVICE,
    is_older,
    of_another_service,
    older_than,
    quarantine_in,
    unread,
)
from syncengine.plan.tree import not_merged
from syncengine.plan.undone import objections, redone_by
from syncengine.plan.units import OPENED, RULE
from syncengine.project.model import SANDBOX, Project
from syncengine.project.schema import Limit
from syncengine.resource import Key, Kind, Recorded
from syncengine.rules.model import RuleSet
from syncengine.state.folder_memory import NEW_STATE
from syncengine.state.refusals import REMOVAL
from syncengine.state.store import Facts, State, open_state

UNMERGED = "not-merged"
"""The diagnostic code of a saved plan whose manifests are not the ones checked out."""


def refuse_new_state(url: str) -> None:
    """Refuse to create a state in CI, where a missing one is usually a mistake (docs/planning.md 7)."""
    with open_state(url, write=False) as state:
        if not state.exists:
            message = "there is no state yet, which is usually a mistake in a CI job: create one with --new-state"
            raise GateTripped(message, code=NEW_STATE)


def refuse_ungated(plan: Plan) -> None:
    """Refuse changes whose required approval is missing (docs/planning.md 5)."""
    if plan.gate.is_closed:
        reasons = "; ".join(plan.gate.reasons)
        open_units = [unit for unit in plan.gate.units if unit.is_open]
        has_rules = any(unit.kind == RULE for unit in open_units)
        everything = None if has_rules else plan.gate.approve  # it does not cover rules
        approve = everything or " --approve-deletes ".join(unit.approve for unit in open_units)
        what = _asking(frozenset(unit.kind for unit in open_units))
        raise GateTripped(f"{what} need an approval: {reasons} (--approve-deletes {approve})")


def _asking(kinds: frozenset[str]) -> str:
    """Return a description of the changes that need an approval, by the kinds of their units."""
    if RULE in kinds:
        return "changes"
    both = filter(None, ("removals" if kinds - {OPENED} else "", "opened tags" if OPENED in kinds else ""))
    return " and ".join(both)


def refuse_older(root: Path, commit: str | None, facts: Facts, *, allowed: bool) -> str | None:
    """Refuse a commit older than the last applied one; return a warning if Git cannot tell (docs/planning.md 1.7)."""
    if commit is None:
        return unread(root, facts)
    older = is_older(root, commit, facts)
    if older is None:
        return f"Git cannot tell whether {older_than(commit, facts)}"
    if older and not allowed:
        cure = "check out a newer commit, or apply this one with --allow-older"
        raise StalePlan(f"{older_than(commit, facts)}: {cure}", code=OLDER_COMMIT)
    return None


def refuse_other_service(facts: Facts, base_url: str) -> None:
    """Refuse a state that belongs to another service (docs/planning.md 1.6)."""
    if of_another_service(facts, base_url):
        message = f"the state belongs to {facts.base_url}, but the project's service is {base_url}"
        raise WrongTeam(f"{message}; if the service moved, run `syncengine state rebind`", code=OTHER_SERVICE)


def refuse_unmerged(plan: Plan, root: Path, *, allowed: bool) -> None:
    """Refuse a saved plan of files that are not checked out, to apply nothing unmerged (docs/planning.md 6)."""
    why = None if allowed else not_merged(plan, root)
    if why is not None:
        raise StalePlan(
            f"this plan was made from {why}: merge its pull request, plan again, or use --allow-unmerged",
            code=UNMERGED,
        )


def refuse_sandbox(plan: Plan, project: Project) -> None:
    """Refuse a saved plan of the sandbox for any other service, even if no other is known."""
    if plan.basis.base_url == SANDBOX and not project.is_sandbox:
        raise StalePlan("the plan was made for the embedded sandbox: apply it with --sandbox")


def refuse_elsewhere(plan: Plan, state: State, base_url: str) -> None:
    """Refuse a saved plan that was used, or was made for another state, service or team (docs/planning.md 6)."""
    facts = state.facts()
    if plan.changes_something and state.plan_ended(plan.id):
        raise StalePlan(f"plan {plan.id} was already applied: plan again to see what remains", code="plan-used")
    lineage = facts.lineage if facts.team else ""
    if plan.basis.lineage not in ("", lineage) or canonical_url(plan.basis.base_url) != canonical_url(base_url):
        raise StalePlan("the plan was made for another state or service: plan again")
    if plan.basis.team not in (None, facts.team):
        raise StalePlan(f"the plan is for team {plan.basis.team!r}, the state for team {facts.team!r}")


def refuse_quarantined(plan: Plan, state: State, project: Project, now: float) -> None:
    """Refuse a saved plan that would send a resource that was quarantined after planning (docs/quarantine.md)."""
    aside = list(set_aside_now(quarantine_in(state, project, now)))
    content = RefusedContent(plan)
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
    """Refuse a saved plan whose recorded rows have changed since it was made."""
    rows = state.get(plan.prior)
    differing = mismatches(plan, rows, _grouped(plan, state))
    if differing:
        changes = {change.key: change for change in plan.changes}
        few = differing[:5]
        first = "; ".join(_in_words(each, changes.get(each.key), rows.get(each.key), state) for each in few)
        more = f" and {len(differing) - 5} more" if len(differing) > 5 else ""
        raise StalePlan(f"the plan is stale: {first}{more}; plan again")


def _in_words(mismatch: Mismatch, change: Change | None, row: Recorded | None, state: State) -> str:
    """Return a description of how a row differs from the plan's basis, and which run changed it."""
    details = (in_words(changed_since(change, row)), last_change(state, mismatch.key))
    reasons = "; ".join(filter(None, details))
    return f"{mismatch.key}: {mismatch.why}" + (f" ({reasons})" if reasons else "")


class RowsOfPlan:
    """The rows that the checks of a saved plan need. They are read once, since this process holds the lock.

    `touched` are the rows that the plan writes, and those that it must know completely. `judged` are for its gate.
    """

    def __init__(self, plan: Plan, state: State) -> None:
        self._plan = plan
        self._state = state

    @cached_property
    def touched(self) -> Mapping[Key, Recorded]:
        return _touched(self._plan, self._state)

    @cached_property
    def judged(self) -> JudgedRows:
        if loses_rows_of_data(self._plan.changes, self.touched):
            return JudgedRows({row.key: row for row in self._state.rows()})
        totals = totals_of_contents(self._state.contents())
        return JudgedRows(self.touched, lambda: totals)


def refuse_inconsistent(
    plan: Plan, state: State, rules: Rules, limits: Mapping[str, Limit], rows: RowsOfPlan | None = None
) -> Diff | None:
    """Refuse a saved plan whose calls do not match the changes it shows (docs/planning.md 6); return its differences.

    Return `None` for a plan that was begun already: it was checked when it began and has changed its rows since. Its id
    ends in a digest of its content.
    """
    if state.plan_began(plan.id):
        return None
    rows = rows or RowsOfPlan(plan, state)
    owns, records = state.facts().owns_activity_types, lambda: records_of(state.approvals())
    return prove(plan, Present(rows.touched, lambda: rows.judged, rules, limits, owns, records))


def judged_again(plan: Plan, claim: Gate, delta: Diff | None, state: State, rule_set: RuleSet) -> Plan:
    """Return the saved plan with the findings of today's rules added to those from when it was made.

    Denials in the file stay, and so do the rule units of its gate, the `claim`. A plan that was begun already (`delta`
    is `None`) is only finished, under the approvals with which it began.
    """
    if delta is None:
        return replace(plan, gate=with_rules(plan.gate, (), tuple(going_on(state.approvals(), plan.id))))
    formers = [Key(c.key.kind, c.previously) for c in plan.changes if c.previously is not None]
    judgement = judgement_of(rule_set, delta.differences, state.get(formers), plan.summary)
    records = lambda: records_of(state.approvals())  # noqa: E731 - read when it is needed
    units, begun = units_of_judgement(judgement, delta.differences, records, plan.basis)
    names = {unit.id for unit in (*units, *begun)}
    units += (unit for unit in rule_units(claim) if unit.id not in names)
    earlier = frozenset(plan.diagnostics)
    found = (diagnostic for diagnostic in judgement.diagnostics if diagnostic not in earlier)
    return replace(plan, gate=with_rules(plan.gate, units, begun), diagnostics=(*plan.diagnostics, *found))


def refuse_denied(plan: Plan) -> None:
    """Refuse a plan that a rule of the project denies (docs/rules.md)."""
    if denials := [diagnostic for diagnostic in plan.diagnostics if diagnostic.code == POLICY_DENIED]:
        raise PolicyDenied(denials)


def refuse_undone(plan: Plan, state: State, *, allowed: bool) -> tuple[Key, ...]:
    """Refuse to redo changes of an undone run (docs/undo.md), or return the resources whose redoing is allowed."""
    if plan.undo:
        return ()
    undone = state.undone()
    again = redone_by(plan, _touched(plan, state) if undone else {}, undone)
    keys = tuple(dict.fromkeys((*(plan.redoes or ()), *(each.key for each in again))))
    if keys and not allowed:
        computed = {each.key for each in again}
        others = [each for each in undone if each.key in keys and each.key not in computed]
        raise Undone(tuple(objections((*again, *others))))
    return keys


def refuse_other_undo(plan: Plan, again: Plan) -> None:
    """Refuse a saved undo that differs from `again`, the undo of the named run computed from today's state."""
    left_out = [each.undo.left_out if each.undo else () for each in (plan, again)]
    calls, calls_again = ((each.changes, each.stages, each.sweep, each.records) for each in (plan, again))
    if calls != calls_again or left_out[0] != left_out[1]:
        raise inconsistent("it does not undo the run that it names")


def with_gate_of_today(
    plan: Plan, state: State, limits: Mapping[str, Limit], now: float, rows: RowsOfPlan | None = None
) -> Plan:
    """Return the saved plan with its gate judged anew, counting removals and spent approvals of other runs since.

    The new gate is at least as strict as the saved one. A plan that was begun already is only finished: changes that an
    approval covered when it began still go ahead.
    """
    if not plan.gate.whole:  # it was proven to take nothing
        return plan
    begun = state.plan_began(plan.id)
    if begun and not plan.gate.tripped:
        return plan
    judged = (rows or RowsOfPlan(plan, state)).judged
    records = _records_of_begun(plan, state) if begun else records_of(state.approvals())
    differences = [Difference(change, _row_of(change, judged.rows)) for change in plan.changes]
    today = gate(
        list(map(_unfinished, differences)) if begun else differences,
        judged.rows,
        limits,
        None,
        sweep=plan.sweep,
        owner=plan.basis.owner,
        lines=plan.gate.lines,
        records=StateRecords(judged.totals, dict if begun else lambda: recent_losses(state, now), lambda: records),
    )
    return replace(plan, gate=today if begun else today.as_strict_as(plan.gate))


def _records_of_begun(plan: Plan, state: State) -> KnownApprovals:
    """Return the approvals on record, including those that still cover removals of a plan that was begun."""
    found, owns = state.approvals(), state.facts().owns_activity_types
    rows = state.get(loss.key for each in found if each.plan == plan.id for loss in each.covers)
    return records_of_plan(found, plan.id, rows, owns_activity_types=owns)


def _unfinished(difference: Difference) -> Difference:
    """Return the difference without removals that the begun run already made in the row."""
    change, row = difference.change, difference.row
    if row is None:
        return difference
    keywords = tuple(each for each in change.keywords_deleted if each in row.body.keywords)
    metadata = tuple(name for name in change.metadata_deleted if name in row.body.metadata)
    return Difference(replace(change, keywords_deleted=keywords, metadata_deleted=metadata), row)


def _row_of(change: Change, rows: Mapping[Key, Recorded]) -> Recorded | None:
    former = Key(change.key.kind, change.previously) if change.previously else change.key
    return rows.get(change.key) or rows.get(former)


def _touched(plan: Plan, state: State) -> dict[Key, Recorded]:
    """Return the rows that a plan writes, and the groups of rows that it must know completely."""
    keys = {change.key for change in plan.changes}
    keys |= {former for change in plan.changes for former in change.formers}
    keys |= {effect.key for effect in plan.effects()}
    keys |= {key for call in plan.calls() for item in call.items for key in item.needs}
    renamed = [c.previously for c in plan.changes if c.key.kind is Kind.CATEGORY and c.previously is not None]
    rows = {**state.get(keys), **{row.key: row for row in _grouped(plan, state)}}
    return {**rows, **{row.key: row for row in state.members(renamed)}} if renamed else rows


def _grouped(plan: Plan, state: State) -> Iterator[Recorded]:
    """Yield rows of which a plan must know all: activity types if it sweeps, members of categories that it deletes."""
    if plan.sweep is not None:
        yield from (row for row in state.rows(Kind.ACTIVITY_TYPE) if may_be_held(row))
    going = [c.key.name for c in plan.changes if c.key.kind is Kind.CATEGORY and c.action.word == "delete"]
    if going:
        yield from state.members(going)
