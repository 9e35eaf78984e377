"""Read the form that posts time: fields from a browser → a group to post, or problems to show. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from syncengine.sandbox.store import Json

LONGEST = 24 * 3600
"""The maximum number of seconds of one group, which are those of a day."""

FARTHEST = 14 * 60
"""The maximum number of minutes between UTC and any local time."""

_HOURS = re.compile(r"(?:(\d{1,4})\s*h)?\s*(?:(\d{1,4})\s*m(?:in)?)?\s*(?:(\d{1,5})\s*s)?")
_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)")
_OFFSET = re.compile(r"-?\d{1,3}")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{1,63}")
_MINUTES = re.compile(r"\d{1,4}")

EMPTY: Mapping[str, str] = {
    "user": "Jane Doe",
    "tag": "",
    "activityType": "",
    "description": "",
    "duration": "1h",
    "activities": "",
    "zone": "",
    "offset": "",
}
"""The initial fields of the form. The browser sets `zone` to its time zone and `offset` to its minutes ahead of UTC."""


class Filled(NamedTuple):
    """A submitted form. `body` is posted unless there are `problems`, which are sentences by field."""

    body: Json
    problems: dict[str, str]


def read(fields: Mapping[str, str]) -> Filled:
    texts = {name: fields.get(name, "").strip() for name in EMPTY}
    problems: dict[str, str] = {}
    seconds = duration(texts["duration"])
    if seconds is None:
        problems["duration"] = "Enter a duration such as 1h 30m, 0:45 or 90 (minutes), up to 24 hours."
    if not texts["user"]:
        problems["user"] = "Enter the user's name."
    body: Json = {
        "user": user(texts["user"]),
        "description": texts["description"],
        "totalDurationSecs": seconds or 0,
        "tzOffsetMins": offset(texts["offset"]),
        "timeRows": [{**zone(texts["zone"]), **row} for row in rows(texts["activities"], seconds or 0)],
        **{name: texts[name] for name in ("tag", "activityType") if texts[name]},
    }
    return Filled(body, problems)


def duration(text: str) -> int | None:
    """Return the seconds of `1h 30m`, `0:45` or `90` (minutes), or `None` for other text, zero or more than a day."""
    if clock := _CLOCK.fullmatch(text):
        seconds = int(clock[1]) * 3600 + int(clock[2]) * 60
    elif _MINUTES.fullmatch(text):
        seconds = int(text) * 60
    elif parts := _HOURS.fullmatch(text):
        seconds = sum(int(part or 0) * unit for part, unit in zip(parts.groups(), (3600, 60, 1), strict=True))
    else:
        return None
    return seconds if 0 < seconds <= LONGEST else None


def offset(text: str) -> int:
    """Return the minutes ahead of UTC, or 0 when the text is not the offset of a real time zone."""
    minutes = int(text) if _OFFSET.fullmatch(text) else 0
    return minutes if abs(minutes) <= FARTHEST else 0


def zone(text: str) -> Json:
    return {"timezone_name": text} if _ZONE.fullmatch(text) else {}


def user(name: str) -> Json:
    """Return a user of this name, with an id, an e-mail address and initials made from the name."""
    words = re.findall(r"\w+", name.casefold())
    return {
        "userId": f"user-{'-'.join(words)}",
        "name": name,
        "email": f"{'.'.join(words)}@example.com",
        "externalId": "".join(word[0] for word in words),
    }


def rows(activities: str, seconds: int) -> list[Json]:
    """Return a row per line, or a single row without lines. The rows share the time; the first gets the remainder."""
    lines = [line.strip() for line in activities.splitlines() if line.strip()]
    count = max(1, len(lines))
    shares = [seconds // count + (seconds % count if number == 0 else 0) for number in range(count)]
    if not lines:
        return [{"durationSecs": seconds, "activity": "@_empty_@", "description": "", "source": "USER_MANUAL_TIME"}]
    return [
        {"durationSecs": share, "activity": f"@_{line}_@", "description": "", "source": "USER_MANUAL_TIME"}
        for line, share in zip(lines, shares, strict=True)
    ]
