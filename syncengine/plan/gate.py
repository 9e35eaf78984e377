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
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.calls import Sweep
from syncengine.plan.diff import Change, Difference
from syncengine.plan.losses import (
    ALWAYS_ASKS,
    SAYS,
    SAYS_OF_ONE,
    SWEPT,
    Loss,
    Shrunk,
    leaves,
    shrunken,
    totals_of,
    totals_with,
    with_losses,
)
from syncengine.plan.units import (
    ACTIVITY_TYPES,
    ALWAYS,
    CATEGORY,
    FIRST_SWEEP,
    REMOVED,
    RULE,
    Approval,
    Division,
    KnownApprovals,
    Owner,
    Unit,
    UnitName,
    approval_of,
    divided,
    is_approvable_by_line,
    line_text,
    loss_of,
    lost_by,
    units_of_source,
)
from syncengine.project.model import Limit
from syncengine.resource import Key, Recorded

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
        is_exceeded = self.of in ALWAYS_ASKS or self.limit.is_exceeded(count, there)
        if not now or not (is_exceeded or now >= self.there - out):
            return None
        limit = "0" if self.of in ALWAYS_ASKS else f"{self.limit}{'' if is_exceeded else ALL_ASK}"
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
    pairs = with_losses(differences)
    if not pairs and sweep is None and not any(rules):
        return Gate()
    approvals, losses = records.approvals(), [loss for _, loss in pairs]
    under_way = [(change, loss) for change, loss in pairs if approvals.covering(loss)]
    fresh = [(change, loss) for change, loss in pairs if not approvals.covering(loss)]
    by_line = _lines_among(fresh, lines, approvals)
    unknown = loss_of(sweep)
    new_sweep, old_sweep = (None, sweep) if unknown and approvals.covering(unknown) else (sweep, None)
    division = divided(fresh, by_line, new_sweep)
    if shrunk is None:
        renamed = {former for difference in differences for former in difference.change.formers}
        leaving = {loss.key for _, loss in fresh if leaves(loss)} - renamed - by_line
        shrunk = list(shrunken(leaving, recorded, sources, had))
    there = totals_with(totals_of(recorded.values()) if records.totals is None else records.totals(), recorded, losses)
    there.subtract(loss.of for _, loss in under_way)
    reasons = _reasons(division, fresh, by_line, shrunk, new_sweep, there["tags"])
    written = division.units.get(UnitName(REMOVED, REMOVED), [])
    if UnitName(REMOVED, REMOVED) not in reasons:  # written out is approved
        there.subtract(loss.of for loss in written)
        division = division._replace(units={n: some for n, some in division.units.items() if n.kind != REMOVED})
    units = tuple(_units(division, reasons, shrunk, owner, approvals))
    everything = {loss for unit in units for loss in unit.losses} | set(written)
    whole = approval_of(everything, owner, approvals)
    draft = Gate(
        units=(*units, *rules[0]),
        begun=(*_begun(under_way, old_sweep, by_line, approvals), *rules[1]),
        totals=tuple(_totals(units, there, _before(records.recent(), losses), limits)),
        lines=tuple(sorted(by_line)),
        shrunk=tuple(shrunk),
        whole=whole,
    ).with_approvals(())
    asks = any(unit.is_open and unit.kind != RULE for unit in draft.units)
    return replace(draft, tripped=draft.is_closed, approve=whole if asks else None)


def _lines_among(
    pairs: Iterable[tuple[Change, Loss]], lines: Collection[Key], approvals: KnownApprovals
) -> frozenset[Key]:
    """Return the tags that leave because of a line under `removed:` that no earlier apply has used."""
    changes = (change for change, _ in pairs if change.key in lines and is_approvable_by_line(change))
    return frozenset(change.key for change in changes if line_text(change) not in approvals.spent)


