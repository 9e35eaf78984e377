"""`generate` blocks and their rows → resources of a reading, each with its data row. Reads sources.

Each template of a block is compiled once. Values go into the parsed structure, so that no value can break it: each row
is built as nodes with the places of its templates, and is read like a resource that was written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

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
from syncengine.manifest.generate.query import query_of
from syncengine.manifest.generate.scalars import Compiled, Leaf, without_undefined
from syncengine.manifest.lints import WHEN_NONE, Alike
from syncengine.manifest.resources import Reading, fields_of, resource_of
from syncengine.manifest.schema import KINDS, NEVER_EMPTY, SECTIONS, TEMPLATED, Generate
from syncengine.manifest.sources.read import distinct, read_source, variables_of
from syncengine.manifest.sources.records import SOURCE_LEFT_OUT, LeftOut, SourceTrouble, SourceUse
from syncengine.resource import Kind, Resource, Source
from syncengine.templating.bounds import OutOfBounds
from syncengine.templating.filters import plain_text
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.troubles import SURPRISES, trouble
from syncengine.templating.values import Record, is_template

Results = Mapping[int, Any]
"""The results of a block's templates for one row, each by the identity of the scalar that is the template."""
Defaults = Mapping[Kind, Mapping[str, Any]]


class Twice(ValueError):
    """Raised for two keys of a mapping with the same result. `at` is the place of the later key."""

    def __init__(self, name: str, at: Mark) -> None:
        super().__init__(f"the mapping has the key {quoted(name)} twice")
        self.at = at


def generated(items: list[MappingNode], context: LoadContext, defaults: Defaults, findings: Collector) -> Reading:
    """Return a reading with the resources of all blocks and rows. Report problems to `findings`."""
    resources: list[Resource] = []
    sources: list[SourceUse] = []
    whole, names = True, tuple(names_of(Generate))
    for node in items:
        part = _of_block(node, context, defaults, findings)
        if part is not None:
            resources += part.resources
            sources += part.sources
        # A faulty block could have made categories if it has such a section, even under a misspelt name.
        may_make_categories = any("tagCategories" in (key.text, nearest(key.text, names)) for key in node.keys)
        whole = whole and (not may_make_categories or (part is not None and part.whole))
    return Reading(findings.file, tuple(resources), whole=whole, sources=tuple(sources))


def _of_block(node: MappingNode, context: LoadContext, defaults: Defaults, findings: Collector) -> Reading | None:
    """Return a reading with the resources of one block, or `None` when the block itself is invalid."""
    file, before = findings.file, len(findings.found)
    settings = validated(Generate, node, findings)
    if settings is None or not is_whole(node):
        return None
    block = Block(settings, node, defaults, findings)
    block.is_faulty = len(findings.found) > before
    if block.is_faulty and block.has_faulty_condition:
        return None  # which rows it is for is unknown
    source_node, for_each = node.get("forEach") or node, settings.for_each
    if isinstance(source_node, MappingNode):
        source_node = next((value for kind in KINDS if (value := source_node.get(kind)) is not None), source_node)
    try:
        source = read_source(context, (context.root / file).parent, query_of(context, for_each))
        rows = distinct(source.rows, for_each.distinct)
    except LeftOut as left_out:
        findings.at(SOURCE_LEFT_OUT, *place(source_node), str(left_out), severity=Severity.WARNING)
        return Reading(file, whole=False)
    except SourceTrouble as trouble:
        findings.error(trouble.code, source_node, str(trouble))
        return None
    variables, resources, without, alike = variables_of(context), list[Resource](), 0, Alike()
    row: Record | None = None
    try:
        with context.allowance.spend(len(rows)):
            for row in rows:
                diagnostics: list[Diagnostic] = []
                of_row = block.resources(row, variables, Collector(file, diagnostics))
                resources += of_row
                without += not of_row
                for diagnostic in diagnostics:
                    alike.add(diagnostic, row.row)
    except OutOfBounds as error:
        if row is None:
            findings.error("bad-template", node, f"the template was not run: {error}")
            return None
        findings.at("bad-template", *place(node), f"the template failed: {error}", data=row.row)
        block.whole, resources, without = False, [], 0  # a partial result is large and of no use
    findings.found.extend(alike.diagnostics())
    if block.is_faulty:
        return None
    may_be_empty = bool(for_each.allow_empty)
    if block.when is not None and 0 < without == len(rows) and not may_be_empty and len(findings.found) == before:
        what = f"all {without:,} rows" if without > 1 else "the only row"
        message = f"`when` leaves out {what} of {source.name}; set `allowEmpty: true` if that is intended"
        findings.at(WHEN_NONE, block.when.line, block.when.column, message, severity=Severity.WARNING)
    without = without if block.when is not None else 0
    use = source.use(file, *place(source_node), may_be_empty=may_be_empty, left_out=without)
    return Reading(file, tuple(resources), whole=block.whole, sources=(use,))


