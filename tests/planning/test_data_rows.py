"""Errors and warnings of planning about a generated resource name its row of data."""

from __future__ import annotations

import pytest

from tests.cli.program import Project
from tests.manifest.loading import write

pytestmark = pytest.mark.slow

TAGS = "tags: [{name: '{{ row.name }}', externalId: '{{ row.id }}', visibility: '{{ row.seen }}'}]"
TYPES = "activityTypes: [{code: '{{ row.name }}', label: '{{ row.id }}', enableIfNew: true}]"
NAMED = "tags: [{name: '{{ row.name }}', previously: ['{{ row.id }}']}]"
ROWS = "A,1,PRIVATE\nB,2,PRIVATE\nC,3,PRIVATE\nD,4,PRIVATE\nE,5,PRIVATE\n"
WITHOUT_B = ROWS.replace("B,2,PRIVATE\n", "")

CASES: dict[str, tuple[str, list[str], int]] = {
    "visibility-dropped": (TAGS, [ROWS, ROWS.replace("B,2,PRIVATE", "B,2,")], 3),
    "rename-suspected": (TAGS, [ROWS, ROWS.replace("C,3", "Z,3")], 4),
    "deleted-activity-type": (TYPES, [ROWS, WITHOUT_B, ROWS], 3),
    "delete-unsupported": (TAGS, [ROWS, WITHOUT_B], 3),
    "removed-and-declared": (f"{TAGS}\nremoved: [{{tag: C, as: forget}}]", [ROWS], 4),
    "previously-own-name": (NAMED, ["A,X,\nB,B,\n"], 3),
    "previously-claimed": (NAMED, ["A,X,\nB,X,\n"], 3),
    "previously-declared": (NAMED, ["A,X,\nB,A,\n"], 3),
}
PLACES = {"removed-and-declared": (4, 12), **dict.fromkeys([code for code in CASES if "previously" in code], (3, 49))}


@pytest.mark.parametrize("code", CASES)
def test_a_diagnostic_of_planning_names_the_row(project: Project, code: str) -> None:
    made, versions, row = CASES[code]
    write(project.folder, {"manifests/m.yaml": f"generate:\n  - forEach: {{csv: ../r.csv}}\n    {made}\n"})
    for rows in versions[:-1]:
        write(project.folder, {"r.csv": f"name,id,seen\n{rows}"})
        assert project.apply().code == 0
    project.settings(f"policy: {{tagRemoval: {'delete' if code == 'delete-unsupported' else 'forget'}}}")
    write(project.folder, {"r.csv": f"name,id,seen\n{versions[-1]}"})
    done = project.run("plan", "--format", "json")
    (found,) = [each for each in done.document["diagnostics"] if each["code"] == code]
    assert found["data"] == {"file": "r.csv", "row": row}, found
    assert found["message"].count(f"(r.csv:{row})") == 1
    place = (found["line"], found["column"])
    assert place == PLACES.get(code, place)
