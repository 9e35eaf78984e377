"""The sandbox keeps the service's rules for tags, batches, tag categories, activity types and sync sessions."""

from typing import Any

import pytest

from syncengine.document.validation import names_of
from syncengine.effects import Effect
from syncengine.manifest.schema import NEVER_FIELDS, Tag
from syncengine.plan.diff import KEPT
from syncengine.resource import Key, Kind
from syncengine.sandbox.bodies import TagBody, read
from syncengine.sandbox.rules import expire
from syncengine.sandbox.store import TEAM
from syncengine.service.operations import BATCH_LIMIT, OPERATIONS, tag_body

from .conftest import Asking


def test_keywords_and_metadata_are_only_added(service: Asking) -> None:
    """docs/interface.md 2.1: existing ones are never removed, a value is replaced, and their case counts. By default,
    the name is a keyword, visibility is PUBLIC and the path is `/`."""
    assert service.told("upsertTag", name="T") == {}
    made = {"name": "T", "path": "/", "visibility": "PUBLIC", "category": None, "keywords": ["T"], "metadata": {}}
    assert service.tag("T") == made
    # A tag that is named twice in a batch takes both, in order.
    first = {"name": "T", "description": "1", "additionalKeywords": ["a", "A"], "metadata": {"x": "1", "y": "2"}}
    second = {"name": "T", "description": "2", "additionalKeywords": ["a", "c"], "metadata": {"y": "3", "X": "4"}}
    service.told("upsertTags", tags=[first, second])
    service.told("upsertTag", name="T", additionalKeywords=[], metadata={})
    assert service.told("addKeywords", tagName="T", additionalKeywords=["c", "d"]) == {}
    tag = service.tag("T")
    assert (tag["keywords"], tag["description"]) == (["A", "T", "a", "c", "d"], "2")
    assert tag["metadata"] == {"x": "1", "y": "3", "X": "4"}


@pytest.mark.parametrize(
    ("first", "second", "keywords"),
    [
        ({"excludeTagNameKeyword": True}, {"excludeTagNameKeyword": True}, []),
        ({"excludeTagNameKeyword": True}, {}, ["T"]),
        ({"excludeTagNameKeyword": False}, {"excludeTagNameKeyword": True}, ["T"]),
        ({}, {"excludeTagNameKeyword": None}, ["T"]),
        ({"excludeTagNameKeyword": True, "additionalKeywords": ["T"]}, {"excludeTagNameKeyword": True}, ["T"]),
    ],
)
def test_excluding_the_name_adds_no_keyword_and_removes_none(
    service: Asking, first: dict[str, Any], second: dict[str, Any], keywords: list[str]
) -> None:
    """docs/interface.md 2.1: excludeTagNameKeyword keeps the name from being added; additionalKeywords may list it."""
    service.told("upsertTag", name="T", **first)
    service.told("upsertTag", name="T", **second)
    assert service.tag("T")["keywords"] == keywords


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("url", "https://x"), ("externalId", "4711"), ("managedBy", "us"), ("defaultActivityTypeCode", "A1")),
        *(("tagCategoryId", "id-1"), ("assigneeExternalIds", ["jd"])),
    ],
)
def test_an_explicit_empty_value_clears_a_field_and_an_absent_one_keeps_it(
    service: Asking, field: str, value: Any
) -> None:
    """docs/service.md §3: an empty value clears the field; an absent or null one keeps it."""
    service.told("upsertTagCategories", tagCategories=[{"externalId": "c"}])
    service.told("upsertTag", name="T", **{field: value})
    for more in ({}, {field: None}):
        service.told("upsertTag", name="T", **more)
    assert service.tag("T")[field] == value
    service.told("upsertTag", name="T", **{field: type(value)()})
    assert field not in service.tag("T")


def test_each_field_of_a_manifest_is_kept_and_can_be_cleared() -> None:
    """A field without a line in `TagBody` is not kept. What clears it, by `EMPTY`, is of the type that `TagBody` says.
    `excludeTagNameKeyword` is always sent."""
    kept = {str(info.alias) for info in TagBody.model_fields.values()} | {"category"}
    fields = names_of(Tag).keys() - NEVER_FIELDS
    assert fields <= kept
    cleared = fields - {"name", "excludeTagNameKeyword"} - {name for _, name in KEPT}
    read(TagBody, tag_body(Effect(key=Key(Kind.TAG, "T"), cleared=tuple(cleared)), None, spell_name=False))


