"""Judge whether a plan's removals need approvals, which, and why, by units and limits. Pure (docs/planning.md 5).

Approved units are taken out first, and shares are computed from the remaining removals. A removal in several units
needs the approval of each unit that asks for one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.approvals import (
    Approval,
    KnownApprovals,
    Owner,
    approvals_of_plan,
    approvals_of_unit,
    as_printed_before,
    next_of,
)
from syncengine.plan.diff import Change, Difference
from syncengine.plan.losses import (
    ALWAYS_ASKS,
    SAYS,
    SAYS_OF_ONE,
    SWEEP,
    Earlier,
    Loss,
    leaves,
    totals_of,
    totals_with,
    with_losses,
)
from syncengine.plan.shrinking import Shrunk, shrunk, with_fewer_rows
from syncengine.plan.sweep import Sweep
from syncengine.plan.units import (
    REMOVED,
    RULE,
    SOURCE,
    Division,
    UnitInputs,
    UnitName,
    asking,
    divided,
    is_approvable_by_line,
    line_text,
    lost_by,
)
from syncengine.project.schema import Limit
from syncengine.resource import Key, Recorded, Resource

NO_ROWS: Mapping[str, int] = MappingProxyType({})
NO_RECORDS = KnownApprovals()
ALL_ASK = ", but removing all always needs an approval"
"""The end of a reason to ask when no limit is exceeded."""


class Unit(Struct, frozen=True, gc=False):
    """Removals that share one approval.

    `asks` is true when the unit needs an approval whatever the limits are, for `reasons` or because its kind always
    does. `lost` counts the removals by kind. Of a source's `total` rows or resources, `missing` are gone. `approved` is
    the approval given, and `is_open` is true when the unit still needs an approval. `by` names the people whom a rule
    asks. Saved plans leave out `losses`.
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
    approved: Approval | None = None
    is_open: bool = False
    losses: tuple[Loss, ...] = ()

    @property
    def id(self) -> UnitName:
        return UnitName(self.kind, self.name)


class LossCount(Struct, frozen=True, gc=False):
    """The number of losses of one kind that belong to the same units. `units` are indexes into the gate's units."""

    of: str
    units: tuple[int, ...]
    count: int


class Total(Struct, frozen=True, gc=False):
    """The total of which losses of one kind are a share.

    Recent runs already took `earlier`, the first at `since`; `missing` of them are not counted in `there`.
    """

    of: str
    there: int
    limit: Limit
    earlier: int = 0
    missing: int = 0
    since: float = 0.0

    def excess(self, now: int, out: int) -> str | None:
        """Return the reason to ask when `now` are lost and `out` more are approved, or `None` within the limit."""
        count, there = now + self.earlier, self.there - out
        if not now or (
            self.of not in ALWAYS_ASKS and now < there and not self.limit.is_exceeded(count, there + self.missing)
        ):
            return None
        limit, total = self._limit(count, there + self.missing), there + self.missing
        says = SAYS_OF_ONE[self.of] if total == 1 else SAYS[self.of]
        return f"{count:,} of {total:,} {says}{self._of_before()} (limit {limit})"

    def _limit(self, count: int, total: int) -> str:
        """Return the limit that is exceeded, or the limit that all of a kind stay within."""
        if self.of in ALWAYS_ASKS:
            return "0"
        return str(self.limit) if self.limit.is_exceeded(count, total) else f"{self.limit}{ALL_ASK}"

    def _of_before(self) -> str:
        if not self.earlier:
            return ""
        return f", {self.earlier:,} of them in runs since {datetime.fromtimestamp(self.since, UTC):%Y-%m-%d %H:%M} UTC"


