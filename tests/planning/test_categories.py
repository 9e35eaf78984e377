"""docs/planning.md 2.2: tag categories, and the tags that a deleted one takes along."""

from collections import Counter

import pytest

from syncengine.plan.calls import Step
from syncengine.plan.diff import FieldEffect
from syncengine.resource import ANY_CATEGORY, Body, Key, Kind, Recorded, Removal, Status

from .applying import Fate, applied, walked
from .estate import actions, addresses, change_of, field_of, gone, items, notes, planned, refused, row, says_nothing

ACME = "tagCategories: [{externalId: acme, label: ACME}]\n"
KEY, OLD, NEW = (Key(Kind.CATEGORY, name) for name in ("acme", "old", "new"))

COMPARED = {
    "never recorded": ([], {"category/acme": "create"}),
    "deleted": ([gone("category/acme")], {"category/acme": "create"}),
    "equal": ([row("category/acme", label="ACME")], {}),
    "adopted without a body": ([Recorded(KEY, Body(), confirmed=True, server_id="x")], {"category/acme": "update"}),
    "unconfirmed": ([row("category/acme", label="ACME", confirmed=False, doubtful=True)], {"category/acme": "create"}),
}


@pytest.mark.parametrize(("recorded", "expected"), COMPARED.values(), ids=COMPARED)
def test_a_category_is_sent_if_the_service_may_lack_it(recorded: list[Recorded], expected: dict[str, str]) -> None:
    plan = planned(ACME, recorded)
    assert (actions(plan), plan.summary.unchanged) == (expected, 0 if expected else 1)
    found = [(item.new, item.effects[0].fields) for item in items(plan, Step.CATEGORIES)]
    assert found == [(action == "create", {"label": "ACME"}) for action in expected.values()]


def test_what_differs_of_a_category_is_updated_and_what_is_gone_is_sent_as_empties() -> None:
    before = row("category/acme", label="Old", description="old", keywords=("b", "a"))
    plan = planned("tagCategories: [{externalId: acme, label: New, keywords: [a, b]}]", [before])
    fields = change_of(plan, "category/acme").fields
    assert {field.name: (field.before, field.after) for field in fields} == {
        "label": ("Old", "New"),
        "description": ("old", None),
        "keywords": (("b", "a"), ("a", "b")),
    }
    assert {field.effect for field in fields} == {FieldEffect.APPLIES}
    effect = items(plan, Step.CATEGORIES)[0].effects[0]
    assert (effect.fields, effect.cleared) == ({"label": "New", "keywords": ("a", "b")}, ("description",))


# --- renames


RENAMED = "tagCategories: [{externalId: new, label: ACME, previously: [old]}]\n"


def test_a_renamed_category_keeps_its_id() -> None:
    """The update of the new name carries the recorded id of the old name, and clears what it no longer has."""
    rows = {OLD: row("category/old", label="ACME", description="old words", keywords=("k",))}
    plan = planned(RENAMED, rows)
    assert (actions(plan), change_of(plan, "category/new").previously) == ({"category/new": "update"}, "old")
    assert field_of(plan, "category/new", "description").before == "old words"
    (item,) = items(plan, Step.CATEGORIES)
    own, former = item.effects
    assert (own.former, own.whole, sorted(own.cleared)) == (OLD, True, ["description", "keywords"])
    assert (former.key, former.status) == (OLD, Status.DELETED)
    after = applied(rows, plan)
    assert (after[NEW].server_id, after[OLD].status) == ("id-old", Status.DELETED)


WITH_TAG = RENAMED + "tags: [{name: T, category: new}]"
TWO = [row("category/old"), row("category/new", label="ACME")]
RENAMES = {
    "members are recorded in the new one": (
        WITH_TAG,
        [row("category/old", label="ACME"), row("tag/T", category="old")],
        {"category/new": "update", "tag/T": "update"},
    ),
    "released members stay": (
        RENAMED,
        [row("category/old"), row("tag/T", category="old", status=Status.RELEASED)],
        {"category/new": "update"},
    ),
    "the old one is deleted already": (RENAMED, [gone("category/old")], {"category/new": "create"}),
    "the service took it for a new category": (RENAMED, TWO, {"category/old": "delete"}),
    "its id is unknown": (
        RENAMED,
        [row("category/old", server_id=None)],
        {"category/new": "create", "category/old": "delete"},
    ),
}


@pytest.mark.parametrize(("manifest", "recorded", "expected"), RENAMES.values(), ids=RENAMES)
def test_a_rename_is_no_deletion_unless_both_categories_exist(
    manifest: str, recorded: list[Recorded], expected: dict[str, str]
) -> None:
    plan = planned(manifest, recorded)
    assert (actions(plan), plan.gate.tripped) == (expected, "delete" in expected.values())


