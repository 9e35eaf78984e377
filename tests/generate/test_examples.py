"""The examples that are made of data are planned as they stand."""

from __future__ import annotations

import runpy
import sqlite3
from pathlib import Path

import pytest

from syncengine.desired import Desired, load
from syncengine.resource import Row
from syncengine.settings import load_project

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "manifests" / "from-data"


@pytest.fixture(scope="module")
def examples() -> Desired:
    return load(load_project(folder=REPOSITORY, environ={}))


@pytest.mark.parametrize(
    ("manifest", "names", "first_row"),
    [
        ("from-csv.yaml", ["EX-CSV-1001", "EX-CSV-1002"], Row("manifests/from-data/matters.csv", 2)),
        ("from-sql.yaml", ["EX-SQL-2001", "EX-SQL-2002"], Row("manifests/from-data/matters.db", 1)),
        (
            "from-template.yaml.j2",
            ["client-mueller-soehne-gmbh", "client-example-trading-ltd"],
            Row("manifests/from-data/matters.csv", 2),
        ),
    ],
)
def test_each_example_is_planned(examples: Desired, manifest: str, names: list[str], first_row: Row) -> None:
    """What it makes, and where the first of it comes from."""
    made = [r for r in examples.resources.values() if r.source.file == f"manifests/from-data/{manifest}"]
    assert [r.key.name for r in made] == names
    assert made[0].source.data == first_row


def test_the_database_is_what_its_script_makes(tmp_path: Path) -> None:
    """The file in the repository and the script do not part."""
    script = runpy.run_path(str(FOLDER / "make_database.py"))
    script["main"](tmp_path / "matters.db")
    assert rows(tmp_path / "matters.db") == rows(FOLDER / "matters.db")


def rows(path: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT * FROM matter").fetchall()
    connection.close()
    return found
