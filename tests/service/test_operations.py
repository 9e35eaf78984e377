"""What is sent to the service and read from it: bodies, posted time, limits and pages (docs/interface.md 2, 4)."""

import asyncio
import re
from typing import Any

import msgspec
import pytest

from syncengine.effects import Effect
from syncengine.errors import SyncengineError, Usage
from syncengine.resource import Key, Kind
from syncengine.sandbox.app import running_sandbox
from syncengine.service.client import Client
from syncengine.service.operations import (
    FETCH_POSTED_TIME,
    OPERATIONS,
    SINGLE_BODIES,
    activity_type_body,
    category_body,
    tag_body,
)
from syncengine.service.posted_time import Unreadable, fetch, group_id, groups_in, groups_of, listed, update_status
from tests.support import loopback
from tests.support.pages import ROOT

from .scripted import OK, Reply, saying
from .talking import BUSY, KEY, talking

TAG, CATEGORY, TYPE = Key(Kind.TAG, "T-1"), Key(Kind.CATEGORY, "acme"), Key(Kind.ACTIVITY_TYPE, "A101")


def test_the_operations_are_those_of_docs_service() -> None:
    """Method and path of each (docs/service.md §1)."""
    page = (ROOT / "docs/service.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)`[^|]* \| (GET|POST) \| (/\S+) \|", page, re.MULTILINE)
    assert sorted((id, each.method, each.path) for id, each in OPERATIONS.items()) == sorted(rows)


def test_a_tag_is_sent_with_exactly_its_declared_fields() -> None:
    fields = {
        "description": "d",
        "excludeTagNameKeyword": False,
        "assigneeExternalIds": ("jd", "ab"),
        "createdTimestamp": 1714554000000,
        "visibility": "PRIVATE",
    }
    metadata = {"Client": "Acme"}
    effect = Effect(key=TAG, fields={**fields, "category": "acme"}, keywords=("EP 1", "T-1"), metadata=metadata)
    assert tag_body(effect, "id-7", spell_name=False) == {
        **fields,
        "name": "T-1",
        "tagCategoryId": "id-7",
        "assigneeExternalIds": ["jd", "ab"],
        "metadata": metadata,
        "additionalKeywords": ["EP 1"],
    }


def test_a_cleared_field_is_sent_as_an_explicit_empty_value() -> None:
    """An empty string or list, or the path `/`; fields that cannot be cleared are left out."""
    cleared = ("url", "category", "assigneeExternalIds", "path", "description", "closedTimestamp")
    empty = {"url": "", "tagCategoryId": "", "assigneeExternalIds": [], "path": "/"}
    effect = Effect(key=TAG, cleared=cleared)
    assert tag_body(effect, None, spell_name=False) == {"name": "T-1", **empty}


@pytest.mark.parametrize(
    ("excluded", "spell_name", "listed"),
    [(False, False, ["k"]), (False, True, ["k", "T-1"]), (True, False, ["k", "T-1"]), (True, True, ["k", "T-1"])],
)
def test_the_name_is_listed_as_a_keyword_if_the_service_would_not_add_it(
    excluded: bool, spell_name: bool, listed: list[str]
) -> None:
    """For a tag that declares its name as a keyword but excludes it, and for an update that must restore it."""
    effect = Effect(key=TAG, fields={"excludeTagNameKeyword": excluded}, keywords=("k", "T-1"))
    assert tag_body(effect, None, spell_name=spell_name)["additionalKeywords"] == listed


def test_a_category_is_sent_with_its_server_id_once_known() -> None:
    effect = Effect(key=CATEGORY, fields={"label": "Acme", "keywords": ("a", "b")}, cleared=("description",))
    body = {"externalId": "acme", "description": "", "label": "Acme", "keywords": ["a", "b"]}
    assert category_body(effect, None) == body
    assert category_body(effect, "id-1") == {"id": "id-1", **body}
    assert category_body(Effect(key=CATEGORY, cleared=("keywords",)), None) == {"externalId": "acme", "keywords": []}


