"""Parse a list of existing resources (CSV, JSON or YAML) into rows, or report every problem, and record the rows.

The header of a CSV file names the fields: `metadata.NAME` is a metadata entry, `kind` may give the kind of each row,
and list items are separated by `;` or line breaks. Empty cells are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from syncengine.document.diagnostics import Collector, in_order, suggestion
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Position, Scalar, quoted
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import Documents, read
from syncengine.document.text import with_line_feeds
from syncengine.document.validation import names_of
from syncengine.errors import Problems, Severity
from syncengine.manifest.read_file import resources_of
from syncengine.manifest.resources import declarations
from syncengine.manifest.schema import IDENTITIES, LISTS, MODELS, NOT_TEXT, SECTIONS
from syncengine.manifest.sources.files import (
    csv_records,
    encoding_of,
    likely_delimiter,
    starts_of,
    text_of,
    width_trouble,
)
from syncengine.manifest.sources.records import BAD_SOURCE, SourceTrouble
from syncengine.resource import ALTERNATIVES, ANY_CATEGORY, Key, Kind, Recorded, Status
from syncengine.state.store import State
from syncengine.tools.init.from_csv import names_matters
from syncengine.tools.state_edits import named_run

SECTIONS_KNOWN = frozenset({*SECTIONS, "defaults"})
SUFFIXES = (".csv", ".json", ".yaml", ".yml")
METADATA, KIND, SERVER_ID = "metadata.", "kind", "serverId"
_BETWEEN = re.compile(r"\s*[;\n]\s*")
_KINDS = {kind.value: section for section, kind in SECTIONS.items()}


def listed(data: bytes, file: str) -> list[Recorded]:
    """Return the rows that a file lists. Raise `Problems` with every problem of the file.

    JSON and YAML files are manifests in which each resource may have a `serverId`; a bare list is a list of tags.
    """
    findings = Collector(file)
    if file.lower().endswith(".csv"):
        table = document_of(data, findings)
        roots: tuple[Node, ...] = () if table is None else (table,)
    else:
        roots = tuple(
            MappingNode([Scalar("tags", root.mark, "")], [root], root.mark) if isinstance(root, SequenceNode) else root
            for root in read(data, findings).roots
        )
    ids = dict(_server_ids(roots, findings))
    declared = declarations(Documents(roots), findings)
    rows: dict[Key, Recorded] = {}
    for (_, node), resource in zip(declared.resources, resources_of(declared, findings), strict=True):
        if resource is None:
            continue
        key, server_id = resource.key, ids.get(id(node))
        # As if we had created it. The tags of a category need its id, so that one without it is sent again.
        is_unknown = key.kind is Kind.CATEGORY and server_id is None
        is_anywhere = key.kind is Kind.TAG and not resource.body.fields.keys() & ALTERNATIVES.keys()
        row = Recorded(
            key,
            resource.body,
            doubtful=is_unknown,
            confirmed=not is_unknown,
            server_id=server_id,
            source=resource.source,
            protect=resource.protect,
            former_categories=(ANY_CATEGORY,) if is_anywhere else (),
        )
        if rows.setdefault(key, row) is not row:
            findings.error("duplicate-resource", node, f"{key} is listed twice", str(key))
    if errors := [d for d in findings.found if d.severity is Severity.ERROR]:
        raise Problems(in_order(errors))
    return list(rows.values())


def adopted(state: State, rows: list[Recorded], *, replaces: bool) -> list[Recorded]:
    """Record the rows, without those that are recorded already unless it `replaces` them. Return what was recorded."""
    with named_run(state, "adopt", os.environ) as counts:
        existing = {key for key, row in state.get(row.key for row in rows).items() if row.status is not Status.DELETED}
        new = rows if replaces else [row for row in rows if row.key not in existing]
        state.put(new)
        counts["applied"] = len(new)
    return new


def _server_ids(roots: Sequence[Node], findings: Collector) -> Iterator[tuple[int, str]]:
    """Remove `serverId` from every resource and yield each node's `id()` with the value; refuse unknown sections."""
    for root in roots:
        if not isinstance(root, MappingNode):
            continue
        for key, value in zip(root.keys, root.values, strict=True):
            if key.text not in SECTIONS_KNOWN:
                findings.error("unknown-section", key, f"list existing resources under {', '.join(SECTIONS)}")
                continue
            for item in value.items if isinstance(value, SequenceNode) else ():
                found = item.get(SERVER_ID) if isinstance(item, MappingNode) else None
                if found is None or not isinstance(item, MappingNode):
                    continue
                at = [key.text for key in item.keys].index(SERVER_ID)
                del item.keys[at], item.values[at]
                if isinstance(found, Scalar) and not found.is_null and found.text.strip():
                    yield id(item), found.text.strip()
                else:
                    message = f"`{SERVER_ID}` must be the resource's id on the service, as text"
                    findings.error("bad-value", found, message)
        kept = [pair for pair in zip(root.keys, root.values, strict=True) if pair[0].text in SECTIONS_KNOWN]
        root.keys, root.values = [key for key, _ in kept], [value for _, value in kept]


# --- tables


@dataclass(frozen=True, slots=True)
class RowStart:
    """The line in which a row starts, from 0, and the columns of its cells; a cell after a line break has none."""

    number: int
    starts: Sequence[int] = ()

    def place(self, cell: int = 0) -> Position:
        return Position(self.number, self.starts[cell] - 1 if cell < len(self.starts) else 0)


def document_of(data: bytes, findings: Collector) -> MappingNode | None:
    """Return the rows as the document of a manifest, or `None` when the file as a whole has a problem."""
    try:
        text = with_line_feeds(text_of(data, findings.file, encoding_of(data, findings.file)))
    except SourceTrouble as trouble:
        findings.at("not-text" if trouble.code == BAD_SOURCE else trouble.code, trouble.line, 1, trouble.message)
        return None
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
                findings.at("csv-syntax", line, 1, width_trouble(row, header, delimiter))
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
    """Add a row as a resource to its section: that of its kind, else that of the identity column in the header."""
    cells = {
        name: (cell, line.place(n)) for n, (name, cell) in enumerate(zip(header, row, strict=True)) if cell.strip()
    }
    kind, where = cells.pop(KIND, ("", line.place()))
    # A category comes last, since its `externalId` is also a field of tags.
    by_identity = (kind.value for kind in (Kind.TAG, Kind.ACTIVITY_TYPE, Kind.CATEGORY) if IDENTITIES[kind] in header)
    section = _KINDS.get(kind.strip() or next(by_identity, ""))
    if section is None:
        findings.at("bad-value", where.line + 1, where.column + 1, f"`{KIND}` must be {' or '.join(_KINDS)}")
        return
    start = line.place()
    fields: dict[str, Node] = {}
    metadata = MappingNode([], [], start)
    for name, (cell, at) in cells.items():
        if name.startswith(METADATA):
            metadata.keys.append(Scalar(name.removeprefix(METADATA), at, '"'))
            metadata.values.append(Scalar(cell, at, '"'))
        elif name in LISTS:
            fields[name] = SequenceNode([Scalar(word, at, '"') for word in _BETWEEN.split(cell.strip()) if word], at)
        elif name in NOT_TEXT:
            fields[name] = Scalar(cell.strip().lower() if cell.strip().isalpha() else cell.strip(), at, "")
        else:
            fields[name] = Scalar(cell, at, '"')
    if metadata.keys:
        fields["metadata"] = metadata
    item = MappingNode([Scalar(name, start, "") for name in fields], list(fields.values()), start)
    items.setdefault(section, []).append(item)
