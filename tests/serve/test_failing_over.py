"""`serve` while its database stops, hangs or is replaced: it ends when asked to, and loses nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from syncengine.errors import ExitCode
from syncengine.project.model import Project
from syncengine.project.runner import Holder
from syncengine.serve.shift import stand_by
from syncengine.state.inbox import open_inbox
from tests import postgresql
from tests.cli.program import tag
from tests.support.waiting import eventually
from tests.support.warm import working

from .in_process import process_in
from .world import World

pytestmark = pytest.mark.slow

STOPS_WITHIN = 15.0
"""Seconds; `serve` gives itself nine of them."""

SINK = """\
    - name: ledger
      sql: {source: ledger, statement: "INSERT INTO time (id) VALUES (:id)", params: {id: "{{ group.groupId }}"}}
"""


def in_postgresql(estate: World, server: postgresql.Server) -> None:
    """Put the state, the inbox and the ledger into one server."""
    (estate.project.folder / "db.url").write_text(server.url())
    estate.settings(sinks=SINK, more="state: {file: db.url}", ledger="{file: db.url}")
    server.sql("CREATE TABLE IF NOT EXISTS time (id text)")


def delivered(server: postgresql.Server) -> list[str]:
    return server.column("SELECT id FROM time ORDER BY id")


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
            eventually(lambda: len(delivered(server)) >= len(posted))
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
        assert delivered(server) == sorted(posted | {"b"})


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
        assert delivered(server) == ["a", "b"]


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
        (estate.project.folder / HANGS).touch()
        process.stop()
        eventually(lambda: not process.is_alive())
        assert "not stopped within 1 s" in process.stdout.read()


HANGS = "hangs"
"""The file whose existence means that the disk of the API key answers nothing any more."""


def serve_on_a_disk_that_hangs(folder: Path) -> None:
    """Run `serve` with a limit of one second after a signal, and a key that cannot be read while `HANGS` exists."""
    key = Project.api_key

    def hanging(project: Project) -> str:
        while (folder / HANGS).exists():
            time.sleep(0.1)
        return key(project)

    Project.api_key = hanging  # type: ignore[method-assign] # only in the process of this test
    serve_for_a_second_longer(folder)


def serve_for_a_second_longer(folder: Path) -> None:
    """Run `serve` with a limit of one second after a signal."""
    process_in(folder, sys.stdout).run(lambda: os._exit(0), ends_within=1.0)


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


def test_nothing_of_it_is_left_after_its_end(estate: World) -> None:
    """Neither the limit of its time nor its handlers of signals outlive it."""
    with working(serve_and_look, estate.project.folder) as process:
        eventually(estate.ready)
        process.stop()
        assert "nothing is left" in process.stdout.read()


def serve_and_look(folder: Path) -> None:
    """Run `serve`, and look for what it leaves."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    process_in(folder, sys.stdout).run(lambda: os._exit(0))
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(1.0)
    assert [signal.getsignal(number) for number in numbers] == before
    assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())
    sys.stdout.write("nothing is left\n")


# --- standing by

HERE = Holder.here("serve", {})


async def until(there: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not there():  # noqa: ASYNC110 -- another thread sets the condition
            await asyncio.sleep(0.02)


def test_a_standby_outlives_its_database_being_away_and_can_be_stopped() -> None:
    """It reports each reason to wait once, and gets the lease as soon as the holder has released it."""
    said: list[str] = []
    unheard: list[str] = []

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


def _remove_all(state: Path) -> None:
    shutil.rmtree(state.parent)


def _put_a_copy_in_its_place(state: Path) -> None:
    shutil.copy(state, state.with_name("copy"))
    state.with_name("copy").replace(state)


@pytest.mark.parametrize("strike", [_remove_all, _put_a_copy_in_its_place])
def test_an_inbox_that_is_replaced_ends_the_process(estate: World, strike: Callable[[Path], None]) -> None:
    """The group is neither delivered nor acknowledged, so that the service offers it to the next process."""
    served = estate.serve_ready()
    strike(estate.project.folder / ".syncengine" / "state.db")
    estate.post("g1")
    assert served.ends() == 1
    assert "was removed, replaced or set back" in served.log.read_text(encoding="utf-8")
    assert estate.ledger() == []
    assert estate.states()["g1"] != "SUCCESS"


@pytest.mark.parametrize("strike", [_remove_all, _put_a_copy_in_its_place])
def test_a_state_that_is_replaced_in_a_round_ends_the_process(estate: World, strike: Callable[[Path], None]) -> None:
    """The round does not complete, and no further round starts with the replaced state."""
    estate.project.settings(f"serve: {{every: 1s, listen: '127.0.0.1:{estate.port}'}}")
    estate.project.wants(tags=[tag("A")])
    served = estate.serve()
    served.says("reconciled")
    estate.service.fault("upsertTags", delay=2)
    estate.project.wants(tags=[tag("A"), tag("B")])
    estate.service.wait_for("upsertTags", 2)
    strike(estate.project.folder / ".syncengine" / "state.db")
    assert served.ends() == 1
    assert "was removed, replaced or set back" in served.log.read_text(encoding="utf-8")
    assert estate.told("upsertTags") == 2