def test_an_upsert_changes_only_what_it_names(service: Asking) -> None:
    """docs/interface.md 2.1: an empty description is ignored, an empty path is `/`, and 0 is a valid timestamp."""
    service.told("upsertTag", name="T", visibility="PRIVATE", createdTimestamp=0, closedTimestamp=5, description="old")
    service.told("upsertTag", name="T", closedTimestamp=6, path="/a", description="")
    service.told("upsertTag", name="T", description=None)
    tag = service.tag("T")
    assert (tag["visibility"], tag["createdTimestamp"], tag["closedTimestamp"]) == ("PRIVATE", 0, 6)
    assert (tag["description"], tag["path"]) == ("old", "/a")
    service.told("upsertTag", name="T", path="")
    assert service.tag("T")["path"] == "/"


WRONG = [
    ({}, "name is missing"),
    ({"name": ""}, "name is missing"),
    ({"name": "  "}, "name is missing"),
    ({"name": 7}, "name must be a string"),
    ({"name": "T", "tagCategoryId": "nowhere"}, "tagCategoryId: there is no category nowhere"),
    ({"name": "T", "visibility": "SECRET"}, "visibility must be PUBLIC or PRIVATE"),
    ({"name": "T", "additionalKeywords": "a"}, "additionalKeywords must be an array of strings"),
    ({"name": "T", "additionalKeywords": [1]}, "additionalKeywords must be an array of strings"),
    ({"name": "T", "metadata": {"a": 1}}, "metadata must be an object of strings"),
    ({"name": "T", "excludeTagNameKeyword": "yes"}, "excludeTagNameKeyword must be true or false"),
    ({"name": "T", "createdTimestamp": "now"}, "createdTimestamp must be an integer of 64 bits"),
    ({"name": "T", "createdTimestamp": True}, "createdTimestamp must be an integer of 64 bits"),
    ({"name": "T", "createdTimestamp": 2**63}, "createdTimestamp must be an integer of 64 bits"),
]


@pytest.mark.parametrize(("item", "words"), WRONG)
def test_a_wrong_item_fails_alone_and_a_wrong_single_tag_is_refused(
    service: Asking, item: dict[str, Any], words: str
) -> None:
    """docs/interface.md 7.1: an error names the position of the failed item."""
    assert service.ask("upsertTag", **item) == (400, {"message": words})
    answer = service.told("upsertTags", tags=[{"name": "A"}, item, {"name": "B"}])
    assert answer == {"errors": [{"index": 1, "errorDescription": words}]}
    assert [tag["name"] for tag in service.state()["tags"]] == ["A", "B"]


def test_what_is_deleted_is_gone_even_the_name_as_a_keyword(service: Asking) -> None:
    """docs/interface.md 4, docs/service.md §1: the next upsert adds the name again, and unknown metadata is ignored. A
    tag that is created again starts empty."""
    service.told("upsertTag", name="T", description="old", additionalKeywords=["a"], metadata={"x": "1", "y": "2"})
    assert service.told("deleteKeyword", tagName="T", keyword="T") == {}
    assert service.tag("T")["keywords"] == ["a"]
    for _ in range(2):
        assert service.told("deleteTagMetadata", tagName="T", metadataNames=["x", "never"]) == {}
    service.told("upsertTag", name="T")
    assert (service.tag("T")["keywords"], service.tag("T")["metadata"]) == (["T", "a"], {"y": "2"})
    assert service.told("deleteTag", name="T") == {}
    service.told("upsertTag", name="T")
    assert service.tag("T")["keywords"] == ["T"]
    assert "description" not in service.tag("T")


