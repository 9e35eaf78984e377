"""Judge a plan's differences by the project's rules: denials, warnings, and units of the gate. Pure (docs/rules.md).

A rule's unit has the contents that its changes would make, so that an approval is for these contents and not for later
ones. The unit needs its own approval; the approval of all removals does not cover it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import asdict, replace

from syncengine.document.text import to_camel
from syncengine.errors import Diagnostic, PolicyDenied, Severity, with_row
from syncengine.plan.aim import PAST, may_be_held
from syncengine.plan.diff import Difference
from syncengine.plan.gate import RULE, Gate, KnownApprovals, Owner, Unit, approval_of, continuing
from syncengine.plan.model import Summary
from syncengine.resource import Key, Kind, Recorded
from syncengine.rules.model import NOTHING, PolicyRule, RuleKind, RuleMatch, RuleSet, Ruling, Subject, shown
from syncengine.state.records import RULED, ApprovalRecord, Loss, content_digest

POLICY_DENIED = PolicyDenied.code
POLICY_WARNING = "policy-warning"


class Judgement(NamedTuple):
    """The findings of rules on a plan: denials as errors, warnings, and matches of rules that ask for an approval."""

    diagnostics: tuple[Diagnostic, ...] = ()
    asks: tuple[RuleMatch, ...] = ()


def judgement_of(
    rule_set: RuleSet, differences: Sequence[Difference], recorded: Mapping[Key, Recorded], summary: Summary
) -> Judgement:
    """Judge a plan by its differences and its summary. Raise `Problems` when a rule fails."""
    if not rule_set.rules:
        return Judgement()
    from syncengine.rules.judge import judge  # the templates' engine costs more than most plans

    counts = {to_camel(name): count for name, count in asdict(summary).items()}
    kinds = {kind.value: kind for kind in RuleKind}
    subjects = (
        Subject(kinds[each.change.key.kind], str(each.change.key), partial(_variables, each, recorded))
        for each in differences
    )
    findings: list[Diagnostic] = []
    asks: list[RuleMatch] = []
    for match in judge(rule_set, subjects, len(differences), counts):
        if match.rule.ruling is Ruling.APPROVE:
            asks.append(match)
        elif match.rule.kind is RuleKind.PLAN:
            findings.append(_finding(match.rule, match.messages[0], None))
        else:
            told = zip(match.positions, match.messages, strict=False)  # of very many changes only the first are told
            findings += (_finding(match.rule, message, differences[position]) for position, message in told)
            if more := len(match.positions) - len(match.messages):
                count = "1 more change" if more == 1 else f"{more:,} more changes"
                findings.append(_finding(match.rule, count, None))
    return Judgement(tuple(findings), tuple(asks))


def denying_rules(diagnostics: Iterable[Diagnostic]) -> set[str]:
    """Return the names of the rules that deny a plan with these diagnostics."""
    return {d.rule for d in diagnostics if d.code == POLICY_DENIED and isinstance(d.rule, str)}


def warning_rules(diagnostics: Iterable[Diagnostic]) -> set[str]:
    """Return the names of the rules that warn about a plan with these diagnostics."""
    return {d.rule for d in diagnostics if d.code == POLICY_WARNING and isinstance(d.rule, str)}


def _variables(difference: Difference, recorded: Mapping[Key, Recorded]) -> Mapping[str, Any]:
    """Return the variables that rules see of a change. `before` of a rename is the resource under its former name."""
    change, row, resource = difference.change, difference.row, difference.resource
    key = change.key
    former = Key(key.kind, change.previously) if change.previously else None
    row = recorded.get(former, row) if former and (row is None or not may_be_held(row)) else row
    before: Mapping[str, Any] = NOTHING[key.kind]
    if row is not None and may_be_held(row):
        before = shown(former if former and key.kind is Kind.CATEGORY else row.key, row.body, row.protect)
    after: Mapping[str, Any] = NOTHING[key.kind]
    if resource is not None:
        after = shown(key, resource.body, resource.protect, (former.name,) if former else ())
    place = change.source
    data = {"file": place.data.file, "row": place.data.row} if place and place.data else None
    source = {"file": place.file, "line": place.line, "data": data} if place else None
    return {"before": before, "after": after, "action": change.action.word, "source": source}


# --- findings

SEVERITIES = {Ruling.DENY: (Severity.ERROR, POLICY_DENIED), Ruling.WARN: (Severity.WARNING, POLICY_WARNING)}


def _finding(rule: PolicyRule, message: str, difference: Difference | None) -> Diagnostic:
    severity, code = SEVERITIES[rule.ruling]
    key = difference.change.key if difference else None
    source = difference.change.source if difference else None
    if not message:
        message = f"{key} would be {PAST[difference.change.action.word]}" if difference else "this plan as a whole"
    data = source.data if source else None
    return Diagnostic(
        severity=severity,
        code=code,
        message=with_row(f"{message} (rule {rule.name}, {rule.place})", data),
        file=source.file if source else rule.file if difference is None else None,
        line=source.line if source else rule.line if difference is None else None,
        address=str(key) if key else None,
        data=data,
        rule=rule.name,
    )


# --- units of the gate

NAMED = 5
"""The number of changes that a unit's reason names."""


