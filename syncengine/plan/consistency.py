"""Prove that a saved plan is consistent with itself and with the current rows, or refuse it. Pure (docs/planning.md 6).

A plan file is input from outside. Planning again from the aim of its calls, over the recorded rows, must give exactly
the changes, calls, records and gate that the file shows. Places, reasons for removals, notes on resources that stay and
the number of unchanged resources are not compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from syncengine.effects import Effect
from syncengine.plan.aim import Aim, Note, RemovalKind, Rules
from syncengine.plan.approvals import KnownApprovals, Owner, approvals_of_plan, approvals_of_unit
from syncengine.plan.build import derived, reasserted
from syncengine.plan.checks import objections
from syncengine.plan.diff import Change, Diff
from syncengine.plan.gate import ALL_ASK, NO_RECORDS, Gate, JudgedRows, StateRecords, Unit, gate
from syncengine.plan.losses import ALWAYS_ASKS, SAYS, SAYS_OF_ONE, SWEEP, Loss, losses_in
from syncengine.plan.model import Plan
from syncengine.plan.rule_units import without_rules
from syncengine.plan.saved_aim import aim_of, inconsistent
from syncengine.plan.shrinking import LEFT_OUT
from syncengine.plan.units import REMOVED, SOURCE
from syncengine.project.schema import Limit
from syncengine.resource import Key, Kind, Recorded

FOLLOWING = frozenset({"create-only", "ignored", "not-enabled"})
"""The kinds of notes that follow from the content sent."""

COUNTED = re.compile(
    r"([0-9,]{1,24}) of [0-9,]+ (.+?)(?:, ([0-9,]{1,24}) of them in runs since [0-9: -]{16} UTC)?"
    rf" \(limit [0-9.]+%?(?: and [0-9.]+%)?(?:{ALL_ASK})?\)"
)
SHRUNK = re.compile(
    r".+(?: shrank: [0-9,]+ of [0-9,]+ rows are gone"
    r"|: [0-9,]+ of [0-9,]+ resources made from it(?: at .+)? are removed) \(limit 25%\)"
)
"""The pattern of a gate's reason about a source that shrank, whose former size is not recorded."""

BY_LINES_OF = "lines under `removed:` take "
BY_LINES = re.compile(rf"({BY_LINES_OF}[0-9]+) of [0-9]+ tags \(limit 25%\)")
"""The pattern of the reason of lines that need an approval together, which depends on the number of tags."""

OF_MANY: Mapping[str, str] = {words: SAYS[of] for table in (SAYS, SAYS_OF_ONE) for of, words in table.items()}
"""The words for several losses, by themselves and by the words for a single loss."""

SHARES = frozenset(words for of, words in SAYS.items() if of not in ALWAYS_ASKS)
"""The words for losses that need an approval only above a limit, which depends on the day."""


@dataclass(frozen=True, slots=True)
class Present:
    """The current state. `rows` are those that `saved_aim.aim_of` needs, and `judged` reads the rows for the gate."""

    rows: Mapping[Key, Recorded]
    judged: Callable[[], JudgedRows]
    rules: Rules
    limits: Mapping[str, Limit]
    owns_activity_types: bool
    records: Callable[[], KnownApprovals] = lambda: NO_RECORDS


def prove(plan: Plan, now: Present) -> Diff:
    """Return a plan's differences. Raise `StalePlan` (`plan-inconsistent`) if its calls do not make its changes."""
    target = aim_of(plan, now.rows)
    rows = reasserted(now.rows, target.desired) if plan.reasserts else now.rows
    _refuse_impossible(target, rows, now.rules)
    first = plan.sweep is not None and (plan.sweep.first or not now.owns_activity_types)
    basis = replace(plan.basis, swept_before=not first)
    sweeps = plan.sweep is not None
    again, delta = derived(target, rows, now.rows, basis, plan.reasserts, lambda _: sweeps, _same_as(plan.changes))
    _compare_what_is_shown(plan, again)
    _compare_what_is_done(plan, again, now.rows)
    _compare_gates(plan, delta, now)
    return delta


