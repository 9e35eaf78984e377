"""Find the part of a plan that repeats changes of an undone run. Pure (docs/repair.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.errors import Diagnostic, Severity, Undone
from syncengine.manifest.desired import Desired
from syncengine.plan.diff import Action
from syncengine.plan.model import Options, Plan
from syncengine.resource import Body, Key, Recorded, Status
from syncengine.state.records import GONE, UndoneChange, UndoneRecord

SHOWN = 5
REMOVALS = frozenset({Action.DELETE, Action.RETIRE, Action.FORGET})
LET_GO = frozenset({Status.RELEASED, Status.RETIRED, Status.DELETED})


def with_undone(
    plan: Plan,
    desired: Desired,
    recorded: Mapping[Key, Recorded],
    undone: Sequence[UndoneChange],
    options: Options,
) -> Plan:
    """Return the plan with the selected undone changes that the manifests still ask for."""
    if not undone:
        return plan
    repeats = []
    for each in undone:
        resource, row = desired.resources.get(each.key), recorded.get(each.key)
        source = resource.source if resource is not None else row.source if row is not None else None
        protect = resource.protect if resource is not None else None
        is_asked = each.is_made_by(resource.body if resource is not None else None, protect=protect)
        if is_asked and options.scope.selects((each.key, source)):
            repeats.append(each)
    diagnostics = () if options.redo else tuple(objections(repeats))
    redoes = tuple(dict.fromkeys(each.key for each in repeats)) or UNSET
    undos = tuple(dict.fromkeys(each.undone_by for each in undone))
    return replace(plan, redoes=redoes, undos=undos, diagnostics=(*plan.diagnostics, *diagnostics))


def redone_by(plan: Plan, rows: Mapping[Key, Recorded], undone: Sequence[UndoneChange]) -> list[UndoneChange]:
    """Return the undone changes that a saved plan would repeat, computed from its calls and not from its own claims."""
    if not undone:
        return []
    # The content and protection that the plan gives each resource, without content for a removal or release.
    contents: dict[Key, tuple[Body | None, bool | None]] = {}
    for effect in plan.records:
        if (row := rows.get(effect.key)) is not None:
            fields = {name: value for name, value in row.body.fields.items() if name not in effect.cleared}
            body = Body({**fields, **effect.fields}, row.body.keywords, row.body.metadata)
            contents[effect.key] = (None if effect.status in LET_GO else body, effect.protect)
    items = (*plan.wholes.values(), *(item for call in plan.calls() for item in call.items))
    wholes = (effect for item in items for effect in item.effects if effect.whole)
    contents |= {each.key: (Body(each.fields, each.keywords, each.metadata), each.protect) for each in wholes}
    formers = (Key(change.key.kind, change.previously) for change in plan.changes if change.previously)
    removals = (change.key for change in plan.changes if change.action in REMOVALS)
    contents |= dict.fromkeys((*formers, *removals), (None, None))
    return [
        each
        for each in undone
        if each.key in contents and each.is_made_by(contents[each.key][0], protect=contents[each.key][1])
    ]


def objections(repeats: Iterable[UndoneChange]) -> Iterator[Diagnostic]:
    """Yield an error for each undone run whose changes the manifests still ask for."""
    by_run: dict[str, list[UndoneChange]] = {}
    for each in repeats:
        by_run.setdefault(each.run, []).append(each)
    for run, changes in by_run.items():
        removals: list[str] = []
        edits: list[str] = []
        for each in changes:
            (removals if f"+{GONE}" in each.marks.split() else edits).append(str(each.key))
        asks = [f"contain its changes to {_few(edits)}"] if edits else []
        asks += [f"leave out {_few(removals)}, which it removed"] if removals else []
        them = "it" if len(removals) == 1 else "them"
        cure = "revert these changes in the manifests" if edits else f"declare {them} again"
        again = "apply them" if edits else f"remove {them}"
        message = (
            f"run {run} was undone, but the manifests still {' and '.join(asks)}:"
            f" {cure} (merge the revert), or repeat with --redo to {again} again"
        )
        yield Diagnostic(severity=Severity.ERROR, code=Undone.code, message=message)


def _few(addresses: Sequence[str]) -> str:
    more = f" and {len(addresses) - SHOWN:,} more" if len(addresses) > SHOWN else ""
    return f"{', '.join(addresses[:SHOWN])}{more}"


def record_of(plan: Plan, undone: Sequence[UndoneChange], redoes: Collection[Key]) -> UndoneRecord:
    """Return the undone changes that a plan lifts: those that it repeats, and those that no manifest asks for any more.

    Changes that were undone after the plan was made stay, as a saved plan does not know whether manifests ask for them.
    """
    undos = set(plan.undos or ()) if plan.is_whole else set()
    return UndoneRecord(lifted=[each for each in undone if each.key in redoes or each.undone_by in undos])
