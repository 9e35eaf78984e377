"""The types of settings and of resources' fields: each validates a plain value, and has its JSON Schema. Pure.

Strings stay strings (docs/manifests.md): the type of a field decides whether a scalar is a number or a flag. No message
quotes a value that might be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, PlainValidator, WithJsonSchema
from pydantic_core import core_schema

from syncengine.document.nodes import NULL, REFUSED, Fields, Items, Node, Position, Scalar, TextValue, place, quoted
from syncengine.document.text import CONTROL, CONTROL_IN_PROSE, character
from syncengine.document.validation import each_part, problem, refusal
from syncengine.instants import DURATION, EARLIEST, LATEST, RFC3339, duration, milliseconds, span
from syncengine.project.references import (
    REFERENCE_KEYS,
    WITH_PASSWORD,
    Reference,
    base_url_trouble,
    has_password,
    web_url_trouble,
)

T = TypeVar("T")


def text_of(value: Any, expected: str) -> str:
    """Return a scalar as text, or raise the error that it must be what is `expected`."""
    if isinstance(value, str):
        return value
    raise refusal(value, expected, "")


def unquoted(value: Any) -> str | None:
    """Return a scalar without quotes, which may be a number or a flag, or `None`."""
    return value if isinstance(value, str) and (type(value) is not TextValue or value.is_plain) else None


def parsed(parse: Callable[[str], Any], expected: str) -> PlainValidator:
    """Return a validator that converts text by `parse`, which returns `None` for text in another form."""

    def validate(value: Any) -> Any:
        if (result := parse(str(text_of(value, expected)))) is None:
            raise problem("bad-value", f"must be {expected}")
        return result

    return PlainValidator(validate)


def _as_written(value: Any) -> Node:
    if not isinstance(value, TextValue | Items | Fields):
        raise refusal(value, "a mapping", "{}")
    return value.node


AS_WRITTEN = PlainValidator(_as_written)
"""A validator that examines nothing, and returns the node: what it is in is read elsewhere."""


def scalar_schema(pattern: str) -> dict[str, Any]:
    """Return the JSON Schema of text, which other YAML readers may take for a number or a boolean."""
    return {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "number"}, {"type": "boolean"}]}


# --- text


def _one_line(text: str) -> str:
    if not text.isprintable() and (found := CONTROL.search(text)):
        hint = "it must be a single line of visible text"
        raise problem("control-character", f"contains {character(found.group())}; {hint}")
    return text


def _prose(text: str) -> str:
    if not text.isprintable() and (found := CONTROL_IN_PROSE.search(text)):
        raise problem("control-character", f"contains {character(found.group())}; remove it")
    return text


SURROUNDING_BLANKS = "surrounding-blanks"
"""The code of an error about a name that starts or ends with blanks."""
_WEB_LINK = re.compile(r"[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#].*")


def _web_link(text: str) -> str:
    """Return a link to a web page (not `javascript:`, not a path), or empty text, which clears a link."""
    if _one_line(text) and not _WEB_LINK.fullmatch(text):
        raise problem("bad-value", f"must be a link that starts with https:// or http://, not {quoted(text)}")
    return text


_VISIBLE = r"[^\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]"
_LINE = scalar_schema(f"^{_VISIBLE}*$")
_PROSE = scalar_schema(f"^({_VISIBLE}|[\\t\\n])*$")
_LINK = {"type": "string", "pattern": rf"^((?=[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#]){_VISIBLE}+)?$"}
_FILLED = rf"^(?=.*\S){_VISIBLE}*$"
_LISTED = scalar_schema(_FILLED)
NAMED = scalar_schema(rf"^(?=\S(.*\S)?$){_VISIBLE}*$")

Line = Annotated[str, AfterValidator(_one_line), WithJsonSchema(_LINE)]
DeprecatedLine = Annotated[str, AfterValidator(_one_line), WithJsonSchema({**_LINE, "deprecated": True})]
WebLink = Annotated[str, AfterValidator(_web_link), WithJsonSchema(_LINK)]
Prose = Annotated[str, AfterValidator(_prose), WithJsonSchema(_PROSE)]


def _filled(text: str) -> str:
    if not _one_line(text).strip():
        raise problem("empty-value", "must not be empty")
    return text


def _identity(text: str) -> str:
    if not (bare := _one_line(text).strip()):
        raise problem("empty-name", "must not be empty")
    if bare != text:
        raise problem(SURROUNDING_BLANKS, f"must not start or end with blanks: {quoted(text)}")
    return text


Filled = Annotated[str, AfterValidator(_filled), WithJsonSchema(_LISTED)]
Identity = Annotated[str, AfterValidator(_identity), WithJsonSchema(NAMED)]
# Thousands of resources share these names, and one object each.
_NameOfText = Annotated[str, AfterValidator(lru_cache(maxsize=1000)(_filled))]


def distinct(items: tuple[T, ...]) -> tuple[T, ...]:
    return items if len(set(items)) == len(items) else tuple(dict.fromkeys(items))


DISTINCT = AfterValidator(distinct)
"""A validator that drops the duplicates of a list, and keeps its order."""
Words = Annotated[tuple[Filled, ...], DISTINCT, WithJsonSchema({"type": "array", "items": _LISTED})]
Names = Annotated[tuple[Identity, ...], DISTINCT, WithJsonSchema({"type": "array", "items": NAMED})]
Texts = Annotated[
    dict[_NameOfText, Prose],
    WithJsonSchema(
        {"type": "object", "propertyNames": {"type": "string", "pattern": _FILLED}, "additionalProperties": _PROSE}
    ),
]


# --- flags, numbers, choices, times

_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def _flag(value: Any) -> bool:
    if (found := _FLAGS.get(unquoted(value) or "")) is None:
        raise refusal(value, "true or false, without quotes", "")
    return found


def _only_true(value: Any) -> Literal[True]:
    if not _flag(value):
        raise problem("bad-value", "can only be true")
    return True


Flag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
OnlyTrue = Annotated[bool, PlainValidator(_only_true), WithJsonSchema({"const": True})]


@dataclass(frozen=True, slots=True)
class Whole:
    """The annotation of a whole number from `low` to `high`."""

    low: int
    high: int

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.validate)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def validate(self, value: Any) -> int:
        text = unquoted(value)
        if text is None or not re.fullmatch(r"[-+]?[0-9]+", text):
            raise refusal(value, "a whole number, without quotes", "")
        number = int(text) if len(text) <= 18 else None  # Python reads no number of thousands of digits
        if number is None or not self.low <= number <= self.high:
            bounds = str(self.low) if self.low == self.high else f"between {self.low} and {self.high}"
            raise problem("bad-value", f"must be {bounds}" + ("" if number is None else f", not {number}"))
        return number


class OrFalse:
    """The annotation of an enum with `off`, which may also be written as `false`: what `off` means in YAML 1.1."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: "off" if value == "false" else value, handler(source)
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"enum": [*handler.resolve_ref_schema(handler(schema))["enum"], False]}


