"""Rows of databases and HTTP services are read for each plan, and nothing can be written through them."""

from __future__ import annotations

import base64
import gzip
import json
import signal
import sqlite3
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy.dialects import mysql, postgresql, sqlite

from syncengine.errors import Diagnostic, Problems
from syncengine.manifest.desired import Desired, load
from syncengine.manifest.sources import sql
from syncengine.manifest.sources.http import http_rows
from syncengine.manifest.sources.records import HttpQuery, SourceTrouble, memory_of, records
from syncengine.manifest.sources.sql import bounds_of, sql_rows
from syncengine.project.delivery_schema import Paging
from syncengine.project.load import load_project
from tests.cli.program import Project
from tests.dripping import BODY, HEADERS, dripping
from tests.manifest.loading import block, loop, write
from tests.support.quiet import QuietHandler, listening

pytestmark = pytest.mark.slow

ENVIRON = {"CRM_TOKEN": "a-secret", "PMS": "pms.db", "TEAM": "blue"}


def desired(folder: Path, settings: str, source: str, url: str = "{{ row.v }}", **environ: str) -> Desired:
    manifest = block(source, f"name: '{{{{ row.n }}}}', managedBy: '{url}'")
    write(folder, {"syncengine.yaml": f"version: 1\n{settings}\n", "manifests/m.yaml": manifest})
    return load(load_project(folder=folder, environ={**ENVIRON, **environ}))


def refused(folder: Path, settings: str, source: str, code: str = "bad-source", **environ: str) -> Diagnostic:
    with pytest.raises(Problems) as refusal:
        desired(folder, settings, source, **environ)
    (found,) = refusal.value.found
    assert (found.code, found.file, found.line) == (code, "manifests/m.yaml", 2)
    assert refusal.value.exit_code == (9 if code == "source-unreachable" else 8)
    assert "a-secret" not in found.message
    return found


@pytest.fixture
def database(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "pms.db")
    with connection:
        connection.execute("CREATE TABLE m (n TEXT, v TEXT, closed INT)")
        connection.executemany("INSERT INTO m VALUES (?, ?, ?)", [("A", "0123", 0), ("B", None, 0), ("C", "x", 1)])
    connection.close()
    return tmp_path


SQL = "sources: {pms: {sql: {env: PMS}}}"


def test_rows_of_a_query(database: Path) -> None:
    """A query uses a named source and parameters; NULL counts as absent, and rows are numbered from 1."""
    query = "sql: {source: pms, query: 'SELECT n, v FROM m WHERE closed = :c ORDER BY n', params: {c: 0}}"
    found = list(desired(database, SQL, query).resources.values())
    assert [(r.key.name, r.body.fields.get("managedBy")) for r in found] == [("A", "0123"), ("B", None)]
    assert [tuple(r.source.data or ()) for r in found] == [("pms", 1), ("pms", 2)]


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
    refused(database, SQL, f"sql: {{source: pms, query: '{query}'}}")
    connection = sqlite3.connect(database / "pms.db")
    assert connection.execute("SELECT count(*) FROM m").fetchone() == (3,)
    connection.close()


RECURSIVE = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c)"
ENDLESS = (f"{RECURSIVE} SELECT count(*) AS n FROM c", f"{RECURSIVE} SELECT x FROM c WHERE x < 0")


@pytest.mark.parametrize("query", ENDLESS)
def test_a_query_ends(database: Path, query: str) -> None:
    with pytest.raises(SourceTrouble, match=r"stopped after 0\.3 s"):
        list(sql_rows("pms", str(database / "pms.db"), query, {}, 0.3))


def _reads(process: int, file: Path) -> bool:
    """Whether a process has the file open."""
    return any(link.resolve() == file.resolve() for link in Path(f"/proc/{process}/fd").iterdir())


