"""Two manifests; applying the second after the first uses every operation that writes."""

from .program import activity_type, category, tag

BEFORE = {
    "tagCategories": [category("gone"), category("stays", description="old"), category("named-before")],
    "activityTypes": [activity_type("A100"), activity_type("A200", description="old"), activity_type("A300")],
    "tags": [
        tag("MOVES-1", category="gone"),
        tag("CASCADES-1", category="gone"),
        tag("MEMBER-1", category="named-before"),
        tag("GAINS-1"),
        tag("LOSES-1", keywords=["some words"], metadata={"Client": "Acme"}),
        tag("BEFORE-1", keywords=["of the matter"]),
        tag("DELETED-1"),
        tag("RETIRED-1"),
        tag("RELEASED-1"),
    ],
}

AFTER = {
    "tagCategories": [
        category("stays", description="new"),
        category("fresh"),
        category("named-after", previously=["named-before"]),
    ],
    "activityTypes": [activity_type("A200", description="new"), activity_type("A300"), activity_type("A400")],
    "tags": [
        tag("MOVES-1", category="fresh"),
        tag("MEMBER-1", category="named-after"),
        tag("GAINS-1", keywords=["more words"]),
        tag("LOSES-1"),
        tag("AFTER-1", keywords=["of the matter"], previously=["BEFORE-1"]),
        tag("CREATED-1", category="fresh", defaultActivityTypeCode="A400"),
    ],
    "removed": [
        {"tag": "DELETED-1", "as": "delete", "reason": "a test"},
        {"tag": "RETIRED-1", "as": "retire", "reason": "a test"},
    ],
}

WRITES = (
    "upsertTagCategories",
    "uploadActivityTypes",
    "upsertTags",
    "addKeywords",
    "deleteKeyword",
    "deleteTagMetadata",
    "deleteTag",
    "startSyncSession",
    "completeSyncSession",
    "deleteTagCategory",
)

DELETES_TAGS = ("endpoints: {deleteTag: {path: /tag/delete}}",)
"""`deleteTag` is not part of the interface, so its endpoint must be configured (docs/planning.md 2.2)."""
