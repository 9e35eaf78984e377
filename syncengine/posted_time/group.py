"""A posted time group as a frozen value, read from the service's JSON. Pure.

Fields that are missing or invalid are `None`, so that no group is lost because of them. Attributes are the interface's
names in snake case; `NAMES` maps them to the names in templates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, TypeVar

import orjson

from syncengine.document.digest import sha256_of
from syncengine.document.text import to_camel

T = TypeVar("T")
NO_ID = "This time cannot be read: it has no id."
"""The message about a group without a `groupId` that is a string."""
EMPTY_TITLE = "(no title)"
"""The text that replaces an empty title."""
NARRATIVE_ONLY = "NARRATIVE_ONLY"
"""The narrative type that hides the activities and descriptions of rows."""

_WRAPPED = re.compile(r"@_(.*?)_@", re.DOTALL)
NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
"""The characters that not every database stores: NUL and unpaired surrogates."""


def clean(text: str) -> str:
    """Return text that every database and file can store: NUL and unpaired surrogates are replaced."""
    return text if text.isascii() and "\0" not in text else NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


def unwrapped(text: str) -> str:
    """Replace each `@_Name_@` in a text by `Name`, and `@_empty_@` by `(no title)`."""
    return _WRAPPED.sub(lambda match: EMPTY_TITLE if match[1] in ("", "empty") else match[1], text)


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return clean(value)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number(value: object) -> int | float | None:
    if isinstance(value, str):
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) < 1e18:  # also excludes NaN and infinities
        return None
    return int(value) if value == int(value) else value  # 3600.0 is the same as 3600, in a digest too


def _duration(value: object) -> int | float | None:
    """Return a number, `None` for a missing value, and `nan` for an invalid one, which must not count as missing."""
    return None if value is None else math.nan if (number := _number(value)) is None else number


def _integer(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _title(value: object) -> str:
    return unwrapped(_text(value) or "").strip() or EMPTY_TITLE


def _description(value: object) -> str | None:
    text = _text(value)
    return None if text is None else unwrapped(text)


def _one(kind: type[T]) -> Callable[[object], T | None]:
    return lambda value: read(kind, value) if isinstance(value, Mapping) else None


def _many(kind: type[T]) -> Callable[[object], tuple[T, ...]]:
    def items(value: object) -> tuple[T, ...]:
        listed = value if isinstance(value, list | tuple) else ()
        return tuple(read(kind, item) for item in listed if isinstance(item, Mapping))

    return items


def _wire(reader: Callable[[object], Any], name: str | None = None) -> dict[str, Any]:
    """Return the metadata of a field: its reader, and its name in JSON if that is not in camel case."""
    return {"read": reader, "name": name}


@dataclass(frozen=True, slots=True)
class PostedTag:
    name: str | None = field(metadata=_wire(_text))
    path: str | None = field(metadata=_wire(_text))
    description: str | None = field(metadata=_wire(_text))
    external_id: str | None = field(metadata=_wire(_text))


@dataclass(frozen=True, slots=True)
class TimeRow:
    """A row of a group. `activity` and `description` are unwrapped; an empty activity is `(no title)`."""

    activity: str | None = field(metadata=_wire(_title))
    description: str | None = field(metadata=_wire(_description))
    activity_hour: int | None = field(metadata=_wire(_integer))
    first_observed_in_hour: int | None = field(metadata=_wire(_integer))
    duration_secs: int | float | None = field(metadata=_wire(_duration))
    submitted_date: int | None = field(metadata=_wire(_integer))
    modifier: str | None = field(metadata=_wire(_text))
    activity_type_code: str | None = field(metadata=_wire(_text))
    source: str | None = field(metadata=_wire(_text))
    timezone_name: str | None = field(metadata=_wire(_text, "timezone_name"))
    timezone_offset_min: int | None = field(metadata=_wire(_integer, "timezone_offset_min"))
    start: datetime | None = field(metadata=_wire(lambda _: None))
    """The local start, which `clock.placed` fills in. It is not a field of the interface."""


@dataclass(frozen=True, slots=True)
class PostedActivityType:
    code: str | None = field(metadata=_wire(_text))
    label: str | None = field(metadata=_wire(_text))


@dataclass(frozen=True, slots=True)
class User:
    user_id: str | None = field(metadata=_wire(_text))
    name: str | None = field(metadata=_wire(_text))
    email: str | None = field(metadata=_wire(_text))
    external_id: str | None = field(metadata=_wire(_text))
    business_role: str | None = field(metadata=_wire(_text))
    experience_weighting_percent: int | float | None = field(metadata=_wire(_number))


@dataclass(frozen=True, slots=True)
class Group:
    """A posted time group (docs/interface.md 2.5), without the caller key, which only the receiver may see."""

    group_id: str | None = field(metadata=_wire(_text))
    description: str | None = field(metadata=_wire(_description))
    formatted_narrative: str | None = field(metadata=_wire(_description))
    total_duration_secs: int | float | None = field(metadata=_wire(_duration))
    total_duration_hours: int | float | None = field(metadata=_wire(_duration))
    tz_offset_mins: int | None = field(metadata=_wire(_integer))
    local_date: str | None = field(metadata=_wire(_text))
    timestamp: int | None = field(metadata=_wire(_integer))
    group_name: str | None = field(metadata=_wire(_text))
    narrative_type: str | None = field(metadata=_wire(_text))
    status: str | None = field(metadata=_wire(_text))
    submission_time: int | None = field(metadata=_wire(_integer))
    tags: tuple[PostedTag, ...] = field(metadata=_wire(_many(PostedTag)))
    time_rows: tuple[TimeRow, ...] = field(metadata=_wire(_many(TimeRow)))
    activity_type: PostedActivityType | None = field(metadata=_wire(_one(PostedActivityType)))
    user: User | None = field(metadata=_wire(_one(User)))
    originating_user: User | None = field(metadata=_wire(_one(User)))
    duration_split_strategy: str | None = field(metadata=_wire(_text))

    @property
    def posted_seconds(self) -> int | float | None:
        """The total that was posted, in seconds: the hours if there are no seconds, and `nan` if it is unreadable."""
        hours = self.total_duration_hours
        if self.total_duration_secs is not None or hours is None:
            return self.total_duration_secs
        return hours if math.isnan(hours) else round(hours * 3600)

    @property
    def tag(self) -> PostedTag | None:
        """The only tag, or the first of several (see `shares`), or `None`."""
        return self.tags[0] if self.tags else None


KINDS: tuple[type[Any], ...] = (Group, TimeRow, PostedTag, PostedActivityType, User)
NAMES: Mapping[type[Any], Mapping[str, str]] = {
    kind: {f.metadata["name"] or to_camel(f.name): f.name for f in fields(kind)} for kind in KINDS
}
"""The attributes of each class, by their names in the interface."""


_READERS: Mapping[type[Any], Sequence[tuple[str, Callable[[object], Any]]]] = {
    kind: [(wire, f.metadata["read"]) for wire, f in zip(names, fields(kind), strict=True)]
    for kind, names in NAMES.items()
}


def read(kind: type[T], raw: Mapping[Any, object]) -> T:
    """Return a value of the class `kind` from a JSON object, ignoring unknown fields."""
    return kind(*[reader(raw.get(wire)) for wire, reader in _READERS[kind]])


def read_group(raw: Mapping[str, object]) -> Group:
    """Return the group in a JSON object from the service."""
    group = read(Group, raw)
    is_known = group.total_duration_secs is not None
    return replace(group, total_duration_hours=_number(group.total_duration_hours)) if is_known else group


def without_descriptions(group: Group) -> Group:
    """Return the group without the activities and descriptions of rows, if its narrative type is NARRATIVE_ONLY."""
    if group.narrative_type != NARRATIVE_ONLY:
        return group
    rows = tuple(replace(row, activity=None, description=None) for row in group.time_rows)
    return replace(group, time_rows=rows)


def stored(raw: Mapping[str, object]) -> str:
    """Return the group as JSON for the inbox, without the caller key and values nested deeper than `DEEPEST`."""
    kept = {name: value for name, value in raw.items() if name != "callerKey"}
    return clean(orjson.dumps(_cleaned(kept, DEEPEST), default=str, option=orjson.OPT_SORT_KEYS | _LOOSE).decode())


_LOOSE = orjson.OPT_NON_STR_KEYS
DEEPEST = 30
"""The maximum number of levels of nesting that are stored; the interface has three."""


def _cleaned(value: object, levels: int) -> object:
    match value:  # the most frequent types first
        case str():
            return clean(value)
        case int():
            return str(value) if abs(value) >= 1 << 63 else value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict() | list() | tuple() | Mapping() if levels == 0:
            return None
        case dict() | Mapping():
            return {clean(str(name)): _cleaned(inner, levels - 1) for name, inner in value.items()}
        case list() | tuple():
            return [_cleaned(inner, levels - 1) for inner in value]
        case _:
            return value


ROW_CONTENT = ("activityHour", "firstObservedInHour", "durationSecs", "activity", "description", "activityTypeCode")
Content = dict[str, Any]


def content(group: Group) -> Content:
    """Return the content that the user posted, by the interface's names.

    Fields that the service adds or that change without the user are left out: status, submission times, the formatted
    narrative, and everything about tags, user and activity type but what identifies them.
    """
    user = group.user
    return {
        "totalDurationSecs": group.posted_seconds,
        "description": group.description,
        "groupName": group.group_name,
        "localDate": group.local_date,
        "narrativeType": group.narrative_type,
        "tags": sorted(tag.name or "" for tag in group.tags),
        "activityType": group.activity_type.code if group.activity_type else None,
        "user": (user.user_id or user.external_id or user.email) if user else None,
        "timeRows": [{name: getattr(row, NAMES[TimeRow][name]) for name in ROW_CONTENT} for row in group.time_rows],
    }


def digest(group: Group) -> str:
    """Return a hash of the posted content, which is independent of the order of rows.

    Inboxes and receipts store it, so neither the order of fields nor the form of values may ever change.
    """
    *fields, rows = content(group).values()
    parts = (orjson.dumps(fields), *sorted(orjson.dumps(list(row.values())) for row in rows))
    return sha256_of(b"\n".join(parts))
