"""The sandbox keeps the service's rules for posted time groups: fetch, acknowledge, offer again, list."""

from __future__ import annotations

from typing import Any

import pytest

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


@pytest.mark.parametrize("limit", [0, -1, "x", "", "1.5"])
def test_a_fetch_with_a_wrong_limit_is_refused_and_registers_nobody(service: Asking, limit: Any) -> None:
    """docs/service.md §1: limit < 1 is 400."""
    assert service.get("fetchPostedTime", limit=limit)[0] == 400
    assert service.state()["connection"]["mechanism"] is None


@pytest.mark.parametrize(("told", "after"), [(None, REOFFER), ("RETRIABLE_FAILURE", RETRY)])
def test_a_group_without_an_end_is_offered_again(fetching: Asking, told: str | None, after: int) -> None:
    """docs/interface.md 3, 7.2: each time the re-offer time or, after a retriable failure, the retry time has passed.

    A fetched group is pending and has no caller key, which only webhook calls have.
    """
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
    """docs/interface.md 3, 7.2: the group keeps the external id or the message, and is never offered again."""
    fetching.post("good", "bad")
    fetching.groups("fetchPostedTime")
    assert status(fetching, "good", "SUCCESS", externalId="ledger-1") == 200
    assert status(fetching, "bad", "FAILURE", message="Assign a tag.") == 200
    fetching.later(10 * REOFFER)
    assert fetching.groups("fetchPostedTime") == []
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
    "body",
    [
        {"status": "SUCCESS"},
        {"timeGroupId": "g"},
        {"timeGroupId": "g", "status": "DONE"},
        {"timeGroupId": "g", "status": ["SUCCESS"]},
        {"timeGroupId": 7, "status": "SUCCESS"},
        {"timeGroupId": "g", "status": "FAILURE", "message": 7},
    ],
)
def test_a_status_update_that_is_not_understood_is_refused(fetching: Asking, body: dict[str, Any]) -> None:
    """docs/service.md §1: an invalid status update answers 400, and the group stays as it is."""
    fetching.post("g")
    fetching.groups("fetchPostedTime")
    before = fetching.posted("g")
    assert fetching.ask("updatePostedTimeStatus", **body)[0] == 400
    assert fetching.posted("g") == before


def test_a_status_of_an_unknown_group_is_404(service: Asking) -> None:
    """docs/service.md §1: a group posted while no client was registered is unknown, too."""
    service.post("unrecorded")
    assert status(service, "unrecorded", "SUCCESS") == 404
    assert status(service, "no", "SUCCESS") == 404


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


def test_a_group_that_failed_for_good_is_not_listed(fetching: Asking) -> None:
    """Only pending and successful groups are listed; docs/interface.md 2.5 has no status for a failed group."""
    fetching.post("bad", "good", "later")
    fetching.groups("fetchPostedTime")
    status(fetching, "bad", "FAILURE")
    status(fetching, "good", "SUCCESS")
    status(fetching, "later", "RETRIABLE_FAILURE")
    listed = fetching.get("listPostedTime")[1]
    assert {group["groupId"]: group["status"] for group in listed} == {"good": "SUCCESS", "later": "PENDING"}


@pytest.mark.parametrize("limit", [0, 501, -1, "x"])
def test_a_list_beyond_its_limits_is_refused(service: Asking, limit: Any) -> None:
    """docs/interface.md 8: the limit is 1 to 500."""
    assert service.get("listPostedTime", limit=limit)[0] == 400
    assert service.get("listPostedTime", submittedBefore="yesterday")[0] == 400
