"""Refuse data sources that have become empty, which rarely means "delete everything". Pure.

A source is judged by the number of rows that it had at the last apply. Older states did not record that number; for
them, the recorded resources made from the source decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

from syncengine.document.diagnostics import Collector
from syncengine.errors import Diagnostic, Problems
from syncengine.manifest.desired import Desired
from syncengine.manifest.sources.records import SourceUse
from syncengine.plan.provenance import origins, template_of
from syncengine.resource import Key, Recorded, Status


def refuse_emptied(desired: Desired, recorded: Mapping[Key, Recorded], had: Mapping[str, int]) -> None:
    """Raise `Problems` if sources have become empty. `had` has each source's rows at the last apply, by identity."""
    emptied = [use for use in desired.sources if use.is_empty]
    if not emptied:
        return
    rows = [row for row in recorded.values() if row.status is Status.ACTIVE]
    orphans = origins(rows, desired.resources).orphans.difference(desired.resources)
    counts = Counter(place for key in orphans if (place := _made_at(recorded[key], desired.files)))
    problems: list[Diagnostic] = []
    for use in emptied:
        why = _why(_lost(use, counts), had.get(use.identity, 0))
        if why:
            message = f"{use.name} has no rows, but {why}; set `allowEmpty: true` if that is intended"
            Collector(use.file, problems).at("source-empty", use.line, use.column, message)
    if problems:
        raise Problems(problems)


def _made_at(row: Recorded, manifests: Container[str]) -> tuple[str, str] | None:
    """Return the source of a row and its manifest, which is empty if that is no longer a manifest of the project."""
    template = template_of(row.source)
    return (template.data, template.file if template.file in manifests else "") if template else None


def _lost(use: SourceUse, counts: Mapping[tuple[str, str], int]) -> int:
    """Return the number of lost resources made from a source, or from a text template if no row is known."""
    return counts[use.name, use.file] + counts[use.name, ""] + counts[use.file, use.file]


def _why(count: int, rows: int) -> str:
    """Return why a source should have rows, or an empty text when it may be empty."""
    if count:
        return f"{count} resource{'s were' if count > 1 else ' was'} made from it before"
    return f"had {rows:,} row{'s' if rows > 1 else ''} at the last apply" if rows else ""
