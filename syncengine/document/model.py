"""The base of the models of files, and the JSON Schema in a field's annotation. Data only.

Models are msgspec structs, since every command begins with some of them; `schema` makes pydantic models of them, and
those make the JSON Schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import Struct


class Model(Struct, frozen=True, rename="camel"):
    """The base of all models of files: names in the file are camelCase, and there are no others.

    Fields are given by keyword and not validated: readers have done that. `beyond_fields` is the part of the JSON
    Schema for the mapping as a whole, `schema_name` the name of the schema, if it differs.
    """

    schema_name: ClassVar[str] = ""
    beyond_fields: ClassVar[Mapping[str, Any]] = {}


def names_of(model: type[Model]) -> dict[str, str]:
    """The fields' names in the file, in order, with the names of the attributes."""
    return dict(zip(model.__struct_encode_fields__, model.__struct_fields__, strict=True))


def constructed(model: type[Model], values: Mapping[str, Any]) -> Any:
    """An instance from values by their names in the file; missing ones are None."""
    names = names_of(model)
    return model(**{names[name]: value for name, value in values.items()})


PART = "part"


def part_of(name: str) -> dict[str, str]:
    """Stand for the JSON Schema of this name, which another file's model makes (`schemas.published`)."""
    return {PART: name}


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """An annotation of a field: its JSON Schema, where its type does not give it."""

    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)
