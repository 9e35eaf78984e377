"""Turn rules that ask for an approval into units of the gate, beside the units of removals. Pure (docs/rules.md).

A rule's unit has the contents that its changes would make, so that an approval is for these contents and not for later
ones. The unit needs its own approval; the approval of all removals does not cover it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.plan.approvals import Approval, KnownApprovals, Owner, approvals_of_unit, next_of
from syncengine.plan.diff import Difference
from syncengine.plan.gate import Gate, Unit
from syncengine.plan.losses import Loss
from syncengine.plan.units import RULE, UnitName
from syncengine.rules.model import PolicyRule, RuleMatch
from syncengine.rules.schema import RuleKind
from syncengine.state.losses import RULED, ApprovalRecord, content_digest

NAMED = 5
"""The number of changes that a unit's reason names."""


def rule_units(gate: Gate) -> tuple[Unit, ...]:
    """Return the units of rules that need an approval or have one."""
    return tuple(unit for unit in (*gate.units, *gate.begun) if unit.kind == RULE)


def with_rules(gate: Gate, units: Sequence[Unit], begun: Sequence[Unit] = ()) -> Gate:
    """Return the gate with the given units of rules added."""
    if not (units or begun):
        return gate
    more = replace(gate, units=(*gate.units, *units), begun=(*gate.begun, *begun)).with_approvals(())
    others = any(unit.is_open and unit.kind != RULE for unit in more.units)
    return replace(more, tripped=more.is_closed, approve=gate.whole if others else None)


def units_of_rules(
    asks: Iterable[RuleMatch], differences: Sequence[Difference], records: KnownApprovals, owner: Owner
) -> tuple[list[Unit], list[Unit]]:
    """Return the units of rules that ask for an approval, and those that continue under an earlier run's approval."""
    units: list[Unit] = []
    begun: list[Unit] = []
    for match in asks:
        losses = list(_losses(match, differences))
        covered: defaultdict[str, list[Loss]] = defaultdict(list)
        for loss in losses:
            if record := records.covering(loss):
                covered[record.text].append(loss)
        rest = [loss for loss in losses if records.covering(loss) is None]
        if rest:
            units.append(_unit(match, rest, records, owner))
        begun += (_begun(match.rule, text, some, records) for text, some in covered.items())
    return units, begun


def _losses(match: RuleMatch, differences: Sequence[Difference]) -> Iterator[Loss]:
    """Yield the changes that an approval is for, as losses, with the tags that are deleted along with a category."""
    rule = match.rule
    if rule.kind is RuleKind.PLAN:
        yield from (_loss(rule, difference) for difference in differences)
        return
    own = [differences[position] for position in match.positions]
    yield from (_loss(rule, difference) for difference in own)
    if rule.kind is RuleKind.CATEGORY:
        categories = {difference.change.key for difference in own}
        yield from (_loss(rule, d) for d in differences if d.change.cascade in categories)


def _loss(rule: PolicyRule, difference: Difference) -> Loss:
    resource, change = difference.resource, difference.change
    content = content_digest(resource.body) if resource is not None else change.action.word
    return Loss(RULED, change.key, f"{rule.name} {content}")


def _unit(match: RuleMatch, losses: Sequence[Loss], records: KnownApprovals, owner: Owner) -> Unit:
    name = UnitName(RULE, f"{RULE}/{match.rule.name}")
    return Unit(
        kind=name.kind,
        name=name.name,
        count=len(losses),
        approve=next_of(approvals_of_unit(name, losses, owner), records),
        lost=((RULED, len(losses)),),
        asks=True,
        reasons=(_reason(match, losses),),
        by=match.rule.by or UNSET,
        losses=tuple(losses),
    )


def _reason(match: RuleMatch, losses: Sequence[Loss]) -> str:
    rule = match.rule
    whose = f"{', '.join(rule.by)} to approve" if rule.by else "approval of"
    messages = [message for message in match.messages if message] or [str(loss.key) for loss in losses]
    more = f" … and {len(losses) - NAMED:,} more" if len(losses) > NAMED < len(messages) else ""
    changes = "1 change" if len(losses) == 1 else f"{len(losses):,} changes"
    about = "; ".join(dict.fromkeys(messages[:NAMED]))
    return f"rule {rule.name} ({rule.place}) requires {whose} {changes}: {about}{more}"


def _begun(rule: PolicyRule, text: str, losses: Sequence[Loss], records: KnownApprovals) -> Unit:
    record = records.covering(losses[0])
    by = Approval(text, f"run {record.run}" if record else "")
    return Unit(
        RULE,
        f"{RULE}/{rule.name}",
        len(losses),
        text,
        ((RULED, len(losses)),),
        by=rule.by or UNSET,
        approved=by,
        losses=tuple(losses),
    )


def going_on(records: Iterable[ApprovalRecord], plan: str) -> Iterator[Unit]:
    """Yield the units of rules that have not settled since a run began to apply a saved plan."""
    for record in records:
        losses = [loss for loss in record.remaining if loss.of == RULED]
        if record.plan == plan and record.used is None and losses:
            name = f"{RULE}/{losses[0].what.rpartition(' ')[0]}"
            by = Approval(record.text, f"run {record.run}")
            lost = ((RULED, len(losses)),)
            yield Unit(RULE, name, len(losses), record.text, lost, approved=by, losses=tuple(losses))


def asking_rules(gate: Gate) -> set[str]:
    """Return the names of the rules that ask for an approval, whether it was given or not."""
    return {unit.name.removeprefix(f"{RULE}/") for unit in rule_units(gate)}
