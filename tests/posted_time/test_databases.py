"""SQL sinks on every supported database, and what the errors of database drivers mean."""

import asyncio
import errno
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from syncengine.database.errors import FAILURES, Silent, cause, meaning
from syncengine.database.open import open_engine
from syncengine.errors import Problems, TroubleKind
from syncengine.posted_time.databases import MOST_SILENT, Database, Statement
from syncengine.posted_time.delivery import Delivery
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.receipts import all_of
from syncengine.posted_time.sinks.contract import Answer, Failed, RenderedGroup, Took, Words
from syncengine.posted_time.sinks.sql import SqlSink
from syncengine.posted_time.templates import Json
from tests import mariadb
from tests.posted_time.desk import REFUSED, SUCCESS, at_work, outcomes, taking
from tests.posted_time.projects import delivery_to, into, locked, run_sql
from tests.posted_time.samples import raw
from tests.posted_time.test_file_sink import Notebook

pytestmark = pytest.mark.slow

SINK = """\
deliver:
  - name: ledger
    sql:
      source: ledger
      statement: INSERT INTO hours (id, secs, hours) VALUES (:id, :secs, :hours) RETURNING number
      params: {id: "{{ group.groupId }}", secs: "{{ duration.seconds }}", hours: "{{ duration.hours }}"}
    externalId: "{{ returned.number }}"
"""
NUMBERS = {"sqlite": "INTEGER", "postgresql": "SERIAL"}


