"""The service's rules by operation id: a request and the data → an answer and changed data (docs/interface.md).

Each rule runs in a draft of the store, which a refusal rolls back: a rule changes as it goes and raises `ApiError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from syncengine.sandbox import bodies, posted_time
from syncengine.sandbox.bodies import DONE, ApiError, Rule, RuleAnswer, RuleRequest, read
from syncengine.sandbox.store import CATEGORIES, SESSIONS, TAGS, TYPES, Json, Store


def _items(store: Store, request: RuleRequest, name: str) -> list[Any]:
    """Return the items of a batch. Refuse a batch above the limit as a whole."""
    batch, limit = request.body.get(name), store.settings["batchLimit"]
    if not isinstance(batch, list):
        raise ApiError(400, f"{name} must be an array")
    if len(batch) > limit:
        raise ApiError(400, f"{name} has {len(batch)} items; the limit is {limit}")
    return batch


def _each(store: Store, request: RuleRequest, name: str, put: Callable[[Store, Any, RuleRequest], None]) -> RuleAnswer:
    """Put each item of a batch, and answer with the errors of single items (docs/interface.md 7.1).

    An item is refused before it changes anything. A service that answers 400 for item errors (docs/service.md §1)
    applies nothing of the batch.
    """
    refused: dict[int, str] = {}
    for index, item in enumerate(_items(store, request, name)):
        if index in request.failing:
            continue
        try:
            put(store, item, request)
        except ApiError as why:
            refused[index] = why.message
    errors = sorted({**refused, **request.failing}.items())
    body = {"errors": [{"index": index, "errorDescription": words} for index, words in errors]}
    if refused and store.settings["statusForItemErrors"] >= 400:
        raise ApiError(store.settings["statusForItemErrors"], "items are refused", body)
    return RuleAnswer(200, body)


def _team_info(store: Store, _request: RuleRequest) -> RuleAnswer:
    return RuleAnswer(200, {"teamName": store.settings["teamName"]})


# --- tags (docs/interface.md 2.1, docs/service.md §2)

_DEFAULTS: Json = {"path": "/", "visibility": "PUBLIC"}


def _upsert_tag(store: Store, request: RuleRequest) -> RuleAnswer:
    with _within_plan(store):
        _put_tag(store, request.body, request)
    return DONE


def _upsert_tags(store: Store, request: RuleRequest) -> RuleAnswer:
    with _within_plan(store):
        return _each(store, request, "tags", _put_tag)


@contextmanager
def _within_plan(store: Store) -> Iterator[None]:
    """Refuse what the block does when it makes new tags beyond the team's limit."""
    limit = store.settings["tagLimit"]
    before = None if limit is None else store.count(TAGS)
    yield
    if before is not None and store.count(TAGS) > max(before, limit):
        raise ApiError(402, f"the team's plan allows {limit} tags")


def _put_tag(store: Store, item: Any, _request: RuleRequest) -> None:
    """Upsert a tag. An empty value clears a field other than the description, where it is ignored.

    Keywords and metadata are only added. The tag's name is a keyword unless excluded.
    """
    body = read(bodies.TagBody, item)
    if body.tag_category_id and store.get(CATEGORIES, body.tag_category_id) is None:
        raise ApiError(400, f"tagCategoryId: there is no category {body.tag_category_id}")
    before = store.get(TAGS, body.name) or {"keywords": [], "metadata": {}}
    changes = body.values("exclude_tag_name_keyword", "additional_keywords", "metadata")
    if changes.get("description") == "":
        del changes["description"]
    kept = {name: value for name, value in {**before, **changes}.items() if value not in ("", [])}
    keywords = {*before["keywords"], *(body.additional_keywords or ())}
    if not body.exclude_tag_name_keyword:
        keywords.add(body.name)
    metadata = {**before["metadata"], **(body.metadata or {})}
    store.put(TAGS, body.name, {**_DEFAULTS, **kept, "keywords": sorted(keywords), "metadata": metadata})


def _named(store: Store, name: str) -> Json:
    tag = store.get(TAGS, name)
    if tag is None:
        raise ApiError(404, f"there is no tag {name}")
    return tag


def _add_keywords(store: Store, request: RuleRequest) -> RuleAnswer:
    body = read(bodies.NewKeywords, request.body)
    tag = _named(store, body.tag_name)
    store.put(TAGS, body.tag_name, {**tag, "keywords": sorted({*tag["keywords"], *body.additional_keywords})})
    return DONE


def _delete_keyword(store: Store, request: RuleRequest) -> RuleAnswer:
    body = read(bodies.Keyword, request.body)
    tag = _named(store, body.tag_name)
    if body.keyword not in tag["keywords"]:
        raise ApiError(404, f"tag {body.tag_name} has no keyword {body.keyword}")
    tag["keywords"].remove(body.keyword)
    store.put(TAGS, body.tag_name, tag)
    return DONE


