"""Report → findings and sentences on the outcome of changes, and text for people at a terminal; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from syncengine.apply.report import PLAN_USED, Outcome, Report, RunStatus, Session, Totals, status_after
from syncengine.errors import Diagnostic, Severity, SyncengineError, with_row
from syncengine.render.diagnostics import ALONE, diagnostic_lines, warnings_first
from syncengine.render.documents import diagnostics_of, row_of
from syncengine.render.escape import cells, visible
from syncengine.render.formats import ErrorItem, ReportFormat, ResultItem, SessionItem
from syncengine.render.style import PLAIN, Look, Tone, lettered
from syncengine.render.text import join_blocks, paragraph
from syncengine.render.words import count_of, number, place, requests


class OutcomeWords(NamedTuple):
    """The code and severity of an outcome other than `applied`, and its message if the service sent none."""

    code: str
    severity: Severity
    words: str


TROUBLES = {
    Outcome.FAILED: OutcomeWords("refused", Severity.ERROR, "the service rejected it without a message"),
    Outcome.UNKNOWN: OutcomeWords("unknown", Severity.ERROR, "it was sent, but its outcome is unknown"),
    Outcome.SKIPPED: OutcomeWords("skipped", Severity.WARNING, "it was not sent"),
}
"""The words for each outcome other than `applied`, the most pressing first."""

PLACES = 20
"""The number of places that are listed for one error."""

CORRECT = "Fix the rejected changes and run the command again: applied changes are recorded and not sent again."
REPEAT = "Run the same command again: applied changes are recorded and not sent again."
ANEW = "Plan again to see what remains: applied changes are recorded and not sent again."
UNRECORDED = (
    "Run the same command again once the state can be written: changes that it could not record are in doubt and sent"
    " again; every operation is safe to repeat."
)
LOST = ("lock-lost", "new-state")
"""Error codes of a state whose lock another process took over, and of a state that no longer exists."""

DOUBT = "Changes in doubt are sent again; every operation is safe to repeat."

_SESSIONS = {
    "completed": "{session} was completed: activity types that were not uploaded in it are deleted.",
    "cancelled": "{session} was cancelled: no activity type was deleted.",
    "none": "{session} was not completed: it deleted no activity type.",
}


def report_of(error: SyncengineError) -> Report:
    """Return the report of an apply that ended with `error` before it sent anything."""
    return Report(None, status_after(error), Totals(), Session(), (), error.diagnostics())


def findings(report: ReportFormat) -> tuple[Diagnostic, ...]:
    """Return the changes that were not applied, the most pressing first, then the diagnostics of the run."""
    return (*(finding(result) for result in not_applied(report)), *diagnostics_of(report.diagnostics))


def not_applied(report: ReportFormat) -> Iterator[ResultItem]:
    """Yield the results to report one by one. Skipped changes are left out when the run never began."""
    for outcome in TROUBLES:
        if report.began or outcome is not Outcome.SKIPPED:
            yield from (result for result in report.results if result.outcome is outcome)


def finding(result: ResultItem) -> Diagnostic:
    """Return a change that was not applied as a diagnostic at the place of its resource."""
    trouble, place = TROUBLES[result.outcome], result.source
    data = row_of(place.data) if place else None
    return Diagnostic(
        severity=trouble.severity,
        code=trouble.code,
        message=with_row(f"{result.address}: {words(result)}{sent_as(result.error)}", data),
        file=place.file if place else None,
        line=place.line if place else None,
        address=result.address,
        data=data,
    )


def alike(report: ReportFormat) -> list[list[ResultItem]]:
    """Return the changes that were not applied, grouped by outcome, message and operation."""
    groups: dict[object, list[ResultItem]] = defaultdict(list)
    for result in not_applied(report):
        groups[result.outcome, words(result), result.error and result.error.operation].append(result)
    return list(groups.values())


def shared(group: Sequence[ResultItem]) -> Diagnostic:
    """Return one diagnostic for all changes with the same error, without their places."""
    trouble = TROUBLES[group[0].outcome]
    operation = replace(group[0].error, index=None) if group[0].error else None
    message = f"{count_of(len(group), 'change')}: {words(group[0])}{sent_as(operation)}"
    return Diagnostic(severity=trouble.severity, code=trouble.code, message=message)


def words(result: ResultItem) -> str:
    """Return the service's message, or our own words when the service sent none."""
    return (result.error.message if result.error else "") or TROUBLES[result.outcome].words


