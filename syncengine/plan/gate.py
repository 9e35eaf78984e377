"""Judge whether a plan's losses need approvals, which, and why. Pure; docs/manifests.md computes an example by hand.

1. Each loss is in one unit (`units`). Losses that an earlier run began under an approval go on, outside all sums.
2. A unit asks by itself if its kind always does, or for a source that shrank, an empty sweep, many lines, or a rule.
3. The other units ask together for each kind of loss of which too much would go: their losses in this plan and those
   of the last 24 hours, of what is there and those of the last 24 hours.
4. Approved units, and those that ask by themselves, are taken out of what goes and of what is there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from syncengine.content import sha256_of
from syncengine.errors import Diagnostic, Severity
from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.calls import Sweep
from syncengine.plan.diff import PUBLISHED, Action, Change, Difference
from syncengine.plan.losses import (
    ALWAYS_ASKS,
    SAYS,
    SAYS_OF_ONE,
    Shrunk,
    losses_of,
    shrunken,
    template_of,
    totals_of,
    totals_with,
)
from syncengine.project.model import Limit
from syncengine.resource import Key, Kind, Recorded, Removal, Removed
from syncengine.state.records import EMPTY_SWEEP, LEAVES_AS, SWEEP, SWEPT, ApprovalRecord, Approved, Loss, leaves

if TYPE_CHECKING:
    from syncengine.plan.model import Plan


DIGITS = 20
"""The number of digits in an approval's hash: 80 bits, which nobody meets by chance and a person can still copy."""


class Approval(Struct, frozen=True, gc=False):
    """An approval that was given, and its origin `by`: an option, a variable, the project file (at `line`) or a run."""

    text: str
    by: str
    line: int | None = None

    def __str__(self) -> str:
        return self.by if self.line is None else f"{self.by}:{self.line}"


@dataclass(frozen=True, slots=True)
class KnownApprovals:
    """The approvals that a state has recorded: those that are spent, and those with losses under way."""

    spent: Mapping[str, ApprovalRecord] = field(default_factory=dict)
    under_way: Mapping[tuple[str, Key], tuple[tuple[Loss, ApprovalRecord], ...]] = field(default_factory=dict)

    @property
    def texts_under_way(self) -> frozenset[str]:
        """The approvals of losses that have begun and have not settled."""
        return frozenset(record.text for pairs in self.under_way.values() for _, record in pairs)

    def covering(self, loss: Loss) -> ApprovalRecord | None:
        """Return the approval under which `loss` began and has not settled, or `None`."""
        begun = self.under_way.get((loss.of, loss.key), ())
        return next((record for covered, record in begun if covered.covers(loss)), None)


def records_of(found: Iterable[ApprovalRecord]) -> KnownApprovals:
    """Sort recorded approvals by use. A partly settled approval covers its remaining losses and no new ones."""
    found = list(found)
    by_thing: defaultdict[tuple[str, Key], list[tuple[Loss, ApprovalRecord]]] = defaultdict(list)
    for record in found:
        for loss in record.remaining if record.used is None else ():
            by_thing[loss.of, loss.key].append((loss, record))
    spent = {each.text: each for each in found if each.used is not None or each.remaining != each.covers}
    return KnownApprovals(spent, {thing: tuple(pairs) for thing, pairs in by_thing.items()})


@dataclass(frozen=True, slots=True)
class Owner:
    """The team and the state that an approval is valid for."""

    team: str | None
    lineage: str


def approval_of(losses: Iterable[Loss], owner: Owner, records: KnownApprovals) -> str:
    """Return the approval of exactly these losses that has not been spent, wherever they stand."""
    lines = sorted(f"{loss.key}\0{loss.of}\0{loss.what}" for loss in losses)
    whole = "\n".join((owner.team or "", owner.lineage, *lines, "\0"))
    texts = (f"{len(lines)}@{sha256_of(f'{whole}{number}')[:DIGITS]}" for number in count())
    return next(text for text in texts if text not in records.spent)


CATEGORY, SOURCE, MANIFEST = "category", "source", "manifest"
ACTIVITY_TYPES, OPENED, FIRST_SWEEP, REMOVED = "activity-types", "opened", "first-sweep", "removed"
RULE = "rule"
"""The kind of the units that `judgement` makes."""

SHOWN_ORDER = (CATEGORY, SOURCE, MANIFEST, ACTIVITY_TYPES, OPENED, REMOVED, FIRST_SWEEP)
"""The kinds of units of losses, in the order of a plan."""

