"""The sandbox keeps the service's rules for posted time groups, which users post, and for connectors."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from syncengine.sandbox import console, posting
from syncengine.sandbox.rules import MESSAGES

from .conftest import Asking

REOFFER, RETRY = 480, 60
"""The defaults of the settings, in seconds."""


@pytest.fixture
def fetching(service: Asking) -> Asking:
    service.told("registerFetchClient")
    return service


def status(service: Asking, id_: str, status: str, **more: Any) -> int:
    return service.ask("updatePostedTimeStatus", timeGroupId=id_, status=status, **more)[0]


def test_a_fetch_answers_the_oldest_groups_up_to_its_limit(fetching: Asking) -> None:
    """docs/interface.md 4, fetch rule 2: the default limit is 25."""
    fetching.post(*(f"g{number:02}" for number in range(40)))
    assert fetching.groups("fetchPostedTime", limit=3) == ["g00", "g01", "g02"]
    assert fetching.groups("fetchPostedTime") == [f"g{number:02}" for number in range(3, 28)]
    assert fetching.groups("fetchPostedTime", limit=1000) == [f"g{number:02}" for number in range(28, 40)]
    assert fetching.groups("fetchPostedTime") == []


@pytest.mark.parametrize(("told", "after"), [(None, REOFFER), ("RETRIABLE_FAILURE", RETRY)])
def test_a_group_without_an_end_is_offered_again(fetching: Asking, told: str | None, after: int) -> None:
    """docs/interface.md 3, 7.2: each time the re-offer time or, after a retriable failure, the retry time has passed. A
    fetched group is pending and has no caller key, which only webhook calls have."""
    fetching.post("g", description="D", totalDurationSecs=90, localDate="2026-01-27")
    (group,) = fetching.get("fetchPostedTime")[1]
    assert (group["groupId"], group["description"], group["status"]) == ("g", "D", "PENDING")
    assert (group["totalDurationSecs"], group["localDate"], "callerKey" in group) == (90, "2026-01-27", False)
    for offers in (2, 3):
        if told:
            assert status(fetching, "g", told, message="busy") == 200
            assert fetching.posted("g")["state"] == "retrying"
        fetching.later(after - 1)
        assert fetching.groups("fetchPostedTime") == []
        fetching.later(1)
        assert fetching.groups("fetchPostedTime") == ["g"]
        assert len(fetching.posted("g")["offers"]) == offers


def test_a_success_and_a_failure_are_final(fetching: Asking) -> None:
    """docs/interface.md 3, 7.2: the group keeps the external id or the message, and is never offered again.
    docs/interface.md 2.5 has no status for a failed group, so it is not listed."""
    fetching.post("good", "bad", "later")
    fetching.groups("fetchPostedTime")
    assert status(fetching, "good", "SUCCESS", externalId="ledger-1") == 200
    assert status(fetching, "bad", "FAILURE", message="Assign a tag.") == 200
    status(fetching, "later", "RETRIABLE_FAILURE")
    listed = fetching.get("listPostedTime")[1]
    assert {group["groupId"]: group["status"] for group in listed} == {"good": "SUCCESS", "later": "PENDING"}
    fetching.later(10 * REOFFER)
    assert fetching.groups("fetchPostedTime") == ["later"]
    good, bad = fetching.posted("good"), fetching.posted("bad")
    assert (good["state"], good["externalId"], good["due"]) == ("success", "ledger-1", None)
    assert (bad["state"], bad["message"], bad["due"]) == ("failed", "Assign a tag.", None)


def test_a_group_that_is_posted_again_is_offered_until_its_newest_content_has_a_status(fetching: Asking) -> None:
    """docs/service.md §2: after a failure too. The group keeps its id and its earlier statuses."""
    fetching.post("g", description="old")
    fetching.groups("fetchPostedTime")
    fetching.later(1)
    fetching.post("g", description="new")
    assert status(fetching, "g", "SUCCESS") == 200
    assert fetching.posted("g")["state"] == "posted"
    assert fetching.get("fetchPostedTime")[1][0]["description"] == "new"
    status(fetching, "g", "FAILURE", message="no")
    assert fetching.posted("g")["state"] == "failed"
    fetching.post("g", description="newest")
    assert fetching.get("fetchPostedTime")[1][0]["description"] == "newest"
    status(fetching, "g", "SUCCESS")
    (posted,) = fetching.state()["postedTime"]
    assert [told["status"] for told in posted["told"]] == ["SUCCESS", "FAILURE", "SUCCESS"]


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"status": "SUCCESS"}, 400),
        ({"timeGroupId": "g"}, 400),
        ({"timeGroupId": "g", "status": "DONE"}, 400),
        ({"timeGroupId": "g", "status": ["SUCCESS"]}, 400),
        ({"timeGroupId": 7, "status": "SUCCESS"}, 400),
        ({"timeGroupId": "g", "status": "FAILURE", "message": 7}, 400),
        ({"timeGroupId": "unrecorded", "status": "SUCCESS"}, 404),
        ({"timeGroupId": "no", "status": "SUCCESS"}, 404),
    ],
)
def test_a_status_update_that_is_not_understood_is_refused(service: Asking, body: dict[str, Any], answer: int) -> None:
    """docs/service.md §1: the group stays as it is. One posted while no client was registered is unknown."""
    service.post("unrecorded")
    service.told("registerFetchClient")
    service.post("g")
    service.groups("fetchPostedTime")
    before = service.state()["postedTime"]
    assert service.ask("updatePostedTimeStatus", **body)[0] == answer
    assert service.state()["postedTime"] == before


def test_the_list_goes_back_from_the_newest_and_changes_nothing(service: Asking) -> None:
    """docs/interface.md 4: the list includes unrecorded groups, and its default limit is 100."""
    for number in range(120):
        service.post(f"g{number:03}")
    newest_first = [f"g{number:03}" for number in reversed(range(120))]
    before = service.state()
    assert service.groups("listPostedTime") == newest_first[:100]
    assert service.groups("listPostedTime", limit=500) == newest_first
    assert service.groups("listPostedTime", limit=1) == newest_first[:1]
    assert service.state() == before


def test_the_list_leaves_out_what_was_submitted_later(service: Asking) -> None:
    """docs/interface.md 4: `submittedBefore` excludes groups of exactly that instant; a future group is not listed."""
    service.post("a", submissionTime=10)
    service.post("b1", "b2", submissionTime=20)
    service.post("c", submissionTime=30)
    service.post("future", submissionTime=10**15)
    assert service.groups("listPostedTime") == ["c", "b2", "b1", "a"]
    assert service.groups("listPostedTime", submittedBefore=30) == ["b2", "b1", "a"]
    assert service.groups("listPostedTime", submittedBefore=20) == ["a"]
    assert service.groups("listPostedTime", submittedBefore=10) == []


@pytest.mark.parametrize("operation", ["fetchPostedTime", "listPostedTime"])
def test_a_list_beyond_its_limits_is_refused_and_registers_nobody(service: Asking, operation: str) -> None:
    """docs/interface.md 8: the limit is 1 to 500, and for a fetch at least 1 (docs/service.md §1)."""
    for limit in (0, -1, "x", "", "1.5", *([501] if operation == "listPostedTime" else [])):
        assert service.get(operation, limit=limit)[0] == 400, limit
    assert service.state()["connection"]["mechanism"] is None
    assert service.get("listPostedTime", submittedBefore="yesterday")[0] == 400


# --- connectors: registration, reported failures, one mechanism at a time


REGISTRATION = {
    "environment": {"clientOs": "linux", "javaVmVersion": 21},
    "connectorType": "ledger",
    "connectorVersion": "1.0",
    "connectorLibraryVersion": "1.0",
    "clientTimestamp": 1706400000000,
    "clientTimeZoneOffset": "+10:00",
}
HOOK = {"callbackUrl": "https://connector.example.com/hook", "callerKey": "k"}
BODIES = {"registerWebhook": HOOK}


def test_a_registration_is_kept_without_its_credentials_which_are_new_each_time(service: Asking) -> None:
    """docs/interface.md 2.6: the service's id stays the same, and the expiry is an ISO 8601 instant."""
    first, second = (service.told("registerConnector", **REGISTRATION) for _ in range(2))
    texts = {"serviceId", "serviceKey", "serviceIdExpiry", "serviceSessionToken", "groupName", "regionName"}
    assert {name: type(value) for name, value in first.items()} == {
        **dict.fromkeys(texts, str),
        "connectorConfiguration": dict,
    }
    assert first["serviceId"] == second["serviceId"]
    assert datetime.fromisoformat(first["serviceIdExpiry"]).utcoffset() is not None
    assert REGISTRATION.items() <= service.state()["connection"]["connector"].items()
    held = str(service.sandbox.store.connection)
    for secret in ("serviceKey", "serviceSessionToken"):
        assert first[secret] != second[secret]
        assert second[secret] not in held


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_reported_failure_is_shown_to_who_posts_until_it_is_rescinded(service: Asking, kind: str) -> None:
    """docs/interface.md 3: users see the message of the report, or else the standard message of its error type."""
    assert service.ask("reportHealthFailure", errorType=kind) == (204, None)
    assert service.sandbox.do(posting.post, {}).body["healthMessage"] == MESSAGES[kind]
    assert service.ask("reportHealthFailure", errorType=kind, userErrorMessage="Ask Ann.")[0] == 204
    assert service.sandbox.do(posting.post, {}).body["healthMessage"] == "Ask Ann."
    assert service.state()["connection"]["health"]["errorType"] == kind
    for _ in range(2):
        assert service.ask("rescindHealthFailure") == (204, None)
        assert service.sandbox.do(posting.post, {}).body["healthMessage"] is None


