"""A ledger in a real PostgreSQL: row and receipt are one transaction, and errors have messages of our own."""

from __future__ import annotations

import random
import re
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
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.durations import suffixes
from syncengine.posted_time.receipts import all_of
from syncengine.project.delivery_schema import LONGEST_OF_TAGS
from syncengine.state.inbox_model import PostedTimeStatus
from tests import postgresql
from tests.posted_time.desk import REFUSED, SUCCESS, TROUBLE, at_work, outcomes, taking
from tests.posted_time.projects import project
from tests.posted_time.samples import raw, some
from tests.posted_time.worker import work
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


def do(server: postgresql.Server, *statements: str) -> None:
    engine = sa.create_engine(server.url())
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def ids(server: postgresql.Server, table: str = "time", column: str = "id") -> list[str]:
    engine = sa.create_engine(server.url())
    with engine.connect() as connection:
        found = list(connection.exec_driver_sql(f"SELECT {column} FROM {table} ORDER BY {column}").scalars())
    engine.dispose()
    return found


@contextmanager
def locked(server: postgresql.Server, statement: str) -> Iterator[None]:
    """Another program holds what this statement locks."""
    engine = sa.create_engine(server.url())
    with engine.begin() as other:
        other.exec_driver_sql(statement)
        yield
    engine.dispose()


def wait_for_rows(server: postgresql.Server, count: int) -> None:
    until = time.monotonic() + 10
    while len(ids(server)) < count:
        assert time.monotonic() < until
        time.sleep(0.01)


def receipts(server: postgresql.Server) -> list[str]:
    return ids(server, "syncengine_receipts", "group_id")


def delivery(folder: Path, url: str, deliver: str = DELIVER) -> Delivery:
    return Delivery.of(project(folder, deliver, "ledger: {sql: {env: URL}}", URL=url), {"URL": url})


def test_row_and_receipt_are_written_together_or_not_at_all(server: postgresql.Server, tmp_path: Path) -> None:
    """If the connection is cut between them, neither is stored, and the next offer delivers the group once."""
    taking(delivery(tmp_path, server.url()), raw("first"))
    on = "CREATE TRIGGER cut_off BEFORE INSERT ON syncengine_receipts FOR EACH ROW EXECUTE FUNCTION cut_off()"
    do(server, CUT_OFF, on)
    (verdict,) = taking(delivery(tmp_path, server.url()), raw("g1"))
    assert (verdict.outcome, verdict.message) == (TROUBLE, "ledger cannot be reached.")
    assert ids(server) == receipts(server) == ["first"]
    do(server, "DROP TRIGGER cut_off ON syncengine_receipts", "DROP FUNCTION cut_off")
    assert [v.outcome for v in taking(delivery(tmp_path, server.url()), raw("g1"))] == [SUCCESS]
    assert ids(server) == receipts(server) == ["first", "g1"]


def test_a_violated_constraint_is_a_refusal_and_writes_nothing(server: postgresql.Server, tmp_path: Path) -> None:
    """The next group is delivered."""
    verdicts = taking(delivery(tmp_path, server.url()), raw("g1", totalDurationSecs=0, timeRows=[]), raw("g2"))
    assert outcomes(verdicts) == [REFUSED, SUCCESS]
    assert verdicts[0].message == "ledger rejected the time: something in it does not fit there."
    assert verdicts[0].detail == "a constraint is violated (SQLSTATE 23514, constraint time_secs_check, table time)"
    assert ids(server) == receipts(server) == ["g2"]


def test_a_server_that_goes_away_is_trouble_until_it_is_back(server: postgresql.Server, tmp_path: Path) -> None:
    """A server that is down at the start is trouble as well, and no error of the project."""
    with at_work(delivery(tmp_path, server.url())) as desk:
        assert desk.take(raw("g1")).outcome is SUCCESS
        server.stop()
        verdict = desk.take(raw("g2"))
        assert (verdict.outcome, verdict.message) == (TROUBLE, "ledger cannot be reached.")
        assert [(t.sink, t.kind) for t in desk.check_sinks()] == [("ledger", TroubleKind.UNREACHABLE)]
    with at_work(delivery(tmp_path, server.url())) as desk:
        assert [(t.sink, t.kind, t.detail) for t in desk.troubles] == [
            ("ledger", TroubleKind.UNREACHABLE, "nothing is listening at the server's address")
        ]
        server.start()
        assert desk.check_sinks() == ()
        assert desk.take(raw("g2")).outcome is SUCCESS
    assert ids(server) == receipts(server) == ["g1", "g2"]


