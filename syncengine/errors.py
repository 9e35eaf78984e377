"""Diagnostics with their places, and one exception class for each exit code.

SyncengineError                1   the base class, and errors without an exit code of their own
├── GateTripped                4   removals without approval
│   ├── PolicyDenied           4   a rule of the project denies the plan
│   └── Undone                 4   the manifests still ask for changes of an undone run
├── StalePlan                  5   a saved plan that no longer fits, or an older commit
├── LockHeld                   6   another run holds the state
├── AuthFailed                 7   401
├── WrongTeam                  7   the key belongs to another team than the state
├── Problems                   8   manifests or project file: every diagnostic at once (9: a source is unreachable)
├── Unreachable                9   nothing was sent
├── Usage                     64
└── Interrupted              130
"""

from __future__ import annotations

from collections.abc import Sequence
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

    `found` are the diagnostics that an error consists of, if it is more than its message.
    """

    exit_code: ExitCode = ExitCode.ERROR
    code: str = "error"

    def __init__(self, message: str, *, code: str | None = None, found: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.message, self.found = message, tuple(found)
        if code is not None:
            self.code = code

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the error as diagnostics, for machine-readable output."""
        return self.found or (Diagnostic(severity=Severity.ERROR, code=self.code, message=self.message),)


class GateTripped(SyncengineError):
    exit_code, code = ExitCode.GATE, "gate"


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
    exit_code, code = ExitCode.STALE, "stale-plan"


class LockHeld(SyncengineError):
    exit_code, code = ExitCode.LOCKED, "locked"


class MayLand(SyncengineError):
    """A run that may not wait until a call of an earlier run can no longer be executed. Nothing was sent."""

    exit_code, code = ExitCode.INCOMPLETE, "landing"


class AuthFailed(SyncengineError):
    exit_code, code = ExitCode.AUTH, "auth-failed"


class WrongTeam(SyncengineError):
    exit_code, code = ExitCode.AUTH, "wrong-team"


SOURCE_UNREACHABLE = "source-unreachable"
"""The code of an error about a source that cannot be reached, or goes on failing."""


class Problems(SyncengineError):
    """An error with all diagnostics of the manifests or the project file, collected before it is raised.

    Its exit code is 9 if nothing but unreachable sources is wrong, since the same command then works once they answer.
    """

    exit_code, code = ExitCode.INVALID, "invalid"

    def __init__(self, found: Sequence[Diagnostic]) -> None:
        codes = [d.code for d in found if d.severity is Severity.ERROR]
        super().__init__(f"{len(codes)} error{'' if len(codes) == 1 else 's'}", found=found)
        if codes and {*codes} == {SOURCE_UNREACHABLE}:
            self.exit_code = ExitCode.UNREACHABLE


class Unreachable(SyncengineError):
    """An unreachable service or host. Nothing was sent, so that the command can be repeated unchanged."""

    exit_code, code = ExitCode.UNREACHABLE, "unreachable"


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
