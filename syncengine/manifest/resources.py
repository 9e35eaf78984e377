"""One parsed manifest file → its declarations with their places → resources, and back; all problems in the file. Pure.

Checks that need other files (duplicates, references, renames) are in `desired`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from pydantic import ValidationError

from syncengine.document.diagnostics import Collector, nearest, suggestion
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, RefusedNode, Scalar, Sequence, described, items, light, place
from syncengine.document.reader import Documents
from syncengine.document.validation import Model, display, names_of, refuse, report, validated
from syncengine.errors import Diagnostic
from syncengine.instants import instant
from syncengine.manifest.context import Input
from syncengine.manifest.lints import report_tag
from syncengine.manifest.schema import (
    DEFAULTS,
    EXCLUSIVE,
    IDENTITIES,
    INSTANTS,
    MANIFEST_SECTIONS,
    MODELS,
    NEVER_DEFAULTS,
    NEVER_FIELDS,
    SECTIONS,
    RemovedTag,
)
from syncengine.manifest.sources.records import SourceUse
from syncengine.resource import Body, Key, Kind, Removed, Resource, Row, Source


@dataclass(frozen=True, slots=True)
class DefaultValues:
    """The defaults of one file, by kind; `nodes` are their mappings in the file."""

    values: Mapping[Kind, Mapping[str, Any]] = field(default_factory=dict)
    nodes: Mapping[Kind, tuple[MappingNode, ...]] = field(default_factory=dict)
    file: str = ""


def declarations(documents: Documents, findings: Collector) -> Declarations:
    """Return the declarations in the documents of one file. Report problems to `findings`."""
    result = Declarations(findings)
    for root in documents.roots:
        result.document(root)
    result.whole = documents.whole and result.whole
    return result


def default_values(node: Node, findings: Collector) -> DefaultValues:
    """Return the `defaults` of the project file. Report problems to `findings`."""
    result = Declarations(findings)
    result.defaults_section("defaults", node)
    return result.defaults


def fields_of(
    kind: Kind, node: MappingNode, findings: Collector, *, ignore: Collection[str] = ()
) -> tuple[str | None, dict[str, Any], bool]:
    """Return a resource's identity, its fields as written there, and whether they are sound.

    The identity is `None` if it cannot be read. Errors of the types to `ignore` are not reported.
    """
    model, written, before = MODELS[kind], light(node), len(findings.found)
    identity, values, is_valid = IDENTITIES[kind], written, False
    try:
        values = _values(model, written)
        name, is_valid = values[identity], True
    except ValidationError as error:
        report(error, model, node, findings, ignore=ignore)
        wrong = {each["loc"][0] for each in error.errors() if each["loc"]}
        name = None if identity in wrong else str(written[identity])
    _check_exclusive(node, values, findings)
    return name or None, values, is_valid and len(findings.found) == before


def _values(model: type[Model], written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are written, under their names in the file and in its order."""
    attributes, found = names_of(model), model.model_validate(written).__dict__
    return {name: found[attributes[name]] for name in written}


