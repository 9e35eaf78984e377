"""Parse a CSV file into the document of a manifest with the same resources. Pure.

The header names the fields: `metadata.NAME` is a metadata entry, `kind` may give the kind of each row, and list items
are separated by `;` or line breaks. Empty cells are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncengine.document.diagnostics import Collector, suggestion
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Position, Scalar, quoted
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.text import decoded, with_line_feeds
from syncengine.manifest.schema import IDENTITIES, LISTS, NOT_TEXT, RESOURCE_TABLES, SECTIONS
from syncengine.manifest.sources.files import csv_records, likely_delimiter, misfit, starts_of
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.resource import Kind
from syncengine.tools.init.columns import names_matters

METADATA = "metadata."
KIND, SERVER_ID = "kind", "serverId"
_BETWEEN = re.compile(r"\s*[;\n]\s*")
_KINDS = {kind.value: section for section, kind in SECTIONS.items()}


@dataclass(frozen=True, slots=True)
class RowStart:
    """The line in which a row starts, from 0, and the columns of its cells; a cell after a line break has none."""

    number: int
    starts: Sequence[int] = ()

    def place(self, cell: int = 0) -> Position:
        return Position(self.number, self.starts[cell] - 1 if cell < len(self.starts) else 0)


def document_of(data: bytes, findings: Collector) -> MappingNode | None:
    """Return the rows as the document of a manifest, or `None` when the file as a whole has a problem."""
    text = decoded(data, findings)
    if text is None:
        return None
    text = with_line_feeds(text)
    lines, delimiter = text.split("\n"), likely_delimiter(text)
    items: dict[str, list[Node]] = {}
    try:
        records = csv_records(text, delimiter)
        line, names = next(records, (1, []))
        header = [name.strip() for name in names]
        if not _header_is_good(header, RowStart(line - 1, starts_of(lines[line - 1], delimiter)), findings):
            return None
        for line, row in records:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                findings.at("csv-syntax", line, 1, misfit(row, header, delimiter))
            else:
                _take(header, row, RowStart(line - 1, starts_of(lines[line - 1], delimiter)), items, findings)
    except SourceTrouble as trouble:
        findings.at("csv-syntax", trouble.line, 1, trouble.message)
        return None
    start = Position()
    return MappingNode(
        [Scalar(section, start, "") for section in items],
        [SequenceNode(found, start) for found in items.values()],
        start,
    )


def _header_is_good(header: Sequence[str], start: RowStart, findings: Collector) -> bool:
    columns = {name for table in RESOURCE_TABLES.values() for name in table.readers} - {"metadata"} | {KIND, SERVER_ID}
    before = len(findings.found)
    is_named = bool({KIND, *IDENTITIES.values()} & set(header))
    likely = None if is_named else next(filter(names_matters, header), None)
    for number, name in enumerate(header):
        line, column = start.number + 1, start.place(number).column + 1
        if name in header[:number]:
            findings.at("duplicate-column", line, column, f"two columns are named {quoted(name)}")
        elif name not in columns and not (name.startswith(METADATA) and name != METADATA):
            hint = suggestion(name, columns) or f"; write `{METADATA}{name}` if it is metadata" * bool(name)
            if name == likely:
                hint = "; if it has the names of the tags, write `name` there (docs/moving.md)"
            findings.at("unknown-column", line, column, f"there is no field {quoted(name)}{hint}")
    if not is_named:
        message = "the header needs an identity column: `name`, `externalId` or `code`"
        findings.at("missing-column", start.number + 1, 1, message)
    return len(findings.found) == before


def _take(
    header: Sequence[str], row: Sequence[str], line: RowStart, items: dict[str, list[Node]], findings: Collector
) -> None:
    cells = {
        name: (cell, line.place(n)) for n, (name, cell) in enumerate(zip(header, row, strict=True)) if cell.strip()
    }
    kind, where = cells.pop(KIND, ("", line.place()))
    section = _section(header, kind.strip())
    if section is None:
        findings.at("bad-value", where.line + 1, where.column + 1, f"`{KIND}` must be {' or '.join(_KINDS)}")
        return
    items.setdefault(section, []).append(_item(cells, line.place()))


def _section(header: Sequence[str], kind: str) -> str | None:
    """Return the section of a row: by its kind, else by the identity column in the header."""
    if kind:
        return _KINDS.get(kind)
    kinds = (Kind.TAG, Kind.ACTIVITY_TYPE, Kind.CATEGORY)
    found = next((kind for kind in kinds if IDENTITIES[kind] in header), None)
    return next((section for section, kind in SECTIONS.items() if kind is found), None)


def _item(cells: Mapping[str, tuple[str, Position]], at: Position) -> MappingNode:
    fields: dict[str, Node] = {
        name: _value(name, cell, where) for name, (cell, where) in cells.items() if not name.startswith(METADATA)
    }
    entries = {name.removeprefix(METADATA): cell for name, cell in cells.items() if name.startswith(METADATA)}
    if entries:
        keys = [Scalar(name, where, '"') for name, (_, where) in entries.items()]
        fields["metadata"] = MappingNode(keys, [Scalar(cell, where, '"') for cell, where in entries.values()], at)
    return MappingNode([Scalar(name, at, "") for name in fields], list(fields.values()), at)


def _value(name: str, cell: str, at: Position) -> Node:
    if name in LISTS:
        return SequenceNode([Scalar(word, at, '"') for word in _BETWEEN.split(cell.strip()) if word], at)
    if name in NOT_TEXT:
        return Scalar(cell.strip().lower() if cell.strip().isalpha() else cell.strip(), at, "")
    return Scalar(cell, at, '"')
