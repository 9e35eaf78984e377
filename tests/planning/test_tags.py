"""docs/planning.md 2.2 and 2.4: tags that are declared."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from syncengine.plan.calls import Step
from syncengine.plan.diff import FieldEffect
from syncengine.resource import Body, Key, Kind, Recorded, Source, Status

from .applying import applied, walked
from .estate import (
    FILE,
    actions,
    change_of,
    field_of,
    gone,
    items,
    notes,
    planned,
    refused,
    row,
    says_nothing,
    sent,
    steps,
)

TAG = Key(Kind.TAG, "ACME-1")
PLAIN = "tags: [{name: ACME-1}]"


def declared(fields: str) -> str:
    """One tag, and a category that it may name."""
    return f"tagCategories: [{{externalId: acme}}]\ntags: [{{name: ACME-1, {fields}}}]"


CATEGORY = row("category/acme")


def test_a_tag_that_is_not_recorded_is_created() -> None:
    plan = planned(declared("category: acme, description: Case, metadata: {Client: ACME}, keywords: [k]"), [CATEGORY])
    (item,) = items(plan, Step.TAGS)
    assert (actions(plan), item.new) == ({"tag/ACME-1": "create"}, True)
    assert item.effects[0].fields == {"category": "acme", "description": "Case", "excludeTagNameKeyword": False}
    assert (item.effects[0].keywords, item.effects[0].metadata) == (("k", "ACME-1"), {"Client": "ACME"})


def test_a_deleted_tag_is_created_again() -> None:
    plan = planned(PLAIN, [gone("tag/ACME-1")])
    assert (actions(plan), items(plan, Step.TAGS)[0].new) == ({"tag/ACME-1": "create"}, True)


def test_a_tag_as_recorded_is_left_alone() -> None:
    plan = planned(PLAIN, [row("tag/ACME-1", source=Source(FILE, 1))])
    assert (says_nothing(plan), plan.summary.unchanged) == (True, 1)


FIELDS = {
    "description": ("description: New", "Old", "New"),
    "external id": ("externalId: New", "Old", "New"),
    "default activity type": ("defaultActivityTypeCode: A101", "A100", "A101"),
    "url": ("url: 'https://new.example.com'", "https://old.example.com", "https://new.example.com"),
    "assignees": ("assigneeExternalIds: [jd]", ("ab", "jd"), ("jd",)),
    "managed by": ("managedBy: New", "Old", "New"),
    "path": ("path: /new", "/old", "/new"),
    "created": ("createdTimestamp: 2", 1, 2),
    "modified": ("modifiedTimestamp: 2024-05-01T09:00:00Z", 1, 1714554000000),
    "closed": ("closedTimestamp: 2", 1, 2),
    "category": ("category: acme", "other", "acme"),
    "visibility": ("visibility: PRIVATE", "PUBLIC", "PRIVATE"),
    "exclusion of the name": ("excludeTagNameKeyword: true", False, True),
}


@pytest.mark.parametrize(("fields", "before", "after"), FIELDS.values(), ids=FIELDS)
def test_a_field_that_differs_is_an_update(fields: str, before: object, after: object) -> None:
    name = fields.partition(":")[0]
    plan = planned(declared(fields), [CATEGORY, row("tag/ACME-1", **{name: before})])
    field = field_of(plan, "tag/ACME-1", name)
    assert (actions(plan), steps(plan)[0]) == ({"tag/ACME-1": "update"}, "tags")
    assert (field.before, field.after, field.effect) == (before, after, FieldEffect.APPLIES)


@pytest.mark.parametrize(("fields", "before", "after"), FIELDS.values(), ids=FIELDS)
def test_a_field_that_was_never_declared_is_an_update(fields: str, before: object, after: object) -> None:
    """The value on the service is unknown, so the declared one is sent."""
    name = fields.partition(":")[0]
    adopted = Recorded(TAG, Body({}, ("ACME-1",)), confirmed=True)
    plan = planned(declared(fields), [CATEGORY, adopted])
    assert field_of(plan, "tag/ACME-1", name).before is None
    assert sent(plan, Step.TAGS, "tag/ACME-1").fields[name] == after


def test_an_upsert_has_the_whole_declared_tag_and_nothing_else() -> None:
    recorded = [CATEGORY, row("tag/ACME-1", "k", description="Old", url="http://u", metadata={"Client": "ACME"})]
    fields = "description: New, url: http://u, keywords: [k], metadata: {Client: ACME}"
    effect = sent(planned(declared(fields), recorded), Step.TAGS, "tag/ACME-1")
    assert effect.fields == {"description": "New", "url": "http://u", "excludeTagNameKeyword": False}
    assert (effect.keywords, effect.metadata) == (("k", "ACME-1"), {"Client": "ACME"})
    assert (effect.cleared, effect.whole) == ((), True)


def test_whether_the_name_is_a_keyword_is_always_explicit() -> None:
    """`excludeTagNameKeyword` is sent even if no manifest declares it (docs/planning.md 2.4)."""
    assert sent(planned(PLAIN), Step.TAGS, "tag/ACME-1").fields == {"excludeTagNameKeyword": False}


# --- what is gone


GONE = {
    "external id": {"externalId": "4711"},
    "category": {"category": "acme"},
    "category by id": {"tagCategoryId": "x"},
    "url": {"url": "http://u"},
    "default activity type": {"defaultActivityTypeCode": "A101"},
    "assignees": {"assigneeExternalIds": ("jd",)},
    "managed by": {"managedBy": "me"},
    "path": {"path": "/old"},
}


@pytest.mark.parametrize("fields", GONE.values(), ids=GONE)
def test_a_field_that_is_no_longer_declared_is_sent_empty(fields: dict[str, object]) -> None:
    (name,) = fields
    plan = planned(PLAIN, [row("tag/ACME-1", **fields)])
    assert actions(plan) == {"tag/ACME-1": "update"}
    assert field_of(plan, "tag/ACME-1", name).clears
    assert sent(plan, Step.TAGS, "tag/ACME-1").cleared == (name,)


UNCLEARABLE = {
    "description gone": (PLAIN, {"description": "Old"}),
    "description empty": (declared("description: ''"), {"description": "Old"}),
    "created gone": (PLAIN, {"createdTimestamp": 1}),
    "modified gone": (PLAIN, {"modifiedTimestamp": 1}),
    "closed gone": (PLAIN, {"closedTimestamp": 1}),
}


@pytest.mark.parametrize(("manifest", "fields"), UNCLEARABLE.values(), ids=UNCLEARABLE)
def test_a_field_that_the_service_cannot_clear_is_noted_once(manifest: str, fields: dict[str, object]) -> None:
    """A note says once that the service ignores the difference; nothing is sent."""
    rows = {TAG: row("tag/ACME-1", **fields), CATEGORY.key: CATEGORY}
    if "acme" not in manifest:
        del rows[CATEGORY.key]
    plan = planned(manifest, rows)
    assert notes(plan) == [("tag/ACME-1", "ignored")]
    assert (plan.changes_something, plan.sends_something) == (False, False)
    assert says_nothing(planned(manifest, applied(rows, plan)))


def test_a_change_shows_differences_that_the_service_ignores() -> None:
    plan = planned(declared("url: http://new"), [CATEGORY, row("tag/ACME-1", description="Old", url="http://old")])
    assert field_of(plan, "tag/ACME-1", "description").effect is FieldEffect.IGNORED
    assert not field_of(plan, "tag/ACME-1", "description").clears
    assert notes(plan) == [("tag/ACME-1", "ignored")]


def test_a_description_that_is_declared_again_is_sent() -> None:
    rows = walked(declared("description: Old"), declared("url: http://u"))
    assert (
        field_of(planned(declared("description: Old, url: http://u"), rows), "tag/ACME-1", "description").after == "Old"
    )


SAME = {
    "an empty text is gone": (PLAIN, {"url": ""}),
    "an empty list is gone": (PLAIN, {"assigneeExternalIds": ()}),
    "the usual path is gone": (PLAIN, {"path": "/"}),
    "the usual visibility is gone": (PLAIN, {"visibility": "PUBLIC"}),
}


@pytest.mark.parametrize(("manifest", "fields"), SAME.values(), ids=SAME)
def test_a_difference_that_means_the_same_is_only_recorded(manifest: str, fields: dict[str, object]) -> None:
    """No longer declaring the service's own default sends nothing and is recorded."""
    rows = {TAG: row("tag/ACME-1", **fields)}
    plan = planned(manifest, rows)
    assert (plan.changes, plan.notes) == ((), ())
    assert says_nothing(planned(manifest, applied(rows, plan)))


