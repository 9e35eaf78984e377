"""A posted time group as a frozen value, read from the service's JSON. Pure.

Fields that are missing or invalid are `None`, so that no group is lost because of them. Attributes have the interface's
names, which are those in templates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from syncengine.content import sha256_of, value_changes
from syncengine.document.json_text import canonical_json, decode_json, encode_json
from syncengine.state.inbox_model import Event, EventKind, InboxEntry

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


def _objects(value: object) -> Sequence[object]:
    """Return the objects in a list. What is none is left out."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else ()


Text = Annotated[str | None, BeforeValidator(_text)]
Unwrapped = Annotated[str | None, BeforeValidator(lambda sent: None if (t := _text(sent)) is None else unwrapped(t))]
Title = Annotated[str | None, BeforeValidator(lambda sent: unwrapped(_text(sent) or "").strip() or EMPTY_TITLE)]
Number = Annotated[int | float | None, BeforeValidator(_number)]
Integer = Annotated[int | None, BeforeValidator(lambda sent: None if (n := _number(sent)) is None else int(n))]
Seconds = Annotated[
    int | float | None,
    BeforeValidator(lambda sent: None if sent is None else math.nan if (n := _number(sent)) is None else n),
]
"""A duration, in seconds or hours; `nan` if it is invalid, which must not count as missing."""
_OBJECT = BeforeValidator(lambda sent: sent if isinstance(sent, Mapping) else None)


