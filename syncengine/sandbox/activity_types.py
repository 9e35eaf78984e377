"""The service's rules for activity types and sync sessions (docs/interface.md 3, docs/service.md §2). Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from syncengine.sandbox.request import FLAG, TEXT, ApiError, RuleAnswer, RuleRequest, each, read_fields, required
from syncengine.sandbox.world import ActivityType, Draft, Json, SyncSession

UPLOAD = {
    "code": TEXT,
    "label": TEXT,
    "description": TEXT,
    "enableIfNew": FLAG,
    "reenableIfArchived": FLAG,
}
SESSION = {"syncSessionId": TEXT}


def start(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Start a sync session. Several sessions may be open at once."""
    session = SyncSession(request.new_id(), request.now)
    draft.sessions.put(session.id, session)
    return RuleAnswer(200, {"syncSessionId": session.id})


def upload(draft: Draft, request: RuleRequest) -> RuleAnswer:
    session_id = read_fields(request.body, SESSION).get("syncSessionId")
    if session_id is not None and not _is_open(draft, session_id):
        raise ApiError(400, "the sync session is unknown or closed")
    return each(draft, request, "activityTypes", _put)


def _put(draft: Draft, item: Any, request: RuleRequest) -> None:
    values = read_fields(item, UPLOAD)
    code, label = required(values, "code"), required(values, "label")
    before = draft.activity_types.get(code)
    after = _updated(before, values) if before else _created(code, label, values)
    draft.activity_types.put(code, replace(after, touched=request.now))


def _created(code: str, label: str, values: Json) -> ActivityType:
    """Create an activity type. Later uploads ignore `label` and `enableIfNew`."""
    return ActivityType(code, label, values.get("description", ""), enabled=values.get("enableIfNew", False))


def _updated(before: ActivityType, values: Json) -> ActivityType:
    """Update an activity type. A deleted type stays deleted unless `reenableIfArchived` is set."""
    after = replace(before, description=values.get("description", before.description))
    if before.deleted and values.get("reenableIfArchived"):
        return replace(after, deleted=False, enabled=True)
    return after


def complete(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Delete every activity type last created or updated before the session's start (docs/interface.md 3).

    Types that were uploaded since then stay, even if the upload did not name the session.
    """
    session = _closing(draft, request)
    for code, activity_type in draft.world.activity_types.items():
        if not activity_type.deleted and activity_type.touched < session.started:
            draft.activity_types.put(code, as_deleted(activity_type))
    return _closed(draft, session, "completed")


def cancel(draft: Draft, request: RuleRequest) -> RuleAnswer:
    return _closed(draft, _closing(draft, request), "cancelled")


def expire(draft: Draft, session_id: str | None) -> None:
    """Expire a sync session, or every open session when `session_id` is `None`."""
    ids = [session_id] if session_id else list(draft.world.sessions)
    for session in map(draft.sessions.get, ids):
        if session and session.state == "open":
            draft.sessions.put(session.id, replace(session, state="expired"))


def delete(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Delete an activity type as a person does in the console. A connector needs a sync session to delete it."""
    code = required(read_fields(request.body, {"code": TEXT}), "code")
    activity_type = draft.activity_types.get(code)
    if activity_type is None or activity_type.deleted:
        raise ApiError(404, f"there is no activity type {code}")
    draft.activity_types.put(code, as_deleted(activity_type))
    return RuleAnswer(200, {})


def as_deleted(activity_type: ActivityType) -> ActivityType:
    return replace(activity_type, deleted=True, enabled=False)


def _is_open(draft: Draft, session_id: str) -> bool:
    session = draft.sessions.get(session_id)
    return session is not None and session.state == "open"


def _closing(draft: Draft, request: RuleRequest) -> SyncSession:
    session = draft.sessions.get(read_fields(request.body, SESSION).get("syncSessionId") or "")
    if session is None or session.state != "open":
        raise ApiError(404, "the sync session is unknown or closed")
    return session


def _closed(draft: Draft, session: SyncSession, state: str) -> RuleAnswer:
    draft.sessions.put(session.id, replace(session, state=state))
    return RuleAnswer(200, {"syncSessionId": session.id})
