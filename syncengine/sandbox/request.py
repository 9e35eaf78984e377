"""The request that a rule gets, and functions that read its body and refuse fields of the wrong type. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from syncengine.document.text import to_camel
from syncengine.sandbox.world import Draft, Json


class ApiError(Exception):
    """The refusal of a request, or of one item of a batch, with the HTTP status to answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def answer(self) -> RuleAnswer:
        return RuleAnswer(self.status, {"message": self.message})


@dataclass(frozen=True, slots=True)
class RuleRequest:
    """A request to a rule. `now` is in milliseconds; `failing` maps items that a fault makes fail to their errors."""

    body: Json
    now: int
    new_id: Callable[[], str]
    failing: Mapping[int, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)


class RuleAnswer(NamedTuple):
    """A rule's answer. The changes of the draft are applied when its `status` is below 400."""

    status: int
    body: Any


class FieldType(NamedTuple):
    """A type of field: its words for messages, and its test. Null passes any test, since it means "not given"."""

    words: str
    fits: Callable[[Any], bool]


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a non-negative number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


TEXT = FieldType("a string", lambda value: isinstance(value, str))
FLAG = FieldType("true or false", lambda value: isinstance(value, bool))
TEXTS = FieldType("an array of strings", lambda value: isinstance(value, list) and _are_texts(value))
TEXT_MAP = FieldType("an object of strings", lambda value: isinstance(value, dict) and _are_texts(value.values()))
INTEGER = FieldType("an integer", _is_integer)
VISIBILITY = FieldType("PUBLIC or PRIVATE", lambda value: value in ("PUBLIC", "PRIVATE"))
COUNT = FieldType("a non-negative integer", lambda value: _is_integer(value) and value >= 0)
OBJECT = FieldType("an object", lambda value: isinstance(value, dict))
ARRAY = FieldType("an array", lambda value: isinstance(value, list))
SECONDS = FieldType("a number of seconds", is_number)


def read_fields(item: Any, shapes: Mapping[str, FieldType]) -> Json:
    """Return the known fields of a JSON object, without nulls. Ignore unknown fields; refuse values of a wrong type."""
    if not isinstance(item, dict):
        raise ApiError(400, "expected an object")
    values = {name: item[name] for name in shapes if item.get(name) is not None}
    for name, value in values.items():
        if not shapes[name].fits(value):
            raise ApiError(400, f"{name} must be {shapes[name].words}")
    return values


def read_known(item: Any, shapes: Mapping[str, FieldType], nullable: str) -> Json:
    """Return the fields of a JSON object as `read_fields` does, but refuse unknown fields. `nullable` may be null."""
    values = read_fields(item, shapes)
    if unknown := sorted(item.keys() - shapes.keys()):
        raise ApiError(400, f"unknown {'field' if len(unknown) == 1 else 'fields'}: {', '.join(unknown)}")
    return {**values, nullable: item[nullable]} if nullable in item else values


def attributes(values: Json, of: type[Any]) -> dict[str, Any]:
    """Return the values for fields of the dataclass `of`, with JSON names turned into attribute names."""
    names = {to_camel(each.name): each.name for each in fields(of)}
    return {names[name]: value for name, value in values.items() if name in names}


def required(values: Json, name: str) -> Any:
    """Return the value of a field. Raise `ApiError` when it is missing or blank."""
    value = values.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise ApiError(400, f"{name} is missing")
    return value


def number(query: Mapping[str, str], name: str) -> int | None:
    """Return an integer parameter of the query, or `None` when it is not given."""
    text = query.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise ApiError(400, f"{name} must be an integer") from error


def items(draft: Draft, request: RuleRequest, name: str) -> list[Any]:
    """Return the items of a batch. Refuse a batch above the limit as a whole."""
    batch = request.body.get(name)
    if not isinstance(batch, list):
        raise ApiError(400, f"{name} must be an array")
    limit = draft.chosen.batch_limit
    if len(batch) > limit:
        raise ApiError(400, f"{name} has {len(batch)} items; the limit is {limit}")
    return batch


def each(draft: Draft, request: RuleRequest, name: str, rule: Callable[[Draft, Any, RuleRequest], None]) -> RuleAnswer:
    """Apply `rule` to each item of a batch, and answer with the errors of single items (docs/interface.md 7.1).

    A service that answers 400 for item errors (docs/service.md §1) applies nothing of the batch.
    """
    refused: dict[int, str] = {}
    for index, item in enumerate(items(draft, request, name)):
        if index in request.failing:
            continue
        try:
            rule(draft, item, request)
        except ApiError as why:
            refused[index] = why.message
    errors = sorted({**refused, **request.failing}.items())
    status = draft.chosen.status_for_item_errors if refused else 200
    return RuleAnswer(status, {"errors": [{"index": index, "errorDescription": words} for index, words in errors]})
