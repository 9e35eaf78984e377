"""docs/planning.md 2.2: tag categories, and the tags that a deleted one takes along."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from syncengine.plan.calls import Step
from syncengine.plan.diff import FieldEffect
from syncengine.resource import ANY_CATEGORY, Body, Key, Kind, Recorded, Removal, Source, Status

from .applying import Fate, applied, walked
from .estate import (
    FILE,
    actions,
    addresses,
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

ACME = "tagCategories: [{externalId: acme, label: ACME}]\n"


def test_a_category_that_is_not_recorded_is_created() -> None:
    plan = planned(ACME)
    assert actions(plan) == {"category/acme": "create"}
    assert [(item.new, item.effects[0].fields) for item in items(plan, Step.CATEGORIES)] == [(True, {"label": "ACME"})]


def test_a_deleted_category_is_created_again() -> None:
    assert actions(planned(ACME, [gone("category/acme")])) == {"category/acme": "create"}


@pytest.mark.parametrize(
    ("declared", "before", "after"),
    [("label: New", "Old", "New"), ("description: New", "Old", "New"), ("keywords: [a, b]", ("b", "a"), ("a", "b"))],
)
def test_a_category_that_differs_is_updated(declared: str, before: object, after: object) -> None:
    name = declared.partition(":")[0]
    plan = planned(f"tagCategories: [{{externalId: acme, {declared}}}]", [row("category/acme", **{name: before})])
    assert actions(plan) == {"category/acme": "update"}
    field = field_of(plan, "category/acme", name)
    assert (field.before, field.after, field.effect) == (before, after, FieldEffect.APPLIES)


def test_an_equal_category_is_left_alone() -> None:
    plan = planned(ACME, [row("category/acme", label="ACME", source=Source(FILE, 1))])
    assert (plan.changes, plan.stages, plan.summary.unchanged) == ((), (), 1)


def test_fields_of_a_category_that_are_gone_are_sent_as_empties() -> None:
    recorded = [row("category/acme", label="ACME", description="old", keywords=("k",))]
    effect = sent(planned(ACME, recorded), Step.CATEGORIES, "category/acme")
    assert (effect.fields, sorted(effect.cleared)) == ({"label": "ACME"}, ["description", "keywords"])


def test_an_unconfirmed_category_is_created_again() -> None:
    plan = planned(ACME, [row("category/acme", label="ACME", confirmed=False, doubtful=True, server_id=None)])
    assert actions(plan) == {"category/acme": "create"}
    assert (
        change_of(plan, "category/acme").reason == "sent again, since an earlier call failed or its outcome is unknown"
    )


# --- renames


RENAMED = "tagCategories: [{externalId: new, label: ACME, previously: [old]}]\n"


def test_a_renamed_category_keeps_its_id() -> None:
    """The update of the new name carries the recorded id of the old name."""
    plan = planned(RENAMED, [row("category/old", label="ACME")])
    assert actions(plan) == {"category/new": "update"}
    (item,) = items(plan, Step.CATEGORIES)
    own, former = item.effects
    assert (own.former, own.whole, former.key, former.status) == (
        former.key,
        True,
        Key(Kind.CATEGORY, "old"),
        "deleted",
    )
    after = applied({Key(Kind.CATEGORY, "old"): row("category/old", label="ACME")}, plan)
    assert after[Key(Kind.CATEGORY, "new")].server_id == "id-old"
    assert after[Key(Kind.CATEGORY, "old")].status is Status.DELETED


def test_the_change_of_a_rename_has_the_former_name() -> None:
    assert change_of(planned(RENAMED, [row("category/old")]), "category/new").previously == "old"


def test_a_renamed_category_is_not_deleted() -> None:
    plan = planned(RENAMED, [row("category/old"), row("tag/T", category="old", status=Status.RELEASED)])
    assert "delete" not in actions(plan).values()
    assert not plan.gate.tripped


@pytest.mark.parametrize(
    "old",
    [gone("category/old"), row("category/old", server_id=None)],
    ids=["deleted already", "never acknowledged"],
)
def test_a_category_without_a_known_id_cannot_be_renamed(old: Recorded) -> None:
    """Without the recorded id of the old name, the new category is created."""
    assert actions(planned(RENAMED, [old]))["category/new"] == "create"


def test_a_rename_that_the_service_took_for_a_new_category_ends_in_a_delete() -> None:
    """Both names are recorded with ids of their own, so the old category is deleted."""
    plan = planned(RENAMED, [row("category/old"), row("category/new", label="ACME")])
    assert actions(plan) == {"category/old": "delete"}


def test_a_rename_that_failed_and_is_taken_back_is_a_rename_back() -> None:
    """Deleting the new name would delete the category, which may have that name already, with all its tags."""
    rows = {Key(Kind.CATEGORY, "old"): row("category/old", label="ACME")}
    after = applied(rows, planned(RENAMED, rows), lambda: Fate.REFUSED)
    plan = planned("tagCategories: [{externalId: old, label: ACME}]", after)
    assert (actions(plan), change_of(plan, "category/old").previously) == ({"category/old": "update"}, "new")


def test_members_of_a_renamed_category_are_recorded_in_the_new_one() -> None:
    recorded = [row("category/old", label="ACME"), row("tag/T", category="old")]
    plan = planned(RENAMED + "tags: [{name: T, category: new}]", recorded)
    assert actions(plan) == {"category/new": "update", "tag/T": "update"}


def test_what_a_renamed_category_no_longer_has_is_cleared() -> None:
    plan = planned(RENAMED, [row("category/old", label="ACME", description="old words", keywords=("k",))])
    assert sorted(sent(plan, Step.CATEGORIES, "category/new").cleared) == ["description", "keywords"]
    assert field_of(plan, "category/new", "description").before == "old words"


def test_members_that_no_manifest_wants_follow_a_rename() -> None:
    """Deleting the renamed category later lists the tags that were in it under its old name."""
    recorded = walked(
        "tagCategories: [{externalId: old}]\ntags: [{name: T, category: old}]",
        "tagCategories: [{externalId: old}]",
        "tagCategories: [{externalId: new, previously: [old]}]",
    )
    assert actions(planned("{}", recorded)) == {"category/new": "delete", "tag/T": "delete"}


def test_a_former_name_that_is_used_again_is_another_category() -> None:
    """A new category with the former name has none of the members of the renamed one."""
    recorded = walked(
        "tagCategories: [{externalId: old}]\ntags: [{name: T, category: old}]",
        "tagCategories: [{externalId: new, previously: [old]}]",
        "tagCategories: [{externalId: new}, {externalId: old}]",
    )
    assert actions(planned("tagCategories: [{externalId: new}]", recorded)) == {"category/old": "delete"}


# --- deletion


def test_a_category_that_is_gone_is_deleted_last() -> None:
    plan = planned("tags: [{name: T}]", [row("category/acme")])
    assert actions(plan) == {"tag/T": "create", "category/acme": "delete"}
    assert steps(plan) == ["tags", "category deletes"]


def test_a_deleted_category_stays_deleted() -> None:
    assert actions(planned("{}", [gone("category/acme")])) == {}


def test_a_deletion_without_a_known_outcome_is_planned_again() -> None:
    recorded = [
        gone("category/acme", doubtful=True),
        row("tag/T", category="acme", doubtful=True, status=Status.DELETED),
    ]
    assert actions(planned("{}", recorded)) == {"category/acme": "delete", "tag/T": "delete"}


MEMBERS = {
    "by externalId": row("tag/T", category="acme"),
    "by the service's id": row("tag/T", tagCategoryId="id-acme"),
    "released": row("tag/T", category="acme", status=Status.RELEASED),
    "retired": row("tag/T", category="acme", status=Status.RETIRED),
    "doubtful": row("tag/T", category="acme", doubtful=True),
    "maybe moved out": row("tag/T", category="other", doubtful=True, former_categories=("category/acme",)),
    "maybe moved out, by id": row("tag/T", doubtful=True, former_categories=("id/id-acme",)),
    "deletion without a known outcome": row("tag/T", category="acme", doubtful=True, status=Status.DELETED),
}


@pytest.mark.parametrize("member", MEMBERS.values(), ids=MEMBERS)
def test_a_deleted_category_lists_the_tags_that_it_takes_along(member: Recorded) -> None:
    """Recorded members count as deleted by cascade, by whichever id the service knows their category."""
    plan = planned("{}", [row("category/acme"), member])
    change = change_of(plan, "tag/T")
    assert actions(plan) == {"category/acme": "delete", "tag/T": "delete"}
    assert change.cascade == Key(Kind.CATEGORY, "acme")
    assert (plan.summary.cascaded_tags, plan.summary.delete) == (1, 2)
    (item,) = items(plan, Step.CATEGORY_DELETES)
    assert [(str(effect.key), effect.status) for effect in item.effects] == [
        ("category/acme", "deleted"),
        ("tag/T", "deleted"),
    ]


UNSURE = {
    Removal.FORGET: (Status.RELEASED, True),
    Removal.RETIRE: (Status.RETIRED, True),
    Removal.DELETE: (Status.DELETED, False),
}


@pytest.mark.parametrize(("policy", "expected"), UNSURE.items(), ids=UNSURE)
def test_a_cascade_is_believed_only_for_members_without_doubt(policy: Removal, expected: tuple[Status, bool]) -> None:
    """A doubtful member may be in another category by now, so it is also removed by calls of its own."""
    doubtful = row("tag/T", "words", category="acme", doubtful=True)
    rows = {Key(Kind.CATEGORY, "acme"): row("category/acme"), doubtful.key: doubtful}
    plan = planned("{}", rows, tag_removal=policy, deletes_tags=True)
    calls = {"deleteKeyword": 2} if policy is Removal.RETIRE else {"deleteTag": 1} if policy is Removal.DELETE else {}
    assert Counter(call.operation for call in plan.calls()) == {**calls, "deleteTagCategory": 1}
    needs = {item.key: item.needs for call in plan.calls() for item in call.items}
    own = {doubtful.key: ()} if calls else {}  # or each would wait for the other
    assert needs == {Key(Kind.CATEGORY, "acme"): tuple(own), **own}
    after = applied(rows, plan)
    assert (after[doubtful.key].status, after[doubtful.key].doubtful) == expected
    assert says_nothing(planned("{}", after, tag_removal=policy, deletes_tags=True))


UNIDENTIFIED = {
    "declared": ("tags: [{name: T, tagCategoryId: x}]", row("tag/T", tagCategoryId="x"), True),
    "declared now": ("tags: [{name: T, tagCategoryId: x}]", row("tag/T"), True),
    "released": ("{}", row("tag/T", tagCategoryId="x", status=Status.RELEASED), True),
    "in none": ("tags: [{name: T}]", row("tag/T"), False),
}


@pytest.mark.parametrize(("declared", "member", "stays"), UNIDENTIFIED.values(), ids=UNIDENTIFIED)
def test_a_category_of_unknown_id_is_not_deleted_while_a_tag_may_be_in_it(
    declared: str, member: Recorded, *, stays: bool
) -> None:
    plan = planned(declared, [msgspec.structs.replace(row("category/acme"), server_id=None), member])
    assert ("category/acme" not in actions(plan)) is stays
    assert ("tag T may be in it" in str(plan.notes)) is stays
    assert plan.summary.cascaded_tags == 0


def test_a_category_of_unknown_id_is_deleted_where_every_tag_is_in_a_known_one() -> None:
    declared = "tagCategories: [{externalId: other}]\ntags: [{name: T, tagCategoryId: id-other}]"
    rows = [row("category/other"), row("tag/T", tagCategoryId="id-other")]
    plan = planned(declared, [msgspec.structs.replace(row("category/acme"), server_id=None), *rows])
    assert actions(plan)["category/acme"] == "delete"


OUTSIDERS = {
    "in another category": row("tag/T", category="other"),
    "in none": row("tag/T"),
    "deleted": gone("tag/T"),
    "in a category with such an id": row("tag/T", tagCategoryId="acme"),
}


@pytest.mark.parametrize("outsider", OUTSIDERS.values(), ids=OUTSIDERS)
def test_tags_outside_a_deleted_category_are_not_cascaded(outsider: Recorded) -> None:
    plan = planned("tagCategories: [{externalId: other}]", [row("category/acme"), row("category/other"), outsider])
    assert plan.summary.cascaded_tags == 0


def test_a_member_that_moves_elsewhere_is_not_cascaded_and_goes_first() -> None:
    """The delete waits for the upserts of desired members, and of unrecorded tags that may be in the category."""
    recorded = [row("category/acme"), row("tag/MOVED", category="acme"), row("tag/LEFT", category="acme")]
    plan = planned("tags: [{name: MOVED}, {name: NEW}]", recorded)
    (item,) = items(plan, Step.CATEGORY_DELETES)
    assert actions(plan)["tag/MOVED"] == "update"
    assert addresses(item.needs) == ["tag/MOVED", "tag/NEW"]
    assert addresses(effect.key for effect in item.effects) == ["category/acme", "tag/LEFT"]


def test_a_tag_that_may_be_in_two_categories_is_named_by_both_deletes() -> None:
    member = row("tag/T", category="zeta", doubtful=True, former_categories=("category/acme",))
    plan = planned("{}", [row("category/acme"), row("category/zeta"), member])
    named = [addresses(effect.key for effect in item.effects) for item in items(plan, Step.CATEGORY_DELETES)]
    assert named == [["category/acme", "tag/T"], ["category/zeta", "tag/T"]]
    assert plan.summary.cascaded_tags == 1


HIDDEN = {
    "it may not have moved yet": row("tag/T", doubtful=True, former_categories=("category/acme",)),
    "people may have moved it while it was released": row("tag/T", status=Status.RELEASED),
    "or retired": row("tag/T", status=Status.RETIRED),
    "its last call has no known end": row("tag/T", doubtful=True),
    "its creation was not acknowledged": row("tag/T", confirmed=False),
    "it may be in any": row("tag/T", former_categories=(ANY_CATEGORY,)),
}


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
def test_a_tag_that_may_be_in_a_deleted_category_goes_first(hidden: Recorded) -> None:
    """One at rest is sent by the apply itself, without a change in the plan."""
    plan = planned("tags: [{name: T}, {name: U}]", [row("category/acme"), hidden, row("tag/U")])
    assert actions(plan).keys() == {"tag/T", "category/acme"}
    assert addresses(items(plan, Step.CATEGORY_DELETES)[0].needs) == ["tag/T"]


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([row("tag/U")], "another tag is sent again, since people may have moved it there; one without a category"),
        ([row("tag/U", category="b"), row("tag/V", tagCategoryId="id-b")], "2 other tags are sent again"),
    ],
)
def test_tags_at_rest_are_noted_once_where_a_category_is_deleted(others: list[Recorded], words: str) -> None:
    declared = "tagCategories: [{externalId: b}]\ntags: [{name: U, category: b}, {name: V, tagCategoryId: id-b}]"
    declared = declared if len(others) > 1 else "tagCategories: [{externalId: b}]\ntags: [{name: U}]"
    plan = planned(declared, [row("category/acme"), row("category/b"), *others])
    (note,) = [note for note in plan.notes if note.kind == "sent-again"]
    assert note.message.startswith(words)
    assert ("is made anew" in note.message) is (len(others) == 1)


def test_a_category_delete_waits_for_the_new_name_of_a_member() -> None:
    """The old name is deleted with the category, so the new name is created first."""
    plan = planned("tags: [{name: NEW, previously: [OLD]}]", [row("category/acme"), row("tag/OLD", category="acme")])
    (item,) = items(plan, Step.CATEGORY_DELETES)
    assert change_of(plan, "tag/OLD").cascade == Key(Kind.CATEGORY, "acme")
    assert addresses(item.needs) == ["tag/NEW"]


def test_a_desired_tag_in_a_category_that_goes_is_an_error() -> None:
    """A tag that names the category by the service's id shows the contradiction only in the plan."""
    assert refused("tags: [{name: T, tagCategoryId: id-acme}]", [row("category/acme")]) == {"category-removed": "tag/T"}