class _Posted(BaseModel):
    """An object of the service, by the interface's names. Unknown fields are ignored; what is invalid is missing."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _of_known_fields(cls, sent: Mapping[object, object]) -> dict[str, object]:
        """Return what is known of an object: other names may be no text that pydantic can read."""
        return {name: sent[name] for name in cls.model_fields if name in sent}


class PostedTag(_Posted):
    name: Text = None
    path: Text = None
    description: Text = None
    externalId: Text = None


class TimeRow(_Posted):
    """A row of a group. `activity` and `description` are unwrapped; an empty activity is `(no title)`."""

    activity: Title = EMPTY_TITLE
    description: Unwrapped = None
    activityHour: Integer = None
    firstObservedInHour: Integer = None
    durationSecs: Seconds = None
    submittedDate: Integer = None
    modifier: Text = None
    activityTypeCode: Text = None
    source: Text = None
    timezone_name: Text = None
    timezone_offset_min: Integer = None
    start: Annotated[datetime | None, BeforeValidator(lambda _: None)] = None
    """The local start, which `placed` fills in. It is not a field of the interface."""


class PostedActivityType(_Posted):
    code: Text = None
    label: Text = None


class User(_Posted):
    userId: Text = None
    name: Text = None
    email: Text = None
    externalId: Text = None
    businessRole: Text = None
    experienceWeightingPercent: Number = None


class Group(_Posted):
    """A posted time group (docs/interface.md 2.5), without the caller key, which only the receiver may see."""

    groupId: Text = None
    description: Unwrapped = None
    formattedNarrative: Unwrapped = None
    totalDurationSecs: Seconds = None
    totalDurationHours: Seconds = None
    tzOffsetMins: Integer = None
    localDate: Text = None
    timestamp: Integer = None
    groupName: Text = None
    narrativeType: Text = None
    status: Text = None
    submissionTime: Integer = None
    tags: Annotated[tuple[PostedTag, ...], BeforeValidator(_objects)] = ()
    timeRows: Annotated[tuple[TimeRow, ...], BeforeValidator(_objects)] = ()
    activityType: Annotated[PostedActivityType | None, _OBJECT] = None
    user: Annotated[User | None, _OBJECT] = None
    originatingUser: Annotated[User | None, _OBJECT] = None
    durationSplitStrategy: Text = None

    @property
    def posted_seconds(self) -> int | float | None:
        """The total that was posted, in seconds: the hours if there are no seconds, and `nan` if it is unreadable."""
        hours = self.totalDurationHours
        if self.totalDurationSecs is not None or hours is None:
            return self.totalDurationSecs
        return hours if math.isnan(hours) else round(hours * 3600)

    @property
    def tag(self) -> PostedTag | None:
        """The only tag, or the first of several (see `shares`), or `None`."""
        return self.tags[0] if self.tags else None


MODELS: tuple[type[BaseModel], ...] = (Group, TimeRow, PostedTag, PostedActivityType, User)


def read_group(raw: Mapping[str, object]) -> Group:
    """Return the group in a JSON object from the service. It is never refused for one odd field."""
    group = Group.model_validate(raw)
    if group.totalDurationSecs is None:
        return group
    return group.model_copy(update={"totalDurationHours": _number(group.totalDurationHours)})


def without_descriptions(group: Group) -> Group:
    """Return the group without the activities and descriptions of rows, if its narrative type is NARRATIVE_ONLY."""
    if group.narrativeType != NARRATIVE_ONLY:
        return group
    hidden = {"activity": None, "description": None}
    return group.model_copy(update={"timeRows": tuple(row.model_copy(update=hidden) for row in group.timeRows)})


def stored(raw: Mapping[str, object]) -> str:
    """Return the group as JSON for the inbox, without the caller key and values nested deeper than `DEEPEST`."""
    kept = {name: value for name, value in raw.items() if name != "callerKey"}
    return clean(canonical_json(_cleaned(kept, DEEPEST)).decode())


def storable(number: int) -> int | str:
    """Return a whole number, or its digits beyond 64 bits: databases have none so large, other programs round it."""
    return number if -(1 << 63) <= number < 1 << 63 else str(number)


DEEPEST = 30
"""The maximum number of levels of nesting that are stored; the interface has three."""


def _cleaned(value: object, levels: int) -> object:
    match value:  # the most frequent types first
        case str():
            return clean(value)
        case int():
            return storable(value)
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
        "groupName": group.groupName,
        "localDate": group.localDate,
        "narrativeType": group.narrativeType,
        "tags": sorted(tag.name or "" for tag in group.tags),
        "activityType": group.activityType.code if group.activityType else None,
        "user": (user.userId or user.externalId or user.email) if user else None,
        "timeRows": [{name: getattr(row, name) for name in ROW_CONTENT} for row in group.timeRows],
    }


def digest(group: Group) -> str:
    """Return a hash of the posted content, which is independent of the order of rows.

    Inboxes and receipts store it, so neither the order of fields nor the form of values may ever change.
    """
    *fields, rows = content(group).values()
    parts = (encode_json(fields), *sorted(encode_json(list(row.values())) for row in rows))
    return sha256_of(b"\n".join(parts))


# --- the differences between two contents, in the fields that decide whether contents count as different

PAIRED = 30
"""The most rows of which all changed ones are matched in pairs. Of more rows, they may count as removed and added."""


@dataclass(frozen=True, slots=True)
class ContentChange:
    """A changed field, by its path such as `timeRows[0].durationSecs`. `None` where a value, row or tag is missing."""

    field: str
    before: object
    after: object


def changes(before: str, after: str) -> tuple[ContentChange, ...]:
    """Return the differences between two groups given as JSON, whatever the order of their rows and tags."""
    one, other = (
        content(read_group(raw if isinstance(raw := decode_json(body), Mapping) else {})) for body in (before, after)
    )
    rows = max(len(one["timeRows"]), len(other["timeRows"]))
    found = list[ContentChange]()
    for change in value_changes(
        one,
        other,
        ignore_order=True,
        report_repetition=True,
        ignore_nan_inequality=True,
        # With 1, pairs are always sought, which costs the square of the rows; with 0.7 not where little is in common.
        cutoff_intersection_for_pairs=1 if rows <= PAIRED else 0.7,
        cutoff_distance_for_pairs=0.6,  # rows that differ in more than that are no pair: one went, and one came
    ):
        first, *rest = change.path
        field = str(first) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
        values = (v if isinstance(v, str | int | float | dict) else None for v in (change.before, change.after))
        found.append(ContentChange(field, *values))
    return tuple(sorted(found, key=lambda change: change.field))


def last_changes(entry: InboxEntry, story: Sequence[Event]) -> tuple[ContentChange, ...]:
    """Return the changes of the last offer, which a conflict is about. Empty when the content is the same."""
    last = max((place for place, event in enumerate(story) if event.kind is EventKind.OFFERED), default=0)
    return changes_of(entry, story).get(last, ())


def changes_of(entry: InboxEntry, story: Sequence[Event]) -> dict[int, tuple[ContentChange, ...]]:
    """Return the changes of each offer with different content, by its index in `story`.

    The first content of a revised group is not kept, so the offer that replaced it shows no changes.
    """
    contents = {1: entry.body} if entry.revision == 1 else {}
    offered, found = None, dict[int, tuple[ContentChange, ...]]()
    for place, event in enumerate(story):
        if event.kind is EventKind.OFFERED:
            offered, before = event.detail, contents.get(event.revision)
            if offered and before:
                found[place] = changes(before, offered)
        elif event.kind is EventKind.REVISED:
            contents[event.revision] = offered
    return found


# --- the local start of rows: a row's zone is its `timezone_name`, else its offset, else the group's offset, else UTC;
# a configured zone overrides all of them

_MAX_OFFSET = 18 * 60
"""The most minutes of an offset that a time zone of the machine can have."""


def named_zone(name: str | None) -> tzinfo | None:
    """Return the time zone with this IANA name, or `None` when it is missing or unknown, as `user` in a project is."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, KeyError):  # KeyError: ZoneInfoNotFoundError
        return None