def test_a_rename_that_failed_and_is_taken_back_is_a_rename_back() -> None:
    """Deleting the new name would delete the category, which may have that name already, with all its tags."""
    rows = {OLD: row("category/old", label="ACME")}
    after = applied(rows, planned(RENAMED, rows), lambda: Fate.REFUSED)
    plan = planned("tagCategories: [{externalId: old, label: ACME}]", after)
    assert (actions(plan), change_of(plan, "category/old").previously) == ({"category/old": "update"}, "new")


MEMBER = "tagCategories: [{externalId: old}]\ntags: [{name: T, category: old}]"
LATER = {
    "members that no manifest wants follow a rename": (
        [MEMBER, "tagCategories: [{externalId: old}]", "tagCategories: [{externalId: new, previously: [old]}]", "{}"],
        {"category/new": "delete", "tag/T": "delete"},
    ),
    "a former name that is used again is another category": (
        [
            MEMBER,
            "tagCategories: [{externalId: new, previously: [old]}]",
            "tagCategories: [{externalId: new}, {externalId: old}]",
            "tagCategories: [{externalId: new}]",
        ],
        {"category/old": "delete"},
    ),
    "protection is lifted": (
        [f"tagCategories: [{{externalId: old, {fields}}}]" for fields in ("protect: true", "label: L")] + ["{}"],
        {"category/old": "delete"},
    ),
}


@pytest.mark.parametrize(("manifests", "expected"), LATER.values(), ids=LATER)
def test_a_later_delete_takes_those_that_are_in_it_by_now(manifests: list[str], expected: dict[str, str]) -> None:
    *before, last = manifests
    assert actions(planned(last, walked(*before))) == expected


# --- deletion


def test_a_deleted_category_stays_deleted_unless_its_end_is_unknown() -> None:
    assert actions(planned("{}", [gone("category/acme")])) == {}
    member = row("tag/T", category="acme", doubtful=True, status=Status.DELETED)
    plan = planned("{}", [gone("category/acme", doubtful=True), member])
    assert actions(plan) == {"category/acme": "delete", "tag/T": "delete"}


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
    assert actions(plan) == {"category/acme": "delete", "tag/T": "delete"}
    assert change_of(plan, "tag/T").cascade == KEY
    assert (plan.summary.cascaded_tags, plan.summary.delete) == (1, 2)
    (item,) = items(plan, Step.CATEGORY_DELETES)
    named = [(str(effect.key), effect.status) for effect in item.effects]
    assert named == [("category/acme", "deleted"), ("tag/T", "deleted")]


UNSURE = {
    Removal.FORGET: (Status.RELEASED, True, {}),
    Removal.RETIRE: (Status.RETIRED, True, {"deleteKeyword": 2}),
    Removal.DELETE: (Status.DELETED, False, {"deleteTag": 1}),
}


@pytest.mark.parametrize("policy", UNSURE)
def test_a_cascade_is_believed_only_for_members_without_doubt(policy: Removal) -> None:
    """A doubtful member may be in another category by now, so it is also removed by calls of its own."""
    status, is_doubtful, calls = UNSURE[policy]
    doubtful = row("tag/T", "words", category="acme", doubtful=True)
    rows = {KEY: row("category/acme"), doubtful.key: doubtful}
    plan = planned("{}", rows, tag_removal=policy, deletes_tags=True)
    assert Counter(call.operation for call in plan.calls()) == {**calls, "deleteTagCategory": 1}
    needs = {item.key: item.needs for call in plan.calls() for item in call.items}
    own = {doubtful.key: ()} if calls else {}  # or each would wait for the other
    assert needs == {KEY: tuple(own), **own}
    after = applied(rows, plan)
    assert (after[doubtful.key].status, after[doubtful.key].doubtful) == (status, is_doubtful)
    assert says_nothing(planned("{}", after, tag_removal=policy, deletes_tags=True))


OTHER = "tagCategories: [{externalId: other}]\ntags: [{name: T, tagCategoryId: id-other}]"
UNIDENTIFIED = {
    "declared": ("tags: [{name: T, tagCategoryId: x}]", [row("tag/T", tagCategoryId="x")], True),
    "declared now": ("tags: [{name: T, tagCategoryId: x}]", [row("tag/T")], True),
    "released": ("{}", [row("tag/T", tagCategoryId="x", status=Status.RELEASED)], True),
    "in none": ("tags: [{name: T}]", [row("tag/T")], False),
    "in a known one": (OTHER, [row("category/other"), row("tag/T", tagCategoryId="id-other")], False),
}


