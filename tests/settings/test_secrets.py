"""Secrets, also of connections, are kept outside of the project file, read when they are needed, and never shown."""

import sqlite3
import traceback
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from syncengine.errors import ExitCode, Problems
from syncengine.manifest.desired import load
from syncengine.project.connections import Connections
from syncengine.project.delivery_schema import FILES, SINKS
from syncengine.project.load import load_project
from syncengine.project.model import Project
from syncengine.project.references import Reference
from syncengine.project.types import SOME_TEXT
from tests.manifest.loading import block, write

SECRET = "s3cr3t-V4lue"  # unlike any text of a message


def project(folder: Path, text: str, **environ: str) -> Project:
    (folder / "syncengine.yaml").write_text(text)
    return load_project(folder=folder, environ=environ)


LITERALS = {
    "key": f"service: {{apiKey: {SECRET}}}",
    "quoted key": f'service: {{apiKey: "{SECRET}"}}',
    "key as a list": f"service: {{apiKey: [{SECRET}]}}",
    "key under another name": f"service: {{apiKey: {{value: {SECRET}}}}}",
    "key as a variable's name": f"service: {{apiKey: {{env: '{SECRET}'}}}}",
    "state": f"state: postgresql+psycopg://user:{SECRET}@host/db",
    "state with a slash": f"state: postgresql://user:{SECRET}/x@host/db",
    "state with a parameter": f"state: postgresql://host/db?password={SECRET}",
    "source": f"sources: {{pms: {{sql: 'mysql://u:{SECRET}@h/d'}}}}",
    "nested source": f"sources: {{crm: {{http: {{url: 'https://u:{SECRET}@h'}}}}}}",
    "base URL": f"service: {{baseUrl: 'https://user:{SECRET}@host'}}",
    "base URL without a user": f"service: {{baseUrl: 'https://{SECRET}@host'}}",
    "base URL with a query": f"service: {{baseUrl: 'https://host?key={SECRET}'}}",
    "environment": f"environments: {{prod: {{service: {{apiKey: {SECRET}}}}}}}",
}


@pytest.mark.parametrize("line", LITERALS.values(), ids=LITERALS.keys())
def test_a_secret_in_the_project_file_is_refused_and_not_shown(line: str, tmp_path: Path) -> None:
    with pytest.raises(Problems) as refused:
        project(tmp_path, f"version: 1\n{line}\n")
    (diagnostic,) = refused.value.found
    assert diagnostic.line == 2
    shown = "".join(traceback.format_exception(refused.value)) + repr(refused.value.found)
    assert SECRET not in shown


def test_the_text_of_a_project_contains_no_secret(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET)
    p = project(
        tmp_path,
        "version: 1\nservice: {apiKey: {file: key}}\nstate: {env: STATE}\n",
        STATE=f"postgresql://u:{SECRET}@h/d",
        SYNCENGINE_STATE=f"postgresql://v:{SECRET}@h/d",
    )
    assert (p.api_key(), p.state) == (SECRET, f"postgresql://v:{SECRET}@h/d")
    assert SECRET not in repr(p) + str(p) + repr(p.service.api_key)
    assert "key" in repr(p.service.api_key)


def test_a_key_file_is_read_again(tmp_path: Path) -> None:
    """A rotated key is found after a 401. The line end is not part of the key."""
    p = project(tmp_path, "version: 1\nservice: {apiKey: {file: key}}\n")
    (tmp_path / "key").write_text("one\n")
    assert p.api_key() == "one"
    (tmp_path / "key").write_text("two\r\n")
    assert p.api_key() == "two"


def test_a_project_can_be_loaded_without_its_secrets(tmp_path: Path) -> None:
    """A missing secret is an error with exit code 8 only when it is used; it names each way to set it."""
    lost = project(tmp_path, "version: 1\nservice: {apiKey: {env: NO_KEY}}\nstate: {file: no-file}\n")
    bare = project(tmp_path, "version: 1\n")
    for ask, names in (
        (lost.api_key, ("NO_KEY",)),
        (lambda: lost.state, ("no-file",)),
        (bare.base_url, ("service.baseUrl", "SYNCENGINE_BASE_URL")),
        (bare.api_key, ("service.apiKey", "SYNCENGINE_API_KEY")),
    ):
        with pytest.raises(Problems) as refused:
            ask()
        (found,) = refused.value.found
        assert (found.code, refused.value.exit_code) == ("missing-setting", ExitCode.INVALID)
        assert [name for name in names if name not in found.message] == []


