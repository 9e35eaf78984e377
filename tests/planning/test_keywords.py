"""docs/planning.md 2.3: effective keywords, and how they are gained and lost."""

from __future__ import annotations

import pytest

from syncengine.plan.calls import RIDE_ALONG, Step
from syncengine.resource import Key, Kind, Recorded
from syncengine.service.operations import tag_body

from .applying import applied
from .estate import actions, change_of, gone, items, planned, row, sent, steps

TAG = Key(Kind.TAG, "ACME-1")


def declared(fields: str) -> str:
    return f"tags: [{{name: ACME-1, {fields}}}]"


EFFECTIVE = {
    "the name alone": ("description: d", ("ACME-1",)),
    "keywords and the name": ("keywords: [k]", ("k", "ACME-1")),
    "the name is listed": ("keywords: [ACME-1, k]", ("ACME-1", "k")),
    "the name is excluded": ("keywords: [k], excludeTagNameKeyword: true", ("k",)),
    "excluded and listed": ("keywords: [ACME-1], excludeTagNameKeyword: true", ("ACME-1",)),
    "none": ("excludeTagNameKeyword: true", ()),
}


@pytest.mark.parametrize(("fields", "keywords"), EFFECTIVE.values(), ids=EFFECTIVE)
def test_effective_keywords(fields: str, keywords: tuple[str, ...]) -> None:
    assert sent(planned(declared(fields)), Step.TAGS, "tag/ACME-1").keywords == keywords


def test_the_order_of_keywords_does_not_matter() -> None:
    assert planned(declared("keywords: [a1, b1]"), [row("tag/ACME-1", "b1", "ACME-1", "a1")]).changes == ()


def test_listing_the_name_changes_nothing() -> None:
    assert planned(declared("keywords: [ACME-1]"), [row("tag/ACME-1")]).changes == ()


def test_a_keyword_gained_is_a_keyword_add() -> None:
    plan = planned(declared("keywords: [k1, k2], externalId: '47'"), [row("tag/ACME-1", "k1", externalId="47")])
    assert (actions(plan), steps(plan)) == ({"tag/ACME-1": "update"}, ["keyword adds"])
    effect = sent(plan, Step.KEYWORD_ADDS, "tag/ACME-1")
    assert (effect.keywords, effect.fields, effect.whole) == (("k2",), {"externalId": "47"}, False)
    assert plan.summary.keyword_adds == 1


def test_a_keyword_add_can_be_replaced_by_the_whole_tag() -> None:
    """The plan holds the tag's upsert, in case the service does not have the tag (docs/planning.md 4.7)."""
    plan = planned(declared("keywords: [k]"), [row("tag/ACME-1")])
    assert plan.wholes[TAG].effects[0].whole


def many(count: int, keywords: str) -> str:
    return "tags:\n" + "".join(f"  - {{name: ACME-{n}, keywords: [{keywords}]}}\n" for n in range(count))


def test_a_few_tags_that_gain_keywords_need_a_call_each() -> None:
    rows = [row(f"tag/ACME-{n}") for n in range(RIDE_ALONG - 1)]
    plan = planned(many(RIDE_ALONG - 1, "new"), rows)
    assert (steps(plan), plan.summary.requests) == (["keyword adds"], RIDE_ALONG - 1)


def test_many_tags_that_gain_keywords_are_upserted_in_a_batch() -> None:
    rows = [row(f"tag/ACME-{n}") for n in range(RIDE_ALONG)]
    plan = planned(many(RIDE_ALONG, "new"), rows)
    assert (steps(plan), plan.summary.requests, plan.summary.keyword_adds) == (["tags"], 1, RIDE_ALONG)
    assert all(item.effects[0].whole for item in items(plan, Step.TAGS))


def test_keyword_deletes_are_calls_of_their_own() -> None:
    rows = [row(f"tag/ACME-{n}", "old") for n in range(RIDE_ALONG)]
    plan = planned(many(RIDE_ALONG, "new"), rows)
    assert (steps(plan), plan.summary.requests) == (["tags", "keyword deletes"], 1 + RIDE_ALONG)


def test_a_keyword_lost_is_one_delete() -> None:
    plan = planned(declared("keywords: [k1]"), [row("tag/ACME-1", "k1", "k2", "k3")])
    assert (steps(plan), plan.summary.requests, plan.summary.keyword_deletes) == (["keyword deletes"], 2, 2)
    assert [item.effects[0].keywords_dropped for item in items(plan, Step.KEYWORD_DELETES)] == [("k2",), ("k3",)]


