"""Rows of databases are read for each plan, whole and with their types, and nothing can be written through them."""

import re
import signal
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from syncengine.errors import Problems
from syncengine.manifest.desired import Desired, load
from syncengine.manifest.sources import sql
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.manifest.sources.sql import bounds_of, sql_rows
from syncengine.project.load import load_project
from tests import mariadb
from tests.cli.program import Project
from tests.manifest.loading import block, loop, tag, write
from tests.postgresql import PASSWORD, running
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

SQL = "sources: {pms: {sql: {env: PMS}}}"


def desired(folder: Path, query: str, settings: str = SQL) -> Desired:
    manifest = block(query, "name: '{{ row.n }}', managedBy: '{{ row.v }}'")
    write(folder, {"syncengine.yaml": f"version: 1\n{settings}\n", "manifests/m.yaml": manifest})
    return load(load_project(folder=folder, environ={"PMS": "pms.db"}))


def refused(folder: Path, query: str, settings: str = SQL) -> str:
    with pytest.raises(Problems) as refusal:
        desired(folder, query, settings)
    (found,) = refusal.value.found
    assert (found.code, found.file, found.line) == ("bad-source", "manifests/m.yaml", 2)
    return found.message


@pytest.fixture
def database(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "pms.db")
    with connection:
        connection.execute("CREATE TABLE m (n TEXT, v TEXT, closed INT)")
        connection.executemany("INSERT INTO m VALUES (?, ?, ?)", [("A", "0123", 0), ("B", None, 0), ("C", "x", 1)])
    connection.close()
    return tmp_path


def test_rows_of_a_query(database: Path) -> None:
    """A query uses a named source and parameters; NULL counts as absent, and rows are numbered from 1. A parameter
    keeps its type, and a variable is never inserted into the query's text. So it is in text templates."""
    query = "sql: {source: pms, query: 'SELECT n, v FROM m WHERE closed = :c ORDER BY n', params: {c: %s}}"
    found = list(desired(database, query % "0").resources.values())
    assert [(r.key.name, r.body.fields.get("managedBy")) for r in found] == [("A", "0123"), ("B", None)]
    assert [tuple(r.source.data or ()) for r in found] == [("pms", 1), ("pms", 2)]
    settings = f"{SQL}\nvariables: {{closed: '1', name: \"C' OR 'a' = 'a\"}}"
    assert [key.name for key in desired(database, query % "'{{ var.closed | int }}'", settings).resources] == ["C"]
    query = "sql: {source: pms, query: 'SELECT n, v FROM m WHERE n = :n', params: {n: '{{ var.name }}'}}"
    assert not desired(database, query, settings).resources
    template = {"manifests/m.yaml": "", "manifests/a.yaml.j2": loop("source='pms', query='SELECT max(n) AS n FROM m'")}
    write(database, template)
    assert [key.name for key in load(load_project(folder=database, environ={"PMS": "pms.db"})).resources] == ["C"]
    write(database, {"manifests/a.yaml.j2": loop("source='pms', query='DELETE FROM m'")})
    with pytest.raises(Problems) as refusal:
        load(load_project(folder=database, environ={"PMS": "pms.db"}))
    assert [(d.code, d.file, d.line) for d in refusal.value.found] == [("bad-source", "manifests/a.yaml.j2", 2)]


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM m",
        "SELECT 1; DELETE FROM m",
        "WITH x AS (SELECT 1) DELETE FROM m",
        "ATTACH DATABASE ''/tmp/x'' AS y",
        "SELECT load_extension(''x'')",
        "SELECT * FROM nowhere",
        "SELECT 1 AS n, cast(x''ff'' AS TEXT) AS v",
    ],
)
def test_a_query_can_only_ask(database: Path, query: str) -> None:
    """Only one SELECT is allowed, in a transaction that cannot write."""
    refused(database, f"sql: {{source: pms, query: '{query}'}}")
    connection = sqlite3.connect(database / "pms.db")
    assert connection.execute("SELECT count(*) FROM m").fetchone() == (3,)
    connection.close()