def offset_zone(minutes: int | None) -> tzinfo | None:
    """Return the zone at an offset in minutes (positive east of Greenwich), or `None` when it is missing or invalid."""
    if minutes is None or abs(minutes) > _MAX_OFFSET:
        return None
    return timezone(timedelta(minutes=minutes))


def zone_of(row: TimeRow | None, group: Group, zone: tzinfo | None) -> tzinfo:
    """Return the time zone of a row: the configured `zone`, its own, its group's, or UTC."""
    own = (named_zone(row.timezone_name) or offset_zone(row.timezone_offset_min)) if row else None
    return zone or own or offset_zone(group.tzOffsetMins) or UTC


def row_start(row: TimeRow, group: Group, zone: tzinfo | None) -> datetime | None:
    """Return the local time at which the row was first observed, or `None` when it is missing or invalid."""
    hour = row.activityHour
    if hour is None:
        return None
    minutes = row.firstObservedInHour or 0
    (year, month), (day, hour) = divmod(hour // 10_000, 100), divmod(hour % 10_000, 100)  # YYYYMMDDHH
    try:
        begin = datetime(year, month, day, hour, tzinfo=UTC)
        return (begin + timedelta(minutes=max(0, min(59, minutes)))).astimezone(zone_of(row, group, zone))
    except (ValueError, OverflowError):
        return None


def group_start(group: Group, zone: tzinfo | None = None) -> datetime | None:
    """Return the earliest start of the group's rows, else the beginning of its local date, else `None`."""
    starts = [row.start for row in group.timeRows if row.start is not None]
    if starts:
        return min(starts)
    try:
        day = datetime.strptime(group.localDate or "", "%Y-%m-%d")  # noqa: DTZ007 -- the zone is the next line's
    except ValueError:
        return None
    return day.replace(tzinfo=zone_of(None, group, zone))


def placed(group: Group, zone: tzinfo | None = None) -> Group:
    """Return the group with the local start of each row filled in."""
    rows = (row.model_copy(update={"start": row_start(row, group, zone)}) for row in group.timeRows)
    return group.model_copy(update={"timeRows": tuple(rows)})
