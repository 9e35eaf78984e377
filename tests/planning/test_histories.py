"""What holds of every plan: after each apply of a walk, and after any history of applies, failures and doubt."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncengine.errors import Problems
from syncengine.manifest.desired import Desired
from syncengine.plan.aim import Aim, aim, may_be_held
from syncengine.plan.calls import Step as Stage
from syncengine.plan.diff import Action
from syncengine.plan.losses import losses_of
from syncengine.plan.model import Plan
from syncengine.plan.request import Scope
from syncengine.plan.saved import keys_of, planned_again
from syncengine.resource import Key, Kind, Removal, Resource, Status
from syncengine.state.records import Loss
from tests.support.profiles import tried

from .applying import applied
from .estate import NOTHING, How, Rows, ask, calls, is_as_declared, planned, row, says_nothing
from .strategies import HISTORIES, LAST, Step

WALKS = {
    "a tag's life": """
        tags: [{name: ALFA}] → tag/ALFA active
        tags: [{name: ALFA, description: d, url: http://u, keywords: [k1, k2], metadata: {A: '1', B: '2'}}]
        tags: [{name: ALFA, description: e, keywords: [k2, k3], metadata: {A: '3', C: '4'}}]
        tags: [{name: ALFA}]
        {} → tag/ALFA released
        tags: [{name: ALFA, keywords: [k9]}] → tag/ALFA active
    """,
    "fields come and go": """
        tags: [{name: ALFA, url: http://u, path: /x, externalId: '1', assigneeExternalIds: [jd], visibility: PUBLIC}]
        tags: [{name: ALFA, url: '', path: /, externalId: '', assigneeExternalIds: []}]
        tags: [{name: ALFA}]
        tags: [{name: ALFA, url: '', closedTimestamp: 5, defaultActivityTypeCode: A1}]
        tags: [{name: ALFA, createdTimestamp: 2024-05-01T09:00:00Z}]
        tags: [{name: ALFA, description: ''}]
    """,
    "keywords by spelling": """
        tags: [{name: ALFA, keywords: [Straße, Müller, acme]}]
        tags: [{name: ALFA, keywords: [STRASSE, 'Mu\u0308ller', ACME]}]
        tags: [{name: ALFA, keywords: [ACME, acme]}]
        tags: [{name: ALFA, keywords: [acme], excludeTagNameKeyword: true}]
        tags: [{name: ALFA, keywords: [alfa]}]
        tags: [{name: ALFA}]
    """,
    "a tag renamed again and again": """
        tags: [{name: ALFA, keywords: [k]}]
        tags: [{name: MIKE, keywords: [k], previously: [ALFA]}] → tag/ALFA retired, tag/MIKE active
        tags: [{name: ZULU, keywords: [k], previously: [MIKE, ALFA]}] → tag/MIKE retired, tag/ZULU active
        tags: [{name: ALFA, previously: [ZULU]}] → tag/ALFA active, tag/ZULU retired
    """,
    "two tags become one, and two again": """
        tags: [{name: ALFA}, {name: MIKE}]
        tags: [{name: ZULU, previously: [ALFA, MIKE]}] → tag/ALFA retired, tag/MIKE retired
        tags: [{name: ALFA}, {name: MIKE}] → tag/ALFA active, tag/MIKE active, tag/ZULU released
    """,
    "a category and its members": """
        {tagCategories: [{externalId: acme, label: A, keywords: [k]}], tags: [{name: ALFA, category: acme}]}
        {tagCategories: [{externalId: acme}], tags: [{name: ALFA}, {name: MIKE, category: acme}]}
        {tagCategories: [{externalId: zeta}], tags: [{name: MIKE, category: zeta}]} → category/acme deleted
        tags: [{name: MIKE, tagCategoryId: elsewhere}] → category/zeta deleted
        {tagCategories: [{externalId: acme}], tags: [{name: MIKE, category: acme}]} → category/acme active
        {} → category/acme deleted, tag/MIKE deleted, tag/ALFA released
    """,
    "a category renamed there and back": """
        {tagCategories: [{externalId: x, label: L, description: d}], tags: [{name: ALFA, category: x}]}
        {tagCategories: [{externalId: new, label: L, previously: [x]}], tags: [{name: ALFA, category: new}]}
        {tagCategories: [{externalId: x, previously: [new]}], tags: [{name: ALFA, category: x}]} → category/new deleted
    """,
    "a category renamed over its forgotten members": """
        {tagCategories: [{externalId: old}], tags: [{name: ALFA, category: old}, {name: MIKE, category: old}]}
        {tagCategories: [{externalId: old}], tags: [{name: ALFA, category: old}]} → tag/MIKE released
        tagCategories: [{externalId: new, previously: [old]}] → tag/ALFA released, tag/MIKE released
        {} → category/new deleted, tag/ALFA deleted, tag/MIKE deleted
    """,
    "a renamed member of a category that goes": """
        {tagCategories: [{externalId: acme}], tags: [{name: ALFA, category: acme}]}
        tags: [{name: MIKE, previously: [ALFA]}] → tag/ALFA deleted, tag/MIKE active, category/acme deleted
    """,
    "a kept category": """
        {tagCategories: [{externalId: acme}], tags: [{name: ALFA, category: acme, protect: true}]}
        {} → category/acme released, tag/ALFA released
        {tagCategories: [{externalId: acme}], tags: [{name: ALFA, category: acme, protect: false}]}
        {} → category/acme deleted, tag/ALFA deleted
    """,
    "activity types, owned": """
        activityTypes: [{code: A1, label: L}, {code: A2, label: L, enableIfNew: true, description: d}]
        activityTypes: [{code: A1, label: M, enableIfNew: true}, {code: A2, label: L}]
        activityTypes: [{code: A1, label: M}] → activity-type/A2 deleted
        activityTypes: [{code: A1, label: M}, {code: A2, label: N, reenableIfArchived: true}]
        activityTypes: [{code: A2, label: N, reenableIfArchived: false}] → activity-type/A1 deleted
        {} → activity-type/A2 deleted
    """,
}
"""Manifests that are applied one after another, and statuses of rows after them."""


def assert_as_wanted(desired: Mapping[Key, Resource], rows: Rows) -> None:
    """Every desired resource is recorded as declared and is not in doubt."""
    for key, resource in desired.items():
        row = rows[key]
        assert (row.status, row.doubtful, row.confirmed) == (Status.ACTIVE, False, True)
        assert (row.source, row.protect) == (resource.source, resource.protect)
        assert is_as_declared(row, resource)


@pytest.mark.parametrize("is_in_pieces", [False, True], ids=["as a whole", "in selected pieces"])
@pytest.mark.parametrize("name", WALKS)
def test_after_each_apply_the_next_plan_is_empty(name: str, is_in_pieces: bool) -> None:
    """The rows are as declared, too, and as after an apply of the last manifest alone."""
    pieces = [Scope(targets=("category/*",)), Scope(targets=("tag/*",)), Scope(no_delete=True)] if is_in_pieces else []
    rows: Rows = NOTHING
    for line in WALKS[name].strip().splitlines():
        manifest, _, expected = line.partition(" → ")
        desired = ask(manifest)
        for scope in (*pieces, Scope()):
            rows = applied(rows, planned(desired, rows, scope=scope))
        assert says_nothing(planned(desired, rows))
        assert_as_wanted(desired.resources, rows)
        if not is_in_pieces:
            assert {*filter(None, expected.split(", "))} <= {f"{key} {row.status.value}" for key, row in rows.items()}
    assert_as_wanted(desired.resources, applied(NOTHING, planned(desired)))


# --- random histories


EXPECTED_OBJECTIONS = {"category-removed", "activity-type-removed"}
"""The errors that random manifests may have; any other error would be a mistake of these tests."""

HISTORIES_TRIED = int(os.environ.get("SYNCENGINE_TEST_HISTORIES", "150"))


@dataclass(frozen=True, slots=True)
class Case:
    """A plan over the rows that a history of applies left."""

    rows: Rows
    desired: Desired
    step: Step
    plan: Plan

    @property
    def scope(self) -> Scope:
        return How(**self.step.how).scope

    @property
    def aim(self) -> Aim:
        """Return the aim of the plan, computed by the first step of planning alone."""
        options = How(**self.step.how).options
        return aim(self.rows, self.desired.resources, self.desired.removed, options.rules, options.scope)


def history(steps: Sequence[Step]) -> Rows:
    """Return the rows after all steps, without those whose plan has errors."""
    rows: Rows = {}
    for step in steps:
        try:
            rows = applied(rows, planned(step.manifest, rows, **step.how), step.chance)
        except Problems as problems:
            assert {found.code for found in problems.found if found.severity == "error"} <= EXPECTED_OBJECTIONS
    return rows


def case(steps: Sequence[Step], last: Step, doubts: Sequence[int]) -> Case:
    rows = history(steps)
    doubted = {key: replace(row, doubtful=row.doubtful or n in doubts) for n, (key, row) in enumerate(rows.items())}
    desired = ask(last.manifest)
    try:
        plan = planned(desired, doubted, **last.how)
    except Problems:
        assume(False)
        raise
    return Case(doubted, desired, last, plan)


CASES = st.builds(case, HISTORIES, LAST, st.lists(st.integers(0, 8), max_size=2))


def whole_how(step: Step) -> dict[str, object]:
    """Return the same policies without `--sweep` and `--reassert`, which ask for something in every plan."""
    return {**step.how, "sweep": False, "reassert": False}


def folding_a_plan_gives_its_aim(case: Case) -> None:
    """After an apply, each desired row is as declared and not in doubt, and each leaving row has left."""
    after, aimed = applied(case.rows, case.plan), case.aim
    assert_as_wanted(aimed.desired, after)
    for key, leaving in aimed.leaving.items():
        left = {"forget": Status.RELEASED, "retire": Status.RETIRED}.get(leaving.way.value, Status.DELETED)
        elsewhere = (Status.RELEASED, Status.RETIRED, case.rows[key].status) if leaving.may_stay else ()
        assert after[key].status in (left, *elsewhere)
        assert not (left is Status.RETIRED and after[key].body.keywords)


def the_next_plan_is_empty(case: Case) -> None:
    """After an acknowledged apply the plan has no changes, records or notes, except of what is not selected."""
    after = past_unsure_cascades(case, applied(case.rows, case.plan))
    again = planned(case.desired, after, **whole_how(case.step))
    kinds = {note.kind for note in again.notes}
    assert kinds <= {"left-out"} if not case.scope.whole else not kinds
    assert says_nothing(replace(again, notes=()))


def past_unsure_cascades(case: Case, after: Rows) -> Rows:
    """Apply one more plan if members of a deleted category are in doubt.

    Such a member may be in another category by now, so the next plan removes it by a call of its own.
    """
    unsure = {effect.key for effect in case.plan.effects() if effect.unsure}
    if not unsure:
        return after
    plan = planned(case.desired, after, **whole_how(case.step))
    assert {change.key for change in plan.changes} <= unsure
    return applied(after, plan)


def nothing_that_is_desired_is_taken_away(case: Case) -> None:
    """No plan removes a resource, keyword, metadata entry or field that a manifest declares."""
    for effect in case.plan.effects():
        resource = case.desired.resources.get(effect.key)
        if resource is not None:
            assert effect.status in (None, Status.ACTIVE)
            assert not set(effect.keywords_dropped) & set(resource.body.keywords)
            assert not resource.body.metadata.keys() & set(effect.metadata_dropped)
            assert not resource.body.fields.keys() & set(effect.cleared)


def protected_rows_do_not_leave(case: Case) -> None:
    protected = {key for key, row in case.rows.items() if row.protect and row.status is not Status.DELETED}
    assert not protected & case.aim.leaving.keys()
    removed = {Status.DELETED, Status.RETIRED}
    renamed = {key for old in case.aim.renames.values() for key in old if key.kind is Kind.CATEGORY}
    assert not (protected - renamed) & {effect.key for effect in case.plan.effects() if effect.status in removed}


def a_plan_without_deletes_takes_nothing_away(case: Case) -> None:
    """A plan with `--no-delete` removes nothing, with any other options."""
    how = {**case.step.how, "scope": replace(case.scope, no_delete=True)}
    plan = planned(case.desired, case.rows, **how)
    assert {change.action for change in plan.changes} <= {Action.CREATE, Action.UPDATE}
    losses = [loss for change in plan.changes for loss in losses_of(change)]
    assert all(loss.of == "opened" or is_in_a_category_that_is_gone(loss, case) for loss in losses)
    renamed = {Key(change.key.kind, str(change.previously)) for change in plan.changes if change.previously}
    kept = {note.key for note in plan.notes if note.kind == "kept"}
    for effect in plan.effects():
        assert effect.status in (None, Status.ACTIVE) or effect.key in renamed or effect.key in kept
        assert not (effect.keywords_dropped or effect.metadata_dropped)


def is_in_a_category_that_is_gone(loss: Loss, case: Case) -> bool:
    """Return whether a tag only loses a category that was deleted already."""
    category = case.rows.get(Key(Kind.CATEGORY, str(case.rows[loss.key].body.fields.get("category"))))
    return loss.what == "category" and category is not None and not may_be_held(category)


def every_loss_is_in_the_gate(case: Case) -> None:
    """The gate asks about categories and opened tags, and about nothing in a plan without losses and sweep."""
    losses = [loss for change in case.plan.changes for loss in losses_of(change)]
    if not losses and case.plan.sweep is None:
        assert not case.plan.gate.tripped
    if any(loss.of in ("categories", "opened") for loss in losses):
        assert case.plan.gate.tripped
    assert {loss.key for loss in losses} >= case.aim.leaving.keys()


INVARIANTS: tuple[Callable[[Case], None], ...] = (
    folding_a_plan_gives_its_aim,
    the_next_plan_is_empty,
    nothing_that_is_desired_is_taken_away,
    protected_rows_do_not_leave,
    a_plan_without_deletes_takes_nothing_away,
    every_loss_is_in_the_gate,
)


@pytest.mark.slow
@settings(max_examples=tried(HISTORIES_TRIED), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CASES)
def test_what_holds_of_every_plan(case: Case) -> None:
    assume(not keeps_a_dead_reference(case))
    for holds in INVARIANTS:
        holds(case)


def keeps_a_dead_reference(case: Case) -> bool:
    """Return whether a tag stays in a category whose deletion is under way, as `--no-delete` may cause.

    The tag waits until the deletion is settled.
    """
    named = {Key(Kind.CATEGORY, str(r.body.fields.get("category"))) for r in case.aim.desired.values()}
    return any(
        key in case.rows and case.rows[key].status is Status.DELETED for key in named - case.desired.resources.keys()
    )


def test_a_saved_plan_knows_the_other_name_of_a_category_that_it_deletes() -> None:
    """After a rename without a known end, a member may be under either name: each is deleted by itself, too."""
    old = row("category/C1", server_id="id-C1", status=Status.DELETED, doubtful=True)
    new = row("category/C2", server_id="id-C1", doubtful=True, confirmed=False)
    rows = {each.key: each for each in (old, new, row("tag/T-1", category="C2"), row("tag/T-2", category="C1"))}
    plan = planned("{}", rows, tag_removal=Removal.DELETE, deletes_tags=True)
    assert (len(calls(plan, Stage.TAG_DELETES)), len(calls(plan, Stage.CATEGORY_DELETES))) == (2, 2)
    again = planned_again(plan, {key: rows[key] for key in keys_of(plan)}, is_begun=False, owns=True, deletes_tags=True)
    assert again.plan.summary == plan.summary
