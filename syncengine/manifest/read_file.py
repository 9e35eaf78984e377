"""The bytes of one manifest → its declarations, as plain values that a cache can store; pure.

A file of plain values is read by `document.fast_reader`, any other file by the full reader, the only one that reports
problems. Places within resources are not stored: reports look up the few that they need (`nodes_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from syncengine import __version__
from syncengine.document import fast_reader
from syncengine.document.diagnostics import Collector
from syncengine.document.digest import sha256_of
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Scalar, place
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import MAX_BYTES, Documents, may_be_curly, read
from syncengine.document.text import decoded
from syncengine.errors import Diagnostic
from syncengine.manifest.context import LoadContext
from syncengine.manifest.declarations import Declarations, DefaultValues, declarations, merge
from syncengine.manifest.files import GENERATES
from syncengine.manifest.generate.row_reuse import formers
from syncengine.manifest.lints import curly_texts, cut_texts
from syncengine.manifest.reading import CategoryReference, Reading
from syncengine.manifest.resources import plain_resource, resource_of
from syncengine.manifest.schema import PLAIN_SECTIONS, SECTIONS
from syncengine.manifest.visibility_lints import public_by_silence, report_silence
from syncengine.resource import Key, Kind, Resource, Source

NO_DEFAULTS = DefaultValues()
SMALL = 8_000
"""The size in bytes below which the full reader is faster than compiling the fast reader's expressions."""


def read_manifest(
    data: bytes,
    file: str,
    defaults: DefaultValues = NO_DEFAULTS,
    context: LoadContext | None = None,
    former: Reading | None = None,
    line_of: Callable[[int], int] = int,
) -> Reading:
    """Return the declarations of a file over the project's `defaults`; its `generate` blocks may use `context`.

    `former` is an earlier reading of the file, whose unchanged rows are not rendered again. `line_of` maps a line to
    the line that messages name, as in `Collector`.
    """
    if boring := _boring(data, file, defaults):
        return boring
    findings = Collector(file, line_of=line_of)
    return read_documents(documents_of(data, findings, context), findings, defaults, context, data, former)


def documents_of(data: bytes, findings: Collector, context: LoadContext | None) -> Documents:
    """Return the documents of a file. A file that generates is parsed once per run, for its digest and its reading."""
    if context is None or GENERATES not in data:
        return read(data, findings)

    def parse() -> tuple[Documents, Sequence[Diagnostic]]:
        own = Collector(findings.file, line_of=findings.line_of)
        return read(data, own), own.found

    documents, diagnostics = context.once(("documents", findings.file, data), parse, lambda _: len(data))
    findings.found += diagnostics
    return documents


def nodes_of(data: bytes, file: str, context: LoadContext | None = None) -> dict[Key | int, MappingNode]:
    """Return the first node of each declared resource by key, and of each resource in a `generate` block by line."""
    findings = Collector(file)
    nodes: dict[Key | int, MappingNode] = {}
    all_of_it = declarations(documents_of(data, findings, context), findings)
    for declared in all_of_it.resources:
        if declared.key is not None:
            nodes.setdefault(declared.key, declared.node)
    for block in all_of_it.generate:
        for section in SECTIONS:
            items = block.get(section)
            for item in items.items if isinstance(items, SequenceNode) else ():
                if isinstance(item, MappingNode):
                    nodes.setdefault(place(item)[0], item)
    return nodes


# --- boring files


def _boring(data: bytes, file: str, defaults: DefaultValues) -> Reading | None:
    if not SMALL <= len(data) <= MAX_BYTES:
        return None
    unheard = Collector(file)
    text = decoded(data, unheard)
    content = None if text is None or may_be_curly(text) else fast_reader.read(text, PLAIN_SECTIONS)
    if content is None or (under := _plain_defaults(content.defaults, file, defaults)) is None:
        return None
    resources = []
    for item in content.items:
        kind = SECTIONS[item.section]
        resource = plain_resource(kind, item.values, Source(file, item.line), item.column, under[kind])
        if resource is None:
            return None
        resources.append(resource)
    return None if public_by_silence(resources) else Reading(file, tuple(resources))


def _plain_defaults(section: str | None, file: str, defaults: DefaultValues) -> Mapping[Kind, Mapping[str, Any]] | None:
    """Return the defaults of each kind's resources, or `None` when the full reader must read them."""
    if section is None:
        return {kind: defaults.values.get(kind, {}) for kind in Kind}
    findings = Collector(file)
    documents = read(section.encode(), findings)
    own = declarations(documents, findings).defaults.values
    if findings.found or documents.cut or "category" in own.get(Kind.TAG, {}):
        return None
    return _under(defaults, own)


# --- any file


def read_documents(
    documents: Documents,
    findings: Collector,
    defaults: DefaultValues = NO_DEFAULTS,
    context: LoadContext | None = None,
    data: bytes = b"",
    former: Reading | None = None,
) -> Reading:
    """Return the declarations in parsed documents. `data` is their text, by which rows of `former` are recognised."""
    file = findings.file
    declared = declarations(documents, findings)
    cut_texts(documents.cut, findings)
    curly_texts(documents.curly, findings)
    under = _under(defaults, declared.defaults.values)
    by_hand = [resource for each in declared.resources if (resource := resource_of(each, under[each.kind], findings))]
    from_rows = _generated(declared, data, context, under, findings, former) if declared.generate else Reading(file)
    resources = (*by_hand, *from_rows.resources)
    report_silence(resources, findings)
    return replace(
        from_rows,
        resources=resources,
        removed=tuple(declared.removed),
        default_categories=tuple(default_categories(declared.defaults)),
        found=tuple(findings.found),
        whole=declared.whole and from_rows.whole,
    )


def _generated(
    declared: Declarations,
    data: bytes,
    context: LoadContext | None,
    under: Mapping[Kind, Mapping[str, Any]],
    findings: Collector,
    former: Reading | None,
) -> Reading:
    from syncengine.manifest.generate.blocks import generated  # templates and sources cost more than most manifests

    context = context or LoadContext()
    besides = (sorted(under.items()), sorted(context.variables.items()), sorted(context.environ.items()))
    previous = formers(former) if former else {}
    return generated(
        declared.generate, context, under, findings, sha256_of(repr((__version__, data, *besides))), previous
    )


def _under(project: DefaultValues, own: Mapping[Kind, Mapping[str, Any]]) -> dict[Kind, Mapping[str, Any]]:
    return {kind: merge(project.values.get(kind, {}), own.get(kind, {})) for kind in Kind}


def resources_of(declared: Declarations, findings: Collector) -> list[Resource | None]:
    """Return each resource over its own file's defaults, with `None` for an identity that cannot be read."""
    under = _under(NO_DEFAULTS, declared.defaults.values)
    return [resource_of(each, under[each.kind], findings) for each in declared.resources]


def default_categories(defaults: DefaultValues) -> Iterable[CategoryReference]:
    """Yield the categories that the defaults of tags refer to, with their places."""
    for node in defaults.nodes.get(Kind.TAG, ()):
        value = node.get("category")
        if isinstance(value, Scalar) and not value.is_null and value.text:
            yield CategoryReference(value.text, defaults.file, *place(value))