def _same_as(changes: Iterable[Change]) -> Callable[[Change], Change]:
    """Return a function that replaces each change by the plan's equal one, to keep it in memory only once."""
    rest = iter(changes)

    def same(change: Change) -> Change:
        claim = next(rest, None)
        return claim if claim is not None and claim == change else change

    return same


def _refuse_impossible(target: Aim, rows: Mapping[Key, Recorded], rules: Rules) -> None:
    for trouble in objections(target, rows):
        raise inconsistent(f"{trouble.address}: {trouble.message}")
    for key, leaving in target.leaving.items():
        if leaving.own_way is RemovalKind.DELETE and key.kind is Kind.TAG and not rules.deletes_tags:
            raise inconsistent(f"{key} cannot be deleted: service.endpoints.deleteTag is not configured")


def _compare_what_is_shown(plan: Plan, again: Plan) -> None:
    for claim, true in zip(plan.changes, again.changes, strict=False):
        if claim != true:
            raise inconsistent(f"it shows a different change of {claim.key} than its calls would make")
    if len(plan.changes) != len(again.changes):
        raise inconsistent(
            f"the number of changes differs: it shows {len(plan.changes)} and would make {len(again.changes)}"
        )
    kept_notes = sum(note.kind == "kept" for note in plan.notes)
    if replace(again.summary, unchanged=plan.summary.unchanged, kept=kept_notes) != plan.summary:
        raise inconsistent("its summary does not match the changes and requests that it would make")
    if _following(plan.notes) != _following(again.notes):
        raise inconsistent("it hides a note about a field that the service does not accept")


def _following(notes: Iterable[Note]) -> list[Note]:
    following = (note for note in notes if note.kind in FOLLOWING)
    return sorted((replace(note, source=None) for note in following), key=repr)


def _compare_what_is_done(plan: Plan, again: Plan, rows: Mapping[Key, Recorded]) -> None:
    if plan.stages != again.stages or plan.wholes != again.wholes:
        raise inconsistent("its calls do not match its changes")
    if plan.sweep != again.sweep:
        raise inconsistent("its sync session does not match its changes")
    if _telling(plan.records, rows) != _telling(again.records, rows):
        raise inconsistent("it would record other rows than its changes do")
    if unproven := [key for key in again.prior if key not in plan.prior]:
        raise inconsistent(f"it does not record the row of {unproven[0]} that it was made from")


def _telling(records: Iterable[Effect], rows: Mapping[Key, Recorded]) -> list[tuple[Key, Effect]]:
    """Return the effects that record more than a new source, sorted. Refuse effects on rows that do not exist."""
    telling = []
    for effect in records:
        row = rows.get(effect.key)
        if row is None:
            raise inconsistent(f"it would write to {effect.key}, which is not recorded")
        if effect.says_something(row):
            telling.append((effect.key, effect))
        elif effect != Effect(key=effect.key, source=effect.source, protect=row.protect):
            raise inconsistent(f"it would record {effect.key} differently than its changes do")
    return sorted(telling, key=lambda pair: (pair[0], repr(pair[1])))


# --- the gate


def _compare_gates(plan: Plan, delta: Diff, now: Present) -> None:
    """Refuse a plan whose gate does not match its removals.

    Totals and limits may differ today, so that other shares need an approval: the gate of today asks for it. The layout
    of templates is unknown here, so that the losses of one template of a source are judged by the plan alone.
    """
    plan = replace(plan, gate=without_rules(plan.gate))  # the project's rules are judged again elsewhere
    claim, losses = plan.gate, losses_in(delta.differences)
    takes = bool(losses) or plan.sweep is not None
    today = _gate_today(plan, delta, now, now.records()) if takes else Gate()
    if bool(claim.reasons) != claim.tripped or (claim.approve is not None) != claim.tripped:
        raise inconsistent("its gate asks for a different approval than its removals need")
    if takes and not _asks_for_these(plan, losses, delta, now, today):
        raise inconsistent("its gate asks for a different approval than its removals need")
    counts = Counter(SAYS[loss.of] for loss in losses)
    claims = [_lasting_part(reason) for reason in claim.reasons]
    true = [_lasting_part(reason) for reason in today.reasons]
    possible = [*true, f"{BY_LINES_OF}{sum(loss.key in today.lines for loss in losses)}"]
    always = (
        reason for reason in true if not reason.startswith(BY_LINES_OF) and reason.partition(" ")[2] not in SHARES
    )
    if not all(reason in claims for reason in always) or not all(_is_true(r, counts, possible) for r in claims):
        raise inconsistent("the reasons of its gate do not match its removals")


