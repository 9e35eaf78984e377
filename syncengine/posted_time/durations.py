"""Compute the duration of a group in whole seconds: from its total or rows, weighted and rounded up. Pure."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, localcontext

from syncengine.document.digest import sha256_of
from syncengine.posted_time.group import Group, PostedTag
from syncengine.project.delivery_schema import DurationFrom, DurationSection, Weighting
from syncengine.state.inbox_model import PART

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
    return len(_names(tag.name for tag in group.tags)) > 1


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
    """Return the duration of each part of a group that is divided by a known strategy."""
    if group.durationSplitStrategy == WHOLE:
        return [whole] * parts
    return [_of(whole, seconds) for seconds in _divide(whole.seconds, parts)]


def suffixes(names: Iterable[str | None]) -> Mapping[str, str]:
    """Return the suffix of each tag's key by the tag's name, sorted by name. The suffix of the first tag is empty."""
    return {name: _suffix(name) if place else "" for place, name in enumerate(_names(names))}


def tag_of(key: str, sink: str, names: Iterable[str | None]) -> str | None:
    """Return the name of the tag that a key belongs to, or `None` for the key of a whole group."""
    parts = suffixes(names)
    return next((name for name, suffix in parts.items() if len(parts) > 1 and sink + suffix == key), None)


def _names(names: Iterable[str | None]) -> list[str]:
    return sorted({name or "" for name in names})


def _suffix(name: str) -> str:
    return PART + base64.b32encode(bytes.fromhex(sha256_of(name))[:15]).decode().lower()


def _divide(seconds: int, parts: int) -> list[int]:
    """Divide seconds into whole seconds. Each of the first parts gets one second of the remainder."""
    each, rest = divmod(seconds, parts)
    return [each + (place < rest) for place in range(parts)]


def _of(whole: Duration, seconds: int) -> Duration:
    return replace(whole, seconds=seconds, hours=hours(seconds, 4).normalize() + 0)