_BEYOND = re.compile(r"[-+]?[0-9]{13,}|[-+]?[0-9]{5,}-[0-9]{2}-[0-9]{2}.*|-[0-9]+-.*|0000-.*")
"""Milliseconds or a date in another year than these."""


def _instant(value: Any) -> int:
    expected = "a date and time like 2024-05-01T09:00:00Z, or milliseconds since 1970"
    text = text_of(value, expected)
    is_number = unquoted(value) is not None and re.fullmatch(r"-?[0-9]{1,15}", text)
    at = int(text) if is_number else milliseconds(text)
    if at is not None and EARLIEST <= at <= LATEST:
        return at
    if at is not None or _BEYOND.fullmatch(text):
        raise problem("bad-value", f"must be in the years 1 to 9999, not {quoted(text)}")
    hint = "; add the time and the offset" if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else ""
    raise problem("bad-value", f"must be {expected}, not {quoted(text)}{hint}")


Instant = Annotated[
    int,
    PlainValidator(_instant),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": f"^{RFC3339.pattern}$"},
                {"type": "integer", "minimum": EARLIEST, "maximum": LATEST},
            ],
            "examples": ["2024-05-01T09:00:00Z"],
        }
    ),
]

LONGEST = 36_500 * 86_400.0
"""The longest duration in seconds: a hundred years."""


def _within_reason(seconds: float) -> float:
    if seconds > LONGEST:
        raise problem("bad-value", "must be at most 36500d, a hundred years")
    return seconds