@pytest.mark.parametrize(
    ("before", "step", "status", "mechanism"),
    [
        ([], "registerFetchClient", 200, "fetch"),
        (["registerFetchClient"], "registerFetchClient", 409, "fetch"),
        (["registerWebhook"], "registerFetchClient", 409, "webhook"),
        (["registerFetchClient"], "fetchPostedTime", 200, "fetch"),
        (["registerWebhook"], "fetchPostedTime", 409, "webhook"),
        ([], "unregisterFetchClient", 404, None),
        (["registerFetchClient"], "unregisterFetchClient", 200, None),
        (["registerWebhook"], "unregisterFetchClient", 409, "webhook"),
        (["registerWebhook"], "registerWebhook", 409, "webhook"),
        (["registerFetchClient"], "registerWebhook", 409, "fetch"),
        ([], "unregisterWebhook", 404, None),
        (["registerWebhook"], "unregisterWebhook", 200, None),
        (["registerFetchClient"], "unregisterWebhook", 404, "fetch"),
        (["registerFetchClient", "unregisterFetchClient"], "registerWebhook", 200, "webhook"),
        (["registerWebhook", "unregisterWebhook"], "registerFetchClient", 200, "fetch"),
    ],
)
def test_there_is_one_mechanism_at_a_time(
    service: Asking, before: list[str], step: str, status: int, mechanism: str | None
) -> None:
    """docs/service.md §1: 409 while another mechanism is active, 404 while none is; a fetch registers its client."""
    *_, last = (service.ask(each, **BODIES.get(each, {}))[0] for each in (*before, step))
    assert (last, service.state()["connection"]["mechanism"]) == (status, mechanism)