@pytest.mark.parametrize("empty", ["url: ''", "assigneeExternalIds: []", "externalId: ''", "category: ''"])
def test_an_explicit_empty_that_was_never_declared_is_sent(empty: str) -> None:
    rows = {TAG: row("tag/ACME-1"), CATEGORY.key: CATEGORY}
    plan = planned(declared(empty), rows)
    assert actions(plan) == {"tag/ACME-1": "update"}
    assert not plan.gate.tripped
    assert planned(declared(empty), applied(rows, plan)).changes == ()


def test_moving_to_a_category_by_id_names_both_fields() -> None:
    plan = planned(declared("tagCategoryId: x"), [CATEGORY, row("tag/ACME-1", category="acme")])
    shown = {field.name: (field.before, field.after) for field in change_of(plan, "tag/ACME-1").fields}
    assert shown == {"tagCategoryId": (None, "x"), "category": ("acme", None)}
    assert not any(field.clears for field in change_of(plan, "tag/ACME-1").fields)


# --- visibility


@pytest.mark.parametrize("status", [Status.ACTIVE, Status.RELEASED])
def test_a_private_tag_must_keep_declaring_its_visibility(status: Status) -> None:
    """No longer declaring PRIVATE is an error, since a tag that is created without it is public."""
    assert refused(PLAIN, [row("tag/ACME-1", visibility="PRIVATE", status=status)]) == {
        "visibility-dropped": "tag/ACME-1"
    }


