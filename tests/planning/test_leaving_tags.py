"""docs/planning.md 2.2: tags that are gone from the manifests; policies, the `removed` section, protection."""

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
from .estate import actions, addresses, ask, change_of, gone, items, notes, planned, refused, row, says_nothing, steps

TAG = Key(Kind.TAG, "ACME-1")
RECORDED = row("tag/ACME-1", "k", metadata={"Client": "ACME"})
NAMELESS = row("tag/ACME-1", excludeTagNameKeyword=True)


def removed(how: str) -> str:
    return f"removed: [{{tag: ACME-1, as: {how}, reason: ticket 77}}]"


WAYS: dict[str, tuple[Removal, Recorded, list[str], Status, tuple[str, ...]]] = {
    "forget sends nothing": (Removal.FORGET, RECORDED, [], Status.RELEASED, ("k", "ACME-1")),
    "retire deletes keywords alone": (Removal.RETIRE, RECORDED, ["keyword deletes"] * 2, Status.RETIRED, ()),
    "retire without keywords": (Removal.RETIRE, NAMELESS, [], Status.RETIRED, ()),
    "delete is one call": (Removal.DELETE, RECORDED, ["tag deletes"], Status.DELETED, ()),
}


@pytest.mark.parametrize(("policy", "before", "sent", "status", "keywords"), WAYS.values(), ids=WAYS)
def test_a_policy_removes_a_tag_that_no_manifest_declares(
    policy: Removal, before: Recorded, sent: list[str], status: Status, keywords: tuple[str, ...]
) -> None:
    rows = {TAG: before}
    plan = planned("{}", rows, tag_removal=policy, deletes_tags=True)
    assert (actions(plan), plan.changes_something) == ({"tag/ACME-1": policy.value}, True)
    assert [stage.step.value for stage in plan.stages for _ in stage.calls] == sent
    assert (change_of(plan, "tag/ACME-1").reason, bool(plan.records)) == (UNDECLARED, not sent)
    after = applied(rows, plan)
    assert after[TAG].status is status
    if status is not Status.DELETED:
        assert (after[TAG].body.keywords, after[TAG].body.metadata) == (keywords, before.body.metadata)
    assert says_nothing(planned("{}", after, tag_removal=policy, deletes_tags=True))


def test_a_retired_tag_that_is_declared_again_is_reopened() -> None:
    rows = {TAG: RECORDED}
    retired = applied(rows, planned("{}", rows, tag_removal=Removal.RETIRE))
    same = "tags: [{name: ACME-1, keywords: [k], metadata: {Client: ACME}}]"
    for before in (retired, {TAG: replace(retired[TAG], doubtful=True)}):
        plan = planned(same, before)
        assert (actions(plan), steps(plan)) == ({"tag/ACME-1": "update"}, ["tags"])
        assert change_of(plan, "tag/ACME-1").again is SendCause.REOPENED
        assert says_nothing(planned(same, applied(before, plan)))


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
    plan = planned(manifest, [HALF_RETIRED], tag_removal=policy, deletes_tags=True)
    assert actions(plan)["tag/ACME-1"] == action
    after = applied({TAG: HALF_RETIRED}, plan)
    assert planned(manifest, after, tag_removal=policy, deletes_tags=True).changes == ()


def test_delete_without_its_endpoint_is_an_error_at_the_line_that_asks_for_it() -> None:
    assert refused("{}", [RECORDED], tag_removal=Removal.DELETE) == {"delete-unsupported": "tag/ACME-1"}
    with pytest.raises(Problems) as raised:
        planned("tags: []\n" + removed("delete"), [RECORDED])
    (found,) = raised.value.found
    assert (found.file, found.line) == ("manifests/all.yaml", 2)


@pytest.mark.parametrize("policy", Removal)
@pytest.mark.parametrize("how", Removal)
def test_the_removed_section_overrides_the_policy_once(policy: Removal, how: Removal) -> None:
    """And plans nothing more after it was applied, nor for a tag that is unknown."""
    rows = {TAG: RECORDED}
    plan = planned(removed(how), rows, tag_removal=policy, deletes_tags=True)
    assert (actions(plan), change_of(plan, "tag/ACME-1").reason) == ({"tag/ACME-1": how.value}, "ticket 77")
    without_reason = planned(removed(how).replace(", reason: ticket 77", ""), rows, deletes_tags=True)
    assert change_of(without_reason, "tag/ACME-1").reason == UNDECLARED
    assert says_nothing(planned(removed(how), applied(rows, plan), tag_removal=policy, deletes_tags=True))
    assert says_nothing(planned(removed(how)))