@pytest.mark.parametrize("url", [f"https://u:{SECRET}@h", f"https://h?k={SECRET}", SECRET])
def test_a_bad_url_in_the_environment_is_not_shown(url: str, tmp_path: Path) -> None:
    with pytest.raises(Problems) as refused:
        project(tmp_path, "version: 1\n", SYNCENGINE_BASE_URL=url)
    assert "SYNCENGINE_BASE_URL" in refused.value.found[0].message
    assert SECRET not in repr(refused.value.found)


SINK = "postedTime: {deliver: [{name: a, sql: {%s, statement: INSERT INTO t VALUES (1)}}]}"
DATABASES = {
    "state": "state: data/x.db",
    "state as a URL": "state: sqlite:///data/x.db",
    "state as a URL of two slashes": "state: sqlite://data/x.db",
    "state by variable": "state: {env: PLACE}",
    "state by file": "state: {file: place}",
    "state of an environment": "environments: {prod: {state: {env: PLACE}}}",
    "sink": SINK % "url: data/x.db",
    "sink by variable": SINK % "url: {env: PLACE}",
    "sink by a URL in a variable": SINK % "url: {env: URL}",
    "sink by source": f"sources: {{s: {{sql: data/x.db}}}}\n{SINK % 'source: s'}",
    "sink by source by variable": f"sources: {{s: {{sql: {{env: PLACE}}}}}}\n{SINK % 'source: s'}",
    "sink by source of an environment": (
        f"sources: {{s: {{sql: no.db}}}}\n{SINK % 'source: s'}\n"
        "environments: {prod: {sources: {s: {sql: data/x.db}}}}"
    ),
}
PLACES = {"PLACE": "data/x.db", "URL": "sqlite:///data/x.db?timeout=5"}


def database(folder: Path, name: str = "data/x.db") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / name)) as connection, connection:
        connection.execute("CREATE TABLE t (n)")
        connection.execute("INSERT INTO t VALUES ('A')")


ROWS = "sql: {file: ../%s, query: SELECT n FROM t}"
REFUSED = "for a secret or posted time"


def rows_of(folder: Path, source: str, lines: str, **environ: str) -> str:
    """The names of the tags made from a source's rows, or the errors."""
    write(folder, {"manifests/m.yaml": block(source), "place": "data/x.db\n"})
    try:
        return ", ".join(key.name for key in load(project(folder, f"version: 1\n{lines}\n", **environ)).resources)
    except Problems as refused:
        return "; ".join(f"{found.code}: {found.message}" for found in refused.found)


