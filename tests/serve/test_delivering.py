"""`serve` delivers posted time exactly once with nobody watching, tells the true outcome, and keeps its secrets."""

import io
import itertools
import json
import re
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from syncengine.posted_time.pace import WIDTH
from syncengine.project.load import load_project
from syncengine.project.model import Project
from tests import postgresql
from tests.cli.service import KEY
from tests.posted_time.receiver import receiving as receiving_all
from tests.sandbox.receiver import receiving
from tests.support.quiet import unused_port
from tests.support.waiting import eventually

from .in_process import work
from .test_webhook import HOOK
from .world import HTTP_SINK, LEDGER, World

pytestmark = pytest.mark.slow


def test_posted_time_is_delivered_and_acknowledged_with_the_ledgers_reference(estate: World) -> None:
    """Each group becomes one row, and the service gets the sink's reference as externalId. The probes count it. A group
    that is offered again is acknowledged again, and not delivered."""
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


# --- with nobody watching


SERVICE_KEY, SESSION_TOKEN = "sk-90c4-never-to-be-seen", "st-5e6b-never-to-be-seen"
ANSWER: dict[str, Any] = {
    "serviceId": "s-1",
    "serviceKey": SERVICE_KEY,
    "serviceIdExpiry": "2099-01-01T00:00:00Z",
    "serviceSessionToken": SESSION_TOKEN,
    "groupName": "group",
    "connectorConfiguration": {"DESK": "7"},
}


def test_a_sink_that_goes_down_in_the_quiet_is_reported(estate: World) -> None:
    """The sinks are checked again and again, even when no group comes."""

    def watch() -> None:
        eventually(lambda: estate.told("fetchPostedTime"))
        stack.close()
        health = eventually(estate.health)
        assert (health["errorType"], "pms" in health["userErrorMessage"]) == ("TARGET_UNREACHABLE", True)

    with ExitStack() as stack:
        target = stack.enter_context(receiving())
        estate.settings(sinks=HTTP_SINK.format(url=target.url.removesuffix("/hook")))
        work(estate, watch)
    assert estate.told("reportHealthFailure") == 1
    assert target.calls == []


# --- secrets


def test_the_password_of_a_sink_is_in_no_log_and_no_file(estate: World) -> None:
    """Neither a receiver that repeats the password nor a database error with --debug reveals it."""
    password = "Zq7pw%21never%40seen"
    with receiving_all() as sink:
        sink.answer = lambda got: (401, {"message": f"bad password {password}"})
        sinks = (
            "    - {name: pms, http: {url: {env: PMS}, json: {}}}\n"
            "    - {name: away, sql: {url: {env: AWAY}, statement: 'INSERT INTO t VALUES (:i)', params: {i: '1'}}}\n"
        )
        estate.settings(sinks=sinks)
        away = f"postgresql+psycopg://app:{password}@127.0.0.1:{unused_port()}/x"
        pms = sink.url.replace("//", f"//app:{password}@")
        served = estate.serve("--debug", environ={"PMS": pms, "AWAY": away})
        served.says("leading")
        estate.post("a")
        eventually(estate.health)
        eventually(lambda: sink.got)
        assert served.stop() == 0
    assert b"Zq7pw" not in estate.files()


def test_the_registrations_secrets_are_in_no_log_and_no_file(estate: World) -> None:
    """`serve` and `time pull` keep them secret, even when a refused registration repeats them."""
    words = f"no: {SERVICE_KEY} {SESSION_TOKEN}"
    estate.service.fault("registerConnector", status=500, body={"message": words, **ANSWER})
    estate.service.fault("registerConnector", status=200, body=ANSWER, times=None)
    for _ in range(2):
        served = estate.serve_ready()
        estate.deliver(f"g{len(estate.started)}")
        assert served.stop() == 0
    estate.post("p")
    done = estate.project.run("time", "pull", "--format", "json")
    assert (done.code, estate.states()["p"]) == (0, "success")
    for secret in (SERVICE_KEY, SESSION_TOKEN):
        assert secret.encode() not in estate.files()
        assert secret not in done.out + done.err


# --- registrations and reloads

SINK = LEDGER.replace("{{ tag.name }}", "{{ connectorConfiguration.DESK }}")


def answer(desk: str, seconds: float) -> dict[str, Any]:
    expiry = datetime.now(UTC) + timedelta(seconds=seconds)
    return {"serviceId": "s", "serviceIdExpiry": expiry.isoformat(), "connectorConfiguration": {"DESK": desk}}


