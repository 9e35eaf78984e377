"""A resource as rules see it, with every field of its kind as in a manifest. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncengine.document.model import names_of
from syncengine.manifest.items import declared_keywords, written_fields
from syncengine.manifest.schema import IDENTITIES, LISTS, MODELS
from syncengine.resource import Body, Key, Kind


class MetadataView(dict[str, str]):
    """Metadata by name, in which a missing name is none."""


class NoResource(dict[str, Any]):
    """The stand-in for a missing resource: false, equal to none, and without values."""

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, NoResource)

    __hash__ = None


def _empty(kind: Kind) -> dict[str, Any]:
    """Return every field of a kind without a value: an empty list, empty metadata, or else none."""
    values: dict[str, Any] = {name: [] if name in LISTS else None for name in names_of(MODELS[kind])}
    return values | ({"metadata": MetadataView()} if "metadata" in values else {})


EMPTY: Mapping[Kind, Mapping[str, Any]] = {kind: _empty(kind) for kind in Kind}
NOTHING: Mapping[Kind, NoResource] = {kind: NoResource(EMPTY[kind]) for kind in Kind}


def shown(key: Key, body: Body, protect: bool, previously: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a resource as a mapping with all fields of its kind."""
    view = {**EMPTY[key.kind], **written_fields(body)}
    view[IDENTITIES[key.kind]], view["protect"] = key.name, protect
    if previously:
        view["previously"] = list(previously)
    if key.kind is Kind.TAG:
        view["keywords"] = declared_keywords(key, body)
        if body.metadata:
            view["metadata"] = MetadataView(body.metadata)
    return view