@pytest.mark.parametrize(
    ("operation", "body", "status"),
    [
        ("addKeywords", {"tagName": "no", "additionalKeywords": ["a"]}, 404),
        ("deleteKeyword", {"tagName": "no", "keyword": "a"}, 404),
        ("deleteKeyword", {"tagName": "T", "keyword": "no"}, 404),
        ("deleteTagMetadata", {"tagName": "no", "metadataNames": ["a"]}, 404),
        ("deleteTag", {"name": "no"}, 404),
        ("addKeywords", {"additionalKeywords": ["a"]}, 400),
        ("addKeywords", {"tagName": "T"}, 400),
        ("deleteKeyword", {"tagName": "T"}, 400),
        ("deleteKeyword", {"tagName": 5, "keyword": "a"}, 400),
        ("deleteTagMetadata", {"tagName": "T"}, 400),
        ("deleteTagMetadata", {"tagName": "T", "metadataNames": "a"}, 400),
        ("deleteTag", {}, 400),
    ],
)
def test_what_is_unknown_is_404_and_what_is_incomplete_is_400(
    service: Asking, operation: str, body: dict[str, Any], status: int
) -> None:
    """docs/service.md §1; nothing changes."""
    service.told("upsertTag", name="T", metadata={"a": "1"})
    before = service.state()
    assert service.ask(operation, **body)[0] == status
    assert service.state() == before


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS.values() if each.items], ids=lambda operation: operation.id
)
def test_a_batch_without_a_list_or_over_the_limit_is_refused_whole(service: Asking, operation: Any) -> None:
    """docs/service.md §2: at most 2,000 items; an empty list is accepted."""
    item = {"name": "x", "externalId": "x", "code": "x", "label": "x"}
    for items in (None, {}, "x", [item] * (BATCH_LIMIT + 1)):
        assert service.ask(operation.id, **{operation.items: items})[0] == 400
    assert service.state()["tags"] == service.state()["categories"] == service.state()["activityTypes"] == []
    for items in ([], [item] * BATCH_LIMIT):
        service.told(operation.id, **{operation.items: items})


def test_new_tags_over_the_limit_refuse_the_whole_batch(service: Asking) -> None:
    """docs/service.md §1: 402 for new tags; updates still succeed, even once there are more tags than allowed."""
    service.sandbox.store.put(TEAM, "settings", {"tagLimit": 2})
    service.told("upsertTag", name="A")
    assert service.ask("upsertTags", tags=[{"name": "A", "url": "u"}, {"name": "B"}, {"name": "C"}])[0] == 402
    assert [tag["name"] for tag in service.state()["tags"]] == ["A"]
    assert "url" not in service.tag("A")
    service.told("upsertTags", tags=[{"name": "A"}, {"name": "B"}, {"name": "B"}])
    for limit in (2, 1):
        service.sandbox.store.put(TEAM, "settings", {"tagLimit": limit})
        service.told("upsertTags", tags=[{"name": "A", "url": "u"}, {"name": "B"}])
        assert service.ask("upsertTag", name="C")[0] == 402


@pytest.mark.parametrize(
    ("operation", "good", "table"),
    [("upsertTags", {"name": "A"}, "tags"), ("uploadActivityTypes", {"code": "A", "label": "A"}, "activityTypes")],
)
def test_a_service_that_answers_400_for_item_errors_applies_nothing(
    service: Asking, operation: str, good: dict[str, Any], table: str
) -> None:
    """docs/service.md §1: a batch may be answered with 400 and a list of errors. Then the sandbox applies none."""
    service.sandbox.store.put(TEAM, "settings", {"statusForItemErrors": 400})
    status, answer = service.ask(operation, **{table: [good, {}]})
    assert (status, [error["index"] for error in answer["errors"]]) == (400, [1])
    assert service.state()[table] == []
    assert service.ask(operation, **{table: [good]}) == (200, {"errors": []})


# --- categories


def put(service: Asking, *categories: dict[str, Any]) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = service.told("upsertTagCategories", tagCategories=list(categories))["tagCategories"]
    return answer


def test_a_category_is_known_by_its_external_id(service: Asking) -> None:
    """docs/service.md §2: the answer alone has the id. Absent fields stay, empty ones are cleared."""
    full = {"id": "id-1", "externalId": "a", "label": "A", "description": "old", "keywords": ["k"]}
    assert put(service, {**full, "id": ""}, {"externalId": "b"}) == [full, {"id": "id-2", "externalId": "b"}]
    assert put(service, {"externalId": "a", "label": "B"}) == [{**full, "label": "B"}]
    assert put(service, {"externalId": "a", "description": "", "keywords": []}) == [
        {"id": "id-1", "externalId": "a", "label": "B"}
    ]


def test_an_id_with_another_external_id_renames(service: Asking) -> None:
    """A renamed category keeps its id and its tags, and its old externalId is free again."""
    put(service, {"externalId": "old", "label": "L"})
    service.told("upsertTag", name="T", tagCategoryId="id-1")
    assert put(service, {"id": "id-1", "externalId": "new"}) == [{"id": "id-1", "externalId": "new", "label": "L"}]
    assert service.tag("T")["category"] == "new"
    assert put(service, {"externalId": "old"})[0]["id"] == "id-2"


