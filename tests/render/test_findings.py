"""Annotations of a plan's changes at the lines of their manifests, in the format and within the limits of each host."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from syncengine.render.ci import GITHUB_SHOWS, GITLAB_SHOWS, SARIF_SHOWS
from tests.cli.program import Project, category, tag

MORE = re.compile(r"… and ([0-9,]+) more; `--format json` and the HTML page list all of them")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose state records three tags, one of them with keywords."""
    project = Project(tmp_path / "project", "sandbox")
    project.settle(tags=[tag("STAYS-1", description="old", keywords=["k1", "k2"]), tag("GONE-1"), tag("SAME-1")])
    return project


def planned(project: Project, *formats: str) -> dict[str, str]:
    words = [word for name in formats for word in ("--report", f"{name}=report.{name}")]
    done = project.run("plan", "-q", *words)
    assert done.code == 0, done.err
    return {name: (project.folder / f"report.{name}").read_text() for name in formats}


def change(project: Project, new: int = 1) -> None:
    made = [tag(f"NEW-{n}") for n in range(new)]
    project.wants(tags=[tag("STAYS-1", description="new", keywords=["k1"]), tag("SAME-1"), *made])


def levels(text: str) -> list[tuple[str, str]]:
    """Return the level and message of each GitHub workflow command."""
    return re.findall(r"^::(\w+) [^:]*::(.*)$", text, re.MULTILINE)


def test_changes_are_annotated_where_they_are_declared(project: Project) -> None:
    """Removals, also those of keywords, are warnings; new resources are notices; unchanged ones have no annotation.

    A removal names only the file, since its recorded line may now belong to another resource.
    """
    change(project)
    made = planned(project, "github", "gitlab", "sarif")
    assert "::warning file=manifests/all.yaml,title=forget::forget tag/GONE-1\n" in made["github"]
    assert (
        "::warning file=manifests/all.yaml,line=2,title=update::"
        'update tag/STAYS-1: keywords: removed "k2"; description: "old" → "new"\n'
    ) in made["github"]
    assert "::notice file=manifests/all.yaml,line=4,title=create::create tag/NEW-0\n" in made["github"]
    assert "SAME-1" not in made["github"]
    gitlab = {each["description"]: each for each in items("gitlab", made["gitlab"])}
    lost, new = gitlab["forget tag/GONE-1"], gitlab["create tag/NEW-0"]
    assert (lost["severity"], new["severity"]) == ("minor", "info")
    assert lost["location"] == {"path": "manifests/all.yaml", "lines": {"begin": 1}}
    assert new["location"] == {"path": "manifests/all.yaml", "lines": {"begin": 4}}
    assert len({each["fingerprint"] for each in gitlab.values()}) == len(gitlab)
    sarif = {each["message"]["text"]: each for each in items("sarif", made["sarif"])}
    assert (sarif["forget tag/GONE-1"]["level"], sarif["create tag/NEW-0"]["level"]) == ("warning", "note")
    assert sarif["forget tag/GONE-1"]["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}


def test_every_open_unit_has_its_approval(project: Project) -> None:
    (project.folder / "policies").mkdir()
    rule = "{name: named, for: category, approve: action == 'create'}"
    (project.folder / "policies/all.yaml").write_text(f"rules: [{rule}]\n", encoding="utf-8")
    project.wants(tagCategories=[category("new")])
    gate = project.run("plan", "--format", "json").document["gate"]
    approvals = ", ".join(unit["approve"] for unit in gate["units"])
    level, words = levels(planned(project, "github")["github"])[0]
    assert level == "warning"
    assert words.startswith("Approval needed for this plan: 3 of 3 tags ")
    assert words.endswith(f" requires approval of 1 change: category/new. Approve with {approvals}")


def test_github_gets_ten_annotations_of_a_level(project: Project) -> None:
    change(project, new=200)
    notices = [words for level, words in levels(planned(project, "github")["github"]) if level == "notice"]
    assert len(notices) == GITHUB_SHOWS == 10
    rest = MORE.search(notices[-1])
    assert rest is not None
    assert len(notices) - 1 + int(rest[1]) == 200


def test_resources_of_one_template_are_one_annotation_and_removals_of_one_file_are_not(project: Project) -> None:
    """Resources from one template share its line; of removals it is unknown."""
    project.wants(tags=[tag("STAYS-1")])
    block = "generate:\n  - forEach: {csv: ../rows.csv}\n    as: row\n    tags: [{name: '{{ row.no }}'}]\n"
    (project.folder / "manifests/rows.yaml").write_text(block)
    (project.folder / "rows.csv").write_text("no\n" + "".join(f"ROW-{n}\n" for n in range(300)))
    found = [words for _, words in levels(planned(project, "github")["github"])]
    names = "tag/ROW-0, tag/ROW-1, tag/ROW-2, tag/ROW-3, tag/ROW-4"
    assert [each for each in found if each.startswith("create ")] == [f"create 300 resources: {names} … and 295 more"]
    assert [each for each in found if each.startswith("forget ")] == ["forget tag/GONE-1", "forget tag/SAME-1"]


def items(format: str, text: str) -> list[Any]:
    document = json.loads(text)
    return list(document if format == "gitlab" else document["runs"][0]["results"])


@pytest.mark.parametrize(("format", "most"), [("gitlab", GITLAB_SHOWS), ("sarif", SARIF_SHOWS)])
def test_gitlab_and_sarif_get_a_limited_number_of_items(project: Project, format: str, most: int) -> None:
    change(project, new=5_200)
    made = items(format, planned(project, format)[format])
    assert len(made) == most
    assert MORE.search(json.dumps(made[-1], ensure_ascii=False))
