"""The filters of templates, each charged to the current budget for its time and the size of its data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from datetime import date, time
from decimal import Decimal
from functools import wraps
from typing import Any, NamedTuple

from jinja2 import Environment, pass_environment
from jinja2 import filters as theirs
from jinja2 import tests as questions
from jinja2.runtime import Undefined

from syncengine.templating import filters as ours
from syncengine.templating.budget import MAX_TEXT, Budget, check_number
from syncengine.templating.filters import plain_text

Filter = Callable[..., Any]
Spent = Callable[[], Budget]


class FilterTable(NamedTuple):
    """The filters of one kind of templates besides the common ones, by how they are charged.

    `of_text` filters process a whole value, such as a list with all its parts. `of_items` filters take items, or one
    number, without looking into them. `others` charge the budget by themselves, or create nothing new.
    """

    of_text: Mapping[str, Filter]
    of_items: Mapping[str, Filter]
    others: Callable[[Spent], Mapping[str, Filter]]


def _jinja(*names: str) -> dict[str, Filter]:
    return {name: theirs.FILTERS[name] for name in names}


def _text_of(value: Any) -> Any:
    """Return a number or a date as the text that a template would write; any other value as it is."""
    return str(value) if isinstance(value, int | float | Decimal | date | time) else value


def _of_numbers_too(filter: Filter) -> Filter:
    """Return one of Jinja2's filters of texts, extended to numbers and dates."""
    first = int(hasattr(filter, "jinja_pass_arg"))

    @wraps(filter)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        return filter(*arguments[:first], _text_of(arguments[first]), *arguments[first + 1 :], **options)

    return wrapped


TEXT = {
    **_jinja("capitalize", "lower", "title", "upper", "urlencode", "wordcount"),
    "truncate": _of_numbers_too(theirs.FILTERS["truncate"]),
}
ITEMS = _jinja(
    *("count", "first", "items", "last", "length", "list", "map"),
    *("reject", "rejectattr", "reverse", "select", "selectattr"),
)
OF_A_TEXT: Mapping[str, Filter] = {
    **TEXT,
    "ascii": ours.as_ascii,
    "date": ours.as_date,
    "fromjson": ours.from_json,
    "indent": ours.indented,
    "lines": ours.lines,
    "slug": ours.slug,
    "split": ours.split,
    "string": plain_text,
    "tojson": ours.as_json,
    "trim": ours.trimmed,
    "utc": ours.utc,
    "words": ours.words,
}
"""The filters of manifests that process a whole value."""
OF_ANYTHING: Mapping[str, Filter] = {name: theirs.FILTERS[name] for name in ("d", "default")}
"""The filters that also accept missing values, and create nothing new."""
COMPARING = {"dictsort": -1, "groupby": 0, "max": 1, "min": 1, "sort": 2, "unique": 1}
"""The filters that compare items or an attribute of items, each with the index of the argument that names it, or -1."""
QUESTIONS = ("==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", "ge", ">=", "<", "lt", "lessthan", "<=", "le")


def filters_of(spent: Spent, table: FilterTable) -> dict[str, Filter]:
    """Return all filters of one kind of templates. `spent` returns the current budget."""
    return {
        **OF_ANYTHING,
        **{name: _of_text(spent, filter) for name, filter in {**TEXT, **table.of_text}.items()},
        **{name: _of_items(spent, filter) for name, filter in {**ITEMS, **table.of_items}.items()},
        **{name: _comparing(spent, theirs.FILTERS[name], number) for name, number in COMPARING.items()},
        **table.others(spent),
    }


def tests_of(spent: Spent) -> dict[str, Filter]:
    """Return Jinja2's tests, extended so that comparisons weigh both sides."""
    tests: dict[str, Any] = {**questions.TESTS}
    return tests | {name: _weighing(spent, tests[name]) for name in (*QUESTIONS, "in")}


def comparable(budget: Budget, value: Any) -> Any:
    """Return the value after weighing its parts, which a comparison may visit."""
    if type(value) is not str and type(value) is not int:
        budget.weigh(value, is_written=False)
    return value


def _of_text(spent: Spent, filter: Filter) -> Filter:
    first = int(hasattr(filter, "jinja_pass_arg"))

    @wraps(filter)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        budget, value = spent(), arguments[first]
        if type(value) is str:
            return budget.took(filter(*arguments, **options), len(value))
        budget.weigh(value)
        check_number(value)
        return budget.took(filter(*arguments, **options))

    return wrapped


def _of_items(spent: Spent, filter: Filter) -> Filter:
    first = int(hasattr(filter, "jinja_pass_arg"))

    @wraps(filter)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        budget = spent()
        value = arguments[first] if len(arguments) > first else None
        arguments = (*arguments[:first], _walked(budget, value), *arguments[first + 1 :])
        return budget.took(filter(*arguments, **options))

    return wrapped


def _walked(budget: Budget, value: Any) -> Any:
    """Return the value after charging its items, or an iterator that charges each item when it is taken."""
    if isinstance(value, Undefined):
        str(value)  # raises for an undefined value, which Jinja2's `items` would treat as empty
    if isinstance(value, Iterator):
        return budget.filtered(value)
    if type(value) is str:
        budget.works(len(value))
    elif isinstance(value, Sized):
        budget.walk(len(value))
    else:
        check_number(value)
    return value


def _comparing(spent: Spent, filter: Filter, number: int) -> Filter:
    first = int(hasattr(filter, "jinja_pass_arg"))

    @wraps(filter)
    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        budget, value, options = spent(), arguments[first], arguments[first + 1 :]
        walked = _walked(budget, value)
        attribute = keywords.get("attribute", options[number] if 0 <= number < len(options) else None)
        items = walked if isinstance(walked, dict) else list(walked)
        if isinstance(items, dict) or attribute is None:
            budget.weigh(items)
        else:
            keys_of = theirs.make_multi_attrgetter(arguments[0], attribute)
            for item in items:
                budget.weigh([key for key in keys_of(item) if not isinstance(key, Undefined)])
        return budget.took(filter(*arguments[:first], items, *options, **keywords))

    return wrapped


