"""docs/planning.md 2.2 to 2.4: tags that are declared, and their effective keywords."""

from typing import Any

import pytest
from msgspec import UNSET

from syncengine.plan.calls import RIDE_ALONG, Step
from syncengine.plan.diff import FieldEffect
from syncengine.resource import Body, Key, Kind, Recorded, Status
from syncengine.service.operations import tag_body

from .applying import applied, walked
from .estate import actions, change_of, field_of, gone, items, notes, planned, refused, row, says_nothing, sent, steps

TAG = Key(Kind.TAG, "ACME-1")
PLAIN = "tags: [{name: ACME-1}]"
CATEGORY = row("category/acme")


def declared(fields: str) -> str:
    """One tag, and a category that it may name."""
    return f"tagCategories: [{{externalId: acme}}]\n{tagged(fields)}"


def tagged(fields: str) -> str:
    return f"tags: [{{name: ACME-1, {fields}}}]"


@pytest.mark.parametrize("before", [[], [gone("tag/ACME-1")]], ids=["never recorded", "deleted"])
def test_a_tag_that_the_service_lacks_is_created(before: list[Recorded]) -> None:
    fields = "category: acme, description: Case, metadata: {Client: ACME}, keywords: [k]"
    plan = planned(declared(fields), [CATEGORY, *before])
    (item,) = items(plan, Step.TAGS)
    assert (actions(plan), item.new) == ({"tag/ACME-1": "create"}, True)
    assert item.effects[0].fields == {"category": "acme", "description": "Case", "excludeTagNameKeyword": False}
    assert (item.effects[0].keywords, item.effects[0].metadata) == (("k", "ACME-1"), {"Client": "ACME"})


