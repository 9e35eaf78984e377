"""The bytes of one manifest → its declarations, as plain values that a cache can store; pure.

Places within resources are not stored: reports look up the few that they need (`nodes_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Scalar, items, place
from syncengine.document.reader import Documents, read
from syncengine.manifest.context import LoadContext
from syncengine.manifest.lints import curly_texts, cut_texts, report_silence
from syncengine.manifest.resources import (
    CategoryReference,
    Declarations,
    DefaultValues,
    Reading,
    declarations,
    merge,
    resource_of,
)
from syncengine.manifest.schema import IDENTITIES, SECTIONS
from syncengine.resource import Key, Kind, Resource

NO_DEFAULTS = DefaultValues()


def read_manifest(
    data: bytes,
    file: str,
    defaults: DefaultValues = NO_DEFAULTS,
    context: LoadContext | None = None,
    line_of: Callable[[int], int] = int,
) -> Reading:
    """Return the declarations of a file over the project's `defaults`; its `generate` blocks may use `context`.

    `line_of` maps a line to the line that messages name, as in `Collector`.
    """
    findings = Collector(file, line_of=line_of)
    return read_documents(read(data, findings), findings, defaults, context)


def nodes_of(data: bytes, file: str) -> dict[Key | int, MappingNode]:
    """Return the first node of each declared resource by key, and of each resource in a `generate` block by line."""
    findings = Collector(file)
    nodes: dict[Key | int, MappingNode] = {}
    all_of_it = declarations(read(data, findings), findings)
    for kind, node in all_of_it.resources:
        if isinstance(name := node.get(IDENTITIES[kind]), Scalar):
            nodes.setdefault(Key(kind, name.text), node)
    for block in all_of_it.generate:
        for section in SECTIONS:
            for item in items(block.get(section)):
                if isinstance(item, MappingNode):
                    nodes.setdefault(place(item)[0], item)
    return nodes


def read_documents(
    documents: Documents,
    findings: Collector,
    defaults: DefaultValues = NO_DEFAULTS,
    context: LoadContext | None = None,
) -> Reading:
    """Return the declarations in parsed documents."""
    file = findings.file
    declared = declarations(documents, findings)
    cut_texts(documents.cut, findings)
    curly_texts(documents.curly, findings)
    under = _under(defaults, declared.defaults.values)
    found = [(kind, resource_of(kind, node, under[kind], findings)) for kind, node in declared.resources]
    by_hand = [resource for _, resource in found if resource is not None]
    from_rows = Reading(file)
    if declared.generate:
        from syncengine.manifest.generate.block import generated  # templates and sources cost more than most manifests

        from_rows = generated(declared.generate, context or LoadContext(), under, findings)
    resources = (*by_hand, *from_rows.resources)
    report_silence(resources, findings)
    return replace(
        from_rows,
        resources=resources,
        removed=tuple(declared.removed),
        default_categories=tuple(default_categories(declared.defaults)),
        found=tuple(findings.found),
        whole=declared.whole and from_rows.whole and (Kind.CATEGORY, None) not in found,
    )


def _under(project: DefaultValues, own: Mapping[Kind, Mapping[str, Any]]) -> dict[Kind, Mapping[str, Any]]:
    return {kind: merge(project.values.get(kind, {}), own.get(kind, {})) for kind in Kind}


def resources_of(declared: Declarations, findings: Collector) -> list[Resource | None]:
    """Return each resource over its own file's defaults, with `None` for an identity that cannot be read."""
    under = _under(NO_DEFAULTS, declared.defaults.values)
    return [resource_of(kind, node, under[kind], findings) for kind, node in declared.resources]


def default_categories(defaults: DefaultValues) -> Iterable[CategoryReference]:
    """Yield the categories that the defaults of tags refer to, with their places."""
    for node in defaults.nodes.get(Kind.TAG, ()):
        value = node.get("category")
        if isinstance(value, Scalar) and not value.is_null and value.text:
            yield CategoryReference(value.text, defaults.file, *place(value))
