"""Plan → its view for people, from which text, Markdown and HTML are made, so that all of them show the same; pure.

A view has what stands above the changes, the changes in sections, and what is said of the whole plan. Each rendering
has an order of its own: on a terminal the end of a text is seen first, and in a comment its beginning. All texts in a
view are safe to show (`escape.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.errors import Diagnostic
from syncengine.plan.build import narrowed
from syncengine.plan.diff import OPENED, PUBLISHED, UNKNOWN_END, Change, FieldChange
from syncengine.plan.gate import Gate
from syncengine.plan.judgement import POLICY_DENIED, denying_rules
from syncengine.plan.model import Base, ChangeOrigin, Plan, Since, Undo
from syncengine.plan.quarantine import refused_words
from syncengine.plan.sides import POLICY_CHANGED, SAID_FIRST, Whose, whose
from syncengine.plan.state_checks import SAID_FIRST as DOUBTS_OF_STATE
from syncengine.plan.units import ACTIVITY_TYPES, CATEGORY, FIRST_SWEEP, REMOVED, RULE, UNKNOWN, Unit
from syncengine.plan.units import OPENED as OPENED_UNIT
from syncengine.render.escape import file_name, quoted, visible
from syncengine.render.sections import MOST, Fold, Section, is_abridged, sections_of
from syncengine.render.style import Look
from syncengine.render.words import among, count_of, number, summary_of

ABRIDGED = "Abridged: --verbose shows every line and value."

SHORT = 12
"""The number of characters of a commit id that are shown."""

MOST_DIFFERENCES = 10
"""The number of differences beyond the reviewed plan that are listed; further ones are counted."""


class ReviewedComparison(NamedTuple):
    """The comparison with a reviewed plan: its counts, the verdict, and a line for each way to go beyond that plan."""

    heading: str
    verdict: str
    excess: tuple[str, ...]


class WaitingPart(NamedTuple):
    """The changes from outside a pull request: a line that counts them by their reasons, and their sections."""

    line: str
    sections: tuple[Section, ...]


class PlanView(NamedTuple):
    """A plan as people see it.

    `plan` is the plan itself, and `own` the part that a pull request makes, which is all without `--base`. `foremost`
    diagnostics and `doubts` of the state stand above everything else, and are not among the other `diagnostics`.
    `head` has the counts and obstacles, details if any, and the scope. `whose` says whose changes trip the gate.
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
    whose: str | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def is_abridged(self) -> bool:
        """Whether some rows leave out details of their resources."""
        return is_abridged((*self.sections, *(self.waiting.sections if self.waiting else ())))


def view_of(plan: Plan, fold: Fold, most: int = MOST) -> PlanView:
    """Return the view of a plan, each section of which has at most `most` rows."""
    own, waiting, since = own_part(plan), waiting_part(plan), plan.since
    # A changed policy comes first, since it decides what all the others mean.
    foremost = sorted(
        (each for each in plan.diagnostics if each.code in SAID_FIRST), key=lambda each: SAID_FIRST.index(each.code)
    )
    doubts = tuple(each for each in plan.diagnostics if each.code in DOUBTS_OF_STATE)
    denials = tuple(each for each in plan.diagnostics if each.code == POLICY_DENIED)
    rules = len(denying_rules(denials))
    rules_deny = f"{count_of(rules, 'rule')} of this project {'denies' if rules == 1 else 'deny'}"
    return PlanView(
        plan,
        own,
        tuple(foremost),
        doubts,
        tuple(filter(None, (headline(own), among(own.summary), scope(own)))),
        ReviewedComparison(_since_heading(since), _verdict(since), tuple(_excess(since))) if since else None,
        sections_of(own, fold, most),
        WaitingPart(waiting_line(waiting), sections_of(waiting, fold)) if waiting else None,
        # An approval does not lift a denial.
        f"Denied: {rules_deny} this plan, so nothing in it can be applied." if denials else "",
        denials,
        tripped_by(plan),
        tuple(each for each in plan.diagnostics if each not in (*foremost, *doubts, *denials)),
    )


def first_sentence(diagnostic: Diagnostic) -> str:
    """Return a diagnostic with its severity and code; a change of policy is shown by its message alone."""
    label = "" if diagnostic.code == POLICY_CHANGED else f"{diagnostic.severity.value}[{diagnostic.code}]: "
    return f"{label}{visible(diagnostic.message)}"


# --- the head ---------------------------------------------------------------------------------------------------------