RECURSIVE = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c)"
ENDLESS = (f"{RECURSIVE} SELECT count(*) AS n FROM c", f"{RECURSIVE} SELECT x FROM c WHERE x < 0")


@pytest.mark.parametrize("query", ENDLESS)
def test_a_query_ends(database: Path, query: str) -> None:
    with pytest.raises(SourceTrouble, match=r"stopped after 0\.3 s"):
        list(sql_rows("pms", str(database / "pms.db"), query, {}, 0.3))


def test_a_query_can_be_interrupted(project: Project) -> None:
    write(project.folder, {"manifests/m.yaml": block(f"sql: {{file: ../r.db, query: '{ENDLESS[0]}'}}")})
    file = project.folder / "r.db"
    sqlite3.connect(file).execute("CREATE TABLE t (n)").connection.close()
    process = project.start("validate")
    opened = Path(f"/proc/{process.pid}/fd")
    eventually(lambda: any(link.resolve() == file.resolve() for link in opened.iterdir()))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 130
    process.communicate()


class Interrupting(frozenset[int]):
    """The allowed actions of a query; the second check raises SIGINT."""

    asked = 0

    def __contains__(self, action: object) -> bool:
        self.asked += 1
        if self.asked == 2:
            signal.raise_signal(signal.SIGINT)
        return True