def test_two_categories_may_swap_their_external_ids_but_not_share_one(service: Asking) -> None:
    """Uniqueness of externalIds is checked after the whole batch."""
    put(service, {"externalId": "a"}, {"externalId": "b"})
    before = service.state()
    assert service.ask("upsertTagCategories", tagCategories=[{"id": "id-1", "externalId": "b"}])[0] == 400
    assert service.state() == before
    put(service, {"id": "id-1", "externalId": "b"}, {"id": "id-2", "externalId": "a"})
    assert [category["id"] for category in put(service, {"externalId": "a"}, {"externalId": "b"})] == ["id-2", "id-1"]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({}, "externalId is missing"),
        ({"externalId": ""}, "externalId is missing"),
        ({"externalId": 1}, "externalId must be a string"),
        ({"id": "no", "externalId": "x"}, "there is no category with id no"),
        ({"externalId": "x", "keywords": "k"}, "keywords must be an array of strings"),
        ("x", "expected an object"),
    ],
)
def test_one_wrong_item_refuses_the_whole_batch(service: Asking, item: Any, words: str) -> None:
    """docs/service.md §1: an invalid category answers 400, and nothing of the batch is applied."""
    answer = service.ask("upsertTagCategories", tagCategories=[{"externalId": "good"}, item])
    assert answer == (400, {"message": f"tagCategories[1]: {words}"})
    assert service.state()["categories"] == []


def test_deleting_a_category_deletes_every_tag_still_in_it(service: Asking) -> None:
    """docs/service.md §1: tags that were moved out before stay. The id of a deleted category is never given again."""
    put(service, {"externalId": "a"}, {"externalId": "b"})
    tags = {"in": "id-1", "moved": "id-1", "out": "id-1", "other": "id-2"}
    service.told("upsertTags", tags=[{"name": n, "tagCategoryId": c} for n, c in tags.items()] + [{"name": "none"}])
    service.told("upsertTags", tags=[{"name": "moved", "tagCategoryId": "id-2"}, {"name": "out", "tagCategoryId": ""}])
    assert service.told("deleteTagCategory", externalId="a") == {}
    assert [tag["name"] for tag in service.state()["tags"]] == ["moved", "none", "other", "out"]
    assert [category["externalId"] for category in service.state()["categories"]] == ["b"]
    assert put(service, {"externalId": "a"})[0]["id"] == "id-3"
    assert service.ask("upsertTag", name="T", tagCategoryId="id-1")[0] == 400
    for body, status in (({"externalId": "no"}, 404), ({}, 400), ({"externalId": ""}, 400)):
        assert service.ask("deleteTagCategory", **body)[0] == status


# --- activity types and sync sessions


ITEM_OF_B = {"code": "B", "label": "B"}


def upload(service: Asking, *codes: str, session: str | None = None, label: str = "L", **more: Any) -> Any:
    items = [{"code": code, "label": label, **more} for code in codes]
    return service.told("uploadActivityTypes", activityTypes=items, syncSessionId=session)


def start(service: Asking) -> str:
    session: str = service.told("startSyncSession")["syncSessionId"]
    return session


def complete(service: Asking, session: str) -> None:
    assert service.told("completeSyncSession", syncSessionId=session) == {"syncSessionId": session}


@pytest.mark.parametrize(
    ("flag", "enabled"), [({}, False), ({"enableIfNew": False}, False), ({"enableIfNew": True}, True)]
)
def test_a_new_type_is_offered_only_if_asked_for(service: Asking, flag: dict[str, Any], enabled: bool) -> None:
    """docs/service.md §2: without enableIfNew, a new activity type is created but not offered to users. Later uploads
    change only the description: an empty one clears it, a missing one keeps it."""
    assert upload(service, "A", description="one", **flag) == {"errors": []}
    upload(service, "A", label="other", enableIfNew=True)
    known = service.activity_types()["A"]
    assert (known["label"], known["enabled"], known["deleted"]) == ("L", enabled, False)
    assert known["description"] == "one"
    for description in ("two", ""):
        upload(service, "A", description=description)
        assert service.activity_types()["A"]["description"] == description


@pytest.mark.parametrize("step", [1, 0], ids=["the clock goes on", "all in one instant"])
def test_completing_deletes_what_was_last_uploaded_before_the_session(service: Asking, step: int) -> None:
    """docs/interface.md 3: types uploaded since the session's start stay, in the session or outside it. With equal
    timestamps, the order of requests decides. A type whose upload failed counts as not uploaded (docs/service.md §2);
    known connectors make this mistake."""
    service.clock.step = step
    upload(service, "A", "B", "C")
    session = start(service)
    upload(service, "A", "D", session=session)
    assert upload(service, "C", label="") == {"errors": [{"index": 0, "errorDescription": "label is missing"}]}
    upload(service, "B", "E")
    complete(service, session)
    assert service.alive() == {"A", "B", "D", "E"}


