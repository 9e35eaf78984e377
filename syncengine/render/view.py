"""The document of a plan → its view for people, from which text, Markdown and HTML are made; pure.

All of them show the same, whether the plan has just been made or its document was read. A view has what stands above
the changes, the changes in sections, and what is said of the whole plan. Each rendering has an order of its own: on a
terminal the end of a text is seen first, and in a comment its beginning. All texts in a view are safe to show
(`escape.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from syncengine.errors import Diagnostic, PolicyDenied
from syncengine.manifest.sources.records import UNKNOWN_EFFECT
from syncengine.plan.diff import OPENED, PUBLISHED, Action, SendCause
from syncengine.plan.gate import ACTIVITY_TYPES, CATEGORY, FIRST_SWEEP, REMOVED, RULE, UNKNOWN
from syncengine.plan.gate import OPENED as OPENED_UNIT
from syncengine.plan.judgement import denying_rules
from syncengine.plan.model import DOUBTS_OF_STATE, POLICY_CHANGED, SAID_FIRST, ChangeOrigin
from syncengine.plan.quarantine import refused_words
from syncengine.render.documents import diagnostics_of, part_of
from syncengine.render.escape import file_name, quoted, visible
from syncengine.render.formats import ChangeItem, GateUnit, PlanFormat, SinceItem
from syncengine.render.sections import MOST, Fold, Section, is_abridged, sections_of
from syncengine.render.style import Look, Tone
from syncengine.render.words import TO_DO, among, count_of, number, plural, summary_of

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


class Count(NamedTuple):
    """A number in the head of a plan, with the tone of its action: `3 create`."""

    number: int
    word: str
    tone: Tone = Tone.QUIET


class PlanView(NamedTuple):
    """A plan as people see it.

    `plan` is the plan itself, and `own` the part that a pull request makes, which is all without `--base`. `foremost`
    diagnostics and `doubts` of the state stand above everything else, and are not among the other `diagnostics`.
    `head` has the counts and obstacles, details if any, and the scope; `counts` are the numbers apart. `ways` are those
    to approve the plan.
    """

    plan: PlanFormat
    own: PlanFormat
    foremost: tuple[Diagnostic, ...]
    doubts: tuple[Diagnostic, ...]
    head: tuple[str, ...]
    counts: tuple[Count, ...]
    since: ReviewedComparison | None
    sections: tuple[Section, ...]
    waiting: WaitingPart | None
    denied: str
    denials: tuple[Diagnostic, ...]
    gate: GateView | None
    ways: tuple[WayToApprove, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def is_abridged(self) -> bool:
        """Whether some rows leave out details of their resources."""
        return is_abridged((*self.sections, *(self.waiting.sections if self.waiting else ())))


def view_of(plan: PlanFormat, look: Look, fold: Fold, most: int = MOST) -> PlanView:
    """Return the view of a plan, each section of which has at most `most` rows."""
    diagnostics = diagnostics_of(plan.diagnostics)
    # A changed policy comes first, since it decides what all the others mean.
    foremost = sorted(
        (each for each in diagnostics if each.code in SAID_FIRST), key=lambda each: SAID_FIRST.index(each.code)
    )
    doubts = tuple(each for each in diagnostics if each.code in DOUBTS_OF_STATE)
    denials = tuple(each for each in diagnostics if each.code == PolicyDenied.code)
    rules = len(denying_rules(denials))
    rules_deny = f"{count_of(rules, 'rule')} of this project {'denies' if rules == 1 else 'deny'}"
    own, waiting = _two_sides(plan)
    gate = gate_view(plan) if plan.gate.units else None
    return PlanView(
        plan,
        own,
        tuple(foremost),
        doubts,
        tuple(filter(None, (headline(own), among(own.summary), " ".join(_scope(own))))),
        tuple(_counts(own)),
        _comparison(plan.since) if plan.since else None,
        sections_of(own, fold, most),
        WaitingPart(_waiting_line(waiting), sections_of(waiting, fold)) if waiting else None,
        # An approval does not lift a denial.
        f"Denied: {rules_deny} this plan, so nothing in it can be applied." if denials else "",
        denials,
        gate,
        tuple(ways_to_approve(gate, look, is_undo=bool(plan.undo), redoes=bool(plan.redoes))) if gate else (),
        tuple(each for each in diagnostics if each not in (*foremost, *doubts, *denials)),
    )


def first_sentence(diagnostic: Diagnostic) -> str:
    """Return a diagnostic with its severity and code; a change of policy is shown by its message alone."""
    label = "" if diagnostic.code == POLICY_CHANGED else f"{diagnostic.severity.value}[{diagnostic.code}]: "
    return f"{label}{visible(diagnostic.message)}"


# --- the head


def headline(plan: PlanFormat) -> str:
    """Return the plan in one line: its counts, the tags that become public, and the obstacles to its apply."""
    public, codes = made_public(plan), Counter(each.code for each in plan.diagnostics)
    unknown = codes[UNKNOWN_EFFECT]
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
    if count := public[OPENED.before]:
        sentences.append(f"Makes {count_of(count, 'PRIVATE tag')} public.")
    if count := public[PUBLISHED.before]:
        sentences.append(f"Makes {count_of(count, 'tag')} of unknown visibility public.")
    if unknown:
        source = "its source was" if unknown == 1 else "their sources were"
        sentences.append(f"The effect of {count_of(unknown, 'file')} is unknown, because {source} not read.")
    if codes[PolicyDenied.code]:
        sentences.append("Denied by a rule.")
    if plan.is_undone:
        subject = "this plan would redo" if plan.changes or plan.sweep else "the manifests still ask for"
        sentences.append(f"Blocked: {subject} changes that were undone.")
    if plan.gate.tripped:
        is_earlier = plan.base is not None and ChangeOrigin.PULL_REQUEST not in plan.gate.tripped_by
        sentences.append(f"Blocked: approval needed{' for earlier changes' if is_earlier else ''}.")
    return " ".join(sentences)


TONES = {Action.CREATE: Tone.CREATE, Action.UPDATE: Tone.UPDATE}
"""The tone of each action; the others remove."""


def _counts(plan: PlanFormat) -> Iterator[Count]:
    summary = plan.summary
    for action, word in TO_DO.items():
        yield Count(getattr(summary, action.word), word.removeprefix("to "), TONES.get(action, Tone.REMOVE))
    yield Count(summary.cascaded_tags, "deleted with a category", Tone.REMOVE)
    yield Count(made_public(plan).total(), "made public", Tone.PUBLIC)
    yield Count(summary.unchanged, "unchanged")
    yield Count(summary.requests, "request" if summary.requests == 1 else plural("request"))


def made_public(plan: PlanFormat) -> Counter[object]:
    """Return how many tags become public, by their visibility before: PRIVATE, or `None` if it is unknown."""
    count: Counter[object] = Counter()
    for change in plan.changes:
        if opening := change.opening:
            count[opening.before] += len(change.opens) or 1
    return count


def _scope(plan: PlanFormat) -> Iterator[str]:
    """Yield sentences on the plan's service and team, the compared revision, and the run that it undoes."""
    base, undo, url, team = plan.base, plan.undo, plan.service.base_url, plan.service.team
    where = "The embedded sandbox" if url == "sandbox" else f"Service {visible(url)}"
    where = f"{where}, team {quoted(team)}" if team else where
    revision = base and f"{visible(base.ref)} ({base.commit[:SHORT]})"
    if base is None:
        yield f"{where}."
    elif not url:  # which only a plan without a state leaves out
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
            yield f"Revert it in Git too, as manifests that ask for it again are rejected: `{visible(undo.revert)}`."


