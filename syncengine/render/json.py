"""Plans, reports and diagnostics → documents of the published formats, and their text as JSON; pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, structs, to_builtins

from syncengine.apply.report import Circumstances, Report, Result
from syncengine.document.comparison import ValueChange
from syncengine.errors import Diagnostic, Row
from syncengine.plan.aim import Note
from syncengine.plan.diff import Change
from syncengine.plan.gate import Gate
from syncengine.plan.model import Base, Basis, ChangeOrigin, Plan, Since, Tree, Undo
from syncengine.plan.saved import Shown
from syncengine.plan.sides import whose
from syncengine.plan.units import RULE, Approval, Unit
from syncengine.render import formats
from syncengine.render.formats import ChangeItem, FieldChangeItem, KeywordChange, MetadataChange
from syncengine.render.style import PLAIN, Look
from syncengine.render.words import when
from syncengine.resource import Body, Kind, Source, Value

Document = dict[str, Any]


def dumped(document: object) -> str:
    """Return indented JSON. Half a surrogate pair, which UTF-8 cannot encode, is escaped by a slower writer."""
    try:
        return (msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n").decode()
    except UnicodeEncodeError:
        return json.dumps(to_builtins(document), indent=2) + "\n"


def plan_json(plan: Plan, look: Look = PLAIN) -> str:
    return dumped(plan_document(plan))


def report_json(report: Report, look: Look = PLAIN) -> str:
    return dumped(report_document(report))


def diagnostics_json(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    return dumped(diagnostics_document(diagnostics))


# --- plan -------------------------------------------------------------------------------------------------------------


def plan_document(plan: Plan) -> formats.PlanFormat:
    return formats.PlanFormat(
        id=plan.id,
        created=plan.basis.created,
        service=formats.PlannedService(plan.basis.base_url, plan.basis.team),
        summary=formats.PlanSummary(**structs.asdict(plan.summary), **_by_origin(plan)),
        gate=_gate(plan.gate, plan.base),
        sweep=formats.SweepItem(plan.sweep.known, True) if plan.sweep else None,
        notes=[_note(note) for note in plan.notes],
        commit=plan.basis.commit,
        changes=list(map(change_items(plan), plan.changes)),
        basis=_basis(plan.basis),
        since=_since(plan.since) if plan.since is not UNSET else None,
        diagnostics=diagnostic_items(plan.diagnostics),
        base=formats.BaseItem(plan.base.ref, plan.base.commit) if plan.base else None,
        undo=_undo(plan.undo) if plan.undo else None,
    )


def _basis(basis: Basis) -> formats.PlanBasis | None:
    """Return the basis of a plan; `None` when an earlier version made the plan."""
    if basis.environment is UNSET:
        return None
    tree = basis.tree if isinstance(basis.tree, Tree) else None
    uncommitted = tuple(tree.uncommitted) if tree and tree.uncommitted is not None else None
    return formats.PlanBasis(basis.environment or None, basis.lineage or None, tree.id if tree else None, uncommitted)


def _by_origin(plan: Plan) -> dict[str, int]:
    """Return the counts of own and waiting changes; empty for a plan without `--base`."""
    if plan.base is None:
        return {}
    waiting = sum(plan.base.origin(change.key) is ChangeOrigin.WAITING for change in plan.changes)
    return {"pull_request": len(plan.changes) - waiting, "waiting": waiting}


def _gate(gate: Gate, base: Base | None) -> formats.GateState:
    units, trips = [_unit(unit, base) for unit in gate.shown], whose(gate, base).origins
    return formats.GateState(gate.is_closed, gate.reasons, gate.approve, units, _approval(gate.approved), trips)


def _unit(unit: Unit, base: Base | None) -> formats.GateUnit:
    approved, lost = _approval(unit.approved), dict(unit.lost)
    fields = (unit.name, unit.count, unit.approve, approved, unit.kind, lost, unit.missing, unit.total)
    origin = ChangeOrigin.PULL_REQUEST if unit.is_own else ChangeOrigin.WAITING
    by = unit.by or () if unit.kind == RULE else UNSET
    return formats.GateUnit(*fields, by, origin if base is not None else UNSET)


def _approval(approval: Approval | None) -> formats.GateApproval | None:
    return formats.GateApproval(approval.by, approval.line) if approval else None


def _since(since: Since) -> formats.SinceItem:
    return formats.SinceItem(
        plan=", ".join(since.plans),
        new=since.new,
        gone=since.gone,
        different=[
            formats.DifferentChange(address, list(map(_value_change, changes)))
            for address, changes in since.different.items()
        ],
        same=since.same,
        more=[formats.ExcessItem(each.address, each.message) for each in since.excess],
    )


def _value_change(change: ValueChange) -> formats.ValueChangeItem:
    return formats.ValueChangeItem(change.path, to_builtins(change.before), to_builtins(change.after))


def _undo(undo: Undo) -> formats.UndoItem:
    selection = (undo.targets, undo.excludes)
    return formats.UndoItem(
        undo.run, undo.command, undo.started, undo.commit, undo.revert, undo.forced, undo.left_out, *selection
    )


def _note(note: Note) -> formats.NoteItem:
    return formats.NoteItem(str(note.key), note.kind, note.message, _place(note.source))


def change_items(plan: Plan) -> Callable[[Change], formats.ChangeItem]:
    """Return the function that turns a change of `plan` into its part of the document."""
    show = _change if plan.base is None else partial(_change_of_two_sides, plan.base)
    return partial(_change_refused, plan, show) if plan.refused else show


def _change_refused(plan: Plan, show: Callable[[Change], formats.ChangeItem], change: Change) -> formats.ChangeItem:
    refusal = plan.refusal(change.key)
    if refusal is None:
        return show(change)
    item = formats.RefusedItem(refusal.times, when(refusal.since) or "", refusal.message)
    return structs.replace(show(change), refused=item)


def _change_of_two_sides(base: Base, change: Change) -> formats.ChangeItem:
    waits = base.waiting.get(str(change.key))
    return structs.replace(_change(change), origin=base.origin(change.key), waits=waits)


def _change(change: Change) -> formats.ChangeItem:
    return ChangeItem(
        str(change.key),
        change.key.kind,
        change.action.word,
        _place(change.source),
        [FieldChangeItem(field.name, field.before, field.after, field.effect) for field in change.fields],
        KeywordChange(change.keywords_added, change.keywords_deleted),
        MetadataChange(change.metadata_set, change.metadata_deleted, change.metadata_before),
        change.reason,
        str(change.cascade) if change.cascade else None,
        change.previously or None,
        change.opens or (),
        change.merges or (),
        _removed(change.key.kind, change.removed) if change.removed else None,
        change.cause or None,
    )


def _removed(kind: Kind, body: Body) -> Mapping[str, Value | Mapping[str, str]]:
    """Return the recorded content of a removed resource, named as in a manifest."""
    return {**body.fields, "keywords": body.keywords, "metadata": body.metadata} if kind is Kind.TAG else body.fields


SHOWN = Shown(plan_document, change_items)
"""The functions that make the readable part of a saved plan."""


def _place(source: Source | None) -> formats.Place | None:
    return formats.Place(source.file, source.line, _row(source.data)) if source else None


def _row(row: Row | None) -> formats.DataRow | None:
    return formats.DataRow(*row) if row else None


# --- report and diagnostics -------------------------------------------------------------------------------------------


def report_document(report: Report) -> formats.ReportFormat:
    return formats.ReportFormat(
        plan=report.plan,
        status=report.status,
        summary=formats.ReportSummary(**asdict(report.totals)),
        session=formats.SessionItem(**asdict(report.session)),
        results=[_result(result) for result in report.results],
        diagnostics=diagnostic_items(report.diagnostics),
        **_circumstances(report.circumstances),
    )


def _circumstances(run: Circumstances) -> Document:
    return {
        **{field.name: getattr(run, field.name) for field in fields(run)},
        "started": when(run.started),
        "ended": when(run.ended),
        "approvals": tuple(formats.ApprovalItem(each.by, each.line, each.text) for each in run.approvals),
    }


def _result(result: Result) -> formats.ResultItem:
    error = formats.ErrorItem(**asdict(result.error)) if result.error else None
    return formats.ResultItem(str(result.key), result.action.word, result.outcome, _place(result.source), error)


def diagnostics_document(diagnostics: Sequence[Diagnostic]) -> Document:
    document: Document = to_builtins(formats.Diagnostics(diagnostic_items(diagnostics)))
    return document


def diagnostic_items(diagnostics: Sequence[Diagnostic]) -> list[formats.DiagnosticItem]:
    return [
        formats.DiagnosticItem(**{**structs.asdict(each), "data": _row(each.data), "rule": each.rule or None})
        for each in diagnostics
    ]