def _delete_metadata(store: Store, request: RuleRequest) -> RuleAnswer:
    """Delete metadata of a tag by name. Unknown names are ignored (docs/service.md §1)."""
    body = read(bodies.MetadataNames, request.body)
    tag = _named(store, body.tag_name)
    metadata = {name: value for name, value in tag["metadata"].items() if name not in body.metadata_names}
    store.put(TAGS, body.tag_name, {**tag, "metadata": metadata})
    return DONE


def _delete_tag(store: Store, request: RuleRequest) -> RuleAnswer:
    name = read(bodies.TagName, request.body).name
    _named(store, name)
    store.drop(TAGS, "AND key = ?", name)
    return DONE


# --- tag categories (docs/interface.md 2.2, docs/service.md §1)


def _upsert_categories(store: Store, request: RuleRequest) -> RuleAnswer:
    """Create or update categories, all or none: the first invalid item has the whole batch refused."""
    upserted: list[str] = []
    for index, item in enumerate(_items(store, request, "tagCategories")):
        try:
            upserted.append(_put_category(store, item, request))
        except ApiError as why:
            raise ApiError(400, f"tagCategories[{index}]: {why.message}") from why
    categories = [category for id_ in upserted if (category := store.get(CATEGORIES, id_))]
    for category in categories:  # only after the batch, so that two can swap their externalIds
        if store.count(CATEGORIES, "AND link = ?", category["externalId"]) > 1:
            raise ApiError(400, f"externalId {category['externalId']} belongs to another category")
    return RuleAnswer(200, {"tagCategories": categories})


def _put_category(store: Store, item: Any, request: RuleRequest) -> str:
    """Upsert a category and return its id. It is found by `id` if given, so that an `externalId` renames it."""
    body = read(bodies.CategoryBody, item)
    if body.id:
        before = store.get(CATEGORIES, body.id)
        if before is None:
            raise ApiError(400, f"there is no category with id {body.id}")
    elif (body.external_id or "").strip():
        before = next(store.rows(CATEGORIES, "AND link = ?", body.external_id), None) or {"id": request.new_id()}
    else:
        raise ApiError(400, "externalId is missing")
    changes = body.values("id")
    if not body.external_id:
        changes.pop("externalId", None)
    category = {name: value for name, value in {**before, **changes}.items() if value not in ("", [])}
    store.put(CATEGORIES, category["id"], category)
    return str(category["id"])


def _delete_category(store: Store, request: RuleRequest) -> RuleAnswer:
    """Delete a category and every tag that is still in it (docs/service.md §1)."""
    external_id = read(bodies.CategoryName, request.body).external_id
    category = next(store.rows(CATEGORIES, "AND link = ?", external_id), None)
    if category is None:
        raise ApiError(404, f"there is no category {external_id}")
    store.drop(CATEGORIES, "AND key = ?", category["id"])
    store.drop(TAGS, "AND link = ?", category["id"])
    return DONE


# --- activity types and sync sessions (docs/interface.md 3, docs/service.md §2)


def _start_session(store: Store, request: RuleRequest) -> RuleAnswer:
    """Start a sync session. Several sessions may be open at once."""
    id_ = request.new_id()
    store.put(SESSIONS, id_, {"syncSessionId": id_, "state": "open", "started": request.now})
    return RuleAnswer(200, {"syncSessionId": id_})


def _open_session(store: Store, request: RuleRequest) -> Json | None:
    session = store.get(SESSIONS, read(bodies.SessionId, request.body).sync_session_id or "")
    return session if session and session["state"] == "open" else None


def _upload(store: Store, request: RuleRequest) -> RuleAnswer:
    if request.body.get("syncSessionId") is not None and _open_session(store, request) is None:
        raise ApiError(400, "the sync session is unknown or closed")
    return _each(store, request, "activityTypes", _put_type)


def _put_type(store: Store, item: Any, request: RuleRequest) -> None:
    """Create or update an activity type. Updates ignore `label` and `enableIfNew`.

    A deleted type stays deleted unless `reenableIfArchived` is set.
    """
    body = read(bodies.ActivityTypeBody, item)
    activity_type = store.get(TYPES, body.code) or {
        "code": body.code,
        "label": body.label,
        "description": "",
        "enabled": bool(body.enable_if_new),
        "deleted": False,
    }
    activity_type["touched"] = request.now
    if body.description is not None:
        activity_type["description"] = body.description
    if activity_type["deleted"] and body.reenable_if_archived:
        activity_type |= {"deleted": False, "enabled": True}
    store.put(TYPES, body.code, activity_type)


def _complete(store: Store, request: RuleRequest) -> RuleAnswer:
    """Delete every activity type last created or updated before the session's start (docs/interface.md 3).

    Types that were uploaded since then stay, even if the upload did not name the session.
    """
    session = _closed(store, request, "completed")
    for activity_type in list(store.rows(TYPES, "AND at < ?", session["started"])):
        store.put(TYPES, activity_type["code"], {**activity_type, "deleted": True, "enabled": False})
    return RuleAnswer(200, {"syncSessionId": session["syncSessionId"]})