RELEASED, RETIRED = row("tag/ACME-1", status=Status.RELEASED), replace(NAMELESS, status=Status.RETIRED)
FURTHER: dict[str, tuple[Recorded, str, Removal, dict[str, str]]] = {
    "released, then retire": (RELEASED, removed("retire"), Removal.FORGET, {"tag/ACME-1": "retire"}),
    "released, then delete": (RELEASED, removed("delete"), Removal.FORGET, {"tag/ACME-1": "delete"}),
    "released, then forget": (RELEASED, removed("forget"), Removal.FORGET, {}),
    "retired, then delete": (RETIRED, removed("delete"), Removal.FORGET, {"tag/ACME-1": "delete"}),
    "retired, then forget": (RETIRED, removed("forget"), Removal.FORGET, {}),
    "retired, then retire": (RETIRED, removed("retire"), Removal.FORGET, {}),
    "released, under a policy of retire": (RELEASED, "{}", Removal.RETIRE, {}),
    "released, under a policy of delete": (RELEASED, "{}", Removal.DELETE, {}),
    "a delete of unknown end": (gone("tag/ACME-1", doubtful=True), "{}", Removal.DELETE, {"tag/ACME-1": "delete"}),
}


@pytest.mark.parametrize(("before", "manifest", "policy", "expected"), FURTHER.values(), ids=FURTHER)
def test_a_tag_that_left_is_removed_further_only_by_a_line(
    before: Recorded, manifest: str, policy: Removal, expected: dict[str, str]
) -> None:
    """A line under `removed:` may take a released or retired tag further, and never brings it back."""
    assert actions(planned(manifest, [before], tag_removal=policy, deletes_tags=True)) == expected


@pytest.mark.parametrize("policy", Removal)
def test_a_protected_tag_is_kept_and_noted_once(policy: Removal) -> None:
    """A protected tag that is no longer declared is recorded as released; a line under `removed:` changes nothing."""
    rows: dict[Key, Recorded] = {TAG: row("tag/ACME-1", protect=True)}
    plan = planned("{}", rows, tag_removal=policy)
    assert (notes(plan), plan.changes_something, plan.summary.kept) == ([("tag/ACME-1", "kept")], False, 1)
    assert says_nothing(planned("{}", applied(rows, plan), tag_removal=policy))
    assert actions(planned(removed(policy), rows, deletes_tags=True)) == {}


# --- renames


NEW = "tags: [{name: NEW, previously: [ACME-1]}]"


def test_a_renamed_tag_is_created_before_its_old_name_is_retired() -> None:
    plan = planned(NEW, [RECORDED])
    assert actions(plan) == {"tag/NEW": "create", "tag/ACME-1": "retire"}
    assert steps(plan) == ["tags", "keyword deletes"]
    assert [addresses(item.needs) for item in items(plan, Step.KEYWORD_DELETES)] == [["tag/NEW"], ["tag/NEW"]]
    assert (change_of(plan, "tag/NEW").previously, change_of(plan, "tag/ACME-1").reason) == ("ACME-1", "renamed to NEW")
    assert says_nothing(planned(NEW, walked("tags: [{name: ACME-1}]", NEW)))


RENAMES: dict[str, tuple[list[Recorded], dict[str, str], list[tuple[str, str]]]] = {
    "onto a recorded tag": ([RECORDED, row("tag/NEW", url="u")], {"tag/NEW": "update", "tag/ACME-1": "retire"}, []),
    "of a released tag": ([RELEASED], {"tag/NEW": "create"}, []),
    "of a retired tag": ([RETIRED], {"tag/NEW": "create"}, []),
    "of a deleted tag": ([gone("tag/ACME-1")], {"tag/NEW": "create"}, []),
    "of a protected tag": ([row("tag/ACME-1", protect=True)], {"tag/NEW": "create"}, [("tag/ACME-1", "kept")]),
}


@pytest.mark.parametrize(("before", "expected", "noted"), RENAMES.values(), ids=RENAMES)
def test_a_rename_retires_a_former_name_that_is_managed_and_unprotected(
    before: list[Recorded], expected: dict[str, str], noted: list[tuple[str, str]]
) -> None:
    plan = planned(NEW, before)
    assert (actions(plan), notes(plan)) == (expected, noted)