def headline(plan: Plan) -> str:
    """Return the plan in one line: its counts, and the obstacles to its apply."""
    return " ".join((_in_one_sentence(plan), *_opens(plan), *_unknown(plan), *obstacles(plan)))


def obstacles(plan: Plan) -> Iterator[str]:
    """Yield the reasons why a plan cannot be applied as it is, each in a sentence."""
    if plan.is_denied:
        yield "Denied by a rule."
    if plan.is_undone:
        subject = "this plan would redo" if plan.changes_something else "the manifests still ask for"
        yield f"Blocked: {subject} changes that were undone."
    if plan.gate.is_closed:
        is_earlier = plan.base is not None and not whose(plan.gate, plan.base).own
        yield f"Blocked: approval needed{' for earlier changes' if is_earlier else ''}."


def made_public(plan: Plan) -> Counter[FieldChange]:
    """Return how many tags become public: PRIVATE ones (`OPENED`), and those of unknown visibility (`PUBLISHED`)."""
    count: Counter[FieldChange] = Counter()
    for change in plan.changes:
        if opening := change.opening:
            count[opening] += len(change.opens or (change,))
    return count


def _opens(plan: Plan) -> Iterator[str]:
    """Yield a sentence that counts the tags that become public, if any."""
    public = made_public(plan)
    for first, what in ((OPENED, "PRIVATE tag"), (PUBLISHED, "tag")):
        if count := public[first]:
            yield f"Makes {count_of(count, what)}{'' if first == OPENED else ' of unknown visibility'} public."


def _unknown(plan: Plan) -> Iterator[str]:
    """Yield a sentence that counts files whose effect is unknown because a source was not read, if any."""
    if count := plan.unknown_effects:
        source = "its source was" if count == 1 else "their sources were"
        yield f"The effect of {count_of(count, 'file')} is unknown, because {source} not read."


def _in_one_sentence(plan: Plan) -> str:
    if plan.changes or plan.sweep:
        return f"Plan: {summary_of(plan.summary)}."
    if plan.base is not None:
        return f"This pull request makes no {'known ' if plan.unknown_effects else ''}changes."
    if not plan.summary.unchanged:
        return "No changes."
    verb = "matches" if plan.summary.unchanged == 1 else "match"
    return f"No changes. {count_of(plan.summary.unchanged, 'resource')} {verb} the recorded state."


def scope(plan: Plan) -> str:
    """Return sentences on the plan's service and team, the compared revision, and the run that it undoes."""
    return " ".join((_place(plan), *(_undo_sentences(plan.undo) if plan.undo else ())))


def _place(plan: Plan) -> str:
    where = "The embedded sandbox" if plan.basis.base_url == "sandbox" else f"Service {visible(plan.basis.base_url)}"
    where = f"{where}, team {quoted(plan.basis.team)}" if plan.basis.team else where
    if plan.base is None:
        return f"{where}."
    compared = compared_with(plan.base)
    return f"{compared}." if plan.base.is_in_git else f"{where}; {compared}."


def _undo_sentences(undo: Undo) -> Iterator[str]:
    """Yield sentences on the undone run, on resources that are left out, and on reverting its commit in Git."""
    commit = f", commit {visible(undo.commit[:12])}" if undo.commit else ""
    started = visible(undo.started[:16].replace("T", " "))
    yield f"Undoes run {visible(undo.run)} ({visible(undo.command)} of {started} UTC{commit})."
    if undo.left_out:
        yield f"The plan leaves out {count_of(len(undo.left_out), 'resource')} of that run."
    yield "Time that has been tagged since then keeps its tags."
    if undo.revert:
        yield f"Revert it in Git too, because manifests that ask for it again are rejected: {visible(undo.revert)}"


# --- the comparison with a reviewed plan ------------------------------------------------------------------------------


def _since_heading(since: Since) -> str:
    """Return the counts of the comparison in one line."""
    counts = {"new": len(since.new), "different": len(since.different), "gone": len(since.gone), "the same": since.same}
    listed = ", ".join(f"{count:,} {word}" for word, count in counts.items())
    return f"Compared with the reviewed plan {', '.join(map(visible, since.plans))}: {listed}."


def _verdict(since: Since) -> str:
    if not since.excess:
        return "Today's plan does not go beyond the reviewed plan."
    return f"Today's plan goes beyond the reviewed plan in {count_of(len(since.excess), 'place')}:"