def test_a_query_can_be_interrupted(project: Project) -> None:
    write(project.folder, {"manifests/m.yaml": block(f"sql: {{file: ../r.db, query: '{ENDLESS[0]}'}}")})
    sqlite3.connect(project.folder / "r.db").execute("CREATE TABLE t (n)").connection.close()
    process = project.start("validate")
    while not _reads(process.pid, project.folder / "r.db"):
        time.sleep(0.05)
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


@pytest.mark.parametrize("columns", [1, 5, 20])
def test_the_memory_of_rows_is_estimated_well(columns: int) -> None:
    """The estimate is within 10 % of what Python allocates."""

    def rows() -> Iterator[tuple[int, dict[str, Any]]]:
        for n in range(1, 5001):
            yield n, {name: [f"{n}{name}", n * 1000, n / 3][m % 3] for m, name in enumerate(names)}

    names = [f"c{n}" for n in range(columns)]
    tracemalloc.start()
    made = records("r", rows())
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert sum(map(memory_of, made)) == pytest.approx(taken, rel=0.1)


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


class Crm(QuietHandler):
    def answer(self) -> None:
        where, query = urlsplit(self.path), parse_qs(urlsplit(self.path).query)
        page = int(query.get("page", ["1"])[0])
        if where.path == "/api/basic":
            return self._say(200, [{"n": self.headers["Authorization"]}])
        if where.path == "/api/html":
            return self.say(200, b"<html>Sign in</html>", {"Content-Type": "text/html; charset=utf-8"})
        if self.headers["Authorization"] != "a-secret":
            return self._say(401, {})
        items = [{"n": f"P{page}-{n}", "v": 1} for n in range(2)] if page <= 2 else []
        following = f"/api/list?page={page + 1}" if page < 2 else None
        many = [{"n": f"P{page}-{n}", "v": n} for n in range(500)]
        answers = {
            "/api/endless": (200, {"data": {"items": many}}),
            "/api/list": (200, {"data": {"items": items}, "next": following}),
            "/api/moved": (302, {}),
            "/api/echo": (200, [{"n": f"{where.path} {sorted(query.items())}"}] if page < 2 else []),
            "/api/broken": (500, {}),
            "/api/half": (200, {"data": {"items": items}, "next": "/api/broken"}),
            "/api/text": (200, "no list"),
            "/api/circle": (200, {"data": {"items": items}, "next": f"/api/circle?page={3 - page}"}),
            "/api/same": (200, {"data": {"items": [{"n": "A", "v": 1}]}}),
        }
        return self._say(*answers.get(where.path, (404, {})))

    def _say(self, status: int, body: object) -> None:
        headers = {
            302: {"Location": "http://example.com/"},
            500: {"Retry-After": "0"},  # or else the retries wait for eight seconds
        }
        self.say(status, json.dumps(body).encode(), {"Content-Type": "application/json", **headers.get(status, {})})


@pytest.fixture
def crm() -> Iterator[str]:
    with listening(Crm) as url:
        yield f"sources: {{crm: {{http: {{url: '{url}/api', headers: {{Authorization: {{env: CRM_TOKEN}}}}}}}}}}"


CRM_URL = "sources: {crm: {http: {env: CRM_URL}}}"


def url_in(settings: str) -> str:
    return settings.partition("url: '")[2].partition("'")[0]


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("path: '/echo?status=open&a=1', query: {b: 2}", "[('a', ['1']), ('b', ['2']), ('status', ['open'])]"),
        ("path: '/echo?status=open', query: {status: all}", "[('status', ['all'])]"),
        ("path: '/echo?status=open', paging: {page: page}", "[('page', ['1']), ('status', ['open'])]"),
        ("path: '/{{ var.where }}', query: {b: '{{ env.TEAM }} & {{ var.where }}'}", "[('b', ['blue & echo'])]"),
    ],
)
def test_a_path_may_have_parameters(tmp_path: Path, crm: str, source: str, asked: str) -> None:
    """Parameters of `query` and `paging` are added to those of the path; all may contain variables."""
    settings = f"{crm}\nvariables: {{where: echo}}\nallowEnv: [TEAM]"
    (found,) = desired(tmp_path, settings, f"http: {{source: crm, {source}}}", url="x").resources.values()
    assert found.key.name == f"/api/echo {asked}"


