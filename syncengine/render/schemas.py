"""Generate JSON Schemas 2020-12 of all files and documents from their models. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, to_builtins
from msgspec.structs import fields
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from syncengine.document.validation import PART
from syncengine.manifest.lints import LINTS
from syncengine.manifest.schema import Defaults, Manifest
from syncengine.plan.checks import LINTS as PLANNING_LINTS
from syncengine.project.environments import UNUSED
from syncengine.project.load import LINTS as SETTING_LINTS
from syncengine.project.schema import ProjectFile
from syncengine.render import drift, formats, posted_time, state
from syncengine.rules.read import Policies
from syncengine.service.operations import OPERATIONS
from syncengine.state.transfer import Head, Line

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SUFFIX = ".schema.json"


class _Untitled(GenerateJsonSchema):
    """A generator that gives fields no titles, which would only repeat their names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Written(_Untitled):
    """A generator for files that people write, in which a field may be absent but never null (docs/manifests.md)."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def schemas() -> dict[str, dict[str, Any]]:
    """Return all published JSON Schemas by file name."""
    project = _schema(ProjectFile, _Written)
    project["$defs"] |= (defaults := _schema(Defaults, _Written)).pop("$defs", {})
    del defaults["$schema"]
    project["$defs"]["Defaults"] = defaults
    for settings in (project, project["$defs"]["Overlay"]):
        settings["properties"]["defaults"] = {"$ref": "#/$defs/Defaults"}
    _name(project, "ServiceSection", "endpoints", OPERATIONS.keys() - UNUSED.keys())
    _name(project, "PolicySection", "diagnostics", {*LINTS, *PLANNING_LINTS, *SETTING_LINTS})
    manifest = _schema(Manifest, _Written)
    # Activity types need a label unless the defaults have one.
    labelled = {"type": "array", "items": _object("label", True)}
    blocks = {"type": "array", "items": {"type": "object", "properties": {"activityTypes": labelled}}}
    manifest["if"] = _object("defaults", _object("activityTypes", _object("label", True)))
    manifest["else"] = {"properties": {"activityTypes": labelled, "generate": blocks}}
    policies = _schema(Policies, _Written)
    policies["$defs"] |= _parts(manifest, "Manifest")
    project["$defs"] |= _parts(policies, "Policies")
    found = {"manifest": manifest, "project": _linked(project), "policies": _linked(policies)}
    for module in (formats, state, posted_time, drift):
        for model in vars(module).values():
            # Documents have a tag, unlike their parts.
            if isinstance(model, type) and issubclass(model, Struct) and model.__struct_config__.tag:
                found[_title(model).removeprefix("syncengine ").replace(" ", "-")] = _schema(model, _Untitled)
    found["state-export"] = _schema(Head | Line, _Untitled) | {"title": "syncengine state-export"}
    return {f"{name}{SUFFIX}": schema for name, schema in found.items()}


def _schema(model: Any, generator: type[GenerateJsonSchema]) -> dict[str, Any]:
    return {"$schema": DIALECT, **TypeAdapter(_typed(model)).json_schema(schema_generator=generator)}


def _name(project: dict[str, Any], section: str, field: str, names: Iterable[str]) -> None:
    """Restrict the keys of a mapping to `names`, because its own model accepts any."""
    project["$defs"][section]["properties"][field]["propertyNames"] = {"enum": sorted(names)}


def _linked(schema: Any) -> Any:
    """Return the schema with a reference in place of each part that another file's schema defines."""
    if isinstance(schema, dict):
        linked = {key: _linked(value) for key, value in schema.items() if key != PART or not isinstance(value, str)}
        return {**linked, "$ref": f"#/$defs/{schema[PART]}"} if len(linked) < len(schema) else linked
    return [_linked(each) for each in schema] if isinstance(schema, list) else schema


def _parts(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the definitions of a schema, and the schema itself under `name`."""
    whole = {key: value for key, value in schema.items() if key not in ("$schema", "$defs")}
    return {**schema["$defs"], name: whole}


def _object(field: str, schema: object) -> dict[str, Any]:
    return {"type": "object", "required": [field], "properties": {field: schema}}


# --- models of documents → pydantic models, from which the schemas are generated


@cache
def _pydantic_model(model: type[Struct]) -> type[BaseModel]:
    """Return a pydantic model with the fields of `model`, in the same order and under their names in files."""
    model_fields: dict[str, Any] = {}
    for field in fields(model):
        default = ... if field.default is NODEFAULT else field.default
        if field.default_factory is not NODEFAULT:
            default = to_builtins(field.default_factory())  # another struct's default is an object in the schema
        elif default is UNSET:  # left out of the document
            default = Field(default_factory=lambda: None)
        model_fields[field.name] = (Annotated[_typed(field.type), Field(alias=field.encode_name)], default)
    config = ConfigDict(extra="allow")  # fields may be added at any time
    if tag := model.__struct_config__.tag:
        config["title"] = _title(model)
        about = Field(description="The format of this document and its version.")
        model_fields = {"format": (Annotated[Literal[tag], about], ...), **model_fields}
    return create_model(model.__name__, __config__=config, __doc__=model.__dict__.get("__doc__"), **model_fields)


def _title(model: type[Struct]) -> str:
    return str(model.__struct_config__.tag).partition("/")[0].replace(".", " ")


def _typed(annotation: Any) -> Any:
    """Return a type in which all models are pydantic models and all annotations are pydantic's."""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return _pydantic_model(annotation)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bare, *annotations = inner
        return Annotated[(_typed(bare), *map(_field, annotations))]
    if origin in (Union, UnionType):
        return Union[tuple(_typed(each) for each in inner if each is not UnsetType)]  # noqa: UP007 -- as many as there are
    if origin in (dict, list, tuple, Mapping):
        return (dict if origin is Mapping else origin)[tuple(map(_typed, inner))]
    return annotation


def _field(about: Any) -> Any:
    """Return the annotation of a field in pydantic's form; a text becomes the description."""
    if isinstance(about, str):
        return Field(description=about)
    if not isinstance(about, Meta):
        return about
    words = {name: getattr(about, name) for name in ("description", "examples", "ge", "le")}
    return Field(**{name: value for name, value in words.items() if value is not None})
