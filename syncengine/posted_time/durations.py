"""Compute the duration of a group in whole seconds, and the share of each of its tags. Pure.

The duration comes from the total or the rows, weighted and rounded up. Tags are identified and sorted by name, so that
each gets the same seconds and key whatever their order in the group. The key of the first or only tag is the sink's
name; that of each other tag is the sink's name, a `/` (which no sink's name contains) and a digest of the tag's name.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, localcontext

from syncengine.content import sha256_of
from syncengine.posted_time.group import Group, PostedTag
from syncengine.project.delivery_schema import DurationFrom, DurationSection, Weighting
from syncengine.state.inbox_model import PART

Number = int | float | Decimal


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
    base = _base(group, settings)
    weighting = settings.weighting or Weighting.UNLESS_EDITED
    percent = group.user.experienceWeightingPercent if group.user else None
    applies = weighting is Weighting.ALWAYS or (weighting is Weighting.UNLESS_EDITED and not edited)
    applied: int | Decimal | None = None
    if applies and percent is not None and 0 < percent <= 100:  # any other percentage is a mistake
        applied = int(percent) if int(percent) == percent else decimal(percent)
    seconds = half_up(base) if applied is None else half_up(half_up(base) * decimal(applied) / 100)
    if settings.round_up_to:
        # Of less than half a second 0 are left, which is time all the same.
        seconds = round_up(max(seconds, 1 if base > 0 else 0), settings.round_up_to)
    return Duration(seconds, _in_hours(seconds), worked, total, edited, applied)


def _in_hours(seconds: int) -> Decimal:
    return hours(seconds, 4).normalize() + 0  # the sum makes 100 of 1E+2


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


# --- shares of tags

DIVIDE, WHOLE = "DIVIDE_BETWEEN_TAGS", "WHOLE_DURATION_TO_EACH_TAG"
"""The service's strategies. A group without one is divided, so that nobody is billed twice."""

UNKNOWN_STRATEGY = (
    "This time has several tags, and the connector does not know the strategy for splitting its duration between them"
    " ({strategy}). Please post it once for each tag."
)
SAME_NAME = "This time has two tags with the same name, {name}. Please post it with only one of them."


@dataclass(frozen=True, slots=True)
class Share:
    """A tag of a group, and the tag's share of the duration. `suffix` follows the sink's name in the key."""

    tag: PostedTag
    duration: Duration
    suffix: str


def has_several(group: Group) -> bool:
    return len({tag.name or "" for tag in group.tags}) > 1


def shares(group: Group, whole: Duration) -> tuple[Share, ...] | str:
    """Return the share of each tag, sorted by name, or a message to the user if the group cannot be divided."""
    tags = {tag.name or "": tag for tag in group.tags}
    for tag in group.tags:
        if tag != tags[tag.name or ""]:
            return SAME_NAME.format(name=tag.name or "which is empty")
    strategy = group.durationSplitStrategy or DIVIDE
    if strategy not in (DIVIDE, WHOLE):
        return UNKNOWN_STRATEGY.format(strategy=strategy)
    keys = suffixes(tags)
    durations = divided(group, whole, len(tags))
    return tuple(Share(tags[name], part, keys[name]) for name, part in zip(keys, durations, strict=True))


def divided(group: Group, whole: Duration, parts: int) -> list[Duration]:
    """Return the duration of each part of a group that is divided by a known strategy.

    Each of the first parts gets one second of the remainder.
    """
    if group.durationSplitStrategy == WHOLE:
        return [whole] * parts
    each, rest = divmod(whole.seconds, parts)
    seconds = [each + (place < rest) for place in range(parts)]
    return [replace(whole, seconds=part, hours=_in_hours(part)) for part in seconds]


def suffixes(names: Iterable[str | None]) -> Mapping[str, str]:
    """Return the suffix of each tag's key by the tag's name, sorted by name. The suffix of the first tag is empty."""

    def suffix(name: str) -> str:
        # 15 bytes are 24 characters of base 32, with which the name of a sink fits into the column of receipts.
        return PART + base64.b32encode(bytes.fromhex(sha256_of(name))[:15]).decode().lower()

    return {name: suffix(name) if place else "" for place, name in enumerate(sorted({name or "" for name in names}))}


def tag_of(key: str, sink: str, names: Iterable[str | None]) -> str | None:
    """Return the name of the tag that a key belongs to, or `None` for the key of a whole group."""
    parts = suffixes(names)
    return next((name for name, suffix in parts.items() if len(parts) > 1 and sink + suffix == key), None)


# --- numbers


def decimal(value: Number) -> Decimal:
    """Return a number as the decimal that is displayed: exactly 0.1 for 0.1."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def half_up(value: Number) -> int:
    """Return the nearest whole number. A half is rounded away from zero."""
    return int(decimal(value).quantize(Decimal(1), ROUND_HALF_UP))


def rounded(value: Number, places: int = 0) -> Decimal:
    """Return the value rounded to `places` decimals. A half is rounded away from zero."""
    with localcontext() as context:
        context.prec = 60  # digits: the 28 of the default would refuse a large number with many places
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
    times, rest = divmod(decimal(seconds), decimal(unit))
    return half_up((times + bool(rest)) * decimal(unit))


def in_words(seconds: Number) -> str:
    """Return a duration in the form `2h 46m 40s`, in which days remain days, as in `1d 2h`."""
    rest = half_up(abs(decimal(seconds)))
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if seconds < 0 and parts else "") + (" ".join(parts) or "0s")
