"""JSON documents → plans, reports and diagnostics for rendering and comparing, the inverse of `render.json`. Pure.

A document may come from anywhere: raise `ValueError` or `KeyError` for a word without a meaning. Nothing in it is
executed, and a plan that is made of one has no calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, convert, structs

from syncengine.apply.report import CallError, Circumstances, Outcome, Report, Result, RunStatus, Session, Totals
from syncengine.document.comparison import ValueChange
from syncengine.errors import Diagnostic, Row, Severity, SyncengineError
from syncengine.plan import saved
from syncengine.plan.aim import Note
from syncengine.plan.calls import Sweep
from syncengine.plan.diff import Action, Change, FieldChange, FieldEffect
from syncengine.plan.gate import Approval, Gate, Unit
from syncengine.plan.judgement import POLICY_DENIED
from syncengine.plan.model import Base, Basis, ChangeOrigin, Excess, Plan, Since, Summary, Tree, Undo
from syncengine.plan.review import ReviewedPlan
from syncengine.project.files import refuse_missing
from syncengine.render import formats
from syncengine.resource import Body, Key, Source
from syncengine.state.codec import frozen
from syncengine.state.records import Refusal

CODE = "plan-file"
MAX_BYTES = 512 * 1024 * 1024
"""The size of a plan of several million changes; reading needs a multiple of it in memory."""


def document_in(content: bytes, kind: Any) -> Any:
    """Return the document of a `kind`, a model or a union of them, in the bytes of a file.

    Raise `msgspec.ValidationError` for another document, and `ValueError` for what is not JSON.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError:
        raise
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if b"\\ud" not in content.lower():
            raise ValueError(str(error)) from None
        # It may have half of a surrogate pair, which only the slower reader accepts.
        return convert(json.loads(content), type=kind)


# --- plans ------------------------------------------------------------------------------------------------------------


def plan_of(document: formats.PlanFormat) -> Plan:
    """Return the plan in a document, for rendering."""
    base, basis, service = document.base, document.basis, document.service
    refusals = {
        each.address: Refusal(
            key=Key.parse(each.address),
            times=each.refused.times,
            since=(since := datetime.fromisoformat(each.refused.since).timestamp()),
            at=since,
            message=each.refused.message,
            content="",
        )
        for each in document.changes
        if each.refused
    }
    # An unknown word in `origin` is an error.
    origins = {each.address: ChangeOrigin(each.origin) for each in document.changes if each.origin is not None}
    waiting = {c.address: c.waits or "" for c in document.changes if origins.get(c.address) is ChangeOrigin.WAITING}
    plain = Basis(document.id, document.created, service.base_url, service.team, commit=document.commit)
    if basis is not None:
        uncommitted = None if basis.uncommitted is None else dict.fromkeys(basis.uncommitted, "")
        tree = Tree(basis.tree, uncommitted) if basis.tree is not None else None
        plain = structs.replace(plain, lineage=basis.lineage or "", environment=basis.environment or "", tree=tree)
    return Plan(
        plain,
        convert(document.summary, Summary, from_attributes=True),
        _gate(document.gate),
        Sweep(document.sweep.known, (), saved.NO_CALL) if document.sweep else None,
        tuple(map(change_of, document.changes)),
        tuple(Note(Key.parse(n.address), n.kind, n.message, _source(n.source)) for n in document.notes),
        (),
        diagnostics=diagnostics_of(document.diagnostics),
        compared=Base(base.ref, base.commit, waiting) if base else UNSET,
        since=_since(document.since) if document.since else UNSET,
        refused=refusals or UNSET,
        undo=convert(document.undo, Undo, from_attributes=True) if document.undo else UNSET,
    )


def change_of(item: formats.ChangeItem) -> Change:
    """Return the change of a document."""
    removed: Body | msgspec.UnsetType = UNSET
    if item.before is not None:
        fields = {name: frozen(value) for name, value in item.before.items() if name != "metadata"}
        # A tag's content has metadata, and keywords that are no field; a category's keywords are one.
        keywords = fields.pop("keywords", ()) if "metadata" in item.before else ()
        removed = Body(fields, keywords if isinstance(keywords, tuple) else (), dict(item.before.get("metadata", {})))
    return Change(
        key=Key.parse(item.address),
        action=Action[item.action.upper()],
        source=_source(item.source),
        fields=tuple(map(_field, item.fields)),
        keywords_added=item.keywords.add,
        keywords_deleted=item.keywords.delete,
        metadata_set=item.metadata.set,
        metadata_deleted=item.metadata.delete,
        metadata_before=item.metadata.before,
        reason=item.reason,
        cascade=Key.parse(item.cascade) if item.cascade else None,
        previously=item.previously,
        opens=item.opens or UNSET,
        merges=item.merges or UNSET,
        removed=removed,
        cause=item.cause or UNSET,
    )


def _field(item: formats.FieldChangeItem) -> FieldChange:
    before, after = frozen(item.before), frozen(item.after)
    for value in (before, after):
        texts = value if isinstance(value, tuple) else ()
        if not (isinstance(value, str | bool | int | tuple | None) and all(isinstance(text, str) for text in texts)):
            raise ValueError(f"the field {item.name} has a value of an unsupported type")
    return FieldChange(item.name, before, after, FieldEffect(item.effect))


