"""`serve` ends when it is asked to, whatever waits, hangs, stops or is replaced, and loses nothing."""

import asyncio
import os
import shutil
import signal
import sqlite3
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.errors import ExitCode
from syncengine.project.model import Project
from syncengine.project.runner import Holder
from syncengine.serve.shift import stand_by
from syncengine.state.inbox import open_inbox
from syncengine.state.store import open_state
from tests import mariadb, postgresql
from tests.cli.program import tag
from tests.dripping import BODY, dripping
from tests.posted_time.receiver import receiving
from tests.support.waiting import eventually
from tests.support.warm import working

from .in_process import process_in
from .world import World

pytestmark = pytest.mark.slow

FEW_SECONDS = 5.0
TEN_SECONDS = 10.0
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS name FROM n"

Begun = Callable[[], bool]
"""Whether the wait is under way."""


def sourced(estate: World, source: str, query: str) -> None:
    """Write manifests with a block over a source named `far`, in a project without posted time."""
    estate.project.settings(f"serve: {{every: 30s, listen: '127.0.0.1:{estate.port}'}}", f"sources: {{far: {source}}}")
    block = f"generate:\n  - forEach: {query}\n    as: row\n    tags: [{{name: '{{{{ row.name }}}}'}}]\n"
    manifests = estate.project.folder / "manifests"
    manifests.mkdir(exist_ok=True)
    (manifests / "far.yaml").write_text(block, encoding="utf-8")


@contextmanager
def asked_to_wait(estate: World) -> Iterator[Begun]:
    """The source's HTTP server asks for a pause of four minutes."""
    with receiving() as service:
        service.answer = lambda got: (429, {})
        service.headers["Retry-After"] = "240"
        sourced(estate, f"{{http: {{url: '{service.url}'}}}}", "{http: {source: far}}")
        yield lambda: bool(service.got)


@contextmanager
def endless_answer(estate: World) -> Iterator[Begun]:
    with dripping(BODY) as service:
        sourced(estate, f"{{http: {{url: '{service.url}'}}}}", "{http: {source: far}}")
        yield service.asked.is_set


@contextmanager
def endless_sqlite(estate: World) -> Iterator[Begun]:
    with closing(sqlite3.connect(estate.project.folder / "far.db")) as database, database:
        database.execute("CREATE TABLE t (x)")
    sourced(estate, "{sql: far.db}", f"{{sql: {{source: far, query: '{ENDLESS}'}}}}")
    yield lambda: "leading" in estate.started[0].events() or estate.ready()


def slow(estate: World, url: str, query: str, running: str) -> Begun:
    """A server executes a statement for a hundred seconds; the query `running` counts those that it executes."""
    (estate.project.folder / "far.url").write_text(url)
    sourced(estate, "{sql: {file: far.url}}", f"{{sql: {{source: far, query: '{query}'}}}}")
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool)

    def has_begun() -> bool:
        with engine.connect() as connection:
            return bool(connection.exec_driver_sql(running).scalar())

    return has_begun


@contextmanager
def slow_postgresql(estate: World) -> Iterator[Begun]:
    others = "state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    with postgresql.running() as server:
        query = "SELECT pg_sleep(100)::text AS name"
        yield slow(estate, server.url(), query, f"SELECT count(*) FROM pg_stat_activity WHERE {others}")


@contextmanager
def slow_mariadb(estate: World) -> Iterator[Begun]:
    like = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'SELECT sleep%%'"
    with mariadb.running() as url:
        yield slow(estate, url, "SELECT sleep(100) AS name", like)


@contextmanager
def locked_state(estate: World) -> Iterator[Begun]:
    """Another run holds the lock of the state."""
    estate.project.settings(f"serve: {{every: 30s, listen: '127.0.0.1:{estate.port}'}}")
    estate.project.wants(tags=[tag("A")])
    place = estate.project.loaded().state
    with open_state(place, write=True) as state, state.lock(Holder.here("apply", {}), wait=0, request_timeout=1):
        yield lambda: "waiting" in estate.started[0].events()


WAITS = (asked_to_wait, endless_answer, endless_sqlite, slow_postgresql, slow_mariadb, locked_state)


@pytest.mark.parametrize("wait", WAITS)
def test_no_wait_keeps_it_from_ending(estate: World, wait: Callable[[World], AbstractContextManager[Begun]]) -> None:
    """SIGTERM ends `serve` within seconds; nothing is sent, the lock is released, and no error is logged."""
    with wait(estate) as has_begun:
        served = estate.serve()
        eventually(has_begun)
        began = time.monotonic()
        assert served.stop() == 0
        assert time.monotonic() - began < FEW_SECONDS
    assert not estate.project.is_locked()
    assert estate.told("upsertTags") == 0
    assert [line for line in served.lines() if line["level"] == "error"] == []