def test_of_several_open_sessions_each_has_its_own_start(service: Asking) -> None:
    """docs/interface.md 3: an upload counts for every session that was open at the time; cancelling deletes nothing."""
    first = start(service)
    upload(service, "A", session=first)
    second, third = start(service), start(service)
    upload(service, "B", session=third)
    assert service.told("cancelSyncSession", syncSessionId=third) == {"syncSessionId": third}
    complete(service, first)
    assert service.alive() == {"A", "B"}
    complete(service, second)
    assert service.alive() == {"B"}


def test_a_deleted_type_is_revived_only_if_asked_for(service: Asking) -> None:
    """docs/service.md §2: an upload without reenableIfArchived is acknowledged but revives nothing. A revived type is
    offered, whatever enableIfNew says, and has its old label. A type that was never deleted is not offered by
    reenableIfArchived."""
    for _ in range(2):
        upload(service, "A", reenableIfArchived=True)
    assert service.activity_types()["A"]["enabled"] is False
    complete(service, start(service))
    assert service.alive() == set()
    session = start(service)
    assert upload(service, "A", session=session, enableIfNew=True) == {"errors": []}
    complete(service, session)
    known = service.activity_types()["A"]
    assert (known["deleted"], known["enabled"]) == (True, False)
    upload(service, "A", label="new", reenableIfArchived=True, enableIfNew=False)
    known = service.activity_types()["A"]
    assert (known["deleted"], known["enabled"], known["label"]) == (False, True, "L")


@pytest.mark.parametrize("end", ["completeSyncSession", "cancelSyncSession", "expired"])
def test_an_ended_session_is_unusable(service: Asking, end: str) -> None:
    """docs/interface.md 3, docs/service.md §1: it is refused like an unknown one, and nothing changes."""
    upload(service, "A")
    session, other = start(service), start(service)
    upload(service, "A", session=session)
    if end == "expired":
        service.sandbox.do(expire, {"syncSessionId": session})
    else:
        service.told(end, syncSessionId=session)
    for operation, status in (("completeSyncSession", 404), ("cancelSyncSession", 404), ("uploadActivityTypes", 400)):
        answer = service.ask(operation, syncSessionId=session, activityTypes=[ITEM_OF_B])
        assert answer == (status, {"message": "the sync session is unknown or closed"})
    assert service.alive() == {"A"}
    complete(service, other)
    start(service)
    service.sandbox.do(expire, {})  # the lifetime of a session is unknown, so a test ends one session or all of them
    ended = {"completeSyncSession": "completed", "cancelSyncSession": "cancelled"}.get(end, "expired")
    assert [each["state"] for each in service.state()["sessions"]] == [ended, "completed", "expired"]


@pytest.mark.parametrize("session", ["no", "", None, 7])
def test_an_unknown_session_is_refused(service: Asking, session: Any) -> None:
    """docs/service.md §1; an upload needs none."""
    status = 400 if session == 7 else 404
    for operation in ("completeSyncSession", "cancelSyncSession"):
        assert service.ask(operation, syncSessionId=session)[0] == status
    uploaded, _ = service.ask("uploadActivityTypes", syncSessionId=session, activityTypes=[ITEM_OF_B])
    assert (uploaded, service.alive()) == ((200, {"B"}) if session is None else (400, set()))


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"label": "A"}, "code is missing"),
        ({"code": "", "label": "A"}, "code is missing"),
        ({"code": "X"}, "label is missing"),
        ({"code": "X", "label": " "}, "label is missing"),
        ({"code": 101, "label": "A"}, "code must be a string"),
        ({"code": "X", "label": "A", "enableIfNew": "yes"}, "enableIfNew must be true or false"),
    ],
)
def test_a_wrong_item_fails_alone(service: Asking, item: dict[str, Any], words: str) -> None:
    """docs/interface.md 7.1: an invalid item is reported, and the other items of the batch are applied."""
    answer = service.told("uploadActivityTypes", activityTypes=[item, ITEM_OF_B])
    assert answer == {"errors": [{"index": 0, "errorDescription": words}]}
    assert service.alive() == {"B"}
