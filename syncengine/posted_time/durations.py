"""How long the work of a group took: total or rows, weighted, rounded up; in whole numbers. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext

from syncengine.delivery_file import DurationFrom, DurationSection, Weighting
from syncengine.posted_time.group import Group

Number = int | float | Decimal
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class Duration:
    """`seconds` is what is delivered; `worked_seconds` is the sum of the rows, `total_seconds` what the user posted."""

    seconds: int
    hours: Decimal
    worked_seconds: int
    total_seconds: int
    is_edited: bool
    weighting_percent: int | Decimal | None


UNREADABLE = "The duration of this time cannot be read."
NEGATIVE = "This time has a duration below zero."


def objection(group: Group, settings: DurationSection) -> str | None:
    """Why a group cannot be delivered with any duration, as a sentence for who posted it."""
    given = [group.total_duration_secs, *(row.duration_secs for row in group.time_rows)]
    if any(seconds is not None and math.isnan(seconds) for seconds in given):
        return UNREADABLE
    return NEGATIVE if duration_of(group, settings).seconds < 0 else None


def duration_of(group: Group, settings: DurationSection) -> Duration:
    """The duration of a group as the project wants it. Without rows the total counts, without a total the rows.

    ValueError for a duration that is no number: see `objection`.
    """
    worked = half_up(sum((decimal(row.duration_secs or 0) for row in group.time_rows), Decimal()))
    posted = group.total_duration_secs
    total = worked if posted is None else half_up(posted)
    edited = bool(group.time_rows) and total != worked
    base = worked if settings.from_ is DurationFrom.ROWS and group.time_rows else total
    percent = _weighting(group, settings.weighting or Weighting.UNLESS_EDITED, edited)
    weighted = base if percent is None else half_up(base * decimal(percent) / 100)
    seconds = round_up(weighted, settings.round_up_to or 0)
    return Duration(seconds, hours(seconds, 4).normalize() + 0, worked, total, edited, percent)


def _weighting(group: Group, weighting: Weighting, edited: bool) -> int | Decimal | None:
    """The percentage that counts; None where there is none, 0 or out of range."""
    percent = group.user.experience_weighting_percent if group.user else None
    if percent is None or not 0 < percent <= 100:
        return None
    applies = weighting is Weighting.ALWAYS or (weighting is Weighting.UNLESS_EDITED and not edited)
    whole = int(percent) == percent
    return (int(percent) if whole else decimal(percent)) if applies else None


def decimal(value: Number) -> Decimal:
    """A number as it is written: 0.1 is 0.1."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def half_up(value: Number) -> int:
    """The nearest whole number; a half goes up, away from zero."""
    return int(decimal(value).quantize(Decimal(1), ROUND_HALF_UP))


def rounded(value: Number, places: int = 0) -> Decimal:
    """Half up, to that many places."""
    with localcontext() as context:
        context.prec = 60
        return decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def hours(seconds: Number, places: int = 2) -> Decimal:
    """Decimal hours, half up."""
    with localcontext() as context:
        context.prec = 60
        return rounded(decimal(seconds) / 3600, places)


def round_up(seconds: Number, unit: Number) -> int:
    """The next whole multiple of `unit`, both in seconds; no unit, no rounding."""
    if unit <= 0:
        return half_up(seconds)
    step = decimal(unit)
    times = -(-decimal(seconds) // step) if decimal(seconds) % step == 0 else decimal(seconds) // step + 1
    return half_up(times * step)


def in_words(seconds: Number) -> str:
    """`2h 46m 40s`; days are kept as days."""
    left = half_up(abs(decimal(seconds)))
    parts = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if seconds < 0 and parts else "") + (" ".join(parts) or "0s")
