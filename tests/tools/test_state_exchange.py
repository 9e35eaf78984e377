"""A state can be exported and imported; imported rows are doubtful until they are sent again."""

from __future__ import annotations

import json

import pytest

from syncengine.plan.diff import SendCause
from tests.cli.program import Project, category, tag
from tests.cli.service import Service

HELD = {
    "tagCategories": [category("held")],
    "tags": [tag("HELD-1", category="held", keywords=["of it"], metadata={"A": "b"}, assigneeExternalIds=["jd"])],
}


@pytest.fixture
def project(project: Project) -> Project:
    project.settle(**HELD)
    return project


def exported(project: Project) -> str:
    done = project.run("state", "export")
    assert done.code == 0, done.err
    return done.out


def test_an_export_is_a_header_and_a_line_for_each_row(project: Project) -> None:
    head, *rows = map(json.loads, exported(project).splitlines())
    assert (head["format"], head["team"]) == ("syncengine.state-export/v2", "Sandbox")
    assert [row["row"]["key"] for row in rows] == [["category", "held"], ["tag", "HELD-1"]]
    assert project.run("state", "export", "-o", "e.jsonl").code == 0
    assert (project.folder / "e.jsonl").read_text() == exported(project)
    assert (project.folder / "e.jsonl").stat().st_mode & 0o777 == 0o600


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
def test_an_export_that_is_not_whole_is_refused(project: Project, text: str, place: str) -> None:
    """The error has its line, and no state is created, nor an existing one changed."""
    before = project.rows()
    for name, line in zip(("HEAD", "FIRST", "SECOND"), exported(project).splitlines(), strict=True):
        text = text.replace(name, line)
    (project.folder / "e.jsonl").write_text(text)
    done = project.run("state", "import", "e.jsonl", "-y", "--format", "json")
    found = done.document["diagnostics"]
    assert (done.code, {each["file"] for each in found}) == (8, {"e.jsonl"})
    assert ", ".join(f"{each['code']} {each['line']}" for each in found) == place
    assert project.rows() == before
    (project.folder / ".syncengine/state.db").unlink()
    assert project.run("state", "import", "e.jsonl", "-y").code == 8
    assert not (project.folder / ".syncengine/state.db").exists()


def test_imported_rows_are_doubtful(project: Project, service: Service) -> None:
    """Imported rows are doubtful; the next apply sends and confirms them without changes (docs/planning.md 7)."""
    before, held = project.rows(), service.holds()
    (project.folder / "e.jsonl").write_text(exported(project))
    (project.folder / ".syncengine/state.db").unlink()
    assert project.run("state", "import", "e.jsonl").code == 64
    assert project.run("state", "import", "e.jsonl", "-y", "--format", "json").document["imported"] == 2
    assert project.rows() == {address: {**row, "doubtful": True} for address, row in before.items()}
    assert "recorded by `state import`" in project.run("plan").out
    assert "an earlier call" not in project.run("plan").out
    assert project.apply().code == 0
    assert (project.rows(), service.holds()) == (before, held)


def test_an_import_makes_existing_rows_doubtful_too(project: Project) -> None:
    head = json.loads(exported(project).splitlines()[0])
    (project.folder / "e.jsonl").write_text(json.dumps({**head, "lines": 0}) + "\n")
    assert project.run("state", "import", "e.jsonl", "-y").code == 0
    assert all(row["doubtful"] for row in project.rows().values())
    assert {change.again for change in project.plan().changes} == {SendCause.IMPORTED}


def test_another_teams_rows_are_refused(project: Project) -> None:
    head, *rows = exported(project).splitlines()
    other = json.dumps({**json.loads(head), "team": "Another"})
    (project.folder / "e.jsonl").write_text("\n".join([other, *rows]))
    done = project.run("state", "import", "e.jsonl", "-y", "--format", "json")
    assert (done.code, done.codes) == (7, ["wrong-team"])
    assert not any(row["doubtful"] for row in project.rows().values())
