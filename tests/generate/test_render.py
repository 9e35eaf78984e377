"""`render` prints a manifest that says where each resource came from."""

from __future__ import annotations

import pytest

from syncengine.manifest.desired import load
from syncengine.project.load import load_project
from tests.cli.program import Project
from tests.manifest.loading import write

MANIFEST = """\
defaults:
  tags: {visibility: PRIVATE, metadata: {Office: Vienna}}
tagCategories:
  - {externalId: acme, label: "no", keywords: ["acme: corp"], protect: true, previously: [old]}
activityTypes:
  - {code: "0101", label: "Plan # and prepare", enableIfNew: true}
tags:
  - name: "0042"
    description: "two\\nlines, and {{ no }} template"
    category: acme
    keywords: ["- x", "yes"]
    metadata: {"Client: name": "~"}
    closedTimestamp: 2024-05-01T09:00:00Z
    previously: ["#41"]
    protect: true
  - {name: ALONE, visibility: PUBLIC, keywords: []}
removed:
  - {tag: GONE, as: retire, reason: "closed: ticket 77"}
generate:
  - forEach: {csv: ../rows.csv}
    tags: [{name: "{{ row.n }}", description: "{{ row.text }}"}]
"""
ROWS = 'n,text\nG-1," leading, ""quoted"" # and {{ this }}"\nG-2,no\n'


@pytest.fixture
def estate(project: Project) -> Project:
    write(project.folder, {"manifests/m.yaml": MANIFEST, "rows.csv": ROWS})
    return project


def meant(project: Project) -> tuple[object, object]:
    """The declared resources and removals, without their places."""
    found = load(load_project(folder=project.folder, environ={}))
    resources = {key: (each.body, each.protect, each.previously) for key, each in found.resources.items()}
    return resources, {key: (each.how, each.reason) for key, each in found.removed.items()}


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_what_is_rendered_means_the_same(estate: Project, format: str) -> None:
    """It has the same resources, renames, protections and removals."""
    before = meant(estate)
    done = estate.run("render", "--format", format)
    assert done.code == 0, done.err
    (estate.folder / "manifests" / "m.yaml").unlink()
    (estate.folder / "manifests" / f"m.{format}").write_text(done.out, encoding="utf-8")
    assert meant(estate) == before


def test_a_comment_before_each_resource_names_its_line_and_its_row(estate: Project) -> None:
    out = estate.run("render").out
    assert '  # manifests/m.yaml:21 (rows.csv:3)\n  - name: "G-2"\n' in out
    assert '  # manifests/m.yaml:8\n  - name: "0042"\n' in out
    (estate.folder / "rows.csv").write_text("n\nG-1\n")
    done = estate.run("render", "--format", "json")
    assert (done.code, done.codes[-1]) == (8, "bad-template")
