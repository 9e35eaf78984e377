"""Parse a list of existing resources (CSV, JSON or YAML) into rows to record, or report every problem. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncengine.document.diagnostics import Collector, in_order
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Scalar
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import Documents, read
from syncengine.errors import Problems, Severity
from syncengine.manifest.declarations import declarations
from syncengine.manifest.read_file import resources_of
from syncengine.manifest.schema import SECTIONS
from syncengine.resource import ALTERNATIVES, ANY_CATEGORY, Key, Kind, Recorded, Resource
from syncengine.tools.adopt.tables import SERVER_ID, document_of

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
