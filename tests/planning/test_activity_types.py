"""docs/planning.md 2.2 and 3: activity types, and the sweep that removes them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncengine.plan.calls import Step
from syncengine.plan.request import Scope
from syncengine.project.model import Ownership
from syncengine.resource import Key, Kind, Recorded, Status

from .applying import applied, walked
from .estate import (
    How,
    actions,
    addresses,
    calls,
    change_of,
    field_of,
    gone,
    items,
    notes,
    planned,
    refused,
    row,
    says_nothing,
    sent,
    steps,
)

A101 = Key(Kind.ACTIVITY_TYPE, "A101")
TYPE = "activityTypes: [{code: A101, label: Plan}]\n"
OFFERED = "activityTypes: [{code: A101, label: Plan, enableIfNew: true}]\n"
RECORDED = row("activity-type/A101", label="Plan")


def test_an_activity_type_that_is_not_recorded_is_created() -> None:
    plan = planned(OFFERED)
    assert (actions(plan), steps(plan), plan.sweep) == ({"activity-type/A101": "create"}, ["activity types"], None)
    assert [call.operation for call in calls(plan, Step.ACTIVITY_TYPES)] == ["uploadActivityTypes"]


def test_a_new_activity_type_that_is_not_offered_is_noted() -> None:
    assert notes(planned(TYPE)) == [("activity-type/A101", "not-enabled")]
    assert notes(planned(OFFERED)) == []


def test_a_revived_activity_type_has_no_note_about_its_offer() -> None:
    revived = "activityTypes: [{code: A101, label: Plan, reenableIfArchived: true}]"
    plan = planned(revived, [replace(RECORDED, status=Status.DELETED)])
    assert (actions(plan), notes(plan)) == ({"activity-type/A101": "create"}, [])
    assert notes(planned(revived)) == [("activity-type/A101", "not-enabled")]


def test_the_note_of_an_unoffered_type_is_not_repeated() -> None:
    """The next apply records it, so the note is not repeated (docs/planning.md 2.5)."""
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
def test_description_and_flags_are_updated(recorded: dict[str, str | bool], declared: str) -> None:
    plan = planned(
        f"activityTypes: [{{code: A101, label: Plan, {declared}}}]",
        [row("activity-type/A101", label="Plan", **recorded)],
    )
    assert actions(plan) == {"activity-type/A101": "update"}


def test_a_description_that_is_gone_is_cleared() -> None:
    plan = planned(TYPE, [row("activity-type/A101", label="Plan", description="Old")])
    assert sent(plan, Step.ACTIVITY_TYPES, "activity-type/A101").cleared == ("description",)


CREATE_ONLY = {
    "label": ("activityTypes: [{code: A101, label: New}]", {"label": "Plan"}),
    "enableIfNew": (OFFERED, {"label": "Plan", "enableIfNew": False}),
    "enableIfNew, gone": (TYPE, {"label": "Plan", "enableIfNew": True}),
}


@pytest.mark.parametrize(("declared", "recorded"), CREATE_ONLY.values(), ids=CREATE_ONLY)
def test_a_field_that_counts_only_on_creation_is_noted_and_recorded(
    declared: str, recorded: dict[str, str | bool]
) -> None:
    """A changed `label` or `enableIfNew` of an existing activity type is noted once and sends nothing."""
    rows = {A101: row("activity-type/A101", **recorded)}
    plan = planned(declared, rows)
    assert (notes(plan), plan.changes_something, plan.sends_something) == (
        [("activity-type/A101", "create-only")],
        False,
        False,
    )
    assert says_nothing(planned(declared, applied(rows, plan)))


def test_a_change_shows_differences_that_count_only_on_creation() -> None:
    plan = planned("activityTypes: [{code: A101, label: New, description: New}]", [RECORDED])
    assert field_of(plan, "activity-type/A101", "label").effect == "create-only"
    assert field_of(plan, "activity-type/A101", "description").effect == "applies"


def test_a_flag_with_its_default_value_is_only_recorded() -> None:
    declared = "activityTypes: [{code: A101, label: Plan, enableIfNew: false, reenableIfArchived: false}]"
    plan = planned(declared, [RECORDED])
    assert (plan.changes, plan.notes, plan.sends_something) == ((), (), False)
    assert says_nothing(planned(declared, applied({A101: RECORDED}, plan)))


# --- deleted ones


@pytest.mark.parametrize("doubtful", [False, True])
def test_a_deleted_activity_type_comes_back_only_with_its_flag(doubtful: bool) -> None:
    """Without `reenableIfArchived: true` a declared activity type that was deleted is an error."""
    recorded = [gone("activity-type/A101", doubtful=doubtful)]
    assert refused(OFFERED, recorded) == {"deleted-activity-type": "activity-type/A101"}
    revived = "activityTypes: [{code: A101, label: Plan, reenableIfArchived: true}]"
    assert list(actions(planned(revived, recorded))) == ["activity-type/A101"]


def test_an_explicit_false_does_not_bring_a_deleted_activity_type_back() -> None:
    declared = "activityTypes: [{code: A101, label: Plan, reenableIfArchived: false}]"
    assert refused(declared, [gone("activity-type/A101")]) == {"deleted-activity-type": "activity-type/A101"}


def test_a_revived_activity_type_loses_fields_that_are_no_longer_declared() -> None:
    """A deleted activity type is archived with its fields, so fields that are no longer declared are cleared."""
    archived = replace(row("activity-type/A101", label="Plan", description="Old"), status=Status.DELETED)
    revived = "activityTypes: [{code: A101, label: Plan, reenableIfArchived: true}]"
    assert sent(planned(revived, [archived]), Step.ACTIVITY_TYPES, "activity-type/A101").cleared == ("description",)


# --- the sweep


def test_removing_a_recorded_code_sweeps() -> None:
    """With `activityTypes: owned` a sweep uploads all types that stay and deletes the code on completion."""
    recorded = [RECORDED, row("activity-type/A102", label="Draft")]
    plan = planned(TYPE, recorded)
    assert actions(plan) == {"activity-type/A102": "delete"}
    assert plan.sweep is not None
    assert (plan.sweep.known, plan.sweep.requests, plan.summary.requests) == (("A102",), 3, 3)
    assert [str(item.key) for call in plan.sweep.uploads for item in call.items] == ["activity-type/A101"]
    (removal,) = plan.sweep.complete.items[0].effects
    assert (str(removal.key), removal.status) == ("activity-type/A102", "deleted")
    assert plan.sweep.complete.operation == "completeSyncSession"


def test_other_changes_are_uploaded_outside_the_session_too() -> None:
    """A cancelled session changes nothing, since everything else was uploaded before it (docs/planning.md 3.2)."""
    plan = planned("activityTypes: [{code: A103, label: New}]", [row("activity-type/A102", label="Draft")])
    assert [str(item.key) for item in items(plan, Step.ACTIVITY_TYPES)] == ["activity-type/A103"]
    assert plan.sweep is not None
    assert [str(item.key) for call in plan.sweep.uploads for item in call.items] == ["activity-type/A103"]


def test_a_sweep_stands_between_tags_and_category_deletes() -> None:
    recorded = [row("activity-type/A102"), row("category/acme"), row("tag/T", defaultActivityTypeCode="A102")]
    plan = planned("tags: [{name: T}]", recorded)
    assert steps(plan) == ["tags", "category deletes"]
    assert plan.sweep is not None
    assert [call.id for call in plan.calls()] == ["c1", "c2", "c3"]
    assert plan.sweep.complete.id == "c3"


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
    """`plan --sweep` plans a sweep without a known removal, and counts as a change."""
    plan = planned(TYPE, [RECORDED], sweep=True, activity_types=ownership)
    assert plan.sweep is not None
    assert (plan.changes, plan.sweep.known, plan.sweep.complete.items) == ((), (), ())
    assert plan.changes_something


def test_additive_removals_are_notes() -> None:
    """The activity type stays on the service, is noted once, and is recorded as released."""
    rows = {A101: RECORDED}
    plan = planned("{}", rows, activity_types=Ownership.ADDITIVE)
    after = applied(rows, plan)
    assert (notes(plan), plan.changes_something) == ([("activity-type/A101", "kept")], False)
    assert after[A101].status is Status.RELEASED
    assert says_nothing(planned("{}", after, activity_types=Ownership.ADDITIVE))


def test_a_requested_sweep_keeps_what_an_additive_policy_keeps() -> None:
    rows = {A101: row("activity-type/A101", label="Plan", status=Status.RELEASED)}
    plan = planned("{}", rows, activity_types=Ownership.ADDITIVE, sweep=True)
    assert plan.sweep is not None
    (held,) = [item.effects[0] for call in plan.sweep.uploads for item in call.items]
    assert (held.key, held.fields) == (A101, {"label": "Plan"})
    assert applied(rows, plan)[A101] == rows[A101]


def test_a_protected_activity_type_is_kept_and_survives_sweeps() -> None:
    """Every sweep uploads the protected type, which it would delete otherwise."""
    protected = row("activity-type/A101", label="Plan", protect=True)
    plan = planned("{}", [protected, row("activity-type/A102")])
    assert (notes(plan), actions(plan)) == ([("activity-type/A101", "kept")], {"activity-type/A102": "delete"})
    assert plan.sweep is not None
    assert [str(item.key) for call in plan.sweep.uploads for item in call.items] == ["activity-type/A101"]


def test_a_desired_tag_with_a_code_that_is_deleted_is_an_error() -> None:
    declared = "tags: [{name: T, defaultActivityTypeCode: A101}]"
    assert refused(declared, [RECORDED]) == {"activity-type-removed": "tag/T"}
    assert refused(declared, [RECORDED], activity_types=Ownership.ADDITIVE) == {}


CARRIERS = {
    "carries the code": (row("tag/T", defaultActivityTypeCode="A101"), ["tag/T"]),
    "may carry it": (row("tag/T", doubtful=True), ["tag/T"]),
    "carries another": (row("tag/T", defaultActivityTypeCode="A999"), []),
}


@pytest.mark.parametrize(("recorded", "needs"), CARRIERS.values(), ids=CARRIERS)
def test_a_sweep_waits_for_tags_that_may_have_a_deleted_code(recorded: Recorded, needs: list[str]) -> None:
    plan = planned("tags: [{name: T}]", [RECORDED, recorded])
    assert plan.sweep is not None
    assert addresses(plan.sweep.needs) == needs


def test_a_sweep_with_an_unknown_outcome_is_planned_again() -> None:
    plan = planned("{}", [gone("activity-type/A101", doubtful=True)])
    assert plan.sweep is not None
    assert (actions(plan), plan.sweep.known) == ({"activity-type/A101": "delete"}, ("A101",))


@pytest.mark.parametrize(
    "scope", [Scope(targets=("*",)), Scope(paths=(".",)), Scope(excludes=("tag/X",)), Scope(no_delete=True)]
)
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_selection_never_sweeps(scope: Scope, by_hand: bool) -> None:
    """Not for a removed code, not with `--sweep`, not with `exact` (docs/planning.md 2.1)."""
    how = How(scope=scope, sweep=by_hand, activity_types=Ownership.EXACT)
    plan = planned("activityTypes: [{code: A102, label: New}]", [RECORDED], scope=how.scope, sweep=how.sweep)
    assert plan.sweep is None
    assert actions(plan) == {"activity-type/A102": "create"}


def test_a_removal_without_sweep_stays_recorded() -> None:
    rows = applied({A101: RECORDED}, planned("{}", [RECORDED], scope=Scope(targets=("*",))))
    assert actions(planned("{}", rows)) == {"activity-type/A101": "delete"}


def test_uploads_of_a_sweep_are_full_batches() -> None:
    declared = "activityTypes:\n" + "".join(f"  - {{code: '{n}', label: L, enableIfNew: true}}\n" for n in range(2001))
    plan = planned(declared, sweep=True)
    assert plan.sweep is not None
    assert [len(call.items) for call in plan.sweep.uploads] == [2000, 1]
    assert (plan.sweep.requests, plan.summary.requests) == (4, 6)


def test_a_deleted_activity_type_names_its_last_place() -> None:
    change = change_of(planned("{}", [RECORDED]), "activity-type/A101")
    assert (change.source, change.reason) == (RECORDED.source, "no manifest declares it")


def test_a_sweep_waits_for_no_category_and_no_type() -> None:
    """However doubtful, neither carries a code that it deletes."""
    rows = [replace(RECORDED, doubtful=True), row("category/c", doubtful=True), row("activity-type/A9", label="L")]
    sweep = planned(OFFERED + "tagCategories: [{externalId: c}]", rows).sweep
    assert sweep is not None
    assert (sweep.known, sweep.needs) == (("A9",), ())
