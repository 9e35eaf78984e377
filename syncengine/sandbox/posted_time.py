"""The service's rules for posted time groups: offered, acknowledged, listed (docs/interface.md 3, 4). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from syncengine.sandbox.mechanisms import FETCH, no_webhook, register_fetch_implicitly
from syncengine.sandbox.request import TEXT, Answer, Asked, Refused, Shape, checked, number, required
from syncengine.sandbox.world import Draft, Json, PostedTime, Settings, Told, World

FETCHED = 25
"""Groups in the answer of a fetch without a limit, at most."""

LISTED, LISTED_AT_MOST = 100, 500

SUCCESS, FAILURE, RETRIABLE_FAILURE = "SUCCESS", "FAILURE", "RETRIABLE_FAILURE"

_STATE = {SUCCESS: "success", FAILURE: "failed", RETRIABLE_FAILURE: "retrying"}
_UPDATE: dict[str, Shape] = {
    "timeGroupId": TEXT,
    "status": Shape(f"one of {', '.join(_STATE)}", lambda value: isinstance(value, str) and value in _STATE),
    "message": TEXT,
    "externalId": TEXT,
}


def listen(draft: Draft, asked: Asked) -> Answer:
    """What a fetch does before it waits."""
    _fetch_limit(asked)
    register_fetch_implicitly(draft)
    return Answer(200, [])


def collect(draft: Draft, asked: Asked) -> Answer:
    """What a fetch does when it has waited: none, when the fetch client was unregistered meanwhile."""
    limit = _fetch_limit(asked)
    ready = sorted(due(draft.world, asked.now), key=lambda posted: posted.number)[:limit]
    if draft.connection.mechanism != FETCH:
        return Answer(200, [])
    for posted in ready:
        draft.posted_time.put(posted.id, offered(posted, asked.now, draft.chosen.reoffer_seconds))
    return Answer(200, [shown(posted) for posted in ready])


def fetch(draft: Draft, asked: Asked) -> Answer:
    """A fetch that does not wait."""
    listen(draft, asked)
    return collect(draft, asked)


def _fetch_limit(asked: Asked) -> int:
    limit = number(asked.query, "limit")
    if limit is not None and limit < 1:
        raise Refused(400, "limit must be 1 or more")
    return FETCHED if limit is None else limit


def listed(draft: Draft, asked: Asked) -> Answer:
    """Newest first. Groups that failed for good are neither pending nor posted, and are left out."""
    limit = number(asked.query, "limit")
    if limit is not None and not 1 <= limit <= LISTED_AT_MOST:
        raise Refused(400, f"limit must be from 1 to {LISTED_AT_MOST}")
    before = number(asked.query, "submittedBefore")
    groups = [
        posted
        for posted in draft.world.posted_time.values()
        if posted.state != "failed" and posted.submitted < (asked.now + 1 if before is None else before)
    ]
    groups.sort(key=lambda posted: (posted.submitted, posted.number), reverse=True)
    return Answer(200, [shown(posted) for posted in groups[: LISTED if limit is None else limit]])


def update_status(draft: Draft, asked: Asked) -> Answer:
    given = checked(asked.body, _UPDATE)
    id_, status = required(given, "timeGroupId"), required(given, "status")
    no_webhook(draft)
    posted = draft.posted_time.get(id_)
    if posted is None or not posted.recorded:
        raise Refused(404, f"there is no time group {id_} of this fetch client")
    told = Told(asked.now, status, given.get("message"), given.get("externalId"))
    draft.posted_time.put(id_, acknowledged(posted, told, draft.chosen))
    return Answer(200, {})


def due(world: World, now: int) -> Iterator[PostedTime]:
    """The groups that may be offered now, in no order."""
    return (posted for posted in world.posted_time.values() if posted.due is not None and posted.due <= now)


def next_due(world: World) -> int | None:
    """The instant from which there is, or will be, a group to offer, as far as can be known."""
    return min((posted.due for posted in world.posted_time.values() if posted.due is not None), default=None)


def offered(posted: PostedTime, now: int, seconds: float) -> PostedTime:
    """Offered now, and again after `seconds` unless its outcome is told."""
    return replace(posted, state="offered", due=now + int(seconds * 1000), offers=(*posted.offers, now))


def acknowledged(posted: PostedTime, told: Told, chosen: Settings) -> PostedTime:
    """SUCCESS and FAILURE end the offering; a group that failed for a while is scheduled for retry."""
    again = told.at + int(chosen.retry_seconds * 1000) if told.status == RETRIABLE_FAILURE else None
    return replace(posted, state=_STATE[told.status], due=again, told=(*posted.told, told))


def shown(posted: PostedTime) -> Json:
    """The group as it goes out: its stored status is PENDING until it is a success (docs/interface.md 2.5)."""
    return {**posted.group, "status": "SUCCESS" if posted.state == "success" else "PENDING"}
