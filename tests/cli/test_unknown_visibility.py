"""Tags whose visibility the state does not know count as private: making them public needs an approval."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .program import Ended, Project, tag
from .service import Service

NAMES = ("ALPHA", "BETA", "GAMMA")


@pytest.fixture
def adopted(project: Project) -> Project:
    """A project that has adopted tags without a visibility, which are PRIVATE at the service."""
    hide(project, *NAMES)
    (project.folder / "list.csv").write_text("name\n" + "".join(f"{name}\n" for name in NAMES), encoding="utf-8")
    assert project.run("adopt", "list.csv").code == 0
    return project


def hide(project: Project, *names: str) -> None:
    """Make tags PRIVATE from another project with its own state."""
    Project(project.folder / "elsewhere", project.url).settle(tags=[tag(name, visibility="PRIVATE") for name in names])


def visibility(service: Service) -> dict[str, str]:
    return {each["name"]: each["visibility"] for each in service.holds()["tags"]}


def public(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [tag(name, visibility="PUBLIC", **more) for name in names]


def apply(project: Project, *words: str) -> Ended:
    return project.run("apply", "-y", "--format", "json", *words)


def assert_refused(done: Ended, service: Service) -> None:
    assert (done.code, "gate" in done.codes) == (4, True)
    assert {*visibility(service).values()} == {"PRIVATE"}


def open_units(project: Project) -> dict[str, int]:
    """The units that need an approval, each with its number of losses."""
    planned = project.run("plan", "--format", "json")
    assert planned.code == 0, planned.out
    return {unit["unit"]: unit["count"] for unit in planned.document["gate"]["units"] if unit["approved"] is None}


def test_tags_of_unknown_visibility_need_one_approval_to_be_public(adopted: Project, service: Service) -> None:
    """They are one unit of the gate. After the approved apply, the rows are known to be PUBLIC, until `adopt`."""
    adopted.wants(tags=public(*NAMES))
    assert open_units(adopted) == {"unknown-visibility": 3}
    assert_refused(apply(adopted), service)
    planned = adopted.run("plan", "--out", "a.plan", "--format", "json").document
    assert_refused(adopted.run("apply", "a.plan", "--format", "json"), service)
    assert adopted.run("apply", "a.plan", "--approve-deletes", planned["gate"]["units"][0]["approve"]).code == 0
    assert {*visibility(service).values()} == {"PUBLIC"}
    adopted.wants(tags=public(*NAMES, description="more"))
    assert open_units(adopted) == {}
    assert adopted.run("adopt", "--replace", "list.csv").code == 0
    assert open_units(adopted) == {"unknown-visibility": 3}


def test_a_manifest_without_visibility_changes_none(adopted: Project, service: Service) -> None:
    """Other changes are applied without an approval, and the visibility stays unknown."""
    for words in ((), ("--reassert",)):
        adopted.wants(tags=[tag(name, description="more") for name in NAMES])
        assert apply(adopted, *words).code == 0
        assert {*visibility(service).values()} == {"PRIVATE"}
    adopted.wants(tags=public(*NAMES))
    assert_refused(apply(adopted), service)


def test_a_tag_created_without_visibility_is_recorded_as_public(project: Project, service: Service) -> None:
    """Declaring it PUBLIC later is no change. A name that was made PRIVATE elsewhere stays so."""
    project.settle(tags=[tag("NEW")])
    assert project.rows()["tag/NEW"]["fields"]["visibility"] == "PUBLIC"
    assert project.plan().changes == ()
    project.wants(tags=public("NEW"))
    assert project.plan().changes == ()
    hide(project, "NEW")
    project.settle(tags=[tag("NEW", description="more")])
    assert visibility(service) == {"NEW": "PRIVATE"}
    project.settle(tags=[tag("NEW", visibility="PRIVATE")])
    project.wants(tags=public("NEW"))
    assert open_units(project) == {"tag/NEW": 1}


def test_public_from_defaults_or_templates_needs_an_approval(adopted: Project, service: Service) -> None:
    """PUBLIC that a template takes from the project file's defaults has the same effect as in the tag's own line."""
    block = "generate: [{forEach: {csv: ../list.csv}, tags: [{name: '{{ row.name }}'}]}]"
    adopted.wants()
    (adopted.folder / "manifests/all.yaml").write_text(block, encoding="utf-8")
    adopted.settings("defaults: {tags: {visibility: PUBLIC}}")
    assert open_units(adopted) == {"unknown-visibility": 3}
    assert_refused(apply(adopted), service)


@pytest.mark.parametrize("said", [{"visibility": "PUBLIC"}, {}], ids=["said", "by default"])
def test_a_rename_to_a_public_name_needs_an_approval(said: dict[str, str], adopted: Project, service: Service) -> None:
    """The new name is another tag, which the service makes public unless the manifest says PRIVATE."""
    adopted.wants(tags=[tag("NEW", previously=["ALPHA"], **said)])
    assert open_units(adopted)["unknown-visibility"] == 1
    assert_refused(apply(adopted), service)
    adopted.wants(tags=[tag("NEW", previously=["ALPHA"], visibility="PRIVATE")])
    assert "unknown-visibility" not in open_units(adopted)


def test_imported_rows_without_visibility_are_unknown(project: Project) -> None:
    """Exports of earlier versions have no visibility."""
    project.settle(tags=[tag("ALPHA")])
    text = project.run("state", "export").out
    old = re.sub(r',\s*"visibility":\s*"PUBLIC"|"visibility":\s*"PUBLIC",\s*', "", text)
    assert old != text
    (project.folder / "old.json").write_text(old, encoding="utf-8")
    assert project.run("state", "import", "old.json", "-y").code == 0
    project.wants(tags=public("ALPHA"))
    assert open_units(project) == {"unknown-visibility": 1}


def test_a_released_tag_declared_public_again_needs_an_approval(adopted: Project) -> None:
    """A released row keeps that its visibility is unknown or PRIVATE."""
    adopted.settle(tags=[tag("OTHER", visibility="PRIVATE")])
    adopted.wants(tags=public(*NAMES))
    assert open_units(adopted)["unknown-visibility"] == 3
    adopted.settle(tags=public(*NAMES))
    adopted.wants(tags=public("OTHER", *NAMES))
    assert open_units(adopted) == {"tag/OTHER": 1}


def test_an_undo_does_not_restore_an_unknown_visibility(adopted: Project, service: Service) -> None:
    """Undoing the run that made the tags PRIVATE leaves them PRIVATE, with a note."""
    adopted.settle(tags=[tag(name, visibility="PRIVATE", description="more") for name in NAMES])
    planned = adopted.run("plan", "--undo", "last", "--out", "undo.plan", "--format", "json").document
    assert planned["gate"]["units"] == []
    assert ("tag/ALPHA", "not-undone") in [(note["address"], note["kind"]) for note in planned["notes"]]
    assert adopted.run("apply", "undo.plan").code == 0
    assert {*visibility(service).values()} == {"PRIVATE"}
