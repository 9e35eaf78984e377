"""Limits and settings that several rules share, and the table of rules."""

from __future__ import annotations

from typing import Any

import pytest

from syncengine.sandbox.rules import RULES
from syncengine.sandbox.store import TEAM
from syncengine.service.operations import BATCH_LIMIT, OPERATIONS

from .conftest import Asking

BATCHES = [operation for operation in OPERATIONS.values() if operation.items]


def choose(service: Asking, **chosen: Any) -> None:
    service.sandbox.store.put(TEAM, "settings", chosen)


def test_each_operation_has_a_rule_and_each_rule_an_operation() -> None:
    assert set(RULES) == set(OPERATIONS)


@pytest.mark.parametrize("operation", BATCHES, ids=lambda operation: operation.id)
def test_a_batch_over_the_limit_is_refused_whole(service: Asking, operation: Any) -> None:
    """docs/service.md §2: at most 2,000 items."""
    item = {"name": "x", "externalId": "x", "code": "x", "label": "x"}
    assert service.ask(operation.id, **{operation.items: [item] * (BATCH_LIMIT + 1)})[0] == 400
    assert service.state()["tags"] == service.state()["categories"] == service.state()["activityTypes"] == []
    service.told(operation.id, **{operation.items: [item] * BATCH_LIMIT})


@pytest.mark.parametrize("operation", BATCHES, ids=lambda operation: operation.id)
@pytest.mark.parametrize("items", [None, {}, "x"])
def test_a_batch_without_a_list_is_refused(service: Asking, operation: Any, items: Any) -> None:
    """A missing list is refused; an empty list is accepted."""
    assert service.ask(operation.id, **{operation.items: items})[0] == 400
    assert service.ask(operation.id, **{operation.items: []})[0] == 200


def test_new_tags_over_the_limit_refuse_the_whole_batch(service: Asking) -> None:
    """docs/service.md §1: 402 for new tags over the tag limit; updates of existing tags still succeed."""
    choose(service, tagLimit=2)
    service.told("upsertTag", name="A")
    assert service.ask("upsertTags", tags=[{"name": "A", "url": "u"}, {"name": "B"}, {"name": "C"}])[0] == 402
    assert [tag["name"] for tag in service.state()["tags"]] == ["A"]
    assert "url" not in service.tag("A")
    service.told("upsertTags", tags=[{"name": "A", "url": "u"}, {"name": "B"}, {"name": "B"}])
    assert service.ask("upsertTag", name="C")[0] == 402
    service.told("upsertTags", tags=[{"name": "A"}, {"name": "B"}])


def test_a_lowered_tag_limit_still_allows_updates(service: Asking) -> None:
    """Only a *new* tag can exceed the limit."""
    service.told("upsertTags", tags=[{"name": "A"}, {"name": "B"}])
    choose(service, tagLimit=1)
    service.told("upsertTags", tags=[{"name": "A", "url": "u"}, {"name": "B", "url": "u"}])
    assert service.ask("upsertTag", name="C")[0] == 402


@pytest.mark.parametrize(
    ("operation", "good", "table"),
    [("upsertTags", {"name": "A"}, "tags"), ("uploadActivityTypes", {"code": "A", "label": "A"}, "activityTypes")],
)
def test_a_service_that_answers_400_for_item_errors_applies_nothing(
    service: Asking, operation: str, good: dict[str, Any], table: str
) -> None:
    """docs/service.md §1: a batch may be answered with 400 and a list of errors. Then the sandbox applies none."""
    choose(service, statusForItemErrors=400)
    status, answer = service.ask(operation, **{table: [good, {}]})
    assert (status, [error["index"] for error in answer["errors"]]) == (400, [1])
    assert service.state()[table] == []
    assert service.ask(operation, **{table: [good]}) == (200, {"errors": []})