def test_a_registration_is_renewed_before_it_expires_and_its_settings_hold_from_then_on(estate: World) -> None:
    """After the renewal, templates use the settings of the newer answer."""
    estate.settings(sinks=SINK)
    estate.service.fault("registerConnector", status=200, body=answer("first", 2))
    estate.service.fault("registerConnector", status=200, body=answer("second", 3600))

    def watch() -> None:
        eventually(lambda: estate.told("registerConnector") == 2)
        estate.deliver("a")

    log = work(estate, watch)
    assert log.count('"event":"registered"') == 2
    assert estate.told("registerConnector") == 2
    assert estate.matters() == ["second"]


def test_an_exception_in_a_reload_is_logged_and_the_old_configuration_stays(estate: World) -> None:
    stream, loads = io.StringIO(), itertools.count()

    def load(**given: Any) -> Project:
        if next(loads):
            raise RuntimeError("somebody's words")
        return load_project(**given)

    def watch() -> None:
        estate.settings(posted="  unmatched: accept")
        eventually(lambda: "the old one stays in use" in stream.getvalue())
        estate.deliver("a")

    log = work(estate, watch, load, stream)
    assert "RuntimeError in syncengine, which is a bug" in log
    assert "somebody" not in log


def test_the_key_at_work_stays_masked_through_reloads_that_fail(estate: World) -> None:
    """Every failed reload brings another key; neither it nor the current key appears in the log."""
    stream, loads = io.StringIO(), itertools.count()

    def load(**given: Any) -> Project:
        number = next(loads)
        return load_project(**{**given, "environ": {"SYNCENGINE_API_KEY": f"other-key-{number}" if number else KEY}})

    def watch() -> None:
        eventually(lambda: '"event":"leading"' in stream.getvalue())
        for number in range(1, 6):
            estate.settings(sinks=LEDGER.replace("INTO time", f"INTO none{number}"))
            eventually(lambda count=number: stream.getvalue().count("the old one stays in use") == count)
        estate.settings(posted=f"  {KEY}: 1\n  other-key-1: 1")
        eventually(lambda: "unknown-field" in stream.getvalue())
        estate.settings()

    log = work(estate, watch, load, stream)
    assert "has no field `***`" in log
    assert KEY not in log
    assert "other-key" not in log


def test_a_retry_by_hand_is_delivered_by_the_running_serve(estate: World) -> None:
    """`time retry --sink` beside a running `serve` delivers the lost group again, and only that one."""

    def watch() -> None:
        eventually(lambda: estate.told("fetchPostedTime"))
        estate.deliver("a", "b")
        with closing(sqlite3.connect(estate.project.folder / "ledger.db", timeout=30)) as ledger, ledger:
            ledger.execute("DELETE FROM time WHERE id = 'a'")
            ledger.execute("DELETE FROM syncengine_receipts WHERE group_id = 'a'")
        asked = estate.project.run("time", "retry", "--sink", "ledger", "--since", "1d", "-y")
        assert asked.code == 0
        eventually(lambda: estate.ledger() == ["a", "b"])

    work(estate, watch)
    assert estate.ledger() == ["a", "b"]


# --- lost answers


WORDS = "somebody's words"
FILE = '    - {name: file, jsonl: {path: out.jsonl, json: {id: "{{ group.groupId }}"}}}\n'

WAYS: dict[str, dict[str, Any]] = {
    "never-arrived": {"drop": "before", "times": 2},
    "answer-lost": {"drop": "after", "times": 2},
    "too-late": {"delay": 3},
    "500": {"status": 500, "body": f"{WORDS} {KEY}", "times": 2},
    "400": {"status": 400, "body": f"{WORDS} {KEY}", "times": 2},
    "odd": {"status": 200, "body": f"{WORDS} {KEY}", "apply": True},
}
"""The faults that spoil an answer; the client's timeout is one second."""


@dataclass
class Scene:
    """A service that spoils the answers to some operations, two sinks that count groups, and the log of `serve`."""

    estate: World
    operations: tuple[str, ...]
    fault: dict[str, Any]
    log: str = ""
    posted: list[str] = field(default_factory=list)

    def uses(self, posted: str = "") -> None:
        self.estate.settings(sinks=LEDGER + FILE, posted=posted, service=("timeout: 1s",))

    def serves(self, watch: Callable[[], object]) -> None:
        self.log += work(self.estate, watch)

    def spoils(self) -> Callable[[], None]:
        """Spoil the operations' answers from now on; the returned function waits until all of them were spoilt."""
        times = self.fault.get("times", 1)
        wanted = {operation: self.estate.told(operation) + times for operation in self.operations}
        for operation in self.operations:
            self.estate.service.fault(operation, **self.fault)

        def over() -> None:
            for operation, count in wanted.items():
                eventually(lambda: self.estate.told(operation) >= count)  # noqa: B023 -- it is called at once

        return over

    def has(self, mechanism: str) -> None:
        eventually(lambda: self.estate.connection()["mechanism"] == mechanism)

    def posts(self, *ids: str) -> None:
        """Post groups as users do, and wait until the service has all of them as successful."""
        self.posted += ids
        self.estate.post(*ids)
        self.estate.all_succeed()

    def lines(self) -> list[str]:
        """The ids in the file of the second sink."""
        text = (self.estate.project.folder / "out.jsonl").read_text(encoding="utf-8")
        return [json.loads(line)["id"] for line in text.splitlines()]


