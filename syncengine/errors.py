"""Diagnostics as facts with their place, and one exception class for each exit code.

SyncengineError                1   anything below, and errors without a code of their own
├── GateTripped                4   removals that nobody approved
│   ├── PolicyDenied           4   a rule of the project denies the plan
│   └── Undone                 4   the manifests still ask for changes of an undone run
├── StalePlan                  5   a saved plan that no longer fits, or an older commit
├── LockHeld                   6   another run holds the state
├── AuthFailed                 7   401
├── WrongTeam                  7   the key belongs to another team than the state
├── Problems                   8   manifests or project file: every diagnostic at once
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
    """The process's answer to its caller."""

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
    """The place of a generated resource's data: `row` is a line of the file, or a record number from 1."""

    file: str
    row: int


class Diagnostic(Struct, frozen=True, gc=False, kw_only=True):
    """One finding and its place. `file` is relative to the project's folder; `line` and `column` count from 1.

    `data` is the row that it is about, which the message says too (`with_row`); `rule` the project's own rule that
    finds it.
    """

    severity: Severity
    code: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    address: str | None = None
    data: Row | None = None
    rule: str | UnsetType = UNSET  # absent from files where no rule is


def with_row(message: str, data: Row | None, more: int = 0) -> str:
    """A message that names the data row, and how many more there are."""
    others = f", and {more:,} more row{'' if more == 1 else 's'}" if more else ""
    return f"{message} ({data.file}:{data.row}{others})" if data else message


def as_bug(error: Exception) -> str:
    """Name an unexpected error by its class alone: its message may hold anybody's data."""
    return f"{type(error).__name__} in syncengine, which is a bug"


class SyncengineError(Exception):
    """The root: `code` names the trouble for machines, `exit_code` is the exit code of the process."""

    exit_code: ExitCode = ExitCode.ERROR
    code: str = "error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The same trouble as diagnostics, for machine-readable output."""
        return (Diagnostic(severity=Severity.ERROR, code=self.code, message=self.message),)


class GateTripped(SyncengineError):
    exit_code, code = ExitCode.GATE, "gate"


class PolicyDenied(GateTripped):
    """Everything that the project's rules deny."""

    code = "policy-denied"

    def __init__(self, found: Sequence[Diagnostic]) -> None:
        more = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
        super().__init__(f"denied: {found[0].message}{more}")
        self.found = tuple(found)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.found


class Undone(GateTripped):
    """A finding for each undone run whose changes are still asked for."""

    code = "undone"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(diagnostic.message for diagnostic in diagnostics))
        self.found = tuple(diagnostics)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.found


class StalePlan(SyncengineError):
    exit_code, code = ExitCode.STALE, "stale-plan"


class LockHeld(SyncengineError):
    exit_code, code = ExitCode.LOCKED, "locked"


class AuthFailed(SyncengineError):
    exit_code, code = ExitCode.AUTH, "auth-failed"


class WrongTeam(SyncengineError):
    exit_code, code = ExitCode.AUTH, "wrong-team"


class Problems(SyncengineError):
    """Everything that is wrong with the manifests or the project file, collected before refusing once."""

    exit_code, code = ExitCode.INVALID, "invalid"

    def __init__(self, found: Sequence[Diagnostic]) -> None:
        errors = sum(d.severity is Severity.ERROR for d in found)
        super().__init__(f"{errors} error{'' if errors == 1 else 's'}")
        self.found = tuple(found)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.found


class Unreachable(SyncengineError):
    """Nothing was sent, so repeating the command unchanged is safe whatever the cause."""

    exit_code, code = ExitCode.UNREACHABLE, "unreachable"


class Usage(SyncengineError):
    exit_code, code = ExitCode.USAGE, "usage"


class Interrupted(SyncengineError):
    exit_code, code = ExitCode.INTERRUPTED, "interrupted"
