"""JSON file → Markdown and outputs. Any defect of the file is an error.

Files are documents of docs/formats.md that `plan`, `apply` and `validate` print or write, and saved plans.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from syncengine.apply.report import CallError, Circumstances, Outcome, Report, Result, RunStatus, Session, Totals
from syncengine.document.comparison import ValueChange
from syncengine.document.json_paths import misfit
from syncengine.errors import Diagnostic, Severity, SyncengineError
from syncengine.plan import saved
from syncengine.plan.aim import Note
from syncengine.plan.calls import Sweep
from syncengine.plan.diff import Action
from syncengine.plan.gate import Gate
from syncengine.plan.model import Base, Basis, ChangeOrigin, Excess, Plan, Since, Summary, Tree
from syncengine.plan.units import Approval, Unit
from syncengine.project import git
from syncengine.project.atomic_write import refuse_links, write_whole
from syncengine.render import formats
from syncengine.render.documents import change_of, document_in, row_of, source_of, undo_of
from syncengine.render.json import SHOWN
from syncengine.render.markdown import plan_markdown, report_markdown, trouble_markdown
from syncengine.render.style import Look
from syncengine.resource import Key
from syncengine.state.records import Refusal

CURE = "write it with `syncengine plan --report json=FILE`"
SAFE = re.compile(r"[0-9A-Za-z._-]*")
"""The letters of an output, which is always one line."""
PLAN_ID = re.compile(r"[0-9A-Za-z._-]{0,200}")
COUNTED = ("create", "update", "delete", "retire", "forget")
"""The actions that outputs count. Those from the third on are removals."""
_DOCUMENT = formats.PlanFormat | formats.ReportFormat | formats.Diagnostics

Outputs = Mapping[str, str]
"""The names and values for later steps and jobs: words, numbers and ids, never text from a manifest."""


class Publication(NamedTuple):
    """A document to publish. `markdown` renders it, in at most a number of units of a measure.

    `has_commit` is whether the document names its commit wherever there is one, as all do but errors.
    """

    markdown: Callable[[Look, int, Callable[[str], int]], str]
    outputs: Outputs
    commit: str | None = None
    has_commit: bool = False


def publication_of(path: Path, name: str, approved: Callable[[Plan], Plan]) -> Publication:
    """Return the publication of a file, called `name` in messages. Raise `SyncengineError` for any other file.

    `approved` applies approvals to a saved plan, whose file contains none.
    """
    content = _content(path, name)
    if _is_saved(content):
        return _of_plan(approved(saved.load(path, SHOWN)), name)
    document = _document(content, name)
    try:
        match document:
            case formats.PlanFormat():
                return _of_plan(plan_of(document), name)
            case formats.ReportFormat():
                return _of_report(report_of(document), name)
            case _:
                return _of_trouble(diagnostics_of(document.diagnostics), name)
    except (ValueError, KeyError) as error:
        raise _unfit(f"{name} is damaged: {misfit(error)}; make it again") from None


def refuse_committed(publication: Publication, path: Path, name: str, head: str | None) -> None:
    """Refuse a file that this run did not write: one that Git has, or one made at another commit than `head`.

    Whoever can commit a file can commit a forged plan, but none that names its own commit.
    """
    if git.may_keep(path.parent, path.name):
        cure = "write it elsewhere, or delete it from Git"
        raise _unfit(f"{name} is in Git, or Git cannot say, so that it may not be what this run wrote: {cure}")
    if head and publication.commit != head and (publication.commit or publication.has_commit):
        made = f"at commit {publication.commit[:12]}" if publication.commit else "outside of Git"
        raise _unfit(f"{name} was made {made}, and {head[:12]} is checked out: {CURE}")


def _content(path: Path, name: str) -> bytes:
    try:
        refuse_links(path)
    except OSError:
        raise _unfit(
            f"{name} is a symbolic link or in a linked folder, which may lead to what this run did not write: {CURE}"
        ) from None
    try:
        if not path.is_file():  # reading a pipe would block
            raise _unfit(f"{name} {'is not a file' if path.exists() else 'does not exist'}: {CURE}")
        content = path.read_bytes()
    except OSError as error:
        raise _unfit(f"{name} cannot be read: {error.strerror}") from None
    if not content.strip():
        raise _unfit(f"{name} is empty: the command that writes it must have been stopped early")
    return content


def _is_saved(content: bytes) -> bool:
    try:
        return bool(bytes(msgspec.json.decode(content, type=saved.Printed).execution))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _document(content: bytes, name: str) -> formats.PlanFormat | formats.ReportFormat | formats.Diagnostics:
    try:
        document: formats.PlanFormat | formats.ReportFormat | formats.Diagnostics
        document = document_in(content, _DOCUMENT)
        return document
    except msgspec.ValidationError as error:
        if "$.format" in str(error) or "`format`" in str(error):
            raise _unfit(f"{name} is neither a plan nor a report of this version: {CURE}") from None
        raise _unfit(f"{name} is damaged: {misfit(error)}; make it again") from None
    except ValueError:
        raise _unfit(f"{name} is not JSON: {CURE}") from None


def _unfit(message: str) -> SyncengineError:
    return SyncengineError(message, code="publish-file")


# --- what is published


def _of_plan(plan: Plan, name: str) -> Publication:
    counts = {word: getattr(plan.summary, word) for word in COUNTED}
    outputs = _outputs(counts, plan.changes_something, plan.gate.is_closed, plan.id, name)
    return Publication(partial(plan_markdown, plan), outputs, plan.basis.commit, has_commit=True)


def _of_report(report: Report, name: str) -> Publication:
    """Return the publication of a report, whose outputs count the applied changes."""
    applied = Counter(result.action.word for result in report.results if result.outcome is Outcome.APPLIED)
    is_closed = any(diagnostic.code == "gate" for diagnostic in report.diagnostics)
    return Publication(
        partial(report_markdown, report),
        _outputs(applied, report.totals.applied > 0, is_closed, report.plan or "", name),
        report.circumstances.commit,
        # Else the project may have been unreadable, with its commit.
        has_commit=report.status is not RunStatus.REFUSED,
    )


def _of_trouble(diagnostics: tuple[Diagnostic, ...], name: str) -> Publication:
    """Return the publication of findings that prevented a plan. Its outputs count no changes."""
    outputs = _outputs({}, False, False, "", name)
    return Publication(partial(trouble_markdown, diagnostics), outputs)


def _outputs(counts: Mapping[str, int], changes: bool, is_closed: bool, plan_id: str, name: str) -> Outputs:
    if not PLAN_ID.fullmatch(plan_id):
        raise _unfit(f"{name} is damaged: its plan id is malformed")
    create, update, *removals = (counts.get(word, 0) for word in COUNTED)
    return {
        "has_changes": str(changes).lower(),
        "create": str(create),
        "update": str(update),
        "remove": str(sum(removals)),
        "gate": str(is_closed).lower(),
        "plan_id": plan_id,
    }


# --- documents → the values that renderers take


def plan_of(document: formats.PlanFormat) -> Plan:
    """Return the plan in a document, for rendering only: it has no calls. Raise `ValueError` for an unknown word."""
    sweep = document.sweep
    return Plan(
        _basis(document, document.basis),
        Summary(**{name: getattr(document.summary, name) for name in Summary.__struct_fields__}),
        _gate(document.gate),
        Sweep(sweep.known, (), saved.NO_CALL) if sweep else None,
        tuple(map(change_of, document.changes)),
        tuple(Note(Key.parse(n.address), n.kind, n.message, source_of(n.source)) for n in document.notes),
        (),
        diagnostics=diagnostics_of(document.diagnostics),
        compared=_base(document, document.base) if document.base else msgspec.UNSET,
        since=_since(document.since) if document.since else msgspec.UNSET,
        refused=dict(_refused(document.changes)) or msgspec.UNSET,
        undo=undo_of(document.undo) if document.undo else msgspec.UNSET,
    )


def _refused(changes: Iterable[formats.ChangeItem]) -> Iterator[tuple[str, Refusal]]:
    """Yield the addresses and the last refusals of changes that the service rejected before."""
    for change in changes:
        if (item := change.refused) is not None:
            since = datetime.fromisoformat(item.since).timestamp()
            key = Key.parse(change.address)
            refusal = Refusal(key=key, times=item.times, since=since, at=since, message=item.message, content="")
            yield change.address, refusal


def _basis(document: formats.PlanFormat, basis: formats.PlanBasis | None) -> Basis:
    service = document.service
    plain = Basis(document.id, document.created, service.base_url, service.team, commit=document.commit)
    if basis is None:
        return plain
    uncommitted = None if basis.uncommitted is None else dict.fromkeys(basis.uncommitted, "")
    return msgspec.structs.replace(
        plain,
        lineage=basis.lineage or "",
        environment=basis.environment or "",
        tree=Tree(basis.tree, uncommitted) if basis.tree is not None else None,
    )


def _since(item: formats.SinceItem) -> Since:
    """Return the comparison with a reviewed plan. Each excess is only a sentence in the document."""
    different = {each.address: tuple(map(_value_change, each.changes)) for each in item.different}
    excess = tuple(Excess(each.message) for each in item.more)
    return Since((item.plan,), item.new, item.gone, different, item.same, excess)


def _value_change(item: formats.ValueChangeItem) -> ValueChange:
    return ValueChange(item.path, item.before, item.after)


def _gate(gate: formats.GateState) -> Gate:
    """Return the gate. In a document, `tripped` is false for an approved gate: it means that an approval is missing."""
    approved = _approval("", gate.approved)
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
    return Gate(gate.tripped or approved is not None, gate.reasons, gate.approve, approved, units)


def _approval(text: str, approval: formats.GateApproval | None) -> Approval | None:
    return Approval(text, approval.by, approval.line) if approval else None


def _base(document: formats.PlanFormat, base: formats.BaseItem) -> Base:
    """Return the base side of a plan with two sides, with the reasons of changes that wait."""
    return Base(
        base.ref,
        base.commit,
        {item.address: item.waits or "" for item in document.changes if _waits(item)},
    )


def _waits(item: formats.ChangeItem) -> bool:
    return item.origin is not None and ChangeOrigin(item.origin) is ChangeOrigin.WAITING


def report_of(document: formats.ReportFormat) -> Report:
    """Return the report in a document. Raise `ValueError` for an unknown word."""
    return Report(
        document.plan,
        RunStatus(document.status),
        Totals(**msgspec.structs.asdict(document.summary)),
        Session(**msgspec.structs.asdict(document.session)),
        tuple(map(_result, document.results)),
        diagnostics_of(document.diagnostics),
        _circumstances(document),
    )


def _circumstances(document: formats.ReportFormat) -> Circumstances:
    return Circumstances(
        started=_seconds(document.started),
        ended=_seconds(document.ended),
        team=document.team,
        environment=document.environment,
        commit=document.commit,
        tree=document.tree,
        actor=document.actor,
        job=document.job,
        approvals=tuple(Approval(each.approve, each.by, each.line) for each in document.approvals),
    )


def _seconds(instant: str | None) -> float | None:
    return datetime.fromisoformat(instant).timestamp() if instant else None


def _result(item: formats.ResultItem) -> Result:
    error = (
        CallError(item.error.message, item.error.operation, item.error.index, item.error.status) if item.error else None
    )
    action, outcome = Action[item.action.upper()], Outcome(item.outcome)
    return Result(Key.parse(item.address), action, outcome, source_of(item.source), error)


def diagnostics_of(items: Iterable[formats.DiagnosticItem]) -> tuple[Diagnostic, ...]:
    return tuple(
        Diagnostic(
            severity=Severity(item.severity),
            code=item.code,
            message=item.message,
            file=item.file,
            line=item.line,
            column=item.column,
            address=item.address,
            data=row_of(item.data),
            rule=msgspec.UNSET if item.rule is None else item.rule,
        )
        for item in items
    )


# --- outputs, which CI passes to later steps and jobs


def write_dotenv(outputs: Outputs, path: Path) -> None:
    """Write a file of `name=value` lines, from which GitLab reads variables for later jobs."""
    try:
        write_whole(path, [_lines(outputs).encode()])
    except OSError as error:
        raise _unwritable(path, "the outputs", error) from None


def append_outputs(outputs: Outputs, path: Path) -> None:
    """Append the outputs to the file of a step's outputs, which other programs may write, too."""
    append(path, _lines(outputs), "the outputs")


def append(path: Path, text: str, purpose: str) -> None:
    """Append text to a file that CI reads. Raise `SyncengineError` when that fails."""
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise _unwritable(path, purpose, error) from None


def _lines(outputs: Outputs) -> str:
    assert all(SAFE.fullmatch(value) for value in outputs.values())
    return "".join(f"{name}={value}\n" for name, value in outputs.items())


def _unwritable(path: Path, purpose: str, error: OSError) -> SyncengineError:
    return SyncengineError(f"{path}: {purpose} cannot be written: {error.strerror}", code="report-file")
