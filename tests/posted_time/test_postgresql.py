"""A ledger in a real PostgreSQL, also with special time zones, encodings, a pooler, and a standby that takes over."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from syncengine.database.open import open_engine
from syncengine.errors import TroubleKind
from syncengine.posted_time.durations import suffixes
from syncengine.posted_time.receipts import all_of
from syncengine.project.delivery_schema import LONGEST_OF_TAGS
from syncengine.state.inbox_model import PostedTimeStatus
from tests import postgresql
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, Desk, at_work, outcomes, taking
from tests.posted_time.projects import delivery_to, project, run_sql
from tests.posted_time.samples import raw, row, some
from tests.posted_time.worker import work
from tests.support.ports import unused_port
from tests.support.waiting import PATIENCE_SECONDS, eventually
from tests.support.warm import working

pytestmark = pytest.mark.slow

DELIVER = """\
deliver:
  - name: ledger
    sql: {source: ledger, statement: "INSERT INTO time (id, secs) VALUES (:id, :secs)",
          params: {id: "{{ group.groupId }}", secs: "{{ duration.seconds }}"}}
    externalId: "L-{{ group.groupId }}"
"""
CUT_OFF = """
CREATE FUNCTION cut_off() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); RETURN NEW; END'
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[postgresql.Server]:
    with postgresql.running() as server:
        yield server


