"""Plans, reports and diagnostics → documents of the published formats, and their text as JSON; pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Any

import msgspec
from msgspec import UNSET, convert, structs, to_builtins

from syncengine.apply.report import Report
from syncengine.errors import Diagnostic, Row
from syncengine.plan.diff import Change
from syncengine.plan.gate import RULE, Approval, Unit
from syncengine.plan.model import Base, ChangeOrigin, Plan, Since, Tree, whose
from syncengine.plan.saved import Shown
from syncengine.render import formats
from syncengine.render.formats import ChangeItem, FieldChangeItem, KeywordChange, MetadataChange
from syncengine.render.style import PLAIN, Look
from syncengine.render.words import when
from syncengine.resource import Kind, Source

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
    basis, base, since, gate = plan.basis, plan.base, plan.since, plan.gate
    tree = basis.tree if isinstance(basis.tree, Tree) else None
    uncommitted = tuple(tree.uncommitted) if tree and tree.uncommitted is not None else None
    named = (basis.environment or None, basis.lineage or None)
    by_origin: dict[str, int] = {}
    if base is not None:
        waiting = sum(base.origin(change.key) is ChangeOrigin.WAITING for change in plan.changes)
        by_origin = {"pull_request": len(plan.changes) - waiting, "waiting": waiting}
    units = [_unit(unit, base) for unit in gate.shown]
    trips = whose(gate, base).origins
    return formats.PlanFormat(
        id=plan.id,
        created=basis.created,
        service=formats.PlannedService(basis.base_url, basis.team),
        summary=formats.PlanSummary(**structs.asdict(plan.summary), **by_origin),
        gate=formats.GateState(gate.is_closed, gate.reasons, gate.approve, units, _approval(gate.approved), trips),
        sweep=formats.SweepItem(plan.sweep.known, True) if plan.sweep else None,
        notes=[formats.NoteItem(str(n.key), n.kind, n.message, _place(n.source)) for n in plan.notes],
        commit=basis.commit,
        changes=list(map(change_items(plan), plan.changes)),
        # An earlier version of the program made a plan without an environment.
        basis=None if basis.environment is UNSET else formats.PlanBasis(*named, tree.id if tree else None, uncommitted),
        since=_since(since) if since is not UNSET else None,
        diagnostics=diagnostic_items(plan.diagnostics),
        base=formats.BaseItem(base.ref, base.commit) if base else None,
        undo=convert(plan.undo, formats.UndoItem, from_attributes=True) if plan.undo else None,
    )


def _unit(unit: Unit, base: Base | None) -> formats.GateUnit:
    approved, lost = _approval(unit.approved), dict(unit.lost)
    fields = (unit.name, unit.count, unit.approve, approved, unit.kind, lost, unit.missing, unit.total)
    origin = ChangeOrigin.PULL_REQUEST if unit.is_own else ChangeOrigin.WAITING
    by = unit.by or () if unit.kind == RULE else UNSET
    return formats.GateUnit(*fields, by, origin if base is not None else UNSET)


def _approval(approval: Approval | None) -> formats.GateApproval | None:
    return formats.GateApproval(approval.by, approval.line) if approval else None


def _since(since: Since) -> formats.SinceItem:
    different = [
        formats.DifferentChange(
            address, [formats.ValueChangeItem(c.path, to_builtins(c.before), to_builtins(c.after)) for c in changes]
        )
        for address, changes in since.different.items()
    ]
    more = [formats.ExcessItem(each.address, each.message) for each in since.excess]
    return formats.SinceItem(", ".join(since.plans), since.new, since.gone, different, since.same, more)


def change_items(plan: Plan) -> Callable[[Change], formats.ChangeItem]:
    """Return the function that turns a change of `plan` into its part of the document."""
    base = plan.base

    def item(change: Change) -> formats.ChangeItem:
        found = _change(change)
        if base is not None:
            waits = base.waiting.get(str(change.key))
            found = structs.replace(found, origin=base.origin(change.key), waits=waits)
        if (refusal := plan.refusal(change.key)) is not None:
            refused = formats.RefusedItem(refusal.times, when(refusal.since) or "", refusal.message)
            found = structs.replace(found, refused=refused)
        return found

    return item if base is not None or plan.refused else _change  # of most plans, which may have very many


def _change(change: Change) -> formats.ChangeItem:
    before: dict[str, Any] | None = None
    if body := change.removed:  # named as in a manifest; the keywords of a category are a field
        before = dict(body.fields)
        if change.key.kind is Kind.TAG:
            before |= {"keywords": body.keywords, "metadata": body.metadata}
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
        before,
        change.cause or None,
    )


SHOWN = Shown(plan_document, change_items)
"""The functions that make the readable part of a saved plan."""


def _place(source: Source | None) -> formats.Place | None:
    return formats.Place(source.file, source.line, _row(source.data)) if source else None


def _row(row: Row | None) -> formats.DataRow | None:
    return formats.DataRow(*row) if row else None


# --- report and diagnostics -------------------------------------------------------------------------------------------


def report_document(report: Report) -> formats.ReportFormat:
    run = report.circumstances
    results = [
        formats.ResultItem(
            str(each.key),
            each.action.word,
            each.outcome,
            _place(each.source),
            formats.ErrorItem(**asdict(each.error)) if each.error else None,
        )
        for each in report.results
    ]
    about = {field.name: getattr(run, field.name) for field in fields(run)}
    about |= {"started": when(run.started), "ended": when(run.ended)}
    return formats.ReportFormat(
        plan=report.plan,
        status=report.status,
        summary=formats.ReportSummary(**asdict(report.totals)),
        session=formats.SessionItem(**asdict(report.session)),
        results=results,
        diagnostics=diagnostic_items(report.diagnostics),
        **{**about, "approvals": tuple(formats.ApprovalItem(each.by, each.line, each.text) for each in run.approvals)},
    )


def diagnostics_document(diagnostics: Sequence[Diagnostic]) -> Document:
    document: Document = to_builtins(formats.Diagnostics(diagnostic_items(diagnostics)))
    return document


def diagnostic_items(diagnostics: Sequence[Diagnostic]) -> list[formats.DiagnosticItem]:
    return [
        formats.DiagnosticItem(**{**structs.asdict(each), "data": _row(each.data), "rule": each.rule or None})
        for each in diagnostics
    ]
