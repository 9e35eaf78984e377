"""Plan → its view for people, from which text, Markdown and HTML are made, so that all of them show the same; pure.

A view has what stands above the changes, the changes in sections, and what is said of the whole plan. Each rendering
has an order of its own: on a terminal the end of a text is seen first, and in a comment its beginning. All texts in a
view are safe to show (`escape.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.errors import Diagnostic
from syncengine.plan.build import narrowed
from syncengine.plan.diff import OPENED, PUBLISHED, Change, FieldChange, SendCause
from syncengine.plan.gate import ACTIVITY_TYPES, CATEGORY, FIRST_SWEEP, REMOVED, RULE, UNKNOWN, Gate, Unit
from syncengine.plan.gate import OPENED as OPENED_UNIT
from syncengine.plan.judgement import POLICY_DENIED, denying_rules
from syncengine.plan.model import DOUBTS_OF_STATE, POLICY_CHANGED, SAID_FIRST, ChangeOrigin, Plan, Since, Whose, whose
from syncengine.plan.quarantine import refused_words
from syncengine.render.escape import file_name, quoted, visible
from syncengine.render.sections import MOST, Fold, Section, is_abridged, sections_of
from syncengine.render.style import Look
from syncengine.render.words import among, count_of, number, summary_of

ABRIDGED = "Abridged: --verbose shows every line and value."

SHORT = 12
"""The number of characters of a commit id that are shown."""

MOST_DIFFERENCES = 10
"""The number of differences beyond the reviewed plan that are listed; further ones are counted."""

MOST_UNITS = 50
"""The number of units that a text names; a plan may have thousands, all of which JSON lists."""


class ReviewedComparison(NamedTuple):
    """The comparison with a reviewed plan: its counts, the verdict, and a line for each way to go beyond that plan."""

    heading: str
    verdict: str
    excess: tuple[str, ...]


class WaitingPart(NamedTuple):
    """The changes from outside a pull request: a line that counts them by their reasons, and their sections."""

    line: str
    sections: tuple[Section, ...]


class UnitLine(NamedTuple):
    """A unit in a sentence: mark, removals, and how to approve it. `approve` is an approval to copy."""

    is_open: bool
    what: str
    how: str
    approve: str = ""

    @property
    def mark(self) -> str:
        return "✘" if self.is_open else "✔"

    def __str__(self) -> str:
        return f"{self.mark} {self.what}: {self.how}{self.approve}"


class GateView(NamedTuple):
    """The gate: whether it is closed, whose changes trip it, a line for each unit, and the reasons.

    `more` counts the units that are not named. `approvals` are to be copied: one for each open unit, or one for all of
    very many. `whole` is the approval of `everything` but rules, which it does not approve; empty when only those ask.
    """

    is_closed: bool
    heading: str
    whose: str | None
    units: tuple[UnitLine, ...]
    more: str
    reasons: tuple[str, ...]
    approvals: tuple[str, ...]
    whole: str
    everything: str


class PlanView(NamedTuple):
    """A plan as people see it.

    `plan` is the plan itself, and `own` the part that a pull request makes, which is all without `--base`. `foremost`
    diagnostics and `doubts` of the state stand above everything else, and are not among the other `diagnostics`.
    `head` has the counts and obstacles, details if any, and the scope.
    """

    plan: Plan
    own: Plan
    foremost: tuple[Diagnostic, ...]
    doubts: tuple[Diagnostic, ...]
    head: tuple[str, ...]
    since: ReviewedComparison | None
    sections: tuple[Section, ...]
    waiting: WaitingPart | None
    denied: str
    denials: tuple[Diagnostic, ...]
    gate: GateView | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def is_abridged(self) -> bool:
        """Whether some rows leave out details of their resources."""
        return is_abridged((*self.sections, *(self.waiting.sections if self.waiting else ())))


def view_of(plan: Plan, fold: Fold, most: int = MOST) -> PlanView:
    """Return the view of a plan, each section of which has at most `most` rows."""
    # A changed policy comes first, since it decides what all the others mean.
    foremost = sorted(
        (each for each in plan.diagnostics if each.code in SAID_FIRST), key=lambda each: SAID_FIRST.index(each.code)
    )
    doubts = tuple(each for each in plan.diagnostics if each.code in DOUBTS_OF_STATE)
    denials = tuple(each for each in plan.diagnostics if each.code == POLICY_DENIED)
    rules = len(denying_rules(denials))
    rules_deny = f"{count_of(rules, 'rule')} of this project {'denies' if rules == 1 else 'deny'}"
    own, waiting = _two_sides(plan)
    return PlanView(
        plan,
        own,
        tuple(foremost),
        doubts,
        tuple(filter(None, (headline(own), among(own.summary), " ".join(_scope(own))))),
        _comparison(plan.since) if plan.since else None,
        sections_of(own, fold, most),
        WaitingPart(_waiting_line(waiting), sections_of(waiting, fold)) if waiting else None,
        # An approval does not lift a denial.
        f"Denied: {rules_deny} this plan, so nothing in it can be applied." if denials else "",
        denials,
        gate_view(plan) if plan.gate.shown else None,
        tuple(each for each in plan.diagnostics if each not in (*foremost, *doubts, *denials)),
    )


def first_sentence(diagnostic: Diagnostic) -> str:
    """Return a diagnostic with its severity and code; a change of policy is shown by its message alone."""
    label = "" if diagnostic.code == POLICY_CHANGED else f"{diagnostic.severity.value}[{diagnostic.code}]: "
    return f"{label}{visible(diagnostic.message)}"


# --- the head ---------------------------------------------------------------------------------------------------------


def headline(plan: Plan) -> str:
    """Return the plan in one line: its counts, the tags that become public, and the obstacles to its apply."""
    public, unknown = made_public(plan), plan.unknown_effects
    if plan.changes or plan.sweep:
        counts = f"Plan: {summary_of(plan.summary)}."
    elif plan.base is not None:
        counts = f"This pull request makes no {'known ' if unknown else ''}changes."
    elif plan.summary.unchanged:
        verb = "matches" if plan.summary.unchanged == 1 else "match"
        counts = f"No changes. {count_of(plan.summary.unchanged, 'resource')} {verb} the recorded state."
    else:
        counts = "No changes."
    sentences = [counts]
    if count := public[OPENED]:
        sentences.append(f"Makes {count_of(count, 'PRIVATE tag')} public.")
    if count := public[PUBLISHED]:
        sentences.append(f"Makes {count_of(count, 'tag')} of unknown visibility public.")
    if unknown:
        source = "its source was" if unknown == 1 else "their sources were"
        sentences.append(f"The effect of {count_of(unknown, 'file')} is unknown, because {source} not read.")
    if plan.is_denied:
        sentences.append("Denied by a rule.")
    if plan.is_undone:
        subject = "this plan would redo" if plan.changes_something else "the manifests still ask for"
        sentences.append(f"Blocked: {subject} changes that were undone.")
    if plan.gate.is_closed:
        is_earlier = plan.base is not None and not whose(plan.gate, plan.base).own
        sentences.append(f"Blocked: approval needed{' for earlier changes' if is_earlier else ''}.")
    return " ".join(sentences)


def made_public(plan: Plan) -> Counter[FieldChange]:
    """Return how many tags become public: PRIVATE ones (`OPENED`), and those of unknown visibility (`PUBLISHED`)."""
    count: Counter[FieldChange] = Counter()
    for change in plan.changes:
        if opening := change.opening:
            count[opening] += len(change.opens or (change,))
    return count


def _scope(plan: Plan) -> Iterator[str]:
    """Yield sentences on the plan's service and team, the compared revision, and the run that it undoes."""
    base, undo = plan.base, plan.undo
    where = "The embedded sandbox" if plan.basis.base_url == "sandbox" else f"Service {visible(plan.basis.base_url)}"
    where = f"{where}, team {quoted(plan.basis.team)}" if plan.basis.team else where
    revision = base and f"{visible(base.ref)} ({base.commit[:SHORT]})"
    if base is None:
        yield f"{where}."
    elif base.is_in_git:
        yield f"Compared with {revision} in Git only: no state was read, so waiting changes are unknown."
    else:
        yield f"{where}; compared with {revision}."
    if undo:
        commit = f", commit {visible(undo.commit[:SHORT])}" if undo.commit else ""
        started = visible(undo.started[:16].replace("T", " "))
        yield f"Undoes run {visible(undo.run)} ({visible(undo.command)} of {started} UTC{commit})."
        if undo.left_out:
            yield f"The plan leaves out {count_of(len(undo.left_out), 'resource')} of that run."
        yield "Time that has been tagged since then keeps its tags."
        if undo.revert:
            yield f"Revert it in Git too, because manifests that ask for it again are rejected: {visible(undo.revert)}"


