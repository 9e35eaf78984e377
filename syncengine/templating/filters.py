"""Filters of templates for texts, lists, numbers and dates, besides those of Jinja2; pure."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from jinja2 import filters as theirs
from jinja2.runtime import Undefined

from syncengine.document.text import with_line_feeds
from syncengine.templating.budget import MAX_SOUGHT, MAX_TEXT, TooMuch, check_number
from syncengine.templating.values import Unknown

_LETTERS = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d", "þ": "th"}
ACCENTS_AT_ONCE = 256
"""The number of characters from which accents are removed at a time."""
LONGEST_DATE = 200
MAX_PRECISION = 100
LONGEST_NUMBER = 1000
"""The most characters of a text that is read as a number."""
NOTHING: Any = object()
"""The default of a filter that was given none."""
_DATE_FORMAT = re.compile(r"(?:[^%]|%[aAbBdHIjmMpSUwWyYzZfGVu%]){0,100}")


class FilterTrouble(ValueError):
    """Raised for a value or an argument that a filter cannot use."""


class UnfitValue(FilterTrouble):
    """Raised for a value that is not what a filter reads, such as a number. `why` says so without advice.

    Its message is `why` with the advice, unless another `message` is given.
    """

    def __init__(self, why: str, advice: str = "", *, message: str | None = None) -> None:
        super().__init__(message or f"{why}{advice}")
        self.why = why


def plain_text(value: Any) -> str:
    """Return a value as text: numbers and flags as in YAML, `None` as empty. Raise `FilterTrouble` for other types."""
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Undefined():
            return str(value)  # raises for an undefined value
        case datetime() | date():
            return value.isoformat()
        case int() | float() | Decimal() | time() | timedelta() | UUID() | dict():
            return str(value)
        case list() | tuple():
            return str(list(value))
        case bytes():
            raise FilterTrouble("the value is bytes, not text")
        case _ if callable(value):
            raise FilterTrouble("the value is a function, not text: call it, or check whether a column is missing")
        case Iterator():
            raise FilterTrouble("the value is a sequence, not text: append `| list`")
        case _:
            raise FilterTrouble(f"the value has the type {type(value).__name__}, which cannot be written as text")


def writable(value: Any) -> Any:
    """Return the value. Raise `FilterTrouble` if any part of it cannot be written as text."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as inner:
                waiting += [*inner, *inner.values()]
            case list() | tuple() as inner:
                waiting += inner
            case inner:
                plain_text(inner)
    return value


def slug(value: Any, separator: str = "-") -> str:
    """Return a text as lower-case ASCII letters and digits: `Müller & Söhne` becomes `mueller-soehne`."""
    text = "".join(_LETTERS.get(c, c) for c in plain_text(value).casefold())
    return separator.join(re.findall(r"[a-z0-9]+", _without_accents(text)))


_AROUND_WORDS = ",;:.!?()[]{}<>\"'`´‘’‚“”„«»‹›…"


def words(value: Any, separators: str | None = None) -> list[str]:
    """Return a text's words without punctuation, or its parts between any of `separators`, without repetitions."""
    text = plain_text(value)
    if separators is not None and not 0 < len(separators) <= MAX_SOUGHT:
        raise FilterTrouble(f"`words` takes 1 to {MAX_SOUGHT:,} separators, such as `words(',;')`")
    if separators is None:
        parts = (word.strip(_AROUND_WORDS) for word in text.split() if any(map(str.isalnum, word)))
    else:
        parts = (part.strip() for part in re.split(f"[{re.escape(separators)}]", text) if part.strip())
    return list(dict.fromkeys(parts))


def split(value: Any, separator: str = ",") -> list[str]:
    """Return the parts of a text that are not empty, without blanks around them."""
    return [part.strip() for part in plain_text(value).split(separator) if part.strip()]


def lines(value: Any) -> list[str]:
    return [line.strip() for line in plain_text(value).splitlines() if line.strip()]