@pytest.fixture
def server(cluster: postgresql.Server) -> Iterator[postgresql.Server]:
    """The server, with an empty ledger that has no unique key."""
    do(cluster, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    do(cluster, "CREATE TABLE time (id TEXT NOT NULL, secs INTEGER NOT NULL CHECK (secs > 0))")
    yield cluster
    if cluster.process is None:
        cluster.start()


def do(server: postgresql.Server, *statements: str) -> list[tuple[Any, ...]]:
    return run_sql(server.url(), *statements)


def ids(server: postgresql.Server, table: str = "time", column: str = "id") -> list[str]:
    return [id for (id,) in do(server, f"SELECT {column} FROM {table} ORDER BY {column}")]


@contextmanager
def locked(server: postgresql.Server, statement: str) -> Iterator[None]:
    """Another program holds what this statement locks."""
    engine = sa.create_engine(server.url())
    with engine.begin() as other:
        other.exec_driver_sql(statement)
        yield
    engine.dispose()


def wait_for_rows(server: postgresql.Server, count: int) -> None:
    eventually(lambda: len(ids(server)) >= count)


def receipts(server: postgresql.Server) -> list[str]:
    return ids(server, "syncengine_receipts", "group_id")


def test_a_violated_constraint_is_a_refusal_and_writes_nothing(server: postgresql.Server, tmp_path: Path) -> None:
    """The next group is delivered."""
    verdicts = taking(
        delivery_to(tmp_path, server.url(), DELIVER), raw("g1", totalDurationSecs=0, timeRows=[]), raw("g2")
    )
    assert outcomes(verdicts) == [REFUSED, SUCCESS]
    assert verdicts[0].message == "ledger rejected the time: something in it does not fit there."
    assert verdicts[0].detail == "a constraint is violated (SQLSTATE 23514, constraint time_secs_check, table time)"
    assert ids(server) == receipts(server) == ["g2"]


def test_a_server_that_goes_away_is_trouble_until_it_is_back(server: postgresql.Server, tmp_path: Path) -> None:
    """A server that is down at the start is trouble as well, and no error of the project."""
    with at_work(delivery_to(tmp_path, server.url(), DELIVER)) as desk:
        assert desk.take(raw("g1")).outcome is SUCCESS
        server.stop()
        verdict = desk.take(raw("g2"))
        assert (verdict.outcome, verdict.message) == (TROUBLE, "ledger cannot be reached.")
        assert [(t.sink, t.kind) for t in desk.check_sinks()] == [("ledger", TroubleKind.UNREACHABLE)]
    with at_work(delivery_to(tmp_path, server.url(), DELIVER)) as desk:
        assert [(t.sink, t.kind, t.detail) for t in desk.troubles] == [
            ("ledger", TroubleKind.UNREACHABLE, "nothing is listening at the server's address")
        ]
        server.start()
        assert desk.check_sinks() == ()
        assert desk.take(raw("g2")).outcome is SUCCESS
    assert ids(server) == receipts(server) == ["g1", "g2"]


REASONS: dict[str, tuple[Callable[[str], str], str, TroubleKind]] = {
    "password": (
        lambda url: url.replace(postgresql.PASSWORD, "wrong"),
        "rejects the user or the password",
        TroubleKind.AUTHENTICATION,
    ),
    "rights": (lambda url: url + "?options=-c%20role%3Dreader", "lacks the right", TroubleKind.PERMISSIONS),
}


@pytest.mark.parametrize(("change", "cause", "kind"), REASONS.values(), ids=REASONS)
def test_the_operator_sees_why_a_database_cannot_be_used(
    server: postgresql.Server, change: Callable[[str], str], cause: str, kind: TroubleKind, tmp_path: Path
) -> None:
    """At the start and at a delivery. The cause is in the detail, without a password, and not in users' messages."""
    do(server, "DROP ROLE IF EXISTS reader", "CREATE ROLE reader", "GRANT USAGE ON SCHEMA public TO reader")
    with at_work(delivery_to(tmp_path, change(server.url()), DELIVER)) as desk:
        assert [(t.sink, t.kind) for t in desk.troubles] == [("ledger", kind)]
        verdict = desk.take(raw("g1"))
        desk.check_sinks()
        (trouble,) = desk.check_sinks()
        assert (verdict.outcome, cause in (trouble.detail or "")) == (TROUBLE, True), trouble
        assert cause not in trouble.message
        assert postgresql.PASSWORD not in repr((verdict, desk.troubles))
    assert ids(server) == []
    do(server, "DROP OWNED BY reader", "DROP ROLE reader")


def test_a_locked_table_is_trouble_until_it_is_unlocked(server: postgresql.Server, tmp_path: Path) -> None:
    """One group waits; the others get its answer without being tried, and one failure is not reported.

    A receipts table that somebody dropped is created again.
    """
    with at_work(delivery_to(tmp_path, server.url() + "?options=-c%20statement_timeout%3D500", DELIVER)) as desk:
        with locked(server, "LOCK TABLE time IN ACCESS EXCLUSIVE MODE"):
            began = time.monotonic()
            verdicts = desk.together(*some(40))
            assert time.monotonic() - began < 15
            assert {(v.outcome, v.message) for v in verdicts} == {(TROUBLE, "ledger cannot be reached.")}
            assert ([t.kind for t in desk.troubles], desk.reported) == ([TroubleKind.UNREACHABLE], ())
        assert statuses(desk) == ["trouble"] * 40
        assert outcomes(desk.together(*some(40))) == [SUCCESS] * 40
        do(server, "DROP TABLE syncengine_receipts")
        assert outcomes([desk.take(raw("next")), desk.take(raw("next"))]) == [TROUBLE, SUCCESS]
    assert ids(server) == sorted([*(f"g{n}" for n in range(40)), "next"])
    assert receipts(server) == ["next"]


def statuses(desk: Desk) -> list[str]:
    """The statuses of deliveries of the groups in trouble."""
    return [entry.deliveries[0].status for entry in desk.inbox.entries(states=["troubled"])]


def test_a_statement_timeout_is_set_unless_the_url_sets_one(server: postgresql.Server) -> None:
    """Otherwise a lock held by somebody else would block every group, and a stop."""
    found = []
    for url in (server.url(), server.url() + "?options=-c%20statement_timeout%3D500"):
        engine = open_engine(url, "ledger")
        with engine.connect() as connection:
            found.append(connection.exec_driver_sql("SHOW statement_timeout").scalar_one())
        engine.dispose()
    assert found == ["20s", "500ms"]


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
def test_killed_again_and_again_each_group_is_one_row(at_once: bool, server: postgresql.Server, tmp_path: Path) -> None:
    """After SIGKILL at any instant each group has one row and one receipt."""
    chance = random.Random(7)
    project(tmp_path, DELIVER, "ledger: {sql: {file: url}}")
    (tmp_path / "url").write_text(server.url())
    deliver = partial(work, at_once=at_once)
    for heard in (1, 5, 9, 14, 18, 20):
        with working(deliver, tmp_path, 20) as worker:
            for _ in range(heard):
                worker.stdout.readline()
            time.sleep(chance.random() * 0.02)
            worker.kill()
    with working(deliver, tmp_path, 20) as last:
        assert last.stdout.read().splitlines()[-1] == "done"
    assert ids(server) == receipts(server) == sorted(f"g{number}" for number in range(20))


def test_each_tag_has_a_receipt_of_its_own(server: postgresql.Server, tmp_path: Path) -> None:
    """Its key fits into the table even for the longest sink name, and prevents a second row after the inbox is lost."""
    name = "l" * LONGEST_OF_TAGS
    deliver = DELIVER.replace("name: ledger", f"name: {name}\n    each: tag").replace("group.groupId", "tag.name")
    sent = raw(tags=[{"name": "Ä" * 300}, {"name": "B"}, {"name": "A"}], totalDurationSecs=100)
    for _ in range(2):
        (verdict,) = taking(delivery_to(tmp_path, server.url(), deliver), sent)
        assert (verdict.outcome, verdict.external_id) == (SUCCESS, "L-A")
        (tmp_path / ".syncengine/state.db").unlink()
    assert sorted(ids(server, column="id || ' ' || secs")) == ["A 34", "B 33", "Ä" * 300 + " 33"]
    engine = open_engine(server.url(), name)
    assert {signed.key for signed in all_of(engine, name)} == {
        name + suffix for suffix in suffixes(tag["name"] for tag in sent["tags"]).values()
    }
    assert all_of(engine, name[:-1]) == []
    engine.dispose()


CUTS = {
    "before": "CREATE TRIGGER cut_off BEFORE INSERT ON syncengine_receipts",
    "at": "CREATE CONSTRAINT TRIGGER cut_off AFTER INSERT ON time DEFERRABLE INITIALLY DEFERRED",
}


@pytest.mark.parametrize(("when", "status"), [("before", "trouble"), ("at", "unknown")])
def test_row_and_receipt_are_written_together_or_not_at_all(
    when: str, status: str, server: postgresql.Server, tmp_path: Path
) -> None:
    """A connection that is cut before the commit has written nothing for sure.

    If it is cut at the commit, that is unknown: the next attempt looks for receipts.
    """
    with at_work(delivery_to(tmp_path, server.url(), DELIVER)) as desk:
        desk.take(raw("first"))
        do(server, CUT_OFF, f"{CUTS[when]} FOR EACH ROW EXECUTE FUNCTION cut_off()")
        assert {(v.outcome, v.message) for v in desk.together(*some(5))} == {(TROUBLE, "ledger cannot be reached.")}
        assert statuses(desk) == [status] * 5
        assert ids(server) == receipts(server) == ["first"]
        do(server, "DROP FUNCTION cut_off CASCADE")
        assert outcomes(desk.together(*some(5))) == [SUCCESS] * 5
    assert ids(server) == receipts(server) == ["first", *(f"g{n}" for n in range(5))]


# --- groups side by side

ROW_OF_G7 = """
CREATE FUNCTION of_g7() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN IF NEW.id = ''g7'' THEN {} END IF; RETURN NEW; END'
"""
ON_TIME = "CREATE TRIGGER of_g7 BEFORE INSERT ON time FOR EACH ROW EXECUTE FUNCTION of_g7()"


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        ("RAISE check_violation;", REFUSED),
        ("PERFORM nothing();", TROUBLE),
    ],
    ids=["refused", "troubled"],
)
def test_trouble_of_one_group_does_not_affect_the_others(
    happens: str, expected: PostedTimeStatus, server: postgresql.Server, tmp_path: Path
) -> None:
    do(server, ROW_OF_G7.format(happens), ON_TIME)
    with at_work(delivery_to(tmp_path, server.url(), DELIVER)) as desk:
        found = outcomes(desk.together(*some(20)))
        assert found == [expected if number == 7 else SUCCESS for number in range(20)]
    assert ids(server) == receipts(server) == sorted(f"g{n}" for n in range(20) if n != 7 or expected is SUCCESS)