def _comparison(since: Since) -> ReviewedComparison:
    listed = (
        f"{len(since.new):,} new, {len(since.different):,} different, {len(since.gone):,} gone, {since.same:,} the same"
    )
    verdict = "Today's plan does not go beyond the reviewed plan."
    if since.excess:
        verdict = f"Today's plan goes beyond the reviewed plan in {count_of(len(since.excess), 'place')}:"
    lines = [visible(each.message) for each in since.excess[:MOST_DIFFERENCES]]
    if (more := len(since.excess) - MOST_DIFFERENCES) > 0:
        lines.append(f"and {more:,} more")
    heading = f"Compared with the reviewed plan {', '.join(map(visible, since.plans))}: {listed}."
    return ReviewedComparison(heading, verdict, tuple(lines))


# --- the two sides of a plan with `--base` ----------------------------------------------------------------------------


def _two_sides(plan: Plan) -> tuple[Plan, Plan | None]:
    """Return the pull request's own changes, and those that wait, each with its reason; all are own without `--base`.

    The last refusal of each resource that the service rejected before is quoted in the reason of its change.
    """
    base, waiting = plan.base, None
    if plan.refused:
        now = datetime.fromisoformat(plan.basis.created).timestamp()

        def with_refusal(change: Change) -> Change:
            if (refusal := plan.refusal(change.key)) is None:
                return change
            other = None if change.again is SendCause.UNKNOWN_END else change.reason
            return replace(change, reason="; ".join(filter(None, (other, refused_words(refusal, now)))))

        plan = replace(plan, changes=tuple(map(with_refusal, plan.changes)), refused=UNSET)
    if base is None:
        return plan, None
    own = narrowed(plan, lambda change: base.origin(change.key) is ChangeOrigin.PULL_REQUEST)
    if base.waiting:
        rest = narrowed(plan, lambda change: base.origin(change.key) is ChangeOrigin.WAITING)
        changes = tuple(
            replace(change, reason="; ".join(filter(None, (change.reason, base.waiting[str(change.key)].reason))))
            for change in rest.changes
        )
        waiting = replace(rest, changes=changes, notes=(), sweep=plan.sweep if base.sweeps else None)
    return replace(own, sweep=None) if base.sweeps else own, waiting


