"""docs/planning.md 1.2 and 7: rows in doubt are planned again and say why; `--reassert` doubts all that is desired."""

from typing import Any

import pytest
from msgspec.structs import replace

from syncengine.plan.calls import Step
from syncengine.resource import Key, Kind, Recorded, Status
from syncengine.state.codec import digest

from .applying import Fate, applied, walked
from .estate import Rows, actions, change_of, gone, items, planned, row, says_nothing, sent, steps

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
