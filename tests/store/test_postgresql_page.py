"""The steps of docs/state.md work: a shared state, a job that may only read, a second state in a schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.state.tables import STATE
from tests.cli.service import KEY, serving
from tests.support import warm
from tests.support.pages import ROOT, blocks

PAGE = ROOT / "docs/state.md"


@dataclass(frozen=True)
class Reader:
    """A reader of the page, with its project and a service."""

    folder: Path
    service: str

    def declare(self, *tags: str) -> None:
        listed = ", ".join(f"{{name: {name}}}" for name in tags)
        (self.folder / "manifests").mkdir(exist_ok=True)
        (self.folder / "manifests/tags.yaml").write_text(f"tags: [{listed}]\n")

    def runs(self, state: str, *arguments: str) -> warm.Ended:
        environ = {"HOME": str(self.folder), "SYNCENGINE_STATE": state, "SYNCENGINE_API_KEY": KEY}
        return warm.run(arguments, folder=self.folder, environ=environ)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with serving() as service:
        settings = blocks(PAGE, "yaml")[0].replace("https://wisetime.com/connect/api", f'"{service.url}"')
        (tmp_path / "syncengine.yaml").write_text(settings)
        reader = Reader(tmp_path, service.url)
        reader.declare("A")
        yield reader


def schema(url: str, name: str, *statements: str) -> str:
    """Create an empty schema as on the page, execute these statements, and return its URL."""
    execute(url, f"DROP SCHEMA IF EXISTS {name} CASCADE", f"CREATE SCHEMA {name}", *statements)
    return f"{url}?options=-csearch_path%3D{name}"


def execute(url: str, *texts: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for text in texts:
            connection.exec_driver_sql(text)
    engine.dispose()


def test_a_role_that_may_only_read_can_plan_and_reads_no_posted_time(reader: Reader, postgresql_url: str) -> None:
    """With the grants of the page, which are for the tables of the state alone. `apply` is refused as well."""
    role = ("DROP ROLE IF EXISTS planner", "CREATE ROLE planner LOGIN PASSWORD 'p'")
    staging = schema(postgresql_url, "staging", *role)
    assert reader.runs(staging, "apply", "-y").code == 0
    execute(staging, *blocks(PAGE, "sql")[0].replace("public", "staging").strip().rstrip(";").split(";\n"))
    planner = sa.make_url(staging).set(username="planner", password="p").render_as_string(hide_password=False)
    planned = reader.runs(planner, "plan")
    assert (planned.code, planned.out.splitlines()[0]) == (0, "No changes. 1 resource matches the recorded state.")
    for command in (("state", "list"), ("state", "export"), ("state", "history")):
        assert reader.runs(planner, *command).code == 0
    reader.declare("A", "B")
    assert reader.runs(planner, "plan", "--detailed-exitcode").code == 2
    for command in (("apply", "-y"), ("time", "inbox"), ("time", "show", "g"), ("time", "audit")):
        refused = reader.runs(planner, *command)
        assert (refused.code, "[state-rights]" in refused.err) == (1, True), (command, refused)
    readable = sa.text(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'staging'::regnamespace"
        " AND has_table_privilege('planner', oid, 'SELECT')"
    )
    engine = sa.create_engine(staging)
    with engine.connect() as connection:
        assert set(connection.execute(readable).scalars()) == {table.name for table in STATE}
    engine.dispose()


def test_a_state_moves_to_postgresql_as_the_page_says(reader: Reader, postgresql_url: str) -> None:
    """From a file; the next apply sends its resources again."""
    moved, file = schema(postgresql_url, "moved"), str(reader.folder / "state.db")
    assert reader.runs(file, "apply", "-y").code == 0
    assert reader.runs(file, "state", "export", "-o", "state.jsonl").code == 0
    imported = reader.runs(moved, "state", "import", "state.jsonl", "-y")
    assert imported.code == 0, imported
    assert "1 to update" in reader.runs(moved, "plan").out
