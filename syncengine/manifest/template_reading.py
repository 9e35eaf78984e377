"""bytes of a `.yaml.j2` file → what it declares, every place in the template's own lines. Reads sources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from syncengine.document.findings import Findings
from syncengine.errors import Diagnostic, with_row
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.given import Given
from syncengine.manifest.reading import Emptied, Reading, read_manifest
from syncengine.manifest.template_files import Origin, Rendered, render
from syncengine.resource import Source

_IN_LINE = re.compile(r"\bin line (\d+)$")


def read_template(data: bytes, file: str, defaults: DefaultValues, given: Given) -> Reading:
    """What the rendered file declares over the project's `defaults`."""
    findings = Findings(file)
    rendered = render(data, file, given, findings)
    if rendered is None:
        return Reading(file, found=tuple(findings.found), whole=False)
    reading = read_manifest(rendered.text.encode("utf-8", "surrogatepass"), file, defaults, given)
    return relocated(reading, rendered, {file: data.decode("utf-8-sig").split("\n")})


def relocated(reading: Reading, rendered: Rendered, texts: Mapping[str, Sequence[str]]) -> Reading:
    """A reading of the result as one of the template."""

    def origin(line: int) -> Origin:
        return rendered.origins[min(max(line, 1), len(rendered.origins)) - 1]

    def source(old: Source) -> Source:
        at = origin(old.line)
        return Source(at.file, at.line, old.data or at.data)

    def told(d: Diagnostic) -> Diagnostic:
        if d.line is None:
            return d
        at = origin(d.line)
        message = _IN_LINE.sub(lambda m: f"in line {origin(int(m[1])).line}", d.message)
        column = _column(texts, at)
        if d.data is None:
            message = with_row(message, at.data)
        return replace(d, file=at.file, line=at.line, column=column, message=message, data=d.data or at.data)

    emptied = tuple(Emptied(s.name, line, 1) for s, line, allowed in rendered.sources if not s.rows and not allowed)
    return replace(
        reading,
        entries=tuple(
            replace(entry, resource=replace(entry.resource, source=source(entry.resource.source)))
            for entry in reading.entries
        ),
        removed=tuple(replace(line, line=origin(line.line).line) for line in reading.removed),
        default_categories=tuple(replace(c, line=origin(c.line).line) for c in reading.default_categories),
        found=tuple(told(d) for d in reading.found),
        emptied=(*reading.emptied, *emptied),
    )


def _column(texts: Mapping[str, Sequence[str]], at: Origin) -> int:
    """Where the template's line begins: what is written in it may stand anywhere in the result."""
    lines = texts.get(at.file, ())
    text = lines[at.line - 1] if at.line <= len(lines) else ""
    return len(text) - len(text.lstrip()) + 1
