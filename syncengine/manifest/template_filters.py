"""What templates can do with texts, lists and dates: ours, and those of Jinja2 that cannot be misused; pure."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import wraps
from typing import Any
from uuid import UUID

from jinja2 import filters as theirs
from jinja2.runtime import Undefined

from syncengine.template_limits import MAX_TEXT, Budget, TooMuch

FROM_JINJA = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "groupby", "int", "items", "last"),
    *("length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "round", "select"),
    *("selectattr", "sort", "title", "trim", "truncate", "unique", "upper", "urlencode", "wordcount"),
)
_LETTERS = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d", "þ": "th"}
_DATE_FORMAT = re.compile(r"(?:[^%]|%[aAbBdHIjmMpSUwWyYzZfGVu%]){0,100}")


class FilterTrouble(ValueError):
    """A filter was given what it cannot use."""


def plain_text(value: Any) -> str:
    """A value as text: numbers and flags as YAML has them, nothing as none."""
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Undefined():
            return str(value)  # which is where an undefined value fails
        case datetime() | date():
            return value.isoformat()
        case int() | float() | Decimal() | time() | timedelta() | UUID() | dict():
            return str(value)
        case list() | tuple():
            return str(list(value))
        case bytes():
            raise FilterTrouble("it is bytes, not text")
        case _ if callable(value):
            raise FilterTrouble("it is a function, not text: call it; or is a column of that name missing?")
        case Iterator():
            raise FilterTrouble("it is a series, not text: write `| list` behind it")
        case _:
            raise FilterTrouble(f"it is of the type {type(value).__name__}, which is no text")


def checked(value: Any) -> Any:
    """The value, if all that is in it can be written."""
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
    """Lower-case letters and digits of ASCII: `Müller & Söhne` is `mueller-soehne`."""
    text = "".join(_LETTERS.get(c, c) for c in plain_text(value).casefold())
    bare = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return separator.join(re.findall(r"[a-z0-9]+", bare))


def words(value: Any, separators: str | None = None) -> list[str]:
    """The words of a text, between blanks, or between any of the separators; without empty ones and repeats."""
    text = plain_text(value)
    parts = text.split() if separators is None else re.split(f"[{re.escape(separators)}]", text)
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def split(value: Any, separator: str = ",") -> list[str]:
    """The parts of a text, blanks around them taken away; empty ones left out."""
    return [part.strip() for part in plain_text(value).split(separator) if part.strip()]


def lines(value: Any) -> list[str]:
    return [line.strip() for line in plain_text(value).splitlines() if line.strip()]


def as_ascii(value: Any) -> str:
    """Without accents: `é` is `e`, `ß` is `ss`."""
    return unicodedata.normalize("NFKD", plain_text(value).replace("ß", "ss")).encode("ascii", "ignore").decode()


def _instant(value: Any, format: str | None = None) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        text = plain_text(value).strip()
        if format is None:
            return datetime.fromisoformat(text)
        return datetime.strptime(text, format)  # noqa: DTZ007 - whether there is a zone is for the caller to judge
    except ValueError:
        raise FilterTrouble(f"{plain_text(value)[:60]!r} is not a date{f' like {format}' if format else ''}") from None


def as_date(value: Any, format: str = "%Y-%m-%d", read: str | None = None) -> str:
    """A date in another form: `{{ m.opened | date('%d.%m.%Y') }}`; `read` is the form that it comes in."""
    if not _DATE_FORMAT.fullmatch(format):
        raise FilterTrouble(f"{format[:60]!r} is not a form of a date")
    return _instant(value, read).strftime(format)


def utc(value: Any, read: str | None = None) -> str:
    """A date, or a time without an offset, as an instant in UTC: what timestamps of a manifest want. Empty stays so."""
    if value is None or value == "":
        return ""
    found = _instant(value, read)
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found.isoformat().replace("+00:00", "Z")


def _json_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return list(value)
    return plain_text(value)


def total(value: Iterable[Any], attribute: Any = None, start: int = 0) -> Any:
    """The sum of numbers."""
    found: Any = start
    for item in value:
        number = item[attribute] if attribute is not None else item
        if not isinstance(number, int | float | Decimal):
            raise FilterTrouble("`sum` is for numbers")
        found += number
    return found


def _weighed(budget: Callable[[], Budget], filter: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(value: Any, *given: Any, **named: Any) -> Any:
        budget().weigh(value)
        return filter(value, *given, **named)

    return wrapped


def _walking(budget: Callable[[], Budget], filter: Callable[..., Any]) -> Callable[..., Any]:
    """Each item that goes through it is a step."""
    first = int(hasattr(filter, "jinja_pass_arg"))

    @wraps(filter)
    def wrapped(*given: Any, **named: Any) -> Any:
        value = given[first] if len(given) > first else None
        if isinstance(value, Iterator):
            given = (*given[:first], budget().filtered(value), *given[first + 1 :])
        elif isinstance(value, Sized) and not isinstance(value, str):
            budget().walk(len(value))
        return filter(*given, **named)

    return wrapped


def _indent(value: Any, width: int = 4, first: bool = False) -> str:
    text = plain_text(value)
    if not 0 <= width <= 100 or len(text) * (width + 1) > MAX_TEXT * 10:
        raise TooMuch("`indent` is for up to 100 blanks")
    return (" " * width if first else "") + text.replace("\n", "\n" + " " * width)


def _tojson(value: Any) -> str:
    str(value) if isinstance(value, Undefined) else None
    return json.dumps(value, default=_json_value)


def regular(budget: Callable[[], Budget]) -> Mapping[str, Callable[..., Any]]:
    """All filters, of an environment whose current budget `budget` tells."""

    def replace(value: Any, old: str, new: str) -> str:
        text = plain_text(value)
        budget().fits(len(text) + (text.count(old) * len(new) if old else (len(text) + 1) * len(new)))
        return text.replace(old, new)

    def join(value: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
        items = list(value)
        budget().weigh(items)
        parts = [plain_text(item[attribute] if attribute is not None else item) for item in items]
        budget().fits(sum(map(len, parts)) + len(separator) * len(parts))
        return separator.join(parts)

    return {
        **{name: _walking(budget, theirs.FILTERS[name]) for name in FROM_JINJA},
        "slug": slug,
        "words": words,
        "split": split,
        "lines": lines,
        "ascii": as_ascii,
        "date": as_date,
        "utc": utc,
        "sum": total,
        "replace": replace,
        "join": join,
        "indent": _indent,
        "tojson": _weighed(budget, _tojson),
        "string": _weighed(budget, plain_text),
    }
