"""Resources are recorded and nothing is sent: by `adopt` from a list of them, and by `state import` from an export."""

import json

import pytest

from syncengine.plan.diff import SendCause
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


@pytest.mark.parametrize(("encoding", "end"), [("cp1252", "\r"), ("utf-16", "\r\n"), ("utf-8-sig", "\n\r\n")])
def test_a_table_is_read_as_a_spreadsheet_saves_it(project: Project, encoding: str, end: str) -> None:
    """`adopt` reads the encodings that `init --from-csv` reads: on Windows, "CSV" is none of Unicode."""
    lines = ("", "name,description,visibility", 'MÜL-1,"5 €\rtwo\r\nthree",PUBLIC', "A-2,,PRIVATE", "")
    (project.folder / "tags.csv").write_bytes(end.join(lines).encode(encoding))
    assert project.run("adopt", "tags.csv").code == 0
    assert project.rows()["tag/MÜL-1"]["fields"]["description"] == "5 €\ntwo\nthree"
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
    "a long row": ("a.csv", "name\nA,too much\n", "csv-syntax 2:1"),
    "a short row": ("a.csv", "name,description,label\nA,cut off\n", "csv-syntax 2:1"),
    "an open quote": ("a.csv", 'name\n"A\n', "csv-syntax 2:1"),
    "a blank before a quote": ("a.csv", 'name,description\nA, "b"\n', "csv-syntax 2:1"),
    "lines that end with CR": ("a.csv", "name,description\rA,b\rB,c,d\r", "csv-syntax 3:1"),
    "a spreadsheet": ("a.csv", "PK\3\4 xl/workbook.xml", "not-text 1:1"),
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
    header = "Matter No."
    found = adopt(project, "a.csv", f"Title,{header}\nx,A-1\n", code=8)["diagnostics"]
    said = f'there is no field "{header}"; if it has the names of the tags, write `name` there (docs/moving.md)'
    messages = [each["message"] for each in found]
    assert said in messages
    assert not any(f"metadata.{header}" in message for message in messages)


def test_a_file_of_an_unknown_type_is_named(project: Project) -> None:
    done = project.run("adopt", "there.txt")
    assert (done.code, "there.txt" in done.err) == (64, True)


# --- `state export` and `state import`: imported rows are doubtful until they are sent again


@pytest.fixture
def held(project: Project) -> Project:
    project.settle(
        tagCategories=[category("held")],
        tags=[tag("HELD-1", category="held", keywords=["of it"], metadata={"A": "b"}, assigneeExternalIds=["jd"])],
    )
    return project


def exported(held: Project) -> str:
    done = held.run("state", "export")
    assert done.code == 0, done.err
    return done.out


def test_an_exported_file_is_what_is_printed_and_private(held: Project) -> None:
    assert held.run("state", "export", "-o", "e.jsonl").code == 0
    assert (held.folder / "e.jsonl").read_text() == exported(held)
    assert (held.folder / "e.jsonl").stat().st_mode & 0o777 == 0o600


HEAD, ROW = "HEAD\n", '{"row": {"key": ["tag", "A"]}}\n'
BROKEN = {
    "nothing": ("", "not-an-export 1"),
    "another format": ('{"format": "other"}', "not-an-export 1"),
    "another kind": (HEAD + ROW + '{"row": {"key": ["thing", "B"]}}', "bad-row 3"),
    "another status": (HEAD + '{"row": {"key": ["tag", "A"], "status": "gone"}}', "bad-row 2"),
    "no name": (HEAD + '{"row": {"key": ["tag", ""]}}', "bad-row 2"),
    "more": (HEAD + '{"row": {"key": ["tag", "A"], "odd": 1}}', "bad-row 2"),
    "an instant that is none": (
        HEAD + '{"quarantine": {"key": ["tag", "A"], "reason": "r", "at": 1e12, "content": ""}}', "bad-row 2",
    ),
    "neither": (HEAD + "{}", "bad-row 2"),
    "no JSON": (HEAD + "not json", "bad-row 2"),
    "deep": (HEAD + '{"row": ' + "[" * 100_000, "bad-row 2"),
    "a row twice": (HEAD + ROW + ROW, "duplicate-resource 3"),
    "cut": (HEAD + "FIRST\n", "incomplete-export 2"),
    "its head alone": (HEAD, "incomplete-export 1"),
    "lacking one in the middle": (HEAD + "SECOND\n", "incomplete-export 2"),
    "cut inside a line": (HEAD + 'FIRST\n{"row": {"key": ["tag"', "bad-row 3"),
    "followed by another": (
        f"{HEAD}FIRST\nSECOND\n" * 2, "bad-row 4, duplicate-resource 5, duplicate-resource 6",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "place"), BROKEN.values(), ids=BROKEN)
def test_an_export_that_is_not_whole_is_refused(held: Project, text: str, place: str) -> None:
    """The error has its line, and no state is created, nor an existing one changed."""
    before = held.rows()
    for name, line in zip(("HEAD", "FIRST", "SECOND"), exported(held).splitlines(), strict=True):
        text = text.replace(name, line)
    (held.folder / "e.jsonl").write_text(text)
    done = held.run("state", "import", "e.jsonl", "-y", "--format", "json")
    found = done.document["diagnostics"]
    assert (done.code, {each["file"] for each in found}) == (8, {"e.jsonl"})
    assert ", ".join(f"{each['code']} {each['line']}" for each in found) == place
    assert held.rows() == before
    (held.folder / ".syncengine/state.db").unlink()
    assert held.run("state", "import", "e.jsonl", "-y").code == 8
    assert not (held.folder / ".syncengine/state.db").exists()


def test_imported_rows_are_doubtful(held: Project, service: Service) -> None:
    """Imported rows are doubtful; the next apply sends and confirms them without changes (docs/planning.md 7)."""
    before, there = held.rows(), service.holds()
    (held.folder / "e.jsonl").write_text(exported(held))
    (held.folder / ".syncengine/state.db").unlink()
    assert held.run("state", "import", "e.jsonl").code == 64
    assert held.run("state", "import", "e.jsonl", "-y", "--format", "json").document["imported"] == 2
    assert held.rows() == {address: {**row, "doubtful": True} for address, row in before.items()}
    assert "recorded by `state import`" in held.run("plan").out
    assert "an earlier call" not in held.run("plan").out
    assert held.apply().code == 0
    assert (held.rows(), service.holds()) == (before, there)


def test_an_import_makes_existing_rows_doubtful_too(held: Project) -> None:
    head = json.loads(exported(held).splitlines()[0])
    (held.folder / "e.jsonl").write_text(json.dumps({**head, "lines": 0}) + "\n")
    assert held.run("state", "import", "e.jsonl", "-y").code == 0
    assert all(row["doubtful"] for row in held.rows().values())
    assert {change.again for change in held.plan().changes} == {SendCause.IMPORTED}


def test_another_teams_rows_are_refused(held: Project) -> None:
    head, *rows = exported(held).splitlines()
    other = json.dumps({**json.loads(head), "team": "Another"})
    (held.folder / "e.jsonl").write_text("\n".join([other, *rows]))
    done = held.run("state", "import", "e.jsonl", "-y", "--format", "json")
    assert (done.code, done.codes) == (7, ["wrong-team"])
    assert not any(row["doubtful"] for row in held.rows().values())
