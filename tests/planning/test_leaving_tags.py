"""docs/planning.md 2.2: tags that are gone from the manifests; policies, the `removed` section, protection."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncengine.errors import Problems
from syncengine.plan.aim import UNDECLARED
from syncengine.plan.calls import Step
from syncengine.plan.checks import likely_renames
from syncengine.plan.diff import SendCause
from syncengine.resource import Body, Key, Kind, Recorded, Removal, Status
from tests.manifest.loading import counted

from .applying import applied, walked
from .estate import (
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
    steps,
)

TAG = Key(Kind.TAG, "ACME-1")
RECORDED = row("tag/ACME-1", "k", metadata={"Client": "ACME"})


def removed(how: str) -> str:
    return f"removed: [{{tag: ACME-1, as: {how}, reason: ticket 77}}]"


def test_forget_is_the_default() -> None:
    """A forgotten tag stays on the service: nothing is sent, and its row becomes released."""
    rows = {TAG: RECORDED}
    plan = planned("{}", rows)
    after = applied(rows, plan)
    assert (actions(plan), plan.sends_something, plan.changes_something) == ({"tag/ACME-1": "forget"}, False, True)
    assert (after[TAG].status, after[TAG].body) == (Status.RELEASED, RECORDED.body)
    assert says_nothing(planned("{}", after))


def test_retire_deletes_recorded_keywords_and_keeps_the_rest() -> None:
    rows = {TAG: RECORDED}
    plan = planned("{}", rows, tag_removal=Removal.RETIRE)
    after = applied(rows, plan)
    assert (actions(plan), steps(plan)) == ({"tag/ACME-1": "retire"}, ["keyword deletes"])
    assert (change_of(plan, "tag/ACME-1").keywords_deleted, plan.records) == (("k", "ACME-1"), ())
    assert (after[TAG].status, after[TAG].body.keywords) == (Status.RETIRED, ())
    assert after[TAG].body.metadata == {"Client": "ACME"}
    assert says_nothing(planned("{}", after, tag_removal=Removal.RETIRE))


def test_a_retired_tag_that_is_declared_again_is_reopened() -> None:
    rows = {TAG: RECORDED}
    retired = applied(rows, planned("{}", rows, tag_removal=Removal.RETIRE))
    back = planned("tags: [{name: ACME-1, keywords: [k], metadata: {Client: ACME}}]", retired)
    assert (actions(back), change_of(back, "tag/ACME-1").again) == ({"tag/ACME-1": "update"}, SendCause.REOPENED)
    doubted = {TAG: replace(retired[TAG], doubtful=True)}
    assert change_of(planned("tags: [{name: ACME-1}]", doubted), "tag/ACME-1").again is SendCause.REOPENED
    after = applied(retired, back)
    assert says_nothing(planned("tags: [{name: ACME-1, keywords: [k], metadata: {Client: ACME}}]", after))


def test_retiring_a_tag_without_keywords_sends_nothing() -> None:
    rows = {TAG: row("tag/ACME-1", excludeTagNameKeyword=True)}
    plan = planned("{}", rows, tag_removal=Removal.RETIRE)
    assert (actions(plan), plan.sends_something) == ({"tag/ACME-1": "retire"}, False)
    assert applied(rows, plan)[TAG].status is Status.RETIRED


HALF_RETIRED = row("tag/ACME-1", status=Status.RETIRED, doubtful=True)
GOES_ON: dict[str, tuple[str, Removal, str]] = {
    "under the policy that began it": ("{}", Removal.RETIRE, "retire"),
    "of a renamed tag": ("tags: [{name: NEW, previously: [ACME-1]}]", Removal.FORGET, "retire"),
    "by its line": (removed("retire"), Removal.FORGET, "retire"),
    "under another policy": ("{}", Removal.FORGET, "forget"),
    "under a stronger policy": ("{}", Removal.DELETE, "delete"),
    "by a line that says otherwise": (removed("forget"), Removal.RETIRE, "forget"),
}


@pytest.mark.parametrize(("manifest", "policy", "action"), GOES_ON.values(), ids=GOES_ON)
def test_a_removal_that_was_interrupted_goes_on_as_is_asked_today(manifest: str, policy: Removal, action: str) -> None:
    """A removal that a run began takes no more than manifests and policy ask for now."""
    plan = planned(manifest, [HALF_RETIRED], tag_removal=policy, deletes_tags=True)
    assert actions(plan)["tag/ACME-1"] == action
    after = applied({TAG: HALF_RETIRED}, plan)
    assert planned(manifest, after, tag_removal=policy, deletes_tags=True).changes == ()


def test_delete_is_one_call_of_an_optional_operation() -> None:
    rows = {TAG: RECORDED}
    plan = planned("{}", rows, tag_removal=Removal.DELETE, deletes_tags=True)
    assert (actions(plan), steps(plan), plan.summary.requests) == ({"tag/ACME-1": "delete"}, ["tag deletes"], 1)
    assert applied(rows, plan)[TAG].status is Status.DELETED


def test_delete_without_its_endpoint_is_an_error() -> None:
    assert refused("{}", [RECORDED], tag_removal=Removal.DELETE) == {"delete-unsupported": "tag/ACME-1"}


def test_an_unsupported_delete_is_an_error_at_its_line() -> None:
    with pytest.raises(Problems) as raised:
        planned("tags: []\n" + removed("delete"), [RECORDED])
    (found,) = raised.value.found
    assert (found.file, found.line) == ("manifests/all.yaml", 2)


@pytest.mark.parametrize("policy", Removal)
@pytest.mark.parametrize("how", Removal)
def test_the_removed_section_overrides_the_policy(policy: Removal, how: Removal) -> None:
    plan = planned(removed(how), [RECORDED], tag_removal=policy, deletes_tags=True)
    assert actions(plan) == {"tag/ACME-1": how.value}
    assert change_of(plan, "tag/ACME-1").reason == "ticket 77"
    plan = planned(removed(how).replace(", reason: ticket 77", ""), [RECORDED], deletes_tags=True)
    assert change_of(plan, "tag/ACME-1").reason == UNDECLARED


@pytest.mark.parametrize("how", Removal)
def test_a_removed_line_that_was_applied_plans_nothing_more(how: Removal) -> None:
    rows = {TAG: RECORDED}
    after = applied(rows, planned(removed(how), rows, deletes_tags=True))
    assert says_nothing(planned(removed(how), after, deletes_tags=True))


@pytest.mark.parametrize("how", Removal)
def test_a_removed_line_for_an_unknown_tag_plans_nothing(how: Removal) -> None:
    assert says_nothing(planned(removed(how)))


FURTHER = {
    "released, then retire": (Status.RELEASED, "retire", {"tag/ACME-1": "retire"}),
    "released, then delete": (Status.RELEASED, "delete", {"tag/ACME-1": "delete"}),
    "released, then forget": (Status.RELEASED, "forget", {}),
    "retired, then delete": (Status.RETIRED, "delete", {"tag/ACME-1": "delete"}),
    "retired, then forget": (Status.RETIRED, "forget", {}),
    "retired, then retire": (Status.RETIRED, "retire", {}),
}


@pytest.mark.parametrize(("status", "how", "expected"), FURTHER.values(), ids=FURTHER)
def test_a_released_or_retired_tag_may_be_removed_further(status: Status, how: str, expected: dict[str, str]) -> None:
    """A line under `removed:` may take a released or retired tag further, and never brings it back."""
    before = row("tag/ACME-1", status=status)
    if status is Status.RETIRED:
        before = row("tag/ACME-1", status=status, excludeTagNameKeyword=True)
    assert actions(planned(removed(how), [before], deletes_tags=True)) == expected


@pytest.mark.parametrize("policy", Removal)
def test_a_policy_does_not_act_on_tags_that_left_before(policy: Removal) -> None:
    released = row("tag/ACME-1", status=Status.RELEASED)
    assert actions(planned("{}", [released], tag_removal=policy, deletes_tags=True)) == {}


def test_a_deletion_without_a_known_outcome_is_planned_again() -> None:
    doubtful = gone("tag/ACME-1", doubtful=True)
    assert actions(planned("{}", [doubtful], tag_removal=Removal.DELETE, deletes_tags=True)) == {"tag/ACME-1": "delete"}


# --- protection


@pytest.mark.parametrize("policy", Removal)
def test_a_protected_tag_is_kept_and_noted_once(policy: Removal) -> None:
    """A protected tag that is no longer declared is noted once and recorded as released."""
    rows: dict[Key, Recorded] = {TAG: row("tag/ACME-1", protect=True)}
    plan = planned("{}", rows, tag_removal=policy)
    assert (notes(plan), plan.changes_something, plan.summary.kept) == ([("tag/ACME-1", "kept")], False, 1)
    assert says_nothing(planned("{}", applied(rows, plan), tag_removal=policy))


@pytest.mark.parametrize("how", Removal)
def test_a_removed_line_does_not_lift_protection(how: Removal) -> None:
    assert actions(planned(removed(how), [row("tag/ACME-1", protect=True)], deletes_tags=True)) == {}


def test_protection_is_lifted_by_applying_it() -> None:
    protected, lifted = "tags: [{name: ACME-1, protect: true}]", "tags: [{name: ACME-1, protect: false}]"
    rows = walked(protected)
    plan = planned(lifted, rows)
    assert (rows[TAG].protect, plan.changes, plan.sends_something) == (True, (), False)
    assert actions(planned("{}", applied(rows, plan))) == {"tag/ACME-1": "forget"}


def test_removing_protection_and_the_tag_at_once_keeps_the_tag() -> None:
    rows = walked("tags: [{name: ACME-1, protect: true}]", "{}", "tags: [{name: ACME-1}]", "{}")
    assert rows[TAG].status is Status.RELEASED
    assert rows[TAG].protect is False


# --- renames


NEW = "tags: [{name: NEW, previously: [ACME-1]}]"


def test_a_renamed_tag_is_created_before_its_old_name_is_retired() -> None:
    plan = planned(NEW, [RECORDED])
    assert actions(plan) == {"tag/NEW": "create", "tag/ACME-1": "retire"}
    assert steps(plan) == ["tags", "keyword deletes"]
    assert [addresses(item.needs) for item in items(plan, Step.KEYWORD_DELETES)] == [["tag/NEW"], ["tag/NEW"]]
    assert (change_of(plan, "tag/NEW").previously, change_of(plan, "tag/ACME-1").reason) == ("ACME-1", "renamed to NEW")


def test_a_rename_is_done_once() -> None:
    assert says_nothing(planned(NEW, walked("tags: [{name: ACME-1}]", NEW)))


def test_a_rename_onto_a_recorded_tag_updates_it() -> None:
    plan = planned("tags: [{name: NEW, url: http://u, previously: [ACME-1]}]", [RECORDED, row("tag/NEW")])
    assert actions(plan) == {"tag/NEW": "update", "tag/ACME-1": "retire"}


@pytest.mark.parametrize("status", [Status.RELEASED, Status.RETIRED, Status.DELETED])
def test_a_former_name_that_left_already_is_not_retired_again(status: Status) -> None:
    before = row("tag/ACME-1", status=status, excludeTagNameKeyword=True)
    assert actions(planned(NEW, [before])) == {"tag/NEW": "create"}


def test_every_former_name_is_retired() -> None:
    """Two tags that become one are both retired, and the new tag names both."""
    plan = planned("tags: [{name: NEW, previously: [ACME-1, ACME-2]}]", [RECORDED, row("tag/ACME-2")])
    assert actions(plan) == {"tag/NEW": "create", "tag/ACME-1": "retire", "tag/ACME-2": "retire"}
    assert [change.merges for change in plan.changes if change.merges] == [("ACME-1", "ACME-2")]


def test_a_rename_does_not_lift_protection() -> None:
    plan = planned(NEW, [row("tag/ACME-1", protect=True)])
    assert (actions(plan), notes(plan)) == ({"tag/NEW": "create"}, [("tag/ACME-1", "kept")])


def test_a_former_name_that_a_line_deletes_leaves_nothing_to_do() -> None:
    manifest = NEW + "\n" + removed("delete")
    rows = applied({TAG: RECORDED}, planned(manifest, [RECORDED], deletes_tags=True))
    assert says_nothing(planned(manifest, rows, deletes_tags=True))


# --- suggestions


def test_a_tag_that_goes_and_one_that_comes_with_its_external_id_look_like_a_rename() -> None:
    plan = planned("tags: [{name: ACME-9, externalId: '47'}]", [row("tag/ACME-1", externalId="47")])
    (found,) = plan.diagnostics
    assert (found.code, found.address, found.line) == ("rename-suspected", "tag/ACME-9", 1)
    assert "previously: [ACME-1]" in found.message


NO_RENAMES = {
    "another id": (row("tag/ACME-1", externalId="48"), "externalId: '47'"),
    "no id": (row("tag/ACME-1"), "url: http://u"),
    "an empty id": (row("tag/ACME-1", externalId=""), "externalId: ''"),
    "said already": (row("tag/ACME-1", externalId="47"), "externalId: '47', previously: [ACME-1]"),
    "left before": (row("tag/ACME-1", externalId="47", status=Status.RELEASED), "externalId: '47'"),
}


@pytest.mark.parametrize(("before", "fields"), NO_RENAMES.values(), ids=NO_RENAMES)
def test_no_rename_is_suspected_otherwise(before: Recorded, fields: str) -> None:
    assert planned(f"tags: [{{name: ACME-9, {fields}}}]", [before]).diagnostics == ()


RENAMED = {
    "case and marks": (row("tag/Acme 42"), "name: ACME-42", "same name except for case and punctuation as tag/Acme 42"),
    "a description": (
        row("tag/OLD-1", description="Opposition"),
        "name: NEW-9, description: Opposition",
        "same description as tag/OLD-1",
    ),
    "keywords": (
        row("tag/OLD-1", "alpha", "bravo"),
        "name: NEW-9, keywords: [bravo, alpha]",
        "same keywords as tag/OLD-1",
    ),
}


@pytest.mark.parametrize(("before", "tag", "words"), RENAMED.values(), ids=RENAMED)
def test_alike_tags_look_like_a_rename_without_an_id(before: Recorded, tag: str, words: str) -> None:
    (found,) = planned(f"tags: [{{{tag}}}]", [before]).diagnostics
    assert found.code == "rename-suspected"
    assert found.message.startswith(f"{words}, which is removed: add `previously: [{before.key.name}]`")


NOT_ALIKE = {
    "another number": ([row("tag/ACME-41")], "tags: [{name: ACME-42}]"),
    "two of them go": (
        [row("tag/OLD-1", description="Fees"), row("tag/OLD-2", description="Fees")],
        "tags: [{name: NEW-9, description: Fees}]",
    ),
    "another category": (
        [row("category/acme", label="ACME"), row("tag/OLD-1", description="Fees", category="acme")],
        "tagCategories: [{externalId: acme, label: ACME}]\ntags: [{name: NEW-9, description: Fees}]",
    ),
    "no description": ([row("tag/OLD-1", description="")], "tags: [{name: NEW-9, description: ''}]"),
}


@pytest.mark.parametrize(("before", "manifest"), NOT_ALIKE.values(), ids=NOT_ALIKE)
def test_ambiguous_likeness_is_no_rename(before: list[Recorded], manifest: str) -> None:
    assert [d.code for d in planned(manifest, before).diagnostics if d.code == "rename-suspected"] == []


def test_an_alike_category_looks_like_a_rename() -> None:
    before = row("category/acme-corp", label="ACME Corp.", server_id="7")
    plan = planned("tagCategories: [{externalId: C-1, label: ACME Corp.}]", [before])
    (found,) = (d for d in plan.diagnostics if d.code == "rename-suspected")
    assert found.message.startswith("same label as category/acme-corp, which is removed: add `previously: [acme-corp]`")


def test_likely_renames_of_a_large_plan_are_not_compared_in_pairs() -> None:
    work = []
    for n in (150, 300):
        going = {Key(Kind.TAG, f"Old matter of nobody {at}"): Body({"description": f"d{at}"}) for at in range(n)}
        coming = {Key(Kind.TAG, f"New thing {at:05} elsewhere"): Body({"description": f"d{at}"}) for at in range(n)}
        same = {Key(Kind.TAG, f"Matter {'x' * at}"): Body() for at in range(n)}
        others = {Key(Kind.TAG, f"Matter {'y' * at}"): Body() for at in range(n)}
        calls, found = counted(lambda a={**going, **same}, b={**coming, **others}: list(likely_renames(a, b)))  # type: ignore[misc] # mypy knows no defaults here
        assert len(found) >= n
        work.append(calls)
    assert work[1] < 2.5 * work[0]


def test_a_line_that_names_no_tag_of_the_state_is_a_warning() -> None:
    """The warning suggests the nearest name; lines for recorded tags are fine, even after they left."""
    rows = [row("tag/ACME-41"), row("tag/LEFT-1", status=Status.RETIRED)]
    manifest = "tags: [{name: ACME-41}]\nremoved:\n  - {tag: LEFT-1, as: retire}\n  - {tag: ACME-14, as: retire}\n"
    (found,) = planned(manifest, rows).diagnostics
    assert (found.code, found.severity, found.address, found.line) == ("removed-unknown", "warning", "tag/ACME-14", 4)
    assert found.message == "tag/ACME-14 is in `removed`, but the state has no such tag; did you mean `ACME-41`?"


def test_a_state_without_tags_has_no_warning_about_lines() -> None:
    assert planned("removed: [{tag: ACME-14, as: retire}]", []).diagnostics == ()