ALWAYS = frozenset({CATEGORY, OPENED, FIRST_SWEEP})
"""The kinds of units that need an approval whatever the limits are."""

UNKNOWN = "unknown-visibility"
"""The name of the one unit of all tags of unknown visibility that become public."""

NO_PLACE = "(no file)"
"""The name in place of a manifest for rows that were recorded without one."""


class UnitName(NamedTuple):
    """The identity of a unit of losses in a plan: its kind and its name."""

    kind: str
    name: str


class Unit(Struct, frozen=True, gc=False):
    """Removals that share one approval.

    `asks` is true when the unit needs an approval whatever the limits are, for `reasons` or because its kind always
    does. `lost` counts the removals by kind. Of a source's `total` rows or resources, `missing` are gone. `also` are
    approvals of larger groups with all these losses, which stood in one unit before another merge moved some of them.
    `approved` is the approval given, and `is_open` is true when the unit still needs one. `by` names the people whom a
    rule asks. `is_own` is false when all its losses wait on the base of a pull request. Saved plans leave out `losses`.
    """

    kind: str
    name: str
    count: int
    approve: str
    lost: tuple[tuple[str, int], ...] = ()
    asks: bool = False
    reasons: tuple[str, ...] = ()
    missing: int = 0
    total: int = 0
    by: tuple[str, ...] | UnsetType = UNSET
    also: tuple[str, ...] = ()
    approved: Approval | None = None
    is_open: bool = False
    is_own: bool = True
    losses: tuple[Loss, ...] = ()


WRITTEN = UnitName(REMOVED, REMOVED)
"""The unit of what lines under `removed:` take."""

Divided = Mapping[UnitName, list[Loss]]


def _divided(
    losses: Iterable[tuple[Change, Loss]], lines: Collection[Key], sweep: Sweep | None
) -> tuple[Divided, Divided]:
    """Return the losses of each unit, and the losses that each unit would have if it came first.

    `lines` are the tags whose way of leaving is written under `removed:`. A sweep may delete unrecorded activity types,
    which is a loss if it is the first, or if it uploads nothing.
    """
    units: defaultdict[UnitName, list[Loss]] = defaultdict(list)
    first: defaultdict[UnitName, list[Loss]] = defaultdict(list)
    for change, loss in losses:
        names = _claims(change, loss, lines)
        units[names[0]].append(loss)
        for name in names:
            first[name].append(loss)
    if sweep is not None and (unknown := loss_of(sweep)) is not None:
        kind = FIRST_SWEEP if sweep.first else ACTIVITY_TYPES
        units[UnitName(kind, kind)].append(unknown)
    order = sorted(units, key=lambda unit: (SHOWN_ORDER.index(unit.kind), unit.name))
    return {name: units[name] for name in order}, first


def loss_of(sweep: Sweep | None) -> Loss | None:
    """Return the loss of unrecorded activity types by a sweep, if it uploads nothing, or if it is the first."""
    if sweep is None:
        return None
    return EMPTY_SWEEP if not sweep.uploads else SWEEP if sweep.first else None


def _claims(change: Change, loss: Loss, lines: Collection[Key]) -> list[UnitName]:
    """Return the units that claim a loss, the strongest first. Only one claims an opening or a cascade."""
    if loss.of == "opened":
        return [UnitName(OPENED, UNKNOWN if change.opening == PUBLISHED else str(change.key))]
    if change.cascade is not None or loss.of == LEAVES_AS[Kind.CATEGORY]:
        return [UnitName(CATEGORY, str(change.cascade or change.key))]
    names = [UnitName(ACTIVITY_TYPES, ACTIVITY_TYPES)] if loss.of == LEAVES_AS[Kind.ACTIVITY_TYPE] else []
    if change.key in lines and is_approvable_by_line(change):
        names.append(WRITTEN)
    if (template := template_of(change.source)) is not None:
        names.append(UnitName(SOURCE, template.data))
    return [*names, UnitName(MANIFEST, change.source.file if change.source is not None else NO_PLACE)]


# --- lines under `removed:`


def lines_of(removed: Mapping[Key, Removed]) -> dict[Key, Removed]:
    """Return the lines under `removed:` that may serve as approvals: not made by a template, and not `as: delete`."""
    return {
        key: line
        for key, line in removed.items()
        if line.how is not Removal.DELETE and template_of(line.source) is None
    }


