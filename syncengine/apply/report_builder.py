"""Collects the events of an apply and makes its report of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from syncengine.apply.events import Event, ItemEnded, Remark, SessionEnded
from syncengine.apply.report import (
    Circumstances,
    Outcome,
    Report,
    Result,
    RunStatus,
    Session,
    Tally,
    status_after,
    status_of,
    totals,
)
from syncengine.errors import Diagnostic, Severity, SyncengineError
from syncengine.plan.model import Plan
from syncengine.service.client import Traffic


class Chronicle:
    """The events of one apply so far. `plan` is None until there is one, `traffic` empty until something is sent."""

    def __init__(self, tell: Callable[[Event], None], remarks: Iterable[Diagnostic] = ()) -> None:
        self.plan: Plan | None = None
        self.traffic = Traffic()
        self.began = False
        self._tell = tell
        self._tally = Tally()
        self._session = Session()
        self._remarks = list(remarks)
        self._folded: tuple[Result, ...] | None = None

    def hear(self, event: Event) -> None:
        """Fold one event, and pass it on."""
        match event:
            case ItemEnded():
                self._tally.add(event)
                self._folded = None
            case SessionEnded(id, outcome, reason):
                self._session = Session(id or None, outcome or "none", reason)
            case Remark(code, message):
                self._remarks.append(Diagnostic(severity=Severity.WARNING, code=code, message=message))
        self._tell(event)

    def remark(self, code: str, message: str) -> None:
        self.hear(Remark(code, message))

    @property
    def status(self) -> RunStatus:
        """Return the status of the run once everything that could be sent was sent."""
        sweeps = self.plan is not None and self.plan.sweep is not None
        return status_of(self.results(), sweep_wanted=sweeps, session=self._session)

    def results(self) -> tuple[Result, ...]:
        """A result for each change, once the run began."""
        if not (self.plan and self.began):
            return ()
        if self._folded is None:
            self._folded = self._tally.results(self.plan.changes, "not sent")
        return self._folded

    def _results_after(self, error: SyncengineError | None) -> tuple[Result, ...]:
        """The same, also of a run that `error` kept from beginning: all that was planned is skipped for its reason."""
        if error is None or self.began or self.plan is None:
            return self.results()
        return self._tally.results(self.plan.changes, error.message)

    def counts(self) -> dict[str, int]:
        """Count the changes by outcome."""
        outcomes = [result.outcome for result in self.results()]
        return {outcome.value: outcomes.count(outcome) for outcome in Outcome}

    def report(self, circumstances: Circumstances, error: SyncengineError | None = None) -> Report:
        """The report; `error` ended the apply early."""
        results = self._results_after(error)
        diagnostics = (*(self.plan.diagnostics if self.plan else ()), *self._remarks)
        own = frozenset(diagnostics)
        return Report(
            plan=self.plan.id if self.plan else None,
            status=self._status_after(error),
            totals=totals(results, self.traffic.requests, self.traffic.retries),
            session=self._session,
            results=results,
            diagnostics=(*diagnostics, *(d for d in (error.diagnostics() if error else ()) if d not in own)),
            circumstances=circumstances,
        )

    def _status_after(self, error: SyncengineError | None) -> RunStatus:
        if error is None:
            return self.status
        if self.traffic.reached:
            return RunStatus.INCOMPLETE
        return status_after(error)