def _comparison(since: SinceItem) -> ReviewedComparison:
    listed = (
        f"{len(since.new):,} new, {len(since.different):,} different, {len(since.gone):,} gone, {since.same:,} the same"
    )
    verdict = "Today's plan does not go beyond the reviewed plan."
    if since.more:
        verdict = f"Today's plan goes beyond the reviewed plan in {count_of(len(since.more), 'place')}:"
    lines = [visible(each.message) for each in since.more[:MOST_DIFFERENCES]]
    if (more := len(since.more) - MOST_DIFFERENCES) > 0:
        lines.append(f"and {more:,} more")
    heading = f"Compared with the reviewed plan {visible(since.plan)}: {listed}."
    return ReviewedComparison(heading, verdict, tuple(lines))


# --- the two sides of a plan with `--base`


def _two_sides(plan: PlanFormat) -> tuple[PlanFormat, PlanFormat | None]:
    """Return the pull request's own changes, and those that wait, each with its reason; all are own without `--base`.

    The last refusal of each resource that the service rejected before is quoted in the reason of its change.
    """
    if any(change.refused or change.waits for change in plan.changes):
        plan = replace(plan, changes=[_with_reasons(change, plan.created) for change in plan.changes])
    if plan.base is None:
        return plan, None
    own = part_of(plan, lambda change: change.origin is not ChangeOrigin.WAITING)
    waiting = part_of(plan, lambda change: change.origin is ChangeOrigin.WAITING)
    if not waiting.changes:
        return own, None
    if plan.sweep and plan.sweep.origin is ChangeOrigin.WAITING:
        return replace(own, sweep=None), replace(waiting, notes=[])
    return own, replace(waiting, notes=[], sweep=None)