def asking_rules(gate: Gate) -> set[str]:
    """Return the names of the rules that ask for an approval, whether it was given or not."""
    return {unit.name.removeprefix(f"{RULE}/") for unit in gate.of_rules}


def units_of_judgement(
    judgement: Judgement, differences: Sequence[Difference], approvals: KnownApprovals, owner: Owner
) -> tuple[list[Unit], list[Unit]]:
    """Return the units of rules that ask for an approval: new ones, and those that an earlier run began.

    A unit has the changes of its rule as losses, with the tags that are deleted along with a category.
    """
    units: list[Unit] = []
    begun: list[Unit] = []
    for match in judgement.asks:
        rule, name, by = match.rule, f"{RULE}/{match.rule.name}", match.rule.by or UNSET
        own = differences if rule.kind is RuleKind.PLAN else [differences[position] for position in match.positions]
        categories = {each.change.key for each in own} if rule.kind is RuleKind.CATEGORY else ()
        along = (each for each in differences if categories and each.change.cascade in categories)
        covered: defaultdict[tuple[str, str], list[Loss]] = defaultdict(list)
        rest: list[Loss] = []
        for each in (*own, *along):
            content = content_digest(each.resource.body) if each.resource is not None else each.change.action.word
            loss = Loss(RULED, each.change.key, f"{rule.name} {content}")
            record = approvals.covering(loss)
            (covered[record.text, record.run] if record else rest).append(loss)
        if rest:
            whose = f"{', '.join(rule.by)} to approve" if rule.by else "approval of"
            messages = [message for message in match.messages if message] or [str(loss.key) for loss in rest]
            about = "; ".join(dict.fromkeys(messages[:NAMED]))
            more = f" … and {len(rest) - NAMED:,} more" if len(rest) > NAMED < len(messages) else ""
            changes = "1 change" if len(rest) == 1 else f"{len(rest):,} changes"
            reason = f"rule {rule.name} ({rule.place}) requires {whose} {changes}: {about}{more}"
            unit = Unit(RULE, name, len(rest), approval_of(rest, owner, approvals), ((RULED, len(rest)),), asks=True)
            units.append(replace(unit, reasons=(reason,), by=by, losses=tuple(rest)))
        begun += (replace(continuing(RULE, name, *run, some), by=by) for run, some in covered.items())
    return units, begun


def going_on(records: Iterable[ApprovalRecord], plan: str) -> Iterator[Unit]:
    """Yield the units of rules that have not settled since a run began to apply a saved plan."""
    for record in records:
        losses = [loss for loss in record.remaining if loss.of == RULED]
        if record.plan == plan and record.used is None and losses:
            name = f"{RULE}/{losses[0].what.rpartition(' ')[0]}"
            yield continuing(RULE, name, record.text, record.run, losses)
