"""The service's rules for posted time: how it is received, offered, acknowledged, listed (docs/interface.md 3, 4)."""

from __future__ import annotations

from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from syncengine.sandbox import bodies
from syncengine.sandbox.bodies import DONE, ApiError, RuleAnswer, RuleRequest, number, read
from syncengine.sandbox.store import POSTED_TIME, Json, Store

FETCHED = 25
"""The maximum number of groups in the answer to a fetch without a limit."""

LISTED, LISTED_AT_MOST = 100, 500

SHOWN_CHARACTERS = 500
"""The maximum number of characters of a webhook's answer that are shown to the user."""

_STATES = {"SUCCESS": "success", "FAILURE": "failed", "RETRIABLE_FAILURE": "retrying"}

# A row of posted time: `group` is the posted content by the interface's names, and `submitted` its submission time.
# `recorded` is whether a fetch client or a webhook was registered at that time. `state` is posted, offered, success,
# failed or retrying. `due` is the time from which the group is offered, or null when it is no longer offered. `offers`
# lists the times of its offers; `calls` counts the webhook calls since it was posted; `told` has its status updates.

_LONGEST_WAITING = "AND link <= ? ORDER BY link, rowid LIMIT ?"

# --- receiving posted time by fetch or by webhook, but not both (docs/interface.md 3)

FETCH, WEBHOOK = "fetch", "webhook"


def _no_webhook(store: Store) -> None:
    """Refuse an operation of a fetch client while a webhook is registered (docs/service.md §1)."""
    if store.connection["mechanism"] == WEBHOOK:
        raise ApiError(409, "the team has a webhook; unregister it before fetching posted time")


def _none_yet(store: Store) -> None:
    if mechanism := store.connection["mechanism"]:
        raise ApiError(409, f"the team already has a {'webhook' if mechanism == WEBHOOK else 'fetch client'}")


def register_fetch(store: Store, _request: RuleRequest) -> RuleAnswer:
    _none_yet(store)
    store.connect(mechanism=FETCH)
    return DONE


def unregister_fetch(store: Store, _request: RuleRequest) -> RuleAnswer:
    _no_webhook(store)
    if store.connection["mechanism"] is None:
        raise ApiError(404, "no fetch client is registered")
    store.connect(mechanism=None)
    return DONE


def register_webhook(store: Store, request: RuleRequest) -> RuleAnswer:
    """Register a webhook. Registering it again restores its key when that is lost."""
    body = read(bodies.Webhook, request.body)
    try:
        parts = urlsplit(body.callback_url)
        is_callable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_callable = False
    if not is_callable:
        raise ApiError(400, "callbackUrl must be an http or https URL")
    if not (store.key_is_lost and store.connection["callbackUrl"] == body.callback_url):
        _none_yet(store)
    store.connect(mechanism=WEBHOOK, callbackUrl=body.callback_url, callerKey=body.caller_key is not None)
    store.caller_key = body.caller_key
    return DONE


def unregister_webhook(store: Store, _request: RuleRequest) -> RuleAnswer:
    if store.connection["mechanism"] != WEBHOOK:
        raise ApiError(404, "no webhook is registered")
    store.connect(mechanism=None, callbackUrl=None, callerKey=False)
    store.caller_key = None
    return DONE


# --- offers to a fetch client (docs/interface.md 4)


def listen(store: Store, request: RuleRequest) -> RuleAnswer:
    """Check a fetch and register its client, which turns recording on, before the fetch waits for posted time."""
    _fetch_limit(request)
    _no_webhook(store)
    if store.connection["mechanism"] is None:
        store.connect(mechanism=FETCH)
    return RuleAnswer(200, [])


def collect(store: Store, request: RuleRequest) -> RuleAnswer:
    """Answer a fetch after its wait, without groups if the fetch client was unregistered meanwhile."""
    limit = _fetch_limit(request)
    if store.connection["mechanism"] != FETCH:
        return RuleAnswer(200, [])
    due = list(store.rows(POSTED_TIME, _LONGEST_WAITING, request.now, limit))
    for posted in due:
        _offer(store, posted, request.now, store.settings["reofferSeconds"])
    return RuleAnswer(200, [_sent(posted) for posted in due])


def fetch(store: Store, request: RuleRequest) -> RuleAnswer:
    """Answer a fetch without waiting for posted time."""
    listen(store, request)
    return collect(store, request)


def _fetch_limit(request: RuleRequest) -> int:
    limit = number(request.query, "limit")
    if limit is not None and limit < 1:
        raise ApiError(400, "limit must be 1 or more")
    return FETCHED if limit is None else min(limit, 2**31)