# --- deliveries

DRIP = "http: {url: 'URL', timeout: 1h, json: {id: '{{ group.groupId }}'}}"
LONG_STATEMENT = f"""\
sql: {{source: ledger, params: {{id: '{{{{ group.groupId }}}}'}},
  statement: "INSERT INTO time (id, matter) SELECT :id, name FROM ({ENDLESS})"}}
"""
SLOW_TEMPLATE = """\
jsonl: {path: out.jsonl, json: ["{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"]}
"""


@pytest.mark.parametrize("way", [DRIP, LONG_STATEMENT, SLOW_TEMPLATE], ids=["drip", "statement", "template"])
def test_no_sink_keeps_it_from_ending(estate: World, way: str) -> None:
    """SIGTERM ends `serve` within ten seconds, and the group is in the ledger once after the next start."""
    with dripping(BODY) as receiver:
        way = way.replace("URL", receiver.url)
        estate.settings(sinks=textwrap.indent(f"- name: slow\n{textwrap.indent(way, '  ')}", "    "))
        served = estate.serve_ready()
        estate.post("a")
        served.says("fetched")
        time.sleep(0.5)  # until the delivery has begun
        began = time.monotonic()
        assert served.stop() in (ExitCode.DONE, ExitCode.INTERRUPTED)
        assert time.monotonic() - began < TEN_SECONDS
    assert estate.ledger() == []
    estate.settings()
    estate.serve()
    estate.all_succeed()
    assert estate.ledger() == ["a"]


# --- its database stops, hangs or is replaced


STOPS_WITHIN = 15.0
"""Seconds; `serve` gives itself nine of them."""

SINK = """\
    - name: ledger
      sql: {source: ledger, statement: "INSERT INTO time (id) VALUES (:id)", params: {id: "{{ group.groupId }}"}}
"""


DELIVERED = "SELECT id FROM time ORDER BY id"


def in_postgresql(estate: World, server: postgresql.Server) -> None:
    """Put the state, the inbox and the ledger into one server."""
    (estate.project.folder / "db.url").write_text(server.url())
    estate.settings(sinks=SINK, more="state: {file: db.url}", ledger="{file: db.url}")
    server.sql("CREATE TABLE IF NOT EXISTS time (id text)")


def test_a_server_that_comes_back_is_used_again_and_while_it_is_away_a_stop_is_heeded(estate: World) -> None:
    """After each restart of the database, `serve` reconnects, and every group is delivered once. SIGTERM ends it while
    the database is away and a group is in hand, which the next start delivers."""
    with postgresql.running() as server:
        in_postgresql(estate, server)
        served = estate.serve_ready()
        posted: set[str] = set()
        for turn in range(3):
            posted.update(ids := [f"{turn}{n}" for n in range(5)])
            estate.post(*ids)
            server.stop()
            time.sleep(0.5)
            server.start()
            eventually(lambda: len(server.column(DELIVERED)) >= len(posted))
        waited = len(served.messages("waiting"))
        server.stop()
        estate.post("b")
        served.says("waiting", waited + 1)
        began = time.monotonic()
        assert served.stop() == 0
        assert time.monotonic() - began < STOPS_WITHIN
        server.start()
        estate.serve()
        estate.all_succeed()
        assert server.column(DELIVERED) == sorted(posted | {"b"})


def test_a_second_signal_ends_it_at_once_while_its_database_hangs(estate: World) -> None:
    """With a hanging database, the first signal waits for what is under way, and the second ends `serve`."""
    with postgresql.running() as server:
        in_postgresql(estate, server)
        served = estate.serve_ready()
        estate.post("a")  # once it is acknowledged, the next fetch is on its way
        estate.all_succeed()
        with server.frozen():
            estate.post("b")
            served.says("fetched", 2)
            served.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert served.process.poll() is None
            assert served.stop() == ExitCode.INTERRUPTED
        assert served.messages("left") == [
            "stopped by a second signal: what is still under way is left to the next start"
        ]
        estate.serve()
        estate.all_succeed()
        assert server.column(DELIVERED) == ["a", "b"]


def serve_for_a_second_longer(folder: Path) -> None:
    """Run `serve` with a limit of one second after a signal."""
    process_in(folder, sys.stdout).run(lambda: os._exit(0), ends_within=1.0)


def test_it_does_not_wait_for_ever_for_a_database_that_hangs(estate: World) -> None:
    """After one signal, `serve` ends within its time limit, since a supervisor sends only one before it kills."""
    with postgresql.running() as server:
        in_postgresql(estate, server)
        with working(serve_for_a_second_longer, estate.project.folder) as process:
            eventually(estate.ready)
            with server.frozen():
                time.sleep(0.5)
                process.stop()
                assert "not stopped within 1 s" in process.stdout.read()
        eventually(lambda: not process.is_alive())