def test_a_query_has_variables_for_parameters(database: Path) -> None:
    """A parameter keeps its type, and a variable is never inserted into the query's text."""
    settings = f"{SQL}\nvariables: {{closed: '1', name: \"C' OR 'a' = 'a\"}}"
    query = "sql: {source: pms, query: 'SELECT n, v FROM m WHERE closed = :c', params: {c: '{{ var.closed | int }}'}}"
    assert [key.name for key in desired(database, settings, query).resources] == ["C"]
    query = "sql: {source: pms, query: 'SELECT n, v FROM m WHERE n = :n', params: {n: '{{ var.name }}'}}"
    assert not desired(database, settings, query).resources


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            "sql: {source: pms, query: \"SELECT '{{ var.name }}' AS n\"}",
            "a query cannot contain templates: write `:name`",
        ),
        ("sql: {source: pns, query: SELECT 1}", "did you mean `pms`?"),
        ("sql: {source: pms, query: 'SELECT 1', params: {c: '{{ var.nam }}'}}", "did you mean `name`?"),
        ("sql: {source: pms, query: 'SELECT 1', params: {c: '{{ row.n }}'}}", "`row` is undefined"),
        (
            "sql: {source: pms, query: 'SELECT n FROM m WHERE n = :c', params: {c: '{{ 10 ** 30 }}'}}",
            "pms: a parameter is a larger number than SQLite knows",
        ),
        ("csv: '../{{ var.name'", "the template is not valid"),
        ("csv: '../{{ var.up }}/x.csv'", "leads outside the project"),
    ],
)
def test_a_source_that_is_asked_for_wrongly(database: Path, source: str, words: str) -> None:
    """Templates are refused in a query; elsewhere they see only variables, and their result is checked."""
    settings = f"{SQL}\nvariables: {{name: a, up: ../..}}"
    assert words in refused(database, settings, source).message


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


def test_a_text_template_reads_live_sources(tmp_path: Path, database: Path, crm: str) -> None:
    write(tmp_path, {"syncengine.yaml": f"version: 1\n{crm[:-1]}, pms: {{sql: {{env: PMS}}}}}}\n"})
    sql = loop("source='pms', query='SELECT n FROM m WHERE closed = :c ORDER BY n', params={'c': 0}")
    http = loop("source='crm', path='/list', items='data.items', page='page'")
    write(tmp_path, {"manifests/a.yaml.j2": sql, "manifests/b.yaml.j2": http})
    found = load(load_project(folder=tmp_path, environ=ENVIRON)).resources.values()
    assert [(r.key.name, *(r.source.data or ())) for r in found] == [
        *(("A", "pms", 1), ("B", "pms", 2)),
        *(("P1-0", "crm", 1), ("P1-1", "crm", 2), ("P2-0", "crm", 3), ("P2-1", "crm", 4)),
    ]
    write(tmp_path, {"manifests/a.yaml.j2": loop("source='pms', query='DELETE FROM m'")})
    with pytest.raises(Problems) as refusal:
        load(load_project(folder=tmp_path, environ=ENVIRON))
    assert [(d.code, d.file, d.line) for d in refusal.value.found] == [("bad-source", "manifests/a.yaml.j2", 2)]


def test_a_user_and_password_in_a_url_are_sent_as_such(tmp_path: Path, crm: str) -> None:
    """They are sent as Basic authentication; such a URL comes from the environment."""
    url = url_in(crm).replace("http://", "http://us%40r:a-secret@")
    source = "http: {source: crm, path: /basic}"
    (made,) = desired(tmp_path, CRM_URL, source, "x", CRM_URL=url).resources.values()
    assert made.key.name == "Basic " + base64.b64encode(b"us@r:a-secret").decode()


