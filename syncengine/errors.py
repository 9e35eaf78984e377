"""Diagnostics with their places, exceptions, and the table of codes by which an apply is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType


class ExitCode(IntEnum):
    """The exit codes of the process."""

    DONE = 0
    ERROR = 1
    CHANGES = 2
    INCOMPLETE = 3
    GATE = 4
    STALE = 5
    LOCKED = 6
    AUTH = 7
    INVALID = 8
    UNREACHABLE = 9
    USAGE = 64
    INTERRUPTED = 130


class RefusalKind(NamedTuple):
    """The exit code of an apply that is refused. `is_ours`: by our decision, not by an answer or the lack of one."""

    exit_code: ExitCode
    is_ours: bool = True


SOURCE_UNREACHABLE = "source-unreachable"
"""The code of an error about a source that cannot be reached, or goes on failing."""

REFUSALS: Mapping[str, RefusalKind] = {
    # Known before a plan is made, where the first problem ends the run: without files, service or lock there is none.
    "invalid": RefusalKind(ExitCode.INVALID),
    "other-service": RefusalKind(ExitCode.AUTH),
    "wrong-team": RefusalKind(ExitCode.AUTH),
    "auth-failed": RefusalKind(ExitCode.AUTH, is_ours=False),
    "locked": RefusalKind(ExitCode.LOCKED),
    "sandbox-in-use": RefusalKind(ExitCode.LOCKED),
    "new-state": RefusalKind(ExitCode.GATE),
    "no-state": RefusalKind(ExitCode.GATE),
    "state-rewound": RefusalKind(ExitCode.GATE),
    # Known of the plan, where all of them are found.
    "policy-denied": RefusalKind(ExitCode.GATE),
    "undone": RefusalKind(ExitCode.GATE),
    "gate": RefusalKind(ExitCode.GATE),
    "plan-inconsistent": RefusalKind(ExitCode.STALE),
    "plan-used": RefusalKind(ExitCode.STALE),
    "stale-plan": RefusalKind(ExitCode.STALE),
    "older-commit": RefusalKind(ExitCode.STALE),
    "not-merged": RefusalKind(ExitCode.STALE),
    "reviewed-missing": RefusalKind(ExitCode.STALE),
    "more-than-reviewed": RefusalKind(ExitCode.STALE),
    "inputs-changed": RefusalKind(ExitCode.STALE),
    SOURCE_UNREACHABLE: RefusalKind(ExitCode.UNREACHABLE),
    "unreachable": RefusalKind(ExitCode.UNREACHABLE, is_ours=False),
    "landing": RefusalKind(ExitCode.INCOMPLETE),
}
"""The codes by which an apply is refused, in order of precedence (docs/commands.md)."""


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Row(NamedTuple):
    """The place of the data behind a generated resource. `row` is a line of `file`, or a record number from 1."""

    file: str
    row: int


class Diagnostic(Struct, frozen=True, gc=False, kw_only=True):
    """One finding and its place. `file` is relative to the project's folder; `line` and `column` count from 1.

    `data` is the data row of a generated resource, which the message also names (`with_row`). `rule` is the name of the
    project rule that reports the finding.
    """

    severity: Severity
    code: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    address: str | None = None
    data: Row | None = None
    rule: str | UnsetType = UNSET  # left out of JSON without a rule


def with_row(message: str, data: Row | None, more: int = 0) -> str:
    """Return the message followed by its data row, and the number of further rows."""
    others = f", and {more:,} more row{'' if more == 1 else 's'}" if more else ""
    return f"{message} ({data.file}:{data.row}{others})" if data else message


def as_bug(error: BaseException) -> str:
    """Return a message that names an unexpected error by class only, since its own message may contain user data."""
    return f"{type(error).__name__} in syncengine, which is a bug"


class SyncengineError(Exception):
    """The base class of all expected errors. `code` is for machines; `exit_code` is the process's exit code.

    The exit code of a refusal is that of its code in `REFUSALS`. `found` are the diagnostics that an error consists of,
    if it is more than its message.
    """

    exit_code: ExitCode = ExitCode.ERROR
    code: str = "error"

    def __init__(self, message: str, *, code: str | None = None, found: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.message, self.found = message, tuple(found)
        self.code = code or self.code
        if (refusal := REFUSALS.get(self.code)) is not None:
            self.exit_code = refusal.exit_code

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the error as diagnostics, for machine-readable output."""
        return self.found or (Diagnostic(severity=Severity.ERROR, code=self.code, message=self.message),)


class GateTripped(SyncengineError):
    """A refusal of removals or other changes that somebody has to approve first."""

    code = "gate"


class PolicyDenied(GateTripped):
    """An error with a diagnostic for each denial by the project's rules."""

    code = "policy-denied"

    def __init__(self, found: Sequence[Diagnostic]) -> None:
        more = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
        super().__init__(f"denied: {found[0].message}{more}", found=found)


class Undone(GateTripped):
    """An error with a diagnostic for each undone run whose changes the manifests still contain."""

    code = "undone"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(diagnostic.message for diagnostic in diagnostics), found=diagnostics)


class StalePlan(SyncengineError):
    """A refusal of a plan that no longer fits the state, the files or what was reviewed."""

    code = "stale-plan"


class LockHeld(SyncengineError):
    code = "locked"


class MayLand(SyncengineError):
    """A run that may not wait until a call of an earlier run can no longer be executed. Nothing was sent."""

    code = "landing"


class AuthFailed(SyncengineError):
    code = "auth-failed"


class WrongTeam(SyncengineError):
    code = "wrong-team"


class Problems(SyncengineError):
    """An error with all diagnostics of the manifests or the project file, collected before it is raised.

    Its exit code is 9 if nothing but unreachable sources is wrong, since the same command then works once they answer.
    """

    code = "invalid"

    def __init__(self, found: Sequence[Diagnostic]) -> None:
        codes = [d.code for d in found if d.severity is Severity.ERROR]
        code = SOURCE_UNREACHABLE if {*codes} == {SOURCE_UNREACHABLE} else None
        super().__init__(f"{len(codes)} error{'' if len(codes) == 1 else 's'}", code=code, found=found)


class Unreachable(SyncengineError):
    """An unreachable service or host. Nothing was sent, so that the command can be repeated unchanged."""

    code = "unreachable"


class Usage(SyncengineError):
    exit_code, code = ExitCode.USAGE, "usage"


class Interrupted(SyncengineError):
    exit_code, code = ExitCode.INTERRUPTED, "interrupted"


class TroubleKind(StrEnum):
    """The reason why a sink, a lookup or a database cannot be used."""

    UNREACHABLE = "unreachable"
    AUTHENTICATION = "authentication"
    PERMISSIONS = "permissions"
    SUBSCRIPTION = "subscription"
    UNKNOWN = "unknown"
