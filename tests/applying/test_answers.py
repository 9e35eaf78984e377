"""The outcome of each item of a batch, and 404 answers (docs/planning.md 4.3, 4.4, 4.6, 4.7)."""

from typing import Any

import pytest

from syncengine.resource import Key
from syncengine.sandbox.store import CATEGORIES, TAGS

from .bench import Bench, Json, activity_type, category, numbered, tag
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


# --- 404 answers, and repairs in the same run


def test_a_keyword_that_is_already_gone_is_settled_and_the_tag_sent_whole(bench: Bench) -> None:
    """A person deleted the keyword and may have changed more of the tag."""
    bench.settings(service=("endpoints: {deleteKeyword: {path: /tag/keyword/delete}}",))  # the usual path
    bench.settle(tags=[tag("EDITED-1", keywords=["first", "second"])])
    bench.sandbox.person_deletes("keyword", "second", tag="EDITED-1")
    bench.sandbox.person_deletes("keyword", "first", tag="EDITED-1")
    ended = bench.apply(tags=[tag("EDITED-1", keywords=["first"])])
    assert (ended.exit_code, ended.not_applied(), ended.order()) == (0, {}, ["deleteKeyword", "upsertTags"])
    assert bench.sandbox.tag("EDITED-1")["keywords"] == ["EDITED-1", "first"]
    assert bench.doubtful() == set()
    bench.assert_at_rest()


EDITS: dict[str, tuple[Json, Json, str]] = {
    "a keyword delete": ({"keywords": ["first", "second"]}, {"keywords": ["first"]}, "deleteKeyword"),
    "a metadata delete": (
        {"metadata": {"Client": "A", "Old": "1"}},
        {"metadata": {"Client": "A"}},
        "deleteTagMetadata",
    ),
    "a keyword add": ({}, {"keywords": ["added"]}, "addKeywords"),
}


@pytest.mark.parametrize(("before", "after", "operation"), EDITS.values(), ids=EDITS)
def test_a_tag_that_is_gone_is_made_again_by_the_run_that_finds_out(
    bench: Bench, before: Json, after: Json, operation: str
) -> None:
    """The tag is still declared; its 404 settles no part of it, the upsert of the whole tag does."""
    bench.settle(tags=[tag("EDITED-1", description="whole", **before)])
    bench.sandbox.person_deletes("tag", "EDITED-1")
    ended = bench.apply(tags=[tag("EDITED-1", description="whole", **after)])
    assert (ended.exit_code, ended.not_applied(), ended.order()) == (0, {}, [operation, "upsertTags"])
    held = bench.sandbox.tag("EDITED-1")
    assert (held["description"], held["metadata"]) == ("whole", after.get("metadata", {}))
    assert held["keywords"] == ["EDITED-1", *after.get("keywords", [])]
    with bench.state() as state:
        told = [entry.outcome for entry in state.history(Key.parse("tag/EDITED-1"))]
    assert told == ["settled", "failed" if operation == "addKeywords" else "settled", "doubted", "settled"]
    bench.assert_at_rest()


@pytest.mark.parametrize("words", [[], ["added"]], ids=["deletes alone", "after an add"])
def test_the_last_delete_ends_the_doubt_that_a_repair_leaves(bench: Bench, words: list[str]) -> None:
    """A person deleted a keyword: sent whole, the tag still has the metadata that the run deletes next."""
    bench.settle(tags=[tag("EDITED-1", keywords=["first"], metadata={"Client": "A", "Old": "1"})])
    bench.sandbox.person_deletes("keyword", "first", tag="EDITED-1")
    ended = bench.apply(tags=[tag("EDITED-1", keywords=words, metadata={"Client": "A"})])
    assert (ended.exit_code, ended.order()[-2:]) == (0, ["upsertTags", "deleteTagMetadata"])
    bench.assert_at_rest()


def test_a_keyword_is_added_by_any_path(bench: Bench) -> None:
    """A 404 of a path that never answered sends the tag whole, too, keywords included."""
    bench.settings(service=("endpoints: {addKeywords: {path: /tag/keyword/new}}",))
    bench.settle(tags=[tag("EDITED-1")])
    ended = bench.apply(tags=[tag("EDITED-1", keywords=["added"])])
    assert (ended.exit_code, ended.not_applied(), ended.codes) == (0, {}, ["only-404"])
    bench.assert_at_rest()


def test_a_repair_that_fails_leaves_the_tag_doubtful(bench: Bench) -> None:
    """The next run sends it again."""
    bench.settle(tags=[tag("EDITED-1", keywords=["first"])])
    bench.sandbox.person_deletes("tag", "EDITED-1")
    bench.sandbox.fault("upsertTags", itemErrors=[{"index": 0, "errorDescription": "not today"}])
    ended = bench.apply(tags=[tag("EDITED-1")])
    assert (ended.exit_code, ended.outcomes) == (3, {"tag/EDITED-1": "failed"})
    assert bench.doubtful() == {"tag/EDITED-1"}
    bench.assert_converges()
    assert set(bench.sandbox.tags()) == {"EDITED-1"}