@pytest.fixture(params=NUMBERS)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger with an empty table `hours`."""
    (tmp_path / "hours.db").touch()
    is_file = request.param == "sqlite"
    made = f"sqlite:///{tmp_path}/hours.db" if is_file else str(request.getfixturevalue("postgresql_url"))
    run_sql(made, *(f"DROP TABLE IF EXISTS {table}" for table in ("hours", "syncengine_receipts")))
    run_sql(made, f"CREATE TABLE hours (number {NUMBERS[request.param]} PRIMARY KEY, id TEXT, secs INT, hours NUMERIC)")
    return made


def test_a_group_is_delivered_once_and_its_reference_is_returned_by_the_statement(ledger: str, tmp_path: Path) -> None:
    """A process with a new inbox gets the same reference from the receipt; a statement need not return any."""
    assert taking(delivery_to(tmp_path, ledger, SINK), raw(), raw()) == [Verdict(SUCCESS, None, "1")] * 2
    (tmp_path / ".syncengine/state.db").unlink()
    assert taking(delivery_to(tmp_path, ledger, SINK), raw()) == [Verdict(SUCCESS, None, "1")]
    silent = SINK.replace(" RETURNING number", "")
    assert taking(delivery_to(tmp_path, ledger, silent), raw("g2")) == [Verdict(SUCCESS, None, None)]
    assert run_sql(ledger, "SELECT id, secs, hours FROM hours ORDER BY number") == [("g1", 3600, 1), ("g2", 3600, 1)]


@pytest.mark.parametrize("change", [("INTO hours", "INTO ours"), ("(id, secs", "(ident, secs"), ("INSERT", "INSRT")])
def test_a_statement_that_cannot_run_is_refused_at_start(ledger: str, change: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(Problems) as refused:
        delivery_to(tmp_path, ledger, SINK.replace(*change))
    assert [d.code for d in refused.value.found] == ["bad-statement"]
    assert run_sql(ledger, "SELECT * FROM hours") == []


def test_two_processes_deliver_a_group_once(ledger: str, tmp_path: Path) -> None:
    """Each has its own inbox, so no lease keeps them apart: the receipt in the database does."""
    for name in "ab":
        (tmp_path / name).mkdir()
    groups = [raw(f"g{number}") for number in range(5)]
    deliveries = [delivery_to(tmp_path / name, ledger, SINK) for name in "ab"]
    with at_work(deliveries[0]) as one, at_work(deliveries[1]) as other, ThreadPoolExecutor() as pool:
        both = pool.map(lambda desk: desk.together(*groups), (one, other))
        assert [outcomes(verdicts) for verdicts in both] == [[SUCCESS] * 5] * 2
    assert run_sql(ledger, "SELECT id FROM hours ORDER BY id") == [(f"g{n}",) for n in range(5)]


class _Stated(Exception):
    """An error with a SQLSTATE, like those of PostgreSQL drivers."""

    def __init__(self, state: str | None, text: str = "x") -> None:
        super().__init__(text)
        self.sqlstate = state


Kind = TroubleKind
STATES = {
    **dict.fromkeys(("22003", "23505"), None),
    "28P01": Kind.AUTHENTICATION,
    **dict.fromkeys(("42501", "25006"), Kind.PERMISSIONS),
    "08006": Kind.UNREACHABLE,
    **dict.fromkeys(("40P01", "42P01"), Kind.UNKNOWN),
}
MEANINGS: list[tuple[Exception, TroubleKind | None]] = [
    *((exc.DBAPIError("x", None, _Stated(state)), kind) for state, kind in STATES.items()),
    (exc.OperationalError("x", None, _Stated(None, "password authentication failed")), Kind.AUTHENTICATION),
    (exc.OperationalError("x", None, _Stated(None, "connection refused")), Kind.UNREACHABLE),
    (exc.ProgrammingError("x", None, _Stated(None)), Kind.UNKNOWN),
    (exc.IntegrityError("x", None, _Stated(None)), None),
    (exc.TimeoutError("pool"), Kind.UNREACHABLE),
    (OSError("x"), Kind.UNREACHABLE),
    (OSError(errno.EROFS, "x"), Kind.PERMISSIONS),
]


@pytest.mark.parametrize(("error", "expected"), MEANINGS)
def test_an_error_means_a_kind_of_trouble(error: Exception, expected: TroubleKind | None) -> None:
    """By its SQLSTATE, or else by class and text. Violated constraints and bad values refuse the group."""
    assert isinstance(error, FAILURES)
    assert meaning(error) is expected


def test_a_cause_names_columns_but_no_text_of_a_check_or_trigger(tmp_path: Path) -> None:
    """The text of a check or trigger may hold anything; column names are part of the schema."""
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        database.execute("CREATE TABLE t (a TEXT UNIQUE NOT NULL, b INTEGER CHECK (b > 0))")
        database.execute("INSERT INTO t VALUES ('one', 1)")
        database.execute(
            "CREATE TRIGGER no BEFORE INSERT ON t WHEN NEW.b = 7 BEGIN SELECT RAISE(ABORT, 'secret: words'); END"
        )
        told = []
        for row in (("one", 1), (None, 1), ("two", 0), ("two", 7)):
            with pytest.raises(sqlite3.IntegrityError) as refused:
                database.execute("INSERT INTO t VALUES (?, ?)", row)
            told.append(cause(refused.value))
    names = ("UNIQUE, t.a", "NOTNULL, t.a", "CHECK", "TRIGGER")
    assert told == [f"a constraint is violated (SQLITE_CONSTRAINT_{name})" for name in names]


@contextmanager
def hours(folder: Path, patience: float, pause: Callable[[], object], query: str = "") -> Iterator[Database]:
    """A database with a table of hours, in which `pause()` waits as the test says."""
    path = folder / "x.db"
    path.touch()
    run_sql(f"sqlite:///{path}", "CREATE TABLE hours (id TEXT, paused INTEGER)")
    database = Database(open_engine(f"sqlite:///{path}{query}", "x"), "x", patience=patience)
    sa.event.listen(database.engine, "connect", lambda raw, _: raw.create_function("pause", 0, pause))
    yield database
    database.engine.dispose()


def wait_for_threads() -> None:
    for waiting in [thread for thread in threading.enumerate() if thread.name == "database"]:
        waiting.join()


def delivered_at_once(database: Database, groups: int) -> list[Answer]:
    statement = Statement("INSERT INTO hours VALUES (:id, pause())")
    json, words = Json(frozenset(), dict), Words(None, None)
    sink = SqlSink("x", database, statement, json, words, keeps_receipts=True, allows_no_row=False, now=lambda: 1.0)
    rendered = [RenderedGroup(f"g{number}", "x", 1, "digest", {"id": f"g{number}"}, {}) for number in range(groups)]

    async def story() -> list[Answer]:
        return await asyncio.gather(*(sink.deliver(each, None, Notebook()) for each in rendered))

    return asyncio.run(story())


def begun(answers: list[Answer]) -> list[bool]:
    """Of deliveries that failed, whether each may have written something."""
    assert all(isinstance(answer, Failed) for answer in answers)
    return [not answer.is_sure for answer in answers if isinstance(answer, Failed)]


def test_a_silent_database_is_given_up_after_its_patience(tmp_path: Path) -> None:
    """At most `MOST_SILENT` threads wait for it, and each knows that it was given up."""
    awake, heard = threading.Event(), list[bool]()

    def silent(given_up: threading.Event) -> None:
        awake.wait(60)
        heard.append(given_up.is_set())
        raise ValueError("too late")

    async def story(database: Database) -> None:
        for _ in range(MOST_SILENT + 3):
            with pytest.raises(Silent):
                await database.ask(silent)
        trouble = await database.probe("x")
        assert trouble is not None and trouble.kind is TroubleKind.UNREACHABLE
        awake.set()
        wait_for_threads()
        assert await database.probe("x") is None

    with hours(tmp_path, 0.05, lambda: None) as database:
        asyncio.run(story(database))
        assert heard == [True] * MOST_SILENT
        with pytest.raises(Silent):
            database.ask_now(lambda given_up: given_up.wait(60))


def test_groups_wait_for_their_turns_for_as_long_as_the_database_works(tmp_path: Path) -> None:
    """That it is busy with others of this process is no silence: together they take far longer than its patience."""
    with hours(tmp_path, 1.0, lambda: time.sleep(0.05)) as database:
        assert delivered_at_once(database, 40) == [Took()] * 40
    assert len(run_sql(f"sqlite:///{tmp_path}/x.db", "SELECT id FROM hours")) == 40


def test_groups_that_wait_behind_a_lock_give_up_with_the_first(tmp_path: Path) -> None:
    """Otherwise each would wait as long once more for what another process has locked. None of them was begun."""
    with hours(tmp_path, 20.0, lambda: None, "?timeout=0.5") as database, locked(tmp_path / "x.db"):
        began = time.monotonic()
        assert begun(delivered_at_once(database, 40)) == [False] * 40
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("groups", [1, 3])
def test_a_delivery_that_was_given_up_is_not_written_later(groups: int, tmp_path: Path) -> None:
    """The groups were answered with trouble, and their users may change them before the next attempt."""
    awake = threading.Event()
    with hours(tmp_path, 0.2, lambda: awake.wait(60)) as database:
        assert begun(delivered_at_once(database, groups)) == [True] + [False] * (groups - 1)
        awake.set()
        wait_for_threads()
    for table in ("hours", "syncengine_receipts"):
        assert run_sql(f"sqlite:///{tmp_path}/x.db", f"SELECT * FROM {table}") == []


# --- MariaDB, whose defaults are looser than those of other databases


ID = '{id: "{{ group.groupId }}"}'


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with mariadb.running() as url:
        yield url


@pytest.fixture
def url(server: str) -> str:
    run_sql(server, "DROP DATABASE ledger", "CREATE DATABASE ledger CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    return server


def delivery(folder: Path, url: str, statement: str, params: str = ID, more: str = "") -> Delivery:
    sql = f'{{source: ledger, statement: "{statement}", params: {params}}}'
    sink = f"- name: ledger\n  sql: {sql}\n  refused: The ledger does not take it.\n"
    return delivery_to(folder, url, into(sink, more))


UNFIT = {
    "a text that is too long": ("note varchar(5)", "'too long'"),
    "a number beyond its column": ("note tinyint", "3600"),
    "a date that does not exist": ("note date", "'2024-02-31'"),
    "a division by zero": ("note int", "1 / 0"),
    "a value that an enumeration lacks": ("note enum('a', 'b')", "'c'"),
    "characters that the column cannot store": ("note varchar(9) character set latin1", "'\u0141\u00f3d\u017a'"),
    "a CHECK constraint": ("note int check (note < 5)", "7"),
}


@pytest.mark.parametrize(("column", "value"), UNFIT.values(), ids=UNFIT.keys())
def test_a_value_that_does_not_fit_is_refused_and_never_cut(column: str, value: str, url: str, tmp_path: Path) -> None:
    """In the server's default mode 3600 seconds would be stored as 127, and texts would be cut."""
    run_sql(url, f"CREATE TABLE time (id varchar(99), {column})")
    (verdict,) = taking(delivery(tmp_path, url, f"INSERT INTO time VALUES (:id, {value})"), raw())
    assert (verdict.outcome, verdict.message) == (REFUSED, "The ledger does not take it.")
    assert run_sql(url, "SELECT * FROM time") == run_sql(url, "SELECT group_id FROM syncengine_receipts") == []


