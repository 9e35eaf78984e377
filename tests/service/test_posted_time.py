"""Requests for posted time: limits, pages, statuses, and a fetch that may take a minute (docs/interface.md 4)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from syncengine.errors import SyncengineError, Usage
from syncengine.sandbox.app import running_sandbox
from syncengine.service.client import Client
from syncengine.service.operations import FETCH_POSTED_TIME
from syncengine.service.posted_time import Unreadable, fetch, group_id, groups_in, groups_of, listed, update_status
from tests.support import loopback

from .scripted import OK, Reply, saying
from .talking import BUSY, KEY, talking


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


@pytest.mark.parametrize("group", [{}, {"groupId": None}, {"groupId": ""}, {"groupId": 7}])
def test_an_invalid_group_id_is_none(group: Any) -> None:
    """No status could be sent for it."""
    assert group_id(group) is None


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


@pytest.mark.parametrize("id", [rb"a\u0000", rb"a\ud83d", rb"a\udc00b", b"a\xff", rb"a\ufffd", b"a\x00", b""])
@pytest.mark.parametrize("more", [b"", b', "x": nope'], ids=["whole", "broken"])
def test_an_ambiguous_group_id_is_none(id: bytes, more: bytes) -> None:
    """Characters that cannot be stored are replaced, so two ids could look alike and a status go to the wrong group."""
    body = b'[{"groupId": "%b"%b}, {"groupId": "a\xc3\xa4"}]' % (id, more)
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
