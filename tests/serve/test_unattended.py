"""`serve` without anybody watching: it checks its sinks, keeps its secrets, and can be switched off."""

from __future__ import annotations

import gc
import io
import sqlite3
from contextlib import ExitStack, closing
from typing import Any

import pytest

from syncengine.posted_time.delivery import Delivery
from tests.posted_time.receiver import receiving as receiving_all
from tests.sandbox.receiver import receiving
from tests.support.ports import unused_port

from .in_process import work
from .test_delivering import HTTP_SINK
from .world import World, eventually

pytestmark = pytest.mark.slow

SERVICE_KEY, SESSION_TOKEN = "sk-90c4-never-to-be-seen", "st-5e6b-never-to-be-seen"
ANSWER: dict[str, Any] = {
    "serviceId": "s-1",
    "serviceKey": SERVICE_KEY,
    "serviceIdExpiry": "2099-01-01T00:00:00Z",
    "serviceSessionToken": SESSION_TOKEN,
    "groupName": "group",
    "connectorConfiguration": {"DESK": "7"},
}
SECRETS = (SERVICE_KEY.encode(), SESSION_TOKEN.encode())


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


def test_one_503_is_not_reported_and_nothing_is_fetched_until_it_is_over(estate: World) -> None:
    """After one 503, a single group tries the sink; once it succeeds, the other groups follow."""
    with receiving_all() as pms:
        first = iter([503])
        pms.answer = lambda got: (next(first, 201) if got.method == "POST" else 404, {})
        estate.settings(sinks=HTTP_SINK.format(url=pms.url))

        def watch() -> None:
            eventually(lambda: estate.told("fetchPostedTime"))
            estate.post("a")
            eventually(lambda: estate.states() == {"a": "retrying"})
            estate.deliver("b", "c")

        work(estate, watch)
    assert estate.told("reportHealthFailure") == 0


def test_one_group_tries_a_sink_that_answers_503_and_no_other_is_fetched(estate: World) -> None:
    """The sink answers probes but refuses groups: the failure is reported, and everything is delivered in the end."""
    with receiving_all() as pms:
        pms.answer = lambda got: (503 if got.method == "POST" else 404, {})
        estate.settings(sinks=HTTP_SINK.format(url=pms.url))

        def watch() -> None:
            eventually(lambda: estate.told("fetchPostedTime"))
            estate.post("a")
            eventually(lambda: estate.states() == {"a": "retrying"})
            estate.post("b", "c", "d")
            eventually(lambda: sum(got.method == "POST" for got in pms.got) >= 3)
            assert estate.health() is not None
            assert list(estate.states().values()).count("posted") >= 2
            pms.answer = lambda got: (201, {})
            estate.all_succeed()
            eventually(lambda: estate.health() is None)

        work(estate, watch)


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
    for secret in SECRETS:
        assert secret not in estate.files()
        assert secret.decode() not in done.out + done.err


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


def test_replaced_configurations_do_not_stay_in_memory(estate: World) -> None:
    """Only the last one stays, even without garbage collection of cycles."""
    log = io.StringIO()
    kept: list[int] = []

    def watch() -> None:
        for number in range(3):
            eventually(lambda count=number: log.getvalue().count('"event":"leading"') > count)
            estate.settings(posted=f"  keep: {number + 31}d")
        eventually(lambda: log.getvalue().count('"event":"leading"') > 3)
        kept.append(sum(isinstance(each, Delivery) for each in gc.get_objects()))

    gc.collect()
    gc.disable()
    try:
        work(estate, watch, stream=log)
    finally:
        gc.enable()
    assert kept[0] <= 2
