"""Read the settings of delivery: templates with their places, JSON, headers and paths. Pure.

Templates are kept as written. `posted_time` compiles them and reports where they are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from syncengine.document.diagnostics import INVALID, Collector
from syncengine.document.field_types import Reads, scalar_schema
from syncengine.document.model import JsonSchema, Model
from syncengine.document.model_reader import model_reader
from syncengine.document.nodes import Mapping, Node, RefusedNode, Scalar, Sequence, place, quoted
from syncengine.document.scalar_readers import (
    Reader,
    identity,
    is_text,
    list_reader,
    prose,
    refused,
    says_something,
    tested,
    whole_number,
)
from syncengine.document.setting_types import (
    USE_REFERENCE,
    Reference,
    filled_path,
    parse_reader,
    reference,
)


@dataclass(frozen=True, slots=True)
class Written:
    """Text that is compiled later, with its place in the project file."""

    text: str
    line: int
    column: int


Json = Any
"""JSON whose strings are `Written`: `None`, bool, int, float or `Written`, or a tuple or dict of them."""

_SINK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_SECRET_HEADER = re.compile(r"authorization|cookie|token|secret|password|api-?key", re.IGNORECASE)
_FLAGS = {"true": True, "false": False}


def with_place(make: Callable[[str], Reader]) -> Callable[[str], Reader]:
    """Return a factory of readers like those of `make`, which return the text with its place."""

    def placed(name: str) -> Reader:
        text = make(name)

        def read(node: Node, findings: Collector) -> Any:
            value = text(node, findings)
            return INVALID if value is INVALID else Written(value, *place(node))

        return read

    return placed


text_with_place = with_place(tested(prose, says_something, "empty-value", "must not be empty"))
"""A factory of readers of text with its place. A plain number or boolean is kept as the text in the file."""


def json_template(name: str) -> Reader:
    """Return a reader of JSON whose strings are templates. Plain numbers, true, false and null keep their types."""

    def read(node: Node, findings: Collector) -> Any:
        match node:
            case Mapping():
                values = {k.text: read(v, findings) for k, v in zip(node.keys, node.values, strict=True)}
                return INVALID if INVALID in values.values() else values
            case Sequence():
                items = tuple(read(item, findings) for item in node.items)
                return INVALID if INVALID in items else items
            case Scalar():
                return _json_scalar(node)
            case _:
                return INVALID

    return read


def _json_scalar(node: Scalar) -> Json:
    if node.is_null:
        return None
    if not node.style and node.text in _FLAGS:
        return _FLAGS[node.text]
    if not node.style and _INTEGER.fullmatch(node.text):
        return int(node.text)
    if not node.style and _NUMBER.fullmatch(node.text):
        return float(node.text)
    return Written(node.text, *place(node))


def parameters(name: str) -> Reader:
    """Return a reader of a mapping of names to templates, or to plain numbers, booleans and nulls."""
    value_of = json_template(name)

    def read(node: Node, findings: Collector) -> Any:
        if not isinstance(node, Mapping):
            return refused(node, findings, name, "a mapping of names to values", empty="{}")
        for value in node.values:
            if isinstance(value, Mapping | Sequence):
                findings.error("wrong-type", value, f"a value of `{name}` must be text, a number, true, false or null")
        result = value_of(node, findings)
        return INVALID if any(isinstance(value, Mapping | Sequence | RefusedNode) for value in node.values) else result

    return read


def headers(name: str) -> Reader:
    """Return a reader of headers, whose values are templates or references. Headers for credentials need references."""
    template = text_with_place(f"a header of {name}")

    def one(key: Scalar, node: Node, findings: Collector) -> Any:
        if isinstance(node, Mapping):
            return reference(f"header {key.text}", node, findings)
        if _SECRET_HEADER.search(key.text) and is_text(node):
            return findings.error(
                "secret-in-file", node, f"the header `{key.text}` must not be in the project file; {USE_REFERENCE}"
            )
        return template(node, findings)

    def read(node: Node, findings: Collector) -> Any:
        if not isinstance(node, Mapping):
            return refused(node, findings, name, "a mapping of header names to values", empty="{}")
        for key in node.keys:
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", key.text):
                findings.error("bad-value", key, f"{quoted(key.text)} is not a valid header name")
        values = {k.text: one(k, v, findings) for k, v in zip(node.keys, node.values, strict=True)}
        return INVALID if INVALID in values.values() else values

    return read


def statuses(name: str) -> Reader:
    """Return a reader of a list of HTTP statuses from 400 to 599, which are errors."""
    return list_reader(name, whole_number(400, 599)(f"an item of {name}"), "a list of HTTP statuses")


plain_name = with_place(
    tested(
        identity,
        _SINK_NAME.fullmatch,
        "bad-value",
        "must be at most 63 letters, digits, `-`, `_` or `.`, and start with a letter or digit",
    )
)
"""A factory of readers of a name that is valid in a header (Idempotency-Key) and in a table of receipts."""


def one_of(model: type[Model], title: str, kinds: tuple[str, ...]) -> Callable[[str], Reader]:
    """Return a factory of readers of a `model` in which exactly one of `kinds` is given."""
    names = _listed(kinds)

    def make(_: str) -> Reader:
        whole = model_reader(model, title.strip("`"))

        def read(node: Node, findings: Collector) -> Any:
            before = len(findings.found)
            value = whole(node, findings)
            if isinstance(node, Mapping) and sum(key.text in kinds for key in node.keys) != 1:
                if len(findings.found) > before:
                    return INVALID  # one of them is misspelt
                return findings.error("bad-value", node, f"{title} needs exactly one of {names}")
            return value

        return read

    return make


def _listed(kinds: tuple[str, ...]) -> str:
    return ", ".join(f"`{kind}`" for kind in kinds[:-1]) + f" or `{kinds[-1]}`"


def one_of_schema(*kinds: str) -> dict[str, Any]:
    """Return the JSON Schema of a mapping with exactly one of `kinds`. Editors show its description as the error."""
    sentence = f"Set one of {_listed(kinds)}."
    return {
        "anyOf": [{"required": [kind], "properties": {kind: True}, "description": sentence} for kind in kinds],
        **at_most_one(*kinds),
    }


def at_most_one(*kinds: str) -> dict[str, Any]:
    """Return the JSON Schema of a mapping with at most one of `kinds`. The later key gets the error."""
    sentence = f"Set only one of {_listed(kinds)}."
    later = {kind: dict.fromkeys(kinds[at + 1 :], False) for at, kind in enumerate(kinds[:-1])}
    return {"dependentSchemas": {kind: {"properties": no, "description": sentence} for kind, no in later.items()}}


_TEXT = scalar_schema(r"\S")
_PLAIN = [{"type": name} for name in ("string", "number", "boolean", "null")]
Template = Annotated[Written, Reads(text_with_place), JsonSchema(_TEXT)]
Condition = Annotated[Written, Reads(text_with_place), JsonSchema(_TEXT)]
JsonTemplate = Annotated[Any, Reads(json_template), JsonSchema({})]
Params = Annotated[
    dict[str, Any],
    Reads(parameters),
    JsonSchema(
        {
            "type": "object",
            "additionalProperties": {"anyOf": _PLAIN},
        }
    ),
]
Headers = Annotated[dict[str, Written | Reference], Reads(headers), JsonSchema({"type": "object"})]
Statuses = Annotated[
    tuple[int, ...],
    Reads(statuses),
    JsonSchema({"type": "array", "items": {"type": "integer", "minimum": 400, "maximum": 599}}),
]
SinkName = Annotated[Written, Reads(plain_name), JsonSchema({"type": "string", "pattern": f"^{_SINK_NAME.pattern}$"})]
file_path = parse_reader(filled_path, "a path")
_FILLED = JsonSchema({"type": "string", "pattern": r"\S"})
File = Annotated[str, Reads(file_path), _FILLED]
TemplateFile = Annotated[Written, Reads(with_place(file_path)), _FILLED]
