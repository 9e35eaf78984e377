"""The models of a `generate` block: where rows come from, and what is made of them. Data only (product.md §3)."""

from __future__ import annotations

import codecs
import re
from typing import Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema

from syncengine.delivery_shapes import Condition, Params, Template, one_of, one_of_schema
from syncengine.document.findings import INVALID, Findings
from syncengine.document.nodes import Node, Sequence
from syncengine.document.shapes import Flag, Identity, Reads, identity, refused, whole_number
from syncengine.document.tables import Model, unexamined
from syncengine.setting_shapes import parsed

_MAKES_NOTHING = "A block makes tags, tagCategories or activityTypes."
KINDS = ("csv", "json", "jsonl", "yaml", "sql", "http")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
RESERVED = frozenset({"var", "env", "data", "range", "dict", "namespace", "loop", "true", "false", "none", "self"})


def text_encoding(text: str) -> str | None:
    try:
        found = codecs.lookup(text)
        "".encode(text)
    except (LookupError, ValueError):
        return None
    return text if found._is_text_encoding else None


def _delimiter(text: str) -> str | None:
    found = {"tab": "\t", "\\t": "\t"}.get(text, text)
    return found if len(found) == 1 and found not in '\r\n"' else None


def _name(text: str) -> str | None:
    return text if _NAME.fullmatch(text) and text not in RESERVED else None


def _delimiter_reader(name: str) -> Any:
    """One character; a tab and a blank are visible where they are quoted."""
    read_one = parsed(_delimiter, "one character, or `tab`")(name)

    def read(node: Node, findings: Findings) -> Any:
        return read_one(node, findings)

    return read


def _unique(name: str) -> Any:
    """A list of names, each of them once."""
    one = identity(f"an item of {name}")

    def read(node: Node, findings: Findings) -> Any:
        if not isinstance(node, Sequence):
            return refused(node, findings, name, "a list of columns", empty="")
        found = [one(item, findings) for item in node.items]
        if INVALID in found:
            return INVALID
        if not found or len(set(found)) < len(found):
            return findings.error("bad-value", node, f"`{name}` must name each column once")
        return tuple(found)

    return read


def _one_or_more(name: str) -> Any:
    """A column, or a list of them; `no` is the name of a column, as any plain text is."""
    one, several = identity(name), _unique(name)

    def read(node: Node, findings: Findings) -> Any:
        if isinstance(node, Sequence):
            return several(node, findings)
        found = one(node, findings)
        return INVALID if found is INVALID else (found,)

    return read


_COLUMN: dict[str, Any] = {"type": ["string", "number", "boolean"], "minLength": 1, "pattern": r"^\S(.*\S)?$"}
_COLUMNS: dict[str, Any] = {"type": "array", "items": _COLUMN, "minItems": 1, "uniqueItems": True}
File = Template
UniqueNames = Annotated[tuple[str, ...], Reads(_unique), WithJsonSchema(_COLUMNS)]
Delimiter = Annotated[
    str, Reads(_delimiter_reader), WithJsonSchema({"type": "string", "pattern": r"^([^\r\n\"]|tab|\\t)$"})
]
Encoding = Annotated[
    str, Reads(parsed(text_encoding, "an encoding like utf-8 or cp1252")), WithJsonSchema({"type": "string"})
]
RowName = Annotated[
    str,
    Reads(parsed(_name, "a name of letters, digits and _ that means nothing else")),
    WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$", "not": {"enum": sorted(RESERVED)}}),
]
Columns = Annotated[tuple[str, ...], Reads(_one_or_more), WithJsonSchema({"anyOf": [_COLUMN, _COLUMNS]})]
Nodes = Annotated[Any, Reads(unexamined), WithJsonSchema({"type": "array", "items": {"type": "object"}})]


class SqlFrom(Model):
    """A query of a database that the project file names."""

    model_config = one_of_schema("source", "file")

    source: Template | None = Field(None, description="A source of the project file.")
    file: Template | None = Field(None, description="A SQLite file of this project, relative to this manifest.")
    query: Template = Field(description="One SELECT with :names for its parameters; never a template.")
    params: Params | None = Field(None, description="A value for each name in the query; templates see var and env.")


class Paging(Model):
    """How an HTTP service gives a long list: the next page's URL in its answer, or a parameter that counts."""

    model_config = one_of_schema("next", "page")

    next: Identity | None = Field(None, description="Where in the answer the next page's URL is: `links.next`.")
    page: Identity | None = Field(None, description="A query parameter that counts pages, until one is empty.")
    first: Annotated[int, Reads(whole_number(0, 1_000_000))] | None = Field(None, description="The first page; 1.")


class HttpFrom(Model):
    """A list that an HTTP service of the project file answers with, as JSON."""

    source: Template = Field(description="A source of the project file.")
    path: Template | None = Field(None, description="Below the source's URL.")
    query: Params | None = Field(None, description="Parameters behind the path.")
    items: Identity | None = Field(None, description="Where in the answer the list is: `data.matters`.")
    paging: Annotated[Paging, Reads(one_of(Paging, "`paging`", ("next", "page")))] | None = None


class ForEach(Model):
    """Where the rows come from: just one of csv, json, jsonl, yaml, sql, http."""

    model_config = one_of_schema(*KINDS)

    csv: File | None = Field(None, description="A CSV file with a header, relative to this manifest.")
    json_: File | None = Field(None, alias="json", description="A JSON file with a list of objects.")
    jsonl: File | None = Field(None, description="A file with one JSON object a line.")
    yaml: File | None = Field(None, description="A YAML file with a list of mappings.")
    sql: Annotated[SqlFrom, Reads(one_of(SqlFrom, "`sql`", ("source", "file")))] | None = None
    http: HttpFrom | None = None
    delimiter: Delimiter | None = Field(None, description="Between the values of a CSV file; a comma by default.")
    encoding: Encoding | None = Field(None, description="Of the file; UTF-8 by default.")
    columns: UniqueNames | None = Field(None, description="The columns of a CSV file that has no header.")
    distinct: Columns | None = Field(None, description="Of rows with the same value here, the first alone.")
    allow_empty: Flag | None = Field(None, description="No rows are right; false by default.")


class Generate(Model):
    """Resources that are made once for each row of a source; their texts are templates."""

    model_config = ConfigDict(
        json_schema_extra={
            "required": ["forEach"],
            "anyOf": [
                {"required": [section], "properties": {section: {"minItems": 1}}, "errorMessage": _MAKES_NOTHING}
                for section in ("tags", "tagCategories", "activityTypes")
            ],
        }
    )

    for_each: Annotated[ForEach, Reads(one_of(ForEach, "`forEach`", KINDS))] = Field(description="The rows.")
    as_: RowName | None = Field(None, alias="as", description="What templates call a row; `row` by default.")
    when: Condition | None = Field(None, description="An expression: rows for which it is false are left out.")
    tag_categories: Nodes | None = Field(None, description="Tag categories, as outside; texts are templates.")
    activity_types: Nodes | None = Field(None, description="Activity types, as outside; texts are templates.")
    tags: Nodes | None = Field(None, description="Tags, as outside; texts are templates.")
