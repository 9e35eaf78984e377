"""The ids of tag categories, and tags that people put into them (docs/planning.md 2.2, 4.8)."""

from typing import Any

import pytest

from syncengine.apply.send import ID_RULES, IdAnswer
from syncengine.plan.request import Scope

from .bench import Bench, Json, category, tag

pytestmark = pytest.mark.slow


def test_each_of_the_seven_situations_has_a_rule() -> None:
    """A category keeps its id in doubt, or has one that the service confirmed or that its members must follow."""
    assert [*ID_RULES] == [*IdAnswer]
    assert all(sum((rule.problem is not None, rule.is_repeated, rule.moves)) <= 1 for rule in ID_RULES.values())


def answering(bench: Bench, *ids: tuple[str, object]) -> None:
    """Have the service do what it is asked, and give these ids of categories for an answer."""
    listed = [{"externalId": name, "id": id} for name, id in ids]
    bench.sandbox.fault("upsertTagCategories", status=200, body={"tagCategories": listed}, apply=True)


@pytest.mark.parametrize("id_", [17, None, " ", ["x"]])
def test_a_category_without_an_id_in_the_answer_is_doubtful_and_its_tags_wait(bench: Bench, id_: object) -> None:
    """An id that is no text is none. The next apply asks again."""
    answering(bench, ("told", "some-id"), ("untold", id_))
    ended = bench.apply(tagCategories=[category("told"), category("untold")], tags=[tag("WAITS-1", category="untold")])
    assert ended.exit_code == 3
    assert ended.outcomes == {"category/told": "applied", "category/untold": "unknown", "tag/WAITS-1": "skipped"}
    assert bench.doubtful() == {"category/untold"}
    assert bench.row("category/told").server_id == "some-id"
    bench.assert_converges()
    assert bench.sandbox.places() == {"WAITS-1": "untold"}


@pytest.mark.parametrize("answer", ["", {"tagCategories": []}])
def test_an_empty_answer_gives_no_id(bench: Bench, answer: object) -> None:
    """An empty answer where a list is expected leaves the outcome unknown (docs/planning.md 4.9)."""
    bench.sandbox.fault("upsertTagCategories", status=200, body=answer, apply=True)
    ended = bench.apply(tagCategories=[category("untold")])
    assert (ended.exit_code, ended.outcomes) == (3, {"category/untold": "unknown"})
    bench.assert_converges()


def test_an_update_refused_with_its_id_is_tried_once_without_and_members_are_sent_again(bench: Bench) -> None:
    """After a person deleted the category with its tags and created it anew, one run restores everything."""
    members = [tag("MEMBER-1", category="acme", description="one"), tag("MEMBER-2", category="acme")]
    bench.settle(tagCategories=[category("acme")], tags=members)
    bench.sandbox.person_deletes("category", "acme")
    bench.sandbox.say("/categories", {"tagCategories": [{"externalId": "acme", "label": "Theirs"}]})
    ended = bench.settle(tagCategories=[category("acme", description="new")], tags=members)
    first, second = (request["body"]["tagCategories"] for request in ended.sent("upsertTagCategories"))
    assert ("id" in first[0], second[0].get("id")) == (True, None)
    assert sorted(ended.names("upsertTags")[0]) == ["MEMBER-1", "MEMBER-2"]
    assert bench.sandbox.places() == {"MEMBER-1": "acme", "MEMBER-2": "acme"}
    assert "category-id-changed" in ended.codes
    bench.assert_at_rest()


def test_an_update_that_is_refused_without_its_id_too_fails(bench: Bench) -> None:
    """The run retries without the id only once."""
    bench.settle(tagCategories=[category("acme")])
    bench.sandbox.fault("upsertTagCategories", status=400, body={"message": "never"}, times=None)
    ended = bench.apply(tagCategories=[category("acme", description="new")])
    assert (ended.exit_code, ended.outcomes, len(ended.sent())) == (3, {"category/acme": "failed"}, 2)
    assert ended.words("category/acme") == "never"
    bench.assert_converges()


@pytest.fixture
def renaming(bench: Bench) -> Bench:
    """A category holds a tag of ours and one of other people; the manifest now gives it another name."""
    bench.settle(tagCategories=[category("old")], tags=[tag("OURS-1", category="old")])
    bench.sandbox.say("/tags", {"tags": [{"name": "THEIRS-1", "tagCategoryId": bench.row("category/old").server_id}]})
    bench.wants(tagCategories=[category("new", previously=["old"])], tags=[tag("OURS-1", category="new")])
    return bench