def test_a_locked_row_delays_only_its_group(server: postgresql.Server, tmp_path: Path) -> None:
    """The other groups are delivered while it waits."""
    do(server, "CREATE TABLE matter (no INTEGER PRIMARY KEY)", "INSERT INTO matter VALUES (7)")
    do(server, ROW_OF_G7.format("PERFORM no FROM matter FOR UPDATE;"), ON_TIME)
    with at_work(delivery_to(tmp_path, server.url(), DELIVER)) as desk, ThreadPoolExecutor() as pool:
        with locked(server, "SELECT no FROM matter FOR UPDATE"):
            verdicts = pool.submit(desk.together, *some(8))
            wait_for_rows(server, 7)
        assert outcomes(verdicts.result()) == [SUCCESS] * 8
    assert ids(server) == receipts(server) == sorted(f"g{n}" for n in range(8))


# --- special settings


LATE = row(activityHour=2026112023, firstObservedInHour=30)
"""A row at half past midnight in Vienna, which is the evening before in UTC."""
STARTS = {
    "a day without rows": ({"localDate": "2026-11-21", "tzOffsetMins": 60, "timeRows": []}, "2026-11-21 00:00:00"),
    "rows after midnight": ({"localDate": "2026-11-20", "timeRows": [LATE]}, "2026-11-21 00:30:00"),
    "rows around midnight": (
        {"timeRows": [row(activityHour=2026112022, firstObservedInHour=50), LATE]},
        "2026-11-20 23:50:00",
    ),
    "a day that has no midnight": ({"localDate": "2024-09-08", "tzOffsetMins": -180, "timeRows": []}, "2024-09-08"),
}


