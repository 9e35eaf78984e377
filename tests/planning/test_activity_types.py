"""docs/planning.md 2.2 and 3: activity types, and the sweep that removes them."""

from typing import Any

import pytest
from msgspec.structs import replace

from syncengine.plan.calls import Step
from syncengine.plan.model import Plan
from syncengine.plan.request import Scope
from syncengine.project.model import Ownership
from syncengine.resource import Key, Kind, Recorded, Status

from .applying import applied, walked
from .estate import actions, addresses, change_of, gone, notes, planned, refused, row, says_nothing, sent, steps

A101 = Key(Kind.ACTIVITY_TYPE, "A101")
TYPE = "activityTypes: [{code: A101, label: Plan}]\n"
OFFERED = "activityTypes: [{code: A101, label: Plan, enableIfNew: true}]\n"
REVIVED = "activityTypes: [{code: A101, label: Plan, reenableIfArchived: true}]"
RECORDED = row("activity-type/A101", label="Plan")


def test_a_new_activity_type_is_created_and_noted_once_if_it_is_not_offered() -> None:
    """One that is revived is offered as it was."""
    plan = planned(OFFERED)
    assert (actions(plan), steps(plan), plan.sweep) == ({"activity-type/A101": "create"}, ["activity types"], None)
    assert ([call.operation for call in plan.calls()], notes(plan)) == (["uploadActivityTypes"], [])
    assert notes(planned(TYPE)) == notes(planned(REVIVED)) == [("activity-type/A101", "not-enabled")]
    plan = planned(REVIVED, [replace(RECORDED, status=Status.DELETED)])
    assert (actions(plan), notes(plan)) == ({"activity-type/A101": "create"}, [])
    assert says_nothing(planned(TYPE, walked(TYPE)))


@pytest.mark.parametrize(
    ("recorded", "declared"),
    [
        ({"description": "Old"}, "description: New"),
        ({}, "description: New"),
        ({}, "reenableIfArchived: true"),
        ({"reenableIfArchived": True}, "reenableIfArchived: false"),
    ],
)
def test_description_and_flags_are_updated(recorded: dict[str, Any], declared: str) -> None:
    before = row("activity-type/A101", label="Plan", **recorded)
    plan = planned(f"activityTypes: [{{code: A101, label: Plan, {declared}}}]", [before])
    assert actions(plan) == {"activity-type/A101": "update"}


@pytest.mark.parametrize(("manifest", "status"), [(TYPE, Status.ACTIVE), (REVIVED, Status.DELETED)])
def test_a_description_that_is_gone_is_cleared(manifest: str, status: Status) -> None:
    """Also of a deleted type that comes back, since the service archives it with its fields."""
    plan = planned(manifest, [row("activity-type/A101", label="Plan", description="Old", status=status)])
    assert sent(plan, Step.ACTIVITY_TYPES, "activity-type/A101").cleared == ("description",)


CREATE_ONLY: dict[str, tuple[str, dict[str, Any], list[tuple[str, str]]]] = {
    "label": ("label: New", {}, [("activity-type/A101", "create-only")]),
    "enableIfNew": ("label: Plan, enableIfNew: true", {"enableIfNew": False}, [("activity-type/A101", "create-only")]),
    "enableIfNew, gone": ("label: Plan", {"enableIfNew": True}, [("activity-type/A101", "create-only")]),
    "both flags as usual": ("label: Plan, enableIfNew: false, reenableIfArchived: false", {}, []),
}


@pytest.mark.parametrize(("declared", "recorded", "noted"), CREATE_ONLY.values(), ids=CREATE_ONLY)
def test_a_field_that_counts_only_on_creation_is_noted_once_and_recorded(
    declared: str, recorded: dict[str, Any], noted: list[tuple[str, str]]
) -> None:
    rows = {A101: row("activity-type/A101", label="Plan", **recorded)}
    manifest = f"activityTypes: [{{code: A101, {declared}}}]"
    plan = planned(manifest, rows)
    assert (notes(plan), plan.changes_something, plan.sends_something) == (noted, False, False)
    assert says_nothing(planned(manifest, applied(rows, plan)))


