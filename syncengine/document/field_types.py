"""The annotated types of models' fields, each with its reader, with or without nodes, and its JSON Schema. Pure.

A field's type in a model names its reader (`Reads`), so that only models define names, types and limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final

from msgspec import Meta

from syncengine.document.diagnostics import INVALID, Collector
from syncengine.document.fast_reader import Field as PlainField
from syncengine.document.fast_reader import PlainShape
from syncengine.document.model import JsonSchema
from syncengine.document.nodes import Position, Scalar
from syncengine.document.scalar_readers import (
    EARLIEST,
    LATEST,
    Reader,
    distinct,
    filled,
    flag,
    has_no_blanks_around,
    identity,
    instant,
    is_web_link,
    line,
    prose,
    says_something,
    texts,
    web_link,
    words,
)

AsPlain = Callable[[Reader], PlainField | None]
"""A function from a field's reader to the way to read the field without nodes, or to `None` when it needs nodes."""


def needs_nodes(reader: Reader) -> None:
    """Return `None` for a field whose values are judged with their places. Files that have it are read in full."""


@dataclass(frozen=True, slots=True)
class Reads:
    """An annotation for the way a field is read. `make` builds its reader from its name; for `plain` see `AsPlain`."""

    make: Callable[[str], Reader]
    plain: AsPlain = needs_nodes


def by_reader(reader: Reader) -> PlainField:
    """Return a field that calls `reader` once for each text and caches the values, for fields with few values."""

    @lru_cache(maxsize=1024)
    def convert(text: str, quoted: bool) -> Any:
        value = reader(Scalar(text, Position(), '"' if quoted else ""), Collector(""))
        return None if value is INVALID else value

    return PlainField(PlainShape.TEXT, convert)


def plain_text(reader: Reader) -> PlainField:
    """Return a field that accepts any text. A line or prose is valid unless it has control characters."""
    return PlainField(PlainShape.TEXT)


def plain_filled(reader: Reader) -> PlainField:
    return PlainField(PlainShape.TEXT, lambda text, quoted: text if says_something(text) else None)


def plain_link(reader: Reader) -> PlainField:
    return PlainField(PlainShape.TEXT, lambda text, quoted: text if is_web_link(text) else None)


def plain_identity(reader: Reader) -> PlainField:
    return PlainField(PlainShape.TEXT, lambda text, quoted: text if text and has_no_blanks_around(text) else None)


def plain_words(reader: Reader) -> PlainField:
    """Return a field for a list of lines that are not blank."""
    return PlainField(PlainShape.LIST, lambda texts: distinct(texts) if all(map(says_something, texts)) else None)


def plain_texts(reader: Reader) -> PlainField:
    """Return a field for a mapping of names, which must not be blank, to any texts."""
    return PlainField(PlainShape.MAP, lambda entries: entries if all(map(says_something, entries)) else None)


def scalar_schema(pattern: str) -> dict[str, Any]:
    """Return the JSON Schema of text, which other YAML readers may take for a number or a boolean."""
    return {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "number"}, {"type": "boolean"}]}


_VISIBLE = r"[^\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]"
_LINE: Final = scalar_schema(f"^{_VISIBLE}*$")
_PROSE: Final = scalar_schema(f"^({_VISIBLE}|[\\t\\n])*$")
_LINK: Final = {"type": "string", "pattern": rf"^((?=[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#]){_VISIBLE}+)?$"}
_FILLED: Final = rf"^(?=.*\S){_VISIBLE}*$"
_LISTED: Final = scalar_schema(_FILLED)
NAMED: Final = scalar_schema(rf"^(?=\S(.*\S)?$){_VISIBLE}*$")
_DATE = (
    r"((?!0000)[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    r"|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]"
_INSTANT: Final = rf"^(?!0000){_DATE}[Tt ]{_TIME}:[0-5][0-9]([.][0-9]{{1,9}})?([Zz]|[+-]{_TIME})$"
"""The pattern of an RFC 3339 date-time, with the number of days of each month."""

Line = Annotated[str, Reads(line, plain_text), JsonSchema(_LINE)]
DeprecatedLine = Annotated[str, Reads(line, plain_text), JsonSchema({**_LINE, "deprecated": True})]
WebLink = Annotated[str, Reads(web_link, plain_link), JsonSchema(_LINK)]
Prose = Annotated[str, Reads(prose, plain_text), JsonSchema(_PROSE)]
Filled = Annotated[str, Reads(filled, plain_filled), JsonSchema(_LISTED)]
Identity = Annotated[str, Reads(identity, plain_identity), JsonSchema(NAMED)]
Flag = Annotated[bool, Reads(flag, by_reader)]
Words = Annotated[
    tuple[str, ...],
    Reads(words(filled), plain_words),
    JsonSchema({"type": "array", "items": _LISTED}),
]
Names = Annotated[tuple[str, ...], Reads(words(identity)), JsonSchema({"type": "array", "items": NAMED})]
Texts = Annotated[
    dict[str, str],
    Reads(texts, plain_texts),
    JsonSchema(
        {
            "type": "object",
            "propertyNames": {"type": "string", "pattern": _FILLED},
            "additionalProperties": _PROSE,
        }
    ),
]
Instant = Annotated[
    int,
    Reads(instant, by_reader),
    JsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": _INSTANT},
                {"type": "integer", "minimum": EARLIEST, "maximum": LATEST},
            ]
        }
    ),
    Meta(examples=["2024-05-01T09:00:00Z"]),
]
