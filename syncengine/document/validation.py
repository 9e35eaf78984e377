"""Validate plain values by pydantic models, and say in our own words, at the place in the file, what is wrong. Pure.

A model is all there is about a mapping in a file: its names, types, limits and descriptions. It validates, and its JSON
Schema is made of it. An error of pydantic says where it is by the names and numbers on the way (`loc`), which lead to
the node of the file; it is looked for only then. No word of the library is shown.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterable
from collections.abc import Mapping as AnyMapping
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from syncengine.document.diagnostics import Collector, nearest, suggestion
from syncengine.document.nodes import (
    NULL,
    REFUSED,
    Mapping,
    Node,
    RefusedNode,
    Scalar,
    Sequence,
    kind_of,
    place,
    plain,
    quoted,
)
from syncengine.document.text import character, to_camel
from syncengine.errors import Severity

Words = str | Callable[[str], str]
"""What is wrong with a value: the rest of a sentence that begins with its name, or a sentence made of the name."""
PART = "part"
M = TypeVar("M", bound="Model")
S = TypeVar("S", str, int)
T = TypeVar("T")


def part_of(name: str) -> dict[str, str]:
    """Return a placeholder for the JSON Schema `name` of another file, which `render/schemas.py` puts in its place."""
    return {PART: name}


class Model(BaseModel):
    """The base class of the models of files. Names in a file are camelCase, and unknown ones are errors.

    `title` is what messages call the mapping, the name of the field that holds it by default. `synonyms` are names that
    people use for its fields.
    """

    # The core schemas are built late, since most files use few of many models.
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, arbitrary_types_allowed=True, defer_build=True
    )
    title: ClassVar[str] = ""
    synonyms: ClassVar[AnyMapping[str, str]] = {}


class OneOf(Model):
    """The base class of the models of mappings that have exactly one of the fields `kinds`."""

    kinds: ClassVar[Collection[str]] = ()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        result: dict[str, Any] = handler(schema)
        handler.resolve_ref_schema(result).update(one_of_schema(*cls.kinds))
        return result

    @model_validator(mode="after")
    def _has_one(self) -> OneOf:
        names = {type(self).model_fields[name].alias for name in self.model_fields_set}
        if len(names.intersection(self.kinds)) != 1:
            kinds = listed(self.kinds)
            raise problem("bad-value", lambda name: f"{called(self.title or name)} needs exactly one of {kinds}")
        return self


@cache
def names_of(model: type[BaseModel]) -> dict[str, str]:
    """Return the names of a model's attributes by their names in the file, in order."""
    return {info.alias or name: name for name, info in model.model_fields.items()}


def validated(model: type[M], root: Node, findings: Collector) -> M | None:
    """Return the model of a document's mapping, or `None` after its errors have been reported to `findings`."""
    try:
        return model.model_validate(plain(root))
    except ValidationError as error:
        report(error, model, root, findings)
        return None


# --- what validators of our types raise


def problem(code: str, words: Words) -> PydanticCustomError:
    """Return an error about a value."""
    return PydanticCustomError(code, "{words}", {"words": words})


def key_problems(problems: AnyMapping[str, PydanticCustomError]) -> ValidationError:
    """Return errors about keys of a mapping, by key."""
    errors: list[InitErrorDetails] = [
        {"type": error, "loc": (name, "[key]"), "input": name} for name, error in problems.items()
    ]
    return ValidationError.from_exception_data("", errors)


def each_part(parts: AnyMapping[S, Any], validate: Callable[[S, Any], T]) -> dict[S, T]:
    """Return the parts of a mapping or list, each validated by its step and value. Raise the errors of all of them."""
    found, errors = {}, list[InitErrorDetails]()
    for name, value in parts.items():
        try:
            found[name] = validate(name, value)
        except PydanticCustomError as error:
            errors.append({"type": error, "loc": (name,), "input": value})
    if errors:
        raise ValidationError.from_exception_data("", errors)
    return found


def refusal(value: object, expected: str, empty: str = '""') -> PydanticCustomError:
    """Return an error about a value of the wrong type. `empty` is the YAML of the empty value, if there is one."""
    return problem(*_refusal(value, expected, empty))


