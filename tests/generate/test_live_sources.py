"""Rows of a database and of a service: read each time, and nothing can be written through them."""

from __future__ import annotations

import base64
import json
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from syncengine.desired import Desired, load
from syncengine.errors import Diagnostic, Problems
from syncengine.manifest.records import SourceTrouble
from syncengine.manifest.source_http import Question, http_rows
from syncengine.manifest.source_sql import sql_rows
from syncengine.settings import load_project
from tests.cli.program import Project
from tests.manifest.loading import write

ENVIRON = {"CRM_TOKEN": "a-secret", "PMS": "pms.db"}


def desired(folder: Path, settings: str, source: str) -> Desired:
    block = f"generate:\n  - forEach: {{{source}}}\n    tags: [{{name: '{{{{ row.n }}}}', url: '{{{{ row.v }}}}'}}]\n"
    write(folder, {"syncengine.yaml": f"version: 1\n{settings}\n", "manifests/m.yaml": block})
    return load(load_project(folder=folder, environ=ENVIRON))


def refused(folder: Path, settings: str, source: str) -> Diagnostic:
    with pytest.raises(Problems) as refusal:
        desired(folder, settings, source)
    (found,) = refusal.value.found
    assert (found.code, found.file, found.line) == ("bad-source", "manifests/m.yaml", 2)
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
    """A named connection and parameters; NULL is as if the field were not there; rows are numbered from 1."""
    query = "sql: {source: pms, query: 'SELECT n, v FROM m WHERE closed = :c ORDER BY n', params: {c: 0}}"
    found = list(desired(database, SQL, query).resources.values())
    assert [(r.key.name, r.body.fields.get("url")) for r in found] == [("A", "0123"), ("B", None)]
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
    ],
)
def test_a_query_can_only_ask(database: Path, query: str) -> None:
    """One SELECT, in a transaction that can write nothing."""
    refused(database, SQL, f"sql: {{source: pms, query: '{query}'}}")
    connection = sqlite3.connect(database / "pms.db")
    assert connection.execute("SELECT count(*) FROM m").fetchone() == (3,)
    connection.close()


@pytest.mark.parametrize(
    "query",
    [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) AS n FROM c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c WHERE x < 0",
    ],
)
def test_a_query_ends(database: Path, query: str) -> None:
    """Whether it has rows or not."""
    with pytest.raises(SourceTrouble, match="takes too long"):
        list(sql_rows("pms", str(database / "pms.db"), query, {}, 0.3))


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_a_query_can_be_interrupted(project: Project, signal_: signal.Signals) -> None:
    """By a person, or by whoever runs the pipeline."""
    query = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) AS n FROM c"
    block = "generate:\n  - forEach: {sql: {file: ../r.db, query: '%s'}}\n    tags: [{name: '{{ row.n }}'}]\n"
    write(project.folder, {"manifests/m.yaml": block % query})
    sqlite3.connect(project.folder / "r.db").execute("CREATE TABLE t (n)").connection.close()
    process = project.start("validate")
    time.sleep(3)
    process.send_signal(signal_)
    assert process.wait(timeout=10) == 130
    process.communicate()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT zeroblob(900000000)", "too big"),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT hex(zeroblob(4000000)) AS v FROM c",
            "more than fit",
        ),
    ],
)
def test_rows_do_not_fill_the_memory(database: Path, query: str, words: str) -> None:
    """Neither one value nor all of them."""
    with pytest.raises(SourceTrouble, match=words):
        for _ in sql_rows("pms", str(database / "pms.db"), query, {}, most=50_000_000):
            pass


def test_a_source_must_be_named_in_the_project_file(database: Path) -> None:
    """With the nearest name."""
    assert "did you mean `pms`?" in refused(database, SQL, "sql: {source: pns, query: SELECT 1}").message


