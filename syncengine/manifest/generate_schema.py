"""The models of a `generate` block: its source and its templates. Data only (docs/manifests-from-data.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping as AnyMapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta, field

from syncengine.document.diagnostics import INVALID, Collector
from syncengine.document.field_types import Flag, Identity, Reads, scalar_schema
from syncengine.document.model import JsonSchema, Model
from syncengine.document.model_reader import unexamined
from syncengine.document.nodes import Mapping, Node, Sequence
from syncengine.document.scalar_readers import identity, list_reader, tested
from syncengine.document.setting_types import parse_reader
from syncengine.document.template_types import Condition, Params, Template, Written, one_of, one_of_schema
from syncengine.manifest import encodings
from syncengine.project.delivery_schema import PagingSection

_MAKES_NOTHING = "A block must generate tags, tagCategories or activityTypes."
FILE_KINDS = {"csv": "csv", "json": "json_", "jsonl": "jsonl", "yaml": "yaml"}
"""The kinds of data files, each with its attribute of `ForEach`."""
KINDS = (*FILE_KINDS, "sql", "http")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
NAMED_ALREADY = frozenset({"var", "env", "data", "range", "dict", "namespace", "loop", "self"})
LANGUAGE = frozenset(
    {"and", "elif", "else", "for", "if", "in", "is", "not", "or"} | {"true", "false", "none", "True", "False", "None"}
)
RESERVED = NAMED_ALREADY | LANGUAGE
"""The names that `as` cannot give to a row, because they already have a meaning in templates."""


def _delimiter(text: str) -> str | None:
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    return character if len(character) == 1 and character not in '\r\n"' else None


def _name(text: str) -> str | None:
    return text if _NAME.fullmatch(text) else None


_row_name = tested(
    tested(
        parse_reader(_name, "a name of letters, digits and `_` that begins with a letter"),
        lambda name: name not in LANGUAGE,
        "bad-value",
        lambda name: f"must not be `{name}`, which is a reserved word in templates",
    ),
    lambda name: name not in NAMED_ALREADY,
    "bad-value",
    lambda name: f"must not be `{name}`, which already has a meaning in templates",
)
"""The reader of `as`: a name without another meaning in templates."""
OF_CSV = ("delimiter", "columns")
OF_FILES = ("encoding",)
WITH_LISTS = ("json", "yaml")
OF_NO_FILE = frozenset({"sql", "http"})


def _for_each(name: str) -> Any:
    """Return a reader of `forEach` that rejects options which the source would ignore."""
    read_one = one_of(ForEach, "`forEach`", KINDS)(name)

    def read(node: Node, findings: Collector) -> Any:
        value = read_one(node, findings)
        if value is INVALID or not isinstance(node, Mapping):
            return value
        keys = {key.text: key for key in node.keys}
        for key in keys.values():
            if key.text in OF_CSV and "csv" not in keys:
                value = findings.error("bad-value", key, f"`{key.text}` can be used with `csv` only")
            elif key.text == "items" and keys.keys().isdisjoint(WITH_LISTS):
                where = ": write it inside `http`" if "http" in keys else ""
                value = findings.error("bad-value", key, f"`items` can be used with json and yaml only{where}")
            elif key.text in OF_FILES and keys.keys() & OF_NO_FILE:
                value = findings.error("bad-value", key, f"`{key.text}` can be used with files only")
        return value

    return read


_unique = tested(
    lambda name: list_reader(name, identity(f"an item of {name}"), "a list of columns", empty=""),
    lambda names: 0 < len(names) == len(set(names)),
    "bad-value",
    "must name at least one column, and each column only once",
)
"""The reader of a list of one or more distinct column names."""


def _one_or_more(name: str) -> Any:
    """Return a reader of one column or a list of columns. Plain text such as `no` is a column's name, not a flag."""
    one, several = identity(name), _unique(name)

    def read(node: Node, findings: Collector) -> Any:
        if isinstance(node, Sequence):
            return several(node, findings)
        column = one(node, findings)
        return INVALID if column is INVALID else (column,)

    return read


_COLUMN = scalar_schema(r"^\S(.*\S)?$")
_COLUMNS: dict[str, Any] = {"type": "array", "items": _COLUMN, "minItems": 1, "uniqueItems": True}
File = Template
UniqueNames = Annotated[tuple[str, ...], Reads(_unique), JsonSchema(_COLUMNS)]
Delimiter = Annotated[
    str,
    Reads(parse_reader(_delimiter, "one character, or `tab`")),
    JsonSchema({"type": "string", "pattern": r'^([^\r\n"]|tab|\\t)$'}),
]
Encoding = Annotated[str, Reads(encodings.encoding), JsonSchema(encodings.SCHEMA)]
RowName = Annotated[
    str,
    Reads(_row_name),
    JsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$", "not": {"enum": sorted(RESERVED)}}),
]
Columns = Annotated[tuple[str, ...], Reads(_one_or_more), JsonSchema({"anyOf": [_COLUMN, _COLUMNS]})]
Nodes = Annotated[Any, Reads(unexamined), JsonSchema({"type": "array", "items": {"type": "object"}})]


