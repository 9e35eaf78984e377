"""The outcome of each item of a batch (docs/planning.md 4.3, 4.4, 4.6)."""

from __future__ import annotations

from typing import Any

import pytest

from syncengine.sandbox.store import CATEGORIES, TAGS

from .bench import Bench, activity_type, category, numbered, tag
from .picky import Picky, refusing

pytestmark = pytest.mark.slow

THREE = [tag(name) for name in numbered("ITEM", 3)]
INDEX = {"index": 1, "errorDescription": "not this one"}


# --- refused items


def test_item_errors_in_a_success_fail_the_named_items_only(bench: Bench) -> None:
    """The result has file, line, operation, index and status, which is enough to annotate a pull request."""
    bench.sandbox.fault("upsertTags", itemErrors=[INDEX])
    bench.sandbox.fault("uploadActivityTypes", itemErrors=[INDEX])
    ended = bench.apply(tags=THREE, activityTypes=[activity_type(name) for name in numbered("ITEM", 3)])
    assert (ended.exit_code, ended.status) == (3, "incomplete")
    assert ended.not_applied() == {"tag/ITEM-0002": "failed", "activity-type/ITEM-0002": "failed"}
    assert bench.doubtful() == {"tag/ITEM-0002", "activity-type/ITEM-0002"}
    result = ended.results["tag/ITEM-0002"]
    assert (str(result.source), result.action.word) == ("manifests/all.yaml:7", "create")
    assert result.error is not None
    assert (result.error.message, result.error.operation) == ("not this one", "upsertTags")
    assert (result.error.index, result.error.status) == (1, 200)
    healed = bench.assert_converges()
    assert (healed.names("upsertTags"), healed.names("uploadActivityTypes")) == ([["ITEM-0002"]], [["ITEM-0002"]])


def test_item_errors_in_a_refusal_fail_the_named_items_and_the_rest_is_sent_again(bench: Bench) -> None:
    """A service that answers 400 for them has applied nothing of the batch."""
    bench.sandbox.choose(statusForItemErrors=400)
    ended = bench.apply(tags=[THREE[0], {**THREE[1], "tagCategoryId": "no-such-id"}, THREE[2]])
    assert ended.not_applied() == {"tag/ITEM-0002": "failed"}
    assert ended.names("upsertTags") == [numbered("ITEM", 3), ["ITEM-0001", "ITEM-0003"]]
    assert set(bench.sandbox.tags()) == {"ITEM-0001", "ITEM-0003"}
    bench.wants(tags=THREE)
    bench.assert_converges()


@pytest.mark.parametrize("index", [3, -1, True, "1", None], ids=str)
def test_an_index_that_fits_no_item_settles_nothing(bench: Bench, index: Any) -> None:
    """Nobody knows which item failed, so the next run sends all of them again."""
    body = {"errors": [{"index": index, "errorDescription": "which?"}]}
    bench.sandbox.fault("upsertTags", status=200, body=body, apply=True)
    ended = bench.apply(tags=THREE)
    assert (ended.exit_code, {*ended.outcomes.values()}, len(bench.doubtful())) == (3, {"unknown"}, 3)
    assert bench.assert_converges().names("upsertTags") == [numbered("ITEM", 3)]


def test_an_index_that_fits_no_item_of_a_refusal_settles_nothing(bench: Bench) -> None:
    """The batch counts as refused as a whole, so it is sent in halves."""
    bench.sandbox.fault("upsertTags", status=400, body={"errors": [{"index": 4, "errorDescription": "which?"}]})
    ended = bench.settle(tags=[tag(name) for name in numbered("ITEM", 4)])
    assert [request["items"] for request in ended.sent()] == [4, 2, 2]


# --- batches that are refused as a whole


@pytest.mark.parametrize("status", [400, 413])
def test_a_batch_that_is_refused_as_a_whole_is_halved_until_the_offender_stands_alone(
    bench: Bench, picky: Picky, status: int
) -> None:
    """One bad item of 64 costs a few more requests, and every other item is applied."""
    picky.refuses = refusing("upsertTags", "ITEM-0050", status)
    ended = bench.apply(tags=[tag(name) for name in numbered("ITEM", 64)])
    assert ended.not_applied() == {"tag/ITEM-0050": "failed"}
    assert "something in it is wrong" in ended.words("tag/ITEM-0050")
    assert len(picky.rules.store.keys(TAGS)) == 63
    assert len(picky.sent("upsertTags")) == 1 + 2 * 6