def test_a_protected_category_is_kept_and_noted_once() -> None:
    """A protected category that is no longer declared is noted once and recorded as released."""
    recorded = walked(
        "tagCategories: [{externalId: acme, protect: true}]\ntags: [{name: T, category: acme}]", "tags: [{name: T}]"
    )
    plan = planned("tags: [{name: T}]", [row("category/acme", protect=True), row("tag/T")])
    assert (notes(plan), actions(plan), plan.changes_something) == ([("category/acme", "kept")], {}, False)
    assert recorded[Key(Kind.CATEGORY, "acme")].status is Status.RELEASED
    assert notes(planned("tags: [{name: T}]", recorded)) == []


def test_a_category_with_a_protected_member_is_kept() -> None:
    recorded = [row("category/acme"), row("tag/T", category="acme", protect=True), row("tag/U", category="acme")]
    plan = planned("{}", recorded)
    assert actions(plan) == {"tag/U": "forget"}
    assert notes(plan) == [("category/acme", "kept"), ("tag/T", "kept")]
    assert "tag T" in plan.notes[0].message


def test_a_protected_member_that_moves_out_does_not_keep_its_category() -> None:
    recorded = [row("category/acme"), row("tag/T", category="acme", protect=True)]
    assert actions(planned("tags: [{name: T, protect: true}]", recorded)) == {
        "category/acme": "delete",
        "tag/T": "update",
    }