def sent_as(error: ErrorItem | None) -> str:
    """Return the call of a failed change as ` (upsertTags, item 7)`, as far as it is known."""
    if error is None or error.operation is None:
        return ""
    return f" ({error.operation})" if error.index is None else f" ({error.operation}, item {error.index})"


def headline(report: ReportFormat) -> str:
    """Return the outcome in one line: `Applied 12 of 14 changes; 1 failed, 1 skipped. 5 requests, 1 retry.`"""
    totals, status = report.summary, report.status.value.capitalize()
    troubled = [(totals.failed, "failed"), (totals.skipped, "skipped"), (totals.unknown, "with unknown outcome")]
    every = totals.applied + sum(count for count, _ in troubled)
    if not report.began:
        rest = f", {count_of(every, 'change')} skipped" if every else ""
        return f"{status}: nothing was applied{rest}."
    if not totals.requests and totals.applied and report.status is RunStatus.COMPLETE:
        return f"Applied {count_of(totals.applied, 'change')}, recorded here only: nothing was sent."
    counts = ", ".join(f"{number(count)} {word}" for count, word in troubled if count)
    if counts:
        achieved = f"Applied {number(totals.applied)} of {count_of(every, 'change')}; {counts}."
    elif report.status is not RunStatus.COMPLETE:
        achieved = f"{status}: {count_of(every, 'change')} applied."
    else:
        achieved = f"Applied {count_of(every, 'change')}." if every else "Nothing to apply."
    retries = f", {count_of(totals.retries, 'retry')}" if totals.retries else ""
    return f"{achieved} {requests(totals.requests)}{retries}."


def session_sentence(session: SessionItem) -> str:
    """Return a sentence on the outcome of the sync session; empty when the run had none."""
    if session.id is None and session.outcome == "none":
        return ""
    name = f"Sync session {visible(session.id)}" if session.id else "The sync session of this run"
    form = _SESSIONS.get(session.outcome, f"{{session}}: {visible(session.outcome)}.")
    return form.format(session=name) + (f" Reason: {visible(session.reason).rstrip('.')}." if session.reason else "")


def next_step(report: ReportFormat) -> str:
    """Return a sentence on the user's next step; empty when there is nothing left to do."""
    totals = report.summary
    if not report.began or not (
        totals.failed or totals.unknown or totals.skipped or report.status is RunStatus.INCOMPLETE
    ):
        return ""
    codes = [each.code for each in report.diagnostics if each.severity is Severity.ERROR]
    if any(code in LOST or code.startswith("state-") for code in codes):
        return UNRECORDED
    is_used = any(each.code == PLAN_USED for each in report.diagnostics)
    step = ANEW if is_used else CORRECT if totals.failed else REPEAT
    return f"{step} {DOUBT}" if totals.unknown else step


GROUPS = 100
"""The largest number of different errors that are listed without `--verbose`."""

_TONES = {
    RunStatus.COMPLETE: Tone.CREATE,
    RunStatus.INCOMPLETE: Tone.WARNING,
    RunStatus.FAILED: Tone.ERROR,
    RunStatus.REFUSED: Tone.ERROR,
}


def report_text(report: ReportFormat, look: Look = PLAIN) -> str:
    """Return the summary, all changes that were not applied, the sync session, diagnostics and the next step."""
    groups = alike(report)
    # One fault with the ids of things in its message makes as many groups as there are things.
    shown = groups if look.verbose else groups[:GROUPS]
    troubles = list[str]()
    for group in shown:
        if len(group) <= ALONE or look.verbose:
            troubles += diagnostic_lines([finding(result) for result in group], look)
            continue
        troubles += diagnostic_lines([shared(group)], look)
        located = [(place(result.source), visible(result.address)) for result in group[:PLACES]]
        column = max(cells(where) for where, _ in located)
        for where, address in located:
            troubles.append(lettered(f"    {where}{' ' * (column - cells(where))}  {address}", look))
        if len(group) > PLACES:
            troubles.append(lettered(f"    … and {number(len(group) - PLACES)} more", look))
    if rest := sum(map(len, groups[len(shown) :])):
        more = f"… and {count_of(rest, 'more change')} not applied; the JSON report lists them all."
        troubles += paragraph(more, look)
    return join_blocks(
        (
            paragraph(headline(report), look, _TONES[report.status]),
            troubles,
            paragraph(session_sentence(report.session), look),
            diagnostic_lines(warnings_first(diagnostics_of(report.diagnostics), look), look),
            paragraph(next_step(report), look, Tone.HEADING),
        )
    )