def _with_reasons(change: ChangeItem, now: str) -> ChangeItem:
    """Return the change with its last refusal, and with why it waits, in its reason."""
    reason, refused = change.reason, change.refused
    if refused:
        words = refused_words(refused.times, refused.since, now, refused.message)
        reason = "; ".join(filter(None, (None if change.again is SendCause.UNKNOWN_END else reason, words)))
    return replace(change, reason="; ".join(filter(None, (reason, change.waits))) or None)


def _waiting_line(waiting: PlanFormat) -> str:
    """Return one line that counts the waiting changes by their causes."""
    causes = Counter(change.wait_cause or "" for change in waiting.changes)
    why = ", ".join(f"{number(count)} {cause}" for cause, count in causes.most_common())
    return f"{count_of(len(waiting.changes), 'change')} from outside this pull request: {why}"


TRIPPED_BY: Mapping[tuple[ChangeOrigin, ...], str] = {
    (ChangeOrigin.PULL_REQUEST,): "This pull request's {} need the approval.",
    (ChangeOrigin.WAITING,): "Only {} that were merged earlier need the approval; those of this pull request do not.",
    tuple(ChangeOrigin): "Both this pull request's {} and those that were merged earlier need the approval.",
}


# --- the gate


def asks_about_removals_alone(kinds: Iterable[str]) -> bool:
    """Return whether units of these kinds, which lack an approval, ask about no rule and no tag that becomes public."""
    return not {*kinds} & {RULE, OPENED_UNIT}


