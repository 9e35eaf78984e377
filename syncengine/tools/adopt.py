"""Parse a list of existing resources (CSV, JSON or YAML) into rows, or report every problem, and record the rows.

The header of a CSV file names the fields: `metadata.NAME` is a metadata entry, `kind` may give the kind of each row,
and list items are separated by `;` or line breaks. Empty cells are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from syncengine.document.diagnostics import Collector, in_order, suggestion
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Position, Scalar, quoted
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import Documents, read
from syncengine.document.text import decoded, with_line_feeds
from syncengine.document.validation import names_of
from syncengine.errors import Problems, Severity
from syncengine.manifest.declarations import declarations
from syncengine.manifest.read_file import resources_of
from syncengine.manifest.schema import IDENTITIES, LISTS, MODELS, NOT_TEXT, SECTIONS
from syncengine.manifest.sources.files import csv_records, likely_delimiter, misfit, starts_of
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.resource import ALTERNATIVES, ANY_CATEGORY, Key, Kind, Recorded, Resource, Status
from syncengine.state.store import State
from syncengine.tools.init.from_csv import names_matters
from syncengine.tools.state_edits import named_run

SECTIONS_KNOWN = frozenset({*SECTIONS, "defaults"})
SUFFIXES = (".csv", ".json", ".yaml", ".yml")


def listed(data: bytes, file: str) -> list[Recorded]:
    """Return the rows that a file lists. Raise `Problems` with every problem of the file.

    JSON and YAML files are manifests in which each resource may have a `serverId`; a bare list is a list of tags.
    """
    findings = Collector(file)
    if file.lower().endswith(".csv"):
        document = document_of(data, findings)
        documents = Documents(() if document is None else (document,))
    else:
        documents = read(data, findings)
    roots = tuple(_as_manifest(root) for root in documents.roots)
    ids = dict(_server_ids(roots, findings))
    declared = declarations(Documents(roots), findings)
    rows: dict[Key, Recorded] = {}
    for each, resource in zip(declared.resources, resources_of(declared, findings), strict=True):
        if resource is None:
            continue
        row = _row(resource, ids.get(id(each.node)))
        if rows.setdefault(row.key, row) is not row:
            findings.error("duplicate-resource", each.node, f"{row.key} is listed twice", str(row.key))
    if any(d.severity is Severity.ERROR for d in findings.found):
        raise Problems(in_order(d for d in findings.found if d.severity is Severity.ERROR))
    return list(rows.values())


def adopted(state: State, rows: list[Recorded], *, replaces: bool) -> list[Recorded]:
    """Record the rows, without those that are recorded already unless it `replaces` them. Return what was recorded."""
    with named_run(state, "adopt", os.environ) as counts:
        existing = {key for key, row in state.get(row.key for row in rows).items() if row.status is not Status.DELETED}
        new = rows if replaces else [row for row in rows if row.key not in existing]
        state.put(new)
        counts["applied"] = len(new)
    return new


def _row(resource: Resource, server_id: str | None) -> Recorded:
    """Return a row as if we had created the resource; a category without an id, which its tags need, is doubtful."""
    unknown = resource.key.kind is Kind.CATEGORY and server_id is None
    is_anywhere = resource.key.kind is Kind.TAG and not resource.body.fields.keys() & ALTERNATIVES.keys()
    return Recorded(
        resource.key,
        resource.body,
        doubtful=unknown,
        confirmed=not unknown,
        server_id=server_id,
        source=resource.source,
        protect=resource.protect,
        former_categories=(ANY_CATEGORY,) if is_anywhere else (),
    )


def _as_manifest(root: Node) -> Node:
    """Return the document as a manifest; a bare list is a list of tags."""
    if not isinstance(root, SequenceNode):
        return root
    return MappingNode([Scalar("tags", root.mark, "")], [root], root.mark)


def _server_ids(roots: Sequence[Node], findings: Collector) -> Iterator[tuple[int, str]]:
    """Remove `serverId` from every resource and yield each node's `id()` with the value; refuse unknown sections."""
    for root in roots:
        if not isinstance(root, MappingNode):
            continue
        for key, value in zip(root.keys, root.values, strict=True):
            if key.text not in SECTIONS_KNOWN:
                findings.error("unknown-section", key, f"list existing resources under {', '.join(SECTIONS)}")
            elif isinstance(value, SequenceNode):
                yield from _ids_of(value, findings)
        kept = [pair for pair in zip(root.keys, root.values, strict=True) if pair[0].text in SECTIONS_KNOWN]
        root.keys, root.values = [key for key, _ in kept], [value for _, value in kept]


def _ids_of(section: SequenceNode, findings: Collector) -> Iterator[tuple[int, str]]:
    for item in section.items:
        server_id = item.get(SERVER_ID) if isinstance(item, MappingNode) else None
        if server_id is None or not isinstance(item, MappingNode):
            continue
        at = [key.text for key in item.keys].index(SERVER_ID)
        del item.keys[at], item.values[at]
        if isinstance(server_id, Scalar) and not server_id.is_null and server_id.text.strip():
            yield id(item), server_id.text.strip()
        else:
            findings.error("bad-value", server_id, f"`{SERVER_ID}` must be the resource's id on the service, as text")


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
    columns = {name for model in MODELS.values() for name in names_of(model)} - {"metadata"} | {KIND, SERVER_ID}
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