NO_URLS = (None, "", " ", 7, "hook", "ftp://example.com/x", "http://", "https://:80/x", "http://[", "http://h:99999/")
WRONG = {
    "registerConnector": ({"environment": []}, {"clientTimestamp": "now"}, {"connectorType": 1}),
    "reportHealthFailure": ({"errorType": "BROKEN"}, {"errorType": 1}, {"userErrorMessage": {}}),
    "registerWebhook": tuple({"callbackUrl": url} for url in NO_URLS),
}


@pytest.mark.parametrize(("operation", "body"), [(name, body) for name, bodies in WRONG.items() for body in bodies])
def test_what_is_not_understood_is_refused(service: Asking, operation: str, body: dict[str, Any]) -> None:
    """docs/interface.md 2.7, docs/service.md §1: errorType is an enum, and a webhook needs a URL that can be called."""
    before = service.state()
    assert (service.ask(operation, **body)[0], service.state()) == (400, before)


def test_a_webhook_takes_no_status_and_its_key_is_not_shown(service: Asking) -> None:
    """docs/interface.md 3: a status update answers 409, even for a group that was fetched before. The state shows only
    whether there is a key; unregistering the webhook removes it."""
    service.told("registerFetchClient")
    service.post("g")
    for step in ("fetchPostedTime", "unregisterFetchClient", "registerWebhook"):
        service.told(step, **BODIES.get(step, {}))
    assert service.ask("updatePostedTimeStatus", timeGroupId="g", status="SUCCESS")[0] == 409
    assert service.posted("g")["told"] == []
    connection = service.state()["connection"]
    assert (connection["callbackUrl"], connection["callerKey"]) == (HOOK["callbackUrl"], True)
    service.told("unregisterWebhook")
    connection = service.state()["connection"]
    assert (connection["callbackUrl"], connection["callerKey"]) == (None, False)