def test_an_activity_type_is_sent_with_its_declared_flags() -> None:
    effect = Effect(key=TYPE, fields={"label": "L", "enableIfNew": True}, cleared=("description", "reenableIfArchived"))
    assert activity_type_body(effect) == {"code": "A101", "description": "", "label": "L", "enableIfNew": True}


SINGLES: dict[str, tuple[Effect, dict[str, Any]]] = {
    "addKeywords": (
        Effect(key=TAG, keywords=("k",), fields={"externalId": "4711"}),
        {"tagName": "T-1", "externalId": "4711", "additionalKeywords": ["k"]},
    ),
    "deleteKeyword": (Effect(key=TAG, keywords_dropped=("k",)), {"tagName": "T-1", "keyword": "k"}),
    "deleteTagMetadata": (
        Effect(key=TAG, metadata_dropped=("Client", "Old")),
        {"tagName": "T-1", "metadataNames": ["Client", "Old"]},
    ),
    "deleteTag": (Effect(key=TAG), {"name": "T-1"}),
    "deleteTagCategory": (Effect(key=CATEGORY), {"externalId": "acme"}),
}


@pytest.mark.parametrize("operation", SINGLE_BODIES)
def test_single_calls_have_the_specified_body(operation: str) -> None:
    """docs/interface.md 4."""
    effect, body = SINGLES[operation]
    assert SINGLE_BODIES[operation](effect) == body


async def listed_ids(caller: Client, *limit: int, **given: Any) -> list[str | None]:
    return [group_id(group) async for group in listed(caller, *limit, **given)]


@pytest.mark.parametrize(
    ("ask", "limit", "words"),
    [
        (lambda caller, limit: fetch(caller, limit, 30.0), 0, "1 or more"),
        (lambda caller, limit: fetch(caller, limit, 30.0), -1, "1 or more"),
        (listed_ids, 0, "1 to 500"),
        (listed_ids, 501, "1 to 500"),
    ],
)
def test_a_limit_out_of_range_is_a_usage_error(ask: Any, limit: int, words: str) -> None:
    with talking(saying([])) as service:
        with pytest.raises(Usage, match=words):
            service.wait(ask(service.caller, limit))
        assert service.server.heard == []


def test_the_limit_is_sent_in_the_query() -> None:
    """Without a limit none is sent, and the service uses its default of 25."""
    with talking(saying([])) as service:
        for limit in (7, None):
            service.wait(fetch(service.caller, limit, 30.0))
    paths = ["/connect/api/postedtime?limit=7", "/connect/api/postedtime"]
    assert [heard.path for heard in service.server.heard] == paths


def test_a_fetch_that_is_not_answered_in_its_time_is_not_repeated() -> None:
    """No posted time within a minute is no trouble: `timed_out` is set after one request."""
    with talking(Reply(until=asyncio.Event()), timeout=0.5) as service:
        answer = service.call(FETCH_POSTED_TIME, None, timeout=0.05)
    assert (answer.timed_out, answer.status, answer.summary) == (True, None, "no answer within 0.05 s")
    assert [heard.path for heard in service.server.heard].count("/connect/api/postedtime") == 1


@pytest.mark.parametrize(
    ("reply", "groups"),
    [
        (saying([{"groupId": "a"}]), [{"groupId": "a"}]),
        *((empty, []) for empty in (saying([]), Reply(200, b""), Reply(204, b""))),
        *((odd, None) for odd in (saying({"groups": []}), Reply(200, b"<html>"), Reply(200, b"null"), saying([], 400))),
    ],
)
def test_only_a_json_list_is_a_list_of_groups(reply: Reply, groups: Any) -> None:
    """Any other answer is trouble, not an empty list."""
    with talking(reply) as service:
        assert groups_of(service.wait(fetch(service.caller, None, 30.0))) == groups


def test_a_failed_page_is_an_error_and_no_shorter_list() -> None:
    words = r"503 \(no content type, 4 bytes\)"
    page = saying([{"groupId": "a", "submissionTime": 5}])
    with talking(page, BUSY) as service, pytest.raises(SyncengineError, match=words):
        service.wait(listed_ids(service.caller, 2))