@pytest.mark.parametrize("query", ["SELECT upper('a') AS n", "SELECT n FROM m"])
def test_a_query_can_be_interrupted_while_it_is_checked(
    database: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite asks a callback about each function and column, and takes an exception in it for a refusal."""
    monkeypatch.setattr(sql, "_READING", Interrupting())
    with pytest.raises(KeyboardInterrupt):
        list(sql_rows("pms", str(database / "pms.db"), query, {}, 60))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT zeroblob(900000000)", "too big"),
        (f"{RECURSIVE} SELECT hex(zeroblob(4000000)) AS v FROM c", "take more than"),
    ],
)
def test_rows_do_not_fill_the_memory(database: Path, query: str, words: str) -> None:
    with pytest.raises(SourceTrouble, match=words):
        for _ in sql_rows("pms", str(database / "pms.db"), query, {}, most=50_000_000):
            pass


def test_servers_of_mysql_end_a_query_themselves() -> None:
    """Each dialect gets its own statement that limits the time and, in MySQL and MariaDB, forbids writing."""
    maria, oracle = mysql.dialect(is_mariadb=True), mysql.dialect()
    for dialect, limit in ((maria, "max_statement_time = 1.5"), (oracle, "max_execution_time = 1500")):
        first, *_, last = bounds_of(dialect, 1.5)
        assert (first, last) == (f"SET SESSION {limit}", "SET TRANSACTION READ ONLY")
    assert next(bounds_of(postgresql.dialect(), 1.5)) == "SET LOCAL statement_timeout = 1500"
    assert list(bounds_of(sqlite.dialect(), 1.5)) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n FROM m INTO OUTFILE '/tmp/x'",
        "SELECT n FROM m into/**/dumpfile '/tmp/x'",
        "SELECT n FROM m /*!50000 INTO OUTFILE '/tmp/x' */",
        r"SELECT '\'' INTO OUTFILE '/tmp/x'",
    ],
)
def test_a_query_writes_no_file(query: str) -> None:
    """MySQL would write a file even in a read-only transaction, so such a query is refused."""
    with pytest.raises(SourceTrouble, match="must not write files"):
        list(sql_rows("pms", "pms.db", query, {}))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("sql: {source: pms, query: \"SELECT '{{ var.name }}' AS n\"}", "cannot contain templates: write `:name`"),
        ("sql: {source: pns, query: SELECT 1}", "did you mean `pms`?"),
        ("sql: {source: pms, query: 'SELECT 1', params: {c: '{{ var.nam }}'}}", "did you mean `name`?"),
        ("sql: {source: pms, query: 'SELECT 1', params: {c: '{{ row.n }}'}}", "`row` is undefined"),
        ("sql: {source: pms, query: 'SELECT :c', params: {c: '{{ 10 ** 30 }}'}}", "a larger number than SQLite knows"),
        ("csv: '../{{ var.name'", "the template is not valid"),
        ("csv: '../{{ var.up }}/x.csv'", "leads outside the project"),
    ],
)
def test_a_source_that_is_asked_for_wrongly(database: Path, source: str, words: str) -> None:
    """Templates are refused in a query; elsewhere they see only variables, and their result is checked."""
    assert words in refused(database, source, f"{SQL}\nvariables: {{name: a, up: ../..}}")


def test_a_file_is_named_by_a_variable(project: Project) -> None:
    """The cache depends on the file's content and on the variable."""
    manifest = block("csv: '../{{ var.team }}.csv'")
    write(project.folder, {"manifests/m.yaml": manifest, "red.csv": "n\nA\n", "blue.csv": "n\nB\n"})

    def planned(team: str) -> list[str]:
        done = project.run("plan", "--format", "json", "--var", f"team={team}")
        return [change["address"] for change in done.document["changes"]]

    assert (planned("red"), planned("red"), planned("blue")) == (["tag/A"], ["tag/A"], ["tag/B"])
    write(project.folder, {"red.csv": "n\nC\n"})
    assert planned("red") == ["tag/C"]


SETTINGS = "version: 1\nsources: {pms: {sql: {env: PMS}}}\n"

TABLE = """\
CREATE TABLE matter (n TEXT PRIMARY KEY, title TEXT, fee NUMERIC, opened TIMESTAMPTZ, scan BYTEA);
INSERT INTO matter VALUES
  ('A-1', E'a: "b" # {{ c }}\\nd', 1.50, '2024-05-01T09:00:00Z', '\\x00ff'),
  ('A-2', NULL, NULL, NULL, NULL);
CREATE SEQUENCE counter;
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running() as server:
        engine = sa.create_engine(server.url())
        with engine.begin() as connection:
            connection.exec_driver_sql(TABLE)
        engine.dispose()
        yield server.url()


def rows(url: str, query: str, seconds: float = 60.0) -> list[dict[str, object]]:
    return [row for _, row in sql_rows("pms", url, query, {}, seconds)]


def test_values_keep_their_types(url: str) -> None:
    (first, second) = rows(url, "SELECT n, title, fee, scan FROM matter ORDER BY n")
    assert first == {"n": "A-1", "title": 'a: "b" # {{ c }}\nd', "fee": Decimal("1.50"), "scan": b"\x00\xff"}
    assert second == {"n": "A-2", "title": None, "fee": None, "scan": None}


@pytest.mark.parametrize("kind", ["json", "jsonb"])
def test_numbers_in_json_keep_their_digits(url: str, kind: str) -> None:
    """As in a JSON file, and with the same bounds."""
    (row,) = rows(url, f"""SELECT '{{"a": [12345678901234567890.50]}}'::{kind} AS v""")
    assert str(row["v"]) == "{'a': [12345678901234567890.50]}"
    with pytest.raises(SourceTrouble, match="pms: a JSON value cannot be read: a number has more than 1000 digits"):
        rows(url, f"SELECT ('1' || repeat('0', 2000))::{kind} AS v")


@pytest.mark.parametrize("value", ["interval '1 month'", "interval '1 year 2 days'", "array[interval '-2 months']"])
def test_an_interval_without_a_fixed_length_is_refused(url: str, value: str) -> None:
    """A month is not 30 days: the query has to say what it means."""
    with pytest.raises(SourceTrouble, match="pms: an interval of months or years has no fixed length: cast it to text"):
        rows(url, f"SELECT {value} AS v")
    assert rows(url, f"SELECT ({value})::text AS v")[0]["v"]


def test_instants_and_intervals_are_read_in_any_style_of_the_role(url: str) -> None:
    """A role may have them written in a way that people read."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER ROLE tester SET intervalstyle = 'iso_8601'")
        connection.exec_driver_sql("ALTER ROLE tester SET datestyle = 'German'")
    try:
        (row,) = rows(url, "SELECT timestamptz '2024-05-01 09:00Z' AS opened, interval '2 days 03:00' AS took")
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql("ALTER ROLE tester RESET ALL")
        engine.dispose()
    assert row == {"opened": datetime(2024, 5, 1, 9, tzinfo=UTC), "took": timedelta(days=2, hours=3)}


