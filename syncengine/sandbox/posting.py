"""Post time as a user does: partial groups and the world → whole time groups (docs/interface.md 2.5). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from unicodedata import normalize

from pydantic import Field

from syncengine.sandbox.bodies import (
    DONE,
    ApiError,
    Array,
    Flag,
    Int64,
    Name,
    Object,
    RequestBody,
    RuleAnswer,
    RuleRequest,
    Text,
    read,
)
from syncengine.sandbox.rules import health_message
from syncengine.sandbox.store import POSTED_TIME, TAGS, TYPES, Json, Store

USER: Json = {
    "userId": "user-1",
    "name": "Jane Doe",
    "email": "jane.doe@example.com",
    "externalId": "jd",
    "businessRole": "Associate",
    "experienceWeightingPercent": 100,
}
"""The user who posts by default."""


class _PartialGroup(RequestBody):
    """The fields of a partial group that the sandbox interprets. All other fields are sent as posted.

    A group without a tag gets all tags whose keywords occur in its rows, unless `match_keywords` is false.
    """

    group_id: Text = None
    tag: Text = None
    tags: Array = None
    match_keywords: Flag = None
    time_rows: Array = None
    total_duration_secs: Int64 = None
    tz_offset_mins: Annotated[int | None, Field(gt=-1440, lt=1440, description="from -1439 to 1439")] = None
    submission_time: Int64 = None
    user: Object = None
    activity_type: Annotated[str | Json | None, Field(description="a code or an object")] = None


class _GroupId(RequestBody):
    group_id: Name


LONG_AGO = 10**9
"""The most seconds before now at which a row starts. Rows of tests may be longer than the calendar reaches back."""

DURATION = 3600
"""The duration of a row that is posted without one, in seconds."""


def post(store: Store, request: RuleRequest) -> RuleAnswer:
    """Post a group, or several as `groups`, which share a submission time as if posted in one operation.

    A group that exists is posted again, which offers it to the connector anew, whatever its status.
    """
    groups = request.body.get("groups", [request.body])
    if not isinstance(groups, list):
        raise ApiError(400, "groups must be an array")
    connection = store.connection
    recorded = connection["mechanism"] is not None
    posted = []
    for item in groups:
        group = composed(store, item, request)
        before = store.get(POSTED_TIME, group["groupId"]) or {"offers": [], "told": []}
        _put(store, {**before, "group": group, "recorded": recorded}, request.now if recorded else None)
        posted.append({"groupId": group["groupId"], "recorded": recorded})
    return RuleAnswer(200, {"groups": posted, "healthMessage": health_message(connection)})


def offer(store: Store, request: RuleRequest) -> RuleAnswer:
    """Offer a group now: before it is due, a second time, or although it was posted before a connector registered."""
    id_ = read(_GroupId, request.body).group_id
    posted = store.get(POSTED_TIME, id_)
    if posted is None:
        raise ApiError(404, f"there is no time group {id_}")
    _put(store, {**posted, "recorded": True}, request.now)
    return DONE


def _put(store: Store, posted: Json, due: int | None) -> None:
    """Store a group as posted and not offered since."""
    group = posted["group"]
    anew = {
        "groupId": group["groupId"],
        "submitted": group["submissionTime"],
        "state": "posted",
        "due": due,
        "calls": 0,
    }
    store.put(POSTED_TIME, group["groupId"], {**posted, **anew})


def composed(store: Store, item: Any, request: RuleRequest) -> Json:
    """Return a whole group: missing fields are filled in, and null fields are left out.

    A null inside tags, rows and users stays, since the service sends null for an empty title (docs/service.md §2).
    """
    values, now = read(_PartialGroup, item).values(), _instant(request.now)
    offset = values.get("tzOffsetMins", 0)
    rows = [
        _row(row, offset, request.now)
        for row in values.get("timeRows", [{"durationSecs": values.get("totalDurationSecs", DURATION)}])
    ]
    total = values.get("totalDurationSecs", sum(_seconds(row) for row in rows))
    names = [values["tag"]] if values.get("tag") else []
    if not names and "tags" not in values and values.get("matchKeywords", True):
        names = matching(store.rows(TAGS), rows)
    tags = [_tag(store, tag) for tag in values.get("tags", [{"name": name} for name in names])]
    filled = {
        "groupId": request.new_id(),
        "description": "",
        "formattedNarrative": "",
        "totalDurationSecs": total,
        "totalDurationHours": round(total / 3600, 2),
        "tzOffsetMins": offset,
        "localDate": (now + timedelta(minutes=offset)).date().isoformat(),
        "timestamp": request.now,
        "groupName": "",
        "narrativeType": "NARRATIVE_AND_TIME_ROW_ACTIVITY_DESCRIPTIONS",
        "submissionTime": request.now,
        "durationSplitStrategy": "DIVIDE_BETWEEN_TAGS",
        **item,
        "tags": tags,
        "timeRows": rows,
        "activityType": _activity_type(store, values, tags),
        "user": {**USER, **values.get("user", {})},
    }
    # Left out is what is not posted content: the sandbox's own fields, and those that are set when the group is sent.
    own = {"tag", "matchKeywords", "status", "callerKey"}
    left_out = {name for name, value in item.items() if value is None} | own
    return {name: value for name, value in filled.items() if value is not None and name not in left_out}


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
    return seconds if isinstance(seconds, int) and abs(seconds) < 2**63 else 0


def _tag(store: Store, item: Any) -> Json:
    """Return a posted tag with the stored path, description and external id added (docs/interface.md 2.1)."""
    if not isinstance(item, dict):
        raise ApiError(400, "tags must be an array of objects")
    tag = store.get(TAGS, str(item.get("name")))
    fields = {name: tag[name] for name in ("path", "description", "externalId") if name in tag} if tag else {}
    return {**fields, **item}


def _activity_type(store: Store, values: Json, tags: list[Json]) -> Json | None:
    """Return the chosen activity type, otherwise the default of the first tag (docs/interface.md 2.1)."""
    chosen = values.get("activityType")
    if chosen is None:
        tag = store.get(TAGS, str(tags[0].get("name"))) if tags else None
        chosen = tag.get("defaultActivityTypeCode") if tag else None
    if not isinstance(chosen, str):
        return chosen
    activity_type = store.get(TYPES, chosen)
    return {"code": chosen, "label": activity_type["label"]} if activity_type else {"code": chosen}


def _instant(now: int) -> datetime:
    return datetime.fromtimestamp(now / 1000, UTC)


def matching(tags: Iterable[Json], rows: Iterable[Json]) -> list[str]:
    """Return the sorted names of tags with a keyword in a row's activity or description (docs/interface.md 2.1).

    Where the interface leaves matching open, more is matched rather than less: case is ignored, and a keyword may be
    part of a word, as the lints of manifests assume.
    """
    texts = [_folded(row[name]) for row in rows for name in ("activity", "description") if isinstance(row[name], str)]
    words = {tag["name"]: list(filter(None, map(_folded, tag["keywords"]))) for tag in tags}
    return sorted(name for name, words in words.items() if any(word in text for word in words for text in texts))


def _folded(text: str) -> str:
    return normalize("NFC", text).casefold()
