"""Declarations, with the defaults of their kind → resources, and back; and the reading of a file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Scalar, place
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.errors import Diagnostic
from syncengine.instants import instant
from syncengine.manifest.context import Input
from syncengine.manifest.declarations import Declared, merge
from syncengine.manifest.lints import report_tag
from syncengine.manifest.schema import IDENTITIES, INSTANTS, NEVER_FIELDS
from syncengine.manifest.sources.records import SourceUse
from syncengine.resource import Body, Key, Kind, Removed, Resource, Row, Source


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


def resource_of(declared: Declared, defaults: Mapping[str, Any], findings: Collector) -> Resource | None:
    """Return the declared resource, or `None` without an identity. Report missing fields and lints to `findings`."""
    key, node = declared.key, declared.node
    has_label = declared.kind is not Kind.ACTIVITY_TYPE or "label" in declared.values or "label" in defaults
    if not has_label:
        findings.error("missing-field", node, "an activity type needs `label`")
    if key is None:
        return None
    line, column = place(node)
    source, written = Source(findings.file, line), node.get("previously")
    names = written.items if isinstance(written, SequenceNode) else ()
    former = tuple(dict.fromkeys(name.text for name in names if isinstance(name, Scalar)))
    if not declared.sound or not has_label:
        category = declared.values.get("category")  # all that other files are compared with
        body = Body({"category": category} if isinstance(category, str) else {})
        return Resource(key, body, source, False, former, column, sound=False)
    values = merge(defaults, declared.values) if defaults else declared.values
    if key.kind is not Kind.TAG:
        identity = IDENTITIES[key.kind]
        body = Body({n: v for n, v in values.items() if n not in (identity, "protect", "previously")})
    else:  # with effective keywords (docs/planning.md 2.3), and `excludeTagNameKeyword` always explicit (2.4)
        excluded = values.get("excludeTagNameKeyword", False)
        keywords: tuple[str, ...] = values.get("keywords", ())
        if not excluded and key.name not in keywords:
            keywords = (*keywords, key.name)
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