@pytest.mark.parametrize(
    ("given", "kind"),
    [({"password": "wrong"}, TroubleKind.AUTHENTICATION), ({"role": "reader"}, TroubleKind.PERMISSIONS)],
    ids=["password", "rights"],
)
def test_missing_access_is_trouble_of_its_kind(
    server: postgresql.Server, given: dict[str, Any], kind: TroubleKind, tmp_path: Path
) -> None:
    """Both at the start and at a delivery; the trouble does not show the password."""
    reader = f"CREATE ROLE reader LOGIN PASSWORD '{postgresql.PASSWORD}'"
    do(server, "DROP ROLE IF EXISTS reader", reader, "GRANT USAGE ON SCHEMA public TO reader")
    with at_work(delivery(tmp_path, server.url(**given))) as desk:
        assert [(t.sink, t.kind) for t in desk.troubles] == [("ledger", kind)]
        verdict = desk.take(raw("g1"))
        assert verdict.outcome is TROUBLE
        assert postgresql.PASSWORD not in repr((verdict, desk.troubles))
    assert ids(server) == []
    do(server, "DROP OWNED BY reader", "DROP ROLE reader")


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda url: url.replace(postgresql.PASSWORD, "wrong"), "rejects the user or the password"),
        (lambda url: re.sub(r"/[^/]*$", "/nowhere", url), "has no database of that name"),
        (lambda url: re.sub(r":\d+/", ":1/", url), "nothing is listening"),
        (lambda url: re.sub(r"@[^/]*/", "@nowhere.invalid/", url), "cannot be resolved"),
        (lambda url: url.replace("tester", "nobody"), "rejects the user or the password"),
    ],
    ids=["password", "database", "server", "host", "user"],
)
def test_the_operator_sees_why_a_database_cannot_be_used(
    server: postgresql.Server, change: Callable[[str], str], cause: str, tmp_path: Path
) -> None:
    """The cause is in the detail, without a password, and not in the message for users."""
    with at_work(delivery(tmp_path, change(server.url()))) as desk:
        desk.check_sinks()
        (trouble,) = desk.check_sinks()
        assert cause in (trouble.detail or "")
        assert cause not in trouble.message
        assert postgresql.PASSWORD not in repr(trouble)


def test_a_locked_table_is_trouble_until_it_is_unlocked(server: postgresql.Server, tmp_path: Path) -> None:
    """A receipts table that somebody dropped is created again."""
    with at_work(delivery(tmp_path, server.url() + "?options=-c%20statement_timeout%3D500")) as desk:
        with locked(server, "LOCK TABLE time IN ACCESS EXCLUSIVE MODE"):
            verdict = desk.take(raw("g1"))
            assert (verdict.outcome, verdict.message) == (TROUBLE, "ledger cannot be reached.")
            assert [t.kind for t in desk.troubles] == [TroubleKind.UNREACHABLE]
        assert desk.take(raw("g1")).outcome is SUCCESS
        do(server, "DROP TABLE syncengine_receipts")
        assert desk.take(raw("g2")).outcome is TROUBLE
        assert desk.take(raw("g2")).outcome is SUCCESS
    assert (ids(server), receipts(server)) == (["g1", "g2"], ["g2"])


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
        (verdict,) = taking(delivery(tmp_path, server.url(), deliver), sent)
        assert (verdict.outcome, verdict.external_id) == (SUCCESS, "L-A")
        (tmp_path / ".syncengine/state.db").unlink()
    assert sorted(ids(server, column="id || ' ' || secs")) == ["A 34", "B 33", "Ä" * 300 + " 33"]
    engine = open_engine(server.url(), name)
    assert {signed.key for signed in all_of(engine, name)} == {
        name + suffix for suffix in suffixes(tag["name"] for tag in sent["tags"]).values()
    }
    assert all_of(engine, name[:-1]) == []
    engine.dispose()


# --- groups in one batch


ONE_SECOND = "?options=-c%20statement_timeout%3D1000"


def test_a_batch_waits_once_for_a_locked_table(server: postgresql.Server, tmp_path: Path) -> None:
    """One group waits; the others get its answer without being tried."""
    with at_work(delivery(tmp_path, server.url() + ONE_SECOND)) as desk:
        with locked(server, "LOCK TABLE time IN ACCESS EXCLUSIVE MODE"):
            began = time.monotonic()
            assert outcomes(desk.together(*some(40))) == [TROUBLE] * 40
            assert (time.monotonic() - began < 15, desk.reported) == (True, ())
        statuses = [entry.deliveries[0].status for entry in desk.inbox.entries(states=["troubled"])]
        assert statuses == ["trouble"] * 40
        assert outcomes(desk.together(*some(40))) == [SUCCESS] * 40
    assert ids(server) == receipts(server) == sorted(f"g{n}" for n in range(40))