def test_keywords_of_other_people_stay() -> None:
    plan = planned(declared("keywords: []"), [row("tag/ACME-1")])
    assert plan.changes == ()


def test_excluding_the_name_deletes_it() -> None:
    change = change_of(planned(declared("excludeTagNameKeyword: true"), [row("tag/ACME-1")]), "tag/ACME-1")
    assert change.keywords_deleted == ("ACME-1",)


def test_including_the_name_again_spells_it_out() -> None:
    """An upsert of an existing tag may not add its name as a keyword, so the name is listed."""
    plan = planned(declared("url: http://u"), [row("tag/ACME-1", "k", excludeTagNameKeyword=True)])
    (item,) = items(plan, Step.TAGS)
    assert item.spell_name
    assert tag_body(item.effects[0], None, spell_name=item.spell_name)["additionalKeywords"] == ["ACME-1"]


@pytest.mark.parametrize(
    "recorded", [[], [row("tag/ACME-1")], [gone("tag/ACME-1")]], ids=["new", "recorded with it", "deleted"]
)
def test_the_name_of_a_certain_tag_is_not_spelled_out(recorded: list[Recorded]) -> None:
    (item,) = items(planned(declared("url: http://u"), recorded), Step.TAGS)
    assert not item.spell_name


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("confirmed", [True, False])
def test_the_name_of_a_doubtful_tag_is_spelled_out(confirmed: bool, recorded: bool) -> None:
    """Also if it was never confirmed, since its creation of unknown end may have left out the name, and also if the
    name is recorded: the call of unknown end may have added it or not."""
    doubtful = row("tag/ACME-1", excludeTagNameKeyword=not recorded, doubtful=True, confirmed=confirmed)
    (item,) = items(planned(declared("url: http://u"), [doubtful]), Step.TAGS)
    assert (item.spell_name, item.new) == (True, not confirmed)


VARIANTS = {
    "case": ("Acme", "ACME"),
    "case of other scripts": ("ÄRGER", "ärger"),
    "sharp s": ("STRASSE", "straße"),
    "composed and decomposed": ("Mu\u0308ller", "Müller"),
    "full width": ("\uff21\uff23\uff2d\uff25", "ACME"),
    "ligature": ("\ufb01le", "file"),
    "case and form": ("MU\u0308LLER", "müller"),
}


@pytest.mark.parametrize(("old", "new"), VARIANTS.values(), ids=VARIANTS)
def test_a_keyword_that_differs_only_by_spelling_is_deleted_first(old: str, new: str) -> None:
    """The service may confuse the two spellings, so the old one is deleted before the upsert."""
    plan = planned(declared(f"keywords: ['{new}']"), [row("tag/ACME-1", old)])
    assert steps(plan) == ["keyword variants", "tags"]
    assert sent(plan, Step.KEYWORD_VARIANTS, "tag/ACME-1").keywords_dropped == (old,)
    assert items(plan, Step.TAGS)[0].spell_name
    assert plan.summary.keyword_deletes == 1


def test_other_deletes_stay_behind_the_upsert() -> None:
    plan = planned(declared("keywords: [ACME, NEW]"), [row("tag/ACME-1", "acme", "old")])
    assert steps(plan) == ["keyword variants", "tags", "keyword deletes"]
    assert sent(plan, Step.KEYWORD_DELETES, "tag/ACME-1").keywords_dropped == ("old",)


def test_a_variant_of_a_keyword_that_stays_is_deleted_first_too() -> None:
    plan = planned(declared("keywords: [ACME]"), [row("tag/ACME-1", "ACME", "acme")])
    assert steps(plan) == ["keyword variants", "tags"]


def test_a_variant_of_the_name_is_deleted_first() -> None:
    plan = planned(declared("url: http://u"), [row("tag/ACME-1", "acme-1", url="http://u")])
    assert steps(plan) == ["keyword variants", "tags"]


def test_variants_fold_to_the_wanted_spelling() -> None:
    rows: dict[Key, Recorded] = {TAG: row("tag/ACME-1", "Acme")}
    after = applied(rows, planned(declared("keywords: [ACME]"), rows))
    assert set(after[TAG].body.keywords) == {"ACME", "ACME-1"}