class SqlFrom(Model, frozen=True, kw_only=True):
    """A query of a database: a source of the project file, or a SQLite file."""

    beyond_fields: ClassVar[AnyMapping[str, Any]] = one_of_schema("source", "file")

    source: Annotated[Template | None, Meta(description="Name of a source in the project file.")] = None
    file: Annotated[
        Template | None, Meta(description="Path of a SQLite file of this project, relative to this manifest.")
    ] = None
    query: Annotated[Template, Meta(description="One SELECT with :names for its parameters; not a template.")]
    params: Annotated[
        Params | None, Meta(description="Values of the query's parameters by name; templates can use var and env.")
    ] = None


class HttpFrom(Model, frozen=True):
    """A list in the JSON answer of an HTTP service that the project file names."""

    source: Annotated[Template, Meta(description="Name of a source in the project file.")]
    path: Annotated[
        Template | None, Meta(description="Path below the source's URL; templates can use var and env.")
    ] = None
    query: Annotated[Params | None, Meta(description="Query parameters; templates can use var and env.")] = None
    items: Annotated[Identity | None, Meta(description="Path of the list in the answer, such as `data.matters`.")] = (
        None
    )
    paging: PagingSection | None = None
    allow_partial: Annotated[
        Flag | None, Meta(description="Accept a list of which the answer says that it is longer; false by default.")
    ] = None


_ONE_SOURCE = one_of_schema(*KINDS)


class ForEach(Model, frozen=True):
    """The source of the rows: exactly one of csv, json, jsonl, yaml, sql and http."""

    beyond_fields: ClassVar[AnyMapping[str, Any]] = {
        **_ONE_SOURCE,
        "dependentRequired": {name: ["csv"] for name in OF_CSV},
        "dependentSchemas": {
            **_ONE_SOURCE["dependentSchemas"],
            "items": {
                "properties": {kind: False for kind in KINDS if kind not in WITH_LISTS},
                "description": "`items` can be used with json and yaml only.",
            },
        },
    }

    csv: Annotated[
        File | None,
        Meta(description="Path of a CSV file, relative to this manifest; templates can use var and env."),
    ] = None
    json_: Annotated[
        File | None, Meta(description="Path of a JSON file with a list of objects; templates can use var and env.")
    ] = field(default=None, name="json")
    jsonl: Annotated[
        File | None, Meta(description="Path of a file with one JSON object per line; templates can use var and env.")
    ] = None
    yaml: Annotated[
        File | None, Meta(description="Path of a YAML file with a list of mappings; templates can use var and env.")
    ] = None
    sql: Annotated[SqlFrom, Reads(one_of(SqlFrom, "`sql`", ("source", "file")))] | None = None
    http: HttpFrom | None = None
    delimiter: Annotated[Delimiter | None, Meta(description="Delimiter of a CSV file; a comma by default.")] = None
    encoding: Annotated[Encoding | None, Meta(description="Encoding of the file; UTF-8 by default.")] = None
    columns: Annotated[UniqueNames | None, Meta(description="The columns of a CSV file that has no header.")] = None
    items: Annotated[
        Identity | None, Meta(description="Path of the list in a JSON or YAML file, such as `data.matters`.")
    ] = None
    distinct: Annotated[
        Columns | None,
        Meta(description="One or more columns; only the first row with each combination of values is used."),
    ] = None
    allow_empty: Annotated[Flag | None, Meta(description="Accept a source without rows; false by default.")] = None

    @property
    def file(self) -> tuple[str, Written] | None:
        """The kind and path of the data file, or `None` for a database or a service."""
        paths = ((kind, getattr(self, attribute)) for kind, attribute in FILE_KINDS.items())
        return next(((kind, path) for kind, path in paths if path is not None), None)


class Generate(Model, frozen=True):
    """Resources that are generated once for each row of a source; their texts are templates."""

    beyond_fields: ClassVar[AnyMapping[str, Any]] = {
        "required": ["forEach"],
        "anyOf": [
            {
                "required": [section],
                "properties": {section: {"type": "array", "minItems": 1}},
                "description": _MAKES_NOTHING,
            }
            for section in ("tags", "tagCategories", "activityTypes")
        ],
    }

    for_each: Annotated[ForEach, Reads(_for_each), Meta(description="The source of the rows.")]
    as_: Annotated[RowName | None, Meta(description="Name of the current row in templates; `row` by default.")] = field(
        default=None, name="as"
    )
    when: Annotated[Condition | None, Meta(description="An expression; rows for which it is false are left out.")] = (
        None
    )
    tag_categories: Annotated[
        Nodes | None, Meta(description="Tag categories, as in a manifest; texts are templates.")
    ] = None
    activity_types: Annotated[
        Nodes | None, Meta(description="Activity types, as in a manifest; texts are templates.")
    ] = None
    tags: Annotated[Nodes | None, Meta(description="Tags, as in a manifest; texts are templates.")] = None