def as_ascii(value: Any) -> str:
    """Return text without accents: `é` becomes `e`, `ß` becomes `ss`."""
    return _without_accents(plain_text(value).replace("ß", "ss"))


def _without_accents(text: str) -> str:
    """Remove accents piece by piece, since a long run of accents is sorted first, which takes quadratic time."""
    pieces = (text[at : at + ACCENTS_AT_ONCE] for at in range(0, len(text), ACCENTS_AT_ONCE))
    return "".join(unicodedata.normalize("NFKD", piece).encode("ascii", "ignore").decode() for piece in pieces)


def _instant(value: Any, format: str | None = None) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if format is not None:
        _check_format(format)
    text = plain_text(value).strip()
    try:
        if len(text) > LONGEST_DATE:
            raise ValueError
        if format is None:
            return datetime.fromisoformat(text)
        return datetime.strptime(text, format)  # noqa: DTZ007 - whether there is a zone is for the caller to judge
    except re.error:
        raise FilterTrouble(f"{format[:60]!r} is not a date format: a part appears twice") from None  # type: ignore[index] # not None
    except ValueError:
        raise FilterTrouble(
            f"{plain_text(value)[:60]!r} is not a date{f' in the format {format}' if format else ''}"
        ) from None


def _check_format(format: str) -> None:
    if not _DATE_FORMAT.fullmatch(format):
        raise FilterTrouble(f"{format[:60]!r} is not a date format")


def as_date(value: Any, format: str = "%Y-%m-%d", read: str | None = None) -> str:
    """Return a date in another format: `{{ m.opened | date('%d.%m.%Y') }}`. `read` is the format of `value`."""
    _check_format(format)
    return _instant(value, read).strftime(format)


def utc(value: Any, read: str | None = None) -> str:
    """Return a date or time as an instant in UTC, which is also the default zone. Empty text stays empty."""
    if value is None or value == "":
        return ""
    instant = _instant(value, read)
    instant = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    return instant.isoformat().replace("+00:00", "Z")


def as_json(value: Any) -> str:
    """Return a value as JSON. Numbers keep all their digits, unknown types become text, and lines end with LF."""
    match value:
        case str():
            return json.dumps(with_line_feeds(value))
        case None | bool() | int():
            return json.dumps(value)
        case float() | Decimal():
            if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
                raise FilterTrouble(f"{value} is not a JSON number")
            return str(value)
        case dict():
            pairs = (f"{json.dumps(_json_name(key))}: {as_json(inner)}" for key, inner in value.items())
            return "{" + ", ".join(pairs) + "}"
        case Iterable() if not isinstance(value, bytes | Undefined):
            return "[" + ", ".join(map(as_json, value)) + "]"
        case _:
            return json.dumps(plain_text(value))


def from_json(value: Any) -> Any:
    """Return the value of JSON text, such as a list in a cell; empty text has none. Fractions keep their digits."""
    if not isinstance(value, str):
        raise FilterTrouble("`fromjson` reads text")
    try:
        return json.loads(value, parse_float=Decimal, parse_constant=_no_constant) if value.strip() else None
    except ValueError:
        raise FilterTrouble(f"`fromjson`: this is not JSON: {value[:60]!r}") from None


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def _json_name(key: Any) -> str:
    return with_line_feeds(key) if isinstance(key, str) else as_json(key)


def numeric(value: Any) -> Any:
    """Return a number, or the number that a text is. Raise `UnfitValue` for anything else."""
    if isinstance(value, int | float | Decimal | Unknown):
        return value
    try:
        if not isinstance(value, str) or len(value) > LONGEST_NUMBER or "_" in value:
            raise ValueError
        text = value.strip()
        return int(text) if text.lstrip("+-").isdecimal() else _finite(Decimal(text))
    except (ValueError, ArithmeticError):
        raise UnfitValue(f"{_shown(value)} is not a number") from None


def _shown(value: Any) -> str:
    return "none" if value is None else repr(plain_text(value)[:60])  # raises for an undefined value