def test_only_time_posted_while_a_client_is_registered_is_offered(service: Asking) -> None:
    """docs/interface.md 3. The control API offers any group: unrecorded, not yet due, or acknowledged."""
    service.post("early")
    service.told("registerFetchClient")
    service.post("fetched", "done")
    service.told("unregisterFetchClient")
    service.post("late")
    assert service.groups("fetchPostedTime") == ["fetched", "done"]
    recorded = {posted["groupId"]: posted["recorded"] for posted in service.state()["postedTime"]}
    assert recorded == {"early": False, "fetched": True, "done": True, "late": False}
    service.told("updatePostedTimeStatus", timeGroupId="done", status="SUCCESS", externalId="e")
    for id_ in ("early", "fetched", "done"):
        assert service.sandbox.do(posting.offer, {"groupId": id_}).status == 200
    assert service.groups("fetchPostedTime") == ["early", "fetched", "done"]
    assert service.sandbox.do(posting.offer, {"groupId": "no"}).status == 404


# --- posting time as a user does: fields that are filled in, left out, or taken from tags, keywords and activity types


def composed(service: Asking, **said: Any) -> dict[str, Any]:
    service.sandbox.do(posting.post, {"groupId": "g", **said})
    group: dict[str, Any] = service.posted("g")["group"]
    return group


def test_a_group_without_fields_gets_defaults(service: Asking) -> None:
    """docs/interface.md 2.5: one hour of one person, ending now, on the date in the user's time zone."""
    now = int(datetime(2026, 1, 27, 9, 30, tzinfo=UTC).timestamp() * 1000)
    service.clock.now = now - 1
    group = composed(service)
    assert (group["totalDurationSecs"], group["totalDurationHours"], group["localDate"]) == (3600, 1.0, "2026-01-27")
    assert (group["submissionTime"], group["timestamp"], group["tags"]) == (now, now, [])
    (row,) = group["timeRows"]
    assert (row["activityHour"], row["firstObservedInHour"], row["durationSecs"]) == (2026012708, 30, 3600)
    assert row["submittedDate"] == 20260127093000000
    assert group["user"]["externalId"] == "jd"
    assert "activityType" not in group
    assert composed(service, tzOffsetMins=-600)["localDate"] == "2026-01-26"
    ahead = composed(service, tzOffsetMins=15 * 60)
    assert ahead["localDate"] == "2026-01-28"
    assert (ahead["timeRows"][0]["timezone_offset_min"], "timezone_name" in ahead["timeRows"][0]) == (900, False)


def test_totals_are_sums_of_rows_unless_the_user_edited_them(service: Asking) -> None:
    """docs/interface.md 2.5: missing fields of rows are filled in, too. A duration beyond all numbers is just sent."""
    rows = [{"durationSecs": 1000}, {"durationSecs": 100, "description": None}, {"durationSecs": 10**400}]
    group = composed(service, timeRows=rows)
    assert (group["totalDurationSecs"], group["totalDurationHours"]) == (1100, 0.31)
    assert (group["timeRows"][1]["description"], group["timeRows"][1]["source"]) == (None, "WT_DESKTOP")
    assert group["timeRows"][2]["durationSecs"] == 10**400
    assert composed(service, timeRows=rows, totalDurationSecs=1200)["totalDurationSecs"] == 1200
    assert composed(service, timeRows=[])["totalDurationSecs"] == 0


