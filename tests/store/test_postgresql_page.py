"""The steps of docs/state.md work: a shared state, a job that may only read, a second state in a schema."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from syncengine.state.tables import STATE
from tests.cli.service import KEY, serving
from tests.manifest.loading import write
from tests.support import warm
from tests.support.pages import ROOT, blocks

PAGE = ROOT / "docs/state.md"


def execute(url: str, *texts: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for text in texts:
            connection.exec_driver_sql(text)
    engine.dispose()


def test_a_state_moves_to_a_schema_in_which_a_role_may_only_read(tmp_path: Path, postgresql_url: str) -> None:
    """From a file; the next apply sends its resources again. The role can plan, and reads no posted time.

    It has the grants of the page, which are for the tables of the state alone. `apply` is refused as well.
    """

    def runs(state: str, *arguments: str) -> warm.Ended:
        environ = {"HOME": str(tmp_path), "SYNCENGINE_STATE": state, "SYNCENGINE_API_KEY": KEY}
        return warm.run(arguments, folder=tmp_path, environ=environ)

    again = "DROP SCHEMA IF EXISTS staging CASCADE", "DROP ROLE IF EXISTS planner"
    execute(postgresql_url, *again, "CREATE SCHEMA staging", "CREATE ROLE planner LOGIN PASSWORD 'p'")
    staging, file = f"{postgresql_url}?options=-csearch_path%3Dstaging", str(tmp_path / "state.db")
    planner = sa.make_url(staging).set(username="planner", password="p").render_as_string(hide_password=False)
    with serving() as service:
        settings = blocks(PAGE, "yaml")[0].replace("https://wisetime.com/connect/api", f'"{service.url}"')
        write(tmp_path, {"syncengine.yaml": settings, "manifests/tags.yaml": "tags: [{name: A}]\n"})
        assert runs(file, "apply", "-y").code == 0
        assert runs(file, "state", "export", "-o", "state.jsonl").code == 0
        assert runs(staging, "state", "import", "state.jsonl", "-y").code == 0
        assert "1 to update" in runs(staging, "plan").out
        assert runs(staging, "apply", "-y").code == 0
        execute(staging, *blocks(PAGE, "sql")[0].replace("public", "staging").strip().rstrip(";").split(";\n"))
        planned = runs(planner, "plan")
        assert (planned.code, planned.out.splitlines()[0]) == (0, "No changes. 1 resource matches the recorded state.")
        for command in (("state", "list"), ("state", "export"), ("state", "history")):
            assert runs(planner, *command).code == 0
        write(tmp_path, {"manifests/tags.yaml": "tags: [{name: A}, {name: B}]\n"})
        assert runs(planner, "plan", "--detailed-exitcode").code == 2
        for command in (("apply", "-y"), ("time", "inbox"), ("time", "show", "g"), ("time", "audit")):
            refused = runs(planner, *command)
            assert (refused.code, "[state-rights]" in refused.err) == (1, True), (command, refused)
    readable = sa.text(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'staging'::regnamespace"
        " AND has_table_privilege('planner', oid, 'SELECT')"
    )
    engine = sa.create_engine(staging)
    with engine.connect() as connection:
        assert set(connection.execute(readable).scalars()) == {table.name for table in STATE}
    engine.dispose()
