"""Models of documents → pydantic models, from which JSON Schemas are generated; pure."""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import NODEFAULT, UNSET, Meta, UnsetType
from msgspec.structs import FieldInfo, fields
from pydantic import BaseModel, ConfigDict, Field, create_model

from syncengine.document.text import to_camel
from syncengine.render.formats import OpenModel

FORMAT = Field(description="The format of this document and its version.")


class Format(BaseModel):
    """A published format. Its names are camelCase in JSON, and readers must ignore unknown names."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")


def document(model: Format) -> dict[str, Any]:
    """Return a model as a JSON object with `format` as its first key."""
    names = model.model_dump(by_alias=True)
    return {"format": names.pop("format"), **names}


@cache
def pydantic_model(model: type[OpenModel]) -> type[BaseModel]:
    """Return a pydantic model with the fields of `model`, in the same order and under their names in files."""
    model_fields: dict[str, Any] = {
        field.name: (Annotated[_typed(field.type), Field(alias=field.encode_name)], _default(field))
        for field in fields(model)
    }
    config = ConfigDict(extra="allow")
    if tag := model.__struct_config__.tag:
        config["title"] = str(tag).partition("/")[0].replace(".", " ")
        model_fields = {"format": (Annotated[Literal[tag], FORMAT], ...), **model_fields}
    return create_model(model.__name__, __config__=config, __doc__=model.__dict__.get("__doc__"), **model_fields)


def _default(field: FieldInfo) -> Any:
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    if field.default is UNSET:  # left out of the document
        return Field(default_factory=lambda: None)
    return ... if field.default is NODEFAULT else field.default


def _typed(annotation: Any) -> Any:
    """Return a type in which all models are pydantic models and all annotations are pydantic's."""
    if isinstance(annotation, type) and issubclass(annotation, OpenModel):
        return pydantic_model(annotation)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bare, *annotations = inner
        return Annotated[(_typed(bare), *map(_field, annotations))]
    if origin in (Union, UnionType):
        return Union[tuple(_typed(each) for each in inner if each is not UnsetType)]  # noqa: UP007 -- as many as there are
    if origin in (dict, list, tuple):
        return origin[tuple(map(_typed, inner))]
    return annotation


def _field(about: Any) -> Any:
    """Return the annotation of a field in pydantic's form; a text becomes the description."""
    if isinstance(about, str):
        return Field(description=about)
    if not isinstance(about, Meta):
        return about
    words = {name: getattr(about, name) for name in ("description", "examples", "ge", "le")}
    return Field(**{name: value for name, value in words.items() if value is not None})
