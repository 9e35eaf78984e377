"""Rows of a MariaDB database are whole, and what its dates may be is told with the row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from syncengine.errors import Problems
from syncengine.manifest.desired import Desired, load
from syncengine.manifest.sources.sql import sql_rows
from syncengine.project.load import load_project
from tests import mariadb
from tests.manifest.loading import block, tag, write

pytestmark = pytest.mark.slow

TABLE = (
    "CREATE TABLE matter (n VARCHAR(20), opened DATE, closed DATETIME, worked TIME, words VARCHAR(20))",
    "INSERT INTO matter VALUES"
    " ('M-1001', '0000-00-00', '2024-00-00 10:00:00', '100:30:00', 'one'),"
    " ('M-1002', '2024-05-01', NULL, '-12:30:00', 'two'),"
    " ('M-1003', NULL, '2024-05-01 09:00:00', '09:30:00', 'three')",
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of a database whose server cuts results short, as an administrator may have it."""
    with mariadb.running() as url:
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            for statement in TABLE:
                connection.exec_driver_sql(statement)
        engine.dispose()
        yield url


def desired(folder: Path, url: str, field: str) -> Desired:
    source = "sql: {source: pms, query: SELECT * FROM matter WHERE opened IS NOT NULL}"
    text = block(source, f"name: '{{{{ row.n }}}}', {field}")
    write(folder, {"syncengine.yaml": "version: 1\nsources: {pms: {sql: {env: URL}}}\n", "manifests/m.yaml": text})
    return load(load_project(folder=folder, environ={"URL": url}))


def test_dates_and_times_are_those_of_the_table(url: str) -> None:
    """A date that is none, which MariaDB may hold, is text as the server writes it; a time is a duration."""
    rows = [row for _, row in sql_rows("pms", url, "SELECT opened, closed, worked FROM matter ORDER BY n", {})]
    assert [rows[0]["opened"], rows[0]["closed"]] == ["0000-00-00", "2024-00-00 10:00:00"]
    assert [rows[1]["closed"], rows[2]["closed"]] == [None, datetime(2024, 5, 1, 9)]
    assert [row["worked"] / timedelta(hours=1) for row in rows] == [100.5, -12.5, 9.5]


def test_a_date_that_is_none_is_told_with_its_row(tmp_path: Path, url: str) -> None:
    """It is no instant, so a tag with it is an error; a template may leave it out."""
    for field in ("createdTimestamp: '{{ row.opened | utc }}'", "createdTimestamp: '{{ row.opened }}T00:00:00Z'"):
        with pytest.raises(Problems) as refused:
            desired(tmp_path, url, field)
        (error,) = refused.value.found
        assert (error.file, error.line, error.data) == ("manifests/m.yaml", 3, ("pms", 1))
        assert "0000-00-00" in error.message
    value = "{% if row.opened | string > '0001' %}{{ row.opened | utc }}{% endif %}"
    made = desired(tmp_path, url, f'createdTimestamp: "{value}"')
    found = [tag(made, name).body.fields.get("createdTimestamp") for name in ("M-1001", "M-1002")]
    assert found == [None, 1714521600000]


def test_a_server_that_cuts_results_short_gives_all_rows(url: str) -> None:
    """Rows or words that a setting of the server leaves out would be removals that nobody asked for."""
    limits = "?init_command=SET%20sql_select_limit=1,group_concat_max_len=5"
    rows = sql_rows("pms", url + limits, "SELECT n FROM matter ORDER BY n", {})
    assert [row["n"] for _, row in rows] == ["M-1001", "M-1002", "M-1003"]
    query = "SELECT GROUP_CONCAT(words ORDER BY n) AS words FROM matter"
    assert [row["words"] for _, row in sql_rows("pms", url + limits, query, {})] == ["one,two,three"]
