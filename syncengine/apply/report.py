"""The events of an apply, the outcomes that follow from them, and the report that collects both. Nothing prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from syncengine.errors import REFUSALS, Diagnostic, ExitCode, Severity, SyncengineError
from syncengine.plan.diff import Action, Change
from syncengine.plan.gate import Approval
from syncengine.plan.model import Plan
from syncengine.resource import Key, Source


@dataclass(frozen=True, slots=True)
class StageStarted:
    """The start of a stage; `items` is the number of resources or parts of resources that it sends."""

    name: str
    items: int


class ItemEnded(Struct, frozen=True, gc=False):
    """The outcome of one item of a stage; `error` is the reason why it was not applied."""

    key: Key
    outcome: Outcome
    error: CallError | None = None
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Retrying:
    """A call that will be repeated in `wait` seconds."""

    operation: str
    why: str
    wait: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pause of `seconds` in which nothing is sent, and its reason."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class SessionOpened:
    id: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """A request to end the run, which waits at most `seconds` for the answers to requests in flight."""

    seconds: float


class Outcome(StrEnum):
    """The outcome of one change. UNKNOWN: it was sent, and no answer revealed its outcome."""

    APPLIED = "applied"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


PLAN_USED = "plan-used"
"""The code of the remark or the error that a saved plan cannot be applied again."""


class RunStatus(StrEnum):
    """The final status of a run. FAILED and REFUSED: nothing was applied, with REFUSED by our own decision."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    REFUSED = "refused"


def status_after(error: SyncengineError) -> RunStatus:
    """Return the status of an apply that `error` ended before anything was applied."""
    refusal = REFUSALS.get(error.code)
    is_ours = refusal.is_ours if refusal else error.exit_code is ExitCode.USAGE
    return RunStatus.REFUSED if is_ours else RunStatus.FAILED


@dataclass(frozen=True, slots=True)
class CallError:
    """Why a change was not applied: the service's message, or ours when it sent none.

    `index` is the item's position in the request, `status` the HTTP status if there was an answer.
    """

    message: str
    operation: str | None = None
    index: int | None = None
    status: int | None = None


class Result(Struct, frozen=True, gc=False):
    """The outcome of one change, with its place in the manifests."""

    key: Key
    action: Action
    outcome: Outcome
    source: Source | None = None
    error: CallError | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The end of a run's sync session. `outcome` is completed, cancelled, or none when it is unknown."""

    id: str | None = None
    outcome: str = "none"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    applied: int = 0
    failed: int = 0
    skipped: int = 0
    unknown: int = 0
    requests: int = 0
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Circumstances:
    """When, where and by whom an apply was run, with times in seconds since the epoch.

    `commit` and `tree` are those of the planned manifests; `actor` is who triggered the CI job, `job` the URL of its
    page, and `approvals` are the approvals that were used.
    """

    started: float | None = None
    ended: float | None = None
    team: str | None = None
    environment: str | None = None
    commit: str | None = None
    tree: str | None = None
    actor: str | None = None
    job: str | None = None
    approvals: tuple[Approval, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes of one apply. `results` contains every change, in the plan's order."""

    plan: str | None
    status: RunStatus
    totals: Totals
    session: Session
    results: tuple[Result, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    circumstances: Circumstances = Circumstances()

    @property
    def began(self) -> bool:
        """Whether anything may have been applied."""
        return self.status not in (RunStatus.FAILED, RunStatus.REFUSED)


Event = StageStarted | ItemEnded | Retrying | Waiting | Stopping | SessionOpened | Session | Diagnostic
"""What an apply tells while it runs. A diagnostic is a warning about the run as a whole."""

WORST_FIRST = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.SKIPPED, Outcome.APPLIED)


class Chronicle:
    """The events of one apply so far. `plan` is `None` before planning; `traffic` is empty until something is sent."""

    def __init__(self, tell: Callable[[Event], None], remarks: Iterable[Diagnostic] = ()) -> None:
        self.plan: Plan | None = None
        from syncengine.service.client import Traffic  # imported late: who reads a report needs no client

        self.traffic = Traffic()
        self.began = False
        self._tell = tell
        self._worst: dict[Key, ItemEnded] = {}
        self._session = Session()
        self._remarks = list(remarks)
        self._folded: tuple[Result, ...] | None = None

    def hear(self, event: Event) -> None:
        """Fold one event and pass it on. A resource has the worst outcome of its calls."""
        match event:
            case ItemEnded(key):
                worst = self._worst.get(key)
                if worst is None or WORST_FIRST.index(event.outcome) < WORST_FIRST.index(worst.outcome):
                    self._worst[key] = event
                self._folded = None
            case Session():
                self._session = event
            case Diagnostic():
                self._remarks.append(event)
        self._tell(event)

    def remark(self, code: str, message: str) -> None:
        self.hear(Diagnostic(severity=Severity.WARNING, code=code, message=message))

    @property
    def status(self) -> RunStatus:
        """The status of a run after all that could be sent was sent: complete if all was applied, the sweep too."""
        sweeps = self.plan is not None and self.plan.sweep is not None
        is_swept = not sweeps or self._session.outcome == "completed"
        is_applied = all(result.outcome is Outcome.APPLIED for result in self.results())
        return RunStatus.COMPLETE if is_swept and is_applied else RunStatus.INCOMPLETE

    def results(self) -> tuple[Result, ...]:
        """Return a result for each change; empty until the run has begun."""
        if not (self.plan and self.began):
            return ()
        if self._folded is None:
            self._folded = self._results(self.plan.changes, "not sent")
        return self._folded

    def _results(self, changes: Sequence[Change], unsent: str) -> tuple[Result, ...]:
        """Return a result for each change, in order, then results of other resources that were not applied.

        `unsent` is the reason for changes without any event.
        """
        results: list[Result] = []
        for change in changes:
            worst = self._worst.get(change.key)
            outcome, error = (worst.outcome, worst.error) if worst else (Outcome.SKIPPED, CallError(unsent))
            results.append(Result(change.key, change.action, outcome, change.source, error))
        keys = {change.key for change in changes}
        others = [t for t in self._worst.values() if t.key not in keys and t.outcome is not Outcome.APPLIED]
        return (*results, *(Result(t.key, Action.UPDATE, t.outcome, t.source, t.error) for t in others))

    def counts(self) -> dict[str, int]:
        """Return the number of changes by outcome."""
        outcomes = [result.outcome for result in self.results()]
        return {outcome.value: outcomes.count(outcome) for outcome in Outcome}

    def report(self, circumstances: Circumstances, error: SyncengineError | None = None) -> Report:
        """Return the report of the apply. An `error` ended it early, or kept it from beginning: then all is skipped."""
        if error is None or self.began or self.plan is None:
            results = self.results()
        else:
            results = self._results(self.plan.changes, error.message)
        counts = Counter(result.outcome.value for result in results)
        traffic, diagnostics = self.traffic, (*(self.plan.diagnostics if self.plan else ()), *self._remarks)
        own = frozenset(diagnostics)
        status = self.status if error is None else RunStatus.INCOMPLETE if traffic.reached else status_after(error)
        return Report(
            plan=self.plan.id if self.plan else None,
            status=status,
            totals=Totals(**counts, requests=traffic.requests, retries=traffic.retries),
            session=self._session,
            results=results,
            diagnostics=(*diagnostics, *(d for d in (error.diagnostics() if error else ()) if d not in own)),
            circumstances=circumstances,
        )
