"""The ids that the service gives to tag categories (docs/planning.md 4.8)."""

from __future__ import annotations

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
