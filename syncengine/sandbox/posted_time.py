"""The service's rules for offering, acknowledging and listing posted time (docs/interface.md 3, 4). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from syncengine.sandbox.mechanisms import FETCH, no_webhook, register_fetch_implicitly
from syncengine.sandbox.request import TEXT, ApiError, FieldType, RuleAnswer, RuleRequest, number, read_fields, required
from syncengine.sandbox.world import Draft, Json, PostedTime, SandboxSettings, StatusUpdate, World

FETCHED = 25
"""The maximum number of groups in the answer to a fetch without a limit."""

LISTED, LISTED_AT_MOST = 100, 500

SUCCESS, FAILURE, RETRIABLE_FAILURE = "SUCCESS", "FAILURE", "RETRIABLE_FAILURE"

_STATE = {SUCCESS: "success", FAILURE: "failed", RETRIABLE_FAILURE: "retrying"}
_UPDATE = {
    "timeGroupId": TEXT,
    "status": FieldType(f"one of {', '.join(_STATE)}", lambda value: isinstance(value, str) and value in _STATE),
    "message": TEXT,
    "externalId": TEXT,
}


def listen(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Check a fetch and register its client, before the fetch waits for posted time."""
    _fetch_limit(request)
    register_fetch_implicitly(draft)
    return RuleAnswer(200, [])


def collect(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Answer a fetch after its wait, without groups if the fetch client was unregistered meanwhile."""
    limit = _fetch_limit(request)
    ready = sorted(due(draft.world, request.now), key=lambda posted: posted.number)[:limit]
    if draft.connection.mechanism != FETCH:
        return RuleAnswer(200, [])
    for posted in ready:
        draft.posted_time.put(posted.id, offered(posted, request.now, draft.chosen.reoffer_seconds))
    return RuleAnswer(200, [as_json(posted) for posted in ready])


def fetch(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Answer a fetch without waiting for posted time."""
    listen(draft, request)
    return collect(draft, request)


def _fetch_limit(request: RuleRequest) -> int:
    limit = number(request.query, "limit")
    if limit is not None and limit < 1:
        raise ApiError(400, "limit must be 1 or more")
    return FETCHED if limit is None else limit


def list_groups(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """List groups, newest first, without those that failed for good, which are neither pending nor posted."""
    limit = number(request.query, "limit")
    if limit is not None and not 1 <= limit <= LISTED_AT_MOST:
        raise ApiError(400, f"limit must be from 1 to {LISTED_AT_MOST}")
    before = number(request.query, "submittedBefore")
    groups = [
        posted
        for posted in draft.world.posted_time.values()
        if posted.state != "failed" and posted.submitted < (request.now + 1 if before is None else before)
    ]
    groups.sort(key=lambda posted: (posted.submitted, posted.number), reverse=True)
    return RuleAnswer(200, [as_json(posted) for posted in groups[: LISTED if limit is None else limit]])


def update_status(draft: Draft, request: RuleRequest) -> RuleAnswer:
    values = read_fields(request.body, _UPDATE)
    id_, status = required(values, "timeGroupId"), required(values, "status")
    no_webhook(draft)
    posted = draft.posted_time.get(id_)
    if posted is None or not posted.recorded:
        raise ApiError(404, f"the fetch client has no time group {id_}")
    update = StatusUpdate(request.now, status, values.get("message"), values.get("externalId"))
    about_older = replace(posted, told=(*posted.told, update))
    draft.posted_time.put(id_, about_older if _awaits(posted) else acknowledged(posted, update, draft.chosen))
    return RuleAnswer(200, {})


def _awaits(posted: PostedTime) -> bool:
    """Return whether a group was posted again and not offered since: an answer is about what it held before."""
    return posted.state == "posted" and bool(posted.offers) and posted.offers[-1] < posted.submitted


def due(world: World, now: int) -> Iterator[PostedTime]:
    """Yield the groups that may be offered at `now` (milliseconds), in no particular order."""
    return (posted for posted in world.posted_time.values() if posted.due is not None and posted.due <= now)


def next_due(world: World) -> int | None:
    """Return the earliest time at which a group may be offered, or `None` when no group is waiting."""
    return min((posted.due for posted in world.posted_time.values() if posted.due is not None), default=None)


def offered(posted: PostedTime, now: int, seconds: float) -> PostedTime:
    """Return the group as offered at `now`, and due again after `seconds` unless its outcome arrives."""
    return replace(posted, state="offered", due=now + int(seconds * 1000), offers=(*posted.offers, now))


def acknowledged(posted: PostedTime, update: StatusUpdate, chosen: SandboxSettings) -> PostedTime:
    """Return the group after a status update. SUCCESS and FAILURE end its offers; RETRIABLE_FAILURE has it retried."""
    again = update.at + int(chosen.retry_seconds * 1000) if update.status == RETRIABLE_FAILURE else None
    return replace(posted, state=_STATE[update.status], due=again, told=(*posted.told, update))


def as_json(posted: PostedTime) -> Json:
    """Return the group as the connector gets it, with status PENDING until it succeeds (docs/interface.md 2.5)."""
    return {**posted.group, "status": "SUCCESS" if posted.state == "success" else "PENDING"}
