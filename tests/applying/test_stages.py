"""The order of stages and batches, and which call waits for which (docs/planning.md 4.1, 4.2)."""

from __future__ import annotations

import pytest

from tests.cli.estate import AFTER, BEFORE, DELETES_TAGS

from .bench import Bench, category, tag

pytestmark = pytest.mark.slow


def test_stages_are_sent_in_the_order_in_which_nothing_breaks(bench: Bench) -> None:
    """Categories, activity types, upserts, keyword adds and deletes, metadata deletes, sweep, category deletes."""
    bench.settings(service=DELETES_TAGS)
    bench.settle(**BEFORE)
    bench.wants(**AFTER)
    ended = bench.apply()
    assert (ended.exit_code, ended.not_applied()) == (0, {})
    assert "tag/CASCADES-1" in ended.outcomes, "a deletion with the category, which the report names"
    assert "CASCADES-1" not in bench.sandbox.tags()
    assert ended.order() == [
        *("upsertTagCategories", "uploadActivityTypes", "upsertTags", "addKeywords"),
        *("deleteKeyword", "deleteTagMetadata", "deleteTag"),
        *("startSyncSession", "uploadActivityTypes", "completeSyncSession"),
        *("deleteTagCategory", "upsertTags"),  # of tags that people may have put into the deleted category
    ]
    bench.assert_at_rest()


def test_a_tag_waits_for_the_id_of_its_category_alone(bench: Bench) -> None:
    """Without the id the tag would be created outside its category; the new description of a known one is no reason."""
    bench.settle(tagCategories=[category("known")])
    bench.sandbox.unavailable("upsertTagCategories")
    inside = [tag("WAITS-1", category="late"), tag("GOES-1", category="known"), tag("GOES-2")]
    bench.wants(tagCategories=[category("known", description="new"), category("late")], tags=inside)
    ended = bench.apply()
    assert ended.exit_code == 3
    assert ended.not_applied() == {"category/known": "unknown", "category/late": "unknown", "tag/WAITS-1": "skipped"}
    assert "needs the id of category/late" in ended.words("tag/WAITS-1")
    assert ended.names("upsertTags") == [["GOES-1", "GOES-2"]]
    bench.assert_converges()
    assert bench.sandbox.tag("WAITS-1")["category"] == "late"


def test_deletes_of_a_tag_wait_for_its_own_upsert(bench: Bench) -> None:
    """A keyword is deleted only after its successor is added; when the upsert fails, nothing is deleted."""
    bench.settle(tags=[tag("EDITED-1", keywords=["before"], metadata={"Old": "1"}), tag("OTHER-1", keywords=["x-ray"])])
    bench.sandbox.fault("upsertTags", itemErrors=[{"index": 0, "errorDescription": "not today"}])
    bench.wants(tags=[tag("EDITED-1", keywords=["after"], description="new"), tag("OTHER-1")])
    ended = bench.apply()
    assert ended.outcomes == {"tag/EDITED-1": "failed", "tag/OTHER-1": "applied"}
    assert [request["body"]["tagName"] for request in ended.sent("deleteKeyword")] == ["OTHER-1"]
    assert ended.sent("deleteTagMetadata") == []
    assert "before" in bench.sandbox.tag("EDITED-1")["keywords"]
    bench.assert_converges()
    assert bench.sandbox.tag("EDITED-1")["keywords"] == ["EDITED-1", "after"]


def test_the_old_name_of_a_tag_is_retired_only_after_the_new_one_is_there(bench: Bench) -> None:
    """At every moment one of the two tags matches posted time."""
    bench.settle(tags=[tag("OLD-1")])
    bench.sandbox.unavailable("upsertTags")
    bench.wants(tags=[tag("NEW-1", previously=["OLD-1"])])
    ended = bench.apply()
    assert ended.outcomes == {"tag/NEW-1": "unknown", "tag/OLD-1": "skipped"}
    assert bench.sandbox.tag("OLD-1")["keywords"] == ["OLD-1"]
    bench.assert_converges()
    assert bench.sandbox.tag("OLD-1")["keywords"] == []


def test_a_category_is_not_deleted_while_a_wanted_tag_may_be_in_it(bench: Bench) -> None:
    """Deleting the category would delete the tag that failed to move."""
    bench.settle(tagCategories=[category("old")], tags=[tag("MOVES-1", category="old"), tag("MOVES-2", category="old")])
    bench.sandbox.fault("upsertTags", itemErrors=[{"index": 1, "errorDescription": "not today"}])
    bench.wants(tagCategories=[category("new")], tags=[tag("MOVES-1", category="new"), tag("MOVES-2", category="new")])
    ended = bench.apply()
    assert ended.sent("deleteTagCategory") == []
    assert "it depends on tag/MOVES-2" in ended.words("category/old")
    assert set(bench.sandbox.tags()) == {"MOVES-1", "MOVES-2"}
    bench.assert_converges()
    assert bench.sandbox.category_ids().keys() == {"new"}


def test_a_tag_stays_in_doubt_after_an_unknown_delete_of_another_spelling(bench: Bench) -> None:
    """The upsert waits for the delete: acknowledged, it would end the doubt whether the old spelling is still there."""
    bench.settle(tags=[tag("T-0001", keywords=["patent one"])])
    bench.wants(tags=[tag("T-0001", keywords=["Patent One"])])
    bench.sandbox.unavailable("deleteKeyword", processed=True)
    ended = bench.apply()
    assert (ended.exit_code, ended.sent("upsertTags"), bench.doubtful()) == (3, [], {"tag/T-0001"})
    bench.assert_converges()
