"""The operations of the service: method, path and limits, and the JSON of one planned item. Data and pure functions.

Only declared fields are sent. A field that is no longer declared is sent explicitly empty (docs/planning.md 2.4); a
tag's description and timestamps cannot be cleared and are omitted (docs/interface.md 2, 4; docs/service.md §1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from syncengine.effects import Effect
from syncengine.resource import Kind

BATCH_LIMIT = 2000
"""The maximum number of items in one batch call (docs/service.md §2)."""

LARGEST = 16 * 1024 * 1024
"""The maximum size in bytes of another answer: one for each of 2,000 items, with words."""
LARGEST_LIST = 64 * 1024 * 1024
"""The maximum size in bytes of a list of posted time: 500 groups with all their rows."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `items` is the body's list in batch calls; `largest` is the answer's maximum size in bytes."""

    id: str
    method: str
    path: str
    items: str | None = None
    largest: int = LARGEST

    @property
    def limit(self) -> int:
        """The number of items that one call may carry."""
        return BATCH_LIMIT if self.items else 1


OPERATIONS: dict[str, Operation] = {}
"""All operations by id."""


def _operation(id: str, method: str, path: str, items: str | None = None, largest: int = LARGEST) -> Operation:
    return OPERATIONS.setdefault(id, Operation(id, method, path, items, largest))


TEAM_INFO = _operation("teamInfo", "GET", "/team/info")
UPSERT_TAG = _operation("upsertTag", "POST", "/tag")
UPSERT_TAGS = _operation("upsertTags", "POST", "/tag/batch", items="tags")
DELETE_TAG_METADATA = _operation("deleteTagMetadata", "POST", "/tag/metadata/delete")
ADD_KEYWORDS = _operation("addKeywords", "POST", "/tag/keyword")
DELETE_KEYWORD = _operation("deleteKeyword", "POST", "/tag/keyword/delete")
UPSERT_TAG_CATEGORIES = _operation("upsertTagCategories", "POST", "/tagcategory/batch", items="tagCategories")
DELETE_TAG_CATEGORY = _operation("deleteTagCategory", "POST", "/tagcategory/delete")
START_SYNC_SESSION = _operation("startSyncSession", "POST", "/activitytype/sync/start")
COMPLETE_SYNC_SESSION = _operation("completeSyncSession", "POST", "/activitytype/sync/complete")
CANCEL_SYNC_SESSION = _operation("cancelSyncSession", "POST", "/activitytype/sync/cancel")
UPLOAD_ACTIVITY_TYPES = _operation("uploadActivityTypes", "POST", "/activitytype/batch", items="activityTypes")
FETCH_POSTED_TIME = _operation("fetchPostedTime", "GET", "/postedtime", largest=LARGEST_LIST)
LIST_POSTED_TIME = _operation("listPostedTime", "GET", "/postedtime/list", largest=LARGEST_LIST)
REGISTER_FETCH_CLIENT = _operation("registerFetchClient", "POST", "/postedtime/registerfetchclient")
UNREGISTER_FETCH_CLIENT = _operation("unregisterFetchClient", "POST", "/postedtime/unregisterfetchclient")
UPDATE_POSTED_TIME_STATUS = _operation("updatePostedTimeStatus", "POST", "/postedtime/status")
REGISTER_WEBHOOK = _operation("registerWebhook", "POST", "/postedtime/subscribe")
UNREGISTER_WEBHOOK = _operation("unregisterWebhook", "POST", "/postedtime/unsubscribe")
REGISTER_CONNECTOR = _operation("registerConnector", "POST", "/team/managed/config")
REPORT_HEALTH_FAILURE = _operation("reportHealthFailure", "POST", "/healthcheck/failure/notify")
RESCIND_HEALTH_FAILURE = _operation("rescindHealthFailure", "POST", "/healthcheck/failure/rescind")
DELETE_TAG = _operation("deleteTag", "POST", "/tag/delete")


# --- the JSON of one planned item

JsonObject = dict[str, object]

EMPTY: Mapping[str, object] = {"path": "/", "assigneeExternalIds": [], "keywords": []}
"""Values that mean empty, for fields whose empty value is not the empty text."""

UNCLEARABLE: Mapping[Kind, frozenset[str]] = {
    Kind.TAG: frozenset({"description", "createdTimestamp", "modifiedTimestamp", "closedTimestamp"}),
    Kind.CATEGORY: frozenset(),
    Kind.ACTIVITY_TYPE: frozenset(),
}
"""Fields that the service does not clear when they are sent empty (docs/interface.md 2.1)."""


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def tag_body(effect: Effect, category_id: str | None, *, spell_name: bool) -> JsonObject:
    """Return a tag for `upsertTag` and `upsertTags`. `category_id` is the service's id for the field `category`.

    Its keywords are listed without its name, unless the service would not add that by itself.
    """
    body: JsonObject = {"name": effect.key.name}
    for cleared in effect.cleared:
        if cleared not in UNCLEARABLE[Kind.TAG]:
            body["tagCategoryId" if cleared == "category" else cleared] = EMPTY.get(cleared, "")
    for field, value in effect.fields.items():
        if field == "category":
            body["tagCategoryId"] = category_id if value else ""
        else:
            body[field] = _plain(value)
    if effect.metadata:
        body["metadata"] = dict(effect.metadata)
    has_name = spell_name or effect.fields.get("excludeTagNameKeyword")
    if keywords := [each for each in effect.keywords if has_name or each != effect.key.name]:
        body["additionalKeywords"] = keywords
    return body


def category_body(effect: Effect, server_id: str | None) -> JsonObject:
    """Return a category for `upsertTagCategories`, with its id if the service has assigned one."""
    body: JsonObject = {"id": server_id} if server_id else {}
    body["externalId"] = effect.key.name
    body.update({name: EMPTY.get(name, "") for name in effect.cleared})
    body.update({name: _plain(value) for name, value in effect.fields.items()})
    return body


def activity_type_body(effect: Effect) -> JsonObject:
    """Return an activity type for `uploadActivityTypes`."""
    cleared = {name: "" for name in effect.cleared if name == "description"}
    return {"code": effect.key.name, **cleared, **effect.fields}


def _keyword_add(effect: Effect) -> JsonObject:
    body: JsonObject = {"tagName": effect.key.name, "additionalKeywords": list(effect.keywords)}
    external_id = effect.fields.get("externalId")
    return body | {"externalId": external_id} if external_id else body


def _keyword_delete(effect: Effect) -> JsonObject:
    (keyword,) = effect.keywords_dropped
    return {"tagName": effect.key.name, "keyword": keyword}


SINGLE_BODIES: Mapping[str, Callable[[Effect], JsonObject]] = {
    ADD_KEYWORDS.id: _keyword_add,
    DELETE_KEYWORD.id: _keyword_delete,
    DELETE_TAG_METADATA.id: lambda effect: {"tagName": effect.key.name, "metadataNames": list(effect.metadata_dropped)},
    DELETE_TAG_CATEGORY.id: lambda effect: {"externalId": effect.key.name},
    DELETE_TAG.id: lambda effect: {"name": effect.key.name},
}
"""The body of each operation that sends one item."""
