"""The template filters for durations, numbers, dates and texts. Pure.

Every filter returns `None` for `None`, so that a group without rows, tag or user still renders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from functools import wraps
from typing import Any

from syncengine.document.setting_types import span
from syncengine.posted_time.clock import named_zone
from syncengine.posted_time.durations import decimal, hours, in_words, round_up, rounded
from syncengine.posted_time.group import unwrapped
from syncengine.templating.filters import FilterTrouble, UnfitValue, numeric
from syncengine.templating.values import Unknown

_HAS_TIME = re.compile(r"\d[T ]\d")


def unit_seconds(unit: object) -> float:
    """Return the seconds of a unit such as `6m` or 360, or raise `FilterTrouble` when it is neither."""
    seconds = span(unit) if isinstance(unit, str) else unit
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise FilterTrouble(f"{unit!r} is neither a unit such as 6m nor a number of seconds")
    return seconds


def instant(value: object) -> datetime:
    """Return the instant of a `datetime`, a date in ISO 8601, or milliseconds since the epoch."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 -- a day has no zone
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value / 1000, UTC)
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        raise UnfitValue(f"{value!r} is not an ISO 8601 date or time", ", such as 2026-03-01") from None


def zone(name: str) -> tzinfo:
    found = named_zone(name)
    if found is None:
        raise FilterTrouble(f"{name!r} is not a time zone")
    return found


def _exact(value: Any) -> Decimal:
    """Return a number, or a text that is one, as a decimal number."""
    found: Any = numeric(value)
    if not math.isfinite(found):
        raise UnfitValue(f"{found} is not a number")
    return decimal(found)


def _hours(value: Any, precision: int = 2) -> Decimal:
    return hours(_exact(value), precision)


def _round(value: Any, precision: int = 0) -> int | Decimal:
    found = rounded(_exact(value), precision)
    return int(found) if precision <= 0 else found


def _round_up(value: Any, unit: object) -> int:
    return round_up(_exact(value), decimal(unit_seconds(unit)))


def _local(value: object, name: str) -> datetime:
    """Return the time in a zone. A day begins there; a time without a zone is in UTC, as in the interface."""
    found, there = instant(value), zone(name)
    if found.tzinfo is not None:
        return found.astimezone(there)
    is_day = isinstance(value, str) and not _HAS_TIME.search(value)
    return found.replace(tzinfo=there) if is_day else found.replace(tzinfo=UTC).astimezone(there)


def _date(value: object, format: str = "%Y-%m-%d") -> str:
    return instant(value).strftime(format)


def _cut(value: object, length: int, end: str = "...") -> str:
    """Cut a text, and show it by `end`: in ASCII by default, which a ledger in any encoding takes."""
    text = str(value)
    return text if len(text) <= length else text[: max(0, length - len(end))] + end[:length]


def _missing_goes_through(filter: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(filter)
    def wrapped(value: Any, *positional: Any, **named: Any) -> Any:
        return value if value is None or isinstance(value, Unknown) else filter(value, *positional, **named)

    return wrapped


_PLAIN: Mapping[str, Callable[..., Any]] = {
    "duration": lambda value: in_words(_exact(value)),
    "hours": _hours,
    "round": _round,
    "round_up": _round_up,
    "local": _local,
    "date": _date,
    "time": lambda value, format="%H:%M": _date(value, format),
    "cut": _cut,
    "unwrap": lambda value: unwrapped(str(value)),
}
FILTERS: Mapping[str, Callable[..., Any]] = {name: _missing_goes_through(filter) for name, filter in _PLAIN.items()}

_TRIAL: Mapping[str, Any] = {
    **dict.fromkeys(("duration", "hours", "round", "round_up"), 1.5),
    **dict.fromkeys(("local", "date", "time"), datetime(2024, 5, 2, 9, 5, tzinfo=UTC)),
    **dict.fromkeys(("cut", "unwrap"), "text"),
}
"""A value that each filter accepts, with which its arguments are tried."""


def objection(name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> str | None:
    """Return the reason why a filter can never take these arguments, or `None`. Unknown filters are not judged."""
    if name not in _PLAIN:
        return None
    try:
        _PLAIN[name](_TRIAL[name], *positional, **named)
    except FilterTrouble as error:
        return f"`{name}`: {error}"
    except (TypeError, ValueError, ArithmeticError):
        shown = ", ".join([*map(repr, positional), *(f"{key}={value!r}" for key, value in named.items())])
        return f"`{name}` cannot be called with ({shown})"
    return None