def test_every_former_name_is_retired() -> None:
    """Two tags that become one are both retired, and the new tag names both."""
    plan = planned("tags: [{name: NEW, previously: [ACME-1, ACME-2]}]", [RECORDED, row("tag/ACME-2")])
    assert actions(plan) == {"tag/NEW": "create", "tag/ACME-1": "retire", "tag/ACME-2": "retire"}
    assert [change.merges for change in plan.changes if change.merges] == [("ACME-1", "ACME-2")]


def test_a_former_name_that_a_line_deletes_leaves_nothing_to_do() -> None:
    manifest = NEW + "\n" + removed("delete")
    rows = applied({TAG: RECORDED}, planned(manifest, [RECORDED], deletes_tags=True))
    assert says_nothing(planned(manifest, rows, deletes_tags=True))


# --- suggestions


FEES = [row("tag/OLD-1", description="Fees"), row("tag/OLD-2", description="Fees")]
SUSPECTED: dict[str, tuple[list[Recorded], str, str]] = {
    "an external id": (
        [row("tag/ACME-1", externalId="47")],
        "tags: [{name: ACME-9, externalId: '47'}]",
        "same externalId as tag/ACME-1, which is removed: add `previously: [ACME-1]`",
    ),
    "case and marks": (
        [row("tag/Acme 42")],
        "tags: [{name: ACME-42}]",
        "same name except for case and punctuation as tag/Acme 42, which is removed: add `previously: [Acme 42]`",
    ),
    "a description": (
        FEES[:1],
        "tags: [{name: NEW-9, description: Fees}]",
        "same description as tag/OLD-1, which is removed: add `previously: [OLD-1]`",
    ),
    "keywords": (
        [row("tag/OLD-1", "alpha", "bravo")],
        "tags: [{name: NEW-9, keywords: [bravo, alpha]}]",
        "same keywords as tag/OLD-1, which is removed: add `previously: [OLD-1]`",
    ),
    "a category's label": (
        [row("category/acme-corp", label="ACME Corp.", server_id="7")],
        "tagCategories: [{externalId: C-1, label: ACME Corp.}]",
        "same label as category/acme-corp, which is removed: add `previously: [acme-corp]`",
    ),
}


@pytest.mark.parametrize(("before", "manifest", "words"), SUSPECTED.values(), ids=SUSPECTED)
def test_one_that_goes_and_one_that_comes_alike_look_like_a_rename(
    before: list[Recorded], manifest: str, words: str
) -> None:
    (found,) = (each for each in planned(manifest, before).diagnostics if each.code == "rename-suspected")
    assert found.message.startswith(words)
    assert (found.address, found.line) == (str(next(iter(ask(manifest).resources))), 1)


NO_RENAMES: dict[str, tuple[list[Recorded], str]] = {
    "another id": ([row("tag/ACME-1", externalId="48")], "{name: ACME-9, externalId: '47'}"),
    "no id": ([row("tag/ACME-1")], "{name: ACME-9, url: http://u}"),
    "an empty id": ([row("tag/ACME-1", externalId="")], "{name: ACME-9, externalId: ''}"),
    "said already": ([row("tag/ACME-1", externalId="47")], "{name: ACME-9, externalId: '47', previously: [ACME-1]}"),
    "left before": ([row("tag/ACME-1", externalId="47", status=Status.RELEASED)], "{name: ACME-9, externalId: '47'}"),
    "another number": ([row("tag/ACME-41")], "{name: ACME-42}"),
    "two of them go": (FEES, "{name: NEW-9, description: Fees}"),
    "another category": (
        [row("category/acme"), row("tag/OLD-1", description="Fees", category="acme")],
        "{name: NEW-9, description: Fees}",
    ),
    "no description": ([row("tag/OLD-1", description="")], "{name: NEW-9, description: ''}"),
}


@pytest.mark.parametrize(("before", "tag"), NO_RENAMES.values(), ids=NO_RENAMES)
def test_no_rename_is_suspected_otherwise(before: list[Recorded], tag: str) -> None:
    found = planned(f"tagCategories: [{{externalId: acme}}]\ntags: [{tag}]", before).diagnostics
    assert [each.code for each in found if each.code == "rename-suspected"] == []


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
    assert planned("removed: [{tag: ACME-14, as: retire}]", []).diagnostics == (), "no tag at all, so nothing is alike"
