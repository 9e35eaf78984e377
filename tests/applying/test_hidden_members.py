"""Declared tags that people put into a category which a plan deletes (docs/planning.md 2.2)."""

from __future__ import annotations

from typing import Any

import pytest

from syncengine.plan.request import Scope
from tests.cli.program import Project

from .bench import Bench, category, tag


def person_makes(bench: Bench, name: str, *, category: str | None = None, **given: Any) -> None:
    """Create a tag in the console, or change it, perhaps in a category, which is sent by the service's own id."""
    place = {"tagCategoryId": bench.sandbox.categories()[category]["id"]} if category else {}
    bench.sandbox.say("/tags", {"tags": [{"name": name, "additionalKeywords": ["by hand"], **place, **given}]})


def assert_out(bench: Bench, name: str = "HAND") -> None:
    """Check that the tag exists with what people gave it, in no category, and that nothing is left to do."""
    held = bench.sandbox.tags()[name]
    assert "by hand" in held["keywords"]
    assert not held.get("tagCategoryId")
    assert "c" not in bench.sandbox.categories()
    bench.assert_at_rest()


def test_a_tag_made_by_hand_outlives_its_category_once_it_is_declared(bench: Bench) -> None:
    """The tag's upsert takes it out of the category before the category is deleted, and the plan shows it."""
    bench.settle(tagCategories=[category("c")])
    person_makes(bench, "HAND", category="c")
    bench.wants(tags=[tag("HAND")])
    (change,) = [change for change in bench.plan().changes if change.key.name == "HAND"]
    assert [(field.name, field.after) for field in change.fields if field.name == "category"] == [("category", "")]
    ended = bench.apply()
    assert (ended.exit_code, ended.order()) == (0, ["upsertTags", "deleteTagCategory"])
    assert_out(bench)


def test_what_was_declared_without_a_category_stays_in_its_own_where_none_is_deleted(bench: Bench) -> None:
    """A value that was never declared is never sent."""
    bench.settle(tagCategories=[category("c")])
    person_makes(bench, "HAND", category="c")
    bench.settle(tagCategories=[category("c")], tags=[tag("HAND")])
    assert bench.sandbox.tags()["HAND"]["tagCategoryId"] == bench.sandbox.categories()["c"]["id"]


def test_a_tag_made_by_hand_outlives_two_categories(bench: Bench) -> None:
    """The deletions of both categories wait for the upsert of the tag."""
    bench.settle(tagCategories=[category("c"), category("d")])
    person_makes(bench, "HAND", category="c")
    person_makes(bench, "OTHER", category="d")
    bench.wants(tags=[tag("HAND"), tag("OTHER")])
    assert bench.apply().exit_code == 0
    assert_out(bench)
    assert_out(bench, "OTHER")


def test_a_category_waits_for_a_tag_that_is_refused(bench: Bench) -> None:
    """A tag that moves away is still in the category until its upsert is acknowledged."""
    bench.settle(tagCategories=[category("c"), category("kept")])
    person_makes(bench, "HAND", category="c")
    bench.wants(tagCategories=[category("kept")], tags=[tag("HAND", category="kept")])
    bench.sandbox.fault("upsertTags", status=400, times=None)
    assert bench.apply().exit_code == 3
    assert "HAND" in bench.sandbox.tags()
    bench.assert_converges()
    assert "by hand" in bench.sandbox.tags()["HAND"]["keywords"]


@pytest.mark.parametrize("status", ["released", "retired", "forgotten"])
def test_a_tag_that_was_not_managed_meanwhile_may_have_been_moved(bench: Bench, status: str) -> None:
    """A tag that was released, retired or never recorded may be in any category."""
    bench.settle(tagCategories=[category("c")], tags=[tag("HAND")])
    bench.settings(f"policy: {{tagRemoval: {'retire' if status == 'retired' else 'forget'}}}")
    bench.settle(tagCategories=[category("c")])
    person_makes(bench, "HAND", category="c")
    if status == "forgotten":
        done = Project(bench.folder, bench.sandbox.url).run("state", "forget", "tag/HAND", "-y", environ=bench.environ)
        assert done.code == 0, done.err
    bench.wants(tags=[tag("HAND")])
    assert bench.apply().exit_code == 0
    assert_out(bench)


