"""Declared tags that people put into a category which a plan deletes (docs/planning.md 2.2)."""

from __future__ import annotations

from typing import Any

import pytest

from syncengine.plan.request import Scope

from .bench import Bench, category, tag


def person_makes(bench: Bench, name: str, *, category: str | None = None, **given: Any) -> None:
    """Create a tag in the console, or change it, perhaps in a category, which is sent by the service's own id."""
    place = {"tagCategoryId": bench.sandbox.category_ids()[category]} if category else {}
    bench.sandbox.say("/tags", {"tags": [{"name": name, "additionalKeywords": ["by hand"], **place, **given}]})


def assert_out(bench: Bench, name: str = "HAND") -> None:
    """Check that the tag exists with what people gave it, in no category, and that nothing is left to do."""
    held = bench.sandbox.tag(name)
    assert ("by hand" in held["keywords"], held.get("tagCategoryId") or None) == (True, None)
    assert "c" not in bench.sandbox.category_ids()
    bench.assert_at_rest()


@pytest.mark.parametrize("former", [[], ["OLD"]], ids=["new", "the new name of another tag"])
def test_a_tag_made_by_hand_outlives_its_category_once_it_is_declared(bench: Bench, former: list[str]) -> None:
    """Its upsert takes it out of the category, as the plan shows, and each deletion waits for all such upserts."""
    bench.settle(tagCategories=[category("c"), category("d")], tags=[tag(name) for name in former])
    person_makes(bench, "HAND", category="c")
    person_makes(bench, "OTHER", category="d")
    bench.wants(tags=[tag("HAND", previously=former), tag("OTHER")])
    (change,) = [change for change in bench.plan().changes if change.key.name == "OTHER"]
    assert [(field.name, field.after) for field in change.fields if field.name == "category"] == [("category", "")]
    ended = bench.apply()
    assert (ended.exit_code, ended.order()[-1]) == (0, "deleteTagCategory")
    assert_out(bench)
    assert_out(bench, "OTHER")


def test_what_was_declared_without_a_category_stays_in_its_own_where_none_is_deleted(bench: Bench) -> None:
    """A value that was never declared is never sent."""
    bench.settle(tagCategories=[category("c")])
    person_makes(bench, "HAND", category="c")
    bench.settle(tagCategories=[category("c")], tags=[tag("HAND")])
    assert bench.sandbox.tag("HAND")["tagCategoryId"] == bench.sandbox.category_ids()["c"]


@pytest.mark.parametrize("listed", ["name\nHAND\n", "name,description\nHAND,theirs\n"])
def test_an_adopted_tag_whose_category_was_not_listed_may_be_in_any(bench: Bench, listed: str) -> None:
    """The category stays unknown after an update that does not name one."""
    bench.settle(tagCategories=[category("c")])
    person_makes(bench, "HAND", category="c", description="theirs")
    (bench.folder / "list.csv").write_text(listed, encoding="utf-8")
    adopted = bench.program.run("adopt", "list.csv")
    assert adopted.code == 0, adopted.err
    bench.settle(tagCategories=[category("c")], tags=[tag("HAND", description="ours")])
    assert bench.apply(tags=[tag("HAND", description="ours")]).exit_code == 0
    assert_out(bench)


def test_a_category_stays_while_a_tag_that_may_be_in_it_is_not_selected(bench: Bench) -> None:
    """The category is deleted only when the tag is selected too."""
    bench.settle(tagCategories=[category("c")])
    person_makes(bench, "HAND", category="c")
    bench.wants(tags=[tag("HAND")])
    alone = bench.plan(scope=Scope(targets=("category/c",)))
    assert [note.message for note in alone.notes] == ["not deleted: tag HAND may be in it and is not selected"]
    assert (alone.changes, alone.stages) == ((), ())
    assert bench.apply(scope=Scope(targets=("category/c", "tag/HAND"))).exit_code == 0
    assert_out(bench)


# --- tags at rest


OURS = tag("HAND", description="ours", keywords=["k"])


def put(bench: Bench, **given: Any) -> None:
    """Declare the tag outside any category, from which people move it into one that is then to be deleted."""
    bench.settle(tagCategories=[category("c")], tags=[{**OURS, **given}])
    person_makes(bench, "HAND", category="c", additionalKeywords=[])
    bench.wants(tags=[OURS])


def assert_declared(bench: Bench) -> None:
    held = bench.sandbox.tag("HAND")
    assert ("k" in held["keywords"], held["description"]) == (True, "ours")
    bench.assert_at_rest()


