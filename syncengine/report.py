"""events → outcomes of changes, a report, an exit code; pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from syncengine.diff import Action
from syncengine.errors import Diagnostic
from syncengine.resource import Key, Source


class Outcome(StrEnum):
    """What became of one change. UNKNOWN: it was sent and no answer said what happened."""

    APPLIED = "applied"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


class Status(StrEnum):
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class CallError:
    """Why a change was not applied: the service's words, or ours where it had none.

    `index` is the item's position in the request that was sent; `status` the HTTP status, if one came.
    """

    message: str
    operation: str | None = None
    index: int | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
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
class Report:
    """All outcomes of one apply. `results` holds every change, in the plan's order."""

    plan: str | None
    status: Status
    totals: Totals
    session: Session
    results: tuple[Result, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
