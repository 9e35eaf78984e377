"""The filters and tests of all templates: our own for texts, lists, numbers and dates, and Jinja2's in bounds. Pure.

They write numbers, flags and dates as YAML does (`plain_text`), and refuse what would take long or fill the memory.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple
from uuid import UUID

from jinja2 import Environment, pass_environment
from jinja2 import filters as theirs
from jinja2 import tests as questions
from jinja2.runtime import Undefined

from syncengine.document.text import with_line_feeds
from syncengine.templating.bounds import MAX_CAPTURED, MAX_SOUGHT, MAX_TEXT, TooMuch, check_number, fits, weighed
from syncengine.templating.values import Unknown

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_LETTERS = str.maketrans(
    {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "Th", "ı": "i"}
    | dict(zip("øØłŁđĐðÐħĦŧŦŋŊ", "oOlLdDdDhHtTnN", strict=True))
)
"""The letters of European languages that Unicode does not take for another letter with an accent."""
ACCENTS_AT_ONCE = 256
"""The number of characters from which accents are removed at a time."""
LONGEST_DATE = 200
MAX_PRECISION = 100
LONGEST_NUMBER = 1000
"""The most characters of a text that is read as a number."""
Filter = Callable[..., Any]
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
        case float() | Decimal() if not _is_finite(value):
            raise FilterTrouble(f"{value} is not a number")
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


def _is_finite(value: float | Decimal) -> bool:
    """Return whether a number is none of the infinities and NaN of databases; `math` takes a large decimal for one."""
    return value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)


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
    parts = re.findall(r"[a-z0-9]+", _without_accents(plain_text(value).casefold().translate(_UMLAUTS)))
    fits(SIZES["join"](separator, parts))
    return separator.join(parts)


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
    return _without_accents(plain_text(value))


def _without_accents(text: str) -> str:
    """Remove accents piece by piece, since a long run of accents is sorted first, which takes quadratic time."""
    text = text.translate(_LETTERS)
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
    return formatted(_instant(value, read), format)


def formatted(instant: datetime, format: str) -> str:
    """Return a time as text. Years have four digits, which `strftime` does not write on every system."""
    years = {"%Y": f"{instant.year:04}", "%G": f"{instant.isocalendar().year:04}"}
    return instant.strftime(re.sub("%.", lambda part: years.get(part[0], part[0]), format, flags=re.DOTALL))


def utc(value: Any, read: str | None = None) -> str:
    """Return a date or time as an instant in UTC, which is also the default zone. Empty text stays empty."""
    if value is None or value == "":
        return ""
    instant = _instant(value, read)
    instant = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    return instant.isoformat().replace("+00:00", "Z")


def as_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON. Numbers keep all their digits, unknown types become text, and lines end with LF."""
    if indent is not None:
        return json.dumps(json.loads(as_json(value)), indent=min(indent, 8), ensure_ascii=False)
    match value:
        case str():
            return json.dumps(with_line_feeds(value))
        case None | bool() | int():
            return json.dumps(value)
        case float() | Decimal():
            if not _is_finite(value):
                raise FilterTrouble(f"{value} is not a JSON number")
            return str(value)
        case dict():
            names = (with_line_feeds(key) if isinstance(key, str) else as_json(key) for key in value)
            pairs = (f"{json.dumps(name)}: {as_json(inner)}" for name, inner in zip(names, value.values(), strict=True))
            return "{" + ", ".join(pairs) + "}"
        case _ if hasattr(value, "model_dump"):  # a group or a part of it; pydantic need not be loaded to know
            return as_json(value.model_dump())
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
    if not isinstance(value, int) and not _is_finite(value):
        raise UnfitValue(f"{value} is not a number")
    check_number(value)
    return value


def whole(value: Any, default: Any = NOTHING, base: int = 10) -> Any:
    """Return a number without its decimals, or a text that is a whole number; else the default, or raise `UnfitValue`.

    A text with decimals is refused, since what they say would be lost.
    """
    if isinstance(value, str) and base != 10:
        with suppress(ValueError):
            return _finite(int(value, base))
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
    return value if _goes_through(value) else abs(_number_of("abs", value))


def file_size(value: Any, binary: bool = False) -> Any:
    return value if _goes_through(value) else theirs.do_filesizeformat(_finite(numeric(value)), binary)


def _goes_through(value: Any) -> bool:
    """Return whether a filter of numbers leaves a value as it is: a missing one, or one that is not known."""
    return value is None or isinstance(value, Unknown)


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


