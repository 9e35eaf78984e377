"""The table of operations: method, path and limits of each (docs/interface.md 4, docs/service.md §1). Data only."""

from __future__ import annotations

from dataclasses import dataclass

BATCH_LIMIT = 2000
"""Items in one batch call, at most (docs/service.md §2)."""

LARGEST = 16 * 1024 * 1024
LARGEST_LIST = 64 * 1024 * 1024
"""Of posted time: 500 groups with all their rows."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `items` is the body's list for batch calls, `optional` that a project must configure it.

    `largest`: bytes that its answer may have, packed or not.
    """

    id: str
    method: str
    path: str
    items: str | None = None
    optional: bool = False
    largest: int = LARGEST

    @property
    def limit(self) -> int:
        """Items that one call may carry."""
        return BATCH_LIMIT if self.items else 1


TEAM_INFO = Operation("teamInfo", "GET", "/team/info")
UPSERT_TAG = Operation("upsertTag", "POST", "/tag")
UPSERT_TAGS = Operation("upsertTags", "POST", "/tag/batch", items="tags")
DELETE_TAG_METADATA = Operation("deleteTagMetadata", "POST", "/tag/metadata/delete")
ADD_KEYWORDS = Operation("addKeywords", "POST", "/tag/keyword")
DELETE_KEYWORD = Operation("deleteKeyword", "POST", "/tag/keyword/delete")
UPSERT_TAG_CATEGORIES = Operation("upsertTagCategories", "POST", "/tagcategory/batch", items="tagCategories")
DELETE_TAG_CATEGORY = Operation("deleteTagCategory", "POST", "/tagcategory/delete")
START_SYNC_SESSION = Operation("startSyncSession", "POST", "/activitytype/sync/start")
COMPLETE_SYNC_SESSION = Operation("completeSyncSession", "POST", "/activitytype/sync/complete")
CANCEL_SYNC_SESSION = Operation("cancelSyncSession", "POST", "/activitytype/sync/cancel")
UPLOAD_ACTIVITY_TYPES = Operation("uploadActivityTypes", "POST", "/activitytype/batch", items="activityTypes")
FETCH_POSTED_TIME = Operation("fetchPostedTime", "GET", "/postedtime", largest=LARGEST_LIST)
LIST_POSTED_TIME = Operation("listPostedTime", "GET", "/postedtime/list", largest=LARGEST_LIST)
REGISTER_FETCH_CLIENT = Operation("registerFetchClient", "POST", "/postedtime/registerfetchclient")
UNREGISTER_FETCH_CLIENT = Operation("unregisterFetchClient", "POST", "/postedtime/unregisterfetchclient")
UPDATE_POSTED_TIME_STATUS = Operation("updatePostedTimeStatus", "POST", "/postedtime/status")
REGISTER_WEBHOOK = Operation("registerWebhook", "POST", "/postedtime/subscribe")
UNREGISTER_WEBHOOK = Operation("unregisterWebhook", "POST", "/postedtime/unsubscribe")
REGISTER_CONNECTOR = Operation("registerConnector", "POST", "/team/managed/config")
REPORT_HEALTH_FAILURE = Operation("reportHealthFailure", "POST", "/healthcheck/failure/notify")
RESCIND_HEALTH_FAILURE = Operation("rescindHealthFailure", "POST", "/healthcheck/failure/rescind")
DELETE_TAG = Operation("deleteTag", "POST", "/tag/delete", optional=True)

OPERATIONS: dict[str, Operation] = {
    operation.id: operation
    for operation in (
        TEAM_INFO,
        UPSERT_TAG,
        UPSERT_TAGS,
        DELETE_TAG_METADATA,
        ADD_KEYWORDS,
        DELETE_KEYWORD,
        UPSERT_TAG_CATEGORIES,
        DELETE_TAG_CATEGORY,
        START_SYNC_SESSION,
        COMPLETE_SYNC_SESSION,
        CANCEL_SYNC_SESSION,
        UPLOAD_ACTIVITY_TYPES,
        FETCH_POSTED_TIME,
        LIST_POSTED_TIME,
        REGISTER_FETCH_CLIENT,
        UNREGISTER_FETCH_CLIENT,
        UPDATE_POSTED_TIME_STATUS,
        REGISTER_WEBHOOK,
        UNREGISTER_WEBHOOK,
        REGISTER_CONNECTOR,
        REPORT_HEALTH_FAILURE,
        RESCIND_HEALTH_FAILURE,
        DELETE_TAG,
    )
}