class Gate(Struct, frozen=True, gc=False):
    """The judgement whether losses need approvals, with its `reasons`.

    `approve` is the approval of all losses when the gate is tripped. `units` divide the losses; `begun` are units that
    continue under an approval of an earlier run. `lines` are the tags that lines under `removed:` approve. `whole` is
    the approval of everything, even when none is needed.
    """

    tripped: bool = False
    reasons: tuple[str, ...] = ()
    approve: str | None = None
    approved: Approval | None = None
    units: tuple[Unit, ...] = ()
    begun: tuple[Unit, ...] = ()
    tallies: tuple[LossCount, ...] = ()
    totals: tuple[Total, ...] = ()
    lines: tuple[Key, ...] = ()
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
        """Return the same gate judged with `approvals`."""
        by_text: dict[str, Approval] = {}
        for each in approvals:
            by_text.setdefault(each.text, each)
        whole = by_text.get(self.whole) or by_text.get(as_printed_before(self.whole))
        for_all = {unit.id: None if unit.kind == RULE else whole for unit in self.units}
        return judged(self, {unit.id: by_text.get(unit.approve) or for_all[unit.id] for unit in self.units}, whole)

    def without_hashes(self) -> Gate:
        """Return the gate without approval hashes, for a plan without a state, to which no approval applies."""
        units, begun = (tuple(replace(unit, approve="") for unit in some) for some in (self.units, self.begun))
        return replace(self, units=units, begun=begun, approve=None, whole="")

    def bare(self) -> Gate:
        """Return the gate in the form of a saved plan, without approvals and losses."""
        bare = self.with_approvals(()) if any(unit.approved for unit in self.units) else self
        units, begun = (tuple(replace(unit, losses=()) for unit in some) for some in (bare.units, bare.begun))
        return replace(bare, units=units, begun=begun)

    def with_sources_of(self, saved: Gate) -> Gate:
        """Return this gate with the units of a saved gate for sources that shrank, which only manifests can tell."""
        own = {unit.id for unit in self.units}
        more = tuple(unit for unit in saved.units if unit.kind == SOURCE and unit.asks and unit.id not in own)
        both = replace(self, units=(*self.units, *more), tripped=True, approve=self.whole) if more else self
        return both.with_approvals(())


Approvals = Mapping[UnitName, Approval | None]
"""The approval of each unit, or `None` when there is none."""


def judged(gate: Gate, approvals: Approvals, whole: Approval | None) -> Gate:
    """Return the gate with each unit marked as approved, open or neither."""
    ask = open_units(gate, approvals)
    units = tuple(replace(each, approved=approvals.get(each.id), is_open=each.id in ask) for each in gate.units)
    approved = whole
    if gate.tripped and not ask and approved is None:
        approved = next((unit.approved for unit in units if unit.approved is not None), None)
    return replace(gate, units=units, approved=approved, reasons=_reasons(gate, approvals if ask else {}))


def open_units(gate: Gate, approvals: Approvals) -> set[UnitName]:
    """Return the units that need an approval: those that ask by themselves, and those in totals above a limit."""
    asking_units = {unit.id for unit in gate.units if unit.asks}
    wanting = {name for name in asking_units if approvals.get(name) is None}
    done = {unit.id for unit in gate.units if approvals.get(unit.id) is not None}
    sums = _Sums(gate, done | asking_units)
    over = {total.of for total in gate.totals if sums.excess(total)}
    return wanting | {gate.units[n].id for tally in sums.remaining if tally.of in over for n in tally.units}


class _Sums:
    """The losses that remain without the approved units, counted by kind."""

    def __init__(self, gate: Gate, approved: Collection[UnitName]) -> None:
        done = [unit.id in approved for unit in gate.units]
        ask = [unit.asks for unit in gate.units]
        self.remaining: list[LossCount] = []
        self.now, self.out = Counter[str](), Counter[str]()
        for tally in gate.tallies:
            is_out = any(done[n] for n in tally.units) and all(done[n] or not ask[n] for n in tally.units)
            (self.out if is_out else self.now)[tally.of] += tally.count
            if not is_out:
                self.remaining.append(tally)

    def excess(self, total: Total) -> str | None:
        return total.excess(self.now[total.of], self.out[total.of])


def _reasons(gate: Gate, approvals: Approvals) -> tuple[str, ...]:
    """Return the reasons to ask for more approvals."""
    sums = _Sums(gate, {name for name, approval in approvals.items() if approval is not None})
    reasons = [reason for total in gate.totals if (reason := sums.excess(total))]
    reasons += [reason for unit in gate.units if approvals.get(unit.id) is None for reason in unit.reasons]
    return tuple(dict.fromkeys(reasons))


class StateRecords(NamedTuple):
    """The part of a state that a gate needs besides the rows, read on demand.

    `totals` counts the whole estate when the rows are only a part of it. `recent` returns the losses of recent runs
    that stayed below the gate and still count. `approvals` returns the recorded approvals.
    """

    totals: Callable[[], Mapping[str, int]] | None = None
    recent: Callable[[], Mapping[Loss, Earlier]] = dict
    approvals: Callable[[], KnownApprovals] = lambda: NO_RECORDS