def test_categories_are_all_or_nothing_so_a_refused_batch_is_halved(bench: Bench, picky: Picky) -> None:
    """docs/service.md §1: nothing of a refused batch of categories was applied."""
    picky.refuses = refusing("upsertTagCategories", "C-0003", 422)
    bench.wants(tagCategories=[category(name) for name in numbered("C", 8)])
    assert bench.apply().not_applied() == {"category/C-0003": "failed"}
    assert len(picky.rules.store.keys(CATEGORIES)) == 7
    picky.refuses = lambda operation, body: None
    assert bench.apply().exit_code == 0
    assert picky.sent("upsertTagCategories")[-1] == ["C-0003"]


FIRST_ITEM = {"errors": [{"index": 0, "errorDescription": "all wrong"}]}


@pytest.mark.parametrize(
    ("answer", "alone", "calls"), [({"message": "all wrong"}, 32, 80), (FIRST_ITEM, 0, 33)], ids=["whole", "first"]
)
def test_a_service_that_refuses_everything_is_not_asked_about_each_item(
    bench: Bench, picky: Picky, answer: Any, alone: int, calls: int
) -> None:
    """After 32 offenders the rest fails with the same words; also where each refusal names the first item only."""
    picky.refuses = lambda operation, body: (400, answer) if operation == "upsertTags" else None
    ended = bench.apply(tags=[tag(name) for name in numbered("ITEM", 300)])
    assert (ended.exit_code, {*ended.outcomes.values()}) == (3, {"failed"})
    assert {ended.words(address) for address in ended.outcomes} == {"all wrong"}
    assert [len(names) for names in picky.sent("upsertTags")].count(1) == alone
    assert len(picky.sent("upsertTags")) <= calls


# --- 402


def test_at_the_plan_s_limit_recorded_tags_are_sent_on_their_own(bench: Bench) -> None:
    """The team has three tags and room for two more; seven are wanted: three edits and two of the four new ones."""
    recorded, new = numbered("OLD", 3), numbered("NEW", 4)
    bench.settle(tags=[tag(name) for name in recorded])
    bench.sandbox.choose(tagLimit=5)
    ended = bench.apply(tags=[tag(name, description="edited") for name in recorded] + [tag(name) for name in new])
    assert ended.not_applied() == {"tag/NEW-0003": "failed", "tag/NEW-0004": "failed"}
    assert "plan limit" in ended.words("tag/NEW-0003")
    assert "allows 5 tags" in ended.words("tag/NEW-0004")
    assert {bench.sandbox.tag(name)["description"] for name in recorded} == {"edited"}
    bench.sandbox.choose(tagLimit=None)
    assert bench.assert_converges().names("upsertTags") == [["NEW-0003", "NEW-0004"]]


def test_new_tags_are_bisected_until_the_first_that_is_refused_alone(bench: Bench) -> None:
    """With room for 10 of 64 new tags, ten are created with far fewer requests than tags."""
    bench.sandbox.choose(tagLimit=10)
    ended = bench.apply(tags=[tag(name) for name in numbered("NEW", 64)])
    assert len(bench.sandbox.tags()) == 10
    assert sorted(ended.outcomes.values()).count("failed") == 54
    assert len(ended.sent()) < 20


# --- 401, 403


def test_401_stops_at_once(bench: Bench) -> None:
    """The run exits with 7 and sends nothing more; the next run with a valid key does the rest."""
    bench.sandbox.fault("upsertTagCategories", status=401, body={"message": "expired"})
    ended = bench.apply(tagCategories=[category("c")], tags=[tag("T-0001"), tag("T-0002", category="c")])
    assert ended.exit_code == 7
    assert [request["operation"] for request in ended.sent()] == ["upsertTagCategories"]
    assert "auth-failed" in ended.codes
    bench.assert_converges()


def test_401_to_a_category_without_its_id_stops_at_once(bench: Bench) -> None:
    """The category does not count as refused: only its id may have been."""
    bench.settle(tagCategories=[category("c")])
    bench.sandbox.fault("upsertTagCategories", status=400)
    bench.sandbox.fault("upsertTagCategories", status=401, times=None)
    ended = bench.apply(tagCategories=[category("c", label="edited")], tags=[tag("T-0001")])
    assert (ended.exit_code, ended.sent("upsertTags")) == (7, [])
    bench.assert_converges()


def test_403_is_authentication_only_if_team_info_fails_too(bench: Bench) -> None:
    """If teamInfo succeeds, the 403 concerns only this operation, and the run goes on."""
    bench.sandbox.fault("upsertTagCategories", status=403, times=None)
    ended = bench.apply(tagCategories=[category("c")], tags=[tag("T-0001")])
    assert ended.exit_code == 3
    assert ended.outcomes == {"category/c": "failed", "tag/T-0001": "applied"}
    bench.sandbox.fault("teamInfo", status=403, after=1, times=None)
    ended = bench.apply(tagCategories=[category("c")], tags=[tag("T-0001"), tag("T-0002")])
    assert ended.exit_code == 7
    assert ended.sent("upsertTags") == []
    bench.assert_converges()
