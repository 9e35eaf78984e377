"""Post time as a user does: partial groups and the world → whole time groups (docs/interface.md 2.5). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from unicodedata import normalize

from syncengine.sandbox import connector
from syncengine.sandbox.request import (
    ARRAY,
    FLAG,
    INTEGER,
    OBJECT,
    TEXT,
    ApiError,
    FieldType,
    RuleAnswer,
    RuleRequest,
    read_fields,
    required,
)
from syncengine.sandbox.world import Draft, Json, PostedTime, Tag

USER: Json = {
    "userId": "user-1",
    "name": "Jane Doe",
    "email": "jane.doe@example.com",
    "externalId": "jd",
    "businessRole": "Associate",
    "experienceWeightingPercent": 100,
}
"""The user who posts by default."""

_SHAPES = {
    "groupId": TEXT,
    "tag": TEXT,
    "tags": ARRAY,
    "matchKeywords": FLAG,
    "timeRows": ARRAY,
    "totalDurationSecs": INTEGER,
    "tzOffsetMins": FieldType("from -1439 to 1439", lambda value: INTEGER.fits(value) and abs(value) < 24 * 60),
    "submissionTime": INTEGER,
    "user": OBJECT,
    "activityType": FieldType("a code or an object", lambda value: isinstance(value, (str, dict))),
}
"""The fields of a partial group that the sandbox interprets. All other fields are sent as posted.

A group without a tag gets all tags whose keywords occur in its rows, unless `matchKeywords` is false.
"""

LONG_AGO = 10**9
"""The most seconds before now at which a row starts. Rows of tests may be longer than the calendar reaches back."""

DURATION = 3600
"""The duration of a row that is posted without one, in seconds."""


def post(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Post a group, or several as `groups`, which share a submission time as if posted in one operation.

    A group that exists is posted again, which offers it to the connector anew, whatever its status.
    """
    groups = request.body.get("groups", [request.body])
    if not isinstance(groups, list):
        raise ApiError(400, "groups must be an array")
    first = 1 + max((posted.number for posted in draft.world.posted_time.values()), default=0)
    posted = [_posted(draft, item, number, request) for number, item in enumerate(groups, first)]
    return RuleAnswer(
        200,
        {
            "groups": [{"groupId": each.id, "recorded": each.recorded} for each in posted],
            "healthMessage": connector.message(draft.connection.health),
        },
    )