@pytest.mark.parametrize("trouble", ["none", "not processed", "processed"])
def test_a_rename_keeps_the_id_and_so_the_tags_of_other_people(renaming: Bench, trouble: str) -> None:
    """Also when its outcome is unknown: the repeat makes no second category, and deletes none with its tags."""
    before = renaming.sandbox.category_ids()
    if trouble != "none":
        renaming.sandbox.unavailable("upsertTagCategories", processed=trouble == "processed")
        assert renaming.apply().exit_code == 3
    assert renaming.assert_converges().sent("deleteTagCategory") == []
    assert renaming.sandbox.category_ids() == {"new": before["old"]}
    assert renaming.sandbox.places() == {"OURS-1": "new", "THEIRS-1": "new"}


@pytest.mark.parametrize("is_repeat", [False, True], ids=["at once", "after one without a known outcome"])
def test_a_rename_that_makes_a_new_category_converges_in_one_apply(renaming: Bench, is_repeat: bool) -> None:
    """Our tags move to the new category. The old one stays with those of other people, and no later plan deletes it."""
    if is_repeat:
        renaming.sandbox.unavailable("upsertTagCategories")
        assert renaming.apply().exit_code == 3
    renaming.sandbox.fault("upsertTagCategories", status=400, body={"message": "ids are ours"})
    ended = renaming.apply()
    assert (ended.exit_code, ended.not_applied()) == (0, {})
    assert "category-not-renamed" in ended.codes
    assert renaming.sandbox.places() == {"OURS-1": "new", "THEIRS-1": "old"}
    renaming.assert_at_rest()


@pytest.mark.parametrize("left", [Scope(targets=("category/old",)), Scope(excludes=("category/new",))])
def test_a_category_of_two_names_is_deleted_only_under_both(renaming: Bench, left: Scope) -> None:
    """After a rename of unknown outcome its tags are recorded under the new name, and the service has the old one."""
    renaming.sandbox.unavailable("upsertTagCategories")
    assert renaming.apply().exit_code == 3
    renaming.sandbox.heal()
    renaming.wants()
    plan = renaming.plan(scope=left)
    assert "not deleted: it may have the name new, which is not selected" in [note.message for note in plan.notes]
    renaming.apply(scope=left)
    assert renaming.sandbox.places() == {"OURS-1": "old", "THEIRS-1": "old"}
    renaming.assert_converges()
    assert renaming.sandbox.category_ids() == {}


def test_a_private_tag_that_may_be_public_is_counted_and_waits(renaming: Bench) -> None:
    """The run does not say that the old category is without it: who deleted that by hand would delete the tag."""
    renaming.wants(tagCategories=[category("old")], tags=[tag("OURS-1", category="old", visibility="PRIVATE")])
    renaming.assert_converges()
    renaming.sandbox.unavailable("upsertTags", processed=True)
    renaming.wants(tagCategories=[category("old")], tags=[tag("OURS-1", category="old", visibility="PUBLIC")])
    assert renaming.apply().exit_code == 3
    renaming.sandbox.heal()
    renaming.wants(
        tagCategories=[category("new", previously=["old"])], tags=[tag("OURS-1", category="new", visibility="PUBLIC")]
    )
    renaming.sandbox.fault("upsertTagCategories", status=400, body={"message": "ids are ours"})
    ended = renaming.apply(scope=Scope(targets=("category/new",)))
    said = {each.code: each.message for each in ended.applied.report.diagnostics}
    assert "wait for the next apply that selects them (1)" in said["category-id-changed"]
    assert "without the tags that this run sends again;" in said["category-not-renamed"]
    assert (renaming.sandbox.places()["OURS-1"], renaming.sandbox.tag("OURS-1")["visibility"]) == ("old", "PUBLIC")
    renaming.assert_converges()
    assert renaming.sandbox.places()["OURS-1"] == "new"


def mended(bench: Bench) -> dict[str, str]:
    """Check that one plain apply, without any flag, mends everything, and return the category of each tag."""
    assert bench.apply().exit_code == 0
    bench.assert_at_rest()
    return bench.sandbox.places()