TEXTS = ("description", "externalId", "defaultActivityTypeCode", "managedBy", "path")
FIELDS = {
    **{name: (f"{name}: /new", "/old", "/new") for name in TEXTS},
    **{name: (f"{name}: 2", 1, 2) for name in ("createdTimestamp", "closedTimestamp")},
    "url": ("url: 'https://new.example'", "https://old.example", "https://new.example"),
    "modifiedTimestamp": ("modifiedTimestamp: 2024-05-01T09:00:00Z", 1, 1714554000000),
    "assigneeExternalIds": ("assigneeExternalIds: [jd]", ("ab", "jd"), ("jd",)),
    "category": ("category: acme", "other", "acme"),
    "visibility": ("visibility: PRIVATE", "PUBLIC", "PRIVATE"),
    "excludeTagNameKeyword": ("excludeTagNameKeyword: true", False, True),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_that_differs_or_whose_value_is_unknown_is_an_update(name: str) -> None:
    """The value of a field that was never declared is unknown, so the declared one is sent."""
    fields, before, after = FIELDS[name]
    plan = planned(declared(fields), [CATEGORY, row("tag/ACME-1", **{name: before})])
    field = field_of(plan, "tag/ACME-1", name)
    assert (actions(plan), steps(plan)[0]) == ({"tag/ACME-1": "update"}, "tags")
    assert (field.before, field.after, field.effect) == (before, after, FieldEffect.APPLIES)
    plan = planned(declared(fields), [CATEGORY, Recorded(TAG, Body({}, ("ACME-1",)), confirmed=True)])
    assert field_of(plan, "tag/ACME-1", name).before is None
    assert sent(plan, Step.TAGS, "tag/ACME-1").fields[name] == after


def test_an_upsert_has_the_whole_declared_tag_and_nothing_else() -> None:
    recorded = [CATEGORY, row("tag/ACME-1", "k", description="Old", url="http://u", metadata={"Client": "ACME"})]
    fields = "description: New, url: http://u, keywords: [k], metadata: {Client: ACME}"
    effect = sent(planned(declared(fields), recorded), Step.TAGS, "tag/ACME-1")
    assert effect.fields == {"description": "New", "url": "http://u", "excludeTagNameKeyword": False}
    assert (effect.keywords, effect.metadata) == (("k", "ACME-1"), {"Client": "ACME"})
    assert (effect.cleared, effect.whole) == ((), True)


# --- what is gone


GONE = dict.fromkeys(("externalId", "category", "tagCategoryId", "url", "managedBy", "path"), "x")


@pytest.mark.parametrize(("name", "value"), [*GONE.items(), ("assigneeExternalIds", ("jd",))])
def test_a_field_that_is_no_longer_declared_is_sent_empty(name: str, value: object) -> None:
    plan = planned(PLAIN, [row("tag/ACME-1", **{name: value})])
    assert actions(plan) == {"tag/ACME-1": "update"}
    assert field_of(plan, "tag/ACME-1", name).clears
    assert sent(plan, Step.TAGS, "tag/ACME-1").cleared == (name,)


IGNORED = [("tag/ACME-1", "ignored")]
NOT_SENT: dict[str, tuple[dict[str, object], list[tuple[str, str]]]] = {
    "the service cannot clear a description": ({"description": "Old"}, IGNORED),
    "nor the time of creation": ({"createdTimestamp": 1}, IGNORED),
    "nor that of a modification": ({"modifiedTimestamp": 1}, IGNORED),
    "nor that of the end": ({"closedTimestamp": 1}, IGNORED),
    "an empty text is the service's default": ({"url": ""}, []),
    "so is an empty list": ({"assigneeExternalIds": ()}, []),
    "so is this path": ({"path": "/"}, []),
    "so is this visibility": ({"visibility": "PUBLIC"}, []),
}


@pytest.mark.parametrize(("fields", "noted"), NOT_SENT.values(), ids=NOT_SENT)
def test_a_difference_that_the_service_would_ignore_is_only_recorded(
    fields: dict[str, object], noted: list[tuple[str, str]]
) -> None:
    """If the values mean different things, a note says so, once. Nor can a description be made empty."""
    for manifest in (PLAIN, tagged("description: ''")) if "description" in fields else (PLAIN,):
        rows = {TAG: row("tag/ACME-1", **fields)}
        plan = planned(manifest, rows)
        assert notes(plan) == noted
        assert (plan.changes_something, plan.sends_something) == (False, False)
        assert says_nothing(planned(manifest, applied(rows, plan)))


def test_a_change_shows_differences_that_the_service_ignores_until_they_end() -> None:
    rows = walked(declared("description: Old, url: http://old"))
    plan = planned(declared("url: http://new"), rows)
    field = field_of(plan, "tag/ACME-1", "description")
    assert (field.effect, field.clears, notes(plan)) == (FieldEffect.IGNORED, False, IGNORED)
    again = planned(declared("description: Old, url: http://new"), applied(rows, plan))
    assert field_of(again, "tag/ACME-1", "description").after == "Old"


@pytest.mark.parametrize("empty", ["url: ''", "assigneeExternalIds: []", "externalId: ''", "category: ''"])
def test_an_explicit_empty_that_was_never_declared_is_sent(empty: str) -> None:
    rows = {TAG: row("tag/ACME-1"), CATEGORY.key: CATEGORY}
    plan = planned(declared(empty), rows)
    assert (actions(plan), plan.gate.tripped) == ({"tag/ACME-1": "update"}, False)
    assert planned(declared(empty), applied(rows, plan)).changes == ()


def test_moving_to_a_category_by_id_names_both_fields() -> None:
    plan = planned(declared("tagCategoryId: x"), [CATEGORY, row("tag/ACME-1", category="acme")])
    shown = {field.name: (field.before, field.after) for field in change_of(plan, "tag/ACME-1").fields}
    assert shown == {"tagCategoryId": (None, "x"), "category": ("acme", None)}
    assert not any(field.clears for field in change_of(plan, "tag/ACME-1").fields)


@pytest.mark.parametrize(
    ("manifest", "fields"),
    [
        ("tags: [{name: T, description: '', url: '', path: /}]", ["url", "path", "excludeTagNameKeyword"]),
        ("activityTypes: [{code: A, label: L, enableIfNew: false}]", ["label"]),
    ],
)
def test_a_new_resource_shows_what_it_says_but_what_means_nothing(manifest: str, fields: list[str]) -> None:
    """An empty description is ignored, and a type is not offered unless that is said; an empty URL clears another's."""
    (change,) = planned(manifest).changes
    assert [field.name for field in change.fields] == fields


# --- visibility


RENAMED = "tags: [{name: NEW, previously: [PLAIN-1, SECRET-1]%s}]"


def test_a_private_tag_must_keep_declaring_its_visibility_also_under_a_new_name() -> None:
    """No longer declaring PRIVATE is an error, since a tag that is created without it is public."""
    for status in Status:
        dropped = refused(PLAIN, [row("tag/ACME-1", visibility="PRIVATE", status=status)])
        assert dropped == ({} if status is Status.DELETED else {"visibility-dropped": "tag/ACME-1"}), status
    rows = [row("tag/PLAIN-1"), row("tag/SECRET-1", visibility="PRIVATE")]
    assert refused(RENAMED % "", rows) == {"visibility-dropped": "tag/NEW"}
    plan = planned(RENAMED % ", visibility: PRIVATE", rows)
    assert (change_of(plan, "tag/NEW").opens, [unit.kind for unit in plan.gate.units]) == (UNSET, ["manifest"])


def secret(name: str, status: Status = Status.ACTIVE) -> Recorded:
    return row(f"tag/{name}", visibility="PRIVATE", status=status)


@pytest.mark.parametrize(
    ("own", "opens"),
    [
        ([], ("SECRET-1", "SECRET-2")),
        ([gone("tag/NEW")], ("SECRET-1", "SECRET-2")),
        ([secret("NEW")], ("NEW", "SECRET-1", "SECRET-2")),
        ([secret("NEW", Status.RELEASED)], ("NEW", "SECRET-1", "SECRET-2")),
        ([row("tag/NEW", status=Status.RELEASED)], ("SECRET-1", "SECRET-2")),
    ],
)
def test_every_private_tag_that_a_rename_opens_needs_an_approval(own: list[Recorded], opens: tuple[str, ...]) -> None:
    """One approval covers all former names of the rename, and no others. The change shows the first private one."""
    rows = [row("tag/PLAIN-1"), *(secret(f"SECRET-{n}") for n in (1, 2, 3)), *own]
    renamed = "tags: [{name: NEW, previously: [%s], visibility: PUBLIC}]"
    plan = planned(renamed % "PLAIN-1, SECRET-1, SECRET-2", rows)
    change = change_of(plan, "tag/NEW")
    assert (change.previously, change.opens) == ("SECRET-1", opens)
    assert ("visibility", "PRIVATE", "PUBLIC") in [(f.name, f.before, f.after) for f in change.fields]
    (unit,) = (unit for unit in plan.gate.units if unit.kind == "opened")
    assert (unit.name, unit.count) == ("tag/NEW", len(opens))
    assert f"{len(opens)} of {len(opens) + 1} private tags made public (limit 0)" in plan.gate.reasons
    others = [planned(renamed % names, rows) for names in ("SECRET-1", "SECRET-2, SECRET-3", "PLAIN-1, SECRET-2")]
    others.append(planned("tags: [{name: NEW, visibility: PUBLIC}]", [secret("NEW")]))
    approvals = [each.approve for plan in others for each in plan.gate.units if each.kind == "opened"]
    assert len({unit.approve, *approvals}) == 5


@pytest.mark.parametrize("status", [Status.RELEASED, Status.RETIRED])
@pytest.mark.parametrize("visibility", ["", ", visibility: PUBLIC"])
def test_a_former_name_that_is_released_or_retired_makes_no_rename(status: Status, visibility: str) -> None:
    fields = {"visibility": "PRIVATE", "excludeTagNameKeyword": True}
    rows = [row(f"tag/{name}", status=status, **fields) for name in ("PLAIN-1", "SECRET-1")]
    plan = planned(RENAMED % visibility, rows)
    assert actions(plan) == {"tag/NEW": "create"}
    assert (change_of(plan, "tag/NEW").formers, plan.gate.units) == ((), ())


NEW = row("tag/NEW", visibility="PUBLIC")


@pytest.mark.parametrize(
    ("new", "former", "says", "opens"),
    [
        (NEW, {}, "", ()),
        (NEW, {}, "url: 'https://a.example'", ("SECRET-1",)),
        (NEW, {}, "keywords: [merger]", ("SECRET-1",)),
        (NEW, {}, "metadata: {client: B}", ("SECRET-1",)),
        (NEW, {"protect": True}, "url: 'https://a.example'", ()),
        (NEW, {"protect": True, "url": "https://a.example"}, "url: 'https://a.example'", ("SECRET-1",)),
        (row("tag/NEW", visibility="PUBLIC", confirmed=False), {}, "", ("SECRET-1",)),
        (row("tag/NEW", visibility="PUBLIC", doubtful=True), {}, "", ("SECRET-1",)),
    ],
)
def test_a_rename_onto_a_public_tag_opens_only_new_content(
    new: Recorded, former: dict[str, Any], says: str, opens: tuple[str, ...]
) -> None:
    """Content counts that the new name may not show already; of a protected former name, only what both share."""
    rows = [new, row("tag/SECRET-1", visibility="PRIVATE", **former)]
    plan = planned(RENAMED % f", visibility: PUBLIC{says and ', '}{says}", rows)
    assert next((change.opens or () for change in plan.changes if change.key.name == "NEW"), ()) == opens
    assert [unit.name for unit in plan.gate.units if unit.kind == "opened"] == ["tag/NEW"] * bool(opens)


# --- metadata


def test_metadata_is_compared_by_names_that_differ_by_case() -> None:
    """Values are upserted; names that are gone are deleted in one request (docs/interface.md 2.1)."""
    before = row("tag/ACME-1", metadata={"A": "1", "B": "1", "Client": "x", "Gone": "1"})
    plan = planned(declared("metadata: {A: '1', B: '2', C: '3', client: x}"), [CATEGORY, before])
    change = change_of(plan, "tag/ACME-1")
    assert (change.metadata_set, change.metadata_deleted) == ({"B": "2", "C": "3", "client": "x"}, ("Client", "Gone"))
    assert (steps(plan), plan.summary.requests, plan.summary.metadata_deletes) == (["tags", "metadata deletes"], 2, 2)
    assert sent(plan, Step.METADATA_DELETES, "tag/ACME-1").metadata_dropped == ("Client", "Gone")
    assert steps(planned(PLAIN, [before])) == ["metadata deletes"]


def test_deletes_wait_for_the_upsert_of_their_tag() -> None:
    recorded = [CATEGORY, row("tag/ACME-1", "k", metadata={"A": "1"}, url="http://old")]
    both = planned(declared("url: http://new"), recorded)
    alone = planned(declared("url: http://old"), recorded)
    for step in (Step.KEYWORD_DELETES, Step.METADATA_DELETES):
        assert [item.needs for item in items(both, step)] == [(TAG,)]
        assert [item.needs for item in items(alone, step)] == [()]


def test_a_released_tag_that_is_declared_again_is_compared_with_its_kept_row() -> None:
    tags = "tags: [{name: ACME-1, keywords: [%s], url: http://u}]"
    rows = walked(tags % "old", "{}")
    same, other = planned(tags % "old", rows), planned(tags % "new", rows)
    assert (same.changes, same.sends_something) == ((), False)
    change = change_of(other, "tag/ACME-1")
    assert (change.keywords_added, change.keywords_deleted) == (("new",), ("old",))
    assert [applied(rows, plan)[TAG].status for plan in (same, other)] == [Status.ACTIVE, Status.ACTIVE]


# --- keywords


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
    assert sent(planned(tagged(fields)), Step.TAGS, "tag/ACME-1").keywords == keywords


def test_the_same_keywords_are_no_change() -> None:
    for fields, recorded in (("[a1, b1]", ("b1", "ACME-1", "a1")), ("[ACME-1]", ()), ("[]", ())):
        assert planned(tagged(f"keywords: {fields}"), [row("tag/ACME-1", *recorded)]).changes == (), fields


def test_a_keyword_gained_is_a_keyword_add() -> None:
    """The plan holds the tag's upsert too, in case the service does not have the tag (docs/planning.md 4.7)."""
    plan = planned(tagged("keywords: [k1, k2], externalId: '47'"), [row("tag/ACME-1", "k1", externalId="47")])
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
    plan = planned(tagged(fields), [row("tag/ACME-1", *recorded)])
    assert plan.summary.keyword_deletes == len(lost)
    assert [item.effects[0].keywords_dropped for item in items(plan, Step.KEYWORD_DELETES)] == [(k,) for k in lost]


SPELLED: dict[str, tuple[list[Recorded], bool, bool]] = {
    "a new tag": ([], False, True),
    "one that was deleted": ([gone("tag/ACME-1")], False, True),
    "one that has it": ([row("tag/ACME-1")], False, False),
    "one that excluded it": ([row("tag/ACME-1", "k", excludeTagNameKeyword=True)], True, False),
    "one in doubt": ([row("tag/ACME-1", doubtful=True)], True, False),
    "one in doubt that excluded it": ([row("tag/ACME-1", excludeTagNameKeyword=True, doubtful=True)], True, False),
    "one whose creation is in doubt": ([row("tag/ACME-1", doubtful=True, confirmed=False)], True, True),
}


@pytest.mark.parametrize(("recorded", "is_spelled", "is_new"), SPELLED.values(), ids=SPELLED)
def test_the_name_is_spelled_out_as_a_keyword_where_it_may_be_missing(
    recorded: list[Recorded], is_spelled: bool, is_new: bool
) -> None:
    """An upsert of an existing tag may not add it. A call of unknown end may have added it or left it out."""
    (item,) = items(planned(tagged("url: http://u"), recorded), Step.TAGS)
    assert (item.spell_name, item.new) == (is_spelled, is_new)
    body = tag_body(item.effects[0], None, spell_name=item.spell_name)
    assert body.get("additionalKeywords") == (["ACME-1"] if is_spelled else None)


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
    plan = planned(tagged(f"keywords: ['{new}']"), rows)
    assert steps(plan) == ["keyword variants", "tags", "keyword deletes"]
    assert sent(plan, Step.KEYWORD_VARIANTS, "tag/ACME-1").keywords_dropped == (old,)
    assert sent(plan, Step.KEYWORD_DELETES, "tag/ACME-1").keywords_dropped == ("other",)
    assert (items(plan, Step.TAGS)[0].spell_name, plan.summary.keyword_deletes) == (True, 2)
    assert set(applied(rows, plan)[TAG].body.keywords) == {new, "ACME-1"}