def offer(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Offer a group now: before it is due, a second time, or although it was posted before a connector registered."""
    id_ = required(read_fields(request.body, {"groupId": TEXT}), "groupId")
    posted = draft.posted_time.get(id_)
    if posted is None:
        raise ApiError(404, f"there is no time group {id_}")
    draft.posted_time.put(id_, _anew(posted, request.now))
    return RuleAnswer(200, {})


def _anew(posted: PostedTime, now: int) -> PostedTime:
    return PostedTime(posted.id, posted.number, posted.group, True, due=now, offers=posted.offers, told=posted.told)


def _posted(draft: Draft, item: Any, number: int, request: RuleRequest) -> PostedTime:
    group = composed(draft, item, request)
    before = draft.posted_time.get(group["groupId"])
    recorded = draft.connection.mechanism is not None
    posted = PostedTime(
        group["groupId"],
        before.number if before else number,
        group,
        recorded,
        due=request.now if recorded else None,
        offers=before.offers if before else (),
        told=before.told if before else (),
    )
    draft.posted_time.put(posted.id, posted)
    return posted


def composed(draft: Draft, item: Any, request: RuleRequest) -> Json:
    """Return a whole group: missing fields are filled in, and null fields are left out.

    A null inside tags, rows and users stays, since the service sends null for an empty title (docs/service.md §2).
    """
    values = read_fields(item, _SHAPES)
    offset = values.get("tzOffsetMins", 0)
    rows = [_row(row, offset, request.now) for row in values.get("timeRows", [{"durationSecs": _total(values)}])]
    total = values.get("totalDurationSecs", sum(_seconds(row) for row in rows))
    tags = [_tag(draft, tag) for tag in values.get("tags", [{"name": name} for name in _names(draft, values, rows)])]
    filled = {
        "groupId": request.new_id(),
        "description": "",
        "formattedNarrative": "",
        "totalDurationSecs": total,
        "totalDurationHours": round(total / 3600, 2),
        "tzOffsetMins": offset,
        "localDate": (_instant(request.now) + timedelta(minutes=offset)).date().isoformat(),
        "timestamp": request.now,
        "groupName": "",
        "narrativeType": "NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS",
        "submissionTime": request.now,
        "durationSplitStrategy": "DIVIDE_BETWEEN_TAGS",
        **item,
        "tags": tags,
        "timeRows": rows,
        "activityType": _activity_type(draft, values, tags),
        "user": {**USER, **values.get("user", {})},
    }
    left_out = {name for name, value in item.items() if value is None} | _NOT_SENT
    return {name: value for name, value in filled.items() if value is not None and name not in left_out}


_NOT_SENT = {"tag", "matchKeywords", "status", "callerKey"}
"""Fields that are not part of the posted content: the sandbox's own, and those set when the group is sent."""


def _names(draft: Draft, values: Json, rows: list[Json]) -> list[str]:
    if values.get("tag"):
        return [values["tag"]]
    return matching(draft.world.tags.values(), rows) if values.get("matchKeywords", True) else []


def _total(values: Json) -> int:
    total: int = values.get("totalDurationSecs", DURATION)
    return total


def _row(item: Any, offset: int, now: int) -> Json:
    if not isinstance(item, dict):
        raise ApiError(400, "timeRows must be an array of objects")
    start = _instant(now) - timedelta(seconds=min(abs(_seconds(item) or DURATION), LONG_AGO))
    return {
        "activity": "Microsoft Word",
        "description": "Letter.docx",
        "activityHour": int(start.strftime("%Y%m%d%H")),
        "firstObservedInHour": start.minute,
        "durationSecs": DURATION,
        "submittedDate": int(_instant(now).strftime("%Y%m%d%H%M%S") + f"{now % 1000:03}"),
        "source": "WT_DESKTOP",
        # Several zones share an offset, so only the zone of offset 0 is given.
        **({} if offset else {"timezone_name": "UTC"}),
        "timezone_offset_min": offset,
        **item,
    }


def _seconds(row: Mapping[str, Any]) -> int:
    seconds = row.get("durationSecs")
    return seconds if isinstance(seconds, int) else 0


def _tag(draft: Draft, item: Any) -> Json:
    """Return a posted tag with the stored path, description and external id added (docs/interface.md 2.1)."""
    if not isinstance(item, dict):
        raise ApiError(400, "tags must be an array of objects")
    tag = draft.tags.get(str(item.get("name")))
    fields = (
        {name: tag.fields[name] for name in ("path", "description", "externalId") if name in tag.fields} if tag else {}
    )
    return {**fields, **item}


def _activity_type(draft: Draft, values: Json, tags: list[Json]) -> Json | None:
    """Return the chosen activity type, otherwise the default of the first tag (docs/interface.md 2.1)."""
    chosen = values.get("activityType")
    if chosen is None:
        tag = draft.tags.get(str(tags[0].get("name"))) if tags else None
        chosen = tag.fields.get("defaultActivityTypeCode") if tag else None
    if not isinstance(chosen, str):
        return chosen
    activity_type = draft.activity_types.get(chosen)
    return {"code": chosen, "label": activity_type.label} if activity_type else {"code": chosen}


def _instant(now: int) -> datetime:
    return datetime.fromtimestamp(now / 1000, UTC)


def matching(tags: Iterable[Tag], rows: Iterable[Json]) -> list[str]:
    """Return the sorted names of tags with a keyword in a row's activity or description (docs/interface.md 2.1).

    Where the interface leaves matching open, more is matched rather than less: case is ignored, and a keyword may be
    part of a word, as the lints of manifests assume.
    """
    texts = [_folded(row[name]) for row in rows for name in ("activity", "description") if isinstance(row[name], str)]
    return sorted(tag.name for tag in tags if any(_is_in(word, texts) for word in tag.keywords))


def _is_in(keyword: str, texts: list[str]) -> bool:
    word = _folded(keyword)
    return bool(word) and any(word in text for text in texts)


def _folded(text: str) -> str:
    return normalize("NFC", text).casefold()
