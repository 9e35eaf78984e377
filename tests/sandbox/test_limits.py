"""Limits and choices that the rules share, and the table of rules."""

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
    """Nothing of the interface is missing, nothing is made up."""
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
    """There is nothing to apply, which is not the same as an empty list."""
    assert service.ask(operation.id, **{operation.items: items})[0] == 400
    assert service.ask(operation.id, **{operation.items: []})[0] == 200


def test_new_tags_beyond_the_plan_refuse_the_whole_batch(service: Asking) -> None:
    """docs/service.md §1: 402; updates of what is there still go through."""
    choose(service, tagLimit=2)
    service.told("upsertTag", name="A")
    assert service.ask("upsertTags", tags=[{"name": "A", "url": "u"}, {"name": "B"}, {"name": "C"}])[0] == 402
    assert [tag["name"] for tag in service.state()["tags"]] == ["A"]
    assert "url" not in service.tag("A")
    service.told("upsertTags", tags=[{"name": "A", "url": "u"}, {"name": "B"}, {"name": "B"}])
    assert service.ask("upsertTag", name="C")[0] == 402
    service.told("upsertTags", tags=[{"name": "A"}, {"name": "B"}])


def test_a_plan_that_became_smaller_still_takes_updates(service: Asking) -> None:
    """Only a *new* tag exceeds a limit."""
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
    """docs/service.md §1 has seen 400 with the list of errors; nothing is said of the rest, and so it is lost."""
    choose(service, statusForItemErrors=400)
    status, answer = service.ask(operation, **{table: [good, {}]})
    assert (status, [error["index"] for error in answer["errors"]]) == (400, [1])
    assert service.state()[table] == []
    assert service.ask(operation, **{table: [good]}) == (200, {"errors": []})


def test_team_info_names_the_team(service: Asking) -> None:
    """docs/service.md §1."""
    choose(service, teamName="Patents EU")
    assert service.told("teamInfo") == {"teamName": "Patents EU"}


def test_settings_are_shown_by_the_names_they_are_set_by(service: Asking) -> None:
    """The control API reads and writes the same words."""
    assert service.state()["settings"] == {
        "teamName": "Sandbox",
        "tagLimit": None,
        "batchLimit": 2000,
        "statusForItemErrors": 200,
        "holdSeconds": 60,
        "reofferSeconds": 480,
        "retrySeconds": 60,
        "webhookTimeoutSeconds": 30,
        "webhookCalls": 10,
        "connectorConfiguration": {},
    }