class Block:
    """A `generate` block with its compiled templates. Problems in them are reported to `findings`.

    A block that `is_faulty` has errors already: its rows make nothing, and only further errors are looked for.
    """

    def __init__(self, settings: Generate, node: MappingNode, defaults: Defaults, findings: Collector) -> None:
        self.whole, self.is_faulty = True, False
        self._defaults, self._row_name = defaults, settings.as_ or "row"
        self._compiled = Compiled(TemplateSandbox(), (self._row_name, "var", "env"), findings)
        when, before = node.get("when"), len(findings.found)
        self.when = self._compiled.condition(when) if isinstance(when, Scalar) else None
        self.has_faulty_condition = len(findings.found) > before
        self._leaves: dict[int, Leaf] = {}
        self._items: list[tuple[Kind, MappingNode]] = [
            (kind, item)
            for section, kind in SECTIONS.items()
            for item in getattr(settings, names_of(Generate)[section]) or ()
        ]
        for kind, item in self._items:
            try:
                TEMPLATED[kind].model_validate(plain(item))  # what is wrong whatever the rows are
            except ValidationError as error:
                report(error, TEMPLATED[kind], item, findings)
            for value in item.values:
                self._compile(value)
        if not self._items and not findings.found:
            message = "an item of `generate` needs `tags`, `tagCategories` or `activityTypes`"
            findings.error("missing-field", node, message)

    def _compile(self, node: Node) -> None:
        """Compile the templates of a value, and of the keys in it."""
        if isinstance(node, Scalar) and is_template(node.text) and id(node) not in self._leaves:
            if (leaf := self._compiled.leaf(node)) is not None:
                self._leaves[id(node)] = leaf
        elif isinstance(node, Sequence | MappingNode):
            inner = node.items if isinstance(node, Sequence) else (*node.keys, *node.values)
            for each in inner:
                self._compile(each)

    def resources(self, row: Record, variables: Mapping[str, Any], findings: Collector) -> list[Resource]:
        """Return the resources of a row: none if it is left out, or fails with findings.

        Raise `OutOfBounds` when all further rows would fail as well.
        """
        before, found = len(findings.found), list[Resource]()
        results = self._results(row, {**variables, self._row_name: row}, findings)
        if results is None:
            self.whole = self.whole and len(findings.found) == before
            return found
        for kind, item in self._items:
            try:
                resource = resource_of(kind, _filled(item, results), self._defaults[kind], findings)
            except OutOfBounds:
                raise
            except SURPRISES as error:
                self.whole = False
                if isinstance(error, Twice):
                    findings.at("duplicate-key", error.at.line + 1, error.at.column + 1, str(error))
                else:
                    first = next(iter(self._leaves.values()))
                    message = f"the template failed: {trouble(error)}"
                    findings.at("bad-template", first.line, first.column, message)
                continue
            if resource is None:
                self.whole = False
            else:
                line, column = place(item)
                found.append(replace(resource, source=Source(findings.file, line, row.row), column=column))
        return found

    def _results(self, row: Record, variables: Mapping[str, Any], findings: Collector) -> Results | None:
        """Return the results of all templates for a row, or `None` if `when` leaves it out or one of them fails."""
        before = len(findings.found)
        if self.when is not None:
            holds = _value(self.when, variables, findings)
            if isinstance(holds, str):
                message = "`when` must be an expression that is true or false, not text"
                findings.at("when-text", self.when.line, self.when.column, message)
            if isinstance(holds, str) or not holds or holds is FAILED:
                return None
        values = {at: _value(leaf, variables, findings) for at, leaf in self._leaves.items()}
        if len(findings.found) == before and not self.is_faulty:
            return values
        sound = {at: value for at, value in values.items() if value is not FAILED}
        for kind, item in () if self.is_faulty else self._items:  # templates of a faulty block may be missing
            fields_of(kind, _filled(item, sound, *SURPRISES), findings, ignore=("missing",))
        return None


FAILED: Any = object()
"""The result of a template that fails."""


def _value(leaf: Leaf, variables: Mapping[str, Any], findings: Collector) -> Any:
    """Return the value of a template, or `FAILED` after reporting why it fails."""
    try:
        return leaf.value(variables)
    except OutOfBounds:
        raise
    except SURPRISES as error:
        findings.at("bad-template", leaf.line, leaf.column, f"the template failed: {trouble(error)}")
        return FAILED


def _filled(node: MappingNode, results: Results, *unless: type[BaseException]) -> MappingNode:
    """Return the node of a resource with its templates filled in, as if it had been written by hand and parsed.

    A field that raises one of `unless`, such as `KeyError` for lack of a result, is left out.
    """
    keys, values = [], []
    for key, value in zip(node.keys, node.values, strict=True):
        with suppress(*unless):
            made = _made(value, results, "" if key.text in NEVER_EMPTY else '"')
            if made is not None:
                keys.append(key)
                values.append(made)
    return MappingNode(keys, values, node.mark)


def _made(node: Node, results: Results, style: str = '"') -> Node | None:
    """Return a part of a resource with its templates filled in, or `None` when it is empty.

    In a list, the items of inner lists that templates made count as its own, and empty ones are left out.
    """
    match node:
        case Scalar() if is_template(node.text):
            return _node_of(without_undefined(results[id(node)]), node.mark, style)
        case Sequence():
            items: list[Node] = []
            for item in node.items:
                made, is_made = _made(item, results), isinstance(item, Scalar) and is_template(item.text)
                if is_made and isinstance(made, Sequence):
                    items += made.items
                elif made is not None and not (is_made and not (made.text or "").strip()):
                    items.append(made)
            return Sequence(items, node.mark)
        case MappingNode():
            keys: dict[str, Scalar] = {}
            values: dict[str, Node] = {}
            for key, value in zip(node.keys, node.values, strict=True):
                name, inner = _made(key, results), _made(value, results)
                if isinstance(name, Scalar) and inner is not None:
                    if name.text in keys:
                        raise Twice(name.text, key.mark)
                    keys[name.text], values[name.text] = name, inner
            return MappingNode(list(keys.values()), list(values.values()), node.mark)
        case _:
            return node


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
