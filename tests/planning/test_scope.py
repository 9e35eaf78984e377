"""docs/planning.md 2.1: what is not selected is left alone; `--no-delete` takes nothing away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from syncengine.plan.calls import Step
from syncengine.plan.request import Scope
from syncengine.project.model import Ownership
from syncengine.resource import Key, Kind, Recorded, Removal, Source, Status

from .applying import applied, walked
from .estate import actions, addresses, change_of, items, notes, planned, refused, row, says_nothing

FILES: Mapping[str, str] = {
    "manifests/acme.yaml": """
        tagCategories: [{externalId: acme}]
        tags: [{name: ACME-1, category: acme}, {name: ACME-2}]
    """,
    "manifests/zeta/open.yaml": "tags: [{name: ZETA-1}]",
    "manifests/types.yaml": "activityTypes: [{code: A101, label: Plan, enableIfNew: true}]",
}
ALL = {"category/acme", "tag/ACME-1", "tag/ACME-2", "tag/ZETA-1", "activity-type/A101"}
RECORDED = [
    row("category/acme"),
    row("tag/ACME-1", category="acme"),
    row("tag/GONE", source=Source("manifests/zeta/old.yaml", 3)),
]

SELECTIONS = {
    "everything": (Scope(), ALL),
    "a tag": (Scope(targets=("tag/ACME-2",)), {"tag/ACME-2"}),
    "a glob": (Scope(targets=("tag/ACME-*",)), {"tag/ACME-1", "tag/ACME-2", "category/acme"}),
    "a kind": (Scope(targets=("activity-type/*",)), {"activity-type/A101"}),
    "several": (Scope(targets=("tag/ZETA-*", "activity-type/A101")), {"tag/ZETA-1", "activity-type/A101"}),
    "nothing": (Scope(targets=("tag/NOBODY",)), set()),
    "all but": (Scope(excludes=("tag/*",)), {"category/acme", "activity-type/A101"}),
    "some but": (Scope(targets=("tag/*",), excludes=("tag/ACME-*",)), {"tag/ZETA-1"}),
    "a file": (Scope(paths=("manifests/acme.yaml",)), {"category/acme", "tag/ACME-1", "tag/ACME-2"}),
    "a folder": (Scope(paths=("manifests/zeta",)), {"tag/ZETA-1"}),
    "the project": (Scope(paths=(".",)), ALL),
    "a name that only begins like a folder": (Scope(paths=("manifests/zet",)), set()),
    "a target in a file": (
        Scope(paths=("manifests/acme.yaml",), targets=("tag/*",)),
        {"tag/ACME-1", "tag/ACME-2", "category/acme"},
    ),
    "a target that is elsewhere": (Scope(paths=("manifests/zeta",), targets=("tag/ACME-1",)), set()),
    "case counts": (Scope(targets=("tag/acme-*",)), set()),
}


@pytest.mark.parametrize(("scope", "expected"), SELECTIONS.values(), ids=SELECTIONS)
def test_a_selection_selects_changes(scope: Scope, expected: set[str]) -> None:
    assert set(actions(planned(FILES, scope=scope))) == expected


GONE = {
    "whole": (Scope(), {"tag/GONE": "forget"}),
    "by address": (Scope(targets=("tag/GONE",)), {"tag/GONE": "forget"}),
    "by the file where it last stood": (Scope(paths=("manifests/zeta",)), {"tag/GONE": "forget"}),
    "not selected": (Scope(targets=("tag/ACME-1",)), {}),
    "in another file": (Scope(paths=("manifests/acme.yaml",)), {}),
    "excluded": (Scope(excludes=("tag/GONE",)), {}),
}


@pytest.mark.parametrize(("scope", "expected"), GONE.values(), ids=GONE)
def test_only_selected_resources_are_removed(scope: Scope, expected: dict[str, str]) -> None:
    plan = planned(FILES, RECORDED, scope=scope)
    assert {address: action for address, action in actions(plan).items() if action == "forget"} == expected


def test_a_row_without_a_place_is_in_no_file() -> None:
    assert actions(planned("{}", [row("tag/GONE", source=None)], scope=Scope(paths=("manifests",)))) == {}


# --- units


RENAME = "tags: [{name: NEW-1, previously: [OLD-1]}]"


@pytest.mark.parametrize("target", ["tag/NEW-1", "tag/OLD-1", "tag/*"])
def test_a_rename_is_one_unit(target: str) -> None:
    plan = planned(RENAME, [row("tag/OLD-1")], scope=Scope(targets=(target,)))
    assert actions(plan) == {"tag/NEW-1": "create", "tag/OLD-1": "retire"}


@pytest.mark.parametrize("exclude", ["tag/NEW-1", "tag/OLD-1"])
def test_excluding_one_side_excludes_the_rename(exclude: str) -> None:
    assert actions(planned(RENAME, [row("tag/OLD-1")], scope=Scope(excludes=(exclude,)))) == {}


def test_a_category_rename_that_is_not_selected_leaves_the_old_one_alone() -> None:
    manifest = "tagCategories: [{externalId: new, previously: [old]}]\ntags: [{name: OTHER}]"
    assert actions(planned(manifest, [row("category/old")], scope=Scope(targets=("tag/OTHER",)))) == {
        "tag/OTHER": "create"
    }


def test_a_needed_category_is_renamed_though_it_is_not_selected() -> None:
    manifest = "tagCategories: [{externalId: new, previously: [old]}]\ntags: [{name: ACME-1, category: new}]"
    plan = planned(manifest, [row("category/old")], scope=Scope(targets=("tag/ACME-1",)))
    assert actions(plan) == {"tag/ACME-1": "create", "category/new": "update"}


NEEDED = {
    "not recorded": ([], True),
    "deleted": ([Recorded(Key(Kind.CATEGORY, "acme"), status=Status.DELETED)], True),
    "without an id": ([row("category/acme", server_id=None, confirmed=False, doubtful=True)], True),
    "known": ([row("category/acme", label="Differs")], False),
}


@pytest.mark.parametrize(("recorded", "brought"), NEEDED.values(), ids=NEEDED)
def test_a_selected_tag_brings_the_category_that_it_needs(recorded: list[Recorded], brought: bool) -> None:
    plan = planned(FILES, recorded, scope=Scope(targets=("tag/ACME-1",)))
    assert ("category/acme" in actions(plan)) is brought


# --- category deletes under a selection


def test_a_category_waits_for_members_that_move_and_are_not_selected() -> None:
    recorded = [row("category/acme"), row("tag/MOVED", category="acme")]
    plan = planned("tags: [{name: MOVED}]", recorded, scope=Scope(targets=("category/*",)))
    assert (actions(plan), notes(plan)) == ({}, [("category/acme", "left-out")])


@pytest.mark.parametrize("scope", [Scope(excludes=("tag/LEFT",)), Scope(targets=("category/acme",))])
def test_a_category_waits_for_members_that_are_not_selected(scope: Scope) -> None:
    plan = planned("{}", [row("category/acme"), row("tag/LEFT", category="acme")], scope=scope)
    assert (actions(plan), notes(plan)) == ({}, [("category/acme", "left-out")])


def test_a_category_waits_for_a_member_whose_rename_is_excluded() -> None:
    recorded = [row("category/acme"), row("tag/OLD-1", category="acme")]
    plan = planned(RENAME, recorded, scope=Scope(excludes=("tag/NEW-1",)))
    assert (actions(plan), notes(plan)) == ({}, [("category/acme", "left-out")])


def test_a_category_goes_with_members_that_are_selected() -> None:
    recorded = [row("category/acme"), row("tag/MOVED", category="acme"), row("tag/LEFT", category="acme")]
    recorded.append(row("tag/OTHER"))
    declared = "tags: [{name: MOVED}, {name: OTHER, description: new}]"
    plan = planned(declared, recorded, scope=Scope(excludes=("tag/OTHER",)))
    assert actions(plan) == {"tag/MOVED": "update", "category/acme": "delete", "tag/LEFT": "delete"}
    assert addresses(items(plan, Step.CATEGORY_DELETES)[0].needs) == ["tag/MOVED"]


def test_errors_of_unselected_resources_are_not_reported() -> None:
    recorded = [row("tag/SECRET", visibility="PRIVATE")]
    manifest = "tags: [{name: SECRET}, {name: OTHER}]"
    assert refused(manifest, recorded, scope=Scope(targets=("tag/OTHER",))) == {}
    assert refused(manifest, recorded, scope=Scope(targets=("tag/*",))) == {"visibility-dropped": "tag/SECRET"}


@pytest.mark.parametrize("more", [{"protect": True}, {"activity_types": Ownership.ADDITIVE}, {}])
def test_unselected_activity_types_are_not_mentioned(more: dict[str, Any]) -> None:
    recorded = [row("activity-type/A101", label="L", protect=more.pop("protect", False))]
    assert says_nothing(planned("{}", recorded, scope=Scope(targets=("tag/*",)), **more))


# --- no delete


NO_DELETE = Scope(no_delete=True)


@pytest.mark.parametrize("policy", Removal)
def test_no_delete_removes_nothing(policy: Removal) -> None:
    recorded = [row("category/acme"), row("tag/LEFT", category="acme"), row("tag/GONE"), row("activity-type/A101")]
    plan = planned("{}", recorded, scope=NO_DELETE, tag_removal=policy, deletes_tags=True)
    assert (actions(plan), plan.records, plan.sweep, plan.gate.tripped) == ({}, (), None, False)
    assert notes(plan) == [
        ("category/acme", "left-out"),
        ("activity-type/A101", "left-out"),
        ("tag/LEFT", "left-out"),
        ("tag/GONE", "left-out"),
    ]


def test_no_delete_keeps_the_old_name_of_a_renamed_tag() -> None:
    rows = walked("tags: [{name: OLD-1}]")
    plan = planned(RENAME, rows, scope=NO_DELETE)
    assert (actions(plan), notes(plan)) == ({"tag/NEW-1": "create"}, [("tag/OLD-1", "left-out")])
    assert actions(planned(RENAME, applied(rows, plan))) == {"tag/OLD-1": "retire"}


KEPT = {
    "a keyword": (row("tag/ACME-1", "k"), "tags: [{name: ACME-1}]", "keyword k"),
    "a metadata entry": (row("tag/ACME-1", metadata={"Client": "x"}), "tags: [{name: ACME-1}]", "metadata Client"),
    "a metadata value made empty": (
        row("tag/ACME-1", metadata={"Client": "x", "Old": ""}),
        "tags: [{name: ACME-1, metadata: {Client: '', Old: ''}}]",
        "metadata Client",
    ),
    "a field that is gone": (row("tag/ACME-1", url="http://u"), "tags: [{name: ACME-1}]", "field url"),
    "a field made empty": (row("tag/ACME-1", url="http://u"), "tags: [{name: ACME-1, url: ''}]", "field url"),
    "the path": (row("tag/ACME-1", path="/x"), "tags: [{name: ACME-1}]", "field path"),
    "the category": (row("tag/ACME-1", category="x"), "tags: [{name: ACME-1}]", "field category"),
    "the category by id": (row("tag/ACME-1", tagCategoryId="x"), "tags: [{name: ACME-1}]", "field tagCategoryId"),
    "a private tag's visibility": (
        row("tag/ACME-1", visibility="PRIVATE"),
        "tags: [{name: ACME-1}]",
        "field visibility",
    ),
    "a category's description": (
        row("category/acme", description="d"),
        "tagCategories: [{externalId: acme}]",
        "field description",
    ),
    "a category's keywords": (
        row("category/acme", keywords=("k",)),
        "tagCategories: [{externalId: acme}]",
        "field keywords",
    ),
    "a type's description": (
        row("activity-type/A101", label="L", description="d"),
        "activityTypes: [{code: A101, label: L}]",
        "field description",
    ),
}


@pytest.mark.parametrize(("recorded", "manifest", "what"), KEPT.values(), ids=KEPT)
def test_no_delete_takes_nothing_from_resources_that_stay(recorded: Recorded, manifest: str, what: str) -> None:
    plan = planned(manifest, [recorded], scope=NO_DELETE)
    assert (plan.changes, notes(plan)) == ((), [(str(recorded.key), "left-out")])
    assert plan.notes[0].message.endswith(f"keeps {what}")


def test_no_delete_applies_the_rest_of_a_change() -> None:
    recorded = [row("tag/ACME-1", "old", url="http://u", path="/one", metadata={"A": "1", "B": "1"})]
    manifest = "tags: [{name: ACME-1, keywords: [new], externalId: '47', path: /other, metadata: {B: '2'}}]"
    plan = planned(manifest, recorded, scope=NO_DELETE)
    change = change_of(plan, "tag/ACME-1")
    assert (change.keywords_added, change.keywords_deleted) == (("new",), ())
    assert (change.metadata_set, change.metadata_deleted) == ({"B": "2"}, ())
    assert {field.name: field.after for field in change.fields} == {"externalId": "47", "path": "/other"}
    assert items(plan, Step.TAGS)[0].effects[0].cleared == ()


def test_no_delete_lets_a_tag_move() -> None:
    recorded = [row("category/acme"), row("tag/ACME-1", category="acme")]
    plan = planned(
        "tagCategories: [{externalId: acme}]\ntags: [{name: ACME-1, tagCategoryId: x}]", recorded, scope=NO_DELETE
    )
    assert (actions(plan), notes(plan), plan.gate.tripped) == ({"tag/ACME-1": "update"}, [], False)


def test_what_was_left_out_is_planned_once_it_may_be() -> None:
    old = "tags: [{name: ACME-1, keywords: [k], url: http://u, metadata: {A: '1'}}]"
    rows = walked(old)
    rows = applied(rows, planned("tags: [{name: ACME-1}]", rows, scope=NO_DELETE))
    change = change_of(planned("tags: [{name: ACME-1}]", rows), "tag/ACME-1")
    assert (change.keywords_deleted, change.metadata_deleted) == (("k",), ("A",))
    assert [field.name for field in change.fields if field.clears] == ["url"]


def test_a_selected_tag_brings_its_category_if_that_may_have_been_deleted() -> None:
    """A run that died while it deleted the category left its id in the row."""
    recorded = [row("category/acme", label="L", status=Status.DELETED, doubtful=True)]
    plan = planned(FILES, recorded, scope=Scope(targets=("tag/ACME-1",)))
    assert actions(plan) == {"tag/ACME-1": "create", "category/acme": "update"}


def test_no_delete_takes_nothing_from_a_needed_category() -> None:
    recorded = [row("category/acme", label="L", server_id=None, confirmed=False, doubtful=True)]
    scope = Scope(targets=("tag/ACME-1",), no_delete=True)
    assert change_of(planned(FILES, recorded, scope=scope), "category/acme").fields == ()


def test_no_delete_keeps_the_fields_of_a_renamed_category() -> None:
    recorded = [row("category/old", label="L", description="d")]
    manifest = "tagCategories: [{externalId: new, label: L, previously: [old]}]"
    plan = planned(manifest, recorded, scope=NO_DELETE)
    assert items(plan, Step.CATEGORIES)[0].effects[0].fields == {"label": "L", "description": "d"}


def test_a_category_that_a_tag_keeps_follows_its_rename() -> None:
    rows = walked("tagCategories: [{externalId: old}]\ntags: [{name: ACME-1, category: old}]")
    renamed = "tagCategories: [{externalId: new, previously: [old]}]\ntags: [{name: ACME-1}]"
    rows = applied(rows, planned(renamed, rows, scope=NO_DELETE))
    assert rows[Key(Kind.TAG, "ACME-1")].body.fields["category"] == "new"
    assert actions(planned("{}", rows)) == {"category/new": "delete", "tag/ACME-1": "delete"}


def test_an_empty_selection_does_nothing_and_warns() -> None:
    plan = planned(FILES, RECORDED, scope=Scope(paths=("manifests/nothing",)))
    assert says_nothing(plan)
    assert [found.code for found in plan.diagnostics] == ["nothing-selected"]


@pytest.mark.parametrize("target", ["tag/LEFT", "tag/L*"])
def test_a_target_that_is_no_longer_managed_is_a_warning(target: str) -> None:
    """Otherwise an empty plan would look as if the tag were as declared."""
    rows = [row("tag/LEFT", status=Status.RELEASED), row("tag/HERE")]
    plan = planned("tags: [{name: HERE}]", rows, scope=Scope(targets=(target,)))
    (warning,) = plan.diagnostics
    assert (plan.changes, warning.code) == ((), "nothing-selected")
    assert warning.message.startswith(f"{target} is released")
    back = planned("tags: [{name: HERE}, {name: LEFT}]", rows, scope=Scope(targets=(target,)))
    assert back.diagnostics == ()
