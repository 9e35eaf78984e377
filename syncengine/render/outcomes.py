"""Report → findings and sentences: the outcome of the changes, in words that every rendering shares; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from syncengine.apply.report import CallError, Outcome, Report, Result, RunStatus, Session, Totals, status_after
from syncengine.errors import Diagnostic, Severity, SyncengineError
from syncengine.render.escape import visible
from syncengine.render.words import count_of, number, requests
from syncengine.resource import found_at


class OutcomeWords(NamedTuple):
    """The code of an outcome other than `applied`, and its message where the service sent none."""

    code: str
    severity: Severity
    words: str


TROUBLES = {
    Outcome.FAILED: OutcomeWords("refused", Severity.ERROR, "the service refused it without a message"),
    Outcome.UNKNOWN: OutcomeWords("unknown", Severity.ERROR, "it was sent, and its outcome is not known"),
    Outcome.SKIPPED: OutcomeWords("skipped", Severity.WARNING, "it was not sent"),
}
"""Most pressing first."""

PLACES = 20
"""Places listed for one error."""

CORRECT = "Correct what was rejected and repeat the command: what was applied is recorded and is not sent again."
REPEAT = "Repeat the same command: what was applied is recorded and is not sent again."
UNRECORDED = (
    "Repeat the same command once the state can be written: what it could not record any more is in doubt, and sent"
    " again; every operation is safe to repeat."
)
LOST = ("lock-lost", "new-state")
"""Codes of a state that another took over, or that is gone."""

DOUBT = "What is in doubt is sent again; every operation is safe to repeat."

_SESSIONS = {
    "completed": "Sync session {id} was completed: activity types that were not uploaded in it are deleted.",
    "cancelled": "Sync session {id} was cancelled: no activity type was deleted.",
    "none": "Sync session {id} was not completed: no activity type was deleted by it.",
}


def report_of(error: SyncengineError, plan: str | None = None) -> Report:
    """The report of an apply that ended before it sent anything, so that machines get one on every path."""
    return Report(plan, status_after(error), Totals(), Session(), (), error.diagnostics())


def findings(report: Report) -> tuple[Diagnostic, ...]:
    """All changes that were not applied, most pressing first, then the run's own diagnostics."""
    return (*(finding(result) for result in not_applied(report)), *report.diagnostics)


def not_applied(report: Report) -> Iterator[Result]:
    """The results to report one by one. A run that never began has one reason, which its report names."""
    for outcome in TROUBLES:
        if report.began or outcome is not Outcome.SKIPPED:
            yield from (result for result in report.results if result.outcome is outcome)


def finding(result: Result) -> Diagnostic:
    """A change that was not applied as a diagnostic at its place."""
    trouble = TROUBLES[result.outcome]
    message = f"{result.key}: {words(result)}{sent_as(result.error)}"
    return found_at(result.source, result.key, trouble.code, message, trouble.severity)


def alike(report: Report) -> list[list[Result]]:
    """Failed changes, grouped by their error."""
    groups: dict[object, list[Result]] = defaultdict(list)
    for result in not_applied(report):
        groups[result.outcome, words(result), result.error and result.error.operation].append(result)
    return list(groups.values())


def shared(group: Sequence[Result]) -> Diagnostic:
    """One diagnostic for changes with the same error; their places are listed beside it."""
    trouble = TROUBLES[group[0].outcome]
    operation = replace(group[0].error, index=None) if group[0].error else None
    message = f"{count_of(len(group), 'change')}: {words(group[0])}{sent_as(operation)}"
    return Diagnostic(severity=trouble.severity, code=trouble.code, message=message)


def words(result: Result) -> str:
    """The service's message, or ours if it sent none."""
    return (result.error.message if result.error else "") or TROUBLES[result.outcome].words


def sent_as(error: CallError | None) -> str:
    """` (upsertTags, item 7)`, as far as it is known."""
    if error is None or error.operation is None:
        return ""
    return f" ({error.operation})" if error.index is None else f" ({error.operation}, item {error.index})"


def headline(report: Report) -> str:
    """`Applied 12 of 14 changes; 1 failed, 1 skipped. 5 requests, 1 retry.`"""
    if not report.began:
        return _achieved(report)
    totals = report.totals
    traffic = f"{requests(totals.requests)}, {count_of(totals.retries, 'retry')}" if totals.retries else ""
    return f"{_achieved(report)} {traffic or requests(totals.requests)}."


def _achieved(report: Report) -> str:
    totals = report.totals
    troubled = [(totals.failed, "failed"), (totals.skipped, "skipped"), (totals.unknown, "of unknown outcome")]
    every = totals.applied + sum(count for count, _ in troubled)
    if not report.began:
        rest = f": {count_of(every, 'change')} skipped" if every else ""
        return f"{report.status.value.capitalize()}, nothing was applied{rest}."
    counts = ", ".join(f"{number(count)} {word}" for count, word in troubled if count)
    if counts:
        return f"Applied {number(totals.applied)} of {count_of(every, 'change')}; {counts}."
    return _untroubled(report.status, every)


def _untroubled(status: RunStatus, count: int) -> str:
    if status is RunStatus.COMPLETE:
        return f"Applied {count_of(count, 'change')}." if count else "Nothing to apply."
    return f"{status.value.capitalize()}: {count_of(count, 'change')} applied."


def session_sentence(session: Session) -> str:
    """The outcome of the sync session; nothing without one."""
    if session.id is None and session.outcome == "none":
        return ""
    name = visible(session.id) if session.id else "of this run"
    form = _SESSIONS.get(session.outcome, f"Sync session {{id}}: {visible(session.outcome)}.")
    return form.format(id=name) + (f" Reason: {visible(session.reason).rstrip('.')}." if session.reason else "")


def next_step(report: Report) -> str:
    """The next step; nothing if everything is done."""
    totals = report.totals
    if not report.began or not (
        totals.failed or totals.unknown or totals.skipped or report.status is RunStatus.INCOMPLETE
    ):
        return ""
    codes = [each.code for each in report.diagnostics if each.severity is Severity.ERROR]
    if any(code in LOST or code.startswith("state-") for code in codes):
        return UNRECORDED
    step = CORRECT if totals.failed else REPEAT
    return f"{step} {DOUBT}" if totals.unknown else step
