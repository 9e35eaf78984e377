"""events → outcomes of changes, a report, an exit code; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from syncengine.errors import (
    Diagnostic,
    ExitCode,
    GateTripped,
    LockHeld,
    Problems,
    StalePlan,
    SyncengineError,
    Usage,
    WrongTeam,
)
from syncengine.plan.approvals import Approval
from syncengine.plan.diff import Action, Change
from syncengine.resource import Key, Source


class Outcome(StrEnum):
    """The outcome of one change. UNKNOWN: it was sent, and no answer told the outcome."""

    APPLIED = "applied"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


class RunStatus(StrEnum):
    """The end of a run. FAILED and REFUSED: nothing was applied, the latter by our own decision."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    REFUSED = "refused"


REFUSALS = (GateTripped, StalePlan, LockHeld, WrongTeam, Problems, Usage)
"""What keeps an apply from beginning by our own decision."""

RECORDED_EXITS = frozenset(kind.exit_code for kind in REFUSALS) - {ExitCode.USAGE}
"""What the history calls refused, by exit code: all but a misspelt command, and a key that the service refuses too."""


def status_after(error: SyncengineError) -> RunStatus:
    """Return the status of an apply that `error` ended before anything was applied."""
    return RunStatus.REFUSED if isinstance(error, REFUSALS) else RunStatus.FAILED


@dataclass(frozen=True, slots=True)
class CallError:
    """Why a change was not applied: the service's words, or ours where it had none.

    `index` is the item's position in the request that was sent; `status` the HTTP status, if one came.
    """

    message: str
    operation: str | None = None
    index: int | None = None
    status: int | None = None


class Result(Struct, frozen=True, gc=False):
    """One change's outcome with its place in the manifests."""

    key: Key
    action: Action
    outcome: Outcome
    source: Source | None = None
    error: CallError | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The sync session of a run. `outcome`: completed, cancelled or none."""

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
    """When, where and by whom an apply was run. Seconds since epoch.

    `commit` and `tree` are those of the manifests that were planned, `actor` had the CI job run whose page is `job`,
    `approvals` are those that were used.
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
    """All outcomes of one apply. `results` holds every change, in the plan's order."""

    plan: str | None
    status: RunStatus
    totals: Totals
    session: Session
    results: tuple[Result, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    circumstances: Circumstances = Circumstances()

    @property
    def began(self) -> bool:
        """Whether anything can have been applied."""
        return self.status not in (RunStatus.FAILED, RunStatus.REFUSED)


class ItemOutcome(Protocol):
    """The outcome that an apply reports for one resource (apply.events.ItemEnded)."""

    @property
    def key(self) -> Key: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def error(self) -> CallError | None: ...
    @property
    def source(self) -> Source | None: ...


WORST_FIRST = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.SKIPPED, Outcome.APPLIED)


class Tally:
    """Folds outcomes into one result for each resource: the worst of its calls."""

    def __init__(self) -> None:
        self._worst: dict[Key, ItemOutcome] = {}

    def add(self, item: ItemOutcome) -> None:
        """One more call's outcome."""
        worst = self._worst.get(item.key)
        if worst is None or WORST_FIRST.index(item.outcome) < WORST_FIRST.index(worst.outcome):
            self._worst[item.key] = item

    def results(self, changes: Sequence[Change], unsent: str) -> tuple[Result, ...]:
        """A result for each change, in their order; then whatever else was not applied.

        `unsent` is the reason of changes without any event.
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


def totals(results: Sequence[Result], requests: int, retries: int) -> Totals:
    """Count outcomes."""
    counts = Counter(result.outcome for result in results)
    return Totals(
        applied=counts[Outcome.APPLIED],
        failed=counts[Outcome.FAILED],
        skipped=counts[Outcome.SKIPPED],
        unknown=counts[Outcome.UNKNOWN],
        requests=requests,
        retries=retries,
    )


def status_of(results: Sequence[Result], *, sweep_wanted: bool, session: Session) -> RunStatus:
    """COMPLETE only when everything was applied, the sweep included."""
    swept = not sweep_wanted or session.outcome == "completed"
    return RunStatus.COMPLETE if swept and all(r.outcome is Outcome.APPLIED for r in results) else RunStatus.INCOMPLETE
