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
    rows = doubted(walked(MANIFEST))
    plan = planned(MANIFEST, rows)
    assert actions(plan) == {"category/acme": "update", "activity-type/A101": "update", "tag/ACME-1": "update"}
    assert {change.reason for change in plan.changes} == {WHY}
    assert all(item.effects[0].whole for call in plan.calls() for item in call.items)


def test_an_acknowledged_whole_ends_the_doubt() -> None:
    rows = doubted(walked(MANIFEST))
    assert says_nothing(planned(MANIFEST, applied(rows, planned(MANIFEST, rows))))


def test_an_acknowledged_keyword_delete_ends_no_doubt() -> None:
    """A keyword delete says nothing about the rest of the tag, so a doubtful tag is always upserted."""
    rows = [row("tag/ACME-1", "k", doubtful=True)]
    assert steps(planned("tags: [{name: ACME-1}]", rows)) == ["tags", "keyword deletes"]


@pytest.mark.parametrize("doubtful", [True, False])
def test_an_unconfirmed_row_is_created_again(doubtful: bool) -> None:
    plan = planned("tags: [{name: ACME-1}]", [row("tag/ACME-1", confirmed=False, doubtful=doubtful)])
    assert (actions(plan), items(plan, Step.TAGS)[0].new) == ({"tag/ACME-1": "create"}, True)
    assert change_of(plan, "tag/ACME-1").reason == WHY


@pytest.mark.parametrize(
    ("address", "again"),
    [("tag/ACME-1", "rebuilt"), ("activity-type/A101", "rebuilt"), ("category/acme", "id-unknown")],
)
def test_a_rebuilt_row_says_so_and_a_category_without_its_id_says_that(address: str, again: str) -> None:
    rebuilt = replace(row(address, doubtful=True, confirmed=False, server_id=None), run="rebuild-1")
    rows = walked(MANIFEST) | {rebuilt.key: rebuilt}
    assert change_of(planned(MANIFEST, rows), address).again == again


def test_an_unconfirmed_type_still_takes_its_label() -> None:
    """The creation may not have happened, so fields that count only on creation are sent."""
    rows = [row("activity-type/A101", label="Old", confirmed=False, doubtful=True)]
    plan = planned("activityTypes: [{code: A101, label: New, enableIfNew: true}]", rows)
    assert {field.effect for field in change_of(plan, "activity-type/A101").fields} == {"applies"}


def test_a_desired_tag_whose_removal_is_in_doubt_is_sent_whole() -> None:
    """After a cascade with an unknown outcome, a tag that is declared again is sent whole."""
    rows = [row("tag/ACME-1", url="http://u", status=Status.DELETED, doubtful=True)]
    plan = planned("tags: [{name: ACME-1, url: http://u}]", rows)
    assert (actions(plan), steps(plan)) == ({"tag/ACME-1": "update"}, ["tags"])


def test_a_refused_delete_of_a_keyword_is_tried_again() -> None:
    """The row still has the keyword."""
    rows = {TAG: row("tag/ACME-1", "old", source=Source(FILE, 1))}
    plan = planned("tags: [{name: ACME-1}]", rows)
    after = applied(rows, plan, lambda: Fate.REFUSED)
    assert (after[TAG].doubtful, after[TAG].body.keywords) == (True, ("old", "ACME-1"))
    assert change_of(planned("tags: [{name: ACME-1}]", after), "tag/ACME-1").keywords_deleted == ("old",)


def test_a_doubtful_tag_is_removed_in_one_step() -> None:
    rows: Rows = {TAG: row("tag/ACME-1", doubtful=True)}
    plan = planned("{}", rows)
    assert actions(plan) == {"tag/ACME-1": "forget"}
    assert says_nothing(planned("{}", applied(rows, plan)))


def test_a_doubtful_released_row_stays_where_it_is() -> None:
    assert says_nothing(planned("{}", [row("tag/ACME-1", doubtful=True, status=Status.RELEASED)]))


# --- reassert


def reasserted(recorded: Rows, manifest: str = MANIFEST) -> Plan:
    return planned(manifest, recorded, reassert=True)


def test_reasserting_sends_all_that_is_desired() -> None:
    plan = reasserted(walked(MANIFEST))
    assert actions(plan) == {"category/acme": "update", "activity-type/A101": "update", "tag/ACME-1": "update"}
    assert {change.reason for change in plan.changes} == {AGAIN}
    assert plan.reasserts


def test_reasserting_again_and_again_is_the_same() -> None:
    rows = walked(MANIFEST)
    after = applied(rows, reasserted(rows))
    assert actions(reasserted(after)) == actions(reasserted(rows))
    assert says_nothing(planned(MANIFEST, after))


def test_reasserting_adds_no_sweep_and_trips_no_gate() -> None:
    plan = reasserted(walked(MANIFEST))
    assert (plan.sweep, plan.gate.tripped) == (None, False)


def test_reasserting_computes_deletes_as_always() -> None:
    rows = [row("tag/ACME-1", "old", metadata={"A": "1"}), row("tag/GONE"), row("activity-type/A101")]
    plan = planned("tags: [{name: ACME-1}]", rows, reassert=True)
    plain = planned("tags: [{name: ACME-1}]", rows)
    assert actions(plan) == actions(plain)
    assert plan.gate == plain.gate
    assert change_of(plan, "tag/ACME-1").keywords_deleted == ("old",)


@pytest.mark.parametrize("status", [Status.RELEASED, Status.RETIRED])
def test_reasserting_sends_what_is_declared_again(status: Status) -> None:
    rows = [row("tag/ACME-1", status=status)]
    plan = planned("tags: [{name: ACME-1}]", rows, reassert=True)
    assert sent(plan, Step.TAGS, "tag/ACME-1").whole


@pytest.mark.parametrize("status", [Status.RELEASED, Status.RETIRED, Status.DELETED])
def test_reasserting_touches_nothing_that_left(status: Status) -> None:
    left = (
        gone("tag/ACME-1") if status is Status.DELETED else row("tag/ACME-1", status=status, excludeTagNameKeyword=True)
    )
    assert says_nothing(planned("{}", [left], reassert=True))


def test_reasserting_does_not_revive() -> None:
    plan = planned("tags: [{name: ACME-1}]", [gone("tag/ACME-1")], reassert=True)
    assert actions(plan) == {"tag/ACME-1": "create"}
    assert change_of(plan, "tag/ACME-1").reason is None


def test_real_doubt_keeps_its_own_reason() -> None:
    assert change_of(reasserted(doubted(walked(MANIFEST))), "tag/ACME-1").reason == WHY


def test_the_digests_of_a_reasserting_plan_are_of_the_recorded_rows() -> None:
    """The plan's digests are of the recorded rows, without the doubt that `--reassert` adds."""
    rows = walked(MANIFEST)
    assert reasserted(rows).prior == {key: digest(before) for key, before in rows.items()}


def test_restored_rows_are_all_doubtful() -> None:
    released: Recorded = row("tag/OLD", status=Status.RELEASED)
    rows = doubted({**walked(MANIFEST), released.key: released})
    assert "tag/OLD" not in actions(planned(ask(MANIFEST), rows))
