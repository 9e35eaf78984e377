"""Compute the duration of a group in whole seconds: from its total or rows, weighted and rounded up. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext

from syncengine.posted_time.group import Group
from syncengine.project.delivery_schema import DurationFrom, DurationSection, Weighting

Number = int | float | Decimal
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class Duration:
    """The duration of a group. `seconds` is delivered; `workedSeconds` sums the rows; `totalSeconds` was posted.

    Attributes have the names that templates use.
    """

    seconds: int
    hours: Decimal
    workedSeconds: int
    totalSeconds: int
    isEdited: bool
    weightingPercent: int | Decimal | None


UNREADABLE = "The duration of this time cannot be read."
NEGATIVE = "This time has a negative duration."
NOTHING = "This time has a duration of 0 seconds, which cannot be rounded up. Please post it with a duration."


class NotPositive(ValueError):
    """Raised when a duration of zero or less should be rounded up. Its text is a message to the user."""


def objection(group: Group, settings: DurationSection) -> str | None:
    """Return a message to the user if a group's duration cannot be delivered, else `None`.

    Call it before rounding: neither -5 s nor 0 s may become a unit of 6 minutes.
    """
    posted = group.posted_seconds
    rows = [row.durationSecs for row in group.timeRows]
    if any(seconds is not None and math.isnan(seconds) for seconds in [posted, *rows]):
        return UNREADABLE
    if _counts_rows(group, settings) and (not rows or None in rows):
        return UNREADABLE
    base = _base(group, settings)
    if base < 0 or (posted is not None and posted < 0):
        return NEGATIVE
    return NOTHING if base == 0 and settings.round_up_to else None


def duration_of(group: Group, settings: DurationSection) -> Duration:
    """Return the duration of a group by the project's settings. Without rows the total counts, and vice versa.

    Raise `ValueError` for a duration that is not a number or cannot be rounded up, which `objection` finds first.
    """
    worked = half_up(_worked(group))
    posted = _posted(group)
    total = worked if posted is None else half_up(posted)
    edited = bool(group.timeRows) and total != worked
    base = half_up(_base(group, settings))
    percent = _weighting(group, settings.weighting or Weighting.UNLESS_EDITED, edited)
    weighted = base if percent is None else half_up(base * decimal(percent) / 100)
    if settings.round_up_to:
        weighted = round_up(max(weighted, 1 if _base(group, settings) > 0 else 0), settings.round_up_to)
    return _duration(weighted, worked, total, edited, percent)


def _duration(seconds: int, worked: int, total: int, edited: bool, percent: int | Decimal | None) -> Duration:
    return Duration(seconds, hours(seconds, 4).normalize() + 0, worked, total, edited, percent)


def _worked(group: Group) -> Decimal:
    return sum((decimal(row.durationSecs or 0) for row in group.timeRows), Decimal())


def _base(group: Group, settings: DurationSection) -> Decimal:
    """Return the duration in seconds before weighting and rounding."""
    return _worked(group) if _counts_rows(group, settings) else decimal(_posted(group) or 0)


def _counts_rows(group: Group, settings: DurationSection) -> bool:
    return group.posted_seconds is None or bool(settings.from_ is DurationFrom.ROWS and group.timeRows)


def _posted(group: Group) -> Number | None:
    """Return the total that was posted. Hours are rounded: rows that come to the same hours are exact."""
    if group.totalDurationSecs is None and group.timeRows and group.totalDurationHours is not None:
        worked = _worked(group)
        if hours(worked) == rounded(group.totalDurationHours, 2):
            return worked
    return group.posted_seconds


def _weighting(group: Group, weighting: Weighting, edited: bool) -> int | Decimal | None:
    """Return the percentage to apply, or `None` when it is missing, out of range or switched off."""
    percent = group.user.experienceWeightingPercent if group.user else None
    if percent is None or not 0 < percent <= 100:
        return None
    applies = weighting is Weighting.ALWAYS or (weighting is Weighting.UNLESS_EDITED and not edited)
    whole = int(percent) == percent
    return (int(percent) if whole else decimal(percent)) if applies else None


def decimal(value: Number) -> Decimal:
    """Return a number as the decimal that is displayed: exactly 0.1 for 0.1."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def half_up(value: Number) -> int:
    """Return the nearest whole number. A half is rounded away from zero."""
    return int(decimal(value).quantize(Decimal(1), ROUND_HALF_UP))


def rounded(value: Number, places: int = 0) -> Decimal:
    """Return the value rounded to `places` decimals. A half is rounded away from zero."""
    with localcontext() as context:
        context.prec = 60
        return decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def hours(seconds: Number, places: int = 2) -> Decimal:
    """Return seconds as decimal hours, rounded to `places` decimals."""
    with localcontext() as context:
        context.prec = 60
        return rounded(decimal(seconds) / 3600, places)


def round_up(seconds: Number, unit: Number) -> int:
    """Round seconds up to a multiple of `unit`, or to the nearest second with a unit of 0.

    Raise `NotPositive` for a duration of zero or less, if there is a unit.
    """
    if unit <= 0:
        return half_up(seconds)
    if seconds <= 0:
        raise NotPositive(NOTHING if seconds == 0 else NEGATIVE)
    step = decimal(unit)
    times = -(-decimal(seconds) // step) if decimal(seconds) % step == 0 else decimal(seconds) // step + 1
    return half_up(times * step)


def in_words(seconds: Number) -> str:
    """Return a duration in the form `2h 46m 40s`, in which days remain days, as in `1d 2h`."""
    rest = half_up(abs(decimal(seconds)))
    parts = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if seconds < 0 and parts else "") + (" ".join(parts) or "0s")