@pytest.mark.parametrize("when", ["made before", "moved after", "category taken away before"])
def test_a_tag_at_rest_outlives_the_category_that_people_put_it_in(bench: Bench, when: str) -> None:
    """The same run sends the tag again after the deletion, and a note says so."""
    bench.settle(tagCategories=[category("c")])
    if when == "made before":
        person_makes(bench, "HAND", category="c")
    if when == "category taken away before":
        bench.settle(tagCategories=[category("c")], tags=[{**OURS, "category": "c"}])
    bench.settle(tagCategories=[category("c")], tags=[OURS])
    if when != "made before":
        person_makes(bench, "HAND", category="c", additionalKeywords=[])
    bench.wants(tags=[OURS])
    assert [(note.kind, str(note.key)) for note in bench.plan().notes] == [("sent-again", "category/c")]
    ended = bench.apply()
    assert (ended.exit_code, ended.order()) == (0, ["deleteTagCategory", "upsertTags"])
    assert_declared(bench)


@pytest.mark.parametrize("how", [{"reassert": True}, {}])
def test_a_tag_that_the_plan_changes_outlives_its_category(bench: Bench, how: dict[str, Any]) -> None:
    """The upsert of the tag is sent before the deletion."""
    put(bench, description="old")
    ended = bench.apply(**how)
    assert (ended.exit_code, ended.order()) == (0, ["upsertTags", "deleteTagCategory", "upsertTags"])
    assert_declared(bench)


def test_a_tag_that_is_sent_again_has_only_declared_fields(bench: Bench) -> None:
    """Visibility and category stay as the people who changed them meanwhile left them."""
    bench.settle(tagCategories=[category("c"), category("theirs")], tags=[OURS])
    person_makes(bench, "HAND", category="theirs", additionalKeywords=[])
    before = bench.sandbox.tag("HAND")
    assert bench.apply(tagCategories=[category("theirs")], tags=[OURS]).exit_code == 0
    assert bench.sandbox.tag("HAND") == before
    bench.assert_at_rest()


@pytest.mark.parametrize("trouble", ["refused", "not sent", "end of the deletion unknown"])
def test_tags_without_a_category_are_sent_by_the_next_run_where_they_were_not(bench: Bench, trouble: str) -> None:
    """Until then the rows of these tags stay in doubt."""
    put(bench)
    if trouble == "refused":
        bench.sandbox.fault("upsertTags", status=400, times=None)
    else:
        operation = "upsertTags" if trouble == "not sent" else "deleteTagCategory"
        bench.sandbox.unavailable(operation, times=None, processed=trouble != "not sent")
    assert bench.apply().exit_code == 3
    bench.assert_converges()
    assert_declared(bench)


def test_a_tag_that_is_not_selected_is_sent_again_too(bench: Bench) -> None:
    """The tag is sent as recorded, whatever the manifests declare now."""
    put(bench)
    bench.wants(tags=[{**OURS, "description": "later"}])
    assert bench.apply(scope=Scope(targets=("category/c",))).exit_code == 0
    assert bench.sandbox.tag("HAND")["description"] == "ours"


@pytest.mark.parametrize("where", ["of another category", "of a category that lives elsewhere"])
def test_a_tag_that_people_moved_out_of_its_category_is_moved_back_first(bench: Bench, where: str) -> None:
    """The tag keeps what people gave it."""
    both = [category("c"), category("d")]
    bench.settle(tagCategories=both)
    id_of_d = bench.sandbox.category_ids()["d"]
    ours = {**OURS, **({"category": "d"} if where == "of another category" else {"tagCategoryId": id_of_d})}
    bench.settle(tagCategories=both, tags=[ours])
    person_makes(bench, "HAND", category="c")
    ended = bench.apply(tagCategories=[category("d")], tags=[ours])
    assert (ended.exit_code, ended.order()) == (0, ["upsertTags", "deleteTagCategory"])
    held = bench.sandbox.tag("HAND")
    assert (held["tagCategoryId"], "by hand" in held["keywords"]) == (id_of_d, True)
    assert_declared(bench)


@pytest.mark.parametrize("together", [True, False])
def test_a_protected_tag_is_made_anew_with_what_is_recorded(bench: Bench, *, together: bool) -> None:
    """The tag is no longer declared, but no plan may remove it."""
    put(bench, protect=True)
    if not together:
        bench.settle(tagCategories=[category("c")])
    bench.wants()
    assert bench.apply().exit_code == 0
    assert_declared(bench)


@pytest.mark.parametrize("place", [{}, {"category": "d"}])
def test_the_report_of_a_run_that_ends_early_leaves_out_unchanged_tags(bench: Bench, place: Any) -> None:
    both = [category("c"), category("d")]
    bench.settle(tagCategories=both, tags=[{**OURS, **place}, tag("REFUSED", category="d")])
    bench.sandbox.fault("upsertTags", status=400, times=None)
    bench.wants(tagCategories=both[1:], tags=[{**OURS, **place}, tag("REFUSED", category="d", description="new")])
    ended = bench.apply(max_errors=1)
    assert (ended.exit_code, sorted(ended.outcomes)) == (3, ["category/c", "tag/REFUSED"])
    bench.assert_converges()