@pytest.mark.parametrize(
    ("group", "expected", "session"),
    [
        *(pytest.param(*start, "America/Los_Angeles", id=name) for name, start in STARTS.items()),
        *(pytest.param(*STARTS["rows after midnight"], zone, id=zone) for zone in ("UTC", "Pacific/Kiritimati")),
    ],
)
def test_the_start_is_local_in_every_column(
    group: dict[str, object], expected: str, session: str, server: postgresql.Server, tmp_path: Path
) -> None:
    """Whatever the time zone of the session is; a `timestamptz` column holds the instant."""
    do(server, "CREATE TABLE day (a date, b timestamp, c timestamptz, d text)")
    zone = "America/Santiago" if expected.startswith("2024") else "Europe/Vienna"
    deliver = (
        f"timezone: {zone}\ndeliver:\n  - name: ledger\n"
        '    sql: {source: ledger, statement: "INSERT INTO day VALUES (:a, :b, :c, :d)",\n'
        '          params: {a: "{{ start }}", b: "{{ start }}", c: "{{ start }}", d: "{{ start }}"}}\n'
    )
    url = f"{server.url()}?options=-c%20timezone%3D{session}"
    (verdict,) = taking(delivery_to(tmp_path, url, deliver), raw(**group))
    assert verdict.outcome is SUCCESS
    do(server, f"CREATE VIEW kept AS SELECT concat_ws('|', a, b, c AT TIME ZONE '{zone}', d) AS id FROM day")
    ((day, moment, instant, text),) = [id.split("|") for id in ids(server, "kept")]
    assert day == expected[:10]
    assert moment.startswith(expected)
    assert instant.startswith(expected[:10])
    assert text.startswith(expected)


