"""The models of a manifest: the name, type, limits and description of every field (docs/manifests.md). Data only.

They validate manifests and make their JSON Schema. In a `generate` block (docs/manifests-from-data.md), each value of a
resource may also be a template: the models `TEMPLATED` validate what is written, and the resource's own what is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_origin

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import core_schema

from syncengine.document.diagnostics import suggestion
from syncengine.document.nodes import Fields, quoted
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.text import either_case
from syncengine.document.validation import (
    Model,
    OneOf,
    at_most_one,
    bare,
    key_problems,
    names_of,
    problem,
    refusal,
)
from syncengine.project.delivery_schema import Paging
from syncengine.project.types import (
    Condition,
    DeprecatedLine,
    Filled,
    Flag,
    Identity,
    Instant,
    Line,
    Names,
    Params,
    Prose,
    Template,
    Texts,
    WebLink,
    Words,
    Written,
    parsed,
    scalar_schema,
    text_of,
)
from syncengine.resource import Kind, Removal
from syncengine.templating.values import is_template

EXCLUSIVE = ("category", "tagCategoryId")
"""The fields of a tag that exclude each other: a tag has at most one of them."""
_PROTECT = "Never removed by a plan, even when the manifests no longer declare it."


class TagCategory(Model):
    """A group of tags."""

    title = "a tag category"
    synonyms: ClassVar[Mapping[str, str]] = {
        "id": "externalId",
        "name": "label",
        "code": "externalId",
        "title": "label",
    }

    external_id: Identity = Field(description="Identity of the category: its id in the connected system.")
    label: Line | None = Field(None, description="Shown in the console.")
    description: Prose | None = Field(None, description="Shown in the console.")
    keywords: Words | None = Field(None, description="Words that belong to the category.")
    previously: Names | None = Field(None, description="Earlier externalIds of this category, to rename it.")
    protect: Flag | None = Field(None, description=_PROTECT)


class ActivityType(Model):
    """A kind of work that time can be posted as."""

    title = "an activity type"
    synonyms: ClassVar[Mapping[str, str]] = {"name": "label", "id": "code", "externalId": "code", "title": "label"}

    code: Identity = Field(description="Identity of the activity type.")
    # It is required, but may be a default.
    label: Filled | None = Field(None, description="Shown in the console; the service sets it on creation only.")
    description: Prose | None = Field(None, description="Shown in the console.")
    enable_if_new: Flag | None = Field(
        None, description="Enable a new activity type for users; has no effect later; false by default."
    )
    reenable_if_archived: Flag | None = Field(
        None, description="Restore the activity type if it was deleted or archived; false by default."
    )
    protect: Flag | None = Field(None, description=_PROTECT)


class _OneCategory(Model):
    """The base class of a tag and its defaults."""

    model_config = ConfigDict(json_schema_extra=at_most_one(*EXCLUSIVE))


class Tag(_OneCategory):
    """A tag that users assign to recorded time."""

    title = "a tag"
    # Names that people take by mistake from the service's interface or from another kind, where the nearest spelling
    # would mislead.
    synonyms: ClassVar[Mapping[str, str]] = {
        "additionalKeywords": "keywords",
        "categoryId": "tagCategoryId",
        "categoryExternalId": "category",
        "tagCategory": "category",
        "label": "name",
        "title": "name",
        "id": "externalId",
        "code": "name",
        "assignees": "assigneeExternalIds",
        "private": "visibility",
        "link": "url",
        "activityType": "defaultActivityTypeCode",
    }

    name: Identity = Field(description="The tag's name, which identifies it.")
    description: Prose | None = Field(None, description="Shown in the console and searchable; cannot be cleared.")
    category: Line | None = Field(None, description="The externalId of a category in the manifests.")
    tag_category_id: Line | None = Field(
        None, description="The service's id of a category that is managed elsewhere; excludes `category`."
    )
    keywords: Words | None = Field(None, description="All keywords of the tag except its name.")
    exclude_tag_name_keyword: Flag | None = Field(
        None, description="Do not use the tag's name as a keyword; false by default."
    )
    metadata: Texts | None = Field(None, description="Names and values that appear in reports.")
    external_id: Line | None = Field(None, description="The tag's id in the connected system.")
    default_activity_type_code: Line | None = Field(
        None, description="Activity type for time entries for which the user has chosen none."
    )
    url: WebLink | None = Field(None, description="A page that the console links to: https:// or http://.")
    visibility: Literal["PUBLIC", "PRIVATE"] | None = Field(
        None, description="PRIVATE tags are visible to authorised team members only; PUBLIC by default."
    )
    assignee_external_ids: Words | None = Field(None, description="External ids of the users who work on the matter.")
    managed_by: Line | None = Field(None, description="The system that manages this tag.")
    path: DeprecatedLine | None = Field(None, description="Deprecated by the service; `/` by default.")
    created_timestamp: Instant | None = Field(
        None, description="When the matter was created: RFC 3339, or milliseconds since the epoch."
    )
    modified_timestamp: Instant | None = Field(
        None, description="When the matter was modified: RFC 3339, or milliseconds since the epoch."
    )
    closed_timestamp: Instant | None = Field(
        None, description="When the matter was closed: RFC 3339, or milliseconds since the epoch."
    )
    previously: Names | None = Field(None, description="Earlier names of this tag, to rename it.")
    protect: Flag | None = Field(None, description=_PROTECT)


class RemovedTag(Model):
    """How to remove a tag that the manifests no longer declare."""

    title = "an item of `removed`"
    synonyms: ClassVar[Mapping[str, str]] = {"name": "tag", "how": "as"}

    tag: Identity = Field(description="Name of the tag.")
    as_: Removal = Field(
        description="forget: leave it unchanged; retire: keep it without keywords; delete: delete the tag.", alias="as"
    )
    reason: Prose | None = Field(None, description="Why the tag is removed; shown in the plan.")


MODELS: dict[Kind, type[Model]] = {Kind.CATEGORY: TagCategory, Kind.ACTIVITY_TYPE: ActivityType, Kind.TAG: Tag}
SECTIONS = {"tagCategories": Kind.CATEGORY, "activityTypes": Kind.ACTIVITY_TYPE, "tags": Kind.TAG}
IDENTITIES = {Kind.CATEGORY: "externalId", Kind.ACTIVITY_TYPE: "code", Kind.TAG: "name"}
_TYPES = {str(info.alias): bare(info.annotation) for model in MODELS.values() for info in model.model_fields.values()}
INSTANTS = frozenset(name for name, kind in _TYPES.items() if kind is int)
LISTS = frozenset(name for name, kind in _TYPES.items() if get_origin(kind) is tuple)
NOT_TEXT = INSTANTS | {name for name, kind in _TYPES.items() if kind is bool}
"""The fields that are flags or instants, which are not read from quoted text."""
NEVER_EMPTY = NOT_TEXT | {name for name, kind in _TYPES.items() if get_origin(kind) is Literal}
"""The fields for which empty text has no meaning."""
NEVER_DEFAULTS = frozenset({"previously"})
"""The fields besides the identity that `defaults` cannot set, because they belong to a single resource."""
NEVER_FIELDS = frozenset({"keywords", "metadata", "protect", "previously"})
"""The fields of a tag that are stored outside `Body.fields`. A category's keywords are an ordinary field."""


