"""`generate` blocks and their rows → resources of a reading, each with its data row. Reads sources.

A block is compiled once into one function of a row. Values go into the parsed structure, so that no value can break it:
each row is built as nodes, which the readers of any manifest read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from syncengine.document.diagnostics import Collector, nearest
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, is_whole, place
from syncengine.document.validation import names_of, validated
from syncengine.errors import Diagnostic, Severity
from syncengine.manifest.context import LoadContext
from syncengine.manifest.declarations import declared_by
from syncengine.manifest.generate.block import Block
from syncengine.manifest.generate.fields import ResourceTemplate, Results
from syncengine.manifest.generate.queries import filled
from syncengine.manifest.lints import WHEN_NONE, Alike
from syncengine.manifest.reading import Reading
from syncengine.manifest.resources import resource_of
from syncengine.manifest.schema import KINDS, Generate
from syncengine.manifest.sources.read import distinct, leave_out_offline, read_source, variables_of
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT, LeftOut, SourceTrouble, SourceUse
from syncengine.resource import Kind, Resource, Source
from syncengine.templating.bounds import OutOfBounds
from syncengine.templating.troubles import SURPRISES
from syncengine.templating.values import Record


def generated(
    items: list[MappingNode],
    context: LoadContext,
    defaults: Mapping[Kind, Mapping[str, Any]],
    findings: Collector,
) -> Reading:
    """Return a reading with the resources of all blocks and rows. Report problems to `findings`."""
    resources: list[Resource] = []
    sources: list[SourceUse] = []
    whole = True
    for node in items:
        making = _Making(context, defaults, findings)
        part = making.of_block(node, (context.root / findings.file).parent)
        if part is not None:
            resources += part.resources
            sources += part.sources
        whole = whole and (not _may_make_categories(node) or (part is not None and part.whole))
    return Reading(findings.file, tuple(resources), whole=whole, sources=tuple(sources))


def _may_make_categories(node: MappingNode) -> bool:
    """Return whether the block has a section of tag categories, even under a misspelt name."""
    names = tuple(names_of(Generate))
    return any("tagCategories" in (key.text, nearest(key.text, names)) for key in node.keys)


@dataclass(frozen=True, slots=True)
class _Making:
    """The generation of one block's resources."""

    context: LoadContext
    defaults: Mapping[Kind, Mapping[str, Any]]
    findings: Collector

    def of_block(self, node: MappingNode, folder: Path) -> Reading | None:
        """Return a reading with the resources of one block, or `None` when the block itself is invalid."""
        findings, before = self.findings, len(self.findings.found)
        settings = validated(Generate, node, findings)
        if settings is None or not is_whole(node):
            return None
        block = Block(settings, node, findings)
        block.is_faulty = len(findings.found) > before
        if block.is_faulty and block.has_faulty_condition:
            return None  # which rows it is for is unknown
        try:
            leave_out_offline(self.context, settings.for_each)
            source = read_source(self.context, folder, filled(self.context, settings.for_each))
            rows = distinct(source.rows, settings.for_each.distinct)
        except LeftOut as left_out:
            at = place(_source_node(node))
            findings.at(SOURCE_LEFT_OUT, *at, str(left_out), severity=Severity.WARNING)
            return Reading(findings.file, whole=False)
        except SourceTrouble as trouble:
            findings.error(trouble.code, _source_node(node), str(trouble))
            return None
        try:
            with self.context.allowance.spend(len(rows)):
                resources, without = self._of_rows(block, rows)
        except OutOfBounds as error:
            findings.error("bad-template", node, f"the template was not run: {error}")
            return None
        if block.is_faulty:
            return None
        at = place(_source_node(node))
        may_be_empty = bool(settings.for_each.allow_empty)
        if block.when is not None and 0 < without == len(rows) and not may_be_empty and len(findings.found) == before:
            what = f"all {without:,} rows" if without > 1 else "the only row"
            message = f"`when` leaves out {what} of {source.name}; set `allowEmpty: true` if that is intended"
            findings.at(WHEN_NONE, block.when.line, block.when.column, message, severity=Severity.WARNING)
        use = source.use(
            findings.file, *at, may_be_empty=may_be_empty, left_out=without if block.when is not None else 0
        )
        return Reading(findings.file, tuple(resources), whole=block.whole, sources=(use,))

    def _of_rows(self, block: Block, rows: list[Record]) -> tuple[list[Resource], int]:
        """Return the resources of all rows, and how many rows make none. A mistake in many rows is reported once."""
        variables = variables_of(self.context)
        resources: list[Resource] = []
        without = 0
        alike = Alike()
        for row in rows:
            diagnostics: list[Diagnostic] = []
            try:
                of_row = self._of_row(block, row, variables, diagnostics)
            except OutOfBounds as error:
                self.findings.at("bad-template", *place(block.node), f"the template failed: {error}", data=row.row)
                block.whole = False
                resources, without = [], 0  # a partial result is large and of no use
                break
            resources += of_row
            without += not of_row
            for diagnostic in diagnostics:
                alike.add(diagnostic, row.row)
        self.findings.found.extend(alike.diagnostics())
        return resources, without

    def _of_row(
        self, block: Block, row: Record, variables: Mapping[str, Any], diagnostics: list[Diagnostic]
    ) -> list[Resource]:
        results = block.results(row, variables, diagnostics)
        if results is None:
            return []
        resources = (self._resource(each, results, row, block, diagnostics) for each in block.templates)
        return [resource for resource in resources if resource is not None]

    def _resource(
        self, template: ResourceTemplate, results: Results, row: Record, block: Block, diagnostics: list[Diagnostic]
    ) -> Resource | None:
        line, column = template.at
        defaults, source = self.defaults[template.kind], Source(self.findings.file, line, row.row)
        findings = Collector(self.findings.file, diagnostics)
        try:
            declared = declared_by(template.kind, template.as_node(results), findings)
        except OutOfBounds:
            raise
        except SURPRISES as error:
            block.explain(error, diagnostics)
            return None
        resource = resource_of(declared, defaults, findings)
        if resource is None:
            block.whole = False
            return None
        return replace(resource, source=source, column=column)


def _source_node(node: MappingNode) -> Node:
    for_each = node.get("forEach")
    if isinstance(for_each, MappingNode):
        value = next((v for k, v in zip(for_each.keys, for_each.values, strict=True) if k.text in KINDS), None)
        return value or for_each
    return node