def test_a_private_tag_is_opened_by_declaring_it_public() -> None:
    plan = planned(declared("visibility: PUBLIC"), [CATEGORY, row("tag/ACME-1", visibility="PRIVATE")])
    assert actions(plan) == {"tag/ACME-1": "update"}
    assert plan.gate.reasons == ("1 of 1 private tag made public (limit 0)",)


@pytest.mark.parametrize("manifest", [PLAIN, declared("visibility: PUBLIC"), declared("visibility: PRIVATE")])
def test_a_public_tag_may_declare_any_visibility(manifest: str) -> None:
    rows = [row("tag/ACME-1", visibility="PUBLIC"), CATEGORY]
    assert refused(manifest, rows) == {}


RENAMED = "tags: [{name: NEW, previously: [PLAIN-1, SECRET-1]%s}]"


def test_a_rename_of_a_private_tag_must_declare_its_visibility() -> None:
    rows = [row("tag/PLAIN-1"), row("tag/SECRET-1", visibility="PRIVATE")]
    assert refused(RENAMED % "", rows) == {"visibility-dropped": "tag/NEW"}
    plan = planned(RENAMED % ", visibility: PRIVATE", rows)
    assert (change_of(plan, "tag/NEW").opens, [unit.kind for unit in plan.gate.units]) == (UNSET, ["manifest"])


@pytest.mark.parametrize("own", [[], [gone("tag/NEW")], [row("tag/NEW", status=Status.RELEASED)]])
def test_a_rename_that_opens_a_private_tag_needs_an_approval(own: list[Recorded]) -> None:
    """Of several former names the change shows the private one."""
    rows = [row("tag/PLAIN-1"), row("tag/SECRET-1", visibility="PRIVATE"), *own]
    plan = planned(RENAMED % ", visibility: PUBLIC", rows)
    change = change_of(plan, "tag/NEW")
    assert change.previously == "SECRET-1"
    assert ("visibility", "PRIVATE", "PUBLIC") in [(f.name, f.before, f.after) for f in change.fields]
    assert "1 of 1 private tag made public (limit 0)" in plan.gate.reasons
    assert [unit.name for unit in plan.gate.units if unit.kind == "opened"] == ["tag/NEW"]


def test_an_approval_of_an_opened_tag_is_for_its_former_name() -> None:
    rows = [row(f"tag/{name}", visibility="PRIVATE") for name in ("SECRET-1", "SECRET-2", "NEW")]
    renamed = "tags: [{name: NEW, previously: [%s], visibility: PUBLIC}]"
    plans = [planned(renamed % name, rows[:2]) for name in ("SECRET-1", "SECRET-2")]
    plans.append(planned("tags: [{name: NEW, visibility: PUBLIC}]", rows))
    approvals = [unit.approve for plan in plans for unit in plan.gate.units if unit.kind == "opened"]
    assert len(approvals) == len(set(approvals)) == 3


@pytest.mark.parametrize(
    ("own", "opens"),
    [
        ([], ("SECRET-1", "SECRET-2")),
        ([row("tag/NEW", visibility="PRIVATE")], ("NEW", "SECRET-1", "SECRET-2")),
        ([row("tag/NEW", visibility="PRIVATE", status=Status.RELEASED)], ("NEW", "SECRET-1", "SECRET-2")),
        ([row("tag/NEW", visibility="PUBLIC", status=Status.RELEASED)], ("SECRET-1", "SECRET-2")),
    ],
)
def test_every_private_tag_that_a_rename_opens_counts(own: list[Recorded], opens: tuple[str, ...]) -> None:
    """One approval covers all former names of the rename, and no others."""
    rows = [row("tag/PLAIN-1"), *(row(f"tag/SECRET-{n}", visibility="PRIVATE") for n in (1, 2, 3)), *own]
    renamed = "tags: [{name: NEW, previously: [%s], visibility: PUBLIC}]"
    plan = planned(renamed % "PLAIN-1, SECRET-1, SECRET-2", rows)
    assert change_of(plan, "tag/NEW").opens == opens
    (unit,) = (unit for unit in plan.gate.units if unit.kind == "opened")
    assert (unit.name, unit.count) == ("tag/NEW", len(opens))
    assert any(reason.startswith(f"{len(opens)} of ") for reason in plan.gate.reasons)
    others = [planned(renamed % names, rows) for names in ("SECRET-1", "SECRET-2, SECRET-3", "PLAIN-1, SECRET-2")]
    approvals = [each.approve for plan in others for each in plan.gate.units if each.kind == "opened"]
    assert len({unit.approve, *approvals}) == 4


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