def test_a_change_shows_differences_that_count_only_on_creation() -> None:
    plan = planned("activityTypes: [{code: A101, label: New, description: New}]", [RECORDED])
    effects = {field.name: field.effect for field in change_of(plan, "activity-type/A101").fields}
    assert effects == {"label": "create-only", "description": "applies"}


@pytest.mark.parametrize("doubtful", [False, True])
def test_a_deleted_activity_type_comes_back_only_with_its_flag(doubtful: bool) -> None:
    recorded = [gone("activity-type/A101", doubtful=doubtful)]
    for manifest in (OFFERED, REVIVED.replace("true", "false")):
        assert refused(manifest, recorded) == {"deleted-activity-type": "activity-type/A101"}
    assert list(actions(planned(REVIVED, recorded))) == ["activity-type/A101"]


# --- the sweep


def uploaded(plan: Plan) -> list[str]:
    """Return the addresses of what the sweep's session uploads, which is what it keeps."""
    assert plan.sweep is not None
    return [str(item.key) for call in plan.sweep.uploads for item in call.items]


def test_removing_a_recorded_code_sweeps_between_tags_and_category_deletes() -> None:
    """The session keeps what is uploaded in it and deletes the code on completion.

    Other changes are uploaded before it too, since a cancelled session changes nothing (docs/planning.md 3.2).
    """
    recorded = [row("activity-type/A102", label="Draft"), row("category/acme")]
    recorded.append(row("tag/T", defaultActivityTypeCode="A102"))
    plan = planned(OFFERED + "tags: [{name: T}]", recorded)
    change = change_of(plan, "activity-type/A102")
    assert (change.action.word, change.source) == ("delete", recorded[0].source)
    assert change.reason == "no manifest declares it"
    assert steps(plan) == ["activity types", "tags", "category deletes"]
    assert plan.sweep is not None
    assert uploaded(plan) == ["activity-type/A101"]
    assert (plan.sweep.known, plan.sweep.requests, plan.summary.requests) == (("A102",), 3, 6)
    assert [call.id for call in plan.calls()] == ["c1", "c2", "c3", "c4", "c5"]
    assert (plan.sweep.complete.id, plan.sweep.complete.operation) == ("c5", "completeSyncSession")
    (removal,) = plan.sweep.complete.items[0].effects
    assert (str(removal.key), removal.status) == ("activity-type/A102", "deleted")


@pytest.mark.parametrize(
    ("ownership", "declared", "sweeps"),
    [
        (Ownership.OWNED, "activityTypes: [{code: A101, label: Plan, description: New}]", False),
        (Ownership.OWNED, "{}", True),
        (Ownership.EXACT, "activityTypes: [{code: A101, label: Plan, description: New}]", True),
        (Ownership.EXACT, TYPE + "tags: [{name: T}]", False),
        (Ownership.EXACT, "activityTypes: [{code: A101, label: New}]", False),
        (Ownership.EXACT, "{}", True),
        (Ownership.ADDITIVE, "activityTypes: [{code: A101, label: Plan, description: New}]", False),
        (Ownership.ADDITIVE, "{}", False),
    ],
)
def test_the_policy_says_when_to_sweep(ownership: Ownership, declared: str, sweeps: bool) -> None:
    """`owned` sweeps after a removal, `exact` after every change of activity types, `additive` never."""
    assert (planned(declared, [RECORDED], activity_types=ownership).sweep is not None) is sweeps


@pytest.mark.parametrize("ownership", Ownership)
def test_a_sweep_can_be_asked_for(ownership: Ownership) -> None:
    plan = planned(TYPE, [RECORDED], sweep=True, activity_types=ownership)
    assert plan.sweep is not None
    assert (plan.changes, plan.sweep.known, plan.sweep.complete.items) == ((), (), ())
    assert plan.changes_something


