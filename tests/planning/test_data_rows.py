"""Errors and warnings of planning about a generated resource name its row of data."""

from __future__ import annotations

import pytest

from tests.cli.program import Project
from tests.manifest.loading import write

pytestmark = pytest.mark.slow

TAGS = "tags: [{name: '{{ row.name }}', externalId: '{{ row.id }}', visibility: '{{ row.seen }}'}]"
TYPES = "activityTypes: [{code: '{{ row.name }}', label: '{{ row.id }}', enableIfNew: true}]"
NAMED = "tags: [{name: '{{ row.name }}', previously: ['{{ row.id }}']}]"
HEAD = "name,id,seen\n"
ROWS = "A,1,PRIVATE\nB,2,PRIVATE\nC,3,PRIVATE\nD,4,PRIVATE\nE,5,PRIVATE\n"


def generates(project: Project, made: str, rows: str, more: str = "") -> None:
    block = f"generate:\n  - forEach: {{csv: ../r.csv}}\n    {made}\n{more}"
    write(project.folder, {"manifests/m.yaml": block, "r.csv": HEAD + rows})


CASES = {
    "visibility-dropped": (TAGS, ROWS, ROWS.replace("B,2,PRIVATE", "B,2,"), 3),
    "rename-suspected": (TAGS, ROWS, ROWS.replace("C,3", "Z,3"), 4),
}


@pytest.mark.parametrize("code", CASES)
def test_a_warning_about_a_changed_tag_names_its_row(project: Project, code: str) -> None:
    made, before, after, row = CASES[code]
    generates(project, made, before)
    assert project.run("apply", "-y").code == 0
    generates(project, made, after)
    _is_about(project, code, row)


def test_an_error_about_a_revived_activity_type_names_its_row(project: Project) -> None:
    generates(project, TYPES, ROWS)
    assert project.apply().code == 0
    generates(project, TYPES, ROWS.replace("B,2,PRIVATE\n", ""))
    assert project.apply().code == 0
    generates(project, TYPES, ROWS)
    _is_about(project, "deleted-activity-type", 3)


def test_an_error_about_a_tag_that_cannot_be_deleted_names_its_row(project: Project) -> None:
    project.settings("policy: {tagRemoval: retire}")
    generates(project, TAGS, ROWS)
    assert project.run("apply", "-y").code == 0
    generates(project, TAGS, ROWS.replace("B,2,PRIVATE\n", ""))
    project.settings("policy: {tagRemoval: delete}")
    _is_about(project, "delete-unsupported", 3)


FORMER_NAMES = {
    "previously-own-name": ("A,X,\nB,B,\n", 3),
    "previously-claimed": ("A,X,\nB,X,\n", 3),
    "previously-declared": ("A,X,\nB,A,\n", 3),
}


@pytest.mark.parametrize("code", FORMER_NAMES)
def test_an_error_about_former_names_names_its_row(project: Project, code: str) -> None:
    rows, row = FORMER_NAMES[code]
    generates(project, NAMED, rows)
    found = _is_about(project, code, row)
    assert (found["line"], found["column"]) == (3, 49)


def test_an_error_about_a_removed_and_declared_tag_names_its_row(project: Project) -> None:
    generates(project, TAGS, ROWS, "removed: [{tag: C, as: forget}]\n")
    assert _is_about(project, "removed-and-declared", 4)["line"] == 4


def _is_about(project: Project, code: str, row: int) -> dict[str, object]:
    done = project.run("plan", "--format", "json")
    (found,) = [d for d in done.document["diagnostics"] if d["code"] == code]
    assert found["data"] == {"file": "r.csv", "row": row}, found
    assert found["message"].count(f"(r.csv:{row})") == 1
    return dict(found)
