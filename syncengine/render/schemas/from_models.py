"""Models of files → pydantic models, which make their JSON Schemas; pure."""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta
from msgspec.structs import fields
from pydantic import BaseModel, ConfigDict, Field, create_model

from syncengine.document.model import Model


@cache
def pydantic_model(model: type[Model]) -> type[BaseModel]:
    """The same fields, in the same order, under the same names as in the file."""
    found: dict[str, Any] = {
        field.name: (
            Annotated[_typed(field.type), Field(alias=field.encode_name)],
            ... if field.default is NODEFAULT else field.default,
        )
        for field in fields(model)
    }
    beyond = dict(model.beyond_fields)
    config = ConfigDict(extra="forbid", title=beyond.pop("title", None), json_schema_extra=beyond)
    return create_model(model.__name__, __config__=config, __doc__=model.__dict__.get("__doc__"), **found)


def _typed(annotation: Any) -> Any:
    """A type with pydantic models in place of models of files, and what is said of it in pydantic's words."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return pydantic_model(annotation)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bare, *said = inner
        return Annotated[(_typed(bare), *map(_said, said))]
    if origin in (Union, UnionType):
        return Union[tuple(map(_typed, inner))]  # noqa: UP007 -- as many as there are
    if origin in (dict, list, tuple):
        return origin[tuple(map(_typed, inner))]
    return annotation


def _said(about: Any) -> Any:
    """What a field's annotation says, if it is for schemas that pydantic makes."""
    if not isinstance(about, Meta):
        return about
    words = {name: getattr(about, name) for name in ("description", "examples", "ge", "le")}
    return Field(**{name: value for name, value in words.items() if value is not None})
