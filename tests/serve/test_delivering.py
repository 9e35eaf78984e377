"""`serve` delivers posted time exactly once, whatever is killed, lost or refused, and reports the true outcome."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing

import pytest

from syncengine.posted_time.pace import WIDTH
from tests import postgresql
from tests.sandbox.receiver import receiving
from tests.support.ports import unused_port
from tests.support.waiting import eventually

from .test_webhook import HOOK
from .world import HTTP_SINK, LEDGER, World

pytestmark = pytest.mark.slow


def test_posted_time_is_delivered_and_acknowledged_with_the_ledgers_reference(estate: World) -> None:
    """Each group becomes one row, and the service gets the sink's reference as externalId. The probes count it.

    A group that is offered again is acknowledged again, and not delivered.
    """
    estate.serve_ready()
    estate.deliver("a", "b", "c")
    assert estate.ledger() == ["a", "b", "c"]
    assert estate.posted()["a"]["externalId"] == "L-a"
    estate.service.say("/posted-time/offer", {"groupId": "a"})
    eventually(lambda: len(estate.posted()["a"]["told"]) == 2)
    assert [told["status"] for told in estate.posted()["a"]["told"]] == ["SUCCESS", "SUCCESS"]
    assert estate.ledger() == ["a", "b", "c"]
    # The service has the acknowledgement a moment before the inbox records that it was accepted.
    eventually(lambda: estate.figures().get('syncengine_inbox_groups{state="acknowledged"}') == "3.0")
    assert estate.answer("/healthz") == {"alive": True}
    assert estate.answer("/readyz")["reasons"] == []
    figures = estate.figures()
    counted = ('syncengine_groups_total{outcome="SUCCESS"}', 'syncengine_sink_up{sink="ledger"}', "syncengine_leads")
    assert [figures[name] for name in counted] == ["4.0", "1.0", "1.0"]


def test_a_sink_that_fails_a_group_of_an_earlier_process_is_looked_at_again_at_once(estate: World) -> None:
    """The group is delivered soon after the sink works again, not only after the next check of healthy sinks."""
    estate.settings(ledger="'sqlite:///ledger.db?timeout=3'")
    with closing(sqlite3.connect(estate.project.folder / "ledger.db", isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        served = estate.serve_ready()
        estate.post("a")
        served.says("fetched")
        time.sleep(1.0)
        served.stop(signal.SIGKILL)
        estate.serve()
        eventually(lambda: [told["status"] for told in estate.posted()["a"]["told"]])
        rival.execute("ROLLBACK")
    began = time.monotonic()
    eventually(estate.ledger)
    assert time.monotonic() - began < 30


def test_a_sink_that_cannot_be_reached_at_the_start_is_reported_with_its_type(estate: World) -> None:
    """TARGET_UNREACHABLE is reported at once; `serve` goes on, and logs when it checks again."""
    estate.settings(sinks=HTTP_SINK.format(url="http://127.0.0.1:9"))
    served = estate.serve(hurried=False)
    assert "Posted time waits until the sink has recovered; checking again in 5 s." in served.says("sink-down")[0]
    health = eventually(estate.health)
    assert health["errorType"] == "TARGET_UNREACHABLE"
    assert (estate.told("fetchPostedTime"), estate.figures()['syncengine_sink_up{sink="pms"}']) == (0, "0.0")


def test_a_frozen_database_is_trouble_and_holds_no_stop(estate: World) -> None:
    """A sink whose database hangs is reported, does not delay SIGTERM, and has each group once in the end."""
    with postgresql.running() as server:
        server.sql("CREATE TABLE time (id TEXT, matter TEXT)")
        estate.settings(sinks=LEDGER.replace("source: ledger", "url: {env: LEDGER}"))
        environ = {"LEDGER": server.url()}
        served = estate.serve_ready(environ=environ)
        estate.deliver("a")
        with server.frozen():
            estate.post("b")
            health = eventually(estate.health)
            assert health["errorType"] == "TARGET_UNREACHABLE"
            told = served.says("taken", 2)[1]
            assert told.startswith("group b: RETRIABLE_FAILURE: ledger cannot be reached. [it did not answer")
            assert served.stop() == 0
        estate.serve(environ=environ)
        estate.all_succeed()
        assert server.column("SELECT id FROM time ORDER BY id") == ["a", "b"]


def test_sigterm_finishes_and_acknowledges_the_groups_in_hand(estate: World) -> None:
    """Groups that a sink is working on are finished and acknowledged; the next process delivers the others from the
    inbox, though the service does not offer them again."""
    ids = [f"g{number:02}" for number in range(WIDTH + 2)]
    with receiving() as target:
        target.holding.clear()
        estate.settings(sinks=HTTP_SINK.format(url=target.url.removesuffix("/hook")), posted="  fetchLimit: 100")
        served = estate.serve_ready()
        estate.service.choose(reofferSeconds=3600)
        estate.post(*ids)
        target.called(1)
        served.process.send_signal(signal.SIGTERM)
        eventually(lambda: estate.probe("/livez") is None)  # the signal arrives before the first answer
        target.holding.set()
        assert served.ends() == 0
        assert sorted(call["id"] for call in target.calls) == ids[:WIDTH]
        assert estate.states() == dict.fromkeys(ids[:WIDTH], "success") | dict.fromkeys(ids[WIDTH:], "offered")
        estate.serve()
        estate.all_succeed()
        assert sorted(call["id"] for call in target.calls) == ids


@pytest.mark.parametrize("then", ["", HOOK], ids=["fetch", "webhook"])
def test_fetched_groups_survive_a_sigkill_and_are_resumed(estate: World, then: str) -> None:
    """After SIGKILL during the first of three fetched groups, the next process delivers and acknowledges all three, and
    its log tells of them as of any others; also if it has a webhook, by which they do not come again."""
    with receiving() as target:
        target.holding.clear()
        sink = HTTP_SINK.format(url=target.url.removesuffix("/hook"))
        estate.settings(sinks=sink)
        served = estate.serve_ready()
        estate.service.choose(reofferSeconds=3600)
        estate.post("a", "b", "c")
        target.called(1)
        served.process.kill()
        served.process.wait()
        target.holding.set()
        estate.settings(sinks=sink, posted=then.format(port=unused_port()))
        served = estate.serve()
        assert sorted(served.says("taken", 3)) == [f"group {id}: SUCCESS" for id in "abc"]
        estate.all_succeed()
        assert {call["id"] for call in target.calls} == {"a", "b", "c"}
