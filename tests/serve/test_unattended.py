"""`serve` without anybody watching: it checks its sinks, renews its registration, and keeps its secrets."""

from __future__ import annotations

import gc
import io
import itertools
import sqlite3
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from syncengine.posted_time.delivery import Delivery
from syncengine.project.load import load_project
from syncengine.project.model import Project
from tests.cli.service import KEY
from tests.posted_time.receiver import receiving as receiving_all
from tests.sandbox.receiver import receiving
from tests.support.ports import unused_port
from tests.support.waiting import eventually

from .in_process import work
from .world import HTTP_SINK, LEDGER, World

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


def test_one_group_tries_a_sink_that_answers_503_and_no_other_is_fetched(estate: World) -> None:
    """The sink answers probes but refuses groups. One 503 is not reported; after more of them, users see one health
    message without the sink's words until the sink has recovered. Everything is delivered in the end."""
    with receiving_all() as pms:
        answers = iter([503, 201, 201, 201])
        pms.answer = lambda got: (next(answers, 503) if got.method == "POST" else 404, {"message": "secret words"})
        estate.settings(sinks=HTTP_SINK.format(url=pms.url))

        def watch() -> None:
            eventually(lambda: estate.told("fetchPostedTime"))
            estate.post("a")
            eventually(lambda: estate.states() == {"a": "retrying"})
            estate.deliver("b", "c")
            assert estate.told("reportHealthFailure") == 0
            estate.post("d")
            eventually(lambda: estate.states()["d"] == "retrying")
            estate.post("e", "f", "g")
            eventually(lambda: sum(got.method == "POST" for got in pms.got) >= 7)
            health = estate.health()
            assert health is not None
            assert "pms" in health["userErrorMessage"]
            assert "secret words" not in health["userErrorMessage"]
            assert list(estate.states().values()).count("posted") >= 2
            pms.answer = lambda got: (201, {})
            estate.all_succeed()
            eventually(lambda: estate.health() is None)

        work(estate, watch)
    assert (estate.told("reportHealthFailure"), estate.told("rescindHealthFailure")) == (1, 1)


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
    for secret in SECRETS:
        assert secret not in estate.files()
        assert secret.decode() not in done.out + done.err


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