_model_of: Any = create_model  # type checkers cannot know computed fields


def _defaults_model(kind: Kind, section: str) -> type[Model]:
    """Return a model with the kind's fields, all optional, without those that belong to a single resource."""
    model = MODELS[kind]
    fields: dict[str, Any] = {
        name: (info.annotation, Field(default=None, description=info.description))
        for name, info in model.model_fields.items()
        if info.alias not in {IDENTITIES[kind], *NEVER_DEFAULTS}
    }
    made = _model_of(f"{model.__name__}Defaults", __base__=model.__base__, **fields)
    made.title, made.synonyms = f"`defaults.{section}`", model.synonyms
    model_of_defaults: type[Model] = made
    return model_of_defaults


DEFAULTS = {kind: _defaults_model(kind, section) for section, kind in SECTIONS.items()}
Defaults: Any = _model_of(
    "Defaults",
    __base__=Model,
    __doc__="Default values for all resources of a kind. A resource adds to maps, and replaces lists and scalars.",
    **{
        name: (
            DEFAULTS[kind] | None,
            Field(default=None, description=f"Default values for all `{section}`."),
        )
        for name, (section, kind) in zip(("tag_categories", "activity_types", "tags"), SECTIONS.items(), strict=True)
    },
)


# --- encodings of data files

