"""Collect the events of an apply and build its report from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from syncengine.apply.events import Event, ItemEnded, Remark
from syncengine.apply.report import (
    CallError,
    Circumstances,
    Outcome,
    Report,
    Result,
    RunStatus,
    Session,
    Totals,
    status_after,
)
from syncengine.errors import Diagnostic, Severity, SyncengineError
from syncengine.plan.diff import Action, Change
from syncengine.plan.model import Plan
from syncengine.resource import Key
from syncengine.service.client import Traffic

WORST_FIRST = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.SKIPPED, Outcome.APPLIED)


class _Tally:
    """Folds the outcomes of calls into one result for each resource: the worst of its calls."""

    def __init__(self) -> None:
        self._worst: dict[Key, ItemEnded] = {}

    def add(self, item: ItemEnded) -> None:
        """Count the outcome of one call."""
        worst = self._worst.get(item.key)
        if worst is None or WORST_FIRST.index(item.outcome) < WORST_FIRST.index(worst.outcome):
            self._worst[item.key] = item

    def results(self, changes: Sequence[Change], unsent: str) -> tuple[Result, ...]:
        """Return a result for each change, in order, then results of other resources that were not applied.

        `unsent` is the reason for changes without any event.
        """
        results = [self._result(change, unsent) for change in changes]
        keys = {change.key for change in changes}
        others = [t for t in self._worst.values() if t.key not in keys and t.outcome is not Outcome.APPLIED]
        return (*results, *(Result(t.key, Action.UPDATE, t.outcome, t.source, t.error) for t in others))

    def _result(self, change: Change, unsent: str) -> Result:
        worst = self._worst.get(change.key)
        if worst is None:
            return Result(change.key, change.action, Outcome.SKIPPED, change.source, CallError(unsent))
        return Result(change.key, change.action, worst.outcome, change.source, worst.error)


class Chronicle:
    """The events of one apply so far. `plan` is `None` before planning; `traffic` is empty until something is sent."""

    def __init__(self, tell: Callable[[Event], None], remarks: Iterable[Diagnostic] = ()) -> None:
        self.plan: Plan | None = None
        self.traffic = Traffic()
        self.began = False
        self._tell = tell
        self._tally = _Tally()
        self._session = Session()
        self._remarks = list(remarks)
        self._folded: tuple[Result, ...] | None = None

    def hear(self, event: Event) -> None:
        """Fold one event and pass it on."""
        match event:
            case ItemEnded():
                self._tally.add(event)
                self._folded = None
            case Session():
                self._session = event
            case Remark(code, message):
                self._remarks.append(Diagnostic(severity=Severity.WARNING, code=code, message=message))
        self._tell(event)

    def remark(self, code: str, message: str) -> None:
        self.hear(Remark(code, message))

    @property
    def status(self) -> RunStatus:
        """The status of a run after everything that could be sent was sent."""
        sweeps = self.plan is not None and self.plan.sweep is not None
        return _status_of(self.results(), sweep_wanted=sweeps, session=self._session)

    def results(self) -> tuple[Result, ...]:
        """Return a result for each change; empty until the run has begun."""
        if not (self.plan and self.began):
            return ()
        if self._folded is None:
            self._folded = self._tally.results(self.plan.changes, "not sent")
        return self._folded

    def _results_after(self, error: SyncengineError | None) -> tuple[Result, ...]:
        """Return the results; if `error` kept the run from beginning, every change is skipped for its reason."""
        if error is None or self.began or self.plan is None:
            return self.results()
        return self._tally.results(self.plan.changes, error.message)

    def counts(self) -> dict[str, int]:
        """Return the number of changes by outcome."""
        outcomes = [result.outcome for result in self.results()]
        return {outcome.value: outcomes.count(outcome) for outcome in Outcome}

    def report(self, circumstances: Circumstances, error: SyncengineError | None = None) -> Report:
        """Return the report of the apply; `error`, if any, ended it early."""
        results = self._results_after(error)
        diagnostics = (*(self.plan.diagnostics if self.plan else ()), *self._remarks)
        own = frozenset(diagnostics)
        return Report(
            plan=self.plan.id if self.plan else None,
            status=self._status_after(error),
            totals=_totals(results, self.traffic.requests, self.traffic.retries),
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


def _totals(results: Sequence[Result], requests: int, retries: int) -> Totals:
    counts = Counter(result.outcome for result in results)
    return Totals(
        applied=counts[Outcome.APPLIED],
        failed=counts[Outcome.FAILED],
        skipped=counts[Outcome.SKIPPED],
        unknown=counts[Outcome.UNKNOWN],
        requests=requests,
        retries=retries,
    )


def _status_of(results: Sequence[Result], *, sweep_wanted: bool, session: Session) -> RunStatus:
    """Return COMPLETE only when everything was applied, the sweep included."""
    swept = not sweep_wanted or session.outcome == "completed"
    return RunStatus.COMPLETE if swept and all(r.outcome is Outcome.APPLIED for r in results) else RunStatus.INCOMPLETE
