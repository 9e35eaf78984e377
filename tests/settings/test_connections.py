"""Connections: a source's name, or a sink's own settings, give the URL, headers and secrets.

They are read when used.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from syncengine.errors import Problems
from syncengine.project.connections import Connections
from syncengine.project.load import load_project
from syncengine.project.references import Reference

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