def _refusal(value: object, expected: str, empty: str) -> tuple[str, str]:
    if value is NULL:
        cure = f"write {empty} to clear it, or remove the line" if empty else "add a value, or remove the line"
        return "null-value", f"has no value: {cure}"
    return "wrong-type", f"must be {expected}, not {kind_of(value)}"


def refuse(node: Node, findings: Collector, name: str, expected: str, empty: str = '""') -> None:
    """Report a node of the wrong type, which no model validates."""
    if not isinstance(node, RefusedNode):
        code, words = _refusal(plain(node), expected, empty)
        findings.error(code, node, f"{called(name)} {words}")


def called(name: str) -> str:
    """Return a field's name in backticks. A description, or a name that has backticks, is unchanged."""
    return name if " " in name or name.startswith("`") else f"`{name}`"


def display(name: str) -> str:
    """Return a key for a message, shortened and printable."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name[:60])


def listed(names: Iterable[str]) -> str:
    *others, last = (f"`{name}`" for name in names)
    return f"{', '.join(others)} or {last}"


def one_of_schema(*kinds: str) -> dict[str, Any]:
    """Return the JSON Schema of a mapping with exactly one of `kinds`. Editors show its description as the error."""
    sentence = f"Set one of {listed(kinds)}."
    return {
        "anyOf": [{"required": [kind], "properties": {kind: True}, "description": sentence} for kind in kinds],
        **at_most_one(*kinds),
    }


def at_most_one(*kinds: str) -> dict[str, Any]:
    """Return the JSON Schema of a mapping with at most one of `kinds`. The later key gets the error."""
    sentence = f"Set only one of {listed(kinds)}."
    later = {kind: dict.fromkeys(kinds[at + 1 :], False) for at, kind in enumerate(kinds[:-1])}
    return {"dependentSchemas": {kind: {"properties": no, "description": sentence} for kind, no in later.items()}}


# --- from an error to its place and sentence


_Met = dict[int, tuple[Mapping, dict[str, int]]]
"""The mappings met on the way to errors, by identity, each with the positions of its keys."""


class _Spot(NamedTuple):
    """A value of a file: its name in messages, its type, its node, and its type with all validators, if optional."""

    name: str
    type: Any
    node: Node
    optional: Any = None

    def empty(self, text: str, value: object) -> str:
        """Return the YAML `text` of the empty `value` if that clears the field, or nothing."""
        with suppress(ValidationError):
            TypeAdapter(self.optional).validate_python(value)
            return text
        return ""

    @property
    def title(self) -> str:
        """What messages call the mapping of a model."""
        return getattr(self.type, "title", "") or self.name


def report(
    error: ValidationError, model: type[BaseModel], root: Node, findings: Collector, *, ignore: Collection[str] = ()
) -> None:
    """Report what pydantic found in the mapping `root`, each error at its place, but for the types to `ignore`."""
    met: _Met = {}
    for each in error.errors(include_url=False):
        if each["input"] is REFUSED or each["type"] in ignore:
            continue  # the reader has reported what it refused
        *way, last = each["loc"] or ("",)
        name = str(last)
        if each["type"] in ("missing", "extra_forbidden"):
            spot = _spot(model, root, way, met)
            assert isinstance(spot.node, Mapping)
            if each["type"] == "extra_forbidden":
                near = _near(name, spot.type)
                hint = f"; did you mean `{near}`?" if near else ""
                key = spot.node.keys[_position(spot.node, name, met) or 0]
                findings.error("unknown-field", key, f"{spot.title} has no field `{display(name)}`{hint}")
            # A misspelt key explains an absent field.
            elif name not in {_near(k.text, spot.type) for k in spot.node.keys if k.text not in names_of(spot.type)}:
                findings.error("missing-field", spot.node, f"{spot.title} needs `{name}`")
        else:
            spot = _spot(model, root, each["loc"], met)
            code, words = _sentence(each["type"], each["input"], each.get("ctx", {}), spot)
            findings.error(code, spot.node, words(spot.name) if callable(words) else f"{called(spot.name)} {words}")
    for mapping, _ in met.values():
        report_commas(mapping, findings)


def _spot(model: Any, root: Node, loc: Iterable[int | str], met: _Met) -> _Spot:
    """Return where the steps of `loc` lead. The mappings on the way are collected in `met`."""
    spot = holder = _Spot(model.title, model, root)
    last: int | str = ""
    for step in loc:
        name, kind, node, _ = spot
        inner: Any = None
        optional: Any = None
        if step == "[key]":  # the error is in the key, to whose value the step before led
            assert isinstance(holder.node, Mapping)
            key = holder.node.keys[_position(holder.node, str(last), met) or 0]
            spot = _Spot(f"{holder.name} name" if get_origin(holder.type) is dict else name, None, key)
            continue
        holder, last = spot, step
        if isinstance(kind, type) and issubclass(kind, Model):
            info = kind.model_fields.get(names_of(kind).get(str(step), ""))
            name, inner = str(step), info and info.annotation
            optional = info.rebuild_annotation() if info and not info.is_required() else None
        elif get_origin(kind) is dict:
            name, inner = f"{name}.{display(str(step))}", (optional := get_args(kind)[1])
            name = f"`{name}`" if " " in name else name
        elif isinstance(step, int):
            name, inner = f"an item of {name}", get_args(kind)[0] if get_args(kind) else None
        else:
            name = str(step)
        # A model may be written in short, so the file may lack a part.
        part = node
        if isinstance(node, Sequence) and isinstance(step, int):
            part = node.items[step]
        elif isinstance(node, Mapping) and (at := _position(node, str(step), met)) is not None:
            part = node.values[at]
        spot = _Spot(name, bare(inner), part, optional)
    return spot


def bare(annotation: Any) -> Any:
    """Return a type without annotations and `None`."""
    while get_origin(annotation) in (Annotated, Union, types.UnionType):
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    return annotation


def _position(node: Mapping, name: str, met: _Met) -> int | None:
    """Return the position of a key. It is looked up, since a mapping may have as many errors as keys."""
    if id(node) not in met:
        met[id(node)] = node, {key.text: n for n, key in enumerate(node.keys)}
    return met[id(node)][1].get(name)


def _near(name: str, model: type[Model]) -> str | None:
    return model.synonyms.get(name) or nearest(name, tuple(names_of(model)))


def _sentence(error: str, value: Any, context: dict[str, Any], spot: _Spot) -> tuple[str, Words]:
    """Return our code and words for an error of pydantic's, whose types have underscores, or of our own types."""
    match error:
        case "string_type":
            return _refusal(value, "text", spot.empty('""', ""))
        case "string_unicode":
            half = next(each for each in value if "\ud800" <= each <= "\udfff")
            return "control-character", f"contains {character(half)}; remove it"
        case "tuple_type" | "list_type":
            is_of_texts = bare(get_args(spot.type)[0]) is str
            return _refusal(value, "a list of strings like [a, b]" if is_of_texts else "a list", spot.empty("[]", ()))
        case "dict_type":
            is_of_texts = bare(get_args(spot.type)[1]) is str
            return _refusal(
                value, "a mapping of names to strings" if is_of_texts else "a mapping", spot.empty("{}", {})
            )
        case "model_type":
            return _refusal(value, "a mapping", "")
        case "enum" | "literal_error":
            options = tuple(map(str, get_args(spot.type) or spot.type))
            expected = f"{', '.join(options[:-1])} or {options[-1]}" if len(options) > 1 else options[0]
            if not isinstance(value, str):
                return _refusal(value, expected, "")
            return "bad-value", f"must be {expected}, not {quoted(value)}{suggestion(value, options)}"
        case _:
            return error, context["words"]


def report_commas(node: Mapping, findings: Collector) -> None:
    """Warn about keys without a value that are the rest of a text which a comma ends, in a mapping in braces."""
    before: Scalar | None = None
    for key, value in zip(node.keys, node.values, strict=True):
        nothing = isinstance(value, Scalar) and not value.style and not value.text
        # The rest of the text before it, as in `{Client: Smith, Jones & Co}`.
        if nothing and before and not before.style and not key.style and before.mark.line == key.mark.line:
            whole = quoted(f"{before.text}, {key.text}")
            cure = f"if you mean {whole}, put it in quotes"
            message = f"{quoted(key.text)} has no value: the comma ends the text before it; {cure}"
            findings.at("comma-in-text", *place(key), message, severity=Severity.WARNING)
        else:
            before = value if isinstance(value, Scalar) and value.text else None
