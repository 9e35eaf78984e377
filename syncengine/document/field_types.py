"""The annotated types of models' fields, each with its reader and its JSON Schema. Pure.

A field's type in a model names its reader (`Reads`), so that only models define names, types and limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from msgspec import Meta

from syncengine.document.model import JsonSchema
from syncengine.document.scalar_readers import (
    EARLIEST,
    LATEST,
    Reader,
    filled,
    flag,
    identity,
    instant,
    line,
    prose,
    texts,
    web_link,
    words,
)


@dataclass(frozen=True, slots=True)
class Reads:
    """An annotation for the way a field is read. `make` builds its reader from its name."""

    make: Callable[[str], Reader]


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

Line = Annotated[str, Reads(line), JsonSchema(_LINE)]
DeprecatedLine = Annotated[str, Reads(line), JsonSchema({**_LINE, "deprecated": True})]
WebLink = Annotated[str, Reads(web_link), JsonSchema(_LINK)]
Prose = Annotated[str, Reads(prose), JsonSchema(_PROSE)]
Filled = Annotated[str, Reads(filled), JsonSchema(_LISTED)]
Identity = Annotated[str, Reads(identity), JsonSchema(NAMED)]
Flag = Annotated[bool, Reads(flag)]
Words = Annotated[
    tuple[str, ...],
    Reads(words(filled)),
    JsonSchema({"type": "array", "items": _LISTED}),
]
Names = Annotated[tuple[str, ...], Reads(words(identity)), JsonSchema({"type": "array", "items": NAMED})]
Texts = Annotated[
    dict[str, str],
    Reads(texts),
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
    Reads(instant),
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
