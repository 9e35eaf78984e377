"""All filters of templates, each under the budget of the file that runs it: what goes in, what comes out, how long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import wraps
from typing import Any

from jinja2 import filters as theirs
from jinja2 import tests as questions
from jinja2.runtime import Undefined

from syncengine.templating import filters as ours
from syncengine.templating.budget import Budget, check_number
from syncengine.templating.filters import plain_text

Filter = Callable[..., Any]
Spent = Callable[[], Budget]

OF_A_TEXT: Mapping[str, Filter] = {
    **{
        name: theirs.FILTERS[name]
        for name in ("capitalize", "lower", "title", "truncate", "upper", "urlencode", "wordcount")
    },
    "ascii": ours.as_ascii,
    "date": ours.as_date,
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
"""They see all of a value: a list is gone through with all that is in it."""
OF_ITEMS: Mapping[str, Filter] = {
    **{
        name: theirs.FILTERS[name]
        for name in (
            *("abs", "count", "first", "float", "int", "items", "last", "length", "list", "map"),
            *("reject", "rejectattr", "reverse", "select", "selectattr"),
        )
    },
    "round": ours.rounded,
    "sum": ours.total,
}
"""They take items, or one number, and do not look into them."""
OF_ANYTHING: Mapping[str, Filter] = {name: theirs.FILTERS[name] for name in ("d", "default")}
"""They take what is not there as well, and make nothing new."""
COMPARING = {"dictsort": -1, "groupby": 0, "max": 1, "min": 1, "sort": 2, "unique": 1}
"""They compare items, or an attribute of them, which is the argument of this number; letters are made small before."""
QUESTIONS = ("==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", "ge", ">=", "<", "lt", "lessthan", "<=", "le")


def filters_of(spent: Spent) -> dict[str, Filter]:
    """All filters, of an environment whose current budget `spent` tells."""
    return {
        **OF_ANYTHING,
        **{name: _of_text(spent, filter) for name, filter in OF_A_TEXT.items()},
        **{name: _of_items(spent, filter) for name, filter in OF_ITEMS.items()},
        **{name: _comparing(spent, theirs.FILTERS[name], number) for name, number in COMPARING.items()},
        **_of_several_texts(spent),
    }


def tests_of(spent: Spent) -> dict[str, Filter]:
    """Jinja2's tests; those that compare weigh both sides."""
    known: dict[str, Any] = {**questions.TESTS}
    return known | {name: _weighing(spent, known[name]) for name in (*QUESTIONS, "in")}


def comparable(budget: Budget, value: Any) -> Any:
    """The value; whatever has parts is weighed before it is compared."""
    if type(value) is not str and type(value) is not int:
        budget.weigh(value, is_written=False)
    return value


def _of_text(spent: Spent, filter: Filter) -> Filter:
    @wraps(filter)
    def wrapped(value: Any, *given: Any, **named: Any) -> Any:
        budget = spent()
        if type(value) is str:
            return budget.took(filter(value, *given, **named), len(value))
        budget.weigh(value)
        check_number(value)
        return budget.took(filter(value, *given, **named))

    return wrapped


def _of_items(spent: Spent, filter: Filter) -> Filter:
    first = int(hasattr(filter, "jinja_pass_arg"))

    @wraps(filter)
    def wrapped(*given: Any, **named: Any) -> Any:
        budget = spent()
        value = given[first] if len(given) > first else None
        given = (*given[:first], _walked(budget, value), *given[first + 1 :])
        return budget.took(filter(*given, **named))

    return wrapped


def _walked(budget: Budget, value: Any) -> Any:
    """The value, each item of which is a step once it is taken."""
    if isinstance(value, Undefined):
        str(value)  # which is where an undefined value fails: Jinja2's `items` would take it for an empty one
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
    def wrapped(*given: Any, **named: Any) -> Any:
        budget, value, options = spent(), given[first], given[first + 1 :]
        walked = _walked(budget, value)
        attribute = named.get("attribute", options[number] if 0 <= number < len(options) else None)
        items = walked if isinstance(walked, dict) else list(walked)
        if isinstance(items, dict) or attribute is None:
            budget.weigh(items)
        else:
            keys_of = theirs.make_multi_attrgetter(given[0], attribute)
            for item in items:
                budget.weigh([key for key in keys_of(item) if not isinstance(key, Undefined)])
        return budget.took(filter(*given[:first], items, *options, **named))

    return wrapped


def _weighing(spent: Spent, test: Filter) -> Filter:
    @wraps(test)
    def wrapped(left: Any, right: Any) -> Any:
        budget = spent()
        return test(comparable(budget, left), comparable(budget, right))

    return wrapped


def _of_several_texts(spent: Spent) -> dict[str, Filter]:
    """What texts become together is weighed before it is made."""

    def replace(value: Any, old: str, new: str) -> str:
        budget = spent()
        budget.weigh(value)
        text = plain_text(value)
        budget.fits(len(text) + (text.count(old) * len(new) if old else (len(text) + 1) * len(new)))
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