@pytest.mark.parametrize(("kind", "removal"), [("tag", "retire"), ("tag", "delete"), ("category", "forget")])
def test_what_is_to_leave_and_is_already_gone_is_settled(bench: Bench, kind: str, removal: str) -> None:
    """A person deleted it first. It is not made again only to be removed."""
    bench.settings(f"policy: {{tagRemoval: {removal}}}", service=("endpoints: {deleteTag: {path: /tag/delete}}",))
    section, make = {"tag": ("tags", tag), "category": ("tagCategories", category)}[kind]
    bench.settle(**{section: [make("LEAVES-1"), make("STAYS-1")]})
    bench.sandbox.person_deletes(kind, "LEAVES-1")
    ended = bench.apply(**{section: [make("STAYS-1")]})
    assert (ended.exit_code, ended.outcomes) == (0, {f"{kind}/LEAVES-1": "applied"})
    assert {*bench.sandbox.tags(), *bench.sandbox.category_ids()} == {"STAYS-1"}
    bench.assert_at_rest()


MISTYPED = ("endpoints: {deleteKeyword: {path: /tag/keyword/remove}}",)


def test_a_mistyped_path_settles_nothing(bench: Bench) -> None:
    """The 404s look like deleted keywords; every run ends incomplete and names the path."""
    names = numbered("TAG", 3)
    for more in (["more"], []):  # the usual path has answered, which proves nothing of another
        bench.settle(tags=[tag(name, keywords=[f"{name} words", *more]) for name in names])
    bench.settings(service=MISTYPED)
    bench.wants(tags=[tag(name) for name in names])
    for _ in range(2):
        ended = bench.apply()
        assert (ended.exit_code, set(ended.outcomes.values())) == (3, {"failed"})
        warnings = [d.message for d in ended.applied.report.diagnostics if d.code == "only-404"]
        assert len(warnings) == 1
        assert all("/tag/keyword/remove" in words for words in (*warnings, *map(ended.words, ended.outcomes)))
    assert all("words" in str(held["keywords"]) for held in bench.sandbox.state()["tags"])
    bench.settings()
    bench.assert_converges()
    assert all("words" not in str(held["keywords"]) for held in bench.sandbox.state()["tags"])


def test_a_mistyped_path_deletes_no_category_and_no_tag(bench: Bench) -> None:
    wrong = "{deleteTagCategory: {path: /x}, deleteTagMetadata: {path: /y}, deleteTag: {path: /z}}"
    bench.settings("policy: {tagRemoval: delete}", service=(f"endpoints: {wrong}",))
    bench.settle(tagCategories=[category("leaves")], tags=[tag("TAG-1", metadata={"Old": "1"}), tag("TAG-2")])
    ended = bench.apply(tags=[tag("TAG-1")])
    assert (ended.exit_code, set(ended.outcomes.values())) == (3, {"failed"})
    assert {"category/leaves", "tag/TAG-1", "tag/TAG-2"} == ended.not_applied().keys()
    assert (set(bench.sandbox.tags()), bench.sandbox.category_ids().keys()) == ({"TAG-1", "TAG-2"}, {"leaves"})


ELSEWHERE = "deleteKeyword: {path: /v2/keyword/delete"


@pytest.fixture
def elsewhere(picky: Picky, bench: Bench) -> Picky:
    """A service whose keywords are deleted at another path, which answers 404 as often as it is told."""
    picky.elsewhere = {"/v2/keyword/delete": "deleteKeyword"}
    bench.settings(service=(f"endpoints: {{{ELSEWHERE}}}}}",), url=picky.url)
    return picky


def missing(picky: Picky, times: int) -> None:
    """Answer the next deletes of keywords with 404."""
    left = iter(range(times))
    picky.refuses = lambda operation, body: (
        (404, {}) if operation == "deleteKeyword" and next(left, None) is not None else None
    )


def test_a_404_of_another_path_counts_once_it_has_answered(elsewhere: Picky, bench: Bench) -> None:
    """After a 2xx in this run, in any order, or in an earlier run, a 404 of the path counts as deleted."""
    names = numbered("TAG", 3)
    bench.settle(tags=[tag(name, keywords=[f"{name} words", f"{name} more"]) for name in names])
    missing(elsewhere, 1)
    bench.settle(tags=[tag(name, keywords=[f"{name} words"]) for name in names])
    missing(elsewhere, 3)
    assert bench.apply(tags=[tag(name) for name in names]).exit_code == 0


def test_a_404_of_a_confirmed_path_counts(elsewhere: Picky, bench: Bench) -> None:
    """Nothing but 404 ever comes of a path whose only keywords people deleted first: the project file confirms it."""
    missing(elsewhere, 99)
    bench.settle(tags=[tag("TAG-1", keywords=["words"])])
    refused = bench.apply(tags=[tag("TAG-1")])
    assert (refused.exit_code, "confirmed: true" in refused.words("tag/TAG-1")) == (3, True)
    bench.settings(service=(f"endpoints: {{{ELSEWHERE}, confirmed: true}}}}",), url=elsewhere.url)
    assert bench.apply().exit_code == 0
    assert not bench.doubtful()


def test_an_operation_that_answered_otherwise_once_is_no_warning(bench: Bench) -> None:
    """One keyword that was deleted already does not suggest a mistyped path."""
    bench.settle(tags=[tag("FIRST-1", keywords=["words"]), tag("SECOND-1", keywords=["others"])])
    bench.sandbox.person_deletes("keyword", "words", tag="FIRST-1")
    ended = bench.apply(tags=[tag("FIRST-1"), tag("SECOND-1")])
    assert (ended.exit_code, ended.codes) == (0, [])
