"""bytes of a `.yaml.j2` file → what it declares, every place in the template's own lines. Reads sources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from syncengine.document.findings import Findings
from syncengine.errors import Diagnostic, with_row
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.entries import Entry
from syncengine.manifest.given import Given
from syncengine.manifest.reading import DefaultCategory, Reading, RemovedEntry, read_manifest
from syncengine.manifest.records import SourceUse
from syncengine.manifest.template_files import Rendered, render
from syncengine.manifest.template_places import Origin
from syncengine.resource import Source

Placed = TypeVar("Placed", RemovedEntry, DefaultCategory, SourceUse)
_IN_LINE = re.compile(r"\bin line (\d+)$")


def read_template(data: bytes, file: str, defaults: DefaultValues, given: Given) -> Reading:
    """What the rendered file declares over the project's `defaults`."""
    findings = Findings(file)
    rendered = render(data, file, given, findings)
    if rendered is None:
        return Reading(file, found=tuple(findings.found), whole=False)
    reading = read_manifest(rendered.text.encode("utf-8", "surrogatepass"), file, defaults, given)
    if reading.sources and not rendered.may_generate:
        findings.at("bad-template", 1, 1, "the section `generate:` must be written out in a template, not made by one")
        return Reading(file, found=tuple(findings.found), whole=False)
    return relocated(reading, rendered, {file: data.decode("utf-8-sig").split("\n")})


def relocated(reading: Reading, rendered: Rendered, texts: Mapping[str, Sequence[str]]) -> Reading:
    """A reading of the result as one of the template."""

    places = rendered.places

    def declared(entry: Entry) -> Entry:
        old = entry.resource.source
        at = places.at(old.line, entry.column)
        source = Source(at.file, at.line, old.data or at.data)
        return replace(entry, resource=replace(entry.resource, source=source), column=_column(texts, at))

    def moved(each: Placed) -> Placed:
        at = places.at(each.line, each.column)
        return replace(each, file=at.file, line=at.line, column=_column(texts, at))

    def told(d: Diagnostic) -> Diagnostic:
        if d.line is None:
            return d
        at = places.at(d.line, d.column or 1)
        message = _IN_LINE.sub(lambda m: f"in line {places.line(int(m[1]))}", d.message)
        if d.data is None:
            message = with_row(message, at.data)
        return replace(
            d, file=at.file, line=at.line, column=_column(texts, at), message=message, data=d.data or at.data
        )

    uses = (
        SourceUse(source.name, source.identity, len(source.rows), allowed, reading.file, line, 1)
        for source, line, allowed in rendered.sources
    )
    return replace(
        reading,
        entries=tuple(map(declared, reading.entries)),
        removed=tuple(map(moved, reading.removed)),
        default_categories=tuple(map(moved, reading.default_categories)),
        found=tuple(map(told, reading.found)),
        sources=(*map(moved, reading.sources), *dict.fromkeys(uses)),
    )


def _column(texts: Mapping[str, Sequence[str]], at: Origin) -> int:
    """Where the template's line begins: what is written in it may stand anywhere in the result."""
    lines = texts.get(at.file, ())
    text = lines[at.line - 1] if at.line <= len(lines) else ""
    return len(text) - len(text.lstrip()) + 1