DURATION_SCHEMA: dict[str, Any] = {"type": "string", "pattern": f"^(?=[0.]*[1-9]){DURATION.pattern}$"}
Duration = Annotated[
    float,
    parsed(duration, "a duration like 30s, 5m, 1h, 60d or 250ms"),
    AfterValidator(_within_reason),
    WithJsonSchema(DURATION_SCHEMA),
]
Span = Annotated[
    float,
    parsed(span, "a duration like 6m or 0s"),
    AfterValidator(_within_reason),
    WithJsonSchema({"type": "string", "pattern": f"^{DURATION.pattern}$"}),
]
"""A duration that may be zero."""

# --- references, URLs, paths


_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
USE_REFERENCE = "write {env: NAME} or {file: PATH} instead"


def reference(value: Any) -> Reference:
    """Return a reference to a secret, written as `{env: NAME}` or `{file: PATH}`."""
    if not isinstance(value, dict):
        raise refusal(value, "{env: NAME} or {file: PATH}", "")
    if len(value) != 1 or not REFERENCE_KEYS.issuperset(value):
        raise problem("bad-value", "must be either {env: NAME} or {file: PATH}")
    return Reference(**each_part(value, _target))


def _target(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise problem("bad-value", "needs a value")
    if key == "env" and not _ENV_NAME.fullmatch(value):
        raise problem("bad-value", "must name an environment variable")
    return str(value)


def _secret(value: Any) -> Reference:
    if isinstance(value, str):
        raise problem("secret-in-file", f"must not be in the project file; {USE_REFERENCE}")
    return reference(value)


def _without_password(value: Any) -> str | Reference:
    """Return text without a password, or a reference to text that may have a password."""
    if not isinstance(value, str):
        return reference(value)
    if has_password(value):
        raise problem("secret-in-file", lambda name: f"the URL of `{name}` contains a password; {USE_REFERENCE}")
    return str(value)


def _place(value: Any) -> str | Reference:
    written = _without_password(value)
    if isinstance(written, str) and not written.strip():
        raise problem("empty-value", "must not be empty")
    return written


def _web_url(value: Any) -> str | Reference:
    written = _without_password(value)
    if isinstance(written, Reference):
        return written
    if trouble := web_url_trouble(written):
        raise problem("bad-value", trouble)
    return written.rstrip("/")


def _base_url(value: Any) -> str:
    text = str(text_of(value, "a URL"))
    if text != "sandbox" and (trouble := base_url_trouble(text)):
        raise problem("secret-in-file" if "credentials" in trouble else "bad-value", trouble)
    return text.rstrip("/")


def path(text: str) -> str | None:
    return text if text.startswith("/") and not re.search(r"[\s?#]", text) else None


def filled_path(text: str) -> str | None:
    return text if text.strip() and "\0" not in text else None


_WEB = r"[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#@:]+(:[0-9]{0,5})?|[Hh][Tt][Tt][Pp][Ss]?://\[[0-9a-fA-F:.]+\](:[0-9]{0,5})?"
BASE_URL_SCHEMA = {"type": "string", "pattern": f"^(sandbox|({_WEB})(/[^?#]*)?)$"}
_WEB_URL = rf"({_WEB})([/?][^#]*)?$"
WEB_URL_SCHEMA: dict[str, Any] = {"type": "string", "pattern": f"^{_WEB_URL}"}
REFERENCE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "env": {"type": "string", "pattern": f"^{_ENV_NAME.pattern}$"},
        "file": {"type": "string", "pattern": r"\S"},
    },
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}


def _no_password(pattern: str) -> dict[str, Any]:
    """Return the JSON Schema of text without a password that begins with a pattern."""
    return {"type": "string", "pattern": f"^(?!{WITH_PASSWORD}){pattern}"}


SOME_TEXT: dict[str, Any] = {"type": "string", "pattern": r"\S"}

BaseUrl = Annotated[str, PlainValidator(_base_url), WithJsonSchema(BASE_URL_SCHEMA)]
UrlPath = Annotated[
    str, parsed(path, "a path that starts with /"), WithJsonSchema({"type": "string", "pattern": r"^/[^\s?#]*$"})
]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
FilePath = Annotated[str, parsed(filled_path, "a path"), WithJsonSchema(SOME_TEXT)]
Paths = Annotated[tuple[FilePath, ...], DISTINCT]
SecretReference = Annotated[Reference, PlainValidator(_secret), WithJsonSchema(REFERENCE_SCHEMA)]
Place = Annotated[
    Reference | str,
    PlainValidator(_place),
    WithJsonSchema({"anyOf": [_no_password(r".*\S"), REFERENCE_SCHEMA]}),
]
WebUrl = Annotated[
    Reference | str,
    PlainValidator(_web_url),
    WithJsonSchema({"anyOf": [_no_password(_WEB_URL), REFERENCE_SCHEMA]}),
]

