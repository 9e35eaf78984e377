"""Warn of sinks whose deliveries may come twice. Pure."""

from __future__ import annotations

from syncengine.errors import Diagnostic, Severity
from syncengine.project.delivery_schema import Mode
from syncengine.project.load import AT_LEAST_ONCE, levelled
from syncengine.project.model import Project


def warnings_of_sinks(project: Project) -> list[Diagnostic]:
    """Return the warnings about the project's sinks, at the project's levels: some may be errors, or left out."""
    section = project.posted_time
    if section is None or section.mode is Mode.OFF:
        return []
    warnings = [
        Diagnostic(
            severity=Severity.WARNING,
            code=AT_LEAST_ONCE,
            message=f"{sink.name.text} may get time twice, if an answer is lost and it ignores `Idempotency-Key`:"
            " write `find`, by which it is asked first",
            file=project.config_name,
            line=sink.name.line,
            column=sink.name.column,
        )
        for sink in section.deliver or ()
        if sink.http is not None and sink.http.find is None
    ]
    return levelled(warnings, project.policy.diagnostics)