def _cancel(store: Store, request: RuleRequest) -> RuleAnswer:
    return RuleAnswer(200, {"syncSessionId": _closed(store, request, "cancelled")["syncSessionId"]})


def _closed(store: Store, request: RuleRequest, state: str) -> Json:
    session = _open_session(store, request)
    if session is None:
        raise ApiError(404, "the sync session is unknown or closed")
    store.put(SESSIONS, session["syncSessionId"], {**session, "state": state})
    return session


def expire(store: Store, request: RuleRequest) -> RuleAnswer:
    """Expire the sync session that the body names, or every open one, as the service does in time."""
    chosen = request.body.get("syncSessionId")
    for session in list(store.rows(SESSIONS)):
        if session["state"] == "open" and chosen in (None, session["syncSessionId"]):
            store.put(SESSIONS, session["syncSessionId"], {**session, "state": "expired"})
    return DONE


def delete_type(store: Store, request: RuleRequest) -> RuleAnswer:
    """Delete an activity type as a person does in the console. A connector needs a sync session to delete it."""
    code = request.body["code"]
    activity_type = store.get(TYPES, code)
    if activity_type is None or activity_type["deleted"]:
        raise ApiError(404, f"there is no activity type {code}")
    store.put(TYPES, code, {**activity_type, "deleted": True, "enabled": False})
    return DONE


# --- the connector: registration and reported failures (docs/interface.md 2.6, 2.7)

MESSAGES = {
    "UNKNOWN": "The connected system has a problem. Time cannot be posted to it now.",
    "TARGET_UNREACHABLE": "The connected system cannot be reached. Time cannot be posted to it now.",
    "TARGET_AUTH_FAILURE": "The connector cannot sign in to the connected system.",
    "TARGET_PERMISSIONS_FAILURE": "The connector is not allowed to post time in the connected system.",
    "TARGET_SUBSCRIPTION_FAILURE": "The subscription of the connected system has a problem.",
}
"""The message to users by type of failure, for reports without a message of their own."""

_CREDENTIALS_LAST = timedelta(hours=12)


def health_message(connection: Json) -> str | None:
    """Return the message shown to users who post time, or `None` without a health failure."""
    health = connection["health"]
    return None if health is None else health.get("userErrorMessage") or MESSAGES[health["errorType"]]


def _report(store: Store, request: RuleRequest) -> RuleAnswer:
    """Report a health failure, which stays in effect until it is rescinded or another report replaces it."""
    failure = read(bodies.HealthReport, request.body).values()
    store.connect(health={"errorType": "UNKNOWN", **failure, "reported": request.now})
    return RuleAnswer(204, None)


def _rescind(store: Store, _request: RuleRequest) -> RuleAnswer:
    store.connect(health=None)
    return RuleAnswer(204, None)


def _register(store: Store, request: RuleRequest) -> RuleAnswer:
    """Register a connector. Its new credentials are not kept, since nothing uses them (docs/interface.md 5.4)."""
    service_id = (store.connection["connector"] or {}).get("serviceId") or request.new_id()
    registration = read(bodies.Registration, request.body).values()
    store.connect(connector={"serviceId": service_id, **registration, "registered": request.now})
    expiry = datetime.fromtimestamp(request.now / 1000, UTC) + _CREDENTIALS_LAST
    answer = {
        "serviceId": service_id,
        "serviceKey": f"key-{request.new_id()}",
        "serviceIdExpiry": expiry.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "serviceSessionToken": f"token-{request.new_id()}",
        "groupName": "connectors",
        "regionName": "local",
        "connectorConfiguration": store.settings["connectorConfiguration"],
    }
    return RuleAnswer(200, answer)


RULES: dict[str, Rule] = {
    "teamInfo": _team_info,
    "upsertTag": _upsert_tag,
    "upsertTags": _upsert_tags,
    "deleteTagMetadata": _delete_metadata,
    "addKeywords": _add_keywords,
    "deleteKeyword": _delete_keyword,
    "deleteTag": _delete_tag,
    "upsertTagCategories": _upsert_categories,
    "deleteTagCategory": _delete_category,
    "startSyncSession": _start_session,
    "completeSyncSession": _complete,
    "cancelSyncSession": _cancel,
    "uploadActivityTypes": _upload,
    "fetchPostedTime": posted_time.fetch,
    "listPostedTime": posted_time.list_groups,
    "registerFetchClient": posted_time.register_fetch,
    "unregisterFetchClient": posted_time.unregister_fetch,
    "updatePostedTimeStatus": posted_time.update_status,
    "registerWebhook": posted_time.register_webhook,
    "unregisterWebhook": posted_time.unregister_webhook,
    "registerConnector": _register,
    "reportHealthFailure": _report,
    "rescindHealthFailure": _rescind,
}
"""The rules by operation id."""
