"""docs/planning.md 2.1, 1.2, 7: what is not selected is left alone; rows in doubt are planned again and say why."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from syncengine.plan.calls import Step
from syncengine.plan.request import Scope
from syncengine.project.model import Ownership
from syncengine.resource import Key, Kind, Recorded, Removal, Source, Status
from syncengine.state.codec import digest

from .applying import Fate, applied, walked
from .estate import (
    Rows,
    actions,
    addresses,
    change_of,
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
    row("tag/IN-NO-FILE", source=None),
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
    "whole": (Scope(), {"tag/GONE", "tag/IN-NO-FILE"}),
    "by address": (Scope(targets=("tag/GONE",)), {"tag/GONE"}),
    "by the file where it last stood": (Scope(paths=("manifests/zeta",)), {"tag/GONE"}),
    "not selected": (Scope(targets=("tag/ACME-1",)), set()),
    "in another file": (Scope(paths=("manifests/acme.yaml",)), set()),
    "excluded": (Scope(excludes=("tag/GONE",)), {"tag/IN-NO-FILE"}),
    "in all files": (Scope(paths=("manifests",)), {"tag/GONE"}),
}


@pytest.mark.parametrize(("scope", "expected"), GONE.values(), ids=GONE)
def test_only_selected_resources_are_removed(scope: Scope, expected: set[str]) -> None:
    plan = planned(FILES, RECORDED, scope=scope)
    assert {address for address, action in actions(plan).items() if action == "forget"} == expected


# --- units


RENAME = "tags: [{name: NEW-1, previously: [OLD-1]}]"


@pytest.mark.parametrize("name", ["tag/NEW-1", "tag/OLD-1", "tag/*"])
def test_a_rename_is_selected_or_excluded_as_a_whole(name: str) -> None:
    rows = [row("tag/OLD-1")]
    both = {"tag/NEW-1": "create", "tag/OLD-1": "retire"}
    assert actions(planned(RENAME, rows, scope=Scope(targets=(name,)))) == both
    assert actions(planned(RENAME, rows, scope=Scope(excludes=(name,)))) == {}


def test_a_category_is_renamed_if_a_selected_tag_needs_it() -> None:
    renamed = "tagCategories: [{externalId: new, previously: [old]}]\ntags: [{name: OUT}, {name: IN, category: new}]"
    plans = [planned(renamed, [row("category/old")], scope=Scope(targets=(f"tag/{name}",))) for name in ("OUT", "IN")]
    assert actions(plans[0]) == {"tag/OUT": "create"}
    assert actions(plans[1]) == {"tag/IN": "create", "category/new": "update"}


UNFINISHED = row("category/acme", label="L", status=Status.DELETED, doubtful=True)
"""What a run leaves that died while it deleted the category: the id is in the row."""
NEEDED = {
    "not recorded": ([], "create"),
    "deleted": ([gone("category/acme")], "create"),
    "maybe deleted": ([UNFINISHED], "update"),
    "without an id": ([row("category/acme", server_id=None, confirmed=False, doubtful=True)], "create"),
    "known": ([row("category/acme", label="Differs")], None),
}


@pytest.mark.parametrize(("recorded", "brought"), NEEDED.values(), ids=NEEDED)
def test_a_selected_tag_brings_the_category_that_it_needs(recorded: list[Recorded], brought: str | None) -> None:
    """And `--no-delete` takes nothing from that."""
    plan = planned(FILES, recorded, scope=Scope(targets=("tag/ACME-1",)))
    assert (actions(plan)["tag/ACME-1"], actions(plan).get("category/acme")) == ("create", brought)
    kept = planned(FILES, recorded, scope=Scope(targets=("tag/ACME-1",), no_delete=True))
    assert [change.fields for change in kept.changes if change.key.kind is Kind.CATEGORY] == [()] * bool(brought)


# --- category deletes under a selection


WAITS: dict[str, tuple[str, str, Scope]] = {
    "one that moves out": ("tags: [{name: ACME-1}]", "ACME-1", Scope(targets=("category/*",))),
    "one that is excluded": ("{}", "LEFT", Scope(excludes=("tag/LEFT",))),
    "one that is not selected": ("{}", "LEFT", Scope(targets=("category/acme",))),
    "one whose rename is excluded": (RENAME, "OLD-1", Scope(excludes=("tag/NEW-1",))),
}


@pytest.mark.parametrize(("manifest", "member", "scope"), WAITS.values(), ids=WAITS)
def test_a_category_waits_for_members_that_are_not_selected(manifest: str, member: str, scope: Scope) -> None:
    plan = planned(manifest, [row("category/acme"), row(f"tag/{member}", category="acme")], scope=scope)
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


PLAIN = "tags: [{name: ACME-1}]"
LEAST = {
    Kind.TAG: "tags: [{name: ACME-1%s}]",
    Kind.CATEGORY: "tagCategories: [{externalId: acme%s}]",
    Kind.ACTIVITY_TYPE: "activityTypes: [{code: A101, label: L%s}]",
}
KEPT = {
    "keyword k": (row("tag/ACME-1", "k"), ""),
    "metadata Client": (row("tag/ACME-1", metadata={"Client": "x"}), ""),
    "metadata Blank": (row("tag/ACME-1", metadata={"Blank": "x", "Old": ""}), ", metadata: {Blank: '', Old: ''}"),
    "field url": (row("tag/ACME-1", url="http://u"), ""),
    "field managedBy": (row("tag/ACME-1", managedBy="me"), ", managedBy: ''"),
    "field path": (row("tag/ACME-1", path="/x"), ""),
    "field category": (row("tag/ACME-1", category="x"), ""),
    "field tagCategoryId": (row("tag/ACME-1", tagCategoryId="x"), ""),
    "field visibility": (row("tag/ACME-1", visibility="PRIVATE"), ""),
    "field description": (row("category/acme", description="d"), ""),
    "field keywords": (row("category/acme", keywords=("k",)), ""),
    "description": (row("activity-type/A101", label="L", description="d"), ""),
}


@pytest.mark.parametrize("what", KEPT)
def test_no_delete_takes_nothing_from_resources_that_stay(what: str) -> None:
    """Neither what is no longer declared, nor what is declared as empty."""
    recorded, empty = KEPT[what]
    plan = planned(LEAST[recorded.key.kind] % empty, [recorded], scope=NO_DELETE)
    assert (plan.changes, notes(plan)) == ((), [(str(recorded.key), "left-out")])
    assert plan.notes[0].message.endswith(f" {what}")


def test_no_delete_applies_the_rest_of_a_change() -> None:
    recorded = [row("tag/ACME-1", "old", url="http://u", path="/one", metadata={"A": "1", "B": "1"})]
    manifest = "tags: [{name: ACME-1, keywords: [new], externalId: '47', path: /other, metadata: {B: '2'}}]"
    plan = planned(manifest, recorded, scope=NO_DELETE)
    change = change_of(plan, "tag/ACME-1")
    assert (change.keywords_added, change.keywords_deleted) == (("new",), ())
    assert (change.metadata_set, change.metadata_deleted) == ({"B": "2"}, ())
    assert {field.name: field.after for field in change.fields} == {"externalId": "47", "path": "/other"}
    assert items(plan, Step.TAGS)[0].effects[0].cleared == ()
    later = change_of(planned(manifest, applied({recorded[0].key: recorded[0]}, plan)), "tag/ACME-1")
    assert (later.keywords_deleted, later.metadata_deleted) == (("old",), ("A",))
    assert [field.name for field in later.fields if field.clears] == ["url"], "once it may be"


def test_no_delete_lets_a_tag_move() -> None:
    recorded = [row("category/acme"), row("tag/ACME-1", category="acme")]
    manifest = "tagCategories: [{externalId: acme}]\ntags: [{name: ACME-1, tagCategoryId: x}]"
    plan = planned(manifest, recorded, scope=NO_DELETE)
    assert (actions(plan), notes(plan), plan.gate.tripped) == ({"tag/ACME-1": "update"}, [], False)


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


@pytest.mark.parametrize("target", ["tag/LEFT", "tag/L*"])
def test_a_target_that_is_no_longer_managed_is_a_warning(target: str) -> None:
    """Otherwise an empty plan would look as if the tag were as declared. So is a selection of nothing at all."""
    nothing = planned(FILES, RECORDED, scope=Scope(paths=("manifests/nothing",)))
    assert (says_nothing(nothing), [found.code for found in nothing.diagnostics]) == (True, ["nothing-selected"])
    rows = [row("tag/LEFT", status=Status.RELEASED), row("tag/HERE")]
    plan = planned("tags: [{name: HERE}]", rows, scope=Scope(targets=(target,)))
    (warning,) = plan.diagnostics
    assert (plan.changes, warning.code) == ((), "nothing-selected")
    assert warning.message.startswith(f"{target} is released")
    back = planned("tags: [{name: HERE}, {name: LEFT}]", rows, scope=Scope(targets=(target,)))
    assert back.diagnostics == ()


# --- rows in doubt


TAG = Key(Kind.TAG, "ACME-1")
PLAIN = "tags: [{name: ACME-1}]"
MANIFEST = """
tagCategories: [{externalId: acme, label: ACME}]
activityTypes: [{code: A101, label: Plan, enableIfNew: true}]
tags: [{name: ACME-1, category: acme}]
"""
UPDATED = {"category/acme": "update", "activity-type/A101": "update", "tag/ACME-1": "update"}
WHY = "sent again, since an earlier call failed or its outcome is unknown"
AGAIN = "sent again (--reassert)"
HALF_GONE = {"status": Status.DELETED, "doubtful": True}


def doubted(rows: Rows) -> Rows:
    return {key: replace(before, doubtful=True) for key, before in rows.items()}


def test_doubtful_rows_are_sent_again_whole_and_say_why() -> None:
    """An acknowledged whole ends the doubt. What no manifest declares stays as it is."""
    released = row("tag/OLD", status=Status.RELEASED)
    rows = doubted(walked(MANIFEST) | {released.key: released})
    plan = planned(MANIFEST, rows)
    assert (actions(plan), {change.reason for change in plan.changes}) == (UPDATED, {WHY})
    assert all(item.effects[0].whole for call in plan.calls() for item in call.items)
    assert says_nothing(planned(MANIFEST, applied(rows, plan)))


def test_an_acknowledged_keyword_delete_ends_no_doubt() -> None:
    """A keyword delete says nothing about the rest of the tag, so a doubtful tag is always upserted."""
    assert steps(planned(PLAIN, [row("tag/ACME-1", "k", doubtful=True)])) == ["tags", "keyword deletes"]


@pytest.mark.parametrize(
    ("doubts", "is_new"),
    [({"confirmed": False}, True), ({"confirmed": False, "doubtful": True}, True), (HALF_GONE, False)],
    ids=["never confirmed", "creation in doubt", "removal in doubt"],
)
def test_a_tag_that_may_not_be_there_is_sent_whole(doubts: dict[str, Any], is_new: bool) -> None:
    plan = planned(PLAIN, [row("tag/ACME-1", **doubts)])
    assert (actions(plan), steps(plan)) == ({"tag/ACME-1": "create" if is_new else "update"}, ["tags"])
    assert (items(plan, Step.TAGS)[0].new, change_of(plan, "tag/ACME-1").reason) == (is_new, WHY)


@pytest.mark.parametrize(
    ("address", "again"),
    [("tag/ACME-1", "rebuilt"), ("activity-type/A101", "rebuilt"), ("category/acme", "id-unknown")],
)
def test_a_rebuilt_row_says_so_and_a_category_without_its_id_says_that(address: str, again: str) -> None:
    rebuilt = replace(row(address, doubtful=True, confirmed=False, server_id=None), run="rebuild-1")
    assert change_of(planned(MANIFEST, walked(MANIFEST) | {rebuilt.key: rebuilt}), address).again == again


def test_an_unconfirmed_type_still_takes_its_label() -> None:
    """The creation may not have happened, so fields that count only on creation are sent."""
    rows = [row("activity-type/A101", label="Old", confirmed=False, doubtful=True)]
    plan = planned("activityTypes: [{code: A101, label: New, enableIfNew: true}]", rows)
    assert {field.effect for field in change_of(plan, "activity-type/A101").fields} == {"applies"}


def test_a_refused_delete_of_a_keyword_is_tried_again() -> None:
    rows = {TAG: row("tag/ACME-1", "old")}
    after = applied(rows, planned(PLAIN, rows), lambda: Fate.REFUSED)
    assert (after[TAG].doubtful, after[TAG].body.keywords) == (True, ("old", "ACME-1"))
    assert change_of(planned(PLAIN, after), "tag/ACME-1").keywords_deleted == ("old",)


def test_a_doubtful_tag_is_removed_in_one_step() -> None:
    rows: Rows = {TAG: row("tag/ACME-1", doubtful=True)}
    plan = planned("{}", rows)
    assert actions(plan) == {"tag/ACME-1": "forget"}
    assert says_nothing(planned("{}", applied(rows, plan)))


# --- reassert


def test_reasserting_sends_all_that_is_desired_each_time() -> None:
    """It adds no sweep and trips no gate, and the plan's digests are of the recorded rows, without the added doubt."""
    rows = walked(MANIFEST)
    plan = planned(MANIFEST, rows, reassert=True)
    assert (actions(plan), {change.reason for change in plan.changes}) == (UPDATED, {AGAIN})
    assert (plan.reasserts, plan.sweep, plan.gate.tripped) == (True, None, False)
    assert plan.prior == {key: digest(before) for key, before in rows.items()}
    after = applied(rows, plan)
    assert actions(planned(MANIFEST, after, reassert=True)) == UPDATED
    assert says_nothing(planned(MANIFEST, after))
    in_doubt = planned(MANIFEST, doubted(rows), reassert=True)
    assert {change.reason for change in in_doubt.changes} == {WHY}, "real doubt keeps its own reason"


def test_reasserting_computes_deletes_as_always() -> None:
    rows = [row("tag/ACME-1", "old", metadata={"A": "1"}), row("tag/GONE"), row("activity-type/A101")]
    plan, plain = planned(PLAIN, rows, reassert=True), planned(PLAIN, rows)
    assert (actions(plan), plan.gate) == (actions(plain), plain.gate)
    assert change_of(plan, "tag/ACME-1").keywords_deleted == ("old",)


LEFT = {
    "released": row("tag/ACME-1", status=Status.RELEASED),
    "retired": row("tag/ACME-1", status=Status.RETIRED, excludeTagNameKeyword=True),
    "deleted": gone("tag/ACME-1"),
}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT)
def test_reasserting_sends_what_left_only_if_it_is_declared_again(left: Recorded) -> None:
    plan = planned(PLAIN, [left], reassert=True)
    assert sent(plan, Step.TAGS, "tag/ACME-1").whole
    assert (change_of(plan, "tag/ACME-1").action.word == "create") is (left.status is Status.DELETED)
    assert (change_of(plan, "tag/ACME-1").reason is None) is (left.status is Status.DELETED)
    assert says_nothing(planned("{}", [left], reassert=True))
