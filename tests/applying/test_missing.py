"""404 on each kind of call, and repairs in the same run (engine.md 4.7)."""

from __future__ import annotations

from .bench import Bench, category, numbered, tag


def test_a_keyword_that_is_already_gone_is_settled_and_the_tag_sent_whole(bench: Bench) -> None:
    """Somebody deleted it in the console: what else did they do to the tag?"""
    bench.settle(tags=[tag("EDITED-1", keywords=["first", "second"])])
    bench.sandbox.person_deletes("keyword", "second", tag="EDITED-1")
    bench.sandbox.person_deletes("keyword", "first", tag="EDITED-1")
    bench.wants(tags=[tag("EDITED-1", keywords=["first"])])
    ended = bench.apply()
    assert (ended.exit_code, ended.not_applied(), ended.order()) == (0, {}, ["deleteKeyword", "upsertTags"])
    assert bench.sandbox.tags()["EDITED-1"]["keywords"] == ["EDITED-1", "first"]
    assert bench.doubtful() == set()
    bench.assert_at_rest()


def test_a_tag_that_is_gone_is_made_again_when_a_keyword_delete_finds_out(bench: Bench) -> None:
    """The tag is still desired, so it is back at the end of the same run."""
    bench.settle(tags=[tag("EDITED-1", keywords=["first", "second"], description="whole")])
    bench.sandbox.person_deletes("tag", "EDITED-1")
    bench.wants(tags=[tag("EDITED-1", keywords=["first"], description="whole")])
    ended = bench.apply()
    assert (ended.exit_code, ended.not_applied()) == (0, {})
    held = bench.sandbox.tags()["EDITED-1"]
    assert (held["keywords"], held["description"]) == (["EDITED-1", "first"], "whole")
    bench.assert_at_rest()


def test_a_tag_that_is_gone_is_made_again_when_a_metadata_delete_finds_out(bench: Bench) -> None:
    """A metadata name that is already gone is no 404, a tag is."""
    bench.settle(tags=[tag("EDITED-1", metadata={"Client": "Acme", "Old": "1"})])
    bench.sandbox.person_deletes("tag", "EDITED-1")
    bench.wants(tags=[tag("EDITED-1", metadata={"Client": "Acme"})])
    ended = bench.apply()
    assert (ended.exit_code, ended.order()) == (0, ["deleteTagMetadata", "upsertTags"])
    assert bench.sandbox.tags()["EDITED-1"]["metadata"] == {"Client": "Acme"}
    bench.assert_at_rest()


def test_a_tag_that_is_gone_is_made_again_when_a_keyword_add_finds_out(bench: Bench) -> None:
    """The add is not settled by its 404, but by the upsert of the whole tag."""
    bench.settle(tags=[tag("EDITED-1", description="whole")])
    bench.sandbox.person_deletes("tag", "EDITED-1")
    bench.wants(tags=[tag("EDITED-1", description="whole", keywords=["added"])])
    ended = bench.apply()
    assert (ended.exit_code, ended.order()) == (0, ["addKeywords", "upsertTags"])
    assert bench.sandbox.tags()["EDITED-1"]["keywords"] == ["EDITED-1", "added"]
    bench.assert_at_rest()


def test_a_repair_that_fails_leaves_the_tag_doubtful(bench: Bench) -> None:
    """The next run sends it again."""
    bench.settle(tags=[tag("EDITED-1", keywords=["first"])])
    bench.sandbox.person_deletes("tag", "EDITED-1")
    bench.sandbox.fault("upsertTags", itemErrors=[{"index": 0, "errorDescription": "not today"}])
    bench.wants(tags=[tag("EDITED-1")])
    ended = bench.apply()
    assert (ended.exit_code, ended.outcomes) == (3, {"tag/EDITED-1": "failed"})
    assert bench.doubtful() == {"tag/EDITED-1"}
    bench.assert_converges()
    assert bench.sandbox.tags().keys() == {"EDITED-1"}


def test_a_tag_that_is_to_be_retired_and_is_gone_stays_gone(bench: Bench) -> None:
    """What the plan wanted gone is gone; nothing is made again only to be retired."""
    bench.settings("policy: {tagRemoval: retire}")
    bench.settle(tags=[tag("LEAVES-1"), tag("STAYS-1")])
    bench.sandbox.person_deletes("tag", "LEAVES-1")
    bench.wants(tags=[tag("STAYS-1")])
    ended = bench.apply()
    assert (ended.exit_code, ended.outcomes) == (0, {"tag/LEAVES-1": "applied"})
    assert bench.sandbox.tags().keys() == {"STAYS-1"}
    bench.assert_at_rest()


def test_a_category_that_is_already_gone_is_settled(bench: Bench) -> None:
    """Somebody was faster."""
    bench.settle(tagCategories=[category("leaves"), category("stays")])
    bench.sandbox.person_deletes("category", "leaves")
    bench.wants(tagCategories=[category("stays")])
    ended = bench.apply()
    assert (ended.exit_code, ended.outcomes) == (0, {"category/leaves": "applied"})
    bench.assert_at_rest()


def test_a_deleted_tag_that_is_already_gone_is_settled(bench: Bench) -> None:
    """deleteTag is outside the specification, and safe to repeat all the same."""
    bench.settings("policy: {tagRemoval: delete}", service=("endpoints: {deleteTag: {path: /tag/delete}}",))
    bench.settle(tags=[tag("LEAVES-1"), tag("STAYS-1")])
    bench.sandbox.person_deletes("tag", "LEAVES-1")
    bench.wants(tags=[tag("STAYS-1")])
    ended = bench.apply()
    assert (ended.exit_code, ended.outcomes) == (0, {"tag/LEAVES-1": "applied"})
    bench.assert_at_rest()


def test_an_operation_that_only_answers_404_is_a_warning_that_names_its_path(bench: Bench) -> None:
    """A mistyped endpoint looks like keywords that are gone already."""
    names = numbered("TAG", 3)
    bench.settle(tags=[tag(name, keywords=[f"{name} words"]) for name in names])
    bench.settings(service=("endpoints: {deleteKeyword: {path: /tag/keyword/remove}}",))
    bench.wants(tags=[tag(name) for name in names])
    ended = bench.apply()
    warnings = [d.message for d in ended.applied.report.diagnostics if d.code == "only-404"]
    assert len(warnings) == 1
    assert "/tag/keyword/remove" in warnings[0]


def test_an_operation_that_answered_otherwise_once_is_no_warning(bench: Bench) -> None:
    """One keyword that was gone already is nobody's mistyped path."""
    bench.settle(tags=[tag("FIRST-1", keywords=["words"]), tag("SECOND-1", keywords=["others"])])
    bench.sandbox.person_deletes("keyword", "words", tag="FIRST-1")
    bench.wants(tags=[tag("FIRST-1"), tag("SECOND-1")])
    ended = bench.apply()
    assert (ended.exit_code, ended.codes) == (0, [])
