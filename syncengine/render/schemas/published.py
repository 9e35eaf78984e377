"""Generate JSON Schemas 2020-12 of all files and documents from their models. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from syncengine.document.validation import PART
from syncengine.manifest.lints import LINTS
from syncengine.manifest.schema import Defaults, Manifest
from syncengine.plan.checks import LINTS as PLANNING_LINTS
from syncengine.project.environments import UNUSED
from syncengine.project.load import LINTS as SETTING_LINTS
from syncengine.project.schema import ProjectFile
from syncengine.render.formats import Diagnostics, OpenModel, PlanFormat, ReportFormat, TestFormat
from syncengine.render.schemas import commands, posted_time, pydantic_model, state
from syncengine.rules.read import Policies
from syncengine.service.operations import OPERATIONS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SUFFIX = ".schema.json"

PEOPLE_WRITE = ("manifest", "project", "policies")
"""The schemas of files that people write, which are kept in the repository for editors; `schema` prints the others."""


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
    manifest = _with_labels(_schema(Manifest, _Written))
    policies = _schema(Policies, _Written)
    policies["$defs"] |= _parts(manifest, "Manifest")
    project["$defs"] |= _parts(policies, "Policies")
    return {
        "manifest.schema.json": manifest,
        "project.schema.json": _linked(project),
        "policies.schema.json": _linked(policies),
        "plan.schema.json": _schema(PlanFormat, _Untitled),
        "report.schema.json": _schema(ReportFormat, _Untitled),
        "test.schema.json": _schema(TestFormat, _Untitled),
        "diagnostics.schema.json": _schema(Diagnostics, _Untitled),
        **{f"{name}{SUFFIX}": _schema(model, _Untitled) for name, model in _printed()},
    }


def _printed() -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the models of all printed documents, which have titles, unlike their parts, and their names."""
    for module in (commands, posted_time, state):
        for model in vars(module).values():
            is_own = isinstance(model, type) and issubclass(model, BaseModel) and model.__module__ == module.__name__
            if is_own and (title := model.model_config.get("title")):
                yield title.removeprefix("syncengine ").replace(" ", "-"), model


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


def _with_labels(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of manifests with a required label of activity types unless the defaults have one."""
    has_label = _object("defaults", _object("activityTypes", _object("label", True)))
    labelled = {"type": "array", "items": _object("label", True)}
    blocks = {"type": "array", "items": {"type": "object", "properties": {"activityTypes": labelled}}}
    return {**manifest, "if": has_label, "else": {"properties": {"activityTypes": labelled, "generate": blocks}}}


def _object(field: str, schema: object) -> dict[str, Any]:
    return {"type": "object", "required": [field], "properties": {field: schema}}


def _schema(model: type[BaseModel | OpenModel], generator: type[GenerateJsonSchema]) -> dict[str, Any]:
    model_class = pydantic_model(model) if issubclass(model, OpenModel) else model
    return {"$schema": DIALECT, **model_class.model_json_schema(schema_generator=generator)}