def test_a_deleted_private_tag_needs_no_visibility() -> None:
    assert refused(PLAIN, [gone("tag/ACME-1")]) == {}


FIRST = {
    "tag/T": ("tags: [{name: T, description: '', url: '', path: /}]", ["url", "path", "excludeTagNameKeyword"]),
    "activity-type/A": ("activityTypes: [{code: A, label: L, enableIfNew: false}]", ["label"]),
}


@pytest.mark.parametrize(("address", "manifest", "fields"), [(address, *each) for address, each in FIRST.items()])
def test_a_new_resource_shows_what_it_says_but_what_means_nothing(
    address: str, manifest: str, fields: list[str]
) -> None:
    """An empty description is ignored, and a type is not offered unless that is said; an empty URL clears another's."""
    assert [field.name for field in change_of(planned(manifest), address).fields] == fields


# --- metadata


def test_metadata_values_that_differ_are_upserted() -> None:
    rows = [CATEGORY, row("tag/ACME-1", metadata={"A": "1", "B": "1"})]
    plan = planned(declared("metadata: {A: '1', B: '2', C: '3'}"), rows)
    assert change_of(plan, "tag/ACME-1").metadata_set == {"B": "2", "C": "3"}
    assert steps(plan) == ["tags"]


def test_metadata_names_that_are_gone_are_deleted_in_one_request() -> None:
    plan = planned(PLAIN, [row("tag/ACME-1", metadata={"A": "1", "B": "1"})])
    assert (steps(plan), plan.summary.requests, plan.summary.metadata_deletes) == (["metadata deletes"], 1, 2)
    assert sent(plan, Step.METADATA_DELETES, "tag/ACME-1").metadata_dropped == ("A", "B")


def test_metadata_names_differ_by_case() -> None:
    """Names are case sensitive (docs/interface.md 2.1)."""
    plan = planned(declared("metadata: {client: x}"), [CATEGORY, row("tag/ACME-1", metadata={"Client": "x"})])
    change = change_of(plan, "tag/ACME-1")
    assert (change.metadata_set, change.metadata_deleted) == ({"client": "x"}, ("Client",))


def test_deletes_wait_for_the_upsert_of_their_tag() -> None:
    recorded = [CATEGORY, row("tag/ACME-1", "k", metadata={"A": "1"}, url="http://old")]
    both = planned(declared("url: http://new"), recorded)
    alone = planned(declared("url: http://old"), recorded)
    for step in (Step.KEYWORD_DELETES, Step.METADATA_DELETES):
        assert [item.needs for item in items(both, step)] == [(TAG,)]
        assert [item.needs for item in items(alone, step)] == [()]


# --- rows that come back


def test_a_released_tag_that_is_declared_again_is_diffed_against_its_kept_row() -> None:
    rows = walked(PLAIN, "{}")
    plan = planned(PLAIN, rows)
    assert (plan.changes, plan.sends_something) == ((), False)
    after = applied(rows, plan)
    assert after[TAG].status is Status.ACTIVE
    assert says_nothing(planned(PLAIN, after))


def test_a_released_tag_that_comes_back_different_is_updated() -> None:
    rows = walked(declared("keywords: [old], url: http://u"), "{}")
    plan = planned(declared("keywords: [new], url: http://u"), rows)
    change = change_of(plan, "tag/ACME-1")
    assert (change.keywords_added, change.keywords_deleted) == (("new",), ("old",))
    assert applied(rows, plan)[TAG].status is Status.ACTIVE


def test_a_retired_tag_that_is_declared_again_is_sent_whole() -> None:
    rows = [row("tag/ACME-1", status=Status.RETIRED, excludeTagNameKeyword=True)]
    plan = planned(PLAIN, rows)
    assert (actions(plan), steps(plan)) == ({"tag/ACME-1": "update"}, ["tags"])
