"""`serve` while its database stops, hangs or is replaced: it ends when asked to, and loses nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.errors import ExitCode
from syncengine.project.load import load_project
from syncengine.serve.log import Log
from syncengine.serve.process import Process
from syncengine.service.operations import OPERATIONS
from tests import postgresql
from tests.cli.service import KEY
from tests.support.warm import working

from .world import CALLER_KEY, World, eventually

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
    estate.settings(sinks=SINK, more="state: {file: db.url}", every="1h")
    text = estate.project.folder / "syncengine.yaml"
    text.write_text(text.read_text().replace("{ledger: {sql: ledger.db}}", "{ledger: {sql: {file: db.url}}}"))
    engine = sa.create_engine(server.url())
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS time (id text)")
    engine.dispose()


def delivered(server: postgresql.Server) -> list[str]:
    engine = sa.create_engine(server.url())
    try:
        with engine.connect() as connection:
            return [id for (id,) in connection.exec_driver_sql("SELECT id FROM time ORDER BY id")]
    finally:
        engine.dispose()


def test_it_ends_while_its_database_is_away(estate: World) -> None:
    """SIGTERM ends `serve` although a group is in hand; the next start delivers that group once."""
    with postgresql.running() as server:
        in_postgresql(estate, server)
        served = estate.serve()
        eventually(estate.ready)
        estate.post("a")
        eventually(lambda: delivered(server) == ["a"])
        server.stop()
        estate.post("b")
        served.says("waiting")
        began = time.monotonic()
        assert served.stop() == 0
        assert time.monotonic() - began < STOPS_WITHIN
        server.start()
        estate.serve()
        eventually(lambda: set(estate.states().values()) == {"success"})
        assert delivered(server) == ["a", "b"]


def test_a_second_signal_ends_it_at_once_while_its_database_hangs(estate: World) -> None:
    """With a hanging database, the first signal waits for what is under way, and the second ends `serve`."""
    with postgresql.running() as server:
        in_postgresql(estate, server)
        served = estate.serve()
        eventually(estate.ready)
        estate.post("a")  # once it is acknowledged, the next fetch is on its way
        eventually(lambda: estate.states() == {"a": "success"})
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
        eventually(lambda: set(estate.states().values()) == {"success"})
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


def serve_for_a_second_longer(folder: Path) -> None:
    """Run `serve` in `folder` with a limit of one second after a signal, and its log on standard output."""
    environ = {"SYNCENGINE_API_KEY": KEY, "CALLER_KEY": CALLER_KEY}
    process = Process(
        lambda: load_project(folder=folder, environ=environ, operations=OPERATIONS),
        lambda project: nullcontext(project.base_url()),
        environ,
        Log(sys.stdout, time.time),
    )
    asyncio.run(process.run(lambda: os._exit(0), ends_within=1.0))


def test_a_server_that_comes_back_is_used_again(estate: World) -> None:
    """After each restart of the database, `serve` reconnects, and every group is delivered once."""
    with postgresql.running() as server:
        in_postgresql(estate, server)
        estate.serve()
        eventually(estate.ready)
        posted: set[str] = set()
        for turn in range(3):
            posted.update(ids := [f"{turn}{n}" for n in range(5)])
            estate.post(*ids)
            server.stop()
            time.sleep(0.5)
            server.start()
            eventually(lambda: len(delivered(server)) >= len(posted))
        assert delivered(server) == sorted(posted)