def _finite(value: Any) -> Any:
    if not math.isfinite(value):
        raise UnfitValue(f"{value} is not a number")
    check_number(value)
    return value


def whole(value: Any, default: Any = NOTHING, base: int = 10) -> Any:
    """Return a number without its decimals, or a text that is a whole number; else the default, or raise `UnfitValue`.

    A text with decimals is refused, since what they say would be lost.
    """
    if isinstance(value, str) and base != 10:
        with suppress(ValueError):
            return int(value, base)
    return _converted("int", int, value, default)


def real(value: Any, default: Any = NOTHING) -> Any:
    """Return a number, or a text that is one, as a floating-point number; else as `whole` does."""
    return _converted("float", float, value, default)


def _converted(filter: str, kind: type[int] | type[float], value: Any, default: Any) -> Any:
    what = "number"
    try:
        number = numeric(value)
        if isinstance(number, Unknown):
            return number
        found = _finite(kind(_finite(number)))
        if not isinstance(value, str) or kind is float or found == number:
            return found
        what = "whole number"
    except (FilterTrouble, OverflowError):
        pass
    if default is NOTHING:
        raise UnfitValue(f"{_shown(value)} is not a {what}", f": `| {filter}(0)` says a default")
    return default


def magnitude(value: Any) -> Any:
    return value if isinstance(value, Unknown) else abs(_number_of("abs", value))


def file_size(value: Any, binary: bool = False) -> str:
    return value if isinstance(value, Unknown) else theirs.do_filesizeformat(_finite(numeric(value)), binary)


def _number_of(filter: str, value: Any) -> Any:
    if isinstance(value, str):
        message = f"`{filter}` takes numbers: write `| float | {filter}` for a text"
        raise UnfitValue(f"{_shown(value)} is not a number", message=message)
    if not isinstance(value, int | float | Decimal):
        shown = _shown(value)
        raise UnfitValue(f"{shown} is not a number", message=f"`{filter}` takes numbers, not {shown}")
    return value


def alike(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two values with which Python can calculate: a fraction beside a decimal number as such a number, too."""
    if isinstance(one, float) and isinstance(other, Decimal):
        return Decimal(str(one)), other
    if isinstance(one, Decimal) and isinstance(other, float):
        return one, Decimal(str(other))
    return one, other


def total(numbers: Iterable[Any], start: Any = 0) -> Any:
    """Return the sum of numbers."""
    result = start
    for number in numbers:
        if isinstance(number, Unknown) or isinstance(result, Unknown):
            result = Unknown(f"{result} + {number}")
            continue
        if not isinstance(number, int | float | Decimal):
            shown = _shown(number)
            raise UnfitValue(f"{shown} is not a number", message=f"`sum` takes numbers, not {shown}")
        before, added = alike(result, number)
        result = before + added
    return result


def indented(value: Any, width: int = 4, first: bool = False) -> str:
    """Return a text with each line indented, except the first line unless `first` is set."""
    text = plain_text(value)
    if not 0 <= width <= 100 or len(text) * (width + 1) > MAX_TEXT * 10:
        raise TooMuch("`indent` takes 0 to 100 blanks, and fewer for a very large text")
    return (" " * width if first else "") + text.replace("\n", "\n" + " " * width)


def trimmed(value: Any, characters: str | None = None) -> str:
    """Return text without the blanks, or any of the given characters, around it."""
    if characters is not None and len(characters) > MAX_SOUGHT:
        raise TooMuch(f"`trim` takes at most {MAX_SOUGHT:,} characters")
    return plain_text(value).strip(characters)


def rounded(value: Any, precision: int = 0, method: str = "common") -> Any:
    """Return a number rounded to `precision` decimal places, as Jinja2 does."""
    if not -MAX_PRECISION <= precision <= MAX_PRECISION:
        raise TooMuch(f"`round` takes at most {MAX_PRECISION} digits")
    if isinstance(value, Unknown):
        return value
    return theirs.do_round(_number_of("round", value), precision, method)  # type: ignore[arg-type] # it refuses others
