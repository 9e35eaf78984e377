"""docs/planning.md 2.3: effective keywords, and how they are gained and lost."""

from __future__ import annotations

import pytest

from syncengine.plan.calls import RIDE_ALONG, Step
from syncengine.resource import Key, Kind, Recorded
from syncengine.service.operations import tag_body

from .applying import applied
from .estate import actions, gone, items, planned, row, sent, steps

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


SAME = {
    "in another order": ("keywords: [a1, b1]", ("b1", "ACME-1", "a1")),
    "the name is listed": ("keywords: [ACME-1]", ("ACME-1",)),
    "none but the name": ("keywords: []", ("ACME-1",)),
}


@pytest.mark.parametrize(("fields", "recorded"), SAME.values(), ids=SAME)
def test_the_same_keywords_are_no_change(fields: str, recorded: tuple[str, ...]) -> None:
    assert planned(declared(fields), [row("tag/ACME-1", *recorded)]).changes == ()


def test_a_keyword_gained_is_a_keyword_add() -> None:
    """The plan holds the tag's upsert too, in case the service does not have the tag (docs/planning.md 4.7)."""
    plan = planned(declared("keywords: [k1, k2], externalId: '47'"), [row("tag/ACME-1", "k1", externalId="47")])
    assert (actions(plan), steps(plan)) == ({"tag/ACME-1": "update"}, ["keyword adds"])
    effect = sent(plan, Step.KEYWORD_ADDS, "tag/ACME-1")
    assert (effect.keywords, effect.fields, effect.whole) == (("k2",), {"externalId": "47"}, False)
    assert plan.summary.keyword_adds == 1
    assert plan.wholes[TAG].effects[0].whole


@pytest.mark.parametrize(
    ("count", "old", "stages", "requests"),
    [
        (RIDE_ALONG - 1, (), ["keyword adds"], RIDE_ALONG - 1),
        (RIDE_ALONG, (), ["tags"], 1),
        (RIDE_ALONG, ("old",), ["tags", "keyword deletes"], 1 + RIDE_ALONG),
    ],
    ids=["few tags need a call each", "many are upserted in a batch", "deletes are calls of their own"],
)
def test_many_tags_that_gain_a_keyword_share_a_request(
    count: int, old: tuple[str, ...], stages: list[str], requests: int
) -> None:
    manifest = "tags:\n" + "".join(f"  - {{name: ACME-{n}, keywords: [new]}}\n" for n in range(count))
    plan = planned(manifest, [row(f"tag/ACME-{n}", *old) for n in range(count)])
    assert (steps(plan), plan.summary.requests, plan.summary.keyword_adds) == (stages, requests, count)
    assert all(item.effects[0].whole for item in items(plan, Step.TAGS))


@pytest.mark.parametrize(
    ("fields", "recorded", "lost"),
    [("keywords: [k1]", ("k1", "k2", "k3"), ["k2", "k3"]), ("excludeTagNameKeyword: true", (), ["ACME-1"])],
    ids=["keywords", "the name"],
)
def test_each_keyword_lost_is_one_delete(fields: str, recorded: tuple[str, ...], lost: list[str]) -> None:
    plan = planned(declared(fields), [row("tag/ACME-1", *recorded)])
    assert plan.summary.keyword_deletes == len(lost)
    assert [item.effects[0].keywords_dropped for item in items(plan, Step.KEYWORD_DELETES)] == [(k,) for k in lost]


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
    """A call of unknown end may have added the name or left it out, also one that created the tag."""
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
    "of the name": ("acme-1", "ACME-1"),
}


@pytest.mark.parametrize(("old", "new"), VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("has_both", [False, True])
def test_a_keyword_that_differs_only_by_spelling_is_deleted_first(old: str, new: str, has_both: bool) -> None:
    """The service may confuse the two spellings, so the old one is deleted before the upsert. Others are after it."""
    rows: dict[Key, Recorded] = {TAG: row("tag/ACME-1", old, "other", *([new] if has_both else []))}
    plan = planned(declared(f"keywords: ['{new}']"), rows)
    assert steps(plan) == ["keyword variants", "tags", "keyword deletes"]
    assert sent(plan, Step.KEYWORD_VARIANTS, "tag/ACME-1").keywords_dropped == (old,)
    assert sent(plan, Step.KEYWORD_DELETES, "tag/ACME-1").keywords_dropped == ("other",)
    assert (items(plan, Step.TAGS)[0].spell_name, plan.summary.keyword_deletes) == (True, 2)
    assert set(applied(rows, plan)[TAG].body.keywords) == {new, "ACME-1"}
