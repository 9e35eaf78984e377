"""Tags whose visibility the state does not know count as private: making them public needs an approval."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .program import Ended, Project, tag
from .service import Service

NAMES = ("ALPHA", "BETA", "GAMMA")


def adopted(project: Project, service: Service, *names: str) -> None:
    """Tags that are PRIVATE at the service and that the project adopts without a visibility."""
    hide(project, *names)
    (project.folder / "list.csv").write_text("name\n" + "".join(f"{name}\n" for name in names), encoding="utf-8")
    assert project.run("adopt", "list.csv").code == 0


def hide(project: Project, *names: str) -> None:
    """Make tags PRIVATE from another project with its own state."""
    Project(project.folder / "elsewhere", project.url).settle(tags=[tag(name, visibility="PRIVATE") for name in names])


def is_refused(done: Ended) -> bool:
    return done.code == 4 and "gate" in done.codes


def visibility(service: Service) -> dict[str, str]:
    return {each["name"]: each["visibility"] for each in service.holds()["tags"]}


def public(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [tag(name, visibility="PUBLIC", **more) for name in names]


def apply(project: Project, *words: str) -> Ended:
    return project.run("apply", "-y", "--format", "json", *words)


def open_units(project: Project, *words: str) -> dict[str, int]:
    """The units that need an approval, each with its number of losses."""
    planned = project.run("plan", "--format", "json", *words)
    assert planned.code == 0, planned.out
    return {unit["unit"]: unit["count"] for unit in planned.document["gate"]["units"] if unit["approved"] is None}


def test_tags_of_unknown_visibility_need_one_approval_to_be_public(project: Project, service: Service) -> None:
    """They are one unit of the gate. After the approved apply, the rows are known to be PUBLIC."""
    adopted(project, service, *NAMES)
    project.wants(tags=public(*NAMES))
    assert open_units(project) == {"unknown-visibility": 3}
    assert is_refused(apply(project))
    assert set(visibility(service).values()) == {"PRIVATE"}
    (unit,) = project.run("plan", "--format", "json").document["gate"]["units"]
    assert apply(project, "--approve-deletes", unit["approve"]).code == 0
    assert set(visibility(service).values()) == {"PUBLIC"}
    project.wants(tags=public(*NAMES, description="more"))
    assert open_units(project) == {}


def test_a_manifest_without_visibility_changes_none(project: Project, service: Service) -> None:
    """Other changes are applied without an approval, and the visibility stays unknown."""
    adopted(project, service, "ALPHA")
    project.wants(tags=[tag("ALPHA", description="more")])
    assert apply(project).code == 0
    assert visibility(service) == {"ALPHA": "PRIVATE"}
    assert apply(project, "--reassert").code == 0
    assert visibility(service) == {"ALPHA": "PRIVATE"}
    project.wants(tags=public("ALPHA"))
    assert is_refused(apply(project))


def test_a_tag_created_without_visibility_is_recorded_as_public(project: Project, service: Service) -> None:
    """Declaring it PUBLIC later is no change."""
    project.settle(tags=[tag("NEW")])
    assert project.rows()["tag/NEW"]["fields"]["visibility"] == "PUBLIC"
    assert project.plan().changes == ()
    project.wants(tags=public("NEW"))
    assert project.plan().changes == ()
    project.settle(tags=[tag("NEW", visibility="PRIVATE")])
    project.wants(tags=public("NEW"))
    assert open_units(project) == {"tag/NEW": 1}


def test_an_upsert_without_visibility_leaves_a_hidden_tag_hidden(project: Project, service: Service) -> None:
    """A tag that was declared PUBLIC once, and then made PRIVATE elsewhere, stays PRIVATE."""
    project.settle(tags=public("ALPHA"))
    hide(project, "ALPHA")
    project.settle(tags=[tag("ALPHA", description="more")])
    assert visibility(service) == {"ALPHA": "PRIVATE"}


def test_public_from_defaults_or_templates_needs_an_approval(project: Project, service: Service) -> None:
    """PUBLIC that a template takes from the project file's defaults has the same effect as in the tag's own line."""
    adopted(project, service, "ALPHA")
    project.wants()
    block = "generate:\n  - forEach: {csv: ../list.csv}\n    as: row\n    tags: [{name: '{{ row.name }}'}]\n"
    (project.folder / "manifests/all.yaml").write_text(block, encoding="utf-8")
    project.settings("defaults: {tags: {visibility: PUBLIC}}")
    assert open_units(project) == {"unknown-visibility": 1}
    assert is_refused(apply(project))
    assert visibility(service) == {"ALPHA": "PRIVATE"}


@pytest.mark.parametrize("said", [{"visibility": "PUBLIC"}, {}], ids=["said", "by default"])
def test_a_rename_to_a_public_name_needs_an_approval(said: dict[str, str], project: Project, service: Service) -> None:
    """The new name is another tag, which the service makes public unless the manifest says PRIVATE."""
    adopted(project, service, "ALPHA")
    project.wants(tags=[tag("NEW", previously=["ALPHA"], **said)])
    assert open_units(project)["unknown-visibility"] == 1
    assert is_refused(apply(project))
    assert visibility(service) == {"ALPHA": "PRIVATE"}
    project.wants(tags=[tag("NEW", previously=["ALPHA"], visibility="PRIVATE")])
    assert "unknown-visibility" not in open_units(project)


def test_a_saved_plan_needs_the_approval_too(project: Project, service: Service) -> None:
    """It is judged again when it is applied."""
    adopted(project, service, "ALPHA")
    project.wants(tags=public("ALPHA"))
    planned = project.run("plan", "--out", "a.plan", "--format", "json").document
    assert is_refused(project.run("apply", "a.plan", "--format", "json"))
    assert visibility(service) == {"ALPHA": "PRIVATE"}
    done = project.run("apply", "a.plan", "--format", "json", "--approve-deletes", planned["gate"]["approve"])
    assert (done.code, visibility(service)) == (0, {"ALPHA": "PUBLIC"})


def test_imported_rows_without_visibility_are_unknown(project: Project, service: Service) -> None:
    """Exports of earlier versions have no visibility."""
    project.settle(tags=[tag("ALPHA")])
    lines = [json.loads(line) for line in project.run("state", "export").out.splitlines() if line.strip()] or [{}]
    text = json.dumps(lines[0]) if len(lines) == 1 else "\n".join(map(json.dumps, lines))
    old = text.replace(', "visibility": "PUBLIC"', "").replace('"visibility": "PUBLIC", ', "")
    assert old != text
    (project.folder / "old.json").write_text(old, encoding="utf-8")
    assert project.run("state", "import", "old.json", "-y").code == 0
    project.wants(tags=public("ALPHA"))
    assert open_units(project) == {"unknown-visibility": 1}


def test_a_released_tag_declared_public_again_needs_an_approval(project: Project, service: Service) -> None:
    """A released row keeps that its visibility is unknown or PRIVATE."""
    adopted(project, service, "ALPHA")
    project.wants(tags=[tag("OTHER", visibility="PRIVATE")])
    apply(project, *project.approvals())
    project.wants(tags=public("ALPHA"))
    assert open_units(project)["unknown-visibility"] == 1
    apply(project, "--approve-deletes", str(project.plan().gate.approve))
    project.wants(tags=public("OTHER", "ALPHA"))
    assert open_units(project) == {"tag/OTHER": 1}


def test_an_undo_does_not_restore_an_unknown_visibility(project: Project, service: Service) -> None:
    """Undoing the run that made the tag PRIVATE leaves it PRIVATE, with a note."""
    adopted(project, service, "ALPHA")
    project.settle(tags=[tag("ALPHA", visibility="PRIVATE", description="more")])
    planned = project.run("plan", "--undo", "last", "--out", "undo.plan", "--format", "json").document
    assert planned["gate"]["units"] == []
    assert ("tag/ALPHA", "not-undone") in [(note["address"], note["kind"]) for note in planned["notes"]]
    assert project.run("apply", "undo.plan").code == 0
    assert visibility(service) == {"ALPHA": "PRIVATE"}


def test_a_tag_adopted_again_needs_a_new_approval_to_be_public(project: Project, service: Service) -> None:
    """After `adopt --replace` the visibility is unknown again, even if a run had made the tag PUBLIC."""
    adopted(project, service, "ALPHA")
    project.settle(tags=public("ALPHA"))
    assert project.run("adopt", "--replace", "list.csv").code == 0
    assert open_units(project) == {"unknown-visibility": 1}
