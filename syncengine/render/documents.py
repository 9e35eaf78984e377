"""Plans, reports and diagnostics → documents of the published formats, from which all views are made; pure.

Nothing is made of a document again but diagnostics: what has just been made and what was read are shown alike.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

import msgspec
from msgspec import UNSET, convert, structs, to_builtins

from syncengine.apply.report import Report
from syncengine.errors import Diagnostic, Row
from syncengine.plan import saved
from syncengine.plan.diff import Action, Change
from syncengine.plan.gate import RULE, Approval, Gate
from syncengine.plan.model import ChangeOrigin, Plan
from syncengine.render import formats
from syncengine.render.style import PLAIN, Look
from syncengine.render.words import when
from syncengine.resource import Kind, Source


def dumped(document: object) -> str:
    """Return indented JSON. Half a surrogate pair, which UTF-8 cannot encode, is escaped by a slower writer."""
    try:
        text = str(msgspec.json.format(msgspec.json.encode(document), indent=2), "utf-8")
        text += "\n"  # in place, since there may be very many changes
        return text
    except UnicodeEncodeError:
        return json.dumps(to_builtins(document), indent=2) + "\n"


def plan_json(plan: formats.PlanFormat, look: Look = PLAIN) -> str:
    return dumped(plan)


def report_json(report: formats.ReportFormat, look: Look = PLAIN) -> str:
    return dumped(report)


def diagnostics_json(diagnostics: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    return dumped(formats.Diagnostics(diagnostic_items(diagnostics)))


# --- plans


def plan_document(plan: Plan) -> formats.PlanFormat:
    basis, base, since = plan.basis, plan.base, plan.since
    tree = basis.tree
    uncommitted = tuple(tree.uncommitted) if tree and tree.uncommitted is not None else None
    by_origin: dict[str, int] = {}
    if base is not None:
        waiting = sum(base.origin(change.key) is ChangeOrigin.WAITING for change in plan.changes)
        by_origin = {"pull_request": len(plan.changes) - waiting, "waiting": waiting}
    sweep = None
    if plan.sweep:
        side = ChangeOrigin.WAITING if base and base.sweeps else ChangeOrigin.PULL_REQUEST
        sweep = formats.SweepItem(plan.sweep.known, True, side if base else None)
    named = (basis.environment or None, basis.lineage or None)
    made_from = formats.PlanBasis(*named, tree.id if tree else None, uncommitted)
    comparison = None
    if since is not UNSET:
        different = [
            formats.DifferentChange(
                address, [formats.ValueChangeItem(c.path, to_builtins(c.before), to_builtins(c.after)) for c in changes]
            )
            for address, changes in since.different.items()
        ]
        more = [formats.ExcessItem(each.address, each.message) for each in since.excess]
        comparison = formats.SinceItem(", ".join(since.plans), since.new, since.gone, different, since.same, more)
    return formats.PlanFormat(
        id=plan.id,
        created=basis.created,
        service=formats.PlannedService(basis.base_url, basis.team),
        summary=formats.PlanSummary(**structs.asdict(plan.summary), **by_origin),
        gate=gate_state(plan.gate, has_base=base is not None),
        sweep=sweep,
        notes=[formats.NoteItem(str(n.key), n.kind, n.message, _place(n.source)) for n in plan.notes],
        commit=basis.commit,
        changes=list(map(change_items(plan), plan.changes)),
        diagnostics=diagnostic_items(plan.diagnostics),
        basis=made_from,
        since=comparison,
        base=formats.BaseItem(base.ref, base.commit) if base else None,
        undo=convert(plan.undo, formats.UndoItem, from_attributes=True) if plan.undo else None,
        redoes=tuple(map(str, plan.redoes or ())),
    )


def gate_state(gate: Gate, *, has_base: bool) -> formats.GateState:
    # A unit is the pull request's if one of its losses is.
    sides = {unit.is_own for unit in gate.units if unit.is_open} if has_base else set()
    tripped_by = tuple(side for side, is_own in zip(ChangeOrigin, (True, False), strict=True) if is_own in sides)
    units = []
    for unit in gate.shown:
        by = unit.by or () if unit.kind == RULE else UNSET
        origin = ChangeOrigin.PULL_REQUEST if unit.is_own else ChangeOrigin.WAITING
        found = (_approval_item(unit.approved), unit.kind, dict(unit.lost), unit.missing, unit.total, by)
        units.append(formats.GateUnit(unit.name, unit.count, unit.approve, *found, origin if has_base else UNSET))
    approved = _approval_item(gate.approved)
    return formats.GateState(gate.is_closed, gate.reasons, gate.approve, units, approved, tripped_by)


def part_of(plan: formats.PlanFormat, keeps: Callable[[formats.ChangeItem], bool]) -> formats.PlanFormat:
    """Return a plan with only the changes that `keeps` accepts, counted again; the rest is that of the whole plan."""
    changes = [change for change in plan.changes if keeps(change)]
    actions = Counter(change.action for change in changes)
    summary = structs.replace(
        plan.summary,
        **{action.word: actions[action.word] for action in Action},
        keyword_adds=sum(len(each.keywords.add) for each in changes if each.action != Action.CREATE.word),
        keyword_deletes=sum(len(each.keywords.delete) for each in changes),
        metadata_deletes=sum(len(each.metadata.delete) for each in changes),
        cascaded_tags=sum(each.cascade is not None for each in changes),
    )
    return structs.replace(plan, changes=changes, summary=summary)


def change_items(plan: Plan) -> Callable[[Change], formats.ChangeItem]:
    """Return the function that turns a change of `plan` into its part of the document."""
    base = plan.base

    def item(change: Change) -> formats.ChangeItem:
        found = _change_item(change)
        if base is not None:
            found = structs.replace(found, origin=base.origin(change.key))
            if (wait := base.waiting.get(str(change.key))) is not None:
                found = structs.replace(found, waits=wait.reason, wait_cause=wait.cause)
        if (refusal := plan.refusal(change.key)) is not None:
            refused = formats.RefusedItem(refusal.times, when(refusal.since), refusal.message)
            found = structs.replace(found, refused=refused)
        return found

    return item if base is not None or plan.refused else _change_item  # of most plans, which may have very many


def _change_item(change: Change) -> formats.ChangeItem:
    before: dict[str, Any] | None = None
    if body := change.removed:  # named as in a manifest; the keywords of a category are a field
        before = dict(body.fields)
        if change.key.kind is Kind.TAG:
            before |= {"keywords": body.keywords, "metadata": body.metadata}
    return formats.ChangeItem(
        str(change.key),
        change.key.kind,
        change.action.word,
        _place(change.source),
        [formats.FieldChangeItem(f.name, f.before, f.after, f.effect, f.replaced) for f in change.fields],
        formats.KeywordChange(change.keywords_added, change.keywords_deleted),
        formats.MetadataChange(change.metadata_set, change.metadata_deleted, change.metadata_before),
        change.reason,
        str(change.cascade) if change.cascade else None,
        change.previously or None,
        change.opens or (),
        change.merges or (),
        before,
        change.cause or None,
        again=change.again or None,
    )


SHOWN = saved.Shown(plan_document, change_items)
"""The functions that make the readable part of a saved plan."""


def _place(source: Source | None) -> formats.Place | None:
    return formats.Place(source.file, source.line, _row_item(source.data)) if source else None


def _row_item(row: Row | None) -> formats.DataRow | None:
    return formats.DataRow(*row) if row else None


def row_of(row: formats.DataRow | None) -> Row | None:
    return Row(row.file, row.row) if row else None


def _approval_item(approval: Approval | None) -> formats.GateApproval | None:
    return formats.GateApproval(approval.by, approval.line) if approval else None


# --- reports and diagnostics


def report_document(report: Report) -> formats.ReportFormat:
    run, results = report.circumstances, []
    for each in report.results:
        error = formats.ErrorItem(**asdict(each.error)) if each.error else None
        place = _place(each.source)
        results.append(formats.ResultItem(str(each.key), each.action.word, each.outcome, place, error))
    about = {field.name: getattr(run, field.name) for field in fields(run)}
    about |= {"started": when(run.started), "ended": when(run.ended)}
    about["approvals"] = tuple(formats.ApprovalItem(each.by, each.line, each.text) for each in run.approvals)
    return formats.ReportFormat(
        plan=report.plan,
        status=report.status,
        summary=formats.ReportSummary(**asdict(report.totals)),
        session=formats.SessionItem(**asdict(report.session)),
        results=results,
        diagnostics=diagnostic_items(report.diagnostics),
        **about,
    )


def diagnostic_items(diagnostics: Iterable[Diagnostic]) -> list[formats.DiagnosticItem]:
    return [
        formats.DiagnosticItem(**{**structs.asdict(each), "data": _row_item(each.data), "rule": each.rule or None})
        for each in diagnostics
    ]


def diagnostics_of(items: Iterable[formats.DiagnosticItem]) -> tuple[Diagnostic, ...]:
    return tuple(
        Diagnostic(
            **{
                name: getattr(item, name)
                for name in ("severity", "code", "message", "file", "line", "column", "address")
            },
            data=row_of(item.data),
            rule=UNSET if item.rule is None else item.rule,
        )
        for item in items
    )
