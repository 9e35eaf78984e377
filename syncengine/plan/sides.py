"""The two sides of a plan while they are read, the project at the head and at its base, as values."""

from __future__ import annotations

from dataclasses import dataclass, field

from syncengine.errors import Diagnostic, Severity, SyncengineError
from syncengine.plan.origins import BASE_INVALID
from syncengine.project.model import Project


@dataclass(slots=True)
class Sides:
    """The head and its base at `commit`. `base` is `None` when the base has no project or an invalid one.

    `tree` is the Git tree of their merge if `is_merged`.
    """

    head: Project
    commit: str
    base: Project | None = None
    is_merged: bool = False
    tree: str = ""
    found: list[Diagnostic] = field(default_factory=list)

    def warn(self, code: str, message: str) -> None:
        self.found.append(Diagnostic(severity=Severity.WARNING, code=code, message=message))


def invalid(name: str, error: SyncengineError) -> tuple[str, str]:
    """Return the code and the message of the warning about a base that cannot be planned."""
    first = next((d for d in error.diagnostics() if d.severity is Severity.ERROR), None)
    place = f"{first.file}:{first.line}: " if first and first.file and first.line else ""
    why = f"{place}{first.message}" if first else error.message
    return BASE_INVALID, f"{name} cannot be planned, so every change counts as this pull request's: {why}"
