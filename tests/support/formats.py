"""The published formats of documents: each document that the program prints fits the schema of its `format`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

SCHEMAS = Path(__file__).parents[2] / "schemas"
MANIFEST = "manifest"
"""What `render` prints: a manifest, which names no format, because it can be read again as one."""


def fitting(document: dict[str, Any], format: str = MANIFEST) -> str:
    """The name of the document's format, or `format` without one, whose schema it fits; all members are named there."""
    name = str(document.get("format", format))
    short = name.removeprefix("syncengine.").removesuffix("/v1")
    _judge(short).validate(document)
    return short


@cache
def _judge(name: str) -> jsonschema.Draft202012Validator:
    file = SCHEMAS / f"{name}.schema.json"
    assert file.exists(), f"no schema of the format {name}"
    return jsonschema.Draft202012Validator(json.loads(file.read_text(encoding="utf-8"), object_hook=_closed))


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Without members beside those that are named; mappings by names of users stay open."""
    is_open = "properties" in schema and schema.get("additionalProperties") is True
    return {**schema, "additionalProperties": False} if is_open else schema
