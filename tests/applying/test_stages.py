"""The order of stages, which call waits for which (docs/planning.md 4.1, 4.2), and trouble of each kind at each."""

from __future__ import annotations

import pytest

from tests.cli.estate import AFTER, BEFORE, DELETES_TAGS, WRITES
from tests.cli.service import Service

from .bench import AT_ONCE, Bench, Json, category, tag

pytestmark = pytest.mark.slow


def test_stages_are_sent_in_the_order_in_which_nothing_breaks(bench: Bench) -> None:
    """Categories, activity types, upserts, keyword adds and deletes, metadata deletes, sweep, category deletes."""
    bench.settings(service=DELETES_TAGS)
    bench.settle(**BEFORE)
    ended = bench.settle(**AFTER)
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
    ended = bench.apply(tagCategories=[category("known", description="new"), category("late")], tags=inside)
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
    ended = bench.apply(tags=[tag("EDITED-1", keywords=["after"], description="new"), tag("OTHER-1")])
    assert ended.outcomes == {"tag/EDITED-1": "failed", "tag/OTHER-1": "applied"}
    assert [request["body"]["tagName"] for request in ended.sent("deleteKeyword")] == ["OTHER-1"]
    assert ended.sent("deleteTagMetadata") == []
    assert "before" in bench.sandbox.tag("EDITED-1")["keywords"]
    bench.assert_converges()
    assert bench.sandbox.tag("EDITED-1")["keywords"] == ["EDITED-1", "after"]


def test_a_tag_stays_in_doubt_after_an_unknown_delete_of_another_spelling(bench: Bench) -> None:
    """The upsert waits for the delete: acknowledged, it would end the doubt whether the old spelling is still there."""
    bench.settle(tags=[tag("T-0001", keywords=["patent one"])])
    bench.sandbox.unavailable("deleteKeyword", processed=True)
    ended = bench.apply(tags=[tag("T-0001", keywords=["Patent One"])])
    assert (ended.exit_code, ended.sent("upsertTags"), bench.doubtful()) == (3, [], {"tag/T-0001"})
    bench.assert_converges()


# --- trouble: the next undisturbed apply ends as an undisturbed run would have


KINDS: dict[str, Json] = {
    "unavailable": {"status": 503, "headers": AT_ONCE, "times": 6},
    "answer lost": {"status": 503, "headers": AT_ONCE, "times": 6, "apply": True},
    "gateway page": {"status": 200, "body": "<html>Welcome</html>"},
    "gateway page after all": {"status": 200, "body": "<html>Welcome</html>", "apply": True},
    "empty object": {"status": 200, "body": {}, "apply": True},
    "refused": {"status": 400, "body": {"message": "not today"}},
    "forbidden": {"status": 403},
    "key refused": {"status": 401},
    "cut after": {"drop": "after"},
    "expired": {"expireSession": True},
}
OPERATIONS = ("teamInfo", *WRITES)
FOR_ALL_ALIKE = ("forbidden", "key refused", "cut after")
SEARCHED = ("unavailable", "answer lost", "gateway page after all", "refused", "expired")
"""Trouble that all operations meet in the same way, or that the crash model brings to each: here, over HTTP, three of
them meet it."""
CASES = [
    (operation, kind)
    for operation in OPERATIONS
    for kind in KINDS
    if kind not in (*FOR_ALL_ALIKE, *SEARCHED) or operation in ("teamInfo", "upsertTags", "completeSyncSession")
]


def begun(bench: Bench) -> None:
    """Set up the state before the plan, with other people's data in every place that the plan touches."""
    bench.settings(service=DELETES_TAGS)
    bench.settle(**BEFORE)
    theirs = [{"name": "THEIRS-1", "tagCategoryId": bench.sandbox.category_ids()["named-before"]}, {"name": "THEIRS-2"}]
    bench.sandbox.say("/tags", {"tags": [*theirs, {"name": "LOSES-1", "additionalKeywords": ["theirs"]}]})
    bench.wants(**AFTER)


@pytest.fixture(scope="module")
def end(_started: Service, tmp_path_factory: pytest.TempPathFactory) -> Json:
    """What an undisturbed run leaves."""
    _started.reset()
    bench = Bench(tmp_path_factory.mktemp("undisturbed"), _started)
    begun(bench)
    asked = {request["operation"] for request in bench.settle().requests}
    assert set(OPERATIONS) <= asked, "faults would meet nothing"
    return _started.holds()


@pytest.mark.parametrize(("operation", "kind"), CASES)
def test_after_trouble_the_next_run_ends_as_an_undisturbed_one(
    end: Json, bench: Bench, operation: str, kind: str
) -> None:
    """The exit code shows whether something is left to do, and nothing of other people changes."""
    begun(bench)
    bench.sandbox.fault(operation, **KINDS[kind])
    ended = bench.apply()
    assert ended.exit_code in (0, 3, 7, 9)
    assert (ended.exit_code == 0) == (ended.status == "complete")
    bench.sandbox.heal()
    if ended.exit_code:
        assert bench.apply().exit_code == 0
    assert bench.sandbox.holds() == end
    bench.assert_at_rest()