def test_a_query_that_fails_says_why(url: str) -> None:
    """Also a word behind a colon in a text is a parameter, which a backslash makes part of it."""
    with pytest.raises(SourceTrouble, match="the query's parameter `:b` has no value: add it to `params`, or write"):
        rows(url, "SELECT 'a :b' AS v")
    assert rows(url, r"SELECT 'a \:b' AS v") == [{"v": "a :b"}]
    with pytest.raises(SourceTrouble, match='the query failed: column "nothing" does not exist'):
        rows(url, "SELECT nothing")


@pytest.mark.parametrize(
    "query",
    [
        "WITH gone AS (DELETE FROM matter RETURNING n) SELECT n FROM gone",
        "WITH more AS (INSERT INTO matter VALUES ('B') RETURNING n) SELECT n FROM more",
        "SELECT n INTO other FROM matter",
        "SELECT nextval('counter')",
        "SELECT n FROM matter FOR UPDATE",
        "SELECT set_config('transaction_read_only', 'off', true), nextval('counter')",
        "SELECT 1; DELETE FROM matter",
        "SELECT lo_create(0)",
    ],
)
def test_nothing_can_be_written(url: str, query: str) -> None:
    """Before PostgreSQL 16, a read-only transaction can create large objects; they are rolled back."""
    with suppress(SourceTrouble) if "lo_create" in query else pytest.raises(SourceTrouble):
        rows(url, query)
    assert [row["n"] for row in rows(url, "SELECT n FROM matter ORDER BY n")] == ["A-1", "A-2"]
    assert rows(url, "SELECT is_called FROM counter") == [{"is_called": False}]
    assert rows(url, "SELECT count(*) AS n FROM pg_largeobject_metadata") == [{"n": 0}]


def test_rows_are_streamed(url: str) -> None:
    tracemalloc.start()
    count = len([n for n, _ in sql_rows("pms", url, "SELECT repeat('x', 1000) FROM generate_series(1, 20000)", {})])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (count, peak < 8_000_000) == (20_000, True)


@pytest.mark.parametrize("query", ["SELECT pg_sleep(60)", "SELECT count(*) FROM generate_series(1, 10000000000)"])
def test_a_query_of_a_server_ends(url: str, query: str) -> None:
    with pytest.raises(SourceTrouble, match=r"stopped after 0\.3 s"):
        rows(url, query, 0.3)


CONNECTIONS = {
    "password": (lambda url: url.replace(PASSWORD, "wrong"), "the database rejects the user or the password"),
    "database": (lambda url: url.replace("/postgres", "/nowhere"), "the server has no database of that name"),
    "server": (lambda url: re.sub(r":\d+/", ":1/", url), "nothing is listening at the server's address"),
}