# --- templates, which are kept as written: `posted_time` and `manifest.generate` compile them


@dataclass(frozen=True, slots=True)
class Written:
    """Text that is compiled later, with its place in the file and the style of its scalar."""

    text: str
    line: int
    column: int
    style: str = ""

    def node(self) -> Scalar:
        """Return the text as a scalar at its place."""
        return Scalar(self.text, Position(self.line - 1, self.column - 1), self.style)


Json = Any
"""JSON whose strings are `Written`: `None`, bool, int, float or `Written`, or a tuple or dict of them."""

_SINK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_SECRET_HEADER = re.compile(r"authorization|cookie|token|secret|password|api-?key", re.IGNORECASE)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def written(value: Any) -> Written:
    """Return text with its place. Text that no file contains has none."""
    node = getattr(value, "node", None)
    return Written(str(value), *place(node), node.style) if isinstance(node, Scalar) else Written(str(value), 0, 0)


def _template(value: Any) -> Written:
    if not isinstance(value, str):
        raise refusal(value, "text", "")
    if not _prose(value).strip():
        raise problem("empty-value", "must not be empty")
    return written(value)


def _json(value: Any) -> Json:
    """Return JSON whose strings are templates. Plain numbers, true, false and null keep their types."""
    if isinstance(value, dict):
        return {key: _json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return tuple(map(_json, value))
    if value is NULL or value is REFUSED:  # a refused value has been reported
        return None
    text = unquoted(value)
    if text in ("true", "false"):
        return text == "true"
    if text is not None and _INTEGER.fullmatch(text):
        return int(text)
    if text is not None and _NUMBER.fullmatch(text):
        return float(text)
    return written(value)


def _param(value: Any) -> Json:
    if isinstance(value, dict | list):
        raise problem("wrong-type", "must be text, a number, true, false or null")
    return _json(value)


def _headers(value: Any) -> dict[str, Written | Reference]:
    if not isinstance(value, dict):
        raise refusal(value, "a mapping of header names to values", "{}")
    return each_part(value, _header)


def _header(name: str, value: Any) -> Written | Reference:
    if not _HEADER.fullmatch(name):
        raise problem("bad-value", lambda _: f"{quoted(name)} is not a valid header name")
    if isinstance(value, dict):
        return reference(value)
    if _SECRET_HEADER.search(name) and isinstance(value, str):
        raise problem("secret-in-file", f"must not be in the project file; {USE_REFERENCE}")
    return _template(value)


def _sink_name(text: str) -> Written:
    if not _SINK_NAME.fullmatch(text):
        words = "must be at most 63 letters, digits, `-`, `_` or `.`, and start with a letter or digit"
        raise problem("bad-value", words)
    return written(text)


def _template_file(value: Any) -> Written:
    if filled_path(text_of(value, "a path")) is None:
        raise problem("bad-value", "must be a path")
    return written(value)


_TEXT = scalar_schema(r"\S")
_PLAIN = [{"type": name} for name in ("string", "number", "boolean", "null")]
Template = Annotated[Written, PlainValidator(_template), WithJsonSchema(_TEXT)]
Condition = Template
JsonTemplate = Annotated[Any, PlainValidator(_json), WithJsonSchema({})]
Params = dict[str, Annotated[Any, PlainValidator(_param), WithJsonSchema({"anyOf": _PLAIN})]]
Headers = Annotated[dict[str, Written | Reference], PlainValidator(_headers), WithJsonSchema({"type": "object"})]
Statuses = tuple[Annotated[int, Whole(400, 599)], ...]
SinkName = Annotated[
    Written,
    PlainValidator(lambda value: _sink_name(text_of(value, "text"))),
    WithJsonSchema({"type": "string", "pattern": f"^{_SINK_NAME.pattern}$"}),
]
TemplateFile = Annotated[Written, PlainValidator(_template_file), WithJsonSchema(SOME_TEXT)]