@pytest.mark.parametrize(
    ("path", "words"), [("path: /api/x", "crm: /api/x answered with status 401"), ("", "crm: its URL answered")]
)
def test_a_key_in_the_path_of_a_url_is_not_shown(tmp_path: Path, crm: str, path: str, words: str) -> None:
    """Errors show only the path from the manifest, and not the source's own URL."""
    url = url_in(crm) + "/sk-THEKEY/"
    message = refused(tmp_path, CRM_URL, f"http: {{source: crm, {path}}}", CRM_URL=url).message
    assert (words in message, "THEKEY" in message) == (True, False)


@pytest.mark.parametrize("before", [HEADERS, BODY], ids=["headers", "body"])
def test_an_answer_that_drips_is_not_waited_for(before: bytes) -> None:
    """Each answer has its time, and so have all pages: one that drips is a timeout, and is retried as long as that."""
    with dripping(before) as server:
        with pytest.raises(SourceTrouble, match=r"cannot be read: (no answer in time|the answer began)"):
            list(http_rows("crm", server.url, {}, 0.1, HttpQuery(), seconds=1.0))
        with pytest.raises(SourceTrouble, match=r"crm: all pages together take longer than 0\.5 s"):
            list(http_rows("crm", server.url, {}, 5.0, HttpQuery(), 0.5))


def test_an_answer_that_unpacks_to_too_much_is_an_error() -> None:
    packed = gzip.compress(bytes(128 * 1024 * 1024), 1)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    whole = {b"/": head % len(packed) + packed}
    with dripping(BODY, whole) as server, pytest.raises(SourceTrouble, match="more than 64 MB"):
        list(http_rows("crm", server.url, {}, 5.0, HttpQuery()))


def test_pages_without_an_end_are_an_error(tmp_path: Path, crm: str) -> None:
    """A circle of links and a paging parameter that the service ignores are found."""
    source = "http: {source: crm, path: /%s, items: data.items, paging: {%s}}"
    circle = refused(tmp_path, crm, source % ("circle", "next: next"), "source-partial").message
    same = refused(tmp_path, crm, source % ("same", "page: page"), "source-partial").message
    assert "two pages are the same" in circle
    assert "is `page` the right parameter" in same


@pytest.mark.parametrize(
    ("limit", "words"),
    [({"pages": 3}, "there are more than 3 pages"), ({"most": 10**6}, "the rows take more than 1 MB")],
)
def test_pages_are_limited_in_number_and_in_memory(crm: str, limit: dict[str, Any], words: str) -> None:
    """All pages together, even when each is small."""
    question = HttpQuery("/endless", items=("data", "items"), paging=Paging(page="page"))
    with pytest.raises(SourceTrouble, match=f"crm: {words}"):
        list(http_rows("crm", url_in(crm), {"Authorization": "a-secret"}, 5.0, question, **limit))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/../x", "is outside"),
        ("/%2e%2e/x", "is outside"),
        *((f"/a/{way}/x", "is outside") for way in ("..%2f..", "..%2F..%2Fx", "%252e%252e", "..%5c..", "..;a=b")),
        ("/html", "crm: the answer of /html is not JSON, but a web page"),
        ("/broken", "answered with status 500"),
        ("/half", "crm: /broken answered with status 500"),
        ("http://example.com", "must be below"),
        ("/moved", "answered with status 302: it redirects to http://example.com, which is not followed"),
        ("/missing", "answered with status 404"),
        ("/text", "no `data.items`"),
    ],
)
def test_nothing_is_asked_of_others(tmp_path: Path, crm: str, path: str, words: str) -> None:
    """Redirects, other hosts and paths above the source's URL are refused, and failures are errors."""
    source = f"http: {{source: crm, path: '{path}', items: data.items, paging: {{next: next}}}}"
    code = "source-unreachable" if "status 500" in words else "bad-source"
    assert words in refused(tmp_path, crm, source, code).message