_PAGES = (
    *(437, 720, 737, 775, 850, 852, 855, 857, 858, *range(860, 867), 869, 874),
    *(932, 949, 950, 1006, 1125, *range(1250, 1259)),
)
_UNICODE = ("utf-8", "utf-8-sig", *(f"utf-{bits}{end}" for bits in (16, 32) for end in ("", "-le", "-be")))
_OTHERS = ("koi8-r", "koi8-u", "tis-620", "gb2312", "gbk", "gb18030", "big5", "big5-hkscs", "euc-jp", "euc-kr", "johab")
_SCRIPTS = ("roman", "cyrillic", "greek", "turkish", "latin2", "iceland")
ENCODINGS = {
    **{name: name for name in _UNICODE},
    "ascii": "ascii",
    "us-ascii": "ascii",
    **{
        name: f"cp{page}" for page in _PAGES for name in (f"cp{page}", f"{'windows-' if page >= 1250 else 'ibm'}{page}")
    },
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))},
    **{f"latin-{n}": f"iso8859-{part}" for n, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), 1)},
    **{name: name.replace("-", "_") for name in _OTHERS},
    "shift-jis": "shift_jis",
    "sjis": "shift_jis",
    "iso-2022-jp": "iso2022_jp",
    **{f"mac-{script}": f"mac_{script}" for script in _SCRIPTS},
}
"""The encodings that data files may have: names in lower case, with `-` where it is optional, and Python's codecs.

Its other codecs are left out: some take quadratic time (punycode), and some do not encode text.
"""
_BY_LETTERS = {name.replace("-", ""): codec for name, codec in ENCODINGS.items()}


def codec_of(text: str) -> str | None:
    """Return Python's name of an encoding, or `None` when the encoding is not allowed."""
    return _BY_LETTERS.get(re.sub("[-_ ]", "", text).lower())


def _encoding(value: Any) -> str:
    text = text_of(value, expected := "an encoding such as utf-8 or cp1252")
    if (codec := codec_of(text)) is None:
        raise problem("bad-value", f"must be {expected}, not {quoted(text)}{suggestion(text.lower(), ENCODINGS)}")
    return codec


_ANY_ENCODING = "|".join(either_case(name).replace("-", "[-_ ]?") for name in sorted(ENCODINGS))
ENCODING_SCHEMA = {"type": "string", "pattern": f"^(?:{_ANY_ENCODING})$"}
"""The schema of an encoding, in any case; each `-` may be `_`, a blank, or left out."""

# --- generate

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


OF_CSV = ("delimiter", "columns")
OF_FILES = ("encoding",)
WITH_LISTS = ("json", "yaml")
OF_NO_FILE = frozenset({"sql", "http"})


def _row_name(value: Any) -> str:
    """Return the name of a row in templates: one without another meaning there."""
    name = str(text_of(value, expected := "a name of letters, digits and `_` that begins with a letter"))
    if not _NAME.fullmatch(name):
        raise problem("bad-value", f"must be {expected}")
    if name in LANGUAGE:
        raise problem("bad-value", f"must not be `{name}`, which is a reserved word in templates")
    if name in NAMED_ALREADY:
        raise problem("bad-value", f"must not be `{name}`, which already has a meaning in templates")
    return name


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    if not 0 < len(names) == len(set(names)):
        raise problem("bad-value", "must name at least one column, and each column only once")
    return names