def test_characters_that_the_ledger_cannot_store_are_refused(server: postgresql.Server, tmp_path: Path) -> None:
    """The ellipsis of a shortened narrative is plain ASCII, so it fits everywhere."""
    url = server.url().replace("/postgres", "/latin")
    engine = sa.create_engine(server.url(), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
    engine.dispose()
    latin = sa.create_engine(url)
    with latin.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE time (id text, note text)")
    deliver = """\
lookups:
  - name: note
    when: group.groupId == 'sought'
    sql: {source: ledger, query: "SELECT id FROM time WHERE note = :note", params: {note: "{{ group.description }}"}}
narrative: {maxLength: 200}
deliver:
  - name: ledger
    sql: {source: ledger, statement: "INSERT INTO time VALUES (:id, :note)",
          params: {id: "{{ group.groupId }}", note: "{{ narrative }}"}}
"""
    groups = [raw("short", timeRows=[], description="Über uns"), raw("long", description="word " * 60)]
    groups += [raw("lodz", timeRows=[], description="Łódź"), raw("sought", timeRows=[], description="Łódź")]
    verdicts = taking(delivery_to(tmp_path, url, deliver), *groups)
    assert outcomes(verdicts) == [SUCCESS, SUCCESS, REFUSED, REFUSED]
    assert verdicts[2].message == "ledger rejected the time: something in it does not fit there."
    assert verdicts[2].detail == "a value does not fit its column (SQLSTATE 22P05)"
    assert verdicts[3].message == "note was not found."
    with latin.connect() as connection:
        notes = connection.exec_driver_sql("SELECT note FROM time ORDER BY id").scalars().all()
    assert [note[-9:] for note in notes] == ["ord wo...", "Über uns"]
    latin.dispose()


def test_characters_outside_the_client_encoding_are_refused(server: postgresql.Server, tmp_path: Path) -> None:
    """The driver cannot encode them; that is no error of the program."""
    url = f"{server.url()}?client_encoding=latin1"
    verdicts = taking(delivery_to(tmp_path, url, DELIVER), raw("Łódź"), raw("g2"))
    assert outcomes(verdicts) == [REFUSED, SUCCESS]


def test_row_and_receipt_are_on_disk_before_the_answer(server: postgresql.Server, tmp_path: Path) -> None:
    """Even if the database sets `synchronous_commit` to off, for a single group and for a batch."""
    do(server, "ALTER TABLE time ADD durable text DEFAULT current_setting('synchronous_commit')")
    url = f"{server.url()}?options=-c%20synchronous_commit%3Doff"
    with at_work(delivery_to(tmp_path, url, DELIVER)) as desk:
        desk.take(raw("g0"))
        desk.together(*(raw(f"g{number}") for number in range(1, 9)))
    assert ids(server, column="durable") == ["on"] * 9


UPDATES = {
    "insert from a select": ("INSERT INTO time SELECT no, 1 FROM matter WHERE no = :no", REFUSED),
    "a procedure, which reports no row count": ("CALL book(:no)", SUCCESS),
    "a function, which reports no row count": ("SELECT FROM booked(:no)", SUCCESS),
}


@pytest.mark.parametrize(("statement", "expected"), UPDATES.values(), ids=UPDATES.keys())
def test_only_the_group_without_a_row_is_refused(
    statement: str, expected: PostedTimeStatus, server: postgresql.Server, tmp_path: Path
) -> None:
    """Side by side with others; a procedure and a function report no count, so they count as having changed some."""
    do(
        server,
        "CREATE TABLE matter (no text, secs int)",
        "INSERT INTO matter SELECT 'M' || n, 0 FROM generate_series(0, 4) n",
    )
    update = "UPDATE matter SET secs = secs + 1 WHERE matter.no = $1"
    do(server, f"CREATE PROCEDURE book(text) LANGUAGE sql AS '{update}'")
    do(server, f"CREATE FUNCTION booked(text) RETURNS SETOF text LANGUAGE sql AS '{update} RETURNING matter.no'")
    params = '{no: "{{ tag.name }}"}'
    deliver = f'deliver:\n  - {{name: ledger, sql: {{source: ledger, statement: "{statement}", params: {params}}}}}\n'
    with at_work(delivery_to(tmp_path, server.url(), deliver)) as desk:
        tags = ["NO" if number == 2 else f"M{number}" for number in range(5)]
        groups = (raw(f"g{number:02}", tags=[{"name": name}]) for number, name in enumerate(tags))
        verdicts = desk.together(*groups)
        assert outcomes(verdicts) == [expected if n == 2 else SUCCESS for n in range(5)]
    assert receipts(server) == [f"g{n:02}" for n in range(5) if n != 2 or expected is SUCCESS]


CODES = ["P0001", "P0002", "45000", "U0001", "22023", "23514", "44000", "0A000", "42501", "55000"]


def test_an_exception_of_a_trigger_is_a_refusal_with_any_code(server: postgresql.Server, tmp_path: Path) -> None:
    """The message is the project's, without the trigger's text, and the sink is not in trouble."""
    raised = "RAISE EXCEPTION ''closed since 1815'' USING ERRCODE = NEW.id"
    body = f"BEGIN IF NEW.id <> ''g2'' THEN {raised}; END IF; RETURN NEW; END"
    do(server, f"CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS '{body}'")
    do(server, "CREATE TRIGGER closed BEFORE INSERT ON time FOR EACH ROW EXECUTE FUNCTION closed()")
    with at_work(delivery_to(tmp_path, server.url(), DELIVER + "    refused: The period is closed.\n")) as desk:
        for code in CODES:
            verdict = desk.take(raw(code))
            assert (code, verdict.outcome, verdict.message) == (code, REFUSED, "The period is closed.")
            assert ("1815" in (verdict.detail or ""), desk.troubles) == (False, ())
        assert desk.take(raw("g2")).outcome is SUCCESS
    assert ids(server) == ["g2"]


def settle(server: postgresql.Server, change: str) -> None:
    """Change a setting of the whole server, also for open connections."""
    url = f"{server.url()}?options=-c%20default_transaction_read_only%3Doff"
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"ALTER SYSTEM {change}")
        connection.exec_driver_sql("SELECT pg_reload_conf()")
    engine.dispose()