def test_a_tag_in_doubt_may_be_anywhere(bench: Bench) -> None:
    """The last upsert of the tag was refused, so that its category is unknown."""
    bench.settle(tagCategories=[category("c")])
    person_makes(bench, "HAND", category="c")
    bench.wants(tagCategories=[category("c")], tags=[tag("HAND")])
    bench.sandbox.fault("upsertTags", status=400, times=None)
    assert bench.apply().exit_code == 3
    bench.sandbox.heal()
    bench.wants(tags=[tag("HAND")])
    assert bench.apply().exit_code == 0
    assert_out(bench)


def test_the_new_name_of_a_renamed_tag_may_exist_already(bench: Bench) -> None:
    """A person created a tag of the new name in the category that is deleted."""
    bench.settle(tagCategories=[category("c")], tags=[tag("OLD")])
    person_makes(bench, "HAND", category="c")
    bench.wants(tags=[tag("HAND", previously=["OLD"])])
    assert bench.apply().exit_code == 0
    assert_out(bench)


@pytest.mark.parametrize("listed", ["name\nHAND\n", "name,description\nHAND,theirs\n"])
def test_an_adopted_tag_whose_category_was_not_listed_may_be_in_any(bench: Bench, listed: str) -> None:
    """The category stays unknown after an update that does not name one."""
    bench.settle(tagCategories=[category("c")])
    person_makes(bench, "HAND", category="c", description="theirs")
    (bench.folder / "list.csv").write_text(listed, encoding="utf-8")
    adopted = Project(bench.folder, bench.sandbox.url).run("adopt", "list.csv", environ=bench.environ)
    assert adopted.code == 0, adopted.err
    bench.settle(tagCategories=[category("c")], tags=[tag("HAND", description="ours")])
    bench.wants(tags=[tag("HAND", description="ours")])
    assert bench.apply().exit_code == 0
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


def test_a_saved_plan_keeps_a_tag_made_by_hand(bench: Bench) -> None:
    """A saved plan, which is planned again from its inputs, treats the tag in the same way."""
    bench.settle(tagCategories=[category("c")])
    person_makes(bench, "HAND", category="c")
    bench.wants(tags=[tag("HAND")])
    approval = bench.plan().gate.approve
    project = Project(bench.folder, bench.sandbox.url)
    assert project.run("plan", "--out", "plan.json", environ=bench.environ).code == 0
    done = project.run("apply", "plan.json", "--approve-deletes", str(approval), environ=bench.environ)
    assert done.code == 0, done.err
    assert_out(bench)


# --- tags at rest


def person_puts(bench: Bench, name: str, category: str) -> None:
    """Move a tag of the project in the console."""
    place = bench.sandbox.categories()[category]["id"]
    bench.sandbox.say("/tags", {"tags": [{"name": name, "tagCategoryId": place}]})


def assert_declared(bench: Bench, name: str = "HAND") -> None:
    held = bench.sandbox.tags()[name]
    assert ({"k"} <= {*held["keywords"]}, held["description"]) == (True, "ours")
    bench.assert_at_rest()


OURS = tag("HAND", description="ours", keywords=["k"])


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
        person_puts(bench, "HAND", "c")
    bench.wants(tags=[OURS])
    assert [(note.kind, str(note.key)) for note in bench.plan().notes] == [("sent-again", "category/c")]
    ended = bench.apply()
    assert (ended.exit_code, ended.order()) == (0, ["deleteTagCategory", "upsertTags"])
    assert_declared(bench)


@pytest.mark.parametrize("how", [{"reassert": True}, {}])
def test_a_tag_that_the_plan_changes_outlives_its_category(bench: Bench, how: dict[str, Any]) -> None:
    """The upsert of the tag is sent before the deletion."""
    bench.settle(tagCategories=[category("c")], tags=[{**OURS, "description": "old"}])
    person_puts(bench, "HAND", "c")
    bench.wants(tags=[OURS])
    ended = bench.apply(**how)
    assert (ended.exit_code, ended.order()) == (0, ["upsertTags", "deleteTagCategory", "upsertTags"])
    assert_declared(bench)