def _waiting_line(waiting: Plan) -> str:
    """Return one line that counts the waiting changes by their causes."""
    assert waiting.base is not None
    causes = Counter(wait.cause for wait in waiting.base.waiting.values())
    why = ", ".join(f"{number(count)} {cause}" for cause, count in causes.most_common())
    return f"{count_of(len(waiting.changes), 'change')} from outside this pull request: {why}"


TRIPPED_BY: Mapping[Whose, str] = {
    Whose(own=True): "This pull request's {} need the approval.",
    Whose(theirs=True): "Only {} that were merged earlier need the approval; those of this pull request do not.",
    Whose(own=True, theirs=True): "Both this pull request's {} and those that were merged earlier need the approval.",
}


# --- the gate ---------------------------------------------------------------------------------------------------------


def asks_about_removals_alone(gate: Gate) -> bool:
    """Return whether only removals lack an approval: no rule, and no tag that is made public."""
    return not {unit.kind for unit in gate.units if unit.is_open} & {RULE, OPENED_UNIT}


def gate_view(plan: Plan) -> GateView:
    """Return the gate in words, those units first that need an approval."""
    gate = plan.gate
    open_units = [unit for unit in gate.units if unit.is_open]
    are_removals = asks_about_removals_alone(gate)
    kinds, places = {unit.kind for unit in gate.shown}, {str(unit.approved) for unit in gate.shown}
    if gate.is_closed:
        heading = f"Blocked: approval needed for {'these removals' if are_removals else 'this plan'}."
    elif gate.approved is None or len(places) > 1:
        heading = "Approved: everything that needs approval has been approved."
    else:
        what = "these removals and tags made public" if OPENED_UNIT in kinds else "these removals"
        what = "everything that needs approval" if RULE in kinds else what
        heading = f"Approved: {file_name(str(gate.approved))} approves {what}."
    sentence = TRIPPED_BY.get(whose(gate, plan.base))
    approvals = [unit.approve for unit in open_units if unit.approve]
    # Nobody copies more lines than that; one approval of the whole plan does the same.
    if len(approvals) > MOST_UNITS and gate.approve:
        approvals = [gate.approve]
    needs_whole = gate.approve and any(unit.kind != RULE for unit in open_units)
    rest = len(gate.shown) - MOST_UNITS
    return GateView(
        gate.is_closed,
        heading,
        sentence and sentence.format("removals" if are_removals else "changes"),
        tuple(map(_unit_line, sorted(gate.shown, key=lambda unit: not unit.is_open)[:MOST_UNITS])),
        f"… and {number(rest)} more; `--format json` lists them all" if rest > 0 else "",
        gate.reasons,
        tuple(map(visible, approvals)),
        visible(gate.approve) if gate.approve and needs_whole and approvals else "",
        "everything that this plan removes"
        + (" or makes public" if any(unit.kind == OPENED_UNIT for unit in gate.units) else ""),
    )


