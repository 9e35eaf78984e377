"""A posted time group as a frozen value, made of whatever the service sent; pure.

Fields that are missing, or not what the interface says, are None: a group that somebody posted is never lost to them.
Attributes are the interface's names in snake case; `NAMES` has them as templates see them.
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
"""What is said of a group that nobody could be told of: without a `groupId` that is a text."""
EMPTY_TITLE = "(no title)"
"""What an empty title is called."""
NARRATIVE_ONLY = "NARRATIVE_ONLY"
"""The narrative type whose rows' descriptions are not to be shown."""

_WRAPPED = re.compile(r"@_(.*?)_@", re.DOTALL)
NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
"""NUL and halves of surrogate pairs, which no database holds."""


def clean(text: str) -> str:
    """Text that every database and file holds: without NUL and halves of surrogate pairs."""
    return text if text.isascii() and "\0" not in text else NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


def unwrapped(text: str) -> str:
    """`@_Name_@` as Name, and `@_empty_@` as the name of an empty title."""
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
    return value if abs(value) < 1e18 else None  # nan and the infinities are not below anything


def _duration(value: object) -> int | float | None:
    """A number; `nan` for a value that is there and is none: it must not count as a missing one."""
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
    """How a field is read, and its name where that is not in camel case."""
    return {"read": reader, "name": name}


@dataclass(frozen=True, slots=True)
class PostedTag:
    name: str | None = field(metadata=_wire(_text))
    path: str | None = field(metadata=_wire(_text))
    description: str | None = field(metadata=_wire(_text))
    external_id: str | None = field(metadata=_wire(_text))


@dataclass(frozen=True, slots=True)
class TimeRow:
    """A piece of work. `activity` and `description` are unwrapped, an empty activity is named."""

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
    """Local time, put in by `clock.placed`: the interface has none."""


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
    """Section 2.5 of the interface, without the caller key: a secret that only the receiver looks at."""

    group_id: str | None = field(metadata=_wire(_text))
    description: str | None = field(metadata=_wire(_description))
    formatted_narrative: str | None = field(metadata=_wire(_description))
    total_duration_secs: int | float | None = field(metadata=_wire(_duration))
    total_duration_hours: int | float | None = field(metadata=_wire(_number))
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
    def tag(self) -> PostedTag | None:
        """The only one, as a rule; of several the first that came: see `shares`."""
        return self.tags[0] if self.tags else None


KINDS: tuple[type[Any], ...] = (Group, TimeRow, PostedTag, PostedActivityType, User)
NAMES: Mapping[type[Any], Mapping[str, str]] = {
    kind: {f.metadata["name"] or to_camel(f.name): f.name for f in fields(kind)} for kind in KINDS
}
"""Attributes by the interface's names."""


_READERS: Mapping[type[Any], Sequence[tuple[str, Callable[[object], Any]]]] = {
    kind: [(wire, f.metadata["read"]) for wire, f in zip(names, fields(kind), strict=True)]
    for kind, names in NAMES.items()
}


def read(kind: type[T], raw: Mapping[Any, object]) -> T:
    """A value of `kind` from JSON; unknown fields are left out."""
    return kind(*[reader(raw.get(wire)) for wire, reader in _READERS[kind]])


def read_group(raw: Mapping[str, object]) -> Group:
    """A group from the service's JSON."""
    return read(Group, raw)


def without_descriptions(group: Group) -> Group:
    """The group as its user wants it seen: of NARRATIVE_ONLY, no row tells what it was about."""
    if group.narrative_type != NARRATIVE_ONLY:
        return group
    rows = tuple(replace(row, activity=None, description=None) for row in group.time_rows)
    return replace(group, time_rows=rows)


def stored(raw: Mapping[str, object]) -> str:
    """The group as JSON for the inbox: all that came, but the caller key and anything deeper than a field may be."""
    kept = {name: value for name, value in raw.items() if name != "callerKey"}
    return clean(orjson.dumps(_cleaned(kept, DEEPEST), default=str, option=orjson.OPT_SORT_KEYS | _LOOSE).decode())


_LOOSE = orjson.OPT_NON_STR_KEYS
DEEPEST = 30
"""Levels of a group that are kept; the interface has three."""


def _cleaned(value: object, levels: int) -> object:
    match value:  # what there is most of comes first
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
    """The content that the user posted, by the interface's names.

    Left out are fields that the service adds or that change without the user: status, submission times, the
    narrative that is made of the rest, and all but the names of tag, user and activity type.
    """
    user = group.user
    return {
        "totalDurationSecs": group.total_duration_secs,
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
    """A hash of the posted content: the same for every offer of it, in whichever order its rows come.

    It is kept in inboxes and receipts: neither the order of fields nor the form of values may change.
    """
    *fields, rows = content(group).values()
    parts = (orjson.dumps(fields), *sorted(orjson.dumps(list(row.values())) for row in rows))
    return sha256_of(b"\n".join(parts))
