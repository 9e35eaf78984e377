"""Send calls of one resource each: keyword and metadata deletes, keyword adds, deletions (docs/planning.md 4.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from syncengine.apply.answers import Accepted, RefusedCall, Unclear, judge
from syncengine.apply.report import CallError, Outcome
from syncengine.apply.run import ApplyRun
from syncengine.effects import Effect
from syncengine.plan.calls import Item
from syncengine.resource import Key
from syncengine.service import wire
from syncengine.service.operations import (
    ADD_KEYWORDS,
    DELETE_KEYWORD,
    DELETE_TAG,
    DELETE_TAG_CATEGORY,
    DELETE_TAG_METADATA,
    Operation,
)

SPELLS: Mapping[str, Callable[[Effect], wire.JsonObject]] = {
    ADD_KEYWORDS.id: wire.keyword_add,
    DELETE_KEYWORD.id: wire.keyword_delete,
    DELETE_TAG_METADATA.id: wire.metadata_delete,
    DELETE_TAG_CATEGORY.id: wire.category_delete,
    DELETE_TAG.id: wire.tag_delete,
}


async def deliver(run: ApplyRun, operation: Operation, call: str, item: Item, wholes: Mapping[Key, Item]) -> None:
    """Send one intended item. `wholes` are the upserts of desired tags, for tags that prove to be missing."""
    if reason := run.halted:
        run.failed(call, [item], CallError(reason, operation.id), Outcome.SKIPPED)
        return
    answer = await run.send(operation, call, SPELLS[operation.id](item.effects[0]))
    match judge(operation, 1, answer):
        case RefusedCall(message, 404) if operation.id in run.unproven and operation is not ADD_KEYWORDS:
            run.missing.append((operation, call, item, message))
        case RefusedCall(message, 404):
            _conclude_missing(run, operation, call, item, wholes.get(item.key), message)
        case RefusedCall(message, status):
            await run.stops_for_key(status, message)
            run.failed(call, [item], CallError(message, operation.id, status=status))
        case Unclear(message, status, reached):
            outcome = Outcome.UNKNOWN if reached else Outcome.SKIPPED
            run.failed(call, [item], CallError(message, operation.id, status=status), outcome)
        case Accepted():
            run.answered(operation)
            run.acknowledge(call, [item])
        case verdict:
            raise AssertionError(f"{operation.id} has no item errors: {verdict}")


def conclude_missing(run: ApplyRun, wholes: Mapping[Key, Item]) -> None:
    """Accept the 404s of a path only once it has answered with a 2xx, because a mistyped path always answers 404."""
    missing, run.missing = run.missing, []
    for operation, call, item, message in missing:
        if path := run.unproven.get(operation.id):
            words = (
                f"not counted as deleted: {path} answered 404 and has never answered {operation.id} successfully;"
                f" check `service.endpoints.{operation.id}`"
            )
            run.failed(call, [item], CallError(words, operation.id, status=404))
        else:
            _conclude_missing(run, operation, call, item, wholes.get(item.key), message)


def _conclude_missing(
    run: ApplyRun, operation: Operation, call: str, item: Item, whole: Item | None, message: str
) -> None:
    """Treat a missing tag as deleted; schedule a desired tag whose recorded state proved wrong to be sent whole."""
    if operation is ADD_KEYWORDS:
        error = CallError(message, operation.id, status=404)
        run.journal.fail(call, [item], message) if whole else run.failed(call, [item], error)
    else:
        run.acknowledge(call, [item])
    if operation in (ADD_KEYWORDS, DELETE_KEYWORD, DELETE_TAG_METADATA):
        run.journal.flush()
        run.ledger.doubt([item.key])
        if whole is not None:
            run.repairs[item.key] = whole
