"""A resource → the manifest item that declares it, as plain values by field name. Pure."""

from __future__ import annotations

from typing import Any

from syncengine.document.instants import instant
from syncengine.manifest.schema import IDENTITIES, INSTANTS
from syncengine.resource import Body, Key, Kind, Resource, Value


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
