"""The service's rules for webhook calls: the next call, and the meaning of its answer (docs/service.md §2). Pure."""

from __future__ import annotations

from dataclasses import replace

from syncengine.sandbox.mechanisms import WEBHOOK
from syncengine.sandbox.posted_time import FAILURE, RETRIABLE_FAILURE, SUCCESS, acknowledged, as_json, due, offered
from syncengine.sandbox.request import RuleAnswer, RuleRequest
from syncengine.sandbox.world import Draft, Json, SandboxSettings, StatusUpdate

SHOWN_CHARACTERS = 500
"""The maximum number of characters of a webhook's answer that are shown to the user."""


def next_call(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Return the URL, the payload and the offer of the next webhook call, or a null body when no call is due.

    The group counts as offered for longer than a call may last, so that a sandbox that dies during the call repeats it.
    """
    connection, chosen = draft.connection, draft.chosen
    posted = min(due(draft.world, request.now), key=lambda posted: (posted.due, posted.number), default=None)
    if connection.mechanism != WEBHOOK or connection.key_is_lost or posted is None:
        return RuleAnswer(200, None)
    lease = chosen.webhook_timeout_seconds + chosen.retry_seconds + 1
    called = replace(offered(posted, request.now, lease), calls=posted.calls + 1)
    draft.posted_time.put(posted.id, called)
    key: Json = {} if connection.caller_key is None else {"callerKey": connection.caller_key}
    return RuleAnswer(
        200, {"url": connection.callback_url, "payload": {**key, **as_json(posted)}, "offer": len(called.offers)}
    )


def answered(draft: Draft, request: RuleRequest) -> RuleAnswer:
    """Record the outcome of a webhook call; a null `status` means no answer. Ignore a group posted again meanwhile.

    It may have been offered again meanwhile, too: the answer counts if no offer came after the one that it is for.
    """
    id_, status, text = request.body["groupId"], request.body["status"], request.body["text"]
    posted = draft.posted_time.get(id_)
    if posted is not None and posted.state == "offered" and len(posted.offers) == request.body["offer"]:
        update = _meaning(status, text[:SHOWN_CHARACTERS], posted.calls, draft.chosen)
        draft.posted_time.put(id_, acknowledged(posted, replace(update, at=request.now, http=status), draft.chosen))
    return RuleAnswer(200, {})


def _meaning(status: int | None, text: str, calls: int, chosen: SandboxSettings) -> StatusUpdate:
    """Return the status update for an answer: 2xx is success, 4xx except 408 a failure, anything else a retry."""
    if status is not None and 200 <= status < 300:
        return StatusUpdate(0, SUCCESS)
    if status is not None and 400 <= status < 500 and status != 408:
        return StatusUpdate(0, FAILURE, text)
    if calls >= chosen.webhook_calls:
        return StatusUpdate(0, FAILURE, f"gave up after call {calls}: {text}")
    return StatusUpdate(0, RETRIABLE_FAILURE, text)