@pytest.mark.parametrize("table", ["time", "`time`", "ledger.time"])
def test_a_table_without_transactions_is_refused_where_receipts_are_kept(table: str, url: str, tmp_path: Path) -> None:
    """A row stays there whatever becomes of its receipt, so the group would be delivered twice."""
    run_sql(url, "CREATE TABLE time (id varchar(99)) ENGINE=MyISAM")
    with pytest.raises(Problems) as refused:
        delivery(tmp_path, url, f"INSERT INTO {table} VALUES (:id)")
    assert "the engine MyISAM of the table has no transactions" in refused.value.found[0].message
    without = delivery(tmp_path, url, f"INSERT INTO {table} VALUES (:id)", f"{ID}, receipts: false")
    assert outcomes(taking(without, raw())) == [SUCCESS]


def test_ids_that_differ_only_in_case_blanks_or_form_are_different_groups(url: str, tmp_path: Path) -> None:
    """Each is delivered once, although the database would take them for the same."""
    run_sql(url, "CREATE TABLE time (id varbinary(99))")
    ids = ["aBc1", "AbC1", "aBc1 ", "e\u0301", "E\u0301", "stra\u00dfe", "strasse"]
    statement = "INSERT INTO time VALUES (:id)"
    assert [v.outcome for v in taking(delivery(tmp_path, url, statement), *map(raw, ids))] == [SUCCESS] * len(ids)
    (tmp_path / ".syncengine/state.db").unlink()
    assert [v.outcome for v in taking(delivery(tmp_path, url, statement), *map(raw, ids))] == [SUCCESS] * len(ids)
    assert sorted(id.decode() for (id,) in run_sql(url, "SELECT id FROM time")) == sorted(ids)
    engine = sa.create_engine(url)
    assert {one.group_id for one in all_of(engine, "ledger")} == {*ids}
    assert all_of(engine, "LEDGER") == []
    engine.dispose()