def test_an_additive_policy_keeps_what_it_notes_once_also_in_a_sweep_by_hand() -> None:
    rows = {A101: RECORDED}
    plan = planned("{}", rows, activity_types=Ownership.ADDITIVE)
    assert (notes(plan), plan.changes_something) == ([("activity-type/A101", "kept")], False)
    after = applied(rows, plan)
    assert after[A101].status is Status.RELEASED
    assert says_nothing(planned("{}", after, activity_types=Ownership.ADDITIVE))
    swept = planned("{}", after, activity_types=Ownership.ADDITIVE, sweep=True)
    assert swept.sweep is not None
    assert swept.sweep.uploads[0].items[0].effects[0].fields == {"label": "Plan"}
    assert (uploaded(swept), applied(after, swept)[A101]) == (["activity-type/A101"], after[A101])


def test_a_protected_activity_type_is_kept_and_survives_sweeps() -> None:
    """Every sweep uploads the protected type, which it would delete otherwise, unless it may be deleted already."""
    protected = row("activity-type/A101", label="Plan", protect=True)
    deleted = gone("activity-type/A103", doubtful=True, protect=True)
    plan = planned("{}", [protected, row("activity-type/A102"), deleted])
    assert notes(plan) == [("activity-type/A101", "kept"), ("activity-type/A103", "kept")]
    assert (actions(plan), uploaded(plan)) == ({"activity-type/A102": "delete"}, ["activity-type/A101"])


def test_a_desired_tag_with_a_code_that_is_deleted_is_an_error() -> None:
    declared = "tags: [{name: T, defaultActivityTypeCode: A101}]"
    assert refused(declared, [RECORDED]) == {"activity-type-removed": "tag/T"}
    assert refused(declared, [RECORDED], activity_types=Ownership.ADDITIVE) == {}


CARRIERS = {
    "a tag that carries the code": (row("tag/T", defaultActivityTypeCode="A101"), ["tag/T"]),
    "a tag that may carry it": (row("tag/T", doubtful=True), ["tag/T"]),
    "a tag that carries another": (row("tag/T", defaultActivityTypeCode="A999"), []),
    "a category": (row("category/c", doubtful=True), []),
    "another type": (row("activity-type/A102", label="L", doubtful=True), []),
}


@pytest.mark.parametrize(("recorded", "needs"), CARRIERS.values(), ids=CARRIERS)
def test_a_sweep_waits_for_tags_that_may_have_a_deleted_code(recorded: Recorded, needs: list[str]) -> None:
    others = "tagCategories: [{externalId: c}]\nactivityTypes: [{code: A102, label: L}]\n"
    plan = planned(others + "tags: [{name: T}]", [RECORDED, recorded])
    assert plan.sweep is not None
    assert (plan.sweep.known, addresses(plan.sweep.needs)) == (("A101",), needs)


def test_a_sweep_with_an_unknown_outcome_is_planned_again() -> None:
    plan = planned("{}", [gone("activity-type/A101", doubtful=True)])
    assert plan.sweep is not None
    assert (actions(plan), plan.sweep.known) == ({"activity-type/A101": "delete"}, ("A101",))


@pytest.mark.parametrize(
    "scope", [Scope(targets=("*",)), Scope(paths=(".",)), Scope(excludes=("tag/X",)), Scope(no_delete=True)]
)
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_selection_never_sweeps(scope: Scope, by_hand: bool) -> None:
    """Not for a removed code, which stays recorded, not with `--sweep`, not with `exact` (docs/planning.md 2.1)."""
    how: dict[str, Any] = {"scope": scope, "sweep": by_hand, "activity_types": Ownership.EXACT}
    plan = planned("activityTypes: [{code: A102, label: New}]", [RECORDED], **how)
    assert (plan.sweep, actions(plan)) == (None, {"activity-type/A102": "create"})
    after = applied({A101: RECORDED}, plan)
    assert actions(planned("{}", after))["activity-type/A101"] == "delete"


def test_uploads_of_a_sweep_are_full_batches() -> None:
    declared = "activityTypes:\n" + "".join(f"  - {{code: '{n}', label: L, enableIfNew: true}}\n" for n in range(2001))
    plan = planned(declared, sweep=True)
    assert plan.sweep is not None
    assert [len(call.items) for call in plan.sweep.uploads] == [2000, 1]
    assert (plan.sweep.requests, plan.summary.requests) == (4, 6)