def _excess(since: Since) -> Iterator[str]:
    """Yield one line for each way in which today's plan goes beyond the reviewed plan, up to `MOST_DIFFERENCES`."""
    yield from (visible(each.message) for each in since.excess[:MOST_DIFFERENCES])
    if (more := len(since.excess) - MOST_DIFFERENCES) > 0:
        yield f"and {more:,} more"


# --- the two sides of a plan with `--base` ----------------------------------------------------------------------------


TRIPPED_BY: Mapping[Whose, str] = {
    Whose(own=True): "This pull request's {} need the approval.",
    Whose(theirs=True): "Only {} that were merged earlier need the approval; those of this pull request do not.",
    Whose(own=True, theirs=True): "Both this pull request's {} and those that were merged earlier need the approval.",
}


def own_part(plan: Plan) -> Plan:
    """Return the plan reduced to the pull request's own changes; a plan without `--base` keeps all changes."""
    base = plan.base
    plan = with_refusals(plan)
    if base is None:
        return plan
    own = narrowed(plan, lambda change: base.origin(change.key) is ChangeOrigin.PULL_REQUEST)
    return replace(own, sweep=None) if base.sweeps else own


def with_refusals(plan: Plan) -> Plan:
    """Return the plan with the last refusal of each previously refused resource quoted in its reason."""
    if not plan.refused:
        return plan
    now = datetime.fromisoformat(plan.basis.created).timestamp()

    def quoted(change: Change) -> Change:
        if (refusal := plan.refusal(change.key)) is None:
            return change
        other = None if change.reason == UNKNOWN_END else change.reason
        reasons = (other, refused_words(refusal, now))
        return replace(change, reason="; ".join(filter(None, reasons)))

    return replace(plan, changes=tuple(map(quoted, plan.changes)), refused=UNSET)


def waiting_part(plan: Plan) -> Plan | None:
    """Return the plan reduced to the waiting changes, each with its reason; `None` when no change waits."""
    base = plan.base
    if base is None or not base.waiting:
        return None
    plan = with_refusals(plan)
    waiting = narrowed(plan, lambda change: base.origin(change.key) is ChangeOrigin.WAITING)
    changes = tuple(_with_reason(change, base) for change in waiting.changes)
    return replace(waiting, changes=changes, notes=(), sweep=plan.sweep if base.sweeps else None)


def _with_reason(change: Change, base: Base) -> Change:
    return replace(change, reason="; ".join(filter(None, (change.reason, base.waiting[str(change.key)]))))


def waiting_line(waiting: Plan) -> str:
    """Return one line that counts the waiting changes by their reasons."""
    assert waiting.base is not None
    reasons = Counter(reason.partition(":")[0] for reason in waiting.base.waiting.values())
    why = ", ".join(f"{number(count)} {reason}" for reason, count in reasons.most_common())
    return f"{count_of(len(waiting.changes), 'change')} from outside this pull request: {why}"


def compared_with(base: Base) -> str:
    """Return the words that name the revision that the plan is compared with."""
    name = f"{visible(base.ref)} ({base.commit[:SHORT]})"
    if base.is_in_git:
        return f"Compared with {name} in Git only: no state was read, so waiting changes are unknown"
    return f"compared with {name}"


def tripped_by(plan: Plan) -> str | None:
    """Return a sentence on whose removals or changes trip the gate; `None` for a plan without `--base`."""
    sentence = TRIPPED_BY.get(whose(plan.gate, plan.base))
    return sentence and sentence.format("removals" if asks_about_removals_alone(plan.gate) else "changes")


# --- the gate ---------------------------------------------------------------------------------------------------------

MOST_UNITS = 50
"""The number of units that a text names; a plan may have thousands, all of which JSON lists."""

LOST_NOUNS = {
    "categories": "category",
    "activityTypes": "activity type",
    "tags": "tag",
    "keywords": "keyword",
    "metadata": "metadata entry",
    "fields": "field",
    "opened": "tag",
}


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


def asks_about_removals_alone(gate: Gate) -> bool:
    """Return whether only removals lack an approval: no rule, and no tag that is made public."""
    return not _kinds(unit for unit in gate.units if unit.is_open) & {RULE, OPENED_UNIT}


def _kinds(units: Iterable[Unit]) -> set[str]:
    return {unit.kind for unit in units}