def is_approvable_by_line(change: Change) -> bool:
    """Return whether a line under `removed:` may approve the change, which must be no deletion and no cascade."""
    return change.action in (Action.FORGET, Action.RETIRE) and change.key.kind is Kind.TAG and change.cascade is None


def line_text(change: Change) -> str:
    """Return the name under which a state records that a line under `removed:` was used for the change."""
    return f"{REMOVED}:{change.key}:{change.action.word}"


LINES = Limit(percent=25)
"""The share of tags that lines under `removed:` may take in one plan before they need an approval together."""

ALL_ASK = ", but removing all always needs an approval"
"""The end of a reason to ask when no limit is exceeded."""

NO_ROWS: Mapping[str, int] = MappingProxyType({})


class Total(Struct, frozen=True, gc=False):
    """What is there of one kind of loss, before the plan. Runs since `since` took `earlier` more without approval."""

    of: str
    there: int
    limit: Limit
    earlier: int = 0
    since: float = 0.0

    def excess(self, now: int, out: int) -> str | None:
        """Return the reason to ask when `now` are lost and `out` more are taken out, or `None` within the limit."""
        count, there = now + self.earlier, self.there - out + self.earlier
        is_exceeded = self.limit.is_exceeded(count, there)
        if not now or not (is_exceeded or now >= self.there - out):
            return None
        limit = f"{self.limit}{'' if is_exceeded else ALL_ASK}"
        since = f"{datetime.fromtimestamp(self.since, UTC):%Y-%m-%d %H:%M} UTC"
        before = f", {self.earlier:,} of them in runs since {since}" if self.earlier else ""
        return f"{count:,} of {there:,} {(SAYS_OF_ONE if there == 1 else SAYS)[self.of]}{before} (limit {limit})"


class Gate(Struct, frozen=True, gc=False):
    """The judgement whether losses need approvals, with its `reasons`.

    `tripped` says whether any approval is needed, given or not. `approve` is then the approval of all units but those
    of rules, and `whole` is it in any case. `units` divide the losses; `begun` are units that continue under an
    approval of an earlier run. `lines` are the tags that lines under `removed:` approve. `shrunk` are the sources that
    lost too much, which only manifests can tell.
    """

    tripped: bool = False
    reasons: tuple[str, ...] = ()
    approve: str | None = None
    approved: Approval | None = None
    units: tuple[Unit, ...] = ()
    begun: tuple[Unit, ...] = ()
    totals: tuple[Total, ...] = ()
    lines: tuple[Key, ...] = ()
    shrunk: tuple[Shrunk, ...] = ()
    whole: str = ""

    @property
    def is_closed(self) -> bool:
        """Whether a unit needs an approval that was not given."""
        return any(unit.is_open for unit in self.units)

    @property
    def shown(self) -> tuple[Unit, ...]:
        """The units that need an approval or have one."""
        return (*(unit for unit in self.units if unit.is_open or unit.approved is not None), *self.begun)

    @property
    def of_rules(self) -> tuple[Unit, ...]:
        """The units of rules that need an approval or have one."""
        return tuple(unit for unit in (*self.units, *self.begun) if unit.kind == RULE)

    @property
    def at_hand(self) -> tuple[str, ...]:
        """The texts of the approvals in use."""
        everything = [self.approved] if self.approved is not None else []
        return tuple(dict.fromkeys(each.text for each in (*everything, *(u.approved for u in self.shown)) if each))

    def with_approvals(self, approvals: Iterable[Approval]) -> Gate:
        """Return the same gate judged with `approvals`, and with no other."""
        by_text: dict[str, Approval] = {}
        for each in approvals:
            by_text.setdefault(each.text, each)
        texts = [(each.approve, *each.also, *((self.whole,) if each.kind != RULE else ())) for each in self.units]
        approved = [next((by_text[text] for text in some if text in by_text), None) for some in texts]
        units = [replace(unit, approved=each) for unit, each in zip(self.units, approved, strict=True)]
        opened, reasons = _judged(units, self.totals)
        if not opened:  # why approvals were needed
            reasons = _judged([replace(unit, approved=None) for unit in units], self.totals)[1]
        whole = by_text.get(self.whole)
        if whole is None and self.tripped and not opened:
            whole = next((each for each in approved if each is not None), None)
        marked = tuple(replace(unit, is_open=number in opened) for number, unit in enumerate(units))
        return replace(self, approved=whole, units=marked, reasons=reasons)

    def without_hashes(self) -> Gate:
        """Return the gate without approval hashes, for a plan without a state, to which no approval applies."""
        units, begun = (tuple(replace(unit, approve="", also=()) for unit in some) for some in (self.units, self.begun))
        return replace(self, units=units, begun=begun, approve=None, whole="")

    def bare(self) -> Gate:
        """Return the gate in the form of a saved plan, without approvals and losses."""
        bare = self.with_approvals(())
        units, begun = (tuple(replace(unit, losses=()) for unit in some) for some in (bare.units, bare.begun))
        return replace(bare, units=units, begun=begun)


