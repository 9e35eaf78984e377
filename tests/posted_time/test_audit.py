"""`time audit` compares the groups that the service lists as posted with the receipts of the sinks, in both
directions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from syncengine.posted_time.audit import Known, Lacking, Listed, Other, Unposted, audit
from syncengine.posted_time.durations import suffixes
from syncengine.render.posted_time import audit_text
from syncengine.state.inbox_model import GroupState, PostedTimeStatus, SinkReceipt
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE
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


def known(*sinks: str, outcome: PostedTimeStatus = SUCCESS) -> Known:
    return Known(GroupState.ACKNOWLEDGED, outcome, frozenset(sinks))


def test_a_posted_group_with_a_receipt_agrees() -> None:
    """A sink to which the group was never routed needs no receipt."""
    found = audit([posted("a")], [taken("a")], BOTH, {"a": known("ledger")}, SINCE)
    assert (found.agrees, found.listed, found.posted, found.others) == (True, 1, 1, ())


def test_a_posted_group_without_a_receipt_is_reported_for_each_sink() -> None:
    """A sink lacks a group that was routed to it, and any group that the inbox does not know."""
    tried = audit([posted("a")], [], BOTH, {"a": known("ledger", "archive")}, SINCE)
    unknown = audit([posted("a")], [], BOTH, {}, SINCE)
    expected = tuple(Lacking("a", sink, posted("a").submitted) for sink in ("ledger", "archive"))
    assert tried.lacking == unknown.lacking == expected


def test_a_group_that_was_decided_without_a_sink_is_told_from_one_whose_receipt_was_lost() -> None:
    """Such a sink has no delivery of the group in the inbox, and the verdict is SUCCESS. The text names the cause."""
    found = audit(
        [posted("a"), posted("b")], [], {"ledger": True}, {"a": known("archive"), "b": known("ledger")}, SINCE
    )
    assert [(one.group_id, one.is_left_out) for one in found.lacking] == [("a", True), ("b", False)]
    undecided = {"a": known("archive", outcome=TROUBLE)}
    for of in (undecided, {}):
        assert not any(one.is_left_out for one in audit([posted("a")], [], {"ledger": True}, of, SINCE).lacking)
    a, b, cause, _ = audit_text(found).splitlines()
    assert a.endswith("but sink ledger has no receipt: it was decided without this sink")
    assert b.endswith("but sink ledger has no receipt")
    assert "before the sink was added or renamed, is not delivered to it" in cause


def test_a_receipt_of_a_group_that_is_not_posted_is_reported() -> None:
    """The service lists the group as PENDING, or does not list it."""
    found = audit([posted("a", status="PENDING")], [taken("a"), taken("b")], BOTH, {}, SINCE)
    assert found.unposted == (Unposted("a", "ledger", NOW - DAY, "PENDING"), Unposted("b", "ledger", NOW - DAY, None))


@pytest.mark.parametrize(
    ("listed", "receipts"),
    [([posted("a", 31)], []), ([], [taken("a", days=31)]), ([posted("a", 40)], [taken("a", days=1)])],
    ids=["posted before", "taken before", "posted before and taken since"],
)
def test_groups_and_receipts_before_since_are_ignored(listed: list[Listed], receipts: list[SinkReceipt]) -> None:
    """A group that was posted before `since` is no difference, even if its receipt is newer."""
    assert audit(listed, receipts, BOTH, {}, SINCE).agrees


def test_pending_groups_lack_nothing_and_are_listed() -> None:
    """A PENDING group is reported in `others`, together with what the inbox knows of it."""
    refused = known(outcome=REFUSED)
    listed = [posted("a", status="PENDING"), posted("b", status="PENDING")]
    found = audit(listed, [], BOTH, {"b": refused}, SINCE)
    assert (found.agrees, found.listed, found.posted) == (True, 2, 0)
    assert found.others == (
        Other("a", "PENDING", posted("a").submitted, None, ()),
        Other("b", "PENDING", posted("b").submitted, refused, ()),
    )


@pytest.mark.parametrize("status", ["DONE", None])
def test_another_status_counts_as_posted_unless_we_refused_it(status: str | None) -> None:
    """Only PENDING means that a group is not posted yet. A group that this project refused lacks no receipt."""
    listed = [Listed(id, status, int(NOW * 1000)) for id in ("lost", "refused", "taken")]
    of = {"refused": known(outcome=REFUSED), "taken": known("ledger")}
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


def test_the_command_exits_with_1_and_lists_each_difference(estate: World) -> None:
    """`time audit` exits with 0 while all agrees, and with 1 when a receipt is lost or a delivered group is pending
    again."""
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
    estate.post("b")  # posted again: pending at the service, taken by the sink
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
def test_unreadable_items_are_counted_and_the_others_listed(estate: World, command: str) -> None:
    """Exit code 3 marks the result as incomplete, and no text of an unreadable item is shown."""
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
    """The service lists at most 500 groups of one instant: `time list` exits with 3 and names the instant."""
    page = [{"groupId": f"g{n}", "submissionTime": 2000} for n in range(500)]
    estate.service.fault("listPostedTime", times=2, status=200, body=page)
    estate.service.fault("listPostedTime", times=None, status=200, body=[])
    done = estate.project.run("time", "list", "--format", "json")
    assert (done.code, done.document["complete"], done.document["hidden"]) == (3, False, ["1970-01-01T00:00:02Z"])
    assert len(done.document["groups"]) == 500


def test_a_sink_that_was_added_later_lacks_the_group_for_that_reason(estate: World) -> None:
    """The sink gets no group that was decided before, so `time audit` exits with 1 and says why."""
    estate.project.run("time", "register")
    estate.post("a")
    assert estate.project.run("time", "pull").code == 0
    estate.settings(sinks=LEDGER + "    - {name: added, jsonl: {path: added.jsonl}}\n")
    done = estate.project.run("time", "audit")
    assert (done.code, "sink added has no receipt: it was decided without this sink" in done.out) == (1, True)
    assert "sink ledger" not in done.out


def _forget_receipt(estate: World, id: str) -> None:
    """Delete the receipt from the ledger, as if the ledger were restored from a backup; the inbox keeps its record."""
    with closing(sqlite3.connect(estate.project.folder / "ledger.db")) as database, database:
        assert database.execute("DELETE FROM syncengine_receipts WHERE group_id = ?", [id]).rowcount == 1


def _forget_delivery(estate: World, id: str) -> None:
    """Delete the group from the inbox, as if the inbox were restored from a backup."""
    with closing(sqlite3.connect(estate.project.folder / ".syncengine" / "state.db")) as database, database:
        for table in ("inbox_deliveries", "inbox_groups"):
            assert database.execute(f"DELETE FROM {table} WHERE group_id = ?", [id]).rowcount == 1


def test_the_receipts_of_a_ledger_count_instead_of_the_inbox(estate: World) -> None:
    """A group in the ledger is not lacking after the inbox forgets it. A receipt of a group that the service does not
    list is reported."""
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


def test_an_unreadable_ledger_is_reported_and_the_inbox_used_instead(estate: World) -> None:
    """`time audit` finds no difference, but exits with 3 because the ledger is unread."""
    estate.project.run("time", "register")
    estate.post("a")
    assert estate.project.run("time", "pull").code == 0
    (estate.project.folder / "ledger.db").rename(estate.project.folder / "away.db")
    done = estate.project.run("time", "audit", "--format", "json")
    assert (done.code, done.document["unread"], done.document["lacking"]) == (3, ["ledger"], [])
    assert "ledger" in done.err
    judge("audit.schema.json").validate(done.document)


def test_without_receipts_the_inbox_is_compared(estate: World) -> None:
    """With `receipts: false`, only the inbox records what the sink took."""
    estate.settings(sinks=LEDGER.replace("source: ledger,", "source: ledger, receipts: false,"))
    estate.project.run("time", "register")
    estate.post("a")
    assert estate.project.run("time", "pull").code == 0
    assert estate.project.run("time", "audit").code == 0
    _forget_delivery(estate, "a")
    done = estate.project.run("time", "audit", "--format", "json")
    assert [one["groupId"] for one in done.document["lacking"]] == ["a"]


def test_a_sink_with_each_tag_lacks_the_tag_without_a_receipt() -> None:
    """The missing tag is named. A group with one receipt from before `each: tag` was set lacks nothing."""
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