def test_unknown_fields_are_sent_as_posted_and_null_leaves_a_field_out(service: Asking) -> None:
    """Groups without user, tag, rows or date exist in practice (docs/service.md §2). `status` and `callerKey` are set
    by the service itself."""
    left_out = ("user", "tags", "timeRows", "localDate", "activityType", "tzOffsetMins")
    group = composed(service, colour="blue", status="DONE", callerKey="k", **dict.fromkeys(left_out))
    assert group["colour"] == "blue"
    assert not group.keys() & {*left_out, "status", "callerKey"}


def test_a_tag_comes_with_what_the_service_knows_of_it(service: Asking) -> None:
    """docs/interface.md 2.1: its description and external id, and its default activity type if no other is chosen."""
    service.told("uploadActivityTypes", activityTypes=[{"code": "A", "label": "Ay"}, {"code": "B", "label": "Be"}])
    service.told("upsertTag", name="T", description="D", externalId="4711", defaultActivityTypeCode="A")
    group = composed(service, tag="T")
    assert group["tags"] == [{"name": "T", "path": "/", "description": "D", "externalId": "4711"}]
    assert group["activityType"] == {"code": "A", "label": "Ay"}
    assert composed(service, tags=[{"name": "T", "externalId": "own"}])["tags"][0]["externalId"] == "own"
    assert composed(service, tag="unknown")["tags"] == [{"name": "unknown"}]
    assert composed(service, tag="T", activityType="B")["activityType"] == {"code": "B", "label": "Be"}
    for chosen, sent in (({"code": "X", "label": "Y"}, {"code": "X", "label": "Y"}), ("gone", {"code": "gone"})):
        assert composed(service, activityType=chosen)["activityType"] == sent


@pytest.mark.parametrize(
    "body",
    [
        *({"groups": {}}, {"groups": [{}, 7]}, {"tags": ["T"]}, {"timeRows": ["row"]}, {"totalDurationSecs": "1h"}),
        *({"totalDurationSecs": 10**400}, {"groupId": 7}, {"user": "Jane"}, {"submissionTime": "now"}),
        {"tzOffsetMins": 10**15},
    ],
)
def test_what_cannot_be_posted_is_refused(service: Asking, body: dict[str, Any]) -> None:
    """An invalid group answers 400, and none of the operation's groups is posted. Groups of one operation have ids of
    their own, and share their submission time (docs/interface.md 4)."""
    assert service.sandbox.do(posting.post, body).status == 400
    assert service.state()["postedTime"] == []
    answer = service.sandbox.do(posting.post, {"groups": [{}, {}, {}]}).body
    assert len({group["groupId"] for group in answer["groups"]}) == 3
    assert len({posted["group"]["submissionTime"] for posted in service.state()["postedTime"]}) == 1


def tags_of(service: Asking, *rows: dict[str, Any], **said: Any) -> list[str]:
    service.post("g", **{"timeRows": list(rows), **said})
    return [tag["name"] for tag in service.posted("g")["group"].get("tags", [])]


@pytest.fixture
def matters(service: Asking) -> Asking:
    """Two tags with keywords, and one without."""
    service.told("upsertTag", name="ACME-0042", additionalKeywords=["EP 1234567"], externalId="4711")
    service.told("upsertTag", name="Zürich AG", excludeTagNameKeyword=True, additionalKeywords=["Zürich"])
    service.told("upsertTag", name="Retired", excludeTagNameKeyword=True)
    return service


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Letter on EP 1234567.docx", ["ACME-0042"]),
        ("re: acme-0042, draft", ["ACME-0042"]),
        ("@_ZÜRICH calls_@", ["Zürich AG"]),
        ("Zu\u0308rich", ["Zürich AG"]),
        ("XACME-00421", ["ACME-0042"]),
        ("EP 1234567 for Zürich", ["ACME-0042", "Zürich AG"]),
        ("EP1234567", []),
        ("Retired", []),
        ("", []),
    ],
)
@pytest.mark.parametrize("field", ["activity", "description"])
def test_a_row_gets_the_tags_whose_keywords_it_holds(matters: Asking, field: str, text: str, names: list[str]) -> None:
    """Matching ignores case and finds parts of words, in the activity or the description; spaces must agree."""
    assert tags_of(matters, {"activity": None, "description": "", field: text}) == names