def _judged(units: Sequence[Unit], totals: Iterable[Total]) -> tuple[set[int], tuple[str, ...]]:
    """Return the numbers of the units that still need an approval, and the reasons."""
    rest = [(number, unit) for number, unit in enumerate(units) if unit.approved is None]
    every, now = Counter[str](), Counter[str]()
    for unit in units:
        every.update(dict(unit.lost))
    for _, unit in rest:
        # A category or an opening is counted for its reason alone: its unit asks anyway.
        now.update({of: n for of, n in unit.lost if of in ALWAYS_ASKS or not unit.asks})
    over = {each.of: why for each in totals if (why := each.excess(now[each.of], every[each.of] - now[each.of]))}
    opened = {number for number, unit in rest if unit.asks or any(of in over for of, _ in unit.lost)}
    own = (reason for _, unit in rest for reason in unit.reasons)
    return opened, tuple(dict.fromkeys((*over.values(), *own)))


class StateRecords(NamedTuple):
    """The part of a state that a gate needs besides the rows, read on demand.

    `recent` returns the unapproved losses of the last 24 hours with their times, and `approvals` the recorded
    approvals. `totals` counts the whole estate when the rows are only a part of it.
    """

    recent: Callable[[], Mapping[Loss, float]] = dict
    approvals: Callable[[], KnownApprovals] = KnownApprovals
    totals: Callable[[], Mapping[str, int]] | None = None


NOTHING_ELSE = StateRecords()


def gate(
    differences: Collection[Difference],
    recorded: Mapping[Key, Recorded],
    limits: Mapping[str, Limit],
    *,
    sweep: Sweep | None,
    owner: Owner,
    lines: Collection[Key] = (),
    sources: Collection[SourceUse] = (),
    had: Mapping[str, int] = NO_ROWS,
    shrunk: Sequence[Shrunk] | None = None,
    rules: tuple[Sequence[Unit], Sequence[Unit]] = ((), ()),
    records: StateRecords = NOTHING_ELSE,
) -> Gate:
    """Judge the losses of a plan against the recorded rows of the whole estate, never of a selection.

    `had` maps the identity of each of the `sources` to its number of rows at the last apply; `shrunk` are the sources
    found then, for a plan that was saved. `lines` are the tags whose way of leaving is written on a line under
    `removed:`. `rules` are the units of rules: those that ask, and those that continue.
    """
    # A new resource can only lose the privacy of its former name.
    touching = (d.change for d in differences if d.row is not None or d.change.previously is not None)
    pairs = [(change, loss) for change in touching for loss in losses_of(change)]
    if not pairs and sweep is None and not any(rules):
        return Gate()
    known, losses = records.approvals(), [loss for _, loss in pairs]
    under_way = [(change, loss) for change, loss in pairs if known.covering(loss)]
    fresh = [(change, loss) for change, loss in pairs if not known.covering(loss)]
    # A line under `removed:` that an earlier apply has used approves nothing more.
    written = (change for change, _ in fresh if change.key in lines and is_approvable_by_line(change))
    by_line = frozenset(change.key for change in written if line_text(change) not in known.spent)
    unknown = loss_of(sweep)
    goes_on = unknown is not None and known.covering(unknown) is not None
    new_sweep, old_sweep = (None, sweep) if goes_on else (sweep, None)
    divided, first = _divided(fresh, by_line, new_sweep)
    if shrunk is None:
        renamed = {former for difference in differences for former in difference.change.formers}
        leaving = {loss.key for _, loss in fresh if leaves(loss)} - renamed - by_line
        shrunk = list(shrunken(leaving, recorded, sources, had))
    there = totals_with(totals_of(recorded.values()) if records.totals is None else records.totals(), recorded, losses)
    there.subtract(loss.of for _, loss in under_way)
    reasons = _reasons(divided, fresh, by_line, shrunk, new_sweep, there["tags"])
    everything = {loss for some in divided.values() for loss in some}
    if WRITTEN not in reasons:  # written out is approved
        there.subtract(loss.of for loss in divided.get(WRITTEN, ()))
        divided = {name: some for name, some in divided.items() if name != WRITTEN}
    units = [*_units(divided, first, reasons, shrunk, owner, known), *rules[0]]
    begun: list[Unit] = []  # one for each approval of an earlier run
    for name, some in _divided(under_way, by_line, old_sweep)[0].items():
        by_run: defaultdict[tuple[str, str], list[Loss]] = defaultdict(list)
        for loss in some:
            if record := known.covering(loss):
                by_run[record.text, record.run].append(loss)
        begun += [continuing(name.kind, name.name, *run, of_run) for run, of_run in by_run.items()]
    whole = approval_of(everything, owner, known)
    draft = Gate(
        units=tuple(units),
        begun=(*begun, *rules[1]),
        totals=tuple(_totals(units, there, records.recent(), losses, limits)),
        lines=tuple(sorted(by_line)),
        shrunk=tuple(shrunk),
        whole=whole,
    ).with_approvals(())
    asks = any(unit.is_open and unit.kind != RULE for unit in draft.units)
    return replace(draft, tripped=draft.is_closed, approve=whole if asks else None)