def _source(place: formats.Place | None) -> Source | None:
    return Source(place.file, place.line, _row(place.data)) if place else None


def _row(row: formats.DataRow | None) -> Row | None:
    return Row(row.file, row.row) if row else None


def _gate(gate: formats.GateState) -> Gate:
    """Return the gate. In a document, `tripped` is false for an approved gate: it means that an approval is missing."""
    units = tuple(
        Unit(
            unit.kind,
            unit.unit,
            unit.count,
            unit.approve,
            tuple(unit.lost.items()),
            missing=unit.missing,
            total=unit.total,
            approved=_approval(unit.approve, unit.approved),
            is_open=unit.approved is None,
            by=unit.by,
            is_own=unit.origin != ChangeOrigin.WAITING,
        )
        for unit in gate.units
    )
    return Gate(
        gate.tripped or gate.approved is not None, gate.reasons, gate.approve, _approval("", gate.approved), units
    )


def _approval(text: str, approval: formats.GateApproval | None) -> Approval | None:
    return Approval(text, approval.by, approval.line) if approval else None


def _since(item: formats.SinceItem) -> Since:
    """Return the comparison with a reviewed plan. Each excess is only a sentence in the document."""
    different = {
        each.address: tuple(ValueChange(c.path, c.before, c.after) for c in each.changes) for each in item.different
    }
    return Since(
        (item.plan,), item.new, item.gone, different, item.same, tuple(Excess(each.message) for each in item.more)
    )


# --- reports and diagnostics ------------------------------------------------------------------------------------------


def report_of(document: formats.ReportFormat) -> Report:
    """Return the report in a document. Raise `ValueError` for an unknown word."""
    started, ended = (t and datetime.fromisoformat(t).timestamp() for t in (document.started, document.ended))
    results = (
        Result(
            Key.parse(each.address),
            Action[each.action.upper()],
            Outcome(each.outcome),
            _source(each.source),
            convert(each.error, CallError, from_attributes=True) if each.error else None,
        )
        for each in document.results
    )
    same = {name: getattr(document, name) for name in ("team", "environment", "commit", "tree", "actor", "job")}
    approvals = tuple(Approval(each.approve, each.by, each.line) for each in document.approvals)
    return Report(
        document.plan,
        RunStatus(document.status),
        convert(document.summary, Totals, from_attributes=True),
        convert(document.session, Session, from_attributes=True),
        tuple(results),
        diagnostics_of(document.diagnostics),
        Circumstances(started=started or None, ended=ended or None, approvals=approvals, **same),
    )


def diagnostics_of(items: Iterable[formats.DiagnosticItem]) -> tuple[Diagnostic, ...]:
    return tuple(
        Diagnostic(
            **{name: getattr(item, name) for name in ("code", "message", "file", "line", "column", "address")},
            severity=Severity(item.severity),
            data=_row(item.data),
            rule=UNSET if item.rule is None else item.rule,
        )
        for item in items
    )


# --- reviewed plans (docs/reviews.md) ---------------------------------------------------------------------------------


def read_reviewed(path: Path, file: str) -> ReviewedPlan:
    """Read the plan at `path`, or raise `SyncengineError` (`plan-file`); `file` is its name in messages."""
    refuse_missing(path, file)
    try:
        if not path.is_file():
            raise _unfit(f"{file} is not a file")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unfit(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise _unfit(f"{file} is larger than {MAX_BYTES // 1024 // 1024} MB, which is too large for a plan")
    if saved.is_altered(data):
        raise _unfit(f"{file} was changed after it was saved: plan again")
    return reviewed_in(data, file)


def reviewed_in(data: bytes, file: str) -> ReviewedPlan:
    """Read the plan from the bytes of a document, or raise `SyncengineError` (`plan-file`).

    `plan --format json` prints and `plan --out` saves the same document.
    """
    damaged = f"{file} is not a plan or is damaged: use a file that `plan --format json` or `plan --out` wrote"
    try:
        document = document_in(data, formats.PlanFormat | formats.Diagnostics)
    except ValueError as error:
        raise _unfit(damaged) from error
    if isinstance(document, formats.Diagnostics):
        raise _unfit(f"{file} contains no plan, because planning failed: fix the errors and plan again")
    if document.basis is None:
        raise _unfit(f"{file} is from an earlier version of syncengine and does not name its state: plan again")
    try:
        changes: dict[Key, Change] = {}
        for item in document.changes:
            change = structs.replace(change_of(item), source=None)  # a place is no part of what was reviewed
            if changes.setdefault(change.key, change) is not change:
                raise ValueError(f"{change.key} appears twice")
        return ReviewedPlan(
            file=file,
            plan=document.id,
            base_url=document.service.base_url,
            team=document.service.team,
            lineage=document.basis.lineage,
            environment=document.basis.environment,
            changes=changes,
            sweep=frozenset(document.sweep.known) if document.sweep else None,
            is_denied=any(item.code == POLICY_DENIED for item in document.diagnostics),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise _unfit(damaged) from error


def _unfit(message: str) -> SyncengineError:
    return SyncengineError(message, code=CODE)