def gate_view(plan: PlanFormat) -> GateView:
    """Return the gate in words, those units first that need an approval."""
    gate = plan.gate
    open_units = [unit for unit in gate.units if unit.approved is None]
    are_removals = asks_about_removals_alone(unit.kind for unit in open_units)
    kinds, places = {unit.kind for unit in gate.units}, {str(unit.approved) for unit in gate.units}
    if gate.tripped:
        heading = f"Blocked: approval needed for {'these removals' if are_removals else 'this plan'}."
    elif gate.approved is None or len(places) > 1:
        heading = "Approved: everything that needs approval has been approved."
    else:
        what = "these removals and tags made public" if OPENED_UNIT in kinds else "these removals"
        what = "everything that needs approval" if RULE in kinds else what
        heading = f"Approved: {file_name(str(gate.approved))} approves {what}."
    sentence = TRIPPED_BY.get(gate.tripped_by)
    approvals = [unit.approve for unit in open_units if unit.approve]
    # Nobody copies more lines than that; one approval of the whole plan does the same.
    if len(approvals) > MOST_UNITS and gate.approve:
        approvals = [gate.approve]
    needs_whole = gate.approve and any(unit.kind != RULE for unit in open_units)
    rest = len(gate.units) - MOST_UNITS
    return GateView(
        gate.tripped,
        heading,
        sentence and sentence.format("removals" if are_removals else "changes"),
        tuple(map(_unit_line, sorted(gate.units, key=lambda unit: unit.approved is not None)[:MOST_UNITS])),
        f"… and {number(rest)} more; `--format json` lists them all" if rest > 0 else "",
        gate.reasons,
        tuple(map(visible, approvals)),
        visible(gate.approve) if gate.approve and needs_whole and approvals else "",
        "everything that this plan removes" + (" or makes public" if OPENED_UNIT in kinds else ""),
    )


class WayToApprove(NamedTuple):
    """One way to approve exactly this plan: a sentence, lines to copy, and a sentence behind them, if any."""

    says: str
    lines: tuple[str, ...]
    then: str = ""


def ways_to_approve(gate: GateView, look: Look, *, is_undo: bool, redoes: bool) -> Iterator[WayToApprove]:
    """Yield the ways to approve an open gate (docs/planning.md 5). An undo can be applied only from its saved file.

    `redoes`: the plan makes changes of an undone run again, which no approval permits.
    """
    if gate.approvals:
        lines = ("approvals:", *(f"  - {approve}" for approve in gate.approvals))
        yield WayToApprove("To approve, add these lines to the project file and have them reviewed:", lines)
    if gate.whole:
        file = look.plan_file or ("FILE" if is_undo else "")
        parts = ("syncengine apply", visible(file), "--redo" if redoes else "", f"--approve-deletes {gate.whole}")
        command = " ".join(filter(None, parts))
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


def _lost(unit: GateUnit) -> str:
    lost = [count_of(count, LOST_NOUNS[of]) for of, count in unit.lost.items() if of in LOST_NOUNS]
    return " and ".join(filter(None, (", ".join(lost[:-1]), *lost[-1:]))) or count_of(unit.count, "removal")


WHAT: Mapping[str, Callable[[GateUnit, str], str]] = {
    CATEGORY: lambda unit, name: f"{name} and {count_of(tags, 'tag')}" if (tags := unit.lost.get("tags", 0)) else name,
    ACTIVITY_TYPES: lambda unit, name: f"{count_of(unit.lost.get('activityTypes', 0), 'activity type')} deleted",
    OPENED_UNIT: lambda unit, name: (
        f"{count_of(unit.count, 'tag')} of unknown visibility made public"
        if unit.unit == UNKNOWN
        else f"{name} made public ({'it was' if unit.count == 1 else f'{unit.count} tags were'} PRIVATE)"
    ),
    FIRST_SWEEP: lambda unit, name: "the first sweep of this state",
    RULE: lambda unit, name: f"{name} asks for approval of {count_of(unit.count, 'change')}",
    REMOVED: lambda unit, name: f"lines under `removed:` remove {_lost(unit)}",
}
"""The words for each kind of unit; a unit of another kind is named with its losses."""


def _unit_line(unit: GateUnit) -> UnitLine:
    name, by = file_name(unit.unit), str(unit.approved)
    what = WHAT[unit.kind](unit, name) if unit.kind in WHAT else f"{name} lost {_lost(unit)}"
    if not unit.approve:
        return UnitLine(True, what, "needs approval; only a plan that reads the state shows how to approve")
    if unit.approved is None:
        return UnitLine(True, what, "approve with ", visible(unit.approve))
    if by.startswith("run "):
        return UnitLine(False, what, f"already approved for {by}")
    return UnitLine(False, what, f"approved {'by' if by.startswith('-') else 'in'} {file_name(by)}")