def _reasons(
    units: Divided,
    losses: Sequence[tuple[Change, Loss]],
    lines: Collection[Key],
    shrunk: Iterable[Shrunk],
    sweep: Sweep | None,
    tags: int,
) -> dict[UnitName, list[str]]:
    """Return the units that need an approval by themselves, with their reasons. `tags` is the total number of tags."""
    reasons: defaultdict[UnitName, list[str]] = defaultdict(list)
    for name, some in units.items():
        if name.kind in ALWAYS:
            reasons[name] = []
        if name.kind == CATEGORY and not any(loss.of == "categories" for loss in some):  # so that no total counts it
            reasons[name].append(f"tags deleted with {name.name}, whose deletion has already begun: {len(some)}")
    # A source that shrank asks for what was made from its rows, or else in a manifest that uses it, or else for all:
    # text templates and lookups use rows without a trace. Lines under `removed:` were written for what they remove.
    claimed = [(change, _claims(change, loss, lines)[0]) for change, loss in losses]
    claimed = [(change, name) for change, name in claimed if name.kind not in (REMOVED, OPENED)]
    for source in shrunk:
        made = [name for change, name in claimed if (t := template_of(change.source)) and t.data == source.source]
        near = [name for change, name in claimed if change.source is not None and change.source.file in source.files]
        for name in dict.fromkeys(made or near or [name for _, name in claimed]):
            reasons[name].append(source.reason)
    first = UnitName(FIRST_SWEEP, FIRST_SWEEP)
    if first in units:
        reasons[first].append(f"first sweep of this state: it deletes {SWEPT} among the team's activity types")
    if sweep is not None and not sweep.uploads:
        name = first if first in units else UnitName(ACTIVITY_TYPES, ACTIVITY_TYPES)
        reasons[name].append("the sweep uploads nothing: it deletes every activity type of the team")
    written = len(units.get(WRITTEN, ()))
    if written and (written == tags or LINES.is_exceeded(written, tags)):
        reasons[WRITTEN].append(f"lines under `removed:` take {written} of {tags} tags (limit {LINES})")
    return reasons


def _units(
    units: Divided,
    first: Divided,
    reasons: Mapping[UnitName, Sequence[str]],
    shrunk: Iterable[Shrunk],
    owner: Owner,
    known: KnownApprovals,
) -> Iterator[Unit]:
    """Yield the units with their approvals, and with those of larger groups that have all their losses."""
    numbers = {UnitName(SOURCE, each.source): (each.missing, each.total) for each in shrunk}
    larger = defaultdict(list)
    for some in first.values():
        group = (frozenset(some), approval_of(some, owner, known))
        for loss in some:
            larger[loss].append(group)
    for name, losses in units.items():
        approve, all_of_it = approval_of(losses, owner, known), set(losses)
        missing, total = numbers.get(name, (0, 0))
        yield Unit(
            kind=name.kind,
            name=name.name,
            count=len(losses),
            approve=approve,
            lost=tuple(Counter(loss.of for loss in losses).items()),
            asks=name in reasons,
            reasons=tuple(reasons.get(name, ())),
            missing=missing,
            total=total,
            also=tuple(text for some, text in larger[losses[0]] if text != approve and some >= all_of_it),
            losses=tuple(losses),
        )


