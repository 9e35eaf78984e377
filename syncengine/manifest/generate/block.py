"""`generate` blocks and their rows → resources of a reading, each with its data row. Reads sources.

Each template of a block is compiled once. Values go into the parsed structure, so that no value can break it: each row
is built as nodes with the places of its templates, and is read like a resource that was written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from jinja2 import Undefined
from msgspec.structs import replace
from pydantic import ValidationError

from syncengine.document.diagnostics import Collector, nearest
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Mark, Node, Scalar, Sequence, is_whole, place, plain, quoted
from syncengine.document.text import with_line_feeds
from syncengine.document.validation import names_of, report, validated
from syncengine.errors import Diagnostic, Severity
from syncengine.manifest.context import LoadContext
from syncengine.manifest.declarations import declared_by
from syncengine.manifest.generate.query import filled
from syncengine.manifest.generate.scalars import Compiled, Leaf, without_undefined
from syncengine.manifest.lints import WHEN_NONE, Alike
from syncengine.manifest.reading import Reading
from syncengine.manifest.resources import resource_of
from syncengine.manifest.schema import KINDS, NEVER_EMPTY, SECTIONS, TEMPLATED, Generate
from syncengine.manifest.sources.read import distinct, leave_out_offline, read_source, variables_of
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT, LeftOut, SourceTrouble, SourceUse
from syncengine.resource import Kind, Resource, Source
from syncengine.templating.bounds import OutOfBounds
from syncengine.templating.filters import plain_text
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.troubles import SURPRISES, trouble
from syncengine.templating.values import Record, is_template

Results = Mapping[int, Any]
"""The results of a block's templates for one row, by their number."""


class Twice(ValueError):
    """Raised for two keys of a mapping with the same result. `at` is the place of the later key."""

    def __init__(self, name: str, at: Mark) -> None:
        super().__init__(f"the mapping has the key {quoted(name)} twice")
        self.at = at


class Dynamic(NamedTuple):
    """A scalar that is a template. `place` is its index in a row's results."""

    node: Scalar
    place: int

    @property
    def mark(self) -> Mark:
        return self.node.mark


Part = Any
"""A node, a `Dynamic`, or a list or mapping of parts (`_List`, `_Map`)."""


class _List(NamedTuple):
    items: list[Part]
    mark: Mark


class _Map(NamedTuple):
    pairs: list[tuple[Part, Part]]
    mark: Mark


class ResourceTemplate(NamedTuple):
    """The template of one resource in a block. `at` is its line and column, `parts` are its fields."""

    kind: Kind
    node: MappingNode
    at: tuple[int, int]
    parts: list[tuple[Scalar, Part]]

    def as_node(self, results: Results, *unless: type[BaseException]) -> MappingNode:
        """Return the node of the resource, as if it had been written by hand and parsed.

        A field that raises one of `unless`, such as `KeyError` for lack of a result, is left out.
        """
        keys, values = [], []
        for key, part in self.parts:
            with suppress(*unless):
                value = _node(part, results, "" if key.text in NEVER_EMPTY else '"')
                if value is not None:
                    keys.append(key)
                    values.append(value)
        return MappingNode(keys, values, self.node.mark)


def resource_template(kind: Kind, node: MappingNode, compiled: Compiled) -> ResourceTemplate:
    """Return the template of one resource, and register the templates of its fields in `compiled`."""
    parts = [(key, _part(value, compiled)) for key, value in zip(node.keys, node.values, strict=True)]
    return ResourceTemplate(kind, node, place(node), parts)


def _part(node: Node, compiled: Compiled) -> Part:
    if isinstance(node, Scalar):
        return Dynamic(node, compiled.leaf(node)) if is_template(node.text) else node
    if isinstance(node, Sequence):
        return _List([_part(item, compiled) for item in node.items], node.mark)
    if isinstance(node, MappingNode):
        pairs = zip(node.keys, node.values, strict=True)
        return _Map([(_part(key, compiled), _part(value, compiled)) for key, value in pairs], node.mark)
    return node


def _node(part: Part, results: Results, style: str) -> Node | None:
    """Return a part as a node, or `None` when it is empty."""
    match part:
        case Dynamic():
            return _node_of(without_undefined(results[part.place]), part.mark, style)
        case _List():
            return Sequence(_items(part, results), part.mark)
        case _Map():
            return _mapping(part, results)
        case _:
            return cast("Node", part)


def _items(part: _List, results: Results) -> list[Node]:
    """Return the items of a list, with inner lists flattened and empty items left out."""
    nodes: list[Node] = []
    for item in part.items:
        node = _node(item, results, '"')
        if isinstance(node, Sequence) and isinstance(item, Dynamic):
            nodes += node.items
        elif node is not None and not (isinstance(item, Dynamic) and not (node.text or "").strip()):
            nodes.append(node)
    return nodes