NOTHING_ELSE = StateRecords()


class JudgedRows(NamedTuple):
    """The recorded rows that a gate judges: all rows, or the rows that a plan touches with the `totals` of all rows."""

    rows: Mapping[Key, Recorded]
    totals: Callable[[], Mapping[str, int]] | None = None


def gate(
    differences: Collection[Difference],
    recorded: Mapping[Key, Recorded],
    limits: Mapping[str, Limit],
    desired: Mapping[Key, Resource] | None,
    *,
    sweep: Sweep | None,
    owner: Owner,
    sources: Iterable[SourceUse] = (),
    had: Mapping[str, int] = NO_ROWS,
    lines: Collection[Key] = (),
    records: StateRecords = NOTHING_ELSE,
) -> Gate:
    """Judge the losses of a plan against the recorded rows of the whole estate, never of a selection.

    Anything that is lost while one of the `sources` shrank may be lost for that reason, such as keywords made from its
    rows. `had` maps the identity of each source to its number of rows at the last apply. When `desired` is `None`, the
    templates of rows are unknown, and only shares of whole sources are judged. `lines` are the tags whose way of
    leaving is written on a line under `removed:`.
    """
    pairs = with_losses(differences)
    if not pairs and sweep is None:
        return Gate()
    approvals, all_losses = records.approvals(), [loss for _, loss in pairs]
    begun = {loss: record for loss in (*all_losses, SWEEP) if (record := approvals.covering(loss))}
    fresh = [(change, loss) for change, loss in pairs if loss not in begun]
    by_line = _lines_among(fresh, lines, approvals)
    shrinking = _shrunk(differences, fresh, recorded, desired, by_line, sources, had) if records.totals is None else ()
    inputs = UnitInputs(None if SWEEP in begun else sweep, shrinking, by_line)
    there = totals_with(
        totals_of(recorded.values()) if records.totals is None else records.totals(), recorded, all_losses
    )
    there.subtract(loss.of for _, loss in pairs if loss in begun)
    judgement = _Judgement(divided(fresh, inputs), inputs, approvals, owner)
    units = judgement.units(there["tags"])
    whole = next_of(approvals_of_plan([*all_losses, *([SWEEP] if sweep is not None else [])], owner), approvals)
    draft = Gate(
        units=units,
        begun=tuple(_begun([(change, loss) for change, loss in pairs if loss in begun], sweep, inputs, approvals)),
        tallies=tuple(_tallies(units)),
        totals=tuple(_totals(units, there, _before(records.recent(), all_losses), limits, judgement.without_asking)),
        lines=tuple(sorted(by_line)),
        whole=whole,
    )
    draft = draft.with_approvals(())
    return replace(draft, tripped=draft.is_closed, approve=whole if draft.is_closed else None)


def _lines_among(
    pairs: Sequence[tuple[Change, Loss]], lines: Collection[Key], approvals: KnownApprovals
) -> frozenset[Key]:
    """Return the tags that leave because of a line under `removed:` that no earlier apply has used."""
    changes = (change for change, _ in pairs if change.key in lines and is_approvable_by_line(change))
    return frozenset(change.key for change in changes if line_text(change) not in approvals.spent)


def _shrunk(
    differences: Iterable[Difference],
    pairs: Iterable[tuple[Change, Loss]],
    recorded: Mapping[Key, Recorded],
    desired: Mapping[Key, Resource] | None,
    by_line: Collection[Key],
    sources: Iterable[SourceUse],
    had: Mapping[str, int],
) -> tuple[Shrunk, ...]:
    """Return the sources that lost too many of the resources made from them, or else too many of their rows."""
    renamed = {former for d in differences for former in d.change.formers}
    losses = [loss for _, loss in pairs if loss.key not in renamed and loss.key not in by_line]
    sources = tuple(sources)
    of_resources = list(shrunk(losses, recorded, desired, sources))
    rows = {each.source: each for each in with_fewer_rows(sources, had)}
    with_rows = [
        each._replace(missing=rows[each.source].missing, total=rows[each.source].total) if each.source in rows else each
        for each in of_resources
    ]
    named = {each.source for each in of_resources}
    return (*with_rows, *(each for each in rows.values() if each.source not in named))


