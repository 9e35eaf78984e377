"""Refuse data sources that were not empty before and are now: that rarely means "delete everything". Pure.

A source is judged by the number of rows it had when it was last applied. Older states did not record that number; for
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
    """Problems for each source that is empty and was not; `had` are the rows of sources, by their identity."""
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
            message = f"{use.name} has no rows, and {why}; write `allowEmpty: true` if that is right"
            Collector(use.file, problems).at("source-empty", use.line, use.column, message)
    if problems:
        raise Problems(problems)


def _made_at(row: Recorded, manifests: Container[str]) -> tuple[str, str] | None:
    """The source of a row, and its manifest; nothing in its place where that is none any more."""
    template = template_of(row.source)
    return (template.data, template.file if template.file in manifests else "") if template else None


def _lost(use: SourceUse, counts: Mapping[tuple[str, str], int]) -> int:
    """The number of resources that were made of the source; of a text template also those of no known row."""
    return counts[use.name, use.file] + counts[use.name, ""] + counts[use.file, use.file]


def _why(count: int, rows: int) -> str:
    """Why it should have some; nothing if it need not."""
    if count:
        return f"{count} resource{'s were' if count > 1 else ' was'} made from it before"
    return f"had {rows:,} row{'s' if rows > 1 else ''} when it was applied last" if rows else ""