def test_a_connection_cut_at_commit_leaves_its_groups_in_doubt(server: postgresql.Server, tmp_path: Path) -> None:
    """It is unknown whether they were committed; the next attempt looks for their receipts."""
    cut = "CREATE CONSTRAINT TRIGGER cut_off AFTER INSERT ON time DEFERRABLE INITIALLY DEFERRED"
    do(server, CUT_OFF, f"{cut} FOR EACH ROW EXECUTE FUNCTION cut_off()")
    with at_work(delivery(tmp_path, server.url())) as desk:
        assert outcomes(desk.together(*some(5))) == [TROUBLE] * 5
        doubtful = [entry.deliveries[0].status for entry in desk.inbox.entries(states=["troubled"])]
        assert doubtful == ["unknown"] * 5
        do(server, "DROP TRIGGER cut_off ON time", "DROP FUNCTION cut_off")
        assert outcomes(desk.together(*some(5))) == [SUCCESS] * 5
    assert ids(server) == receipts(server) == [f"g{n}" for n in range(5)]


AT_COMMIT = "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON time DEFERRABLE INITIALLY DEFERRED"
RAISED = """
CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN IF NEW.id = ''g2'' THEN RAISE EXCEPTION ''not this one''; END IF; RETURN NEW; END'
"""


def test_a_refused_commit_refuses_only_its_group(server: postgresql.Server, tmp_path: Path) -> None:
    """Whatever the reason for the refusal is."""
    do(server, RAISED, f"{AT_COMMIT} FOR EACH ROW EXECUTE FUNCTION at_commit()")
    with at_work(delivery(tmp_path, server.url())) as desk:
        expected = [REFUSED if number == 2 else SUCCESS for number in range(6)]
        assert outcomes(desk.together(*some(6))) == expected
    assert ids(server) == receipts(server) == [f"g{n}" for n in range(6) if n != 2]


# --- groups side by side

ROW_OF_G7 = """
CREATE FUNCTION of_g7() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN IF NEW.id = ''g7'' THEN {} END IF; RETURN NEW; END'
"""
ON_TIME = "CREATE TRIGGER of_g7 BEFORE INSERT ON time FOR EACH ROW EXECUTE FUNCTION of_g7()"
AFTER_G7 = "DROP TRIGGER of_g7 ON time", "DROP FUNCTION of_g7"


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        ("RAISE check_violation;", REFUSED),
        ("RAISE EXCEPTION ''the period is closed'';", REFUSED),
        ("PERFORM nothing();", TROUBLE),
        ("PERFORM pg_sleep(0.3);", SUCCESS),
    ],
    ids=["refused", "raised", "troubled", "slow"],
)
def test_trouble_of_one_group_does_not_affect_the_others(
    happens: str, expected: PostedTimeStatus, server: postgresql.Server, tmp_path: Path
) -> None:
    do(server, ROW_OF_G7.format(happens), ON_TIME)
    with at_work(delivery(tmp_path, server.url())) as desk:
        found = outcomes(desk.together(*some(20)))
        assert found == [expected if number == 7 else SUCCESS for number in range(20)]
    assert ids(server) == receipts(server) == sorted(f"g{n}" for n in range(20) if n != 7 or expected is SUCCESS)


def test_a_locked_row_delays_only_its_group(server: postgresql.Server, tmp_path: Path) -> None:
    """The other groups are delivered while it waits."""
    do(server, "CREATE TABLE matter (no INTEGER PRIMARY KEY)", "INSERT INTO matter VALUES (7)")
    do(server, ROW_OF_G7.format("PERFORM no FROM matter FOR UPDATE;"), ON_TIME)
    with at_work(delivery(tmp_path, server.url())) as desk, ThreadPoolExecutor() as pool:
        with locked(server, "SELECT no FROM matter FOR UPDATE"):
            verdicts = pool.submit(desk.together, *some(8))
            wait_for_rows(server, 7)
        assert outcomes(verdicts.result()) == [SUCCESS] * 8
    assert ids(server) == receipts(server) == sorted(f"g{n}" for n in range(8))


def test_a_connection_cut_before_commit_writes_nothing(server: postgresql.Server, tmp_path: Path) -> None:
    """The outcome is certain, as nothing was committed: the groups are delivered when they are offered again."""
    do(server, ROW_OF_G7.format("PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(1);"), ON_TIME)
    with at_work(delivery(tmp_path, server.url())) as desk:
        assert set(outcomes(desk.together(*some(20)))) <= {SUCCESS, TROUBLE}
        cut = [entry.deliveries[0].status for entry in desk.inbox.entries(states=["troubled"])]
        assert cut == ["trouble"] * len(cut) != []
        assert ids(server) == receipts(server)
        do(server, *AFTER_G7)
        assert outcomes(desk.together(*some(20))) == [SUCCESS] * 20
    assert ids(server) == receipts(server) == sorted(f"g{n}" for n in range(20))