@pytest.mark.parametrize("beside", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("lines", DATABASES.values(), ids=DATABASES.keys())
def test_a_database_that_the_program_writes_is_refused_as_data(tmp_path: Path, lines: str, beside: str) -> None:
    """State, inbox and databases of SQL sinks are recognised however the project file names them."""
    database(tmp_path, f"data/x.db{beside}")
    assert REFUSED in rows_of(tmp_path, ROWS % f"data/x.db{beside}", lines, **PLACES)


@pytest.mark.parametrize("of", ["%s", "environments: {prod: {%s}}"])
def test_the_output_of_a_sink_is_refused_as_data(tmp_path: Path, of: str) -> None:
    """Posted time is confidential, and generated tags are shown in plans. Sinks of every environment count."""
    write(tmp_path, {"time.jsonl": '{"n": "A"}\n'})
    sinks = of % "postedTime: {deliver: [{name: a, jsonl: {path: time.jsonl}}]}"
    assert REFUSED in rows_of(tmp_path, "jsonl: ../time.jsonl", sinks)


def test_every_kind_of_sink_lists_its_files() -> None:
    """Each field with a path is in `FILES`, so templates cannot read it; a sink with a database has `url`."""
    for kind, model in SINKS.items():
        shapes = TypeAdapter(model).json_schema()["properties"].items()
        paths = [name for name, shape in shapes if {**shape, **SOME_TEXT} == shape]
        assert list(FILES.get(model, ())) == paths, kind
        assert paths or "url" in model.model_fields, kind


def test_a_state_is_recognised_under_any_name(tmp_path: Path) -> None:
    """Examples are a file named like a kind of database, and the log of a state behind a link."""
    database(tmp_path, "sqlite.db")
    database(tmp_path, "data/real.db-wal")
    (tmp_path / "link.db").symlink_to("data/real.db")
    assert REFUSED in rows_of(tmp_path, ROWS % "sqlite.db", "state: sqlite.db")
    assert REFUSED in rows_of(tmp_path, ROWS % "data/real.db-wal", "state: link.db")


def test_other_databases_are_read_as_data(tmp_path: Path) -> None:
    """That of a sink if `sources:` names it, which is explicit and reviewed; any if the state's place is unknown."""
    database(tmp_path)
    named = f"sources: {{s: {{sql: data/x.db}}}}\n{SINK % 'source: s'}"
    assert rows_of(tmp_path, "sql: {source: s, query: SELECT n FROM t}", named) == "A"
    for state in ("{env: PLACE}", "{file: nowhere}"):
        assert rows_of(tmp_path, ROWS % "data/x.db", f"state: {state}") == "A"
    elsewhere = "postgresql://host/data/x.db"
    assert rows_of(tmp_path, ROWS % "data/x.db", "state: {env: PLACE}", PLACE=elsewhere) == "A"


PROJECT = """
version: 1
sources:
  ledger: {sql: 'sqlite:///ledger.db'}
  pms: {http: {url: {env: PMS}, headers: {X-Key: {env: KEY}, X-Team: blue}, timeout: 5s}}
postedTime:
  deliver:
    - {name: a, sql: {source: ledger, statement: SELECT 1}}
    - {name: b, sql: {url: {env: TARGET}, statement: SELECT 1}}
    - {name: c, http: {source: pms, headers: {X-Team: red}, json: {}}}
"""


def connections(folder: Path, environ: dict[str, str]) -> tuple[Connections, tuple[object, ...]]:
    (folder / "syncengine.yaml").write_text(PROJECT)
    project = load_project(folder=folder, environ={})
    section = project.posted_time
    assert section is not None
    sinks = (each.sql or each.http for each in section.deliver or ())
    return Connections(project.sources, project.root, environ), tuple(sinks)


def test_a_database_is_found_by_its_source_or_by_its_own_url(tmp_path: Path) -> None:
    """Paths are relative to the project. The message about a missing URL names the sink."""
    found, (named, own, _) = connections(tmp_path, {"TARGET": "targets.db"})
    assert found.database(named, "a") == ("source ledger", f"sqlite:///{tmp_path}/ledger.db")
    assert found.database(own, "b") == ("b", str(tmp_path / "targets.db"))
    with pytest.raises(Problems) as missing:
        connections(tmp_path, {})[0].database(own, "b")
    assert missing.value.found[0].message.startswith("the database of b is missing: the environment variable TARGET is")


def test_a_sink_overrides_headers_of_its_source_and_rereads_secrets(tmp_path: Path) -> None:
    """A secret that changes is used from the next request on."""
    environ = {"PMS": "https://pms.example", "KEY": "one"}
    found, (*_, sink) = connections(tmp_path, environ)
    made = found.http(sink, "the URL of c", lambda name: f"the header {name}")
    assert (made.url(), made.timeout) == ("https://pms.example", 5.0)
    assert (set(made.headers), set(made.secrets)) == ({"X-Key", "X-Team"}, {"X-Key"})
    assert getattr(made.headers["X-Team"], "text", None) == "red"
    environ["KEY"] = "two"
    assert made.secrets["X-Key"]() == "two"


STRINGS = (
    *("Server=db;Database=x;User Id=sa;Password=hunter2;", "host=localhost dbname=x password=hunter2"),
    *("jdbc:postgresql://h/x?password=hunter2", "Data Source=orcl;PWD=hunter2"),
    *("DSN=pms;UID=a", "user:hunter2@host/db"),
)


@pytest.mark.parametrize("text", STRINGS)
def test_a_connection_string_is_no_url(tmp_path: Path, text: str) -> None:
    """The message shows the forms that are accepted, and not the string, which may contain a password."""
    connections = Connections({}, tmp_path, {"PMS": text})
    with pytest.raises(Problems) as refused:
        connections.database_url(Reference(env="PMS"), "the URL of the source pms")
    (found,) = refused.value.found
    assert found.message.startswith(
        "the URL of the source pms is neither a URL nor a path: expected a path, sqlite:///"
    )
    assert "hunter2" not in found.message
    assert connections.database_url("./a=b.db", "x") == str(tmp_path / "a=b.db")