class Crm(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        where, query = urlsplit(self.path), parse_qs(urlsplit(self.path).query)
        page = int(query.get("page", ["1"])[0])
        if where.path == "/api/basic":
            return self._say(200, [{"n": self.headers["Authorization"]}])
        if where.path == "/api/drip":
            return self._drip()
        if self.headers["Authorization"] != "a-secret":
            return self._say(401, {})
        items = [{"n": f"P{page}-{n}", "v": 1} for n in range(2)] if page <= 2 else []
        following = f"/api/list?page={page + 1}" if page < 2 else None
        answers = {
            "/api/list": (200, {"data": {"items": items}, "next": following}),
            "/api/elsewhere": (200, {"data": {"items": items}, "next": "http://example.com/x"}),
            "/api/moved": (302, {}),
            "/api/text": (200, "no list"),
            "/api/circle": (200, {"data": {"items": items}, "next": f"/api/circle?page={3 - page}"}),
            "/api/same": (200, {"data": {"items": [{"n": "A", "v": 1}]}}),
        }
        return self._say(*answers.get(where.path, (404, {})))

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        with suppress(OSError):
            for _ in range(20):
                self.wfile.write(b" ")
                time.sleep(0.1)

    def _say(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if status == 302:
            self.send_header("Location", "http://example.com/")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Not told."""


@pytest.fixture
def crm() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Crm)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/api"
    yield f"sources: {{crm: {{http: {{url: '{url}', headers: {{Authorization: {{env: CRM_TOKEN}}}}}}}}}}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("paging", ["{next: next}", "{page: page}"])
def test_pages_of_a_service(tmp_path: Path, crm: str, paging: str) -> None:
    """The next page's URL in the answer, or a parameter that counts; headers from the environment."""
    source = f"http: {{source: crm, path: /list, items: data.items, paging: {paging}}}"
    found = list(desired(tmp_path, crm, source).resources.values())
    assert [r.key.name for r in found] == ["P1-0", "P1-1", "P2-0", "P2-1"]
    assert [r.body.fields["url"] for r in found] == ["1"] * 4
    assert found[2].source.data == ("crm", 3)


def test_a_user_and_password_in_a_url_are_sent_as_such(tmp_path: Path, crm: str) -> None:
    """Basic authentication; the URL comes from the environment, since it holds a secret."""
    url = crm.partition("url: '")[2].partition("'")[0].replace("http://", "http://us%40r:a-secret@")
    block = "generate:\n  - forEach: {http: {source: crm, path: /basic}}\n    tags: [{name: '{{ row.n }}'}]\n"
    settings = "version: 1\nsources: {crm: {http: {env: CRM_URL}}}\n"
    write(tmp_path, {"syncengine.yaml": settings, "manifests/m.yaml": block})
    (made,) = load(load_project(folder=tmp_path, environ={"CRM_URL": url})).resources.values()
    assert made.key.name == "Basic " + base64.b64encode(b"us@r:a-secret").decode()


def test_an_answer_that_drips_is_not_waited_for(crm: str) -> None:
    """Each byte comes in time, and all of them would not."""
    url = crm.partition("url: '")[2].partition("'")[0]
    began = time.monotonic()
    with pytest.raises(SourceTrouble, match="too long"):
        list(http_rows("crm", url, {"Authorization": "a-secret"}, 5.0, Question("/drip"), 0.5))
    assert time.monotonic() - began < 4


def test_pages_without_an_end_are_an_error(tmp_path: Path, crm: str) -> None:
    """A circle of links, and a parameter that the service does not know."""
    source = "http: {source: crm, path: /%s, items: data.items, paging: {%s}}"
    assert "circle" in refused(tmp_path, crm, source % ("circle", "next: next")).message
    assert "every page is the same" in refused(tmp_path, crm, source % ("same", "page: page")).message


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/elsewhere", "leads out"),
        ("/../x", "leads out"),
        ("/%2e%2e/x", "leads out"),
        ("http://example.com", "not one below"),
        ("/moved", "answered 302"),
        ("/missing", "answered 404"),
        ("/text", "no `data`"),
    ],
)
def test_nothing_is_asked_of_others(tmp_path: Path, crm: str, path: str, words: str) -> None:
    """No redirect, no other host, no way up; what fails is an error."""
    source = f"http: {{source: crm, path: '{path}', items: data.items, paging: {{next: next}}}}"
    assert words in refused(tmp_path, crm, source).message