def _check_exclusive(node: MappingNode, values: Mapping[str, Any], findings: Collector) -> None:
    if "category" in values and "tagCategoryId" in values:
        second = next(key for key in reversed(node.keys) if key.text in EXCLUSIVE)
        findings.error("conflicting-fields", second, "`category` and `tagCategoryId` exclude each other: keep only one")


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of `over` merged over those of `under`: maps are merged, lists and scalars are replaced.

    `category` and `tagCategoryId` replace each other.
    """
    result = {**under, **over}
    maps = [values["metadata"] for values in (under, over) if "metadata" in values]
    if maps:
        result["metadata"] = {**maps[0], **maps[-1]}
    for one, other in (EXCLUSIVE, EXCLUSIVE[::-1]):
        if one in over and other not in over:
            result.pop(other, None)
    return result


class Declarations:
    """The declarations of all documents in one file. `whole` is false when a problem may hide a category."""

    __slots__ = ("findings", "generate", "nodes", "removed", "resources", "values", "whole")

    def __init__(self, findings: Collector) -> None:
        self.findings = findings
        self.resources: list[tuple[Kind, MappingNode]] = []
        self.removed: list[Removed] = []
        self.values: dict[Kind, Mapping[str, Any]] = {}
        self.nodes: dict[Kind, list[MappingNode]] = {}
        self.generate: list[MappingNode] = []
        self.whole = True

    def document(self, root: Node) -> None:
        if not isinstance(root, MappingNode):
            self.whole = False
            if not isinstance(root, RefusedNode):
                sections = ", ".join(f"`{name}:`" for name in MANIFEST_SECTIONS)
                self.findings.error(
                    "wrong-type", root, f"a manifest must be a mapping of sections ({sections}), not {described(root)}"
                )
            return
        for key, value in zip(root.keys, root.values, strict=True):
            if (read := _SECTION_READERS.get(name := key.text)) is not None:
                read(self, name, value)
                continue
            near = nearest(name, MANIFEST_SECTIONS)
            self.whole = self.whole and near in _WITHOUT_CATEGORIES
            hint = f"; did you mean `{near}`?" if near else ""
            holders = [section for section, kind in SECTIONS.items() if name in names_of(MODELS[kind])]
            if near is None and holders:
                hint = f"; it is a field of the items of `{holders[-1]}:`, so check the indentation"
            self.findings.error("unknown-section", key, f"a manifest has no section `{display(name)}`{hint}")

    def resource_section(self, name: str, value: Node) -> None:
        self.resources += [(SECTIONS[name], node) for node in self._items(name, value)]

    def removed_section(self, name: str, value: Node) -> None:
        for node in self._items(name, value):
            if (removed := validated(RemovedTag, node, self.findings)) is not None:
                line, column = place(node)
                source = Source(self.findings.file, line)
                self.removed.append(Removed(Key(Kind.TAG, removed.tag), removed.as_, source, removed.reason, column))

    def generate_section(self, name: str, value: Node) -> None:
        self.generate += self._items(name, value)

    def _items(self, name: str, value: Node) -> list[MappingNode]:
        if not isinstance(value, Sequence):
            self.whole = self.whole and name in _WITHOUT_CATEGORIES
            refuse(value, self.findings, name, "a list", empty="[]")
            return []
        for item in value.items:
            if not isinstance(item, MappingNode):
                self.whole = self.whole and name in _WITHOUT_CATEGORIES
                refuse(item, self.findings, f"an item of {name}", "a mapping of fields like `name: value`", empty="")
        return [item for item in value.items if isinstance(item, MappingNode)]

    def defaults_section(self, name: str, value: Node) -> None:
        if not isinstance(value, MappingNode):
            refuse(value, self.findings, name, "a mapping of sections", empty="{}")
            return
        for key, entry in zip(value.keys, value.values, strict=True):
            if (kind := SECTIONS.get(key.text)) is None:
                hint = suggestion(key.text, SECTIONS)
                self.findings.error("unknown-section", key, f"`defaults` has no section `{display(key.text)}`{hint}")
            elif isinstance(entry, MappingNode):
                self._defaults_of(kind, entry)
            else:
                refuse(entry, self.findings, f"{name}.{key.text}", "a mapping of fields", empty="{}")

    @property
    def defaults(self) -> DefaultValues:
        nodes = {kind: tuple(places) for kind, places in self.nodes.items()}
        return DefaultValues(self.values, nodes, self.findings.file)

    def _defaults_of(self, kind: Kind, node: MappingNode) -> None:
        never = {IDENTITIES[kind], *NEVER_DEFAULTS}
        allowed = [pair for pair in zip(node.keys, node.values, strict=True) if pair[0].text not in never]
        for key in node.keys:
            if key.text in never:
                self.findings.error(
                    "unknown-field", key, f"`{key.text}` cannot have a default, because it belongs to one resource"
                )
        rest = MappingNode([key for key, _ in allowed], [value for _, value in allowed], node.mark)
        before, written, values = len(self.findings.found), light(rest), None
        try:
            values = _values(DEFAULTS[kind], written)
        except ValidationError as error:
            report(error, DEFAULTS[kind], rest, self.findings)
        _check_exclusive(rest, written, self.findings)
        if values is not None and len(self.findings.found) == before:
            self.values[kind] = merge(self.values.get(kind, {}), values)
        self.nodes.setdefault(kind, []).append(rest)


_WITHOUT_CATEGORIES = frozenset(MANIFEST_SECTIONS) - {"tagCategories", "generate"}
"""The sections in which a problem cannot hide a category."""
_SECTION_READERS: dict[str, Callable[[Declarations, str, Node], None]] = {
    **dict.fromkeys(SECTIONS, Declarations.resource_section),
    "removed": Declarations.removed_section,
    "generate": Declarations.generate_section,
    "defaults": Declarations.defaults_section,
}


class CategoryReference(Struct, frozen=True, gc=False, array_like=True):
    """A reference to a category, with its place. `key` is the resource that refers to it, or `None` for a default.

    `data` is the row that the resource was generated from, if any.
    """

    category: str
    file: str
    line: int
    column: int
    key: Key | None = None
    data: Row | None = None


class Reading(Struct, frozen=True, gc=False, array_like=True):
    """The declarations and diagnostics of one file. `whole` is false when a problem may hide a category."""

    file: str
    resources: tuple[Resource, ...] = ()
    removed: tuple[Removed, ...] = ()
    default_categories: tuple[CategoryReference, ...] = ()
    found: tuple[Diagnostic, ...] = ()
    whole: bool = True
    sources: tuple[SourceUse, ...] = ()


class ReadFile(NamedTuple):
    """A file's reading, and what it depends on.

    `sha256` is a digest of the file and its inputs, empty if the file is unreadable. `inputs` are the recorded ones,
    or `None` for a file that depends on its bytes alone; `content` is then the digest of those.
    """

    reading: Reading
    sha256: str = ""
    inputs: tuple[Input, ...] | None = None
    content: str = ""


packed = msgspec.msgpack.Encoder().encode
reading_of = msgspec.msgpack.Decoder(Reading).decode
"""The decoder of packed readings. It raises `msgspec.DecodeError` for a reading of another version."""


def resource_of(kind: Kind, node: MappingNode, defaults: Mapping[str, Any], findings: Collector) -> Resource | None:
    """Return the resource that a mapping declares, or `None` without an identity. Report its problems and lints.

    When it is not `sound`, only its key is sure.
    """
    name, own, is_sound = fields_of(kind, node, findings)
    if kind is Kind.ACTIVITY_TYPE and "label" not in own and "label" not in defaults:
        findings.error("missing-field", node, "an activity type needs `label`")
        is_sound = False
    if name is None:
        return None
    key = Key(kind, name)
    line, column = place(node)
    source = Source(findings.file, line)
    written = items(node.get("previously")) if "previously" in own else ()
    former = tuple(dict.fromkeys(name.text for name in written if isinstance(name, Scalar)))
    if not is_sound:
        category = own.get("category")  # all that other files are compared with
        body = Body({"category": category} if isinstance(category, str) else {})
        return Resource(key, body, source, False, former, column, sound=False)
    values = merge(defaults, own) if defaults else own
    if kind is not Kind.TAG:
        identity = IDENTITIES[kind]
        body = Body({n: v for n, v in values.items() if n not in (identity, "protect", "previously")})
    else:  # with effective keywords (docs/planning.md 2.3), and `excludeTagNameKeyword` always explicit (2.4)
        excluded = values.get("excludeTagNameKeyword", False)
        keywords: tuple[str, ...] = values.get("keywords", ())
        if not excluded and name not in keywords:
            keywords = (*keywords, name)
        fields = {n: v for n, v in values.items() if n not in _NOT_TAG_FIELDS}
        fields["excludeTagNameKeyword"] = excluded
        body = Body(fields, keywords, values.get("metadata", {}))
        report_tag(key, body, node, findings)
    return Resource(key, body, source, values.get("protect", False), former, column)


_NOT_TAG_FIELDS = NEVER_FIELDS | {IDENTITIES[Kind.TAG]}


def item_of(resource: Resource) -> dict[str, Any]:
    """Return the fields of a resource as a manifest declares them. A tag's name is not repeated as a keyword."""
    item = body_item(resource.key, resource.body)
    if resource.previously:
        item["previously"] = list(resource.previously)
    if resource.protect:
        item["protect"] = True
    return item


def body_item(key: Key, body: Body) -> dict[str, Any]:
    """Return the identity and the fields of a body as a manifest declares them."""
    item = {IDENTITIES[key.kind]: key.name, **written_fields(body)}
    if key.kind is Kind.TAG:
        if keywords := declared_keywords(key, body):
            item["keywords"] = keywords
        if body.metadata:
            item["metadata"] = dict(body.metadata)
    return item


def written_fields(body: Body) -> dict[str, Any]:
    """Return the fields of a body as a manifest writes them: instants as RFC 3339 where that is exact, and lists."""
    fields: dict[str, Any] = dict(body.fields)
    for name, value in body.fields.items():
        if type(value) is tuple:
            fields[name] = list(value)
        elif name in INSTANTS and isinstance(value, int) and not (value % 1000 and value < 0):
            fields[name] = instant(value) or value
    return fields


def declared_keywords(key: Key, body: Body) -> list[str]:
    """Return a tag's keywords without its name, which counts as a keyword by itself unless it is excluded."""
    if body.fields.get("excludeTagNameKeyword"):
        return list(body.keywords)
    return [word for word in body.keywords if word != key.name]