class OrTemplate:
    """The annotation of a value that may also be a template, or contain one: it is validated when it is rendered."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_wrap_validator_function(self.validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [handler(schema), TEMPLATE]}

    def validate(self, value: Any, handler: Any) -> Any:
        return value if _is_template(value) else handler(value)


def _is_template(value: Any) -> bool:
    """Return whether a value contains a template anywhere."""
    if isinstance(value, dict):
        return any(map(_is_template, (*value, *value.values())))
    return any(map(_is_template, value)) if isinstance(value, list) else isinstance(value, str) and is_template(value)


def _templated(model: type[Model]) -> type[Model]:
    """Return the model of a resource in a `generate` block, in which each value may be a template."""
    fields: dict[str, Any] = {
        name: (
            Annotated[(info.annotation, *info.metadata, OrTemplate())],
            Field(default=info.default, description=info.description),
        )
        for name, info in model.model_fields.items()
    }
    made: type[Model] = _model_of(f"{model.__name__}Template", __base__=model, __doc__=model.__doc__, **fields)
    return made


def _resource(value: Any) -> MappingNode:
    if not isinstance(value, Fields):
        raise refusal(value, "a mapping of fields", "")
    return value.node


def _template_of(kind: Kind) -> PlainValidator:
    """Return a validator of a resource's node, whose fields are validated one block at a time."""
    return PlainValidator(_resource, json_schema_input_type=TEMPLATED[kind])


TEMPLATE = {"type": "string", "pattern": r"\{\{|\{%", "description": "A template (Jinja2)."}
TEMPLATED = {kind: _templated(model) for kind, model in MODELS.items()}
"""The models of resources in `generate` blocks."""
_COLUMN = scalar_schema(r"^\S(.*\S)?$")
_COLUMNS: dict[str, Any] = {"type": "array", "items": _COLUMN, "minItems": 1, "uniqueItems": True}
UniqueNames = Annotated[tuple[Identity, ...], AfterValidator(_unique), WithJsonSchema(_COLUMNS)]
Columns = Annotated[
    UniqueNames,
    # Plain text such as `no` is a column's name, not a flag.
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [_COLUMN, _COLUMNS]}),
]
Delimiter = Annotated[
    str,
    parsed(_delimiter, "one character, or `tab`"),
    WithJsonSchema({"type": "string", "pattern": r'^([^\r\n"]|tab|\\t)$'}),
]
Encoding = Annotated[str, PlainValidator(_encoding), WithJsonSchema(ENCODING_SCHEMA)]
RowName = Annotated[
    str,
    PlainValidator(_row_name),
    WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$", "not": {"enum": sorted(RESERVED)}}),
]


class SqlFrom(OneOf):
    """A query of a database: a source of the project file, or a SQLite file."""

    kinds = ("source", "file")

    source: Template | None = Field(None, description="Name of a source in the project file.")
    file: Template | None = Field(None, description="Path of a SQLite file of this project, relative to this manifest.")
    query: Template = Field(description="One SELECT with :names for its parameters; not a template.")
    params: Params | None = Field(
        None, description="Values of the query's parameters by name; templates can use var and env."
    )


class HttpFrom(Model):
    """A list in the JSON answer of an HTTP service that the project file names."""

    source: Template = Field(description="Name of a source in the project file.")
    path: Template | None = Field(None, description="Path below the source's URL; templates can use var and env.")
    query: Params | None = Field(None, description="Query parameters; templates can use var and env.")
    items: Identity | None = Field(None, description="Path of the list in the answer, such as `data.matters`.")
    paging: Paging | None = None
    allow_partial: Flag | None = Field(
        None, description="Accept a list of which the answer says that it is longer; false by default."
    )