@pytest.mark.parametrize(
    "signal", ["SQLSTATE '45000'", "SQLSTATE '45000' SET MYSQL_ERRNO = 30001, MESSAGE_TEXT = 'closed since 1815'"]
)
def test_a_signal_of_a_trigger_is_a_refusal(signal: str, url: str, tmp_path: Path) -> None:
    """The message is the project's, without the trigger's text; the next group is delivered."""
    raised = f"IF NEW.id = 'g1' THEN SIGNAL {signal}; END IF"
    run_sql(url, "CREATE TABLE time (id varchar(99))")
    run_sql(url, f"CREATE TRIGGER closed BEFORE INSERT ON time FOR EACH ROW BEGIN {raised}; END")
    first, second = taking(delivery(tmp_path, url, "INSERT INTO time VALUES (:id)"), raw("g1"), raw("g2"))
    assert (first.outcome, first.message, second.outcome) == (REFUSED, "The ledger does not take it.", SUCCESS)
    assert "1815" not in (first.detail or "")


def test_an_update_without_a_matching_row_is_a_refusal(url: str, tmp_path: Path) -> None:
    """One that matches a row but changes no value is none, nor is a procedure, which reports no row count."""
    run_sql(url, "CREATE TABLE matter (no varchar(9), secs int)", "INSERT INTO matter VALUES ('ACME-0042', 3600)")
    run_sql(url, "CREATE PROCEDURE book(s int) UPDATE matter SET secs = secs WHERE no = 'none'")
    params = '{no: "{{ tag.name }}", s: "{{ duration.seconds }}"}'
    groups = [raw("g1"), raw("g2", tags=[{"name": "NO-SUCH"}])]
    verdicts = taking(delivery(tmp_path, url, "UPDATE matter SET secs = :s WHERE no = :no", params), *groups)
    assert outcomes(verdicts) == [SUCCESS, REFUSED]
    assert run_sql(url, "SELECT group_id FROM syncengine_receipts") == [(b"g1",)]
    booked = taking(delivery(tmp_path, url, "CALL book(:s)", '{s: "{{ duration.seconds }}"}'), raw("g3"))
    assert [v.outcome for v in booked] == [SUCCESS]


def test_the_start_is_local_in_every_column(url: str, tmp_path: Path) -> None:
    """A group that only has a date keeps that date."""
    run_sql(url, "CREATE TABLE time (a date, b datetime, c varchar(99))")
    group = raw(localDate="2026-11-21", tzOffsetMins=60, timeRows=[])
    statement, params = "INSERT INTO time VALUES (:a, :a, :a)", '{a: "{{ start }}"}'
    assert taking(delivery(tmp_path, url, statement, params, "timezone: Europe/Vienna\n"), group)[0].outcome is SUCCESS
    ((day, moment, text),) = run_sql(url, "SELECT CAST(a AS char), CAST(b AS char), c FROM time")
    assert (day, moment, text[:19]) == ("2026-11-21", "2026-11-21 00:00:00", "2026-11-21 00:00:00")