@pass_environment
def total(environment: Environment, value: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
    """Return the sum of numbers, or of an attribute of each value."""
    result = start
    numbers = value if attribute is None else map(theirs.make_attrgetter(environment, attribute), value)
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


def indented(value: Any, width: int | str = 4, first: bool = False) -> str:
    """Return a text with each line indented, by blanks or a text, except the first line unless `first` is set."""
    text, before = plain_text(value), width if isinstance(width, str) else " " * min(width, 101)
    if len(before) > 100 or len(text) * (len(before) + 1) > MAX_TEXT * 10:
        raise TooMuch("`indent` takes 0 to 100 blanks, and fewer for a very large text")
    return (before if first else "") + text.replace("\n", "\n" + before)


def trimmed(value: Any, characters: str | None = None) -> str:
    """Return text without the blanks, or any of the given characters, around it."""
    if characters is not None and len(characters) > MAX_SOUGHT:
        raise TooMuch(f"`trim` takes at most {MAX_SOUGHT:,} characters")
    return plain_text(value).strip(characters)


def rounded(value: Any, precision: int = 0, method: str = "common") -> Any:
    """Return a number rounded to `precision` decimal places, as Jinja2 does."""
    if _goes_through(value):
        return value
    if not -MAX_PRECISION <= precision <= MAX_PRECISION:
        raise TooMuch(f"`round` takes at most {MAX_PRECISION} digits")
    return theirs.do_round(_number_of("round", value), precision, method)  # type: ignore[arg-type] # it refuses others


def replaced(value: Any, old: Any, new: Any, count: int = -1) -> str:
    """Return a text with all of `old`, or the first `count` of them, replaced by `new`."""
    text, old, new = plain_text(value), plain_text(old), plain_text(new)
    fits(size_of_replaced(text, old, new))
    return str.replace(text, old, new, count)


@pass_environment
def joined(environment: Environment, value: Iterable[Any], separator: str = "", attribute: Any = None) -> str:
    """Return the values, or an attribute of each, as one text."""
    values = list(value if attribute is None else map(theirs.make_attrgetter(environment, attribute), value))
    parts = [plain_text(each) for each in weighed(values)]
    fits(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def size_of_replaced(text: str, old: object, new: object, count: object = None) -> int:
    old, new = str(old), str(new)
    return len(text) + (text.count(old) if old else len(text) + 1) * len(new)


def size_of_formatted(text: str, *_: Any, **__: Any) -> int:
    """Return the sum of a format's widths and precisions, or too much if `*` or nested fields take them from values."""
    is_open = re.search(r"%[^a-z]*\*|\{[^}]*\{", text)
    return MAX_TEXT + 1 if is_open else sum(map(int, re.findall(r"\d+", text)))


SIZES: Mapping[str, Callable[..., int]] = {
    **{name: lambda text, width=80, fill=" ": max(len(text), width) for name in ("center", "ljust", "rjust", "zfill")},
    "expandtabs": lambda text, tabsize=8: len(text) * tabsize,
    "replace": size_of_replaced,
    "format": size_of_formatted,
    "format_map": size_of_formatted,
    "join": lambda text, parts: sum(len(part) + len(text) for part in parts),
    "translate": lambda text, table: MAX_TEXT + 1,
}
"""The functions that return the size of the result of a text's method before it is made."""


# --- guards: functions of a filter's arguments that return the value for it, or raise if it would take long


def _bounded(value: Any, *_: Any, **__: Any) -> Any:
    """Return a value that a filter processes as a whole, after checking the size of all its parts."""
    if isinstance(value, str):
        if len(value) > MAX_CAPTURED:
            raise TooMuch(f"a value would be larger than {MAX_CAPTURED:,} characters")
        return value
    check_number(value)
    return weighed(value)


def _text_of(value: Any, *_: Any, **__: Any) -> Any:
    """Return a number or a date as the text that a template would write; any other value as it is."""
    return plain_text(value) if isinstance(value, int | float | Decimal | date | time) else _bounded(value)


def _items(value: Any, *_: Any, **__: Any) -> Any:
    if isinstance(value, Undefined):
        str(value)  # raises for an undefined value, which Jinja2's `items` would treat as empty
    return value


def _parts(value: Any, count: int, *_: Any, **__: Any) -> Any:
    fits(count)  # lists are filled up to this size, however few items there are
    return value


def _sized(name: str) -> Callable[..., str]:
    """Return a guard that allows for the size of the result, like that of the method `name` of a text."""

    def check(value: Any, *arguments: Any, **options: Any) -> str:
        text = plain_text(weighed(value))
        fits(SIZES[name](text, *arguments, **options))
        return text

    return check


def _comparing(name: str) -> Filter:
    """Return Jinja2's filter that compares the items of a value, or an attribute of theirs, after weighing these."""
    filter: Filter = theirs.FILTERS[name]
    parameters = signature(filter)

    @wraps(filter)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        call = parameters.bind(*arguments, **options)
        given, attribute = call.arguments, call.arguments.get("attribute")
        items = given["value"] if isinstance(given["value"], dict) else list(given["value"])
        if attribute is None:
            weighed(items)
        else:
            keys_of = theirs.make_multi_attrgetter(given["environment"], attribute)
            for item in items:
                weighed([key for key in keys_of(item) if not isinstance(key, Undefined)])
        given["value"] = items
        return filter(*call.args, **call.kwargs)

    return wrapped


class FilterEntry(NamedTuple):
    """A filter: its guard and function, Jinja2's by default; of our own also how it is written and what it gives."""

    guard: Callable[..., Any] | None = None
    function: Filter | None = None
    written: str = ""
    result: str = ""


_A_NUMBER = (
    "anything else is an error, unless there is a default: an empty value, `12 h`, and for `int` a text with decimals, "
    "such as `12.7`"
)
ENTRIES: Mapping[str, FilterEntry] = {
    **dict.fromkeys(("attr", "d", "default", "map", "reject", "rejectattr", "select", "selectattr"), FilterEntry()),
    **dict.fromkeys(("capitalize", "e", "escape", "forceescape", "lower", "pprint", "safe"), FilterEntry(_bounded)),
    **dict.fromkeys(
        ("striptags", "title", "upper", "urlencode", "urlize", "wordcount", "xmlattr"), FilterEntry(_bounded)
    ),
    **dict.fromkeys(("count", "first", "items", "last", "length", "list", "reverse"), FilterEntry(_items)),
    **dict.fromkeys(("truncate", "wordwrap"), FilterEntry(_text_of)),
    **dict.fromkeys(("batch", "slice"), FilterEntry(_parts)),
    **{name: FilterEntry(None, _comparing(name)) for name in ("dictsort", "groupby", "max", "min", "sort", "unique")},
    "abs": FilterEntry(None, magnitude),
    "ascii": FilterEntry(_bounded, as_ascii, "`ascii`", "letters without accents"),
    "center": FilterEntry(_sized("center")),
    "date": FilterEntry(
        _bounded,
        as_date,
        "`date('%d.%m.%Y')`, `date('%Y', read='%d.%m.%Y')`",
        "a date in another form; `read` is the form that it has",
    ),
    "filesizeformat": FilterEntry(None, file_size),
    "float": FilterEntry(None, real, "`float`, `float(0)`", f"the number; {_A_NUMBER}"),
    "format": FilterEntry(_sized("format")),
    "fromjson": FilterEntry(_bounded, from_json, "`fromjson`", "the value of JSON text, such as a list in a cell"),
    "indent": FilterEntry(_bounded, indented),
    "int": FilterEntry(None, whole, "`int`, `int(0)`", f"the whole number; {_A_NUMBER}"),
    "join": FilterEntry(_items, joined),
    "lines": FilterEntry(_bounded, lines, "`lines`", "a list of the lines of a text, without surrounding blanks"),
    "replace": FilterEntry(_bounded, replaced),
    "round": FilterEntry(None, rounded),
    "slug": FilterEntry(_bounded, slug, "`slug`", "`mueller-soehne` of `Müller & Söhne`"),
    "split": FilterEntry(
        _bounded,
        split,
        "`split`, `split(';')`",
        "a list of the parts of a text between commas or these characters, without surrounding blanks",
    ),
    "string": FilterEntry(_bounded, plain_text),
    "sum": FilterEntry(_items, total),
    "tojson": FilterEntry(_bounded, as_json),
    "trim": FilterEntry(_bounded, trimmed),
    "utc": FilterEntry(
        _bounded,
        utc,
        "`utc`, `utc(read='%d.%m.%Y')`",
        "an instant in the form of timestamps; without a zone it is in UTC",
    ),
    "words": FilterEntry(
        _bounded,
        words,
        "`words`, `words(',;')`",
        "a list of the words without surrounding commas or brackets, or of the parts between these characters, without "
        "duplicates",
    ),
}
"""All filters: those of Jinja2 within bounds, and our own, some of which replace one of the same name."""


def _guarded(filter: Filter, guard: Callable[..., Any] | None) -> Filter:
    if guard is None:
        return filter
    first = int(hasattr(filter, "jinja_pass_arg"))  # the context or environment that Jinja2 passes before the value

    @wraps(filter)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if len(arguments) <= first:
            return filter(*arguments, **options)
        value = guard(arguments[first], *arguments[first + 1 :], **options)
        return filter(*arguments[:first], value, *arguments[first + 1 :], **options)

    return wrapped


FILTERS: Mapping[str, Filter] = {
    name: _guarded(entry.function or theirs.FILTERS[name], entry.guard) for name, entry in ENTRIES.items()
}


_COMPARISONS = frozenset("== eq equalto != ne > gt greaterthan >= ge < lt lessthan <= le in".split())  # noqa: SIM905 - words


def _weighing(test: Filter) -> Filter:
    return wraps(test)(lambda left, right: test(weighed(left), weighed(right)))


_TESTS: Mapping[str, Any] = questions.TESTS
TESTS = {**_TESTS, **{name: _weighing(_TESTS[name]) for name in _COMPARISONS}}
"""The tests of Jinja2. Those that compare weigh both sides."""