class ForEach(OneOf):
    """The source of the rows: exactly one of csv, json, jsonl, yaml, sql and http."""

    kinds = KINDS
    model_config = ConfigDict(json_schema_extra={"dependentRequired": {name: ["csv"] for name in OF_CSV}})

    csv: Template | None = Field(
        None, description="Path of a CSV file, relative to this manifest; templates can use var and env."
    )
    json_: Template | None = Field(
        None, description="Path of a JSON file with a list of objects; templates can use var and env.", alias="json"
    )
    jsonl: Template | None = Field(
        None, description="Path of a file with one JSON object per line; templates can use var and env."
    )
    yaml: Template | None = Field(
        None, description="Path of a YAML file with a list of mappings; templates can use var and env."
    )
    sql: SqlFrom | None = None
    http: HttpFrom | None = None
    delimiter: Delimiter | None = Field(None, description="Delimiter of a CSV file; a comma by default.")
    encoding: Encoding | None = Field(None, description="Encoding of the file; UTF-8 by default.")
    columns: UniqueNames | None = Field(None, description="The columns of a CSV file that has no header.")
    items: Identity | None = Field(None, description="Path of the list in a JSON or YAML file, such as `data.matters`.")
    distinct: Columns | None = Field(
        None, description="One or more columns; only the first row with each combination of values is used."
    )
    allow_empty: Flag | None = Field(None, description="Accept a source without rows; false by default.")

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        result = super().__get_pydantic_json_schema__(schema, handler)
        handler.resolve_ref_schema(result)["dependentSchemas"]["items"] = {
            "properties": {kind: False for kind in KINDS if kind not in WITH_LISTS},
            "description": "`items` can be used with json and yaml only.",
        }
        return result

    @model_validator(mode="after")
    def _has_no_option_in_vain(self) -> ForEach:
        """Refuse the options that the source would ignore."""
        keys = {str(type(self).model_fields[name].alias) for name in self.model_fields_set}
        vain = {}
        for key in keys:
            if key in OF_CSV and "csv" not in keys:
                vain[key] = "can be used with `csv` only"
            elif key == "items" and keys.isdisjoint(WITH_LISTS):
                where = ": write it inside `http`" if "http" in keys else ""
                vain[key] = f"can be used with json and yaml only{where}"
            elif key in OF_FILES and keys & OF_NO_FILE:
                vain[key] = "can be used with files only"
        if vain:
            raise key_problems({key: problem("bad-value", words) for key, words in vain.items()})
        return self

    @property
    def file(self) -> tuple[str, Written] | None:
        """The kind and path of the data file, or `None` for a database or a service."""
        paths = ((kind, getattr(self, attribute)) for kind, attribute in FILE_KINDS.items())
        return next(((kind, path) for kind, path in paths if path is not None), None)


class Generate(Model):
    """Resources that are generated once for each row of a source; their texts are templates."""

    title = "an item of `generate`"
    synonyms: ClassVar[Mapping[str, str]] = {"foreach": "forEach", "if": "when", "rows": "forEach"}
    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {
                    "required": [section],
                    "properties": {section: {"type": "array", "minItems": 1}},
                    "description": "A block must generate tags, tagCategories or activityTypes.",
                }
                for section in ("tags", "tagCategories", "activityTypes")
            ],
        }
    )

    for_each: ForEach = Field(description="The source of the rows.")
    as_: RowName | None = Field(None, description="Name of the current row in templates; `row` by default.", alias="as")
    when: Condition | None = Field(None, description="An expression; rows for which it is false are left out.")
    tag_categories: tuple[Annotated[Any, _template_of(Kind.CATEGORY)], ...] | None = Field(
        None, description="Tag categories, as in a manifest; texts are templates."
    )
    activity_types: tuple[Annotated[Any, _template_of(Kind.ACTIVITY_TYPE)], ...] | None = Field(
        None, description="Activity types, as in a manifest; texts are templates."
    )
    tags: tuple[Annotated[Any, _template_of(Kind.TAG)], ...] | None = Field(
        None, description="Tags, as in a manifest; texts are templates."
    )


class Manifest(Model):
    """One document of a manifest file; every section is optional."""

    # A document may be empty.
    model_config = ConfigDict(title="syncengine manifest", json_schema_extra={"type": ["object", "null"]})

    tag_categories: list[TagCategory] | None = Field(
        None, description="Groups of tags; a category that is no longer declared is deleted."
    )
    activity_types: list[ActivityType] | None = Field(None, description="Kinds of work that time can be posted as.")
    tags: list[Tag] | None = Field(None, description="Tags for recorded time, such as matters or projects.")
    defaults: Defaults | None = Field(None, description="Default values for all resources of this file.")
    removed: list[RemovedTag] | None = Field(None, description="How to remove tags that are no longer declared.")
    generate: list[Generate] | None = Field(None, description="Resources generated from the rows of a source.")


MANIFEST_SECTIONS = tuple(names_of(Manifest))