def _totals(
    units: Iterable[Unit],
    there: Mapping[str, int],
    recent: Mapping[Loss, float],
    losses: Collection[Loss],
    limits: Mapping[str, Limit],
) -> Iterator[Total]:
    """Yield the totals of which losses are shares, in order of kinds.

    A missing limit, as of categories and opened tags, is 0.
    """
    # Of the recent losses, a thing that this plan removes again counts once, as of now.
    again, leaving = {*losses}, {loss.key for loss in losses if leaves(loss)}
    before = defaultdict[str, list[float]](list)
    for loss, at in recent.items():
        if (leaves(loss) or loss not in again) and loss.key not in leaving:
            before[loss.of].append(at)
    lost = {of for unit in units for of, _ in unit.lost}
    for of in SAYS:
        if of in lost:
            limit = limits.get(of, Limit(count=0))
            if limit.percent is not None:  # as a saved plan is read back: its bytes must be equal
                limit = Limit(limit.count, float(limit.percent))
            yield Total(of, there[of], limit, len(before[of]), min(before[of], default=0.0))


def continuing(kind: str, name: str, text: str, run: str, losses: Sequence[Loss]) -> Unit:
    """Return a unit that continues under the approval with which an earlier run began."""
    lost = tuple(Counter(loss.of for loss in losses).items())
    return Unit(kind, name, len(losses), text, lost, approved=Approval(text, f"run {run}"), losses=tuple(losses))


UNUSED, USED = "approval-unused", "approval-used"
CODES = frozenset({UNUSED, USED})
"""The codes of warnings about approvals, which every plan computes anew."""


def approved_of(plan: Plan) -> Approved:
    """Return the losses that a plan's approvals cover, including its lines under `removed:`."""
    losses = [loss for change in plan.changes for loss in losses_of(change)]
    ruled = [loss for unit in plan.gate.of_rules for loss in unit.losses]
    swept = [loss for loss in [loss_of(plan.sweep)] if loss is not None]
    uses: defaultdict[str, list[Loss]] = defaultdict(list)
    for unit in plan.gate.units:
        if unit.approved is not None:
            uses[unit.approved.text] += unit.losses
    lines = set(plan.gate.lines)
    for change in plan.changes:
        if change.key in lines:
            uses[line_text(change)] += losses_of(change)
    return Approved(
        {text: tuple(some) for text, some in uses.items()},
        frozenset((*losses, *swept, *ruled)),
        frozenset(change.key for change in plan.changes),
        plan.is_whole,
        # What is in quarantine, and the sweep if an activity type is.
        frozenset((*plan.set_aside, *(SWEEP.key for key in plan.set_aside if key.kind is SWEEP.key.kind))),
        plan.undo.run if plan.undo and not (plan.undo.targets or plan.undo.excludes) else None,
    )


def approval_warnings(gate: Gate, approvals: Iterable[Approval], records: KnownApprovals) -> Iterator[Diagnostic]:
    """Yield warnings about approvals that were used before or that match no removal of the plan.

    An approval with which a run began is in use until all that it covers has settled, even if nothing of it is planned.
    """
    texts = {gate.whole, *(text for unit in gate.units for text in (unit.approve, *unit.also))}
    in_use = {*(unit.approve for unit in gate.begun), *records.texts_under_way}
    for approval in approvals:
        spent = records.spent.get(approval.text)
        if approval.text in texts or approval.text in in_use:
            continue
        code, message = UNUSED, "approves nothing in this plan: it is for other removals, another team or another state"
        if spent:
            at = datetime.fromtimestamp(spent.used or spent.at, UTC)
            code, message = USED, f"was used by run {spent.run} at {at:%Y-%m-%d %H:%M} UTC and approves nothing more"
        cure = "; remove the line" if approval.line is not None else f" ({approval.by})"
        yield Diagnostic(
            severity=Severity.WARNING,
            code=code,
            message=f"{approval.text} {message}{cure}",
            file=approval.by if approval.line is not None else None,
            line=approval.line,
            column=1 if approval.line is not None else None,
        )