def gate_heading(gate: Gate) -> str:
    """Return the gate_heading of the gate: blocked, or approved and by which approval."""
    if gate.is_closed:
        is_usual = asks_about_removals_alone(gate)
        return f"Blocked: approval needed for {'these removals' if is_usual else 'this plan'}."
    if gate.approved is not None:
        places = {str(unit.approved) for unit in gate.shown}
        if len(places) <= 1:
            return f"Approved: {file_name(str(gate.approved))} approves {_approved(_kinds(gate.shown))}."
    return "Approved: everything that needs approval has been approved."


def _approved(kinds: set[str]) -> str:
    if RULE in kinds:
        return "everything that needs approval"
    return "these removals and tags made public" if OPENED_UNIT in kinds else "these removals"


def unit_lines(gate: Gate) -> Iterator[UnitLine]:
    """Yield lines for the units that need an approval, then for those that have one."""
    units = sorted(gate.shown, key=lambda unit: not unit.is_open)
    yield from map(_unit_line, islice(units, MOST_UNITS))


def more_units(gate: Gate) -> str:
    """Return a line that counts the units that are not named; empty when all are named."""
    rest = len(gate.shown) - MOST_UNITS
    return f"… and {number(rest)} more; `--format json` lists them all" if rest > 0 else ""


def to_approve(gate: Gate) -> tuple[str, ...]:
    """Return the approvals to copy: one for each open unit, or one for everything when there are many."""
    open_units = [unit.approve for unit in gate.units if unit.is_open and unit.approve]
    if len(open_units) > MOST_UNITS and gate.approve:
        open_units = [gate.approve]
    return tuple(map(visible, open_units))


class WayToApprove(NamedTuple):
    """One way to approve exactly this plan: a sentence, lines to copy, and a sentence behind them, if any."""

    says: str
    lines: tuple[str, ...]
    then: str = ""


def ways_to_approve(gate: Gate, look: Look, *, is_undo: bool = False) -> Iterator[WayToApprove]:
    """Yield the ways to approve an open gate (docs/planning.md 5). An undo can be applied only from its saved file."""
    if not to_approve(gate):
        return
    lines = ("approvals:", *(f"  - {approve}" for approve in to_approve(gate)))
    yield WayToApprove("To approve, add these lines to the project file and have them reviewed:", lines)
    if approve := for_everything(gate):
        file = look.plan_file or ("FILE" if is_undo else "")
        command = " ".join(filter(None, ("syncengine apply", visible(file), f"--approve-deletes {approve}")))
        then = "FILE is the file that `plan --undo RUN --out FILE` writes." if is_undo and not look.plan_file else ""
        yield WayToApprove(f"Or approve {everything(gate)}, once:", (command + visible(look.place),), then)


def for_everything(gate: Gate) -> str:
    """Return the approval of all removals and openings; empty when only rules need one, which it does not approve."""
    needs = any(unit.is_open and unit.kind != RULE for unit in gate.units)
    return visible(gate.approve) if gate.approve and needs else ""


def everything(gate: Gate) -> str:
    """Return the words for everything that this approval covers."""
    return "everything that this plan removes" + (" or makes public" if OPENED_UNIT in _kinds(gate.units) else "")


def _unit_line(unit: Unit) -> UnitLine:
    if not unit.approve:
        return UnitLine(True, what(unit), "needs approval; only a plan that reads the state shows how to approve")
    if unit.is_open or unit.approved is None:
        return UnitLine(True, what(unit), "approve with ", visible(unit.approve))
    by = str(unit.approved)
    if by.startswith("run "):
        return UnitLine(False, what(unit), f"already approved for {by}")
    return UnitLine(False, what(unit), f"approved {'by' if by.startswith('-') else 'in'} {file_name(by)}")


def what(unit: Unit) -> str:
    """Return the words for a unit's removals, with their numbers."""
    name = file_name(unit.name)
    return WHAT[unit.kind](unit, name) if unit.kind in WHAT else f"{name} lost {_lost(unit)}"


def _lost(unit: Unit) -> str:
    lost = [count_of(count, LOST_NOUNS[of]) for of, count in unit.lost if of in LOST_NOUNS]
    return " and ".join(filter(None, (", ".join(lost[:-1]), *lost[-1:]))) or count_of(unit.count, "removal")


def _category(unit: Unit, name: str) -> str:
    tags = dict(unit.lost).get("tags", 0)
    return f"{name} and {count_of(tags, 'tag')}" if tags else name


WHAT: Mapping[str, Callable[[Unit, str], str]] = {
    CATEGORY: _category,
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
