"""`time list`, `pull`, `register` and `unregister` as processes, against the sandbox."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from syncengine.posted_time.audit import Known, Lacking, Listed, Unposted, audit
from syncengine.posted_time.durations import suffixes
from syncengine.state.inbox import open_inbox
from syncengine.state.inbox_model import GroupState, PostedTimeStatus, SinkReceipt
from tests.cli.program import Ended
from tests.cli.service import AT_ONCE, KEY
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE
from tests.posted_time.receiver import receiving
from tests.serve.world import LEDGER, World, world
from tests.support import loopback
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


HOOK = '  webhook: {callbackUrl: "http://127.0.0.1:9/hook", callerKey: {env: CALLER_KEY}}'
JSON = ("--format", "json")
DESK = LEDGER.replace("{{ tag.name }}", "{{ connectorConfiguration.DESK or 'none' }}")


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        made.service.choose(holdSeconds=0)
        made.settings(posted=HOOK)
        made.project.environ["CALLER_KEY"] = "k-of-a-test"
        yield made


def time_(estate: World, *words: str) -> Ended:
    return estate.project.run("time", *words)


def test_a_pull_fetches_delivers_and_acknowledges(estate: World) -> None:
    """The fetch registers the client, `--limit` is heeded, and the next pull sends a status that was not accepted."""
    done = time_(estate, "pull")
    assert (done.code, done.out) == (0, "There is no posted time to fetch.\n")
    assert estate.connection()["mechanism"] == "fetch"
    estate.post("a", "b", "c")
    done = time_(estate, "pull", "--limit", "2", *JSON)
    assert (done.code, estate.ledger()) == (0, ["a", "b"])
    told = [(g["groupId"], g["status"], g["acknowledged"]) for g in done.document["groups"]]
    assert told == [("a", "SUCCESS", True), ("b", "SUCCESS", True)]
    assert estate.states() == {"a": "success", "b": "success", "c": "posted"}
    estate.service.choose(reofferSeconds=3600)
    estate.service.fault("updatePostedTimeStatus", times=None, status=400)
    assert time_(estate, "pull").code == 3
    estate.service.heal()
    done = time_(estate, "pull", *JSON)
    assert done.document["acknowledged"] == [{"groupId": "c", "status": "SUCCESS"}]
    assert (done.code, estate.ledger(), estate.states()["c"]) == (0, ["a", "b", "c"], "success")


def test_a_pull_while_serve_runs_exits_with_6(estate: World) -> None:
    """Only one process may hold the inbox; the message names the holder."""
    estate.serve().says("leading")
    done = time_(estate, "pull")
    assert done.code == 6
    assert "serve" in done.err


@pytest.mark.parametrize("words", [("pull",), ("register",), ("retry", "a")])
def test_a_team_other_than_the_configured_one_exits_with_7(estate: World, words: tuple[str, ...]) -> None:
    """Nothing is registered, fetched or delivered."""
    _refused(estate, "a")
    before = estate.service.asked()
    estate.settings(service=("team: Others",))
    done = time_(estate, *words)
    assert (done.code, "Others" in done.err) == (7, True)
    assert set(estate.service.asked()[len(before) :]) == {"teamInfo"}
    assert estate.ledger() == []


def test_a_project_without_manifests_remembers_its_team(estate: World) -> None:
    """The project belongs to the first team that it met; the time of another team is not fetched."""
    assert time_(estate, "register").code == 0
    estate.service.choose(teamName="Others")
    estate.post("b")
    done = time_(estate, "pull")
    assert (done.code, "Others" in done.err, estate.ledger()) == (7, True, [])


@pytest.mark.parametrize("mode", ["off", "webhook"])
def test_a_pull_with_mode_off_or_webhook_is_a_usage_error(estate: World, mode: str) -> None:
    """The message says which setting to change, and no request is sent to the service."""
    estate.settings(posted=f"  mode: {mode}\n{HOOK}")
    done = time_(estate, "pull")
    assert (done.code, f"`postedTime.mode` is {mode}" in done.err, "mode: fetch" in done.err) == (64, True, True)
    assert (estate.service.asked(), estate.connection()["mechanism"]) == ([], None)


@pytest.mark.parametrize(
    "fault",
    [{"status": 204}, {"status": 200, "body": ["odd"]}, {"status": 500, "headers": AT_ONCE}],
    ids=["204", "invalid", "500"],
)
def test_a_pull_goes_on_without_the_connector_configuration(estate: World, fault: dict[str, Any]) -> None:
    """Time is delivered even if the registration fails, as with `serve`."""
    time_(estate, "register")
    estate.post("a")
    estate.service.fault("registerConnector", times=None, **fault)
    done = time_(estate, "pull")
    assert (done.code, estate.ledger(), estate.states()) == (0, ["a"], {"a": "success"})
    assert ("registration" in done.err) == (fault["status"] != 204)


def test_a_pull_fetches_nothing_while_a_sink_is_down(estate: World) -> None:
    """It exits with 3 and names the sink. A group that is not fetched does not fail for its user."""
    time_(estate, "register")
    estate.post("a")
    estate.settings(sinks=LEDGER + "    - {name: pms, http: {url: 'http://127.0.0.1:9/', json: {}}}\n")
    done = time_(estate, "pull")
    assert (done.code, done.out, "pms" in done.err) == (3, "Nothing was fetched.\n", True)
    assert (estate.told("fetchPostedTime"), estate.ledger()) == (0, [])


def test_a_sink_that_answers_503_is_tried_with_one_group(estate: World) -> None:
    """Once in the same pull, before the service gets the status; what lasts is reported, and no other is fetched."""
    with receiving() as pms:
        statuses = chain([503], repeat(201))
        pms.answer = lambda got: (next(statuses), {}) if got.method == "POST" else (404, {})
        estate.settings(sinks=f"    - {{name: pms, http: {{url: '{pms.url}', json: {{}}}}}}\n")
        time_(estate, "register")
        estate.post("a")
        assert time_(estate, "pull").code == 0
        assert [told["status"] for told in estate.posted()["a"]["told"]] == ["SUCCESS"]
        assert estate.told("reportHealthFailure") == 0
        statuses = chain(repeat(503))
        estate.post("b")
        assert time_(estate, "pull").code == 3
        assert "pms" in (estate.health() or {})["userErrorMessage"]
        estate.post("c", "d", "e")
        assert {time_(estate, "pull").code for _ in range(4)} == {3}
        assert [*estate.states().values()].count("posted") >= 2
        statuses = chain(repeat(201))
        eventually(lambda: time_(estate, "pull").code == 0 and set(estate.states().values()) == {"success"})
        assert estate.health() is None


def test_a_pull_delivers_queued_retries_and_reduces_old_groups(estate: World) -> None:
    """Without a `serve`, no other process would do that."""
    _refused(estate, "a")
    estate.post("b")
    estate.settings(posted="  keep: 1s")
    assert time_(estate, "pull").code == 0
    with open_inbox(str(estate.project.folder / ".syncengine/state.db"), write=True) as inbox:
        inbox.write(lambda tx: tx.ask(["a"]))
    assert time_(estate, "pull").code == 0
    assert estate.ledger() == ["a", "b"]
    eventually(lambda: time_(estate, "pull").code == 0 and time_(estate, "show", "b", *JSON).document["group"] is None)


def _refused(estate: World, id: str, **then: str) -> None:
    """Put a group into the inbox that a rule refuses, and then remove the rule."""
    estate.settings(posted="  refuse: [{when: tag, message: Not now.}]")
    time_(estate, "register")
    estate.post(id)
    assert time_(estate, "pull").code == 0
    estate.settings(**then)


def test_a_retry_uses_the_connector_configuration(estate: World) -> None:
    """It registers only if there is something to deliver; if that fails, it uses the last known configuration."""
    estate.service.choose(connectorConfiguration={"DESK": "desk 7"})
    _refused(estate, "a", sinks=DESK)
    assert time_(estate, "retry", "a").code == 0
    before = estate.told("registerConnector")
    assert time_(estate, "retry", "--state", "refused").code == 0
    assert estate.told("registerConnector") == before
    _refused(estate, "b", sinks=DESK)
    estate.service.fault("registerConnector", times=None, status=500, headers=AT_ONCE)
    done = time_(estate, "retry", "b")
    assert (done.code, "could not be registered" in done.err) == (0, True)
    assert estate.matters() == ["desk 7", "desk 7"]


def test_register_stores_the_connector_configuration(estate: World) -> None:
    """`preview` and `pull` use the stored configuration until the service sends another one."""
    time_(estate, "register")
    estate.settings(sinks=DESK)
    assert "desk 7" not in time_(estate, "preview", "--sample").out
    estate.service.choose(connectorConfiguration={"DESK": "desk 7"})
    assert estate.project.run("connector", "register").code == 0
    estate.service.fault("registerConnector", times=None, status=500, headers=AT_ONCE)
    assert "desk 7" in time_(estate, "preview", "--sample").out
    estate.post("a")
    assert (time_(estate, "pull").code in (0, 3), estate.matters()) == (True, ["desk 7"])
    estate.service.heal()
    estate.service.choose(connectorConfiguration={})
    estate.post("b")
    assert (time_(estate, "pull").code, estate.matters()) == (0, ["desk 7", "none"])
    assert "desk 7" not in time_(estate, "preview", "--sample").out


def test_all_groups_are_listed_each_once(estate: World) -> None:
    """Posted and pending groups are listed across pages; `--since` leaves out older ones."""
    time_(estate, "register")
    ids = [f"g{number}" for number in range(7)]
    estate.post(*ids)
    listed = time_(estate, "list", "--limit", "3", *JSON).document["groups"]
    assert sorted(group["groupId"] for group in listed) == ids
    estate.post("old", submissionTime=1_600_000_000_000)
    assert "old" in time_(estate, "list").out
    assert "old" not in time_(estate, "list", "--since", "30d").out


def test_register_unregisters_the_other_mechanism_first(estate: World) -> None:
    """A second time it changes nothing; if this project did not register the client, it says that the team has one."""
    for mechanism in ("webhook", "fetch", "webhook"):
        assert time_(estate, "register", mechanism, *JSON).document["registered"] == mechanism
        assert estate.connection()["mechanism"] == mechanism
    assert time_(estate, "register").out == "Unregistered the webhook.\nRegistered a fetch client.\n"
    assert time_(estate, "register").out == "Nothing changed: this project has already registered a fetch client.\n"
    shutil.rmtree(estate.project.folder / ".syncengine")
    foreign = time_(estate, "register")
    assert (foreign.code, foreign.out.startswith("Nothing changed: the team already has a fetch client")) == (0, True)


def test_unregister_finds_the_registered_mechanism_or_names_the_other(estate: World) -> None:
    """A second `unregister` changes nothing. A pull that a webhook prevents says how to unregister it."""
    time_(estate, "register")
    assert time_(estate, "unregister", *JSON).document["unregistered"] == "fetch client"
    assert estate.connection()["mechanism"] is None
    again = time_(estate, "unregister", "webhook", *JSON)
    assert (again.code, again.document["unregistered"]) == (0, None)
    hook = {"callbackUrl": "http://127.0.0.1:9/hook", "callerKey": "theirs"}
    loopback.post(f"{estate.service.url}/postedtime/subscribe", json=hook, headers={"x-api-key": KEY})
    prevented = time_(estate, "pull")
    assert (prevented.code, "unregister webhook" in prevented.err) == (1, True)
    other = time_(estate, "unregister", "fetch")
    assert (other.code, "no fetch client" in other.out, "time unregister webhook" in other.out) == (0, True, True)
    assert estate.connection()["mechanism"] == "webhook"
    assert time_(estate, "unregister", "webhook").out == "Unregistered the webhook.\n"


# --- audit


DAY = 86400.0
NOW = 1_700_000_000.0
SINCE = NOW - 30 * DAY
BOTH = {"ledger": True, "archive": False}


def posted(id: str, days: float = 1, status: str | None = "SUCCESS") -> Listed:
    return Listed(id, status, int((NOW - days * DAY) * 1000))


def taken(id: str, sink: str = "ledger", days: float = 1) -> SinkReceipt:
    return SinkReceipt(id, sink, NOW - days * DAY)


def known(*sinks: str, outcome: PostedTimeStatus = SUCCESS) -> Known:
    return Known(GroupState.ACKNOWLEDGED, outcome, frozenset(sinks))


A, PENDING = posted("a"), [posted("a", status="PENDING"), posted("b", status="PENDING")]
OTHER = [posted("a", status="DONE"), posted("b", status=None)]
NO_RECEIPT = ["a ledger", "a archive"]
AUDITS: dict[str, tuple[list[Listed], list[SinkReceipt], dict[str, Known], list[str], list[str]]] = {
    "a receipt of the sink that it was routed to": ([A], [taken("a")], {"a": known("ledger")}, [], []),
    "no receipt of two sinks": ([A], [], {"a": known("ledger", "archive")}, NO_RECEIPT, []),
    "unknown to the inbox": ([A], [], {}, NO_RECEIPT, []),
    "decided without a sink": ([A], [], {"a": known("archive")}, ["a ledger left out", "a archive"], []),
    "decided without success": ([A], [], {"a": known("archive", outcome=TROUBLE)}, NO_RECEIPT, []),
    "posted before": ([posted("a", 31)], [], {}, [], []),
    "taken before": ([], [taken("a", days=31)], {}, [], []),
    "posted before and taken since": ([posted("a", 40)], [taken("a", days=1)], {}, [], []),
    "pending": (PENDING, [], {"b": known(outcome=REFUSED)}, [], []),
    "pending but taken, and not listed": (PENDING[:1], [taken("a"), taken("b")], {}, [], ["a PENDING", "b None"]),
    "another status, which is as good as posted": (OTHER, [], {"b": known("ledger")}, [*NO_RECEIPT, "b ledger"], []),
    "another status, refused by this project": (OTHER[:1], [], {"a": known(outcome=REFUSED)}, [], []),
}
"""Listed groups, receipts, and what the inbox knows → who lacks a receipt of which sink, and who is not posted."""


@pytest.mark.parametrize(("listed", "receipts", "of", "lacking", "unposted"), AUDITS.values(), ids=AUDITS)
def test_the_list_of_the_service_is_compared_with_receipts_in_both_directions(
    listed: list[Listed], receipts: list[SinkReceipt], of: dict[str, Known], lacking: list[str], unposted: list[str]
) -> None:
    """A group with another status is listed with what the inbox knows of it."""
    found = audit(listed, receipts, BOTH, of, SINCE)
    assert [f"{one.group_id} {one.sink}{' left out' if one.is_left_out else ''}" for one in found.lacking] == lacking
    assert [f"{one.group_id} {one.status}" for one in found.unposted] == unposted
    assert found.agrees is (not lacking and not unposted)
    others = [(one.group_id, one.status, one.entry) for one in found.others]
    assert others == [(one.group_id, one.status, of.get(one.group_id)) for one in listed if one.status != "SUCCESS"]


@pytest.fixture
def delivered(estate: World) -> World:
    """A world in which the groups `a` and `b` are delivered."""
    time_(estate, "register")
    estate.post("a", "b")
    assert time_(estate, "pull").code == 0
    return estate


def in_database(delivered: World, file: str, *statements: str) -> None:
    """Change a database as a person does, or a restored backup."""
    with closing(sqlite3.connect(delivered.project.folder / file)) as database, database:
        for statement in statements:
            assert database.execute(statement).rowcount in (1, -1)


def differences(ended: Ended) -> list[tuple[str, ...]]:
    """The groups that lack a receipt with their sinks, and those that are not posted with their status."""
    lacking = [("lacks", one["groupId"], one["sink"]) for one in ended.document["lacking"]]
    return lacking + [("unposted", one["groupId"], one["status"]) for one in ended.document["unposted"]]


FORGET_A = [f"DELETE FROM {table} WHERE group_id = 'a'" for table in ("inbox_deliveries", "inbox_groups")]


def test_the_command_exits_with_1_and_lists_each_difference(delivered: World) -> None:
    """A lost receipt, a delivered group that is pending again, a sink that was added later; with 0 while all agrees."""
    delivered.post("old", submissionTime=1_600_000_000_000)
    agreed = time_(delivered, "audit", *JSON)
    assert (agreed.code, agreed.document["posted"], differences(agreed)) == (0, 2, [])
    in_database(delivered, "ledger.db", "DELETE FROM syncengine_receipts WHERE group_id = 'a'")
    delivered.post("b")  # posted again: pending at the service, taken by the sink
    done = time_(delivered, "audit", *JSON)
    assert (done.code, differences(done)) == (1, [("lacks", "a", "ledger"), ("unposted", "b", "PENDING")])
    assert [(one["groupId"], one["sinks"]) for one in done.document["others"]] == [("b", ["ledger"])]
    delivered.settings(sinks=LEDGER + "    - {name: added, jsonl: {path: added.jsonl}}\n")
    text = time_(delivered, "audit").out
    assert "sink ledger has no receipt\n" in text
    assert "sink added has no receipt: it was decided without this sink" in text
    assert "before the sink was added or renamed, is not delivered to it" in text
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
def test_unreadable_items_are_counted_and_the_others_listed(delivered: World, command: str) -> None:
    """Exit code 3 marks the list as incomplete, and no text of an unreadable item is shown."""
    delivered.service.fault("listPostedTime", times=None, status=200, body=ODD)
    done = time_(delivered, command, *JSON)
    assert (done.document["complete"], done.document["unreadable"]) == (False, 3)
    assert "ignored 3 items of the list" in done.err
    assert "secret of" not in done.err + done.out
    if command == "list":
        assert ([group["groupId"] for group in done.document["groups"]], done.code) == (["b", "c", "a"], 3)
    assert time_(delivered, command).code == done.code


def test_an_instant_that_hides_groups_makes_a_list_incomplete(delivered: World) -> None:
    """The service lists at most 500 groups of one instant: `time list` exits with 3 and names the instant."""
    for times, count in ((2, 500), (None, 0)):
        page = [{"groupId": f"g{n}", "submissionTime": 2000} for n in range(count)]
        delivered.service.fault("listPostedTime", times=times, status=200, body=page)
    done = time_(delivered, "list", *JSON)
    assert (done.code, done.document["complete"], done.document["hidden"]) == (3, False, ["1970-01-01T00:00:02Z"])


def test_the_receipts_of_a_ledger_count_instead_of_the_inbox(delivered: World) -> None:
    """Unless it keeps none. A receipt of an unlisted group is told; while the ledger is away, the exit code is 3."""
    ledger, away = (delivered.project.folder / name for name in ("ledger.db", "away.db"))
    ledger.rename(away)
    unread = time_(delivered, "audit", *JSON)
    assert (unread.code, unread.document["unread"], differences(unread)) == (3, ["ledger"], [])
    assert "ledger" in unread.err
    away.rename(ledger)
    in_database(delivered, ".syncengine/state.db", *FORGET_A)
    assert time_(delivered, "audit").code == 0
    in_database(delivered, "ledger.db", "UPDATE syncengine_receipts SET group_id = 'else' WHERE group_id = 'a'")
    done = time_(delivered, "audit", *JSON)
    assert (done.code, differences(done)) == (1, [("lacks", "a", "ledger"), ("unposted", "else", None)])
    delivered.settings(sinks=LEDGER.replace("source: ledger,", "source: ledger, receipts: false,"))
    assert differences(time_(delivered, "audit", *JSON)) == [("lacks", "a", "ledger")]
    delivered.settings()
    in_database(delivered, "ledger.db", "DROP TABLE syncengine_receipts")
    assert [id for _, id, _ in differences(time_(delivered, "audit", *JSON))] == ["b", "a"]


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
