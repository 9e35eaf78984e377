"""Generated resources: the gate notices when a block loses its rows, and diagnostics of planning name the row."""

import json
from collections.abc import Sequence

import pytest

from tests.cli.program import Project
from tests.manifest.loading import write

pytestmark = pytest.mark.slow

CSV = "  - forEach: {csv: ../r.csv}\n    when: row.kind == '%s'\n    tags: [{name: '{{ row.n }}'}]\n"
HAND = "tags:\n" + "".join(f"  - name: HAND-{n}\n" for n in range(400))


def rows(project: Project, **counts: int) -> None:
    """Write this number of rows of each kind to a CSV file."""
    found = (f"{kind}-{n},{kind}\n" for kind, count in counts.items() for n in range(count))
    write(project.folder, {"r.csv": "n,kind\n" + "".join(found)})


def blocks(project: Project, block: str, kinds: Sequence[str]) -> None:
    write(project.folder, {"manifests/m.yaml": "generate:\n" + "".join(block % kind for kind in kinds)})


@pytest.fixture
def sources(project: Project) -> Project:
    write(project.folder, {"manifests/hand.yaml": HAND})
    return project


def applied(project: Project) -> None:
    done = project.run("apply", "-y")
    assert done.code == 0, (done.out, done.err)


def reasons(project: Project) -> list[str]:
    """Return the gate's reasons, from a plan that uses the cache if it can."""
    done = project.run("plan", "--format", "json")
    assert done.code == 0, (done.out, done.err)
    return list(done.document["gate"]["reasons"])


def test_a_misspelt_condition_needs_an_approval(sources: Project) -> None:
    """The block with the misspelt condition, one of four over a file, makes no tags any more."""
    rows(sources, A=40, B=10, C=40, D=40)
    blocks(sources, CSV, "ABCD")
    applied(sources)
    blocks(sources, CSV.replace("== ", "in ['', ").replace("'%s'\n", "'%s']\n"), "ABCD")
    assert reasons(sources) == []
    blocks(sources, CSV, ["A", "b", "C", "D"])
    said = "r.csv: 10 of 10 resources made from it at manifests/m.yaml:7 are removed (limit 25%); `when` leaves out "
    blocks_of_it = "all of its 130 rows at manifests/m.yaml:5, 90 of its 130 rows at manifests/m.yaml:2, 90 of its 130"
    assert reasons(sources) == [f"{said}{blocks_of_it} rows at manifests/m.yaml:8"]


def test_a_block_whose_rows_make_other_names_lost_no_rows(sources: Project) -> None:
    """All three tags of the block leave, but no condition leaves out all rows."""
    rows(sources, A=40, B=3)
    blocks(sources, CSV, "AB")
    applied(sources)
    renamed = (CSV % "B").replace("{{ row.n }}", "NEW-{{ row.n }}")
    write(sources.folder, {"manifests/m.yaml": f"generate:\n{CSV % 'A'}{renamed}"})
    assert reasons(sources) == []


def test_a_condition_is_named_as_the_reason_where_the_file_lost_little(sources: Project) -> None:
    """One row is gone, and `when` leaves out three more: the reason does not say that the file lost four."""
    rows(sources, A=3, B=3)
    blocks(sources, CSV.replace("== '%s'", "in ['%s', 'B']"), "A")
    applied(sources)
    rows(sources, A=2, B=3)
    blocks(sources, CSV, "A")
    made = "r.csv: 4 of 6 resources made from it in manifests/m.yaml are removed (limit 25%)"
    said = f"{made}; `when` leaves out 3 of its 5 rows"
    assert reasons(sources) == [said]
    shown = sources.run("plan", "--out", "plan.json").out
    assert "r.csv lost 4 tags: approve with 4@" in shown
    assert not [words for words in ("of 6 rows", "shrank") if words in shown]
    assert sources.run("apply", "plan.json").code == 4
    assert json.loads((sources.folder / "plan.json").read_text())["gate"]["reasons"] == [said]


def unmet_conditions(project: Project) -> list[dict[str, object]]:
    """Return the diagnostics about conditions that no row meets."""
    done = project.run("validate", "--format", "json")
    return [found for found in done.document["diagnostics"] if found["code"] == "when-none"]


def test_a_condition_that_no_row_meets_is_a_warning(sources: Project) -> None:
    """A `when` that no row meets is a warning, unless `allowEmpty` allows that."""
    rows(sources, A=5)
    blocks(sources, CSV, "a")
    (found,) = unmet_conditions(sources)
    assert (found["severity"], found["line"], found["column"]) == ("warning", 3, 11)
    assert "all 5 rows of r.csv" in str(found["message"])
    assert unmet_conditions(sources) == [found], "also of a manifest whose reading is cached"
    sources.settings("policy: {diagnostics: {when-none: error}}")
    assert sources.run("validate").code == 8
    for block in (CSV.replace("../r.csv", "../r.csv, allowEmpty: true"), CSV.replace("== '%s'", "in ['%s', 'A']")):
        blocks(sources, block, "a")
        assert unmet_conditions(sources) == []


def test_a_manifest_may_be_renamed_and_its_lines_may_move(sources: Project) -> None:
    rows(sources, A=100, B=8)
    blocks(sources, CSV, "AB")
    applied(sources)
    path = sources.folder / "manifests" / "m.yaml"
    path.rename(path.with_name("other.yaml"))
    rows(sources, A=98, B=7)
    assert reasons(sources) == []
    rows(sources, A=60, B=7)
    said = "r.csv: 41 of 108 resources made from it in manifests/m.yaml are removed (limit 25%)"
    assert [reason.partition("; `when`")[0] for reason in reasons(sources) if "made from it" in reason] == [said]


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