def list_groups(store: Store, request: RuleRequest) -> RuleAnswer:
    """List groups, newest first, without those that failed for good, which are neither pending nor posted."""
    limit = number(request.query, "limit")
    if limit is not None and not 1 <= limit <= LISTED_AT_MOST:
        raise ApiError(400, f"limit must be from 1 to {LISTED_AT_MOST}")
    before = number(request.query, "submittedBefore")
    earlier = request.now + 1 if before is None else max(-(2**63), min(before, 2**63 - 1))
    newest = store.rows(POSTED_TIME, "AND at < ? ORDER BY at DESC, rowid DESC", earlier)
    listed = (_sent(posted) for posted in newest if posted["state"] != "failed")
    return RuleAnswer(200, list(islice(listed, LISTED if limit is None else limit)))


def update_status(store: Store, request: RuleRequest) -> RuleAnswer:
    body = read(bodies.StatusUpdate, request.body)
    _no_webhook(store)
    posted = store.get(POSTED_TIME, body.time_group_id)
    if posted is None or not posted["recorded"]:
        raise ApiError(404, f"the fetch client has no time group {body.time_group_id}")
    update = _update(request.now, body.status, body.message, body.external_id)
    if posted["state"] == "posted" and posted["offers"] and posted["offers"][-1] < posted["submitted"]:
        # Posted again and not offered since: the answer is about what the group held before.
        store.put(POSTED_TIME, posted["groupId"], {**posted, "told": [*posted["told"], update]})
    else:
        _acknowledge(store, posted, update)
    return DONE


def _offer(store: Store, posted: Json, now: int, seconds: float, **changes: Any) -> None:
    """Store the group as offered at `now`, and due again after `seconds` unless its outcome arrives."""
    offered = {"state": "offered", "due": now + int(seconds * 1000), "offers": [*posted["offers"], now]}
    store.put(POSTED_TIME, posted["groupId"], {**posted, **offered, **changes})


def _update(
    at: int, status: str, message: str | None = None, external_id: str | None = None, http: int | None = None
) -> Json:
    """Return a status update, from a fetch client or from its webhook's answer (HTTP status `http`)."""
    return {"at": at, "status": status, "message": message, "externalId": external_id, "http": http}


def _acknowledge(store: Store, posted: Json, update: Json) -> None:
    """Store a group's outcome. SUCCESS and FAILURE end its offers; RETRIABLE_FAILURE has it retried."""
    is_retried = update["status"] == "RETRIABLE_FAILURE"
    due = update["at"] + int(store.settings["retrySeconds"] * 1000) if is_retried else None
    after = {"state": _STATES[update["status"]], "due": due, "told": [*posted["told"], update]}
    store.put(POSTED_TIME, posted["groupId"], {**posted, **after})


def _sent(posted: Json) -> Json:
    """Return the group as the connector gets it, with status PENDING until it succeeds (docs/interface.md 2.5)."""
    return {**posted["group"], "status": "SUCCESS" if posted["state"] == "success" else "PENDING"}


# --- calls of the webhook (docs/service.md §2)


def next_call(store: Store, request: RuleRequest) -> RuleAnswer:
    """Return the URL, the payload and the offer of the next webhook call, or a null body when no call is due.

    The group counts as offered for longer than a call may last, so that a sandbox that dies during the call repeats it.
    """
    connection, chosen = store.connection, store.settings
    posted = next(store.rows(POSTED_TIME, _LONGEST_WAITING, request.now, 1), None)
    if connection["mechanism"] != WEBHOOK or store.key_is_lost or posted is None:
        return RuleAnswer(200, None)
    lease = chosen["webhookTimeoutSeconds"] + chosen["retrySeconds"] + 1
    _offer(store, posted, request.now, lease, calls=posted["calls"] + 1)
    key: Json = {} if store.caller_key is None else {"callerKey": store.caller_key}
    payload = {**key, **_sent(posted)}
    return RuleAnswer(200, {"url": connection["callbackUrl"], "payload": payload, "offer": len(posted["offers"]) + 1})


def answered(store: Store, request: RuleRequest) -> RuleAnswer:
    """Record the outcome of a webhook call: 2xx is success, 4xx except 408 a failure, anything else a retry.

    A null `status` means no answer. The answer counts only for the offer that was called: a group may have been posted
    or offered again meanwhile.
    """
    status, text = request.body["status"], request.body["text"][:SHOWN_CHARACTERS]
    posted = store.get(POSTED_TIME, request.body["groupId"])
    if posted is None or posted["state"] != "offered" or len(posted["offers"]) != request.body["offer"]:
        return DONE
    if status is not None and 200 <= status < 300:
        update = _update(request.now, "SUCCESS", http=status)
    elif status is not None and 400 <= status < 500 and status != 408:
        update = _update(request.now, "FAILURE", text, http=status)
    elif posted["calls"] >= store.settings["webhookCalls"]:
        update = _update(request.now, "FAILURE", f"gave up after call {posted['calls']}: {text}", http=status)
    else:
        update = _update(request.now, "RETRIABLE_FAILURE", text, http=status)
    _acknowledge(store, posted, update)
    return DONE
