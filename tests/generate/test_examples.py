"""The examples that are made of data are planned as they stand."""

from __future__ import annotations

import json
import runpy
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.program import REPOSITORY, Project

FOLDER = REPOSITORY / "manifests" / "from-data"


@pytest.fixture
def examples(project: Project) -> Project:
    shutil.copytree(REPOSITORY / "manifests", project.folder / "manifests")
    return project


@pytest.mark.parametrize(
    ("manifest", "made"),
    [
        ("from-csv.yaml", {"tag/EX-CSV-1001": ("matters.csv", 2), "tag/EX-CSV-1002": ("matters.csv", 3)}),
        ("from-sql.yaml", {"tag/EX-SQL-2001": ("matters.db", 1), "tag/EX-SQL-2002": ("matters.db", 2)}),
        (
            "from-template.yaml.j2",
            {
                "category/client-mueller-soehne-gmbh": ("matters.csv", 2),
                "category/client-example-trading-ltd": ("matters.csv", 3),
            },
        ),
    ],
)
def test_each_example_is_planned(examples: Project, manifest: str, made: dict[str, tuple[str, int]]) -> None:
    """What is to be created of it, each with its row; the document is as its schema has it."""
    done = examples.run("plan", "--format", "json")
    assert done.code == 0, (done.out, done.err)
    found = {
        change["address"]: (change["source"]["data"]["file"], change["source"]["data"]["row"])
        for change in done.document["changes"]
        if change["source"]["file"] == f"manifests/from-data/{manifest}"
    }
    folder = "manifests/from-data"
    assert found == {address: (f"{folder}/{file}", row) for address, (file, row) in made.items()}
    assert_fits("plan", done.document)


def test_reports_of_generated_resources_are_as_their_schema_has_them(examples: Project) -> None:
    """With the rows in them."""
    done = examples.run("apply", "-y", "--format", "json")
    assert done.code == 0, (done.out, done.err)
    rows = [result["source"]["data"] for result in done.document["results"] if "data" in result["source"]]
    assert {"file": "manifests/from-data/matters.csv", "row": 2} in rows
    assert_fits("report", done.document)


def assert_fits(name: str, document: Any) -> None:
    schema = json.loads((REPOSITORY / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)


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
