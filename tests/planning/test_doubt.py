"""docs/planning.md 1.2 and 7: rows in doubt are planned again and say why; `--reassert` doubts all that is desired."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncengine.plan.calls import Step
from syncengine.plan.model import Plan
from syncengine.resource import Key, Kind, Recorded, Source, Status
from syncengine.state.codec import digest

from .applying import Fate, applied, walked
from .estate import FILE, Rows, actions, ask, change_of, gone, items, planned, row, says_nothing, sent, steps

TAG = Key(Kind.TAG, "ACME-1")
MANIFEST = """
tagCategories: [{externalId: acme, label: ACME}]
activityTypes: [{code: A101, label: Plan, enableIfNew: true}]
tags: [{name: ACME-1, category: acme}]
"""
WHY = "sent again, since an earlier call failed or its outcome is unknown"
AGAIN = "sent again (--reassert)"


def doubted(rows: Rows) -> Rows:
    return {key: replace(before, doubtful=True) for key, before in rows.items()}


def test_doubtful_rows_are_sent_again_and_say_why() -> None:
    """Nothing differs, and yet each is an update with its reason, whole."""
    rows = doubted(walked(MANIFEST))
    plan = planned(MANIFEST, rows)
    assert actions(plan) == {"category/acme": "update", "activity-type/A101": "update", "tag/ACME-1": "update"}
    assert {change.reason for change in plan.changes} == {WHY}
    assert all(item.effects[0].whole for call in plan.calls() for item in call.items)


def test_an_acknowledged_whole_ends_the_doubt() -> None:
    """The next plan is empty."""
    rows = doubted(walked(MANIFEST))
    assert says_nothing(planned(MANIFEST, applied(rows, planned(MANIFEST, rows))))


def test_a_part_that_is_acknowledged_ends_no_doubt() -> None:
    """A keyword delete says nothing about the rest of the tag; so a doubtful tag is always upserted."""
    rows = [row("tag/ACME-1", "k", doubtful=True)]
    assert steps(planned("tags: [{name: ACME-1}]", rows)) == ["tags", "keyword deletes"]


def test_an_unconfirmed_row_is_created_again() -> None:
    """The service is not known to hold it, so it counts as new where that matters."""
    plan = planned("tags: [{name: ACME-1}]", [row("tag/ACME-1", confirmed=False, doubtful=True)])
    assert (actions(plan), items(plan, Step.TAGS)[0].new) == ({"tag/ACME-1": "create"}, True)
    assert change_of(plan, "tag/ACME-1").reason == WHY


def test_an_unconfirmed_type_still_takes_its_label() -> None:
    """What counts on creation only still counts: the creation may not have happened."""
    rows = [row("activity-type/A101", label="Old", confirmed=False, doubtful=True)]
    plan = planned("activityTypes: [{code: A101, label: New, enableIfNew: true}]", rows)
    assert {field.effect for field in change_of(plan, "activity-type/A101").fields} == {"applies"}


def test_a_removal_in_doubt_of_a_desired_tag_is_made_good() -> None:
    """A cascade without a known outcome, and the tag is wanted after all: it is sent whole."""
    rows = [row("tag/ACME-1", url="http://u", status=Status.DELETED, doubtful=True)]
    plan = planned("tags: [{name: ACME-1, url: http://u}]", rows)
    assert (actions(plan), steps(plan)) == ({"tag/ACME-1": "update"}, ["tags"])


def test_a_refused_delete_of_a_keyword_is_tried_again() -> None:
    """The row keeps its superset: the keyword is still there, and still unwanted."""
    rows = {TAG: row("tag/ACME-1", "old", source=Source(FILE, 1))}
    plan = planned("tags: [{name: ACME-1}]", rows)
    after = applied(rows, plan, lambda: Fate.REFUSED)
    assert (after[TAG].doubtful, after[TAG].body.keywords) == (True, ("old", "ACME-1"))
    assert change_of(planned("tags: [{name: ACME-1}]", after), "tag/ACME-1").keywords_deleted == ("old",)


def test_a_doubtful_tag_that_goes_leaves_in_one_step() -> None:
    """Doubt does not bring back what nobody wants."""
    rows: Rows = {TAG: row("tag/ACME-1", doubtful=True)}
    plan = planned("{}", rows)
    assert actions(plan) == {"tag/ACME-1": "forget"}
    assert says_nothing(planned("{}", applied(rows, plan)))


def test_a_doubtful_released_row_stays_where_it_is() -> None:
    """It is not ours to send any more."""
    assert says_nothing(planned("{}", [row("tag/ACME-1", doubtful=True, status=Status.RELEASED)]))


# --- reassert


def reasserted(recorded: Rows, manifest: str = MANIFEST) -> Plan:
    return planned(manifest, recorded, reassert=True)


def test_reasserting_sends_all_that_is_desired() -> None:
    """Rows keep their contents and lose their certainty, for this plan."""
    plan = reasserted(walked(MANIFEST))
    assert actions(plan) == {"category/acme": "update", "activity-type/A101": "update", "tag/ACME-1": "update"}
    assert {change.reason for change in plan.changes} == {AGAIN}
    assert plan.reasserts


def test_reasserting_again_and_again_is_the_same() -> None:
    """It does not depend on what was reasserted before, and a plain plan after it is empty."""
    rows = walked(MANIFEST)
    after = applied(rows, reasserted(rows))
    assert actions(reasserted(after)) == actions(reasserted(rows))
    assert says_nothing(planned(MANIFEST, after))


def test_reasserting_adds_no_sweep_and_trips_no_gate() -> None:
    """It is the remedy for edits in the console, not a removal."""
    plan = reasserted(walked(MANIFEST))
    assert (plan.sweep, plan.gate.tripped) == (None, False)


def test_reasserting_computes_deletes_as_always() -> None:
    """Lost keywords and metadata, and what is gone, are as in any plan."""
    rows = [row("tag/ACME-1", "old", metadata={"A": "1"}), row("tag/GONE"), row("activity-type/A101")]
    plan = planned("tags: [{name: ACME-1}]", rows, reassert=True)
    plain = planned("tags: [{name: ACME-1}]", rows)
    assert actions(plan) == actions(plain)
    assert plan.gate == plain.gate
    assert change_of(plan, "tag/ACME-1").keywords_deleted == ("old",)


@pytest.mark.parametrize("status", [Status.RELEASED, Status.RETIRED])
def test_reasserting_sends_what_is_declared_again(status: Status) -> None:
    """All desired is sent, also what is not ours at the moment."""
    rows = [row("tag/ACME-1", status=status)]
    plan = planned("tags: [{name: ACME-1}]", rows, reassert=True)
    assert sent(plan, Step.TAGS, "tag/ACME-1").whole


@pytest.mark.parametrize("status", [Status.RELEASED, Status.RETIRED, Status.DELETED])
def test_reasserting_touches_nothing_that_left(status: Status) -> None:
    """What is no longer wanted is not sent, nor does it leave again."""
    left = (
        gone("tag/ACME-1") if status is Status.DELETED else row("tag/ACME-1", status=status, excludeTagNameKeyword=True)
    )
    assert says_nothing(planned("{}", [left], reassert=True))


def test_reasserting_does_not_revive() -> None:
    """A deleted activity type stays an error, a deleted tag a creation."""
    plan = planned("tags: [{name: ACME-1}]", [gone("tag/ACME-1")], reassert=True)
    assert actions(plan) == {"tag/ACME-1": "create"}
    assert change_of(plan, "tag/ACME-1").reason is None


def test_real_doubt_keeps_its_own_reason() -> None:
    """The stronger reason is said."""
    assert change_of(reasserted(doubted(walked(MANIFEST))), "tag/ACME-1").reason == WHY


def test_a_saved_reasserting_plan_stands_on_the_rows_as_they_are() -> None:
    """docs/planning.md 6: digests are of the recorded rows, not of the doubt that the flag adds."""
    rows = walked(MANIFEST)
    assert reasserted(rows).prior == {key: digest(before) for key, before in rows.items()}


def test_restored_rows_are_all_doubtful() -> None:
    """docs/planning.md 7: a restored backup marks every row; kept and released ones stay as they are."""
    released: Recorded = row("tag/OLD", status=Status.RELEASED)
    rows = doubted({**walked(MANIFEST), released.key: released})
    assert "tag/OLD" not in actions(planned(ask(MANIFEST), rows))
