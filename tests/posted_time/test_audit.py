"""The audit: what the service lists as posted against what the sinks took, both ways."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from syncengine.posted_time.audit import Lacking, Listed, Taken, Unposted, audit
from tests.serve.world import World, world

DAY = 86400.0
NOW = 1_700_000_000.0
SINCE = NOW - 30 * DAY
BOTH = {"ledger": True, "archive": False}


def posted(id: str, days: float = 1, status: str = "SUCCESS") -> Listed:
    return Listed(id, status, int((NOW - days * DAY) * 1000))


def taken(id: str, sink: str = "ledger", days: float = 1) -> Taken:
    return Taken(id, sink, NOW - days * DAY)


def test_what_both_sides_have_agrees() -> None:
    """A sink that was never meant to have a group lacks nothing."""
    found = audit([posted("a")], [taken("a")], BOTH, {"a": {"ledger"}}, SINCE)
    assert (found.agrees, found.posted) == (True, 1)


def test_a_posted_group_without_a_receipt_is_told_for_each_sink() -> None:
    """The archive was tried, or it cannot be known: then it lacks it too."""
    known = audit([posted("a")], [], BOTH, {"a": {"ledger", "archive"}}, SINCE)
    unknown = audit([posted("a")], [], BOTH, {}, SINCE)
    expected = tuple(Lacking("a", sink, posted("a").submitted) for sink in ("ledger", "archive"))
    assert known.lacking == unknown.lacking == expected


def test_a_receipt_that_the_service_does_not_show_as_posted_is_told() -> None:
    """Pending there, or not listed at all."""
    found = audit([posted("a", status="PENDING")], [taken("a"), taken("b")], BOTH, {}, SINCE)
    assert found.unposted == (
        Unposted("a", "ledger", NOW - DAY, "PENDING"),
        Unposted("b", "ledger", NOW - DAY, None),
    )


@pytest.mark.parametrize(
    ("listed", "receipts"),
    [([posted("a", 31)], []), ([], [taken("a", days=31)]), ([posted("a", 40)], [taken("a", days=1)])],
    ids=["posted before", "taken before", "posted before and taken since"],
)
def test_what_is_older_is_left_out(listed: list[Listed], receipts: list[Taken]) -> None:
    """And a group that was posted long before it was taken is no difference."""
    assert audit(listed, receipts, BOTH, {}, SINCE).agrees


def test_pending_groups_lack_nothing() -> None:
    """They are not posted yet."""
    assert audit([posted("a", status="PENDING")], [], BOTH, {}, SINCE).agrees


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def test_the_command_finds_what_somebody_else_posted_and_what_the_service_forgot(estate: World) -> None:
    """Exit 0 while all agrees; then exit 1, with one line for each difference."""
    estate.project.run("time", "register")
    estate.post("a", "b")
    assert estate.project.run("time", "pull").code == 0
    agreed = estate.project.run("time", "audit", "--format", "json")
    assert (agreed.code, agreed.document) == (0, {"posted": 2, "lacking": [], "unposted": []})
    _forget_receipt(estate, "a")
    estate.post("b")  # posted again: pending there, taken here
    done = estate.project.run("time", "audit", "--format", "json")
    assert done.code == 1
    assert [(one["groupId"], one["sink"]) for one in done.document["lacking"]] == [("a", "ledger")]
    assert [(one["groupId"], one["status"]) for one in done.document["unposted"]] == [("b", "PENDING")]
    assert "sink ledger has no receipt" in estate.project.run("time", "audit").out


def _forget_receipt(estate: World, id: str) -> None:
    """As an inbox that was restored from a backup does."""
    with closing(sqlite3.connect(estate.project.folder / ".syncengine" / "state.db")) as database, database:
        assert database.execute("DELETE FROM inbox_deliveries WHERE group_id = ?", [id]).rowcount == 1
