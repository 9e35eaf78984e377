"""A ledger in a real PostgreSQL, also with special time zones, encodings, a pooler, and a standby that takes over."""

import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.database.open import open_engine
from syncengine.errors import TroubleKind
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.durations import suffixes
from syncengine.posted_time.receipts import all_of
from syncengine.project.delivery_schema import LONGEST_OF_TAGS
from syncengine.state.inbox_model import PostedTimeStatus
from tests import postgresql
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, Desk, at_work, outcomes, taking
from tests.posted_time.projects import delivery_to, into, project, run_sql
from tests.posted_time.samples import raw, row, some
from tests.posted_time.worker import delivered, killed
from tests.support.quiet import unused_port
from tests.support.waiting import PATIENCE_SECONDS, eventually

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


@pytest.fixture
def server(server: postgresql.Server) -> Iterator[postgresql.Server]:
    """The server, with an empty ledger that has no unique key."""
    server.sql("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    server.sql("CREATE TABLE time (id TEXT NOT NULL, secs INTEGER NOT NULL CHECK (secs > 0))")
    yield server
    if server.process is None:
        server.start()


def to(server: postgresql.Server, folder: Path, options: str = "", text: str = DELIVER) -> Delivery:
    """A delivery into the ledger, with these options in the URL."""
    return delivery_to(folder, server.url() + options, text)


@pytest.fixture
def desk(server: postgresql.Server, tmp_path: Path) -> Iterator[Desk]:
    with at_work(to(server, tmp_path)) as opened:
        yield opened


def ids(server: postgresql.Server) -> list[str]:
    return server.column("SELECT id FROM time ORDER BY id")


def receipts(server: postgresql.Server) -> list[str]:
    return server.column("SELECT group_id FROM syncengine_receipts ORDER BY group_id")


@contextmanager
def locked(server: postgresql.Server, statement: str) -> Iterator[None]:
    """Another program holds what this statement locks."""
    engine = sa.create_engine(server.url())
    with engine.begin() as other:
        other.exec_driver_sql(statement)
        yield
    engine.dispose()


def statuses(desk: Desk) -> list[str]:
    return [entry.deliveries[0].status for entry in desk.inbox.entries(states=["troubled"])]


def test_a_violated_constraint_is_a_refusal_and_writes_nothing(server: postgresql.Server, desk: Desk) -> None:
    refused = desk.take(raw("g1", totalDurationSecs=0, timeRows=[]))
    assert (refused.outcome, desk.take(raw("g2")).outcome) == (REFUSED, SUCCESS)
    assert refused.message == "ledger rejected the time: something in it does not fit there."
    assert refused.detail == "a constraint is violated (SQLSTATE 23514, constraint time_secs_check, table time)"
    assert ids(server) == receipts(server) == ["g2"]


def test_a_server_that_goes_away_is_trouble_until_it_is_back(server: postgresql.Server, tmp_path: Path) -> None:
    """A server that is down at the start is trouble as well, and no error of the project."""
    with at_work(to(server, tmp_path)) as desk:
        assert desk.take(raw("g1")).outcome is SUCCESS
        server.stop()
        verdict = desk.take(raw("g2"))
        assert (verdict.outcome, verdict.message) == (TROUBLE, "ledger cannot be reached.")
        assert [(t.sink, t.kind) for t in desk.check_sinks()] == [("ledger", TroubleKind.UNREACHABLE)]
    with at_work(to(server, tmp_path)) as desk:
        (trouble,) = desk.troubles
        assert (trouble.sink, trouble.kind) == ("ledger", TroubleKind.UNREACHABLE)
        assert trouble.detail == "nothing is listening at the server's address"
        server.start()
        assert desk.check_sinks() == ()
        assert desk.take(raw("g2")).outcome is SUCCESS
    assert ids(server) == receipts(server) == ["g1", "g2"]


REASONS = [
    (f":{postgresql.PASSWORD}@", ":wrong@", "rejects the user or the password", TroubleKind.AUTHENTICATION),
    ("/postgres", "/postgres?options=-c%20role%3Dreader", "lacks the right", TroubleKind.PERMISSIONS),
]


@pytest.mark.parametrize(("old", "new", "cause", "kind"), REASONS, ids=["password", "rights"])
def test_the_operator_sees_why_a_database_cannot_be_used(
    old: str, new: str, cause: str, kind: TroubleKind, server: postgresql.Server, tmp_path: Path
) -> None:
    """At the start and at a delivery. The cause is in the detail, without a password, and not in users' messages."""
    server.sql("DROP ROLE IF EXISTS reader", "CREATE ROLE reader", "GRANT USAGE ON SCHEMA public TO reader")
    with at_work(delivery_to(tmp_path, server.url().replace(old, new), DELIVER)) as desk:
        assert [(t.sink, t.kind) for t in desk.troubles] == [("ledger", kind)]
        verdict = desk.take(raw("g1"))
        desk.check_sinks()
        (trouble,) = desk.check_sinks()
        assert (verdict.outcome, cause in (trouble.detail or "")) == (TROUBLE, True), trouble
        assert cause not in trouble.message
        assert postgresql.PASSWORD not in repr((verdict, desk.troubles))
    assert ids(server) == []
    server.sql("DROP OWNED BY reader", "DROP ROLE reader")


def test_a_locked_table_is_trouble_until_it_is_unlocked(server: postgresql.Server, tmp_path: Path) -> None:
    """One group waits, and the others get its answer untried. A receipts table that was dropped is created again."""
    with at_work(to(server, tmp_path, "?options=-c%20statement_timeout%3D500")) as desk:
        with locked(server, "LOCK TABLE time IN ACCESS EXCLUSIVE MODE"):
            began = time.monotonic()
            verdicts = desk.together(*some(40))
            assert time.monotonic() - began < 15
            assert {(v.outcome, v.message) for v in verdicts} == {(TROUBLE, "ledger cannot be reached.")}
            assert ([t.kind for t in desk.troubles], desk.reported) == ([TroubleKind.UNREACHABLE], ())
        assert statuses(desk) == ["trouble"] * 40
        assert outcomes(desk.together(*some(40))) == [SUCCESS] * 40
        server.sql("DROP TABLE syncengine_receipts")
        assert outcomes([desk.take(raw("next")), desk.take(raw("next"))]) == [TROUBLE, SUCCESS]
    assert ids(server) == sorted([*(f"g{n}" for n in range(40)), "next"])
    assert receipts(server) == ["next"]


def test_a_statement_timeout_is_set_unless_the_url_sets_one(server: postgresql.Server) -> None:
    """Otherwise a lock held by somebody else would block every group, and a stop."""
    for options, expected in (("", "20s"), ("?options=-c%20statement_timeout%3D500", "500ms")):
        engine = open_engine(server.url() + options, "ledger")
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SHOW statement_timeout").scalar_one() == expected
        engine.dispose()


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
def test_killed_again_and_again_each_group_is_one_row(at_once: bool, server: postgresql.Server, tmp_path: Path) -> None:
    project(tmp_path, DELIVER, "ledger: {sql: {file: url}}")
    (tmp_path / "url").write_text(server.url())
    killed(tmp_path, 20, random.Random(7), at_once=at_once)
    assert delivered(tmp_path, 20, at_once=at_once)[-1] == "done"
    assert ids(server) == receipts(server) == sorted(f"g{number}" for number in range(20))


def test_each_tag_has_a_receipt_of_its_own(server: postgresql.Server, tmp_path: Path) -> None:
    """Its key fits into the table even for the longest sink name, and prevents a second row after the inbox is lost."""
    name = "l" * LONGEST_OF_TAGS
    deliver = DELIVER.replace("name: ledger", f"name: {name}\n    each: tag").replace("group.groupId", "tag.name")
    sent = raw(tags=[{"name": "Ä" * 300}, {"name": "B"}, {"name": "A"}], totalDurationSecs=100)
    for _ in range(2):
        (verdict,) = taking(to(server, tmp_path, text=deliver), sent)
        assert (verdict.outcome, verdict.external_id) == (SUCCESS, "L-A")
        (tmp_path / ".syncengine/state.db").unlink()
    assert sorted(server.column("SELECT id || ' ' || secs FROM time")) == ["A 34", "B 33", "Ä" * 300 + " 33"]
    engine = open_engine(server.url(), name)
    keys = {name + suffix for suffix in suffixes(tag["name"] for tag in sent["tags"]).values()}
    assert ({signed.key for signed in all_of(engine, name)}, all_of(engine, name[:-1])) == (keys, [])
    engine.dispose()


CUTS = {
    "before": "CREATE TRIGGER cut_off BEFORE INSERT ON syncengine_receipts",
    "at": "CREATE CONSTRAINT TRIGGER cut_off AFTER INSERT ON time DEFERRABLE INITIALLY DEFERRED",
}


@pytest.mark.parametrize(("when", "status"), [("before", "trouble"), ("at", "unknown")])
def test_row_and_receipt_are_both_there_or_none(when: str, status: str, server: postgresql.Server, desk: Desk) -> None:
    """None after a cut before the commit; after one at the commit, the next attempt looks for receipts."""
    desk.take(raw("first"))
    server.sql(CUT_OFF, f"{CUTS[when]} FOR EACH ROW EXECUTE FUNCTION cut_off()")
    assert {(v.outcome, v.message) for v in desk.together(*some(5))} == {(TROUBLE, "ledger cannot be reached.")}
    assert statuses(desk) == [status] * 5
    assert ids(server) == receipts(server) == ["first"]
    server.sql("DROP FUNCTION cut_off CASCADE")
    assert outcomes(desk.together(*some(5))) == [SUCCESS] * 5
    assert ids(server) == receipts(server) == ["first", *(f"g{n}" for n in range(5))]


# --- groups side by side

OF_G7 = """
CREATE FUNCTION of_g7() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN IF NEW.id = ''g7'' THEN {} END IF; RETURN NEW; END';
CREATE TRIGGER of_g7 BEFORE INSERT ON time FOR EACH ROW EXECUTE FUNCTION of_g7()
"""


@pytest.mark.parametrize(("happens", "expected"), [("RAISE check_violation;", REFUSED), ("PERFORM no();", TROUBLE)])
def test_trouble_of_one_group_does_not_affect_the_others(
    happens: str, expected: PostedTimeStatus, server: postgresql.Server, desk: Desk
) -> None:
    server.sql(OF_G7.format(happens))
    assert outcomes(desk.together(*some(20))) == [expected if number == 7 else SUCCESS for number in range(20)]
    assert ids(server) == receipts(server) == sorted(f"g{n}" for n in range(20) if n != 7)


def test_a_locked_row_delays_only_its_group(server: postgresql.Server, desk: Desk) -> None:
    server.sql("CREATE TABLE matter (no INTEGER PRIMARY KEY)", "INSERT INTO matter VALUES (7)")
    server.sql(OF_G7.format("PERFORM no FROM matter FOR UPDATE;"))
    with ThreadPoolExecutor() as pool:
        with locked(server, "SELECT no FROM matter FOR UPDATE"):
            verdicts = pool.submit(desk.together, *some(8))
            eventually(lambda: len(ids(server)) >= 7)
        assert outcomes(verdicts.result()) == [SUCCESS] * 8
    assert ids(server) == receipts(server) == sorted(f"g{n}" for n in range(8))


# --- special settings


LATE = row(activityHour=2026112023, firstObservedInHour=30)
"""A row at half past midnight in Vienna, which is the evening before in UTC."""
DATE = {"localDate": "2026-11-21", "tzOffsetMins": 60, "timeRows": []}
AROUND = {"timeRows": [row(activityHour=2026112022, firstObservedInHour=50), LATE]}
NO_MIDNIGHT = {"localDate": "2024-09-08", "tzOffsetMins": -180, "timeRows": []}
STARTS = [
    ("Europe/Vienna", DATE, "2026-11-21 00:00:00"),
    ("Europe/Vienna", {"timeRows": [LATE]}, "2026-11-21 00:30:00"),
    ("Europe/Vienna", AROUND, "2026-11-20 23:50:00"),
    ("America/Santiago", NO_MIDNIGHT, "2024-09-08"),
]


@pytest.mark.parametrize("session", ["America/Los_Angeles", "UTC", "Pacific/Kiritimati"])
def test_the_start_is_local_in_every_column(session: str, server: postgresql.Server, tmp_path: Path) -> None:
    """Whatever the time zone of the session is; a `timestamptz` column holds the instant."""
    server.sql("CREATE TABLE day (id text, a date, b timestamp, c timestamptz, d text)")
    params = ", ".join(f'{name}: "{{{{ start }}}}"' for name in "abcd")
    for number, (zone, group, expected) in enumerate(STARTS):
        statement = f"INSERT INTO day VALUES ('{number}', :a, :b, :c, :d)"
        sql = f'{{source: ledger, statement: "{statement}", params: {{{params}}}}}'
        deliver = into(f"- {{name: ledger, sql: {sql}}}\n", f"timezone: {zone}\n")
        delivery = to(server, tmp_path, f"?options=-c%20timezone%3D{session}", deliver)
        assert outcomes(taking(delivery, raw(f"g{number}", **group))) == [SUCCESS]
        columns = f"concat_ws('|', a, b, c AT TIME ZONE '{zone}', d)"
        (kept,) = server.column(f"SELECT {columns} FROM day WHERE id = '{number}'")
        day, moment, instant, text = kept.split("|")
        assert (day, instant[:10]) == (expected[:10], expected[:10])
        assert moment.startswith(expected)
        assert text.startswith(expected)


LATIN = """\
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


def test_characters_that_the_ledger_cannot_store_are_refused(server: postgresql.Server, tmp_path: Path) -> None:
    """So is what the driver cannot encode. The ellipsis of a shortened narrative is ASCII, so it fits everywhere."""
    server.sql("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    server.sql("CREATE TABLE time (id text, note text)", database="latin")
    groups = [raw("short", timeRows=[], description="Über uns"), raw("long", description="word " * 60)]
    groups += [raw("lodz", timeRows=[], description="Łódź"), raw("sought", timeRows=[], description="Łódź")]
    url = server.url(database="latin")
    verdicts = taking(delivery_to(tmp_path, url, LATIN), *groups)
    assert outcomes(verdicts) == [SUCCESS, SUCCESS, REFUSED, REFUSED]
    assert verdicts[2].message == "ledger rejected the time: something in it does not fit there."
    assert verdicts[2].detail == "a value does not fit its column (SQLSTATE 22P05)"
    assert verdicts[3].message == "note was not found."
    assert [note[-9:] for (note,) in run_sql(url, "SELECT note FROM time ORDER BY id")] == ["ord wo...", "Über uns"]
    verdicts = taking(to(server, tmp_path, "?client_encoding=latin1"), raw("Łódź"), raw("g2"))
    assert outcomes(verdicts) == [REFUSED, SUCCESS]


def test_row_and_receipt_are_on_disk_before_the_answer(server: postgresql.Server, tmp_path: Path) -> None:
    """Even if the database sets `synchronous_commit` to off, for a single group and for a batch."""
    server.sql("ALTER TABLE time ADD durable text DEFAULT current_setting('synchronous_commit')")
    with at_work(to(server, tmp_path, "?options=-c%20synchronous_commit%3Doff")) as desk:
        desk.take(raw("g0"))
        desk.together(*some(9)[1:])
    assert server.column("SELECT durable FROM time") == ["on"] * 9


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
    server.sql("CREATE TABLE matter (no text, secs int)", "INSERT INTO matter VALUES ('M0', 0), ('M2', 0)")
    update = "UPDATE matter SET secs = secs + 1 WHERE matter.no = $1"
    server.sql(f"CREATE PROCEDURE book(text) LANGUAGE sql AS '{update}'")
    server.sql(f"CREATE FUNCTION booked(text) RETURNS SETOF text LANGUAGE sql AS '{update} RETURNING matter.no'")
    params = '{no: "{{ tag.name }}"}'
    deliver = f'deliver:\n  - {{name: ledger, sql: {{source: ledger, statement: "{statement}", params: {params}}}}}\n'
    with at_work(to(server, tmp_path, text=deliver)) as desk:
        verdicts = desk.together(*(raw(f"g{number}", tags=[{"name": f"M{number}"}]) for number in range(3)))
        assert outcomes(verdicts) == [SUCCESS, expected, SUCCESS]
    assert receipts(server) == [f"g{n}" for n in range(3) if n != 1 or expected is SUCCESS]


CODES = ["P0001", "P0002", "45000", "U0001", "22023", "23514", "44000", "0A000", "42501", "55000"]


def test_an_exception_of_a_trigger_is_a_refusal_with_any_code(server: postgresql.Server, tmp_path: Path) -> None:
    """The message is the project's, without the trigger's text, and the sink is not in trouble."""
    raised = "RAISE EXCEPTION ''closed since 1815'' USING ERRCODE = NEW.id"
    body = f"BEGIN IF NEW.id <> ''g2'' THEN {raised}; END IF; RETURN NEW; END"
    server.sql(f"CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS '{body}'")
    server.sql("CREATE TRIGGER closed BEFORE INSERT ON time FOR EACH ROW EXECUTE FUNCTION closed()")
    with at_work(to(server, tmp_path, text=DELIVER + "    refused: The period is closed.\n")) as desk:
        for code in CODES:
            verdict = desk.take(raw(code))
            assert (code, verdict.outcome, verdict.message) == (code, REFUSED, "The period is closed.")
            assert ("1815" in (verdict.detail or ""), desk.troubles) == (False, ())
        assert desk.take(raw("g2")).outcome is SUCCESS
    assert ids(server) == ["g2"]


READ_ONLY = "default_transaction_read_only"


def test_after_a_failover_groups_go_to_the_new_server(server: postgresql.Server, tmp_path: Path) -> None:
    """The old server is read-only, connections still lead to it, and the new one has no receipts table."""
    with postgresql.running() as other:
        other.sql("CREATE TABLE time (id TEXT NOT NULL, secs INTEGER)")
        hosts = "&".join(f"host=127.0.0.1:{each.port}" for each in (server, other))
        url = server.url().replace(f"127.0.0.1:{server.port}", "") + f"?{hosts}&target_session_attrs=read-write"
        try:
            with at_work(delivery_to(tmp_path, url, DELIVER)) as desk:
                assert desk.take(raw("g1")).outcome is SUCCESS
                server.sql(f"ALTER SYSTEM SET {READ_ONLY} = on", "SELECT pg_reload_conf()")
                eventually(lambda: server.column(f"SHOW {READ_ONLY}") == ["on"])
                first = desk.take(raw("g2"))
                assert (first.outcome, first.detail) == (TROUBLE, "the database is read-only (SQLSTATE 25006)")
                assert desk.take(raw("g2")).outcome is SUCCESS
                assert outcomes(desk.together(raw("g3"), raw("g4"))) == [SUCCESS] * 2
            assert (ids(server), ids(other), receipts(other)) == (["g1"], *[["g2", "g3", "g4"]] * 2)
        finally:
            server.sql(f"SET {READ_ONLY} = off", f"ALTER SYSTEM RESET {READ_ONLY}", "SELECT pg_reload_conf()")


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
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([program, folder / "ini"], stdout=log, stderr=log, cwd="/", **server.user)
    try:
        through = postgresql.Server(folder, port)
        eventually(through.answers, (folder / "log").read_text)
        yield through.url()
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        shutil.rmtree(folder)


POOLED = """\
lookups:
  - name: tag
    sql: {source: ledger, query: "SELECT secs FROM time WHERE id = :id", params: {id: "{{ tag.name }}"}}
""" + DELIVER.replace("duration.seconds", "lookup.tag.secs")


def test_a_transaction_pooler_is_no_trouble(server: postgresql.Server, tmp_path: Path) -> None:
    """Two processes share its connections, and use each statement often enough for a driver to prepare it."""
    server.sql("INSERT INTO time VALUES ('ACME-0042', 7)")
    for name in "ab":
        (tmp_path / name).mkdir()
    with pooled(server) as url:
        first, second = (delivery_to(tmp_path / name, url, POOLED) for name in "ab")
        with at_work(first) as one, at_work(second) as other:
            for number in range(15):
                for name, desk in (("a", one), ("b", other)):
                    assert desk.take(raw(f"{name}{number}")).outcome is SUCCESS
            assert outcomes(other.together(*some(60))) == [SUCCESS] * 60
    expected = [f"{letter}{number}" for letter, most in (("a", 15), ("b", 15), ("g", 60)) for number in range(most)]
    assert receipts(server) == sorted(expected)
    assert ids(server) == ["ACME-0042", *sorted(expected)]
