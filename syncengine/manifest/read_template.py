"""The bytes of a text template → its declarations, with places in the template's own lines. Reads sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from syncengine.document.diagnostics import Collector
from syncengine.errors import Diagnostic, Row
from syncengine.manifest.context import LoadContext
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.generate.source_map import Places
from syncengine.manifest.generate.text_templates import Rendered, render
from syncengine.manifest.lints import Alike
from syncengine.manifest.read_file import read_manifest
from syncengine.manifest.reading import CategoryReference, Reading
from syncengine.manifest.sources.records import SourceUse
from syncengine.resource import Removed, Resource, Source

Declared = TypeVar("Declared", Resource, Removed)
Placed = TypeVar("Placed", CategoryReference, SourceUse)


def read_template(data: bytes, file: str, defaults: DefaultValues, context: LoadContext) -> Reading:
    """Render a text template, and return its declarations over the project's `defaults`."""
    findings = Collector(file)
    result = render(data, file, context, findings)
    if result is None:
        return Reading(file, found=tuple(findings.found), whole=False)
    text = result.text.encode("utf-8", "surrogatepass")
    reading = read_manifest(text, file, defaults, context, line_of=result.places.line)
    if reading.sources and not result.may_generate:
        message = "`generate:` must be written in the file itself, not produced by an expression"
        findings.at("bad-template", 1, 1, message)
        return Reading(file, found=tuple(findings.found), whole=False)
    return relocated(reading, result, data.decode("utf-8-sig").split("\n"))


def relocated(reading: Reading, result: Rendered, lines: Sequence[str]) -> Reading:
    """Return the reading of a rendered text with its places moved to the template, whose lines are `lines`."""
    move = _Move(result.places, reading.file, lines)
    empty = ", ".join(dict.fromkeys(use.name for use in result.sources if use.is_empty))
    return replace(
        reading,
        resources=tuple(map(move.declared, reading.resources)),
        removed=tuple(map(move.declared, reading.removed)),
        default_categories=tuple(map(move.placed, reading.default_categories)),
        found=tuple(_without_repeats(move.diagnostic(d, empty) for d in reading.found)),
        sources=(*map(move.placed, reading.sources), *dict.fromkeys(result.sources)),
    )


def _without_repeats(pairs: Iterable[tuple[Diagnostic, Row | None]]) -> Iterator[Diagnostic]:
    """Yield the diagnostics, with one for all rows that have the same message at the same place."""
    alike = Alike()
    for diagnostic, row in pairs:
        if row is None:
            yield diagnostic
        else:
            alike.add(diagnostic, row)
    yield from alike.diagnostics()


@dataclass(frozen=True, slots=True)
class _Move:
    """A mapping of places in a rendered text to places in its template."""

    places: Places
    file: str
    lines: Sequence[str]

    def declared(self, each: Declared) -> Declared:
        at = self.places.at(each.source.line, each.column)
        data = each.source.data or at.data if isinstance(each, Resource) else None
        return replace(each, source=at._replace(data=data), column=self._column(at))

    def placed(self, each: Placed) -> Placed:
        at = self.places.at(each.line, each.column)
        return replace(each, file=at.file, line=at.line, column=self._column(at))

    def diagnostic(self, d: Diagnostic, empty: str) -> tuple[Diagnostic, Row | None]:
        """Return the diagnostic at its place in the template, and its row unless its message names one already.

        `empty` names the sources without rows, which may explain a missing value.
        """
        if d.line is None:
            return d, None
        at = self.places.at(d.line, d.column or 1)
        message = f"{d.message} (no rows in {empty})" if d.code == "null-value" and empty else d.message
        moved = replace(d, file=at.file, line=at.line, column=self._column(at), message=message)
        return (moved, None) if d.data else (moved, at.data)

    def _column(self, at: Source) -> int:
        """Return the column at which the template's line begins, since its text may be anywhere in the result."""
        text = self.lines[at.line - 1] if at.file == self.file and at.line <= len(self.lines) else ""
        return len(text) - len(text.lstrip()) + 1
