"""The service's rules by operation id, and the function that applies a rule to a world. Pure."""

from __future__ import annotations

from collections.abc import Callable

from syncengine.sandbox import activity_types, categories, connector, mechanisms, posted_time, tags
from syncengine.sandbox.request import ApiError, RuleAnswer, RuleRequest
from syncengine.sandbox.world import Changes, Draft, World

Rule = Callable[[Draft, RuleRequest], RuleAnswer]


def _team_info(draft: Draft, _request: RuleRequest) -> RuleAnswer:
    return RuleAnswer(200, {"teamName": draft.chosen.team_name})


RULES: dict[str, Rule] = {
    "teamInfo": _team_info,
    "upsertTag": tags.upsert_tag,
    "upsertTags": tags.upsert_tags,
    "deleteTagMetadata": tags.delete_metadata,
    "addKeywords": tags.add_keywords,
    "deleteKeyword": tags.delete_keyword,
    "deleteTag": tags.delete_tag,
    "upsertTagCategories": categories.upsert_categories,
    "deleteTagCategory": categories.delete_category,
    "startSyncSession": activity_types.start,
    "completeSyncSession": activity_types.complete,
    "cancelSyncSession": activity_types.cancel,
    "uploadActivityTypes": activity_types.upload,
    "fetchPostedTime": posted_time.fetch,
    "listPostedTime": posted_time.list_groups,
    "registerFetchClient": mechanisms.register_fetch,
    "unregisterFetchClient": mechanisms.unregister_fetch,
    "updatePostedTimeStatus": posted_time.update_status,
    "registerWebhook": mechanisms.register_webhook,
    "unregisterWebhook": mechanisms.unregister_webhook,
    "registerConnector": connector.register,
    "reportHealthFailure": connector.report,
    "rescindHealthFailure": connector.rescind,
}


def decide(world: World, rule: Rule, request: RuleRequest) -> tuple[RuleAnswer, Changes]:
    """Return a rule's answer and its changes, which are empty for a refusal. `world` itself is not modified."""
    draft = Draft(world)
    try:
        answer = rule(draft, request)
    except ApiError as error:
        answer = error.answer()
    return answer, draft.changes() if answer.status < 400 else {}
