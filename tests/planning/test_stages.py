"""docs/planning.md 4.1 and docs/formats.md: stages, batches, request counts, and what a plan sums up."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from syncengine.plan.calls import OPERATION_OF, Step
from syncengine.plan.model import Plan
from syncengine.resource import Key, Kind, Removal, Status
from syncengine.service.operations import BATCH_LIMIT, OPERATIONS

from .applying import walked
from .estate import FILE, actions, calls, notes, planned, row, says_nothing, steps

EVERYTHING = """
tagCategories: [{externalId: new-category}]
activityTypes: [{code: A101, label: Plan, enableIfNew: true}]
tags:
  - {name: NEW-1, category: new-category}
  - {name: SAME-1, keywords: [added]}
  - {name: SAME-2, keywords: [CASE]}
  - {name: SAME-3}
removed: [{tag: GONE-1, as: delete}]
"""
RECORDED = [
    row("category/old-category"),
    row("activity-type/A999"),
    row("tag/SAME-1"),
    row("tag/SAME-2", "case"),
    row("tag/SAME-3", "lost", metadata={"Lost": "x"}),
    row("tag/GONE-1"),
    row("tag/GONE-2", category="old-category"),
]


def everything() -> Plan:
    return planned(EVERYTHING, RECORDED, deletes_tags=True)


def test_stages_stand_in_their_order() -> None:
    assert steps(everything()) == [step.value for step in Step]
    assert everything().sweep is not None


def test_every_stage_has_its_operation() -> None:
    assert OPERATION_OF.keys() == set(Step)
    assert all(OPERATIONS[operation.id] is operation for operation in OPERATION_OF.values())


def test_calls_are_numbered_through_the_plan() -> None:
    ids = [call.id for call in everything().calls()]
    assert ids == [f"c{number}" for number in range(1, len(ids) + 1)]


def test_requests_are_all_calls_and_the_session_around_them() -> None:
    plan = everything()
    assert plan.sweep is not None
    assert plan.summary.requests == sum(len(stage.calls) for stage in plan.stages) + plan.sweep.requests == 9 + 3


def test_the_summary_counts_changes() -> None:
    assert asdict(everything().summary) == {
        "create": 3,
        "update": 3,
        "delete": 4,
        "retire": 0,
        "forget": 0,
        "unchanged": 0,
        "keyword_adds": 2,
        "keyword_deletes": 2,
        "metadata_deletes": 1,
        "cascaded_tags": 1,
        "kept": 0,
        "requests": 12,
    }


def many(section: str, key: str, count: int, rest: str = "") -> str:
    return f"{section}:\n" + "".join(f"  - {{{key}: 'N-{n}'{rest}}}\n" for n in range(count))


BATCHES = {
    "tags": (many("tags", "name", 2 * BATCH_LIMIT + 1), Step.TAGS),
    "categories": (many("tagCategories", "externalId", 2 * BATCH_LIMIT + 1), Step.CATEGORIES),
    "activity types": (many("activityTypes", "code", 2 * BATCH_LIMIT + 1, ", label: L"), Step.ACTIVITY_TYPES),
}


@pytest.mark.parametrize(("manifest", "step"), BATCHES.values(), ids=BATCHES)
def test_batches_are_as_full_as_possible(manifest: str, step: Step) -> None:
    plan = planned(manifest)
    assert [len(call.items) for call in calls(plan, step)] == [BATCH_LIMIT, BATCH_LIMIT, 1]
    assert plan.summary.requests == 3


def test_single_calls_hold_one_item() -> None:
    plan = planned("{}", [row(f"tag/N-{n}") for n in range(5)], tag_removal=Removal.RETIRE)
    assert [len(call.items) for call in calls(plan, Step.KEYWORD_DELETES)] == [1] * 5


def test_items_keep_the_order_of_the_manifests() -> None:
    plan = planned("tags: [{name: ZULU}, {name: ALFA}, {name: MIKE}]")
    assert [item.key.name for call in calls(plan, Step.TAGS) for item in call.items] == ["ZULU", "ALFA", "MIKE"]


def test_items_know_where_they_come_from() -> None:
    (call,) = calls(planned("tags:\n  - name: ALFA\n  - name: MIKE\n"), Step.TAGS)
    assert [str(item.source) for item in call.items] == [f"{FILE}:2", f"{FILE}:3"]


def test_a_plan_does_not_depend_on_the_order_of_rows() -> None:
    assert sorted(actions(everything())) == sorted(actions(planned(EVERYTHING, RECORDED[::-1], deletes_tags=True)))
    assert everything().gate == planned(EVERYTHING, RECORDED[::-1], deletes_tags=True).gate


# --- nothing to do


def test_an_empty_project_plans_nothing() -> None:
    assert says_nothing(planned("{}"))


def test_moved_lines_are_recorded_without_a_change() -> None:
    rows = walked("tags: [{name: ALFA}]")
    plan = planned("\n\ntags: [{name: ALFA}]", rows)
    assert (plan.changes, plan.changes_something, plan.sends_something, len(plan.records)) == ((), False, False, 1)
    assert says_nothing(planned("\n\ntags: [{name: ALFA}]", walked("\n\ntags: [{name: ALFA}]", recorded=rows)))


NOTED = {
    "ignored": ("tags: [{name: ALFA}]", row("tag/ALFA", description="d")),
    "create-only": ("activityTypes: [{code: A101, label: New}]", row("activity-type/A101", label="Old")),
    "kept": ("{}", row("tag/ALFA", protect=True)),
}


@pytest.mark.parametrize(("manifest", "recorded"), NOTED.values(), ids=NOTED)
def test_notes_are_no_changes(manifest: str, recorded: object) -> None:
    """With notes alone `plan --detailed-exitcode` exits with 0 (docs/planning.md 2.5)."""
    plan = planned(manifest, [recorded])  # type: ignore[list-item] # as a test calls it
    assert (len(notes(plan)), plan.changes_something, plan.sends_something) == (1, False, False)
    assert len(plan.records) == 1


def test_a_forgotten_tag_is_a_change_without_a_request() -> None:
    plan = planned("{}", [row("tag/ALFA")])
    assert (plan.changes_something, plan.sends_something) == (True, False)


# --- what a plan stands on (docs/planning.md 6)


def test_a_plan_has_digests_of_the_rows_that_it_touches() -> None:
    rows = walked("tags: [{name: SAME}, {name: OLD-1}, {name: LESS, description: d}]")
    plan = planned("tags: [{name: SAME}, {name: NEW-1, previously: [OLD-1]}, {name: LESS}]", rows)
    assert {str(key) for key in plan.prior} == {"tag/NEW-1", "tag/OLD-1", "tag/LESS"}


def test_a_plan_with_a_sweep_has_digests_of_every_activity_type() -> None:
    recorded = [row("activity-type/A101", label="L"), row("activity-type/A102"), row("tag/OTHER")]
    plan = planned("activityTypes: [{code: A101, label: L}]\ntags: [{name: OTHER}]", recorded, sweep=True)
    assert {key for key in plan.prior if key.kind is Kind.ACTIVITY_TYPE} == {before.key for before in recorded[:2]}


def test_a_category_delete_has_digests_of_its_members() -> None:
    recorded = [row("category/acme"), row("tag/GONE", category="acme"), row("tag/MOVED", category="acme")]
    plan = planned("tags: [{name: MOVED}]", recorded)
    assert {before.key for before in recorded} <= plan.prior.keys()


def test_digests_cover_status_and_doubt() -> None:
    key = Key(Kind.TAG, "ALFA")
    plans = [
        planned("tags: [{name: ALFA, url: http://u}]", [row("tag/ALFA", **more)])
        for more in ({}, {"doubtful": True}, {"status": Status.RELEASED}, {"url": "http://v"})
    ]
    assert len({plan.prior[key] for plan in plans}) == len(plans)