@pytest.mark.parametrize(("declared", "rows", "stays"), UNIDENTIFIED.values(), ids=UNIDENTIFIED)
def test_a_category_of_unknown_id_is_not_deleted_while_a_tag_may_be_in_it(
    declared: str, rows: list[Recorded], stays: bool
) -> None:
    plan = planned(declared, [row("category/acme", server_id=None), *rows])
    assert ("category/acme" not in actions(plan)) is stays
    assert ("tag T may be in it" in str(plan.notes)) is stays
    assert plan.summary.cascaded_tags == 0


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


def test_a_category_delete_waits_for_its_members_that_stay() -> None:
    """And for new tags, of whom people may have made one in it, so that it is also sent to leave any category.

    A renamed member is deleted with the category, so its new name is created first.
    """
    members = [row(f"tag/{name}", category="acme") for name in ("MOVED", "LEFT", "OLD")]
    plan = planned(
        "tags: [{name: MOVED}, {name: NEW, previously: [OLD]}, {name: HAND}]", [row("category/acme"), *members]
    )
    (item,) = items(plan, Step.CATEGORY_DELETES)
    assert (actions(plan)["tag/MOVED"], change_of(plan, "tag/OLD").cascade) == ("update", KEY)
    assert addresses(item.needs) == ["tag/MOVED", "tag/NEW", "tag/HAND"]
    assert addresses(effect.key for effect in item.effects) == ["category/acme", "tag/LEFT", "tag/OLD"]
    assert [item.effects[0].cleared for item in items(plan, Step.TAGS) if item.key.name == "HAND"] == [("category",)]


def test_a_tag_that_may_be_in_two_categories_is_named_by_both_deletes() -> None:
    member = row("tag/T", category="zeta", doubtful=True, former_categories=("category/acme",))
    plan = planned("{}", [row("category/acme"), row("category/zeta"), member])
    named = [addresses(effect.key for effect in item.effects) for item in items(plan, Step.CATEGORY_DELETES)]
    assert (named, plan.summary.cascaded_tags) == ([["category/acme", "tag/T"], ["category/zeta", "tag/T"]], 1)


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


ANOTHER = "another tag is sent again, since people may have moved it there; one without a category"
AT_REST = {
    ANOTHER: ("tags: [{name: U}]", [row("tag/U")]),
    "2 other tags are sent again": (
        "tags: [{name: U, category: b}, {name: V, tagCategoryId: id-b}]",
        [row("tag/U", category="b"), row("tag/V", tagCategoryId="id-b")],
    ),
}


@pytest.mark.parametrize("words", AT_REST)
def test_tags_at_rest_are_noted_once_where_a_category_is_deleted(words: str) -> None:
    tags, others = AT_REST[words]
    plan = planned(f"tagCategories: [{{externalId: b}}]\n{tags}", [row("category/acme"), row("category/b"), *others])
    (note,) = [note for note in plan.notes if note.kind == "sent-again"]
    assert note.message.startswith(words)
    assert ("is made anew" in note.message) is (len(others) == 1)


def test_a_desired_tag_in_a_category_that_goes_is_an_error() -> None:
    """A tag that names the category by the service's id shows the contradiction only in the plan."""
    assert refused("tags: [{name: T, tagCategoryId: id-acme}]", [row("category/acme")]) == {"category-removed": "tag/T"}


def test_a_protected_category_is_kept_and_noted_once() -> None:
    """A protected category that is no longer declared is recorded as released."""
    rows = {KEY: row("category/acme", protect=True), Key(Kind.TAG, "T"): row("tag/T")}
    plan = planned("tags: [{name: T}]", rows)
    assert (notes(plan), actions(plan), plan.changes_something) == ([("category/acme", "kept")], {}, False)
    after = applied(rows, plan)
    assert after[KEY].status is Status.RELEASED
    assert notes(planned("tags: [{name: T}]", after)) == []


def test_a_category_stays_with_a_protected_member_unless_that_moves_out() -> None:
    recorded = [row("category/acme"), row("tag/T", category="acme", protect=True), row("tag/U", category="acme")]
    plan = planned("{}", recorded)
    assert actions(plan) == {"tag/U": "forget"}
    assert notes(plan) == [("category/acme", "kept"), ("tag/T", "kept")]
    assert "tag T" in plan.notes[0].message
    moved = planned("tags: [{name: T, protect: true}]", recorded[:2])
    assert actions(moved) == {"category/acme": "delete", "tag/T": "update"}