class _Judgement:
    """A builder of a plan's units. `without_asking` are losses by lines under `removed:` within their limit."""

    def __init__(self, division: Division, inputs: UnitInputs, approvals: KnownApprovals, owner: Owner) -> None:
        self._division, self._inputs, self._approvals, self._owner = division, inputs, approvals, owner
        self.without_asking: tuple[Loss, ...] = ()

    def units(self, tags: int) -> tuple[Unit, ...]:
        reasons = asking(self._division, self._inputs, tags)
        by_line = UnitName(REMOVED, REMOVED)
        if by_line in self._division and by_line not in reasons:
            self.without_asking = tuple(self._division.pop(by_line))
        return tuple(self._unit(name, losses, reasons) for name, losses in self._division.items())

    def _unit(self, name: UnitName, losses: Sequence[Loss], reasons: Mapping[UnitName, tuple[str, ...]]) -> Unit:
        source = next((s for s in self._inputs.shrunk if s.source == name.name and name.kind == "source"), None)
        return Unit(
            kind=name.kind,
            name=name.name,
            count=len(losses),
            approve=next_of(approvals_of_unit(name, losses, self._owner), self._approvals),
            lost=lost_by(losses),
            asks=name in reasons,
            reasons=reasons.get(name, ()),
            missing=source.missing if source else 0,
            total=source.total if source else 0,
            losses=tuple(losses),
        )


def _begun(
    pairs: Sequence[tuple[Change, Loss]], sweep: Sweep | None, inputs: UnitInputs, approvals: KnownApprovals
) -> Iterator[Unit]:
    """Yield the units that continue under the approvals of earlier runs, one for each approval."""
    sweep = sweep if sweep is not None and approvals.covering(SWEEP) else None
    for name, losses in divided(pairs, UnitInputs(sweep, (), inputs.lines)).items():
        by_text: defaultdict[str, list[Loss]] = defaultdict(list)
        for loss in losses:
            if record := approvals.covering(loss):
                by_text[record.text].append(loss)
        for text, some in by_text.items():
            run = approvals.covering(some[0])
            by = Approval(text, f"run {run.run}" if run else "")
            yield Unit(name.kind, name.name, len(some), text, lost_by(some), approved=by, losses=tuple(some))


def _tallies(units: Sequence[Unit]) -> Iterator[LossCount]:
    places: defaultdict[Loss, list[int]] = defaultdict(list)
    for number, unit in enumerate(units):
        for loss in unit.losses:
            places[loss].append(number)
    counts = Counter((loss.of, tuple(numbers)) for loss, numbers in places.items() if loss != SWEEP)
    return (LossCount(of, numbers, count) for (of, numbers), count in counts.items())


def _totals(
    units: Iterable[Unit],
    there: Mapping[str, int],
    before: Mapping[str, Sequence[Earlier]],
    limits: Mapping[str, Limit],
    approved: Iterable[Loss],
) -> Iterator[Total]:
    """Yield the totals of which losses are shares, in order of kinds and without the losses in `approved`."""
    out, lost = Counter(loss.of for loss in approved), {of for unit in units for of, _ in unit.lost}
    for of in SAYS:
        if of in lost:
            earlier = before.get(of, ())
            yield Total(
                of,
                there[of] - out[of],
                _as_stored(limits.get(of)),
                len(earlier),
                sum(not each.is_counted for each in earlier),
                min((each.at for each in earlier), default=0.0),
            )


def _as_stored(limit: Limit | None) -> Limit:
    """Return the limit as it is read back from a saved plan. A missing limit is 0."""
    if limit is None:
        return Limit(count=0)
    return limit if limit.percent is None else Limit(limit.count, float(limit.percent))


def _before(recent: Mapping[Loss, Earlier], losses: Iterable[Loss]) -> Mapping[str, list[Earlier]]:
    """Return recent losses by the total in which they count. A thing that is removed again now counts once."""
    again = set(losses)
    leaving = {loss.key for loss in again if leaves(loss)}
    earlier_losses = defaultdict(list)
    for loss, earlier in recent.items():
        if loss not in again and loss.key not in leaving:
            earlier_losses[loss.of].append(earlier)
    return earlier_losses