@pytest.mark.parametrize(("change", "words"), CONNECTIONS.values(), ids=CONNECTIONS)
def test_connection_errors_have_messages_of_their_own(
    url: str, tmp_path: Path, change: Callable[[str], str], words: str
) -> None:
    """They do not show the password."""
    manifest = block("sql: {source: pms, query: SELECT 1 AS n}")
    write(tmp_path, {"syncengine.yaml": SETTINGS, "manifests/m.yaml": manifest})
    with pytest.raises(Problems) as refused:
        load(load_project(folder=tmp_path, environ={"PMS": change(url)}))
    (found,) = refused.value.found
    code = ("bad-source", 8) if "password" in words else ("source-unreachable", 9)
    assert (found.code, refused.value.exit_code, found.line) == (*code, 2)
    assert found.message.startswith(f"pms: {words}")
    assert PASSWORD not in found.message


MATTERS = (
    "CREATE TABLE matter (n VARCHAR(20), opened DATE, closed DATETIME, worked TIME, words VARCHAR(20))",
    "INSERT INTO matter VALUES"
    " ('M-1001', '0000-00-00', '2024-00-00 10:00:00', '100:30:00', 'one'),"
    " ('M-1002', '2024-05-01', NULL, '-12:30:00', 'two'),"
    " ('M-1003', NULL, '2024-05-01 09:00:00', '09:30:00', 'three')",
)


@pytest.fixture(scope="module")
def mariadb_url() -> Iterator[str]:
    """The URL of a database whose server cuts results short, as an administrator may have it."""
    with mariadb.running() as url:
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            for statement in MATTERS:
                connection.exec_driver_sql(statement)
        engine.dispose()
        yield url


def test_dates_and_times_are_those_of_the_table(mariadb_url: str) -> None:
    """A date that is none, which MariaDB may hold, is text as the server writes it; a time is a duration."""
    rows = [row for _, row in sql_rows("pms", mariadb_url, "SELECT opened, closed, worked FROM matter ORDER BY n", {})]
    assert [rows[0]["opened"], rows[0]["closed"]] == ["0000-00-00", "2024-00-00 10:00:00"]
    assert [rows[1]["closed"], rows[2]["closed"]] == [None, datetime(2024, 5, 1, 9)]
    assert [row["worked"] / timedelta(hours=1) for row in rows] == [100.5, -12.5, 9.5]


def test_a_date_that_is_none_is_told_with_its_row(tmp_path: Path, mariadb_url: str) -> None:
    """It is no instant, so a tag with it is an error; a template may leave it out."""

    def desired(created: str) -> Desired:
        source = "sql: {source: pms, query: SELECT * FROM matter WHERE opened IS NOT NULL}"
        text = block(source, f"name: '{{{{ row.n }}}}', createdTimestamp: \"{created}\"")
        write(tmp_path, {"syncengine.yaml": SETTINGS, "manifests/m.yaml": text})
        return load(load_project(folder=tmp_path, environ={"PMS": mariadb_url}))

    for created in ("{{ row.opened | utc }}", "{{ row.opened }}T00:00:00Z"):
        with pytest.raises(Problems) as refused:
            desired(created)
        (error,) = refused.value.found
        assert (error.file, error.line, error.data) == ("manifests/m.yaml", 3, ("pms", 1))
        assert "0000-00-00" in error.message
    made = desired("{% if row.opened | string > '0001' %}{{ row.opened | utc }}{% endif %}")
    found = [tag(made, name).body.fields.get("createdTimestamp") for name in ("M-1001", "M-1002")]
    assert found == [None, 1714521600000]


def test_a_server_that_cuts_results_short_gives_all_rows(mariadb_url: str) -> None:
    """Rows or words that a setting of the server leaves out would be removals that nobody asked for."""
    limits = "?init_command=SET%20sql_select_limit=1,group_concat_max_len=5"
    rows = sql_rows("pms", mariadb_url + limits, "SELECT n FROM matter ORDER BY n", {})
    assert [row["n"] for _, row in rows] == ["M-1001", "M-1002", "M-1003"]
    query = "SELECT GROUP_CONCAT(words ORDER BY n) AS words FROM matter"
    assert [row["words"] for _, row in sql_rows("pms", mariadb_url + limits, query, {})] == ["one,two,three"]