def test_each_row_is_matched_by_itself_unless_a_tag_is_chosen(matters: Asking) -> None:
    """docs/service.md §2: a chosen tag, an empty list of tags or `matchKeywords: false` switches matching off. A
    keyword does not match across two rows, nor once it is deleted, as for a retired tag."""
    first, second = {"description": "EP 12"}, {"description": "34567", "activity": "zürich"}
    assert tags_of(matters, first, second) == ["Zürich AG"]
    assert tags_of(matters, {"description": "EP 1234567"}, second) == ["ACME-0042", "Zürich AG"]
    row = {"description": "EP 1234567"}
    for said in ({"tags": []}, {"tags": None}, {"matchKeywords": False}):
        assert tags_of(matters, row, **said) == []
    assert tags_of(matters, row, tag="Zürich AG") == ["Zürich AG"]
    assert tags_of(matters, row, matchKeywords=True) == ["ACME-0042"]
    group = matters.posted("g")["group"]
    assert (group["tags"], "matchKeywords" in group) == (
        [{"name": "ACME-0042", "path": "/", "externalId": "4711"}],
        False,
    )
    matters.told("deleteKeyword", tagName="ACME-0042", keyword="EP 1234567")
    assert tags_of(matters, row) == []


def shape(texts: str, numbers: str = "", **fields: Any) -> Any:
    """A type of objects with these fields, none of which is required, and no other field."""
    types = {**dict.fromkeys(texts.split(), str), **dict.fromkeys(numbers.split(), int), **fields}
    return msgspec.defstruct("Shape", [(name, kind, None) for name, kind in types.items()], forbid_unknown_fields=True)


USER = shape("userId name email externalId businessRole", "experienceWeightingPercent")
ROW = shape(
    "activity description modifier activityTypeCode source timezone_name",
    "activityHour firstObservedInHour durationSecs submittedDate timezone_offset_min",
)
GROUP = shape(
    "callerKey groupId description formattedNarrative localDate groupName narrativeType status durationSplitStrategy",
    "totalDurationSecs tzOffsetMins timestamp submissionTime",
    totalDurationHours=float,
    tags=list[shape("name path description externalId")],  # type: ignore[misc] # it is a type that is made here
    timeRows=list[ROW],
    activityType=shape("code label"),
    user=USER,
    originatingUser=USER,
)


@pytest.mark.parametrize(
    "posted",
    [
        {},
        {"tag": "T", "activityType": "A", "originatingUser": {"name": "Ann"}},
        {"tags": [{"name": "T"}], "totalDurationSecs": 1234, "tzOffsetMins": -120},
        {"user": None, "tags": None, "timeRows": None, "localDate": None},
        console.group_of({**console.EMPTY, "user": "Ann Bell", "tag": "T", "activities": "a\nb"})[0],
    ],
)
def test_a_posted_group_has_the_shape_of_the_specification(service: Asking, posted: dict[str, Any]) -> None:
    """A fetched or listed group has only known fields of the right type; a missing field is absent, never null."""
    service.told("upsertTag", name="T", description="D", externalId="4711", defaultActivityTypeCode="A")
    service.told("uploadActivityTypes", activityTypes=[{"code": "A", "label": "Ay"}])
    service.told("registerFetchClient")
    service.sandbox.do(posting.post, posted)
    for operation in ("fetchPostedTime", "listPostedTime"):
        (group,) = service.get(operation)[1]
        msgspec.convert(group, GROUP)
        assert {"groupId", "status", "submissionTime"} <= group.keys()