@contextmanager
def leading(target: list[int]) -> Iterator[int]:
    """A port that forwards each new connection to the last of `target`, like an address that moves at a failover."""
    listening = socket.create_server(("127.0.0.1", 0))

    def pass_on(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        finally:
            sink.close()

    def accept() -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", target[-1]))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=pass_on, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def test_after_a_failover_groups_go_to_the_new_server(server: postgresql.Server, tmp_path: Path) -> None:
    """The old server is read-only, connections still lead to it, and the new one has no receipts table."""
    with postgresql.running() as other, leading(ports := [server.port]) as port:
        do(other, "CREATE TABLE time (id TEXT NOT NULL, secs INTEGER)")
        try:
            with at_work(delivery_to(tmp_path, server.url().replace(f":{server.port}/", f":{port}/"), DELIVER)) as desk:
                assert desk.take(raw("g1")).outcome is SUCCESS
                settle(server, "SET default_transaction_read_only = on")
                ports.append(other.port)
                first = desk.take(raw("g2"))
                assert (first.outcome, first.detail) == (TROUBLE, "the database is read-only (SQLSTATE 25006)")
                assert desk.take(raw("g2")).outcome is SUCCESS
                assert outcomes(desk.together(raw("g3"), raw("g4"))) == [SUCCESS] * 2
            assert ids(other) == receipts(other) == ["g2", "g3", "g4"]
        finally:
            settle(server, "RESET default_transaction_read_only")


@contextmanager
def pooled(server: postgresql.Server) -> Iterator[str]:
    """The URL of a PgBouncer that gives each transaction any of three connections to this server."""
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("PgBouncer is not installed")
    folder, port = Path(tempfile.mkdtemp(prefix="pgbouncer-")), unused_port()
    login = f"host=127.0.0.1 port={server.port} dbname=postgres user=tester password={postgresql.PASSWORD}"
    (folder / "ini").write_text(
        f"[databases]\npostgres = {login}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        "unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 3\n"
        "server_round_robin = 1\nignore_startup_parameters = extra_float_digits\n"
    )
    for path in (folder, folder / "ini"):
        path.chmod(0o755)
    user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([program, folder / "ini"], stdout=log, stderr=log, cwd="/", **user)  # type: ignore[call-overload] # the user, as root
    url = f"postgresql+psycopg://tester:{postgresql.PASSWORD}@127.0.0.1:{port}/postgres"
    try:
        eventually(postgresql.Server(folder, port).answers, (folder / "log").read_text)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        shutil.rmtree(folder)


POOLED = """\
lookups:
  - name: tag
    sql: {source: ledger, query: "SELECT secs FROM time WHERE id = :id", params: {id: "{{ tag.name }}"}}
deliver:
  - name: ledger
    sql: {source: ledger, statement: "INSERT INTO time (id, secs) VALUES (:id, :secs)",
          params: {id: "{{ group.groupId }}", secs: "{{ lookup.tag.secs }}"}}
"""


def test_a_transaction_pooler_is_no_trouble(server: postgresql.Server, tmp_path: Path) -> None:
    """Two processes share its connections, and use each statement often enough for a driver to prepare it."""
    do(server, "INSERT INTO time VALUES ('ACME-0042', 7)")
    for name in "ab":
        (tmp_path / name).mkdir()
    with pooled(server) as url:
        first, second = (delivery_to(tmp_path / name, url, POOLED) for name in "ab")
        with at_work(first) as one, at_work(second) as other:
            for number in range(15):
                for name, desk in (("a", one), ("b", other)):
                    assert desk.take(raw(f"{name}{number:02}")).outcome is SUCCESS
            assert outcomes(other.together(*(raw(f"c{number:02}") for number in range(60)))) == [SUCCESS] * 60
    expected = [f"{letter}{number:02}" for letter, most in (("a", 15), ("b", 15), ("c", 60)) for number in range(most)]
    assert receipts(server) == expected
    assert ids(server) == ["ACME-0042", *expected]
