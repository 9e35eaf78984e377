"""SQL sinks on every supported database, and what the errors of database drivers mean."""

from __future__ import annotations

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

from syncengine.database.errors import FAILURES, Silent, cause, is_down, meaning, sentence
from syncengine.database.open import open_engine
from syncengine.errors import Problems, TroubleKind
from syncengine.posted_time.databases import MOST_SILENT, Database, Statement
from syncengine.posted_time.events import Verdict
from syncengine.posted_time.sinks.contract import Answer, Failed, RenderedGroup, Took, Words
from syncengine.posted_time.sinks.sql import SqlSink
from syncengine.posted_time.templates import Json
from tests.posted_time.desk import SUCCESS, at_work, outcomes, taking
from tests.posted_time.projects import delivery_to, locked, run_sql
from tests.posted_time.samples import raw
from tests.posted_time.test_file_sink import Notebook

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
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger with an empty table `hours`."""
    (tmp_path / "hours.db").touch()
    is_file = request.param == "sqlite"
    made = f"sqlite:///{tmp_path}/hours.db" if is_file else str(request.getfixturevalue("postgresql_url"))
    run_sql(made, *(f"DROP TABLE IF EXISTS {table}" for table in ("hours", "syncengine_receipts")))
    run_sql(made, f"CREATE TABLE hours (number {NUMBERS[request.param]} PRIMARY KEY, id TEXT, secs INT, hours NUMERIC)")
    return made


def test_a_group_is_delivered_once_and_its_reference_is_returned_by_the_statement(url: str, tmp_path: Path) -> None:
    """A process with a new inbox gets the same reference from the receipt; a statement need not return any."""
    assert taking(delivery_to(tmp_path, url, SINK), raw(), raw()) == [Verdict(SUCCESS, None, "1")] * 2
    (tmp_path / ".syncengine/state.db").unlink()
    assert taking(delivery_to(tmp_path, url, SINK), raw()) == [Verdict(SUCCESS, None, "1")]
    silent = SINK.replace(" RETURNING number", "")
    assert taking(delivery_to(tmp_path, url, silent), raw("g2")) == [Verdict(SUCCESS, None, None)]
    assert run_sql(url, "SELECT id, secs, hours FROM hours ORDER BY number") == [("g1", 3600, 1), ("g2", 3600, 1)]


@pytest.mark.parametrize("change", [("INTO hours", "INTO ours"), ("(id, secs", "(ident, secs"), ("INSERT", "INSRT")])
def test_a_statement_that_cannot_run_is_refused_at_start(url: str, change: tuple[str, str], tmp_path: Path) -> None:
    """The check writes nothing to the database."""
    with pytest.raises(Problems) as refused:
        delivery_to(tmp_path, url, SINK.replace(*change))
    assert [d.code for d in refused.value.found] == ["bad-statement"]
    assert run_sql(url, "SELECT * FROM hours") == []


def test_two_processes_deliver_a_group_once(url: str, tmp_path: Path) -> None:
    """Each has its own inbox, so no lease keeps them apart: the receipt in the database does."""
    for name in "ab":
        (tmp_path / name).mkdir()
    groups = [raw(f"g{number}") for number in range(5)]
    deliveries = [delivery_to(tmp_path / name, url, SINK) for name in "ab"]
    with at_work(deliveries[0]) as one, at_work(deliveries[1]) as other, ThreadPoolExecutor() as pool:
        both = pool.map(lambda desk: desk.together(*groups), (one, other))
        assert [outcomes(verdicts) for verdicts in both] == [[SUCCESS] * 5] * 2
    assert run_sql(url, "SELECT id FROM hours ORDER BY id") == [(f"g{n}",) for n in range(5)]


class _Stated(Exception):
    """An error with a SQLSTATE, like those of PostgreSQL drivers."""

    def __init__(self, state: str | None, text: str = "x") -> None:
        super().__init__(text)
        self.sqlstate = state


Kind = TroubleKind
MEANINGS: list[tuple[Exception, TroubleKind | None]] = [
    *((exc.DBAPIError("x", None, _Stated(state)), None) for state in ("22003", "23505")),
    (exc.DBAPIError("x", None, _Stated("28P01")), Kind.AUTHENTICATION),
    *((exc.DBAPIError("x", None, _Stated(state)), Kind.PERMISSIONS) for state in ("42501", "25006")),
    (exc.DBAPIError("x", None, _Stated("08006")), Kind.UNREACHABLE),
    *((exc.DBAPIError("x", None, _Stated(state)), Kind.UNKNOWN) for state in ("40P01", "42P01")),
    (exc.OperationalError("x", None, _Stated(None, "password authentication failed")), Kind.AUTHENTICATION),
    (exc.OperationalError("x", None, _Stated(None, "connection refused")), Kind.UNREACHABLE),
    (exc.ProgrammingError("x", None, _Stated(None)), Kind.UNKNOWN),
    (exc.IntegrityError("x", None, _Stated(None)), None),
    (exc.TimeoutError("pool"), Kind.UNREACHABLE),
    (OSError("x"), Kind.UNREACHABLE),
    (OSError(errno.EROFS, "x"), Kind.PERMISSIONS),
]


@pytest.mark.parametrize(("error", "expected"), MEANINGS)
def test_an_error_means_a_kind_of_trouble_by_its_sqlstate_or_else_its_class_and_text(
    error: Exception, expected: TroubleKind | None
) -> None:
    """Violated constraints and bad values are no trouble: they refuse the group."""
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


def test_a_driver_that_is_missing_is_named() -> None:
    """An unknown URL scheme has a message of its own."""
    for url, words in (
        ("mysql+nothing://h/d", "begins with mysql+nothing://, for which no driver is installed"),
        ("postgresql+psycopg2://h/d", "needs the driver psycopg2, which is not installed"),
    ):
        with pytest.raises(Problems) as refused:
            open_engine(url, "ledger")
        assert words in refused.value.found[0].message


def test_a_file_that_is_no_database_is_trouble(tmp_path: Path) -> None:
    """SQLite's own error code means UNREACHABLE. After a deadlock only the transaction has to be repeated."""
    path = tmp_path / "x.db"
    path.write_text("this is not a database, though it is long enough to look at it twice" * 20)
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.DatabaseError) as raised:
        connection.execute("SELECT * FROM sqlite_master")
    assert meaning(raised.value) is TroubleKind.UNREACHABLE
    assert [is_down(exc.DBAPIError("x", None, _Stated(state))) for state in ("40P01", "08006")] == [False, True]
    assert all(sentence("ledger", kind).startswith("ledger ") for kind in TroubleKind)


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