def _weighing(spent: Spent, test: Filter) -> Filter:
    @wraps(test)
    def wrapped(left: Any, right: Any) -> Any:
        budget = spent()
        return test(comparable(budget, left), comparable(budget, right))

    return wrapped


def _of_several_texts(spent: Spent) -> dict[str, Filter]:
    """Return the filters that join several texts, after charging the size of the result."""

    def replace(value: Any, old: Any, new: Any) -> str:
        budget = spent()
        budget.weigh(value)
        text, old, new = plain_text(value), plain_text(old), plain_text(new)
        budget.fits(_replaced(text, old, new))
        return text.replace(old, new)

    def join(value: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
        budget = spent()
        items = list(_walked(budget, value))
        values = items if attribute is None else [item[attribute] for item in items]
        budget.weigh(values)
        parts = [plain_text(each) for each in values]
        budget.fits(sum(map(len, parts)) + len(separator) * len(parts))
        return separator.join(parts)

    return {"replace": replace, "join": join}


def _total(value: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
    return ours.total(value if attribute is None else (item[attribute] for item in value), start)


NUMBERS: Mapping[str, Filter] = {"abs": ours.magnitude, "float": ours.real, "int": ours.whole, "round": ours.rounded}
FILTERS_OF_MANIFESTS = FilterTable(OF_A_TEXT, {**NUMBERS, "sum": _total}, _of_several_texts)


def _replaced(value: Any, old: Any, new: Any, count: object = None) -> int:
    text, old, new = str(value), str(old), str(new)
    return len(text) + (text.count(old) if old else len(text) + 1) * len(new)


def _formatted(value: Any, *arguments: Any, **options: Any) -> int:
    """Return the sum of a format's widths and precisions, or too much if `*` or nested fields take them from values."""
    text = str(value)
    return MAX_TEXT + 1 if re.search(r"%[^a-z]*\*|\{[^}]*\{", text) else sum(map(int, re.findall(r"\d+", text)))


def _indented(value: str, width: int | str = 4, *_: Any, **__: Any) -> int:
    return len(value) + (str.count(value, "\n") + 1) * (width if isinstance(width, int) else len(width))


_SIZES: Mapping[str, Callable[..., int]] = {
    **{name: lambda text, width=80, fill=" ": max(len(text), width) for name in ("center", "ljust", "rjust", "zfill")},
    "expandtabs": lambda text, size=8: len(text) * size,
    "indent": _indented,
    "replace": _replaced,
    "format": _formatted,
    "format_map": _formatted,
    "join": lambda text, parts: sum(len(part) + len(text) for part in parts),
    "translate": lambda text, table: MAX_TEXT + 1,
    "batch": lambda value, linecount, fill_with=None: linecount,
    "slice": lambda value, slices, fill_with=None: slices,
}
"""The functions that return the size of a filter's or a text method's result before it is created."""


def check_method(budget: Budget, name: str, text: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Raise `TooMuch` for a text's method whose result would be too large."""
    if name in _SIZES:
        budget.fits(_SIZES[name](text, *arguments, **options))


OF_LISTS = ("batch", "slice")


def _sized(spent: Spent, name: str) -> Filter:
    """Return one of Jinja2's filters, extended to charge the size of its result before creating it."""
    filter = theirs.FILTERS[name]
    first = int(hasattr(filter, "jinja_pass_arg"))

    @wraps(filter)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if name not in OF_LISTS:
            arguments = (*arguments[:first], _text_of(arguments[first]), *arguments[first + 1 :])
        spent().fits(_SIZES[name](*arguments[first:], **options))
        return filter(*arguments, **options)

    return wrapped


def _of_jinja(spent: Spent) -> dict[str, Filter]:
    """Return Jinja2's own filters. Filters whose result can exceed their arguments are charged for it."""

    @wraps(theirs.FILTERS["join"])
    def join(context: Any, value: Any, d: str = "", attribute: Any = None) -> Any:
        parts = value if isinstance(value, Undefined) else list(value)
        spent().weigh(parts)
        return theirs.FILTERS["join"](context, parts, d, attribute)

    sized = {name: _sized(spent, name) for name in ("batch", "center", "format", "indent", "replace", "slice")}
    return {**_jinja("attr", "items", "pprint"), **sized, "join": join}


def _or_none(filter: Filter) -> Filter:
    """Return a filter of numbers for which a missing value stays missing."""

    @wraps(filter)
    def wrapped(value: Any, *arguments: Any, **options: Any) -> Any:
        return None if value is None else filter(value, *arguments, **options)

    return wrapped


@pass_environment
def _total_of(environment: Environment, value: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
    return ours.total(value if attribute is None else map(theirs.make_attrgetter(environment, attribute), value), start)


FILTERS_OF_JINJA = FilterTable(
    {
        **_jinja("e", "escape", "forceescape", "safe", "string", "striptags", "tojson", "trim", "urlize", "xmlattr"),
        "filesizeformat": _or_none(ours.file_size),
        "wordwrap": _of_numbers_too(theirs.FILTERS["wordwrap"]),
    },
    {
        **_jinja("random"),
        **NUMBERS,
        **{name: _or_none(NUMBERS[name]) for name in ("abs", "round")},
        "sum": _total_of,
    },
    _of_jinja,
)
"""The filters of templates for deliveries, which are all filters of Jinja2."""
