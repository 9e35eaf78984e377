"""Define the outcomes of an apply: of its changes, of its sync session and of the whole run. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from syncengine.errors import (
    Diagnostic,
    ExitCode,
    GateTripped,
    LockHeld,
    MayLand,
    Problems,
    StalePlan,
    SyncengineError,
    Usage,
    WrongTeam,
)
from syncengine.plan.approvals import Approval
from syncengine.plan.diff import Action
from syncengine.resource import Key, Source


class Outcome(StrEnum):
    """The outcome of one change. UNKNOWN: it was sent, and no answer revealed its outcome."""

    APPLIED = "applied"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


class RunStatus(StrEnum):
    """The final status of a run. FAILED and REFUSED: nothing was applied, with REFUSED by our own decision."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    REFUSED = "refused"


REFUSALS = (GateTripped, StalePlan, LockHeld, WrongTeam, Problems, Usage)
"""Errors by which we decide, before sending anything, not to apply."""

RECORDED_EXITS = frozenset(kind.exit_code for kind in REFUSALS) - {ExitCode.USAGE}
"""Exit codes that the history shows as refused: refusals except usage errors; a rejected API key shares one of them."""


def status_after(error: SyncengineError) -> RunStatus:
    """Return the status of an apply that `error` ended before anything was applied."""
    return RunStatus.REFUSED if isinstance(error, (*REFUSALS, MayLand)) else RunStatus.FAILED


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