def _mapping(part: _Map, results: Results) -> Node:
    keys: dict[str, Scalar] = {}
    values: dict[str, Node] = {}
    for key, value in part.pairs:
        name = _node(key, results, '"')
        inner = _node(value, results, '"')
        if isinstance(name, Scalar) and inner is not None:
            if name.text in keys:
                raise Twice(name.text, key.mark)
            keys[name.text], values[name.text] = name, inner
    return MappingNode(list(keys.values()), list(values.values()), part.mark)


def _node_of(value: Any, mark: Mark, style: str) -> Node | None:
    """Return the node of a value as if written by hand. Text is quoted to stay text, and its line ends become LF."""
    if value is None or (not style and value == ""):
        return None
    if isinstance(value, Undefined):
        str(value)  # raises for an undefined value
    if isinstance(value, list | tuple):
        items = [_node_of(item, mark, '"') for item in value]
        return Sequence([item for item in items if item is not None and (item.text is None or item.text.strip())], mark)
    if isinstance(value, dict):
        entries: dict[str, Node | None] = {}
        for key, inner in value.items():
            if (name := plain_text(key)) in entries:
                raise Twice(name, mark)
            entries[name] = _node_of(inner, mark, '"')
        pairs = [(Scalar(key, mark, '"'), inner) for key, inner in entries.items() if inner is not None]
        return MappingNode([key for key, _ in pairs], [inner for _, inner in pairs], mark)
    return Scalar(with_line_feeds(plain_text(value)), mark, style)


class Block:
    """A `generate` block with its compiled templates. Problems in them are reported to `findings`.

    A block that `is_faulty` has errors already: its rows make nothing, and only further errors are looked for.
    """

    def __init__(
        self,
        settings: Generate,
        node: MappingNode,
        findings: Collector,
    ) -> None:
        self.node = node
        self._file = findings.file
        self.row_name = settings.as_ or "row"
        self.whole = True
        self.is_faulty = False
        self._compiled = Compiled(TemplateSandbox(), (self.row_name, "var", "env"), findings)
        when = node.get("when")
        before = len(findings.found)
        self.when = self._compiled.condition(when) if isinstance(when, Scalar) else None
        self.has_faulty_condition = len(findings.found) > before
        self.templates = [
            self._template(kind, item, findings)
            for section, kind in SECTIONS.items()
            for item in getattr(settings, names_of(Generate)[section]) or ()
        ]
        if not self.templates and not findings.found:
            findings.error(
                "missing-field", node, "an item of `generate` needs `tags`, `tagCategories` or `activityTypes`"
            )

    def _template(self, kind: Kind, node: MappingNode, findings: Collector) -> ResourceTemplate:
        """Return the template of one resource, after reporting what is wrong with it whatever the rows are."""
        try:
            TEMPLATED[kind].model_validate(plain(node))
        except ValidationError as error:
            report(error, TEMPLATED[kind], node, findings)
        return resource_template(kind, node, self._compiled)

    def results(
        self, row: Record, variables: Mapping[str, Any], diagnostics: list[Diagnostic]
    ) -> dict[int, Any] | None:
        """Return the results of the templates for a row, or `None` if it is left out or fails with diagnostics.

        Raise `OutOfBounds` when all further rows would fail as well.
        """
        findings, before = Collector(self._file, diagnostics), len(diagnostics)
        variables = {**variables, self.row_name: row}
        holds = self.when is None or self._value(self.when, variables, findings)
        if isinstance(holds, str):
            assert self.when is not None
            _tell(findings, self.when, "when-text", "`when` must be an expression that is true or false, not text")
        elif holds and holds is not FAILED:
            values = {n: self._value(leaf, variables, findings) for n, leaf in enumerate(self._compiled.leaves)}
            if len(diagnostics) == before and not self.is_faulty:
                return values
            sound = {n: value for n, value in values.items() if value is not FAILED}
            for template in () if self.is_faulty else self.templates:  # leaves of a faulty block may be missing
                declared_by(template.kind, template.as_node(sound, *SURPRISES), findings, ignore=("missing",))
        self.whole = self.whole and len(diagnostics) == before
        return None

    def _value(self, leaf: Leaf, variables: Mapping[str, Any], findings: Collector) -> Any:
        """Return the value of a template, or `FAILED` after reporting why it fails."""
        try:
            return leaf.value(variables)
        except OutOfBounds:
            raise
        except SURPRISES as error:
            _tell(findings, leaf, "bad-template", f"the template failed: {trouble(error)}")
            return FAILED

    def explain(self, error: BaseException, diagnostics: list[Diagnostic]) -> None:
        """Report why the results of a row make no resource."""
        self.whole = False
        findings = Collector(self._file, diagnostics)
        if isinstance(error, Twice):
            findings.at("duplicate-key", error.at.line + 1, error.at.column + 1, str(error))
        else:
            _tell(findings, self._compiled.leaves[0], "bad-template", f"the template failed: {trouble(error)}")


FAILED: Any = object()
"""The result of a template that fails."""


def _tell(findings: Collector, leaf: Leaf, code: str, message: str) -> None:
    findings.at(code, leaf.line, leaf.column, message)


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