def test_it_does_not_wait_for_ever_for_a_disk_with_a_secret(estate: World) -> None:
    """Each line of the log reads the secrets that it masks; the last one does without."""
    with working(serve_on_a_disk_that_hangs, estate.project.folder) as process:
        eventually(estate.ready)
        (estate.project.folder / "hangs").touch()
        process.stop()
        eventually(lambda: not process.is_alive())
        assert "not stopped within 1 s" in process.stdout.read()


def serve_on_a_disk_that_hangs(folder: Path) -> None:
    """The same, with a key that cannot be read while a file named `hangs` exists, as if its disk did not answer."""
    key = Project.api_key

    def hanging(project: Project) -> str:
        while (folder / "hangs").exists():
            time.sleep(0.1)
        return key(project)

    Project.api_key = hanging  # type: ignore[method-assign] # only in the process of this test
    serve_for_a_second_longer(folder)


def test_a_second_signal_ends_it_even_while_the_first_is_handled(estate: World) -> None:
    """It arrives before the thread that limits the time of the end has started."""
    with working(serve_with_a_signal_at_once, estate.project.folder) as process:
        eventually(estate.ready)
        process.stop()
        assert "stopped by a second signal" in process.stdout.read()


def serve_with_a_signal_at_once(folder: Path) -> None:
    """Run `serve`, which gets a second SIGTERM as soon as it begins to handle the first."""
    start = threading.Timer.start

    def interrupted(timer: threading.Timer) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        start(timer)

    threading.Timer.start = interrupted  # type: ignore[method-assign] # this process has nothing else to do
    process_in(folder, sys.stdout).run(lambda: os._exit(0))


HERE = Holder.here("serve", {})


def test_a_standby_outlives_its_database_being_away_and_can_be_stopped() -> None:
    """It reports each reason to wait once, and gets the lease as soon as the holder has released it."""
    said: list[str] = []
    unheard: list[str] = []

    async def until(there: Callable[[], bool]) -> None:
        await asyncio.to_thread(eventually, there)

    async def play(server: postgresql.Server) -> None:
        with open_inbox(server.url(), write=True) as first, open_inbox(server.url(), write=True) as second:
            held = first.lease(HERE)
            stop = asyncio.Event()
            waiting = asyncio.create_task(stand_by(second, HERE, asyncio.Event(), said.append))
            await until(lambda: len(said) == 1)
            await asyncio.to_thread(server.stop)
            stopped = asyncio.create_task(stand_by(first, HERE, stop, unheard.append))
            await until(lambda: len(said) == 2 and bool(unheard))
            stop.set()
            assert await asyncio.wait_for(stopped, 60) is None
            await asyncio.to_thread(server.start)
            await asyncio.to_thread(held.release)
            lease = await asyncio.wait_for(waiting, 60)
            assert lease is not None
            assert lease.remaining() > 0
            await asyncio.to_thread(lease.release)

    with postgresql.running() as server:
        asyncio.run(play(server))
    assert len(said) == 2
    # The message depends on how far the server's stop had come.
    assert any(words in said[1] for words in ("is running", "starting or stopping", "ended the connection"))


# --- replaced


def test_an_inbox_that_is_replaced_ends_the_process(estate: World) -> None:
    """The group is neither delivered nor acknowledged, so that the service offers it to the next process."""
    served = estate.serve_ready()
    state = estate.project.folder / ".syncengine" / "state.db"
    Path(shutil.copy(state, f"{state}.copy")).replace(state)
    estate.post("g1")
    assert served.ends() == 1
    assert "was removed, replaced or set back" in served.log.read_text(encoding="utf-8")
    assert estate.ledger() == []
    assert estate.states()["g1"] != "SUCCESS"


def test_a_state_that_is_removed_in_a_round_ends_the_process(estate: World) -> None:
    """The round does not complete, and no further one starts without the state; tests/cli has its other fates."""
    estate.project.settings(f"serve: {{every: 1s, listen: '127.0.0.1:{estate.port}'}}")
    estate.project.wants(tags=[tag("A")])
    served = estate.serve()
    served.says("reconciled")
    estate.service.fault("upsertTags", delay=2)
    estate.project.wants(tags=[tag("A"), tag("B")])
    estate.service.wait_for("upsertTags", 2)
    shutil.rmtree(estate.project.folder / ".syncengine")
    assert served.ends() == 1
    assert "was removed, replaced or set back" in served.log.read_text(encoding="utf-8")
    assert estate.told("upsertTags") == 2