def _reasons(
    division: Division,
    losses: Sequence[tuple[Change, Loss]],
    lines: Collection[Key],
    shrunk: Iterable[Shrunk],
    sweep: Sweep | None,
    tags: int,
) -> dict[UnitName, list[str]]:
    """Return the units that need an approval by themselves, with their reasons. `tags` is the total number of tags."""
    units = division.units
    reasons: defaultdict[UnitName, list[str]] = defaultdict(list)
    for name, some in units.items():
        if name.kind in ALWAYS:
            reasons[name] = []
        if name.kind == CATEGORY and not any(loss.of == "categories" for loss in some):  # so that no total counts it
            reasons[name].append(f"tags deleted with {name.name}, whose deletion has already begun: {len(some)}")
    for source in shrunk:
        for name in units_of_source(source, losses, lines):
            reasons[name].append(source.reason)
    first = UnitName(FIRST_SWEEP, FIRST_SWEEP)
    if first in units:
        reasons[first].append(f"first sweep of this state: it deletes {SWEPT} among the team's activity types")
    if sweep is not None and not sweep.uploads:
        name = first if first in units else UnitName(ACTIVITY_TYPES, ACTIVITY_TYPES)
        reasons[name].append("the sweep uploads nothing: it deletes every activity type of the team")
    written = len(units.get(UnitName(REMOVED, REMOVED), ()))
    if written and (written == tags or LINES.is_exceeded(written, tags)):
        why = f"lines under `removed:` take {written} of {tags} tags (limit {LINES})"
        reasons[UnitName(REMOVED, REMOVED)].append(why)
    return reasons


def _units(
    division: Division,
    reasons: Mapping[UnitName, Sequence[str]],
    shrunk: Iterable[Shrunk],
    owner: Owner,
    approvals: KnownApprovals,
) -> Iterator[Unit]:
    numbers = {each.source: (each.missing, each.total) for each in shrunk}
    larger = defaultdict(list)
    for some in division.first.values():
        group = (frozenset(some), approval_of(some, owner, approvals))
        for loss in some:
            larger[loss].append(group)
    for name, losses in division.units.items():
        approve, all_of_it = approval_of(losses, owner, approvals), set(losses)
        missing, total = numbers.get(name.name, (0, 0)) if name.kind == "source" else (0, 0)
        yield Unit(
            kind=name.kind,
            name=name.name,
            count=len(losses),
            approve=approve,
            lost=lost_by(losses),
            asks=name in reasons,
            reasons=tuple(reasons.get(name, ())),
            missing=missing,
            total=total,
            also=tuple(text for some, text in larger[losses[0]] if text != approve and some >= all_of_it),
            losses=tuple(losses),
        )


def _begun(
    pairs: Sequence[tuple[Change, Loss]], sweep: Sweep | None, lines: Collection[Key], approvals: KnownApprovals
) -> Iterator[Unit]:
    """Yield the units that continue under the approvals of earlier runs, one for each approval."""
    for name, losses in divided(pairs, lines, sweep).units.items():
        by_run: defaultdict[tuple[str, str], list[Loss]] = defaultdict(list)
        for loss in losses:
            if record := approvals.covering(loss):
                by_run[record.text, record.run].append(loss)
        for (text, run), some in by_run.items():
            yield continuing(name.kind, name.name, text, run, some)


def continuing(kind: str, name: str, text: str, run: str, losses: Sequence[Loss]) -> Unit:
    """Return a unit that continues under the approval with which an earlier run began."""
    return Unit(
        kind, name, len(losses), text, lost_by(losses), approved=Approval(text, f"run {run}"), losses=tuple(losses)
    )


def _totals(
    units: Iterable[Unit],
    there: Mapping[str, int],
    before: Mapping[str, Sequence[float]],
    limits: Mapping[str, Limit],
) -> Iterator[Total]:
    """Yield the totals of which losses are shares, in order of kinds. A missing limit is 0."""
    lost = {of for unit in units for of, _ in unit.lost}
    for of in SAYS:
        if of in lost:
            times, limit = before.get(of, ()), limits.get(of, Limit(count=0))
            if limit.percent is not None:
                limit = Limit(
                    limit.count, float(limit.percent)
                )  # as a saved plan is read back: its bytes must be equal
            yield Total(of, there[of], limit, len(times), min(times, default=0.0))


def _before(recent: Mapping[Loss, float], losses: Iterable[Loss]) -> Mapping[str, list[float]]:
    """Return the times of recent losses by kind. A thing that this plan removes again counts once, as of now."""
    again = {loss for loss in losses if not leaves(loss)}
    leaving = {loss.key for loss in losses if leaves(loss)}
    times = defaultdict(list)
    for loss, at in recent.items():
        if loss not in again and loss.key not in leaving:
            times[loss.of].append(at)
    return times
