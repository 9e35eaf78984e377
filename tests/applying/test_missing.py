"""A 404 answer to each kind of call, and repairs in the same run (docs/planning.md 4.7)."""

from __future__ import annotations

import pytest

from syncengine.resource import Key

from .bench import Bench, Json, category, numbered, tag
from .picky import Picky

pytestmark = pytest.mark.slow


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
