"""`adopt` records existing resources as if the program had created them, and sends nothing."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Project, category, tag
from tests.cli.service import Json, Service

CSV = (
    "name;description;category;keywords;metadata.Client;visibility;excludeTagNameKeyword;closedTimestamp\n"
    'A-1;"Opposition: #2\nagainst ""X""";acme;"one; two";no;PRIVATE;true;2024-05-01T09:00:00Z\nA-2;;;;;;;\n'
)


def adopt(project: Project, name: str, text: str, *arguments: str, code: int = 0) -> Json:
    (project.folder / name).write_text(text, encoding="utf-8")
    done = project.run("adopt", name, "--format", "json", *arguments)
    assert done.code == code, (done.out, done.err)
    return done.document


def test_a_table_is_adopted_value_by_value(project: Project, service: Service) -> None:
    """In CSV files, lists are separated by semicolons, each metadata name has a column, and empty cells set nothing."""
    asked = service.asked()
    assert adopt(project, "tags.csv", CSV)["adopted"] == ["tag/A-1", "tag/A-2"]
    row = project.rows()["tag/A-1"]
    assert row["fields"] == {
        "description": 'Opposition: #2\nagainst "X"',
        "category": "acme",
        "visibility": "PRIVATE",
        "excludeTagNameKeyword": True,
        "closedTimestamp": 1714554000000,
    }
    assert (row["keywords"], row["metadata"], row["doubtful"]) == (["one", "two"], {"Client": "no"}, False)
    assert project.rows()["tag/A-2"]["keywords"] == ["A-2"]
    assert service.asked() == asked


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_a_table_is_read_as_a_spreadsheet_saves_it(project: Project, encoding: str) -> None:
    """`adopt` reads the encodings that `init --from-csv` reads: on Windows, "CSV" is none of Unicode."""
    (project.folder / "tags.csv").write_bytes("name;description\nMÜL-1;Größe, 5 €\n".encode(encoding))
    assert project.run("adopt", "tags.csv").code == 0
    assert project.rows()["tag/MÜL-1"]["fields"]["description"] == "Größe, 5 €"


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n\r\n"])
def test_any_line_ends_are_read(project: Project, end: str) -> None:
    lines = ("", "name,description,visibility", 'A-1,"one\rtwo\r\nthree",PUBLIC', "A-2,,PRIVATE", "")
    (project.folder / "tags.csv").write_bytes(end.join(lines).encode())
    assert project.run("adopt", "tags.csv").code == 0
    assert project.rows()["tag/A-1"]["fields"]["description"] == "one\ntwo\nthree"
    assert project.rows()["tag/A-2"]["fields"]["visibility"] == "PRIVATE"


def test_resources_adopted_and_declared_alike_have_no_changes(project: Project) -> None:
    wanted = {"tagCategories": [category("acme")], "tags": [tag("A-1", category="acme", keywords=["one"])]}
    project.wants(**wanted)
    listed = {**wanted, "tagCategories": [category("acme", serverId="77")]}
    adopt(project, "there.json", json.dumps(listed))
    assert project.plan().changes == ()


def test_a_category_without_its_id_is_sent_again(project: Project) -> None:
    project.wants(tagCategories=[category("acme")])
    adopt(project, "there.csv", "externalId,label\nacme,Label of acme\n")
    assert [str(change.key) for change in project.plan().changes] == ["category/acme"]
    assert project.apply().code == 0


def test_rows_that_are_recorded_are_kept(project: Project) -> None:
    """They are replaced with `--replace`. A JSON file that is just a list is taken for tags."""
    adopt(project, "one.csv", "name,description\nA,first\n")
    again = adopt(project, "two.json", '[{"name": "A", "description": "second"}, {"name": "B"}]')
    assert (again["adopted"], again["known"]) == (["tag/B"], ["tag/A"])
    adopt(project, "two.csv", "name,description\nA,second\n", "--replace")
    assert project.rows()["tag/A"]["fields"]["description"] == "second"
    runs = project.run("state", "history", "--format", "json").document["runs"]
    assert {run["command"] for run in runs} == {"adopt"}


CELLS = 'name;"visibility";protect;metadata.x\nA;"P;X";no\nB;"P;X";maybe;y\n"C\nD";;x;y\nB;;;'
INVALID = {
    "a misspelt column": ("a.csv", "nmae,label\n", "unknown-column 1:1, missing-column 1:1"),
    "columns behind a quoted one": (
        "a.csv", 'name,"metadata.a,b",descr,,name\n', "unknown-column 1:21, unknown-column 1:27, duplicate-column 1:28",
    ),
    "cells, and a row with a line break": (
        "a.csv", CELLS,
        "csv-syntax 2:1, bad-value 3:3, wrong-type 3:9, control-character 4:1, wrong-type 4:1, duplicate-resource 6:1",
    ),
    "a name twice": ("a.csv", "name\nA\n\nA\n", "duplicate-resource 4:1"),
    "a line break in a name": ("a.csv", 'name,description\n"A\nB",x\n', "control-character 2:1"),
    "a long row": ("a.csv", "name\nA,too much\n", "csv-syntax 2:1"),
    "a short row": ("a.csv", "name,description,label\nA,cut off\n", "csv-syntax 2:1"),
    "an open quote": ("a.csv", 'name\n"A\n', "csv-syntax 2:1"),
    "a blank before a quote": ("a.csv", 'name,description\nA, "b"\n', "csv-syntax 2:1"),
    "lines that end with CR": ("a.csv", "name,description\rA,b\rB,c,d\r", "csv-syntax 3:1"),
    "a spreadsheet": ("a.csv", "PK\3\4 xl/workbook.xml", "not-text 1:1"),
    "a value": ("a.csv", "name,visibility\nA,HIDDEN\n", "bad-value 2:3"),
    "a section": ("a.yaml", "generate: []\n", "unknown-section 1:1"),
    "a field": ("a.yaml", "tags:\n  - nmae: A\n", "unknown-field 2:5"),
    "a null": ("a.json", '{"tags": [{"name": "A", "serverId": null}]}', "bad-value 1:37"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "places"), INVALID.values(), ids=INVALID)
def test_an_invalid_file_is_an_error_with_its_place(project: Project, name: str, text: str, places: str) -> None:
    """Nothing is recorded."""
    found = adopt(project, name, text, code=8)["diagnostics"]
    assert {each["file"] for each in found} == {name}
    assert ", ".join(f"{each['code']} {each['line']}:{each['column']}" for each in found) == places
    assert project.rows() == {}


def test_a_list_of_matters_needs_a_column_called_name(project: Project) -> None:
    """If the column `name` is missing, the error suggests the likely column and names the documentation."""
    header = "Matter No."
    found = adopt(project, "a.csv", f"Title,{header}\nx,A-1\n", code=8)["diagnostics"]
    messages = [each["message"] for each in found]
    assert (
        f'there is no field "{header}"; if it has the names of the tags, write `name` there (docs/moving.md)'
    ) in messages
    assert not any(f"metadata.{header}" in message for message in messages)


def test_a_file_of_an_unknown_type_is_named(project: Project) -> None:
    done = project.run("adopt", "there.txt")
    assert (done.code, "there.txt" in done.err) == (64, True)
