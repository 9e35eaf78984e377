"""Define the method, path and limits of each operation (docs/interface.md 4, docs/service.md §1). Data only."""

from __future__ import annotations

from dataclasses import dataclass

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