class WayToApprove(NamedTuple):
    """One way to approve exactly this plan: a sentence, lines to copy, and a sentence behind them, if any."""

    says: str
    lines: tuple[str, ...]
    then: str = ""


def ways_to_approve(gate: GateView, look: Look, *, is_undo: bool) -> Iterator[WayToApprove]:
    """Yield the ways to approve an open gate (docs/planning.md 5). An undo can be applied only from its saved file."""
    if gate.approvals:
        lines = ("approvals:", *(f"  - {approve}" for approve in gate.approvals))
        yield WayToApprove("To approve, add these lines to the project file and have them reviewed:", lines)
    if gate.whole:
        file = look.plan_file or ("FILE" if is_undo else "")
        command = " ".join(filter(None, ("syncengine apply", visible(file), f"--approve-deletes {gate.whole}")))
        then = "FILE is the file that `plan --undo RUN --out FILE` writes." if is_undo and not look.plan_file else ""
        yield WayToApprove(f"Or approve {gate.everything}, once:", (command + visible(look.place),), then)


LOST_NOUNS = {
    "categories": "category",
    "activityTypes": "activity type",
    "tags": "tag",
    "keywords": "keyword",
    "metadata": "metadata entry",
    "fields": "field",
    "opened": "tag",
}


def _lost(unit: Unit) -> str:
    lost = [count_of(count, LOST_NOUNS[of]) for of, count in unit.lost if of in LOST_NOUNS]
    return " and ".join(filter(None, (", ".join(lost[:-1]), *lost[-1:]))) or count_of(unit.count, "removal")


WHAT: Mapping[str, Callable[[Unit, str], str]] = {
    CATEGORY: lambda unit, name: (
        f"{name} and {count_of(tags, 'tag')}" if (tags := dict(unit.lost).get("tags", 0)) else name
    ),
    ACTIVITY_TYPES: lambda unit, name: f"{count_of(dict(unit.lost).get('activityTypes', 0), 'activity type')} deleted",
    OPENED_UNIT: lambda unit, name: (
        f"{count_of(unit.count, 'tag')} of unknown visibility made public"
        if unit.name == UNKNOWN
        else f"{name} made public ({'it was' if unit.count == 1 else f'{unit.count} tags were'} PRIVATE)"
    ),
    FIRST_SWEEP: lambda unit, name: "the first sweep of this state",
    RULE: lambda unit, name: f"{name} asks for approval of {count_of(unit.count, 'change')}",
    REMOVED: lambda unit, name: f"lines under `removed:` remove {_lost(unit)}",
}
"""The words for each kind of unit; a unit of another kind is named with its losses."""


def _unit_line(unit: Unit) -> UnitLine:
    name, by = file_name(unit.name), str(unit.approved)
    what = WHAT[unit.kind](unit, name) if unit.kind in WHAT else f"{name} lost {_lost(unit)}"
    if not unit.approve:
        return UnitLine(True, what, "needs approval; only a plan that reads the state shows how to approve")
    if unit.is_open or unit.approved is None:
        return UnitLine(True, what, "approve with ", visible(unit.approve))
    if by.startswith("run "):
        return UnitLine(False, what, f"already approved for {by}")
    return UnitLine(False, what, f"approved {'by' if by.startswith('-') else 'in'} {file_name(by)}")