@pytest.mark.parametrize("has_members", [False, True])
def test_an_id_that_the_service_does_not_know_is_asked_for_again(bench: Bench, has_members: bool) -> None:
    """Every tag with the wrong id is refused; the run warns about it, and the next apply sends all of them."""
    tags = [tag("ONE-1", category="acme"), tag("TWO-1", category="acme")]
    if has_members:
        bench.settle(tagCategories=[category("acme")], tags=tags)
    bench.wants(tagCategories=[category("acme", description="new")], tags=tags)
    answering(bench, ("acme", "nobodys"))
    ended = bench.apply()
    assert (ended.exit_code, ended.not_applied().keys()) == (3, {"tag/ONE-1", "tag/TWO-1"})
    assert ("category-id-doubted" in ended.codes, "category/acme" in bench.doubtful()) == (True, True)
    assert mended(bench) == {"ONE-1": "acme", "TWO-1": "acme"}


def test_a_category_that_somebody_made_anew_is_found_by_a_refused_tag(bench: Bench) -> None:
    """The category has another id since a person deleted and recreated it; the tags deleted with it are sent again."""
    old, new = (tag(name, category="acme") for name in ("OLD-1", "NEW-1"))
    bench.settle(tagCategories=[category("acme")], tags=[old])
    bench.sandbox.person_deletes("category", "acme")
    assert bench.apply(tagCategories=[category("acme")], tags=[old, new]).exit_code == 3
    assert mended(bench) == {"OLD-1": "acme", "NEW-1": "acme"}


def test_an_id_of_another_category_is_no_answer(bench: Bench) -> None:
    """With that id, tags would move to the other category, and the next update would rename it."""
    theirs, ours = (tag(f"{name.upper()}-1", category=name) for name in ("theirs", "ours"))
    bench.settle(tagCategories=[category("theirs")], tags=[theirs])
    answering(bench, ("ours", bench.sandbox.category_ids()["theirs"]))
    ended = bench.apply(tagCategories=[category("theirs"), category("ours")], tags=[theirs, ours])
    assert (ended.exit_code, ended.not_applied()) == (3, {"category/ours": "unknown", "tag/OURS-1": "skipped"})
    assert bench.doubtful() >= {"category/theirs", "category/ours"}
    assert mended(bench) == {"THEIRS-1": "theirs", "OURS-1": "ours"}
    assert bench.sandbox.category_ids().keys() == {"theirs", "ours"}


def test_two_categories_with_one_id_have_none(bench: Bench) -> None:
    """At most one of two categories can have the same id, so that neither outcome is known."""
    answering(bench, ("acme", "x"), ("jacobi", "x"))
    assert set(bench.apply(tagCategories=[category("acme"), category("jacobi")]).outcomes.values()) == {"unknown"}
    bench.assert_converges()


ITEM = {"itemErrors": [{"index": 0, "errorDescription": "not today"}]}
TWO = tag("TWO-1", category="acme")
REFUSALS: dict[str, tuple[Json, Json, list[Json], bool]] = {
    **{f"whole, with {status}": ({"status": status, "times": None}, {}, [], True) for status in (400, 404, 409, 422)},
    "by item": (ITEM, {}, [], True),
    "by item, with 400": ({**ITEM, "status": 400}, {}, [], True),
    "for the plan": ({"status": 402, "times": None}, {}, [], False),
    "but another tag was accepted with it": (ITEM, {}, [TWO], False),
    "but the service just confirmed it": (ITEM, {"description": "new"}, [], False),
}


@pytest.mark.parametrize(("fault", "changed", "others", "is_doubted"), REFUSALS.values(), ids=REFUSALS)
def test_an_id_is_in_doubt_once_all_its_tags_are_refused(
    bench: Bench, fault: Json, changed: Json, others: list[Json], is_doubted: bool
) -> None:
    """Whichever way the service refuses them, if the id may be the cause."""
    bench.settle(tagCategories=[category("acme")])
    bench.sandbox.fault("upsertTags", **fault)
    ended = bench.apply(tagCategories=[category("acme", **changed)], tags=[tag("ONE-1", category="acme"), *others])
    assert ("category-id-doubted" in ended.codes) == is_doubted
    assert bench.doubtful() == {"tag/ONE-1", *(["category/acme"] if is_doubted else [])}


# --- tags that people put into a category which a plan deletes


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