def at_the_start(scene: Scene) -> None:
    over = scene.spoils()

    def watch() -> None:
        over()
        scene.has("fetch")
        scene.posts("a", "b")

    scene.serves(watch)


def in_between(scene: Scene) -> None:
    def watch() -> None:
        scene.has("fetch")
        scene.posts("a")
        over = scene.spoils()
        scene.posts("b", "c")
        over()
        scene.posts("d")

    scene.serves(watch)


def to_webhook_and_back(scene: Scene) -> None:
    def fetched(*ids: str, over: Callable[[], None] = lambda: None) -> None:
        over()
        scene.has("fetch")
        scene.posts(*ids)

    def called() -> None:
        scene.has("webhook")
        scene.posts("b", "c")

    scene.serves(lambda: fetched("a"))
    scene.uses(HOOK.format(port=unused_port()))
    over = scene.spoils()
    scene.serves(called)
    scene.uses()
    scene.serves(lambda: fetched("d", "e", over=over))


def in_an_outage(scene: Scene) -> None:
    """The ledger fails, so that a failure is reported and later rescinded."""

    def watch() -> None:
        scene.has("fetch")
        over = scene.spoils()
        with closing(sqlite3.connect(scene.estate.project.folder / "ledger.db", timeout=30)) as database:
            database.execute("ALTER TABLE time RENAME TO away")
            scene.estate.post("a")
            eventually(scene.estate.health)
            database.execute("ALTER TABLE away RENAME TO time")
        over()
        eventually(lambda: scene.estate.health() is None)
        scene.posts("b")

    scene.posted.append("a")
    scene.serves(watch)


ASKED: dict[Callable[[Scene], None], tuple[str, ...]] = {
    at_the_start: ("teamInfo", "registerConnector", "registerFetchClient"),
    in_between: ("fetchPostedTime", "updatePostedTimeStatus"),
    to_webhook_and_back: ("unregisterFetchClient", "registerWebhook", "unregisterWebhook"),
    in_an_outage: ("reportHealthFailure", "rescindHealthFailure"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("play", ASKED)
def test_a_lost_answer_loses_and_repeats_no_group(estate: World, play: Callable[[Scene], None], way: str) -> None:
    """Every group is in both sinks once and acknowledged; the log tells a failed registration once, and repeats no
    outside text and no secret."""
    estate.service.choose(holdSeconds=0.3, reofferSeconds=0.3, retrySeconds=0.2)
    scene = Scene(estate, ASKED[play], WAYS[way])
    scene.uses()
    play(scene)
    assert estate.ledger() == sorted(scene.lines()) == sorted(scene.posted)
    assert WORDS not in scene.log
    assert scene.log.count("could not be registered") <= 1
    (estate.project.folder / "serve.log").write_text(scene.log, encoding="utf-8")
    assert re.search(rb"(key|token)-[0-9a-f]{8}-", estate.files()) is None


CALLS: dict[str, dict[str, Any]] = {
    "never-arrived": {"drop": "before"},
    "answer-lost": {"drop": "after"},
    "taken-for-500": {"status": 500, "apply": True},
}


@pytest.mark.parametrize("way", CALLS)
def test_no_call_of_the_webhook_is_missed(estate: World, way: str) -> None:
    """The service repeats the call, and a group that was already delivered is not delivered again."""
    estate.service.choose(retrySeconds=0.2)
    scene = Scene(estate, ("webhookCall",), CALLS[way] | {"times": 4})
    scene.uses(HOOK.format(port=unused_port()))

    def watch() -> None:
        scene.has("webhook")
        estate.service.fault("webhookCall", **scene.fault)
        scene.posts("a", "b", "c")

    scene.serves(watch)
    assert estate.ledger() == sorted(scene.lines()) == ["a", "b", "c"]


def test_a_service_that_does_not_wait_for_our_answer_calls_again_and_nothing_is_there_twice(estate: World) -> None:
    """The service gives up after a millisecond several times, and each group is still delivered once."""
    estate.service.choose(retrySeconds=0.1, webhookTimeoutSeconds=0.001)
    scene = Scene(estate, (), {})
    scene.uses(HOOK.format(port=unused_port()))

    def watch() -> None:
        scene.has("webhook")
        estate.post("a")
        eventually(lambda: len(estate.posted()["a"]["told"]) >= 3)
        estate.service.choose(webhookTimeoutSeconds=10)
        scene.posts("b")

    scene.serves(watch)
    assert estate.ledger() == sorted(scene.lines()) == ["a", "b"]
