"""time list, pull, register, unregister: as a process, against the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.world import World, world


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def test_a_pull_fetches_delivers_and_acknowledges(estate: World) -> None:
    """One round: the row, the status with the reference, and what it says of both."""
    assert estate.project.run("time", "register").code == 0
    estate.post("a", "b")
    done = estate.project.run("time", "pull", "--format", "json")
    assert (done.code, estate.ledger()) == (0, ["a", "b"])
    assert [(g["groupId"], g["status"], g["acknowledged"]) for g in done.document["groups"]] == [
        ("a", "SUCCESS", True),
        ("b", "SUCCESS", True),
    ]
    assert set(estate.states().values()) == {"success"}


def test_a_pull_of_nothing_says_so(estate: World) -> None:
    """Exit 0; the fetch client is registered by the fetch itself."""
    done = estate.project.run("time", "pull")
    assert (done.code, done.out) == (0, "There is no posted time to fetch.\n")
    assert estate.connection()["mechanism"] == "fetch"


def test_a_pull_acknowledges_what_an_earlier_one_could_not(estate: World) -> None:
    """Exit 3 while the service was not told; the next pull tells it and delivers nothing twice."""
    estate.project.run("time", "register")
    estate.post("a")
    estate.service.choose(reofferSeconds=3600)
    estate.service.fault("updatePostedTimeStatus", times=None, status=400)
    assert estate.project.run("time", "pull").code == 3
    estate.service.heal()
    done = estate.project.run("time", "pull", "--format", "json")
    assert done.document["acknowledged"] == [{"groupId": "a", "status": "SUCCESS"}]
    assert (done.code, estate.ledger(), estate.states()) == (0, ["a"], {"a": "success"})


def test_a_pull_takes_no_more_than_it_is_told(estate: World) -> None:
    """`--limit`; less than one is a usage error, and nothing is asked of the service."""
    estate.project.run("time", "register")
    estate.post("a", "b", "c")
    estate.project.run("time", "pull", "--limit", "2")
    assert estate.ledger() == ["a", "b"]
    before = len(estate.service.asked())
    assert estate.project.run("time", "pull", "--limit", "0").code == 64
    assert estate.project.run("time", "list", "--limit", "501").code == 64
    assert len(estate.service.asked()) == before


def test_a_pull_beside_a_serve_is_refused(estate: World) -> None:
    """Exit 6: the inbox is one process's at a time, and it says whose."""
    estate.serve().says("leading")
    done = estate.project.run("time", "pull")
    assert done.code == 6
    assert "serve" in done.err


def test_all_groups_are_listed_each_once(estate: World) -> None:
    """Posted and pending, in pages; since when may be said."""
    estate.project.run("time", "register")
    estate.post(*[f"g{number}" for number in range(7)])
    done = estate.project.run("time", "list", "--limit", "3", "--format", "json")
    assert sorted(group["groupId"] for group in done.document["groups"]) == [f"g{number}" for number in range(7)]
    estate.post("old", submissionTime=1_600_000_000_000)
    assert "old" in estate.project.run("time", "list").out
    assert "old" not in estate.project.run("time", "list", "--since", "30d").out


def test_the_other_mechanism_is_unregistered_first(estate: World) -> None:
    """By hand too: webhook after fetch after webhook."""
    hook = '  webhook: {callbackUrl: "http://127.0.0.1:9/hook", callerKey: {env: CALLER_KEY}}'
    estate.settings(posted=hook)
    environ = {"CALLER_KEY": "k-of-a-test"}
    for mechanism in ("webhook", "fetch", "webhook"):
        done = estate.project.run("time", "register", mechanism, "--format", "json", environ=environ)
        assert (done.code, done.document) == (0, {"registered": mechanism})
        assert estate.connection()["mechanism"] == mechanism


def test_what_is_registered_is_unregistered(estate: World) -> None:
    """Without saying which; a second time there is nothing to end."""
    estate.project.run("time", "register")
    assert estate.project.run("time", "unregister", "--format", "json").document == {"unregistered": "fetch client"}
    assert estate.connection()["mechanism"] is None
    again = estate.project.run("time", "unregister", "webhook", "--format", "json")
    assert (again.code, again.document) == (0, {"unregistered": None})


def test_a_webhook_in_the_way_is_explained(estate: World) -> None:
    """409 on a pull: what to do about it, and exit 1."""
    estate.service.fault("fetchPostedTime", status=409, body="has a webhook")
    done = estate.project.run("time", "pull")
    assert done.code == 1
    assert "unregister webhook" in done.err
