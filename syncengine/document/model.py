"""The base class of the models of files, and the annotation for a field's JSON Schema. Data only.

Models are msgspec structs, because every command loads some of them. `schema` turns them into pydantic models, which
make the JSON Schemas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import FieldInfo, fields


class Model(Struct, frozen=True, rename="camel"):
    """The base class of all models of files. Names in the file are camelCase.

    The constructor does not validate values, because readers have done so. `beyond_fields` is the part of the JSON
    Schema for the mapping as a whole, and `schema_name` the schema's name if it differs from the model's.
    """

    schema_name: ClassVar[str] = ""
    beyond_fields: ClassVar[Mapping[str, Any]] = {}


@cache
def fields_of(model: type[Model]) -> Sequence[FieldInfo]:
    """Return the fields of a model with their evaluated types, which takes long enough to be done once."""
    return fields(model)


def names_of(model: type[Model]) -> dict[str, str]:
    """Return the names of a model's attributes by their names in the file, in order."""
    return dict(zip(model.__struct_encode_fields__, model.__struct_fields__, strict=True))


def constructed(model: type[Model], values: Mapping[str, Any]) -> Any:
    """Return an instance of `model` with values by their names in the file. Missing fields get their defaults."""
    names = names_of(model)
    return model(**{names[name]: value for name, value in values.items()})


PART = "part"


def part_of(name: str) -> dict[str, str]:
    """Return a placeholder for the JSON Schema `name`, which another file's model makes (`schemas.published`)."""
    return {PART: name}


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """An annotation with a field's JSON Schema, for fields whose type does not determine it."""

    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)
