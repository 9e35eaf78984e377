"""`serve` is asked to end while its apply, or a delivery, waits for something that may take minutes."""

from __future__ import annotations

import sqlite3
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext

import pytest
import sqlalchemy as sa

from syncengine.errors import ExitCode
from syncengine.project.runner import Holder
from syncengine.state.store import open_state
from tests import mariadb, postgresql
from tests.cli.program import tag
from tests.dripping import BODY, dripping
from tests.posted_time.receiver import Got, receiving
from tests.support.waiting import eventually

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
def no_answer(estate: World) -> Iterator[Begun]:
    """The source's HTTP server reads a request and does not answer."""
    over = threading.Event()

    def silent(got: Got) -> tuple[int, object]:
        over.wait(60)
        return 200, []

    with receiving() as service:
        service.answer = silent
        sourced(estate, f"{{http: {{url: '{service.url}'}}}}", "{http: {source: far}}")
        yield lambda: bool(service.got)
        over.set()


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


WAITS = (asked_to_wait, no_answer, endless_sqlite, slow_postgresql, slow_mariadb, locked_state)


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

DRIP = "http: {url: '%s', timeout: 1h, json: {id: '{{ group.groupId }}'}}"
LONG_STATEMENT = f"""\
sql: {{source: ledger, params: {{id: '{{{{ group.groupId }}}}'}},
  statement: "INSERT INTO time (id, matter) SELECT :id, name FROM ({ENDLESS})"}}
"""
SLOW_TEMPLATE = """\
jsonl: {path: out.jsonl, json: ["{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"]}
"""


@contextmanager
def drip() -> Iterator[str]:
    """A receiver whose answer never ends."""
    with dripping(BODY) as receiver:
        yield DRIP % receiver.url


@pytest.mark.parametrize(
    "sink", [drip(), nullcontext(LONG_STATEMENT), nullcontext(SLOW_TEMPLATE)], ids=["drip", "statement", "template"]
)
def test_no_sink_keeps_it_from_ending(estate: World, sink: AbstractContextManager[str]) -> None:
    """SIGTERM ends `serve` within ten seconds, and the group is in the ledger once after the next start."""
    with sink as way:
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
