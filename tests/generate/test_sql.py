"""Rows of databases are read for each plan, and nothing can be written through them."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy.dialects import mysql, postgresql, sqlite

from syncengine.errors import Problems
from syncengine.manifest.desired import Desired, load
from syncengine.manifest.sources import sql
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.manifest.sources.sql import bounds_of, sql_rows
from syncengine.project.load import load_project
from tests.cli.program import Project
from tests.manifest.loading import block, loop, write
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
    for asked, names in (("SELECT n FROM m WHERE closed = :c ORDER BY n", ["A", "B"]), ("DELETE FROM m", None)):
        call = loop(f"source='pms', query='{asked}', params={{'c': 0}}")
        write(database, {"manifests/m.yaml": "", "manifests/a.yaml.j2": call})
        try:
            made = load(load_project(folder=database, environ={"PMS": "pms.db"})).resources
        except Problems as refusal:
            assert [(d.code, d.file, d.line) for d in refusal.found] == [("bad-source", "manifests/a.yaml.j2", 2)]
            made = None
        assert (made and [key.name for key in made]) == names


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
