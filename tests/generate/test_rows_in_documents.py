"""Plans and reports name the row of each generated resource, whatever its source."""

from __future__ import annotations

import sqlite3
from typing import Any

import jsonschema
import pytest

from syncengine.render.schemas import schemas
from tests.cli.program import Project

LIST = """number,title,client,status
C-1,"Opposition: ""Widget, improved"" #2",Müller & Söhne GmbH,open
C-2,Trade mark watch,Example Trading Ltd,closed
C-3,Licence agreement,Example Trading Ltd,open
"""
CSV = """generate:
  - forEach: {csv: matters.csv}
    when: row.status == 'open'
    tags: [{name: "{{ row.number }}", description: "{{ row.title }}"}]
"""
SQL = """generate:
  - forEach: {sql: {file: matters.db, query: SELECT number FROM matter WHERE closed IS NULL ORDER BY number}}
    tags: [{name: "{{ row.number }}"}]
"""
TEXT = """tagCategories:
{% for matter in data('matters.csv', distinct='client') %}
  - externalId: client-{{ matter.client | slug }}
    label: {{ matter.client | tojson }}
{% endfor %}
"""
MADE = {
    "csv.yaml": {"tag/C-1": ("matters.csv", 2), "tag/C-3": ("matters.csv", 4)},
    "sql.yaml": {"tag/S-1": ("matters.db", 1), "tag/S-3": ("matters.db", 2)},
    "text.yaml.j2": {
        "category/client-mueller-soehne-gmbh": ("matters.csv", 2),
        "category/client-example-trading-ltd": ("matters.csv", 3),
    },
}
"""What each manifest makes, with file and row: a line of a file, or a row of a query counted from 1."""


@pytest.fixture
def sources(project: Project) -> Project:
    folder = project.folder / "manifests"
    folder.mkdir()
    for name, text in {"matters.csv": LIST, "csv.yaml": CSV, "sql.yaml": SQL, "text.yaml.j2": TEXT}.items():
        (folder / name).write_text(text, encoding="utf-8")
    connection = sqlite3.connect(folder / "matters.db")
    with connection:
        connection.execute("CREATE TABLE matter (number, closed)")
        connection.execute("INSERT INTO matter VALUES ('S-1', NULL), ('S-2', '2026-01-01'), ('S-3', NULL)")
    connection.close()
    return project


def test_a_plan_names_the_row_of_each_resource(sources: Project) -> None:
    """Rows of files, queries and text templates are named, and the document fits its schema."""
    done = sources.run("plan", "--format", "json")
    assert done.code == 0, (done.out, done.err)
    for manifest, made in MADE.items():
        found = {
            change["address"]: (change["source"]["data"]["file"], change["source"]["data"]["row"])
            for change in done.document["changes"]
            if change["source"]["file"] == f"manifests/{manifest}"
        }
        assert found == {address: (f"manifests/{file}", row) for address, (file, row) in made.items()}
    assert_fits("plan", done.document)


def test_a_report_names_the_row_of_each_resource(sources: Project) -> None:
    done = sources.run("apply", "-y", "--format", "json")
    assert done.code == 0, (done.out, done.err)
    rows = [result["source"]["data"] for result in done.document["results"] if "data" in result["source"]]
    assert {"file": "manifests/matters.csv", "row": 2} in rows
    assert_fits("report", done.document)


def assert_fits(name: str, document: Any) -> None:
    jsonschema.Draft202012Validator(schemas()[f"{name}.schema.json"]).validate(document)
