"""A state can be exported and imported; imported rows are doubtful until they are sent again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from syncengine.plan.diff import SendCause
from tests.cli.program import Project, category, tag
from tests.cli.service import Service

HELD = {
    "tagCategories": [category("held")],
    "tags": [tag("HELD-1", category="held", keywords=["of it"], metadata={"A": "b"}, assigneeExternalIds=["jd"])],
}


@pytest.fixture
def project(service: Service, tmp_path: Path) -> Project:
    project = Project(tmp_path / "project", service.url)
    project.settle(**HELD)
    return project


def exported(project: Project) -> str:
    done = project.run("state", "export")
    assert done.code == 0, done.err
    return done.out


def test_an_export_is_a_header_and_a_line_for_each_row(project: Project) -> None:
    """An export has a header and a line for each row; its file is readable only by its owner."""
    head, *rows = map(json.loads, exported(project).splitlines())
    assert (head["format"], head["team"]) == ("syncengine.state-export/v2", "Sandbox")
    assert [row["row"]["key"] for row in rows] == [["category", "held"], ["tag", "HELD-1"]]
    assert project.run("state", "export", "-o", "e.jsonl").code == 0
    assert (project.folder / "e.jsonl").read_text() == exported(project)
    assert (project.folder / "e.jsonl").stat().st_mode & 0o777 == 0o600


BROKEN: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "cut": (lambda lines: lines[:-1], "incomplete-export"),
    "its head alone": (lambda lines: lines[:1], "incomplete-export"),
    "lacking one in the middle": (lambda lines: [lines[0], *lines[2:]], "incomplete-export"),
    "cut inside a line": (lambda lines: [*lines[:-1], lines[-1][:30]], "bad-row"),
    "with a line twice": (lambda lines: [*lines, lines[-1]], "duplicate-resource"),
    "followed by another": (lambda lines: [*lines, *lines], "bad-row"),
}


@pytest.mark.parametrize(("broken", "code"), BROKEN.values(), ids=BROKEN)
def test_an_export_that_is_not_whole_is_refused(
    project: Project, broken: Callable[[list[str]], list[str]], code: str
) -> None:
    lines = broken(exported(project).splitlines(keepends=True))
    (project.folder / "e.jsonl").write_text("".join(lines))
    (project.folder / ".syncengine/state.db").unlink()
    done = project.run("state", "import", "e.jsonl", "-y")
    assert (done.code, f"error[{code}]" in done.err) == (8, True), done.err
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


@pytest.mark.parametrize(
    ("lines", "code", "line"),
    [
        ("", "not-an-export", 1),
        ('{"format": "other"}', "not-an-export", 1),
        ('HEAD\n{"row": {"key": ["tag", "A"]}}\n{"row": {"key": ["thing", "B"]}}', "bad-row", 3),
        ('HEAD\n{"row": {"key": ["tag", "A"], "status": "gone"}}', "bad-row", 2),
        ('HEAD\n{"row": {"key": ["tag", ""]}}', "bad-row", 2),
        ('HEAD\n{"row": {"key": ["tag", "A"], "odd": 1}}', "bad-row", 2),
        ('HEAD\n{"quarantine": {"key": ["tag", "A"], "reason": "r", "at": 1e12, "content": ""}}', "bad-row", 2),
        ("HEAD\n{}", "bad-row", 2),
        ("HEAD\nnot json", "bad-row", 2),
        ('HEAD\n{"row": ' + "[" * 100_000, "bad-row", 2),
        ('HEAD\n{"row": {"key": ["tag", "A"]}}\n{"row": {"key": ["tag", "A"]}}', "duplicate-resource", 3),
    ],
)
def test_a_file_that_is_no_export_is_refused_whole(project: Project, lines: str, code: str, line: int) -> None:
    before = project.rows()
    (project.folder / "e.jsonl").write_text(lines.replace("HEAD", exported(project).splitlines()[0]))
    done = project.run("state", "import", "e.jsonl", "-y", "--format", "json")
    (found,) = done.document["diagnostics"]
    assert (done.code, found["code"], found["line"], found["file"]) == (8, code, line, "e.jsonl")
    assert project.rows() == before
