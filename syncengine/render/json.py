"""Plans, reports and diagnostics → documents for machines, and their text as JSON; pure.

Keys stand in the order of the published format. Keys that only some changes have (`cascade`, `previously`) come last.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson
from msgspec import structs

from syncengine.apply.report import CallError, Report, Result, Session
from syncengine.document.text import to_camel
from syncengine.errors import Diagnostic
from syncengine.plan.aim import Note
from syncengine.plan.diff import Change, FieldChange
from syncengine.plan.gate import Gate
from syncengine.plan.model import Plan, Summary
from syncengine.plan.sweep import Sweep
from syncengine.render.style import PLAIN, Look
from syncengine.resource import Source

Document = dict[str, Any]

PLAN_FORMAT = "syncengine.plan/v1"
REPORT_FORMAT = "syncengine.report/v1"
DIAGNOSTICS_FORMAT = "syncengine.diagnostics/v1"


def dumped(document: Document | list[Document]) -> str:
    """Indented JSON. What orjson refuses (half a surrogate pair, integers over 64 bits) the slow writer escapes."""
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    except orjson.JSONEncodeError:
        return json.dumps(document, indent=2) + "\n"


def plan_json(plan: Plan, look: Look = PLAIN) -> str:
    return dumped(plan_document(plan))


def report_json(report: Report, look: Look = PLAIN) -> str:
    return dumped(report_document(report))


def diagnostics_json(found: Sequence[Diagnostic], look: Look = PLAIN) -> str:
    return dumped(diagnostics_document(found))


# --- plan -------------------------------------------------------------------------------------------------------------


def plan_document(plan: Plan) -> Document:
    return {
        "format": PLAN_FORMAT,
        "id": plan.id,
        "created": plan.basis.created,
        "service": {"baseUrl": plan.basis.base_url, "team": plan.basis.team},
        "summary": _summary(plan.summary),
        "gate": _gate(plan.gate),
        "sweep": _sweep(plan.sweep),
        "notes": [_note(note) for note in plan.notes],
        "commit": plan.basis.commit,
        "changes": [_change(change) for change in plan.changes],
        "diagnostics": [diagnostic_document(diagnostic) for diagnostic in plan.diagnostics],
    }


def _summary(summary: Summary) -> Document:
    return {to_camel(name): count for name, count in structs.asdict(summary).items()}


def _gate(gate: Gate) -> Document:
    approved = {"by": gate.approved.by, "line": gate.approved.line} if gate.approved else None
    reasons = list(gate.reasons)
    return {"tripped": gate.is_closed, "reasons": reasons, "approve": gate.approve, "approved": approved}


def _sweep(sweep: Sweep | None) -> Document | None:
    return {"known": list(sweep.known), "unknown": True} if sweep else None


def _note(note: Note) -> Document:
    return {"address": str(note.key), "kind": note.kind, "message": note.message, "source": _source(note.source)}


def _change(change: Change) -> Document:
    document: Document = {
        "address": str(change.key),
        "kind": change.key.kind.value,
        "action": change.action.word,
        "source": _source(change.source),
        "fields": [_field(field) for field in change.fields],
        "keywords": {"add": list(change.keywords_added), "delete": list(change.keywords_deleted)},
        "metadata": _metadata(change),
        "reason": change.reason,
    }
    if change.cascade:
        document["cascade"] = str(change.cascade)
    if change.previously:
        document["previously"] = change.previously
    return document


def _metadata(change: Change) -> Document:
    before = dict(change.metadata_before)
    return {"set": dict(change.metadata_set), "delete": list(change.metadata_deleted), "before": before}


def _field(field: FieldChange) -> Document:
    return {"name": field.name, "before": field.before, "after": field.after, "effect": field.effect.value}


def _source(source: Source | None) -> Document | None:
    if source is None:
        return None
    document: Document = {"file": source.file, "line": source.line}
    if source.data:
        document["data"] = {"file": source.data.file, "row": source.data.row}
    return document


# --- report -----------------------------------------------------------------------------------------------------------


def report_document(report: Report) -> Document:
    return {
        "format": REPORT_FORMAT,
        "plan": report.plan,
        "status": report.status.value,
        "summary": asdict(report.totals),
        "session": _session(report.session),
        "results": [_result(result) for result in report.results],
        "diagnostics": [diagnostic_document(diagnostic) for diagnostic in report.diagnostics],
    }


def _session(session: Session) -> Document:
    return {"id": session.id, "outcome": session.outcome, "reason": session.reason}


def _result(result: Result) -> Document:
    return {
        "address": str(result.key),
        "action": result.action.word,
        "outcome": result.outcome.value,
        "source": _source(result.source),
        "error": _error(result.error),
    }


def _error(error: CallError | None) -> Document | None:
    if error is None:
        return None
    return {"operation": error.operation, "message": error.message, "index": error.index, "status": error.status}


# --- diagnostics ------------------------------------------------------------------------------------------------------


def diagnostics_document(found: Sequence[Diagnostic]) -> Document:
    return {"format": DIAGNOSTICS_FORMAT, "diagnostics": [diagnostic_document(diagnostic) for diagnostic in found]}


def diagnostic_document(diagnostic: Diagnostic) -> Document:
    data = diagnostic.data
    return {
        "severity": diagnostic.severity.value,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "file": diagnostic.file,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "address": diagnostic.address,
        **({"data": {"file": data.file, "row": data.row}} if data else {}),
    }