def test_a_tag_that_is_sent_again_has_only_declared_fields(bench: Bench) -> None:
    """Visibility and category stay as the people who changed them meanwhile left them."""
    bench.settle(tagCategories=[category("c"), category("theirs")], tags=[OURS])
    person_puts(bench, "HAND", "theirs")
    before = bench.sandbox.tags()["HAND"]
    bench.wants(tagCategories=[category("theirs")], tags=[OURS])
    assert bench.apply().exit_code == 0
    assert bench.sandbox.tags()["HAND"] == before
    bench.assert_at_rest()


@pytest.mark.parametrize("trouble", ["refused", "not sent", "end of the deletion unknown"])
def test_tags_without_a_category_are_sent_by_the_next_run_where_they_were_not(bench: Bench, trouble: str) -> None:
    """Until then the rows of these tags stay in doubt."""
    bench.settle(tagCategories=[category("c")], tags=[OURS])
    person_puts(bench, "HAND", "c")
    bench.wants(tags=[OURS])
    if trouble == "refused":
        bench.sandbox.fault("upsertTags", status=400, times=None)
    else:
        operation = "upsertTags" if trouble == "not sent" else "deleteTagCategory"
        bench.sandbox.unavailable(operation, times=None, processed=trouble != "not sent")
    assert bench.apply().exit_code == 3
    bench.sandbox.heal()
    bench.assert_converges()
    assert_declared(bench)


def test_a_tag_that_is_not_selected_is_sent_again_too(bench: Bench) -> None:
    """The tag is sent as recorded, whatever the manifests declare now."""
    bench.settle(tagCategories=[category("c")], tags=[OURS])
    person_puts(bench, "HAND", "c")
    bench.wants(tags=[{**OURS, "description": "later"}])
    assert bench.apply(scope=Scope(targets=("category/c",))).exit_code == 0
    assert bench.sandbox.tags()["HAND"]["description"] == "ours"


@pytest.mark.parametrize("where", ["of another category", "of a category that lives elsewhere"])
def test_a_tag_that_people_moved_out_of_its_category_is_moved_back_first(bench: Bench, where: str) -> None:
    """The tag keeps what people gave it."""
    bench.settle(tagCategories=[category("c"), category("d")])
    id_of_d = bench.sandbox.categories()["d"]["id"]
    ours = {**OURS, **({"category": "d"} if where == "of another category" else {"tagCategoryId": id_of_d})}
    bench.settle(tagCategories=[category("c"), category("d")], tags=[ours])
    person_makes(bench, "HAND", category="c")
    bench.wants(tagCategories=[category("d")], tags=[ours])
    ended = bench.apply()
    assert (ended.exit_code, ended.order()) == (0, ["upsertTags", "deleteTagCategory"])
    assert bench.sandbox.tags()["HAND"]["tagCategoryId"] == id_of_d
    assert "by hand" in bench.sandbox.tags()["HAND"]["keywords"]
    assert_declared(bench)


@pytest.mark.parametrize("together", [True, False])
def test_a_protected_tag_is_made_anew_with_what_is_recorded(bench: Bench, *, together: bool) -> None:
    """The tag is no longer declared, but no plan may remove it."""
    ours = {**OURS, "protect": True}
    bench.settle(tagCategories=[category("c")], tags=[ours])
    person_puts(bench, "HAND", "c")
    if not together:
        bench.settle(tagCategories=[category("c")])
    bench.wants()
    assert bench.apply().exit_code == 0
    assert_declared(bench)


@pytest.mark.parametrize("place", [{}, {"category": "d"}])
def test_the_report_of_a_run_that_ends_early_leaves_out_unchanged_tags(bench: Bench, place: Any) -> None:
    """The report leaves out these tags, which no plan changes and which still exist."""
    both = [category("c"), category("d")]
    bench.settle(tagCategories=both, tags=[{**OURS, **place}, tag("REFUSED", category="d")])
    bench.wants(tagCategories=both[1:], tags=[{**OURS, **place}, tag("REFUSED", category="d", description="new")])
    bench.sandbox.fault("upsertTags", status=400, times=None)
    ended = bench.apply(max_errors=1)
    assert (ended.exit_code, sorted(ended.outcomes)) == (3, ["category/c", "tag/REFUSED"])
    bench.sandbox.heal()
    bench.assert_converges()