LISTS = {
    "none": ([], 10),
    "pages that split an instant": ([2000 + n // 7 for n in range(70)], 10),
    **{f"{n} of one instant, in pages of 5": ([2000] * n + [1000] * 3 + [3000], 5) for n in (4, 5, 6, 20)},
}


@pytest.mark.parametrize(("submissions", "page"), LISTS.values(), ids=LISTS)
def test_each_group_is_listed_once_and_the_newest_first(submissions: list[int], page: int) -> None:
    """Although pages begin or end among the groups of one instant, and even if they are full of these."""
    with running_sandbox() as running, loopback.client(base_url=running.control_url) as control:
        control.post("/settings", json={"holdSeconds": 0})
        loopback.get(f"{running.url}/postedtime", headers={"x-api-key": running.api_key})
        groups = [{"groupId": f"g{n}", "submissionTime": at} for n, at in enumerate(submissions)]
        control.post("/posted-time", json={"groups": groups})

        async def play() -> list[str | None]:
            async with Client(running.url, lambda *, fresh=False: running.api_key) as caller:
                return await listed_ids(caller, page)

        ids = asyncio.run(play())
        requests = [each["operation"] for each in control.get("/requests").json()["requests"]]
    assert sorted(map(str, ids)) == sorted(f"g{n}" for n in range(len(submissions)))
    times = [submissions[int(str(id)[1:])] for id in ids]
    assert times == sorted(times, reverse=True)
    assert submissions or requests.count("listPostedTime") == 1


def test_an_instant_that_hides_groups_is_reported_and_a_list_that_repeats_itself_ends() -> None:
    """The service lists at most 500 groups of one instant; older groups are still found. Or it ignores the instant."""
    hidden: list[int] = []
    page = [{"groupId": f"g{n}", "submissionTime": 2000} for n in range(500)]
    older = [{"groupId": "older", "submissionTime": 1000}]
    with talking(*map(saying, (page, page, older, older, []))) as service:
        ids = service.wait(listed_ids(service.caller, hidden=hidden.append))
    assert (len(ids), hidden) == (501, [2000])
    with talking(saying([*page[:1], *older])) as service:
        assert service.wait(listed_ids(service.caller, 2)) == ["g0", "older"]


IDS = [rb'"a\u0000"', rb'"a\ud83d"', rb'"a\udc00b"', b'"a\xff"', rb'"a\ufffd"', b'"a\x00"', b'""', b"null", b"7"]


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("more", [b"", b', "x": nope'], ids=["whole", "broken"])
def test_an_invalid_or_ambiguous_group_id_is_none(id: bytes, more: bytes) -> None:
    """Characters that cannot be stored are replaced, so two ids could look alike and a status go to the wrong group."""
    body = b'[{"groupId": %b%b}, {"groupId": "a\xc3\xa4"}]' % (id, more)
    found = groups_in(body) or []
    ids = [group.id if isinstance(group, Unreadable) else group_id(group) for group in found]
    assert ids[0] is None
    assert more or ids == [None, "aä"]


@pytest.mark.parametrize("number", ["1", "NaN"])
def test_posted_time_is_unchanged_even_if_it_holds_the_api_key(number: str) -> None:
    """Elsewhere an answer that repeats the key has it hidden; here the status needs the group's id as it came."""
    posted = {"groupId": f"{KEY}-1", "tags": [{"name": f"{KEY}-7"}], "description": f"on {KEY}"}
    body = msgspec.json.encode(posted)[:-1] + b', "totalDurationSecs": %b}' % number.encode()
    with talking(Reply(200, b"[%b]" % body), OK) as service:
        (group,) = groups_of(service.wait(fetch(service.caller, None, 30.0))) or []
        assert isinstance(group, dict)
        assert {name: group[name] for name in posted} == posted
        service.wait(update_status(service.caller, group_id(group) or "", "SUCCESS"))
        assert msgspec.json.decode(service.server.heard[1].body)["timeGroupId"] == f"{KEY}-1"
