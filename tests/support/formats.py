"""The published formats of documents: each document that the program prints fits the schema of its `format`."""

from functools import cache
from typing import Any

import jsonschema

from syncengine.render.schemas import SUFFIX, schemas

MANIFEST = "manifest"
"""What `render` prints: a manifest, which names no format, because it can be read again as one."""


def fitting(document: dict[str, Any], format: str = MANIFEST) -> str:
    """The name of the document's format, or `format` without one, whose schema it fits; all members are named there."""
    name = str(document.get("format", format))
    short = name.removeprefix("syncengine.").partition("/")[0]
    _judge(short).validate(document)
    return short


@cache
def _judge(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(_closed(schemas()[f"{name}{SUFFIX}"]))


def _closed(schema: Any) -> Any:
    """Without members beside those that are named; mappings by names of users stay open."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(each) for name, each in schema.items()}
    is_open = "properties" in schema and schema.get("additionalProperties") is True
    return {**closed, "additionalProperties": False} if is_open else closed