def _gate_today(plan: Plan, delta: Diff, now: Present, records: KnownApprovals) -> Gate:
    basis, changes, judged = plan.basis, delta.differences, now.judged()
    return gate(
        changes,
        judged.rows,
        now.limits,
        None,
        sweep=plan.sweep,
        owner=basis.owner,
        lines=plan.gate.lines,
        records=StateRecords(judged.totals, approvals=lambda: records),
    )


def _asks_for_these(plan: Plan, losses: Iterable[Loss], delta: Diff, now: Present, today: Gate) -> bool:
    """Return whether the approvals that the plan shows belong to its removals.

    They may be those of today, or those from before some were spent or another run began with a part of the plan.
    """
    claim, records, owner = plan.gate, now.records(), plan.basis.owner
    everything = [*losses, *([SWEEP] if plan.sweep is not None else [])]
    if claim.approve not in (None, claim.whole):
        return False
    if not _is_among(claim.whole, approvals_of_plan(everything, owner), records):
        return False
    is_of = partial(_has_units_of, claim, owner=owner, records=records)
    return is_of(today) or bool(
        records.under_way and is_of(_gate_today(plan, delta, now, KnownApprovals(records.spent)))
    )


def _has_units_of(claim: Gate, today: Gate, owner: Owner, records: KnownApprovals) -> bool:
    """Return whether a gate shows all units of today, except for lines under `removed:`, which depend on totals."""
    units, shown = {unit.id: unit for unit in today.units}, [unit.id for unit in claim.units]
    true = [name for name in units if name in shown or name.kind != REMOVED]
    if [name for name in shown if name in units] != true or len({*shown}) < len(shown):
        return False
    return all(_is_unit(unit, units.get(unit.id), owner, records) for unit in claim.units)


def _is_unit(claim: Unit, true: Unit | None, owner: Owner, records: KnownApprovals) -> bool:
    """Return whether a unit is shown correctly. The losses of a source without own resources are unknown here."""
    if true is None:
        return claim.kind in (SOURCE, REMOVED)
    texts = approvals_of_unit(true.id, true.losses, owner)
    return claim.count == true.count and claim.lost == true.lost and _is_among(claim.approve, texts, records)


def _is_among(text: str, texts: Iterator[str], records: KnownApprovals) -> bool:
    """Return whether `text` is one of the approvals up to the first that was not spent."""
    for each in texts:
        if each == text or each not in records.spent:
            return each == text
    return False


def _lasting_part(reason: str) -> str:
    """Return a reason without its total, its limit and earlier losses, which may differ on another day, and `when`."""
    reason = reason.partition(LEFT_OUT)[0]
    if lines := BY_LINES.fullmatch(reason):
        return lines[1]
    count = COUNTED.fullmatch(reason)
    if count is None or count[2] not in OF_MANY:
        return reason
    now, before = (int(number.replace(",", "") or 0) for number in (count[1], count[3] or ""))
    return f"{now - before} {OF_MANY[count[2]]}"


def _is_true(reason: str, counts: Mapping[str, int], true: Iterable[str]) -> bool:
    count, _, of = reason.partition(" ")
    return reason in true or SHRUNK.fullmatch(reason) is not None or (of in counts and str(counts[of]) == count)
