"""The declaration of one resource, with the defaults of its kind → the resource, and back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Scalar, place
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.instants import instant
from syncengine.manifest.declarations import Declared, merge
from syncengine.manifest.lints import report_tag
from syncengine.manifest.schema import IDENTITIES, INSTANTS, NEVER_FIELDS
from syncengine.resource import Body, Key, Kind, Resource, Source, Value


def resource_of(declared: Declared, defaults: Mapping[str, Any], findings: Collector) -> Resource | None:
    """Return the declared resource, or `None` without an identity. Report missing fields and lints to `findings`."""
    key, node = declared.key, declared.node
    has_label = declared.kind is not Kind.ACTIVITY_TYPE or "label" in declared.values or "label" in defaults
    if not has_label:
        findings.error("missing-field", node, "an activity type needs `label`")
    if key is None:
        return None
    line, column = place(node)
    source = Source(findings.file, line)
    former = _former(declared)
    if not declared.sound or not has_label:
        return Resource(key, _category_only(declared.values), source, False, former, column, sound=False)
    values = merge(defaults, declared.values) if defaults else declared.values
    body = _BODIES[key.kind](key, values)
    if key.kind is Kind.TAG:
        report_tag(key, body, node, findings)
    return Resource(key, body, source, values.get("protect", False), former, column)


def _former(declared: Declared) -> tuple[str, ...]:
    former_names = declared.node.get("previously")
    if not isinstance(former_names, SequenceNode):
        return ()
    return tuple(dict.fromkeys(item.text for item in former_names.items if isinstance(item, Scalar)))


def _category_only(values: Mapping[str, Any]) -> Body:
    category = values.get("category")
    return Body({"category": category} if isinstance(category, str) else {})


# --- bodies


def _tag_body(key: Key, values: Mapping[str, Any]) -> Body:
    """Return a tag's body: effective keywords (docs/planning.md 2.3), `excludeTagNameKeyword` always explicit (2.4)."""
    name, excluded = key.name, values.get("excludeTagNameKeyword", False)
    keywords: tuple[str, ...] = values.get("keywords", ())
    if not excluded and name not in keywords:
        keywords = (*keywords, name)
    fields = {n: v for n, v in values.items() if n not in _NOT_TAG_FIELDS}
    fields["excludeTagNameKeyword"] = excluded
    return Body(fields, keywords, values.get("metadata", {}))


def _plain_body(key: Key, values: Mapping[str, Any]) -> Body:
    not_fields = {IDENTITIES[key.kind], "protect", "previously"}
    return Body({n: v for n, v in values.items() if n not in not_fields})


_NOT_TAG_FIELDS = NEVER_FIELDS | {IDENTITIES[Kind.TAG]}
_BODIES = {Kind.TAG: _tag_body, Kind.CATEGORY: _plain_body, Kind.ACTIVITY_TYPE: _plain_body}


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
        elif name in INSTANTS:
            fields[name] = _written(value)
    return fields


def declared_keywords(key: Key, body: Body) -> list[str]:
    """Return a tag's keywords without its name, which counts as a keyword by itself unless it is excluded."""
    if body.fields.get("excludeTagNameKeyword"):
        return list(body.keywords)
    return [word for word in body.keywords if word != key.name]


def _written(value: Value) -> Value:
    """Return an instant as RFC 3339, or unchanged where RFC 3339 would not be exact."""
    if not isinstance(value, int) or (value % 1000 and value < 0):
        return value
    return instant(value) or value