def test_a_kept_category_is_deleted_once_protection_is_lifted() -> None:
    recorded = walked(
        "tagCategories: [{externalId: acme, protect: true}]",
        "{}",
        "tagCategories: [{externalId: acme, protect: false}]",
    )
    assert actions(planned("{}", recorded)) == {"category/acme": "delete"}


def test_a_released_category_that_is_declared_again_is_managed_again() -> None:
    """Nothing is sent when nothing differs from the kept row."""
    recorded = {Key(Kind.CATEGORY, "acme"): row("category/acme", label="ACME", status=Status.RELEASED)}
    plan = planned(ACME, recorded)
    assert (plan.changes, plan.sends_something) == ((), False)
    assert applied(recorded, plan)[Key(Kind.CATEGORY, "acme")].status is Status.ACTIVE


def test_an_adopted_category_without_a_body_is_updated() -> None:
    adopted = Recorded(Key(Kind.CATEGORY, "acme"), Body(), confirmed=True, server_id="x")
    assert actions(planned(ACME, [adopted])) == {"category/acme": "update"}


def test_a_new_tag_without_category_leaves_any_that_is_deleted() -> None:
    """People may have made a tag of this name in the category, which would be deleted with it."""
    plan = planned("tags: [{name: HAND-1}]", [row("category/acme")])
    assert sent(plan, Step.TAGS, "tag/HAND-1").cleared == ("category",)
    (delete,) = items(plan, Step.CATEGORY_DELETES)
    assert delete.needs == (Key(Kind.TAG, "HAND-1"),)
