"""The audit: what the service lists as posted against what the sinks took, both ways."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from syncengine.posted_time.audit import Known, Lacking, Listed, Other, Unposted, audit
from syncengine.posted_time.durations import suffixes
from syncengine.state.inbox_model import GroupState, PostedTimeStatus, SinkReceipt
from tests.serve.world import LEDGER, World, world
from tests.settings.test_schema import judge

pytestmark = pytest.mark.slow

DAY = 86400.0
NOW = 1_700_000_000.0
SINCE = NOW - 30 * DAY
BOTH = {"ledger": True, "archive": False}


def posted(id: str, days: float = 1, status: str = "SUCCESS") -> Listed:
    return Listed(id, status, int((NOW - days * DAY) * 1000))


def taken(id: str, sink: str = "ledger", days: float = 1) -> SinkReceipt:
    return SinkReceipt(id, sink, NOW - days * DAY)


def known(*sinks: str, outcome: PostedTimeStatus = PostedTimeStatus.SUCCESS) -> Known:
    return Known(GroupState.ACKNOWLEDGED, outcome, frozenset(sinks))


def test_what_both_sides_have_agrees() -> None:
    """A sink that was never meant to have a group lacks nothing."""
    found = audit([posted("a")], [taken("a")], BOTH, {"a": known("ledger")}, SINCE)
    assert (found.agrees, found.listed, found.posted, found.others) == (True, 1, 1, ())


def test_a_posted_group_without_a_receipt_is_told_for_each_sink() -> None:
    """The archive was tried, or it cannot be known: then it lacks it too."""
    tried = audit([posted("a")], [], BOTH, {"a": known("ledger", "archive")}, SINCE)
    unknown = audit([posted("a")], [], BOTH, {}, SINCE)
    expected = tuple(Lacking("a", sink, posted("a").submitted) for sink in ("ledger", "archive"))
    assert tried.lacking == unknown.lacking == expected


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
def test_what_is_older_is_left_out(listed: list[Listed], receipts: list[SinkReceipt]) -> None:
    """And a group that was posted long before it was taken is no difference."""
    assert audit(listed, receipts, BOTH, {}, SINCE).agrees


def test_pending_groups_lack_nothing_and_are_told() -> None:
    """They are not posted yet; with what is known of them here."""
    refused = known(outcome=PostedTimeStatus.REFUSED)
    listed = [posted("a", status="PENDING"), posted("b", status="PENDING")]
    found = audit(listed, [], BOTH, {"b": refused}, SINCE)
    assert (found.agrees, found.listed, found.posted) == (True, 2, 0)
    assert found.others == (
        Other("a", "PENDING", posted("a").submitted, None, ()),
        Other("b", "PENDING", posted("b").submitted, refused, ()),
    )


@pytest.mark.parametrize("status", ["DONE", None])
def test_another_status_counts_as_posted_unless_we_refused_it(status: str | None) -> None:
    """The interface shows PENDING alone: whoever is listed as anything else was answered for."""
    listed = [Listed(id, status, int(NOW * 1000)) for id in ("lost", "refused", "taken")]
    of = {"refused": known(outcome=PostedTimeStatus.REFUSED), "taken": known("ledger")}
    found = audit(listed, [taken("taken")], {"ledger": True}, of, SINCE)
    assert ([one.group_id for one in found.lacking], found.unposted) == (["lost"], ())
    assert [(one.group_id, one.takers) for one in found.others] == [
        ("lost", ()),
        ("refused", ()),
        ("taken", ("ledger",)),
    ]


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
    assert (agreed.code, agreed.document) == (
        0,
        {
            "format": "syncengine.audit/v1",
            "complete": True,
            "unreadable": 0,
            "hidden": [],
            "unread": [],
            "listed": 2,
            "posted": 2,
            "lacking": [],
            "unposted": [],
            "others": [],
        },
    )
    _forget_receipt(estate, "a")
    estate.post("b")  # posted again: pending there, taken here
    done = estate.project.run("time", "audit", "--format", "json")
    assert done.code == 1
    judge("audit.schema.json").validate(done.document)
    judge("posted-time.schema.json").validate(estate.project.run("time", "list", "--format", "json").document)
    assert [(one["groupId"], one["sink"]) for one in done.document["lacking"]] == [("a", "ledger")]
    assert [(one["groupId"], one["status"]) for one in done.document["unposted"]] == [("b", "PENDING")]
    assert [(one["groupId"], one["status"], one["sinks"]) for one in done.document["others"]] == [
        ("b", "PENDING", ["ledger"])
    ]
    text = estate.project.run("time", "audit").out
    assert "sink ledger has no receipt" in text
    assert "b  listed as PENDING" in text


ODD = [
    {"groupId": "b", "submissionTime": "x"},
    {"groupId": "c", "submissionTime": 10**25},
    {"description": "a secret of a client"},
    None,
    5,
    {"groupId": "a", "submissionTime": 2000, "status": "SUCCESS"},
]


@pytest.mark.parametrize("command", ["list", "audit"])
def test_odd_items_of_a_list_are_counted_and_the_others_are_there(estate: World, command: str) -> None:
    """Exit 3 says that it is not all; nothing of what people wrote is shown for what cannot be read."""
    estate.service.fault("listPostedTime", times=None, status=200, body=ODD)
    done = estate.project.run("time", command, "--format", "json")
    assert (done.document["complete"], done.document["unreadable"]) == (False, 3)
    assert "ignored 3 items of the list" in done.err
    assert "secret of" not in done.err + done.out
    if command == "list":
        assert [group["groupId"] for group in done.document["groups"]] == ["b", "c", "a"]
        assert done.code == 3
    assert estate.project.run("time", command).code == done.code


def test_an_instant_that_hides_groups_is_an_incomplete_list(estate: World) -> None:
    """The service lists 500 of one instant and no more: exit 3, and the instant is named."""
    page = [{"groupId": f"g{n}", "submissionTime": 2000} for n in range(500)]
    estate.service.fault("listPostedTime", times=2, status=200, body=page)
    estate.service.fault("listPostedTime", times=None, status=200, body=[])
    done = estate.project.run("time", "list", "--format", "json")
    assert (done.code, done.document["complete"], done.document["hidden"]) == (3, False, ["1970-01-01T00:00:02Z"])
    assert len(done.document["groups"]) == 500


def _forget_receipt(estate: World, id: str) -> None:
    """As a ledger that was restored from a backup does; the inbox knows nothing of that."""
    with closing(sqlite3.connect(estate.project.folder / "ledger.db")) as database, database:
        assert database.execute("DELETE FROM syncengine_receipts WHERE group_id = ?", [id]).rowcount == 1


def _forget_delivery(estate: World, id: str) -> None:
    """As an inbox that was restored from a backup does."""
    with closing(sqlite3.connect(estate.project.folder / ".syncengine" / "state.db")) as database, database:
        for table in ("inbox_deliveries", "inbox_groups"):
            assert database.execute(f"DELETE FROM {table} WHERE group_id = ?", [id]).rowcount == 1


def test_what_a_ledger_has_counts_not_what_the_inbox_remembers(estate: World) -> None:
    """An inbox from a backup lacks nothing that the ledger has; a receipt that the service knows nothing of is told."""
    estate.project.run("time", "register")
    estate.post("a", "b")
    assert estate.project.run("time", "pull").code == 0
    _forget_delivery(estate, "a")
    assert estate.project.run("time", "audit").code == 0
    with closing(sqlite3.connect(estate.project.folder / "ledger.db")) as database, database:
        database.execute("UPDATE syncengine_receipts SET group_id = 'elsewhere' WHERE group_id = 'a'")
    done = estate.project.run("time", "audit", "--format", "json")
    assert done.code == 1
    assert [one["groupId"] for one in done.document["lacking"]] == ["a"]
    assert [one["groupId"] for one in done.document["unposted"]] == ["elsewhere"]


def test_a_ledger_that_cannot_be_asked_is_told_and_the_inbox_believed(estate: World) -> None:
    """Exit 3: nothing differs as far as is known, and that is not all."""
    estate.project.run("time", "register")
    estate.post("a")
    assert estate.project.run("time", "pull").code == 0
    (estate.project.folder / "ledger.db").rename(estate.project.folder / "away.db")
    done = estate.project.run("time", "audit", "--format", "json")
    assert (done.code, done.document["unread"], done.document["lacking"]) == (3, ["ledger"], [])
    assert "ledger" in done.err
    judge("audit.schema.json").validate(done.document)


def test_without_receipts_the_inbox_is_asked(estate: World) -> None:
    """It alone knows."""
    estate.settings(sinks=LEDGER.replace("source: ledger,", "source: ledger, receipts: false,"))
    estate.project.run("time", "register")
    estate.post("a")
    assert estate.project.run("time", "pull").code == 0
    assert estate.project.run("time", "audit").code == 0
    _forget_delivery(estate, "a")
    done = estate.project.run("time", "audit", "--format", "json")
    assert [one["groupId"] for one in done.document["lacking"]] == ["a"]


def test_a_sink_that_runs_for_each_tag_lacks_the_tag_that_it_has_no_receipt_of() -> None:
    """Named; a group that came whole before `each: tag` was written lacks nothing."""
    tags = ("T2", "T1")
    listed = Listed("a", "SUCCESS", posted("a").submitted, tags)
    key = "ledger" + suffixes(tags)["T2"]
    some = audit([listed], [taken("a")], {"ledger": True}, {"a": known("ledger", key)}, SINCE, {"ledger"})
    assert some.lacking == (Lacking("a", "ledger", listed.submitted, "T2"),)
    both = audit([listed], [taken("a"), taken("a", key)], {"ledger": True}, {}, SINCE, {"ledger"})
    whole = audit([listed], [taken("a")], {"ledger": True}, {"a": known("ledger")}, SINCE, {"ledger"})
    assert (both.agrees, whole.agrees) == (True, True)
    pending = Listed("a", "PENDING", listed.submitted, tags)
    found = audit([pending], [taken("a", key)], {"ledger": True}, {}, SINCE, {"ledger"})
    assert found.unposted == (Unposted("a", "ledger", NOW - DAY, "PENDING", "T2"),)
    assert found.others[0].takers == ("ledger",)
