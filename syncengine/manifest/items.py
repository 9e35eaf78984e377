"""A resource → the item of a manifest that declares it: plain values under the names of the file. Pure."""

from __future__ import annotations

from typing import Any

from syncengine.document.instants import instant
from syncengine.manifest.schema import IDENTITIES, INSTANTS
from syncengine.resource import Body, Key, Kind, Resource, Value


def item_of(resource: Resource) -> dict[str, Any]:
    """The fields of a resource as a manifest has them. A tag's name need not be repeated as a keyword."""
    item = body_item(resource.key, resource.body)
    if resource.previously:
        item["previously"] = list(resource.previously)
    if resource.protect:
        item["protect"] = True
    return item


def body_item(key: Key, body: Body) -> dict[str, Any]:
    """The same of a body alone."""
    item = {IDENTITIES[key.kind]: key.name, **written_fields(body)}
    if key.kind is Kind.TAG:
        if keywords := declared_keywords(key, body):
            item["keywords"] = keywords
        if body.metadata:
            item["metadata"] = dict(body.metadata)
    return item


def written_fields(body: Body) -> dict[str, Any]:
    """The fields of a body as a file has them: instants as RFC 3339 where that says the same, and lists."""
    fields: dict[str, Any] = dict(body.fields)
    for name, value in body.fields.items():
        if type(value) is tuple:
            fields[name] = list(value)
        elif name in INSTANTS:
            fields[name] = _written(value)
    return fields


def declared_keywords(key: Key, body: Body) -> list[str]:
    """A tag's keywords without its name, unless the name is excluded and so stands there on its own account."""
    if body.fields.get("excludeTagNameKeyword"):
        return list(body.keywords)
    return [word for word in body.keywords if word != key.name]


def _written(value: Value) -> Value:
    """RFC 3339 where that says the same."""
    if not isinstance(value, int) or (value % 1000 and value < 0):
        return value
    return instant(value) or value
