"""Tags whose visibility the state does not know count as private: nothing opens them that nobody approved."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .program import Ended, Project, tag
from .service import Service

NAMES = ("ALPHA", "BETA", "GAMMA")


def adopted(project: Project, service: Service, *names: str) -> None:
    """Tags that somebody made PRIVATE in the console, and that the project adopts without a word about that."""
    hide(project, *names)
    (project.folder / "list.csv").write_text("name\n" + "".join(f"{name}\n" for name in names), encoding="utf-8")
    assert project.run("adopt", "list.csv").code == 0


def hide(project: Project, *names: str) -> None:
    """Somebody makes tags PRIVATE elsewhere: a project with a state of its own."""
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
    """The units that the plan asks about, each with the number of its losses."""
    planned = project.run("plan", "--format", "json", *words)
    assert planned.code == 0, planned.out
    return {unit["unit"]: unit["count"] for unit in planned.document["gate"]["units"] if unit["approved"] is None}


def test_all_openings_of_unknown_visibility_ask_once_as_one_unit(project: Project, service: Service) -> None:
    """Refused without an approval; one approval opens them, and the rows are known to be public from then on."""
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


def test_a_manifest_that_says_nothing_opens_nothing(project: Project, service: Service) -> None:
    """It is no error, other changes go through, and the visibility stays unknown."""
    adopted(project, service, "ALPHA")
    project.wants(tags=[tag("ALPHA", description="more")])
    assert apply(project).code == 0
    assert visibility(service) == {"ALPHA": "PRIVATE"}
    assert apply(project, "--reassert").code == 0
    assert visibility(service) == {"ALPHA": "PRIVATE"}
    project.wants(tags=public("ALPHA"))
    assert is_refused(apply(project))


def test_what_is_created_here_without_a_word_is_public_and_known_to_be(project: Project, service: Service) -> None:
    """So a manifest that says so later opens nothing, and the service is not told what nobody said."""
    project.settle(tags=[tag("NEW")])
    assert project.rows()["tag/NEW"]["fields"]["visibility"] == "PUBLIC"
    assert project.plan().changes == ()
    project.wants(tags=public("NEW"))
    assert project.plan().changes == ()
    project.settle(tags=[tag("NEW", visibility="PRIVATE")])
    project.wants(tags=public("NEW"))
    assert open_units(project) == {"tag/NEW": 1}


def test_silence_about_a_public_tag_leaves_it_as_somebody_made_it(project: Project, service: Service) -> None:
    """Once declared PUBLIC, then no longer: an upsert says nothing, so a tag hidden by hand stays hidden."""
    project.settle(tags=public("ALPHA"))
    hide(project, "ALPHA")
    project.settle(tags=[tag("ALPHA", description="more")])
    assert visibility(service) == {"ALPHA": "PRIVATE"}


DEFAULTS = {
    "the manifest's defaults": (("all.yaml", "defaults: {tags: {visibility: PUBLIC}}\ntags: [{name: ALPHA}]\n"), ()),
    "the project file's defaults": (
        ("all.yaml", "tags: [{name: ALPHA}]\n"),
        ("defaults: {tags: {visibility: PUBLIC}}",),
    ),
    "a template": (
        (
            "all.yaml",
            "generate:\n  - forEach: {csv: ../list.csv}\n    as: row\n    tags:\n"
            "      - {name: '{{ row.name }}', visibility: PUBLIC}\n",
        ),
        (),
    ),
}


@pytest.mark.parametrize(("manifest", "settings"), DEFAULTS.values(), ids=DEFAULTS)
def test_public_counts_wherever_it_is_said(
    manifest: tuple[str, str], settings: tuple[str, ...], project: Project, service: Service
) -> None:
    """Defaults and templates open a tag as its own line does."""
    adopted(project, service, "ALPHA")
    file, text = manifest
    project.wants()
    (project.folder / "manifests" / file).write_text(text, encoding="utf-8")
    project.settings(*settings)
    assert open_units(project) == {"unknown-visibility": 1}
    assert is_refused(apply(project))
    assert visibility(service) == {"ALPHA": "PRIVATE"}


@pytest.mark.parametrize("said", [{"visibility": "PUBLIC"}, {}], ids=["said", "by default"])
def test_a_rename_makes_no_public_copy_unasked(said: dict[str, str], project: Project, service: Service) -> None:
    """The new name is a tag of its own, which the service makes public if nobody says otherwise."""
    adopted(project, service, "ALPHA")
    project.wants(tags=[tag("NEW", previously=["ALPHA"], **said)])
    assert open_units(project)["unknown-visibility"] == 1
    assert is_refused(apply(project))
    assert visibility(service) == {"ALPHA": "PRIVATE"}
    project.wants(tags=[tag("NEW", previously=["ALPHA"], visibility="PRIVATE")])
    assert "unknown-visibility" not in open_units(project)


def test_a_saved_plan_asks_as_well(project: Project, service: Service) -> None:
    """What it shows is judged again when it is applied, and its approval opens it."""
    adopted(project, service, "ALPHA")
    project.wants(tags=public("ALPHA"))
    planned = project.run("plan", "--out", "a.plan", "--format", "json").document
    assert is_refused(project.run("apply", "a.plan", "--format", "json"))
    assert visibility(service) == {"ALPHA": "PRIVATE"}
    done = project.run("apply", "a.plan", "--format", "json", "--approve-deletes", planned["gate"]["approve"])
    assert (done.code, visibility(service)) == (0, {"ALPHA": "PUBLIC"})


def test_an_approval_goes_on_after_a_refusal(project: Project, service: Service) -> None:
    """One item was refused: the rest of the approved openings needs no new approval, and is opened."""
    adopted(project, service, *NAMES)
    project.wants(tags=public(*NAMES))
    (unit,) = project.run("plan", "--format", "json").document["gate"]["units"]
    service.fault("upsertTags", itemErrors=[{"index": 1, "errorDescription": "no"}])
    assert apply(project, "--approve-deletes", unit["approve"]).code == 3
    service.heal()
    assert apply(project).code == 0
    assert set(visibility(service).values()) == {"PUBLIC"}


def test_rows_of_an_old_export_are_unknown(project: Project, service: Service) -> None:
    """Where a row says nothing of it, whoever wrote it, the tag may be private."""
    project.settle(tags=[tag("ALPHA")])
    lines = [json.loads(line) for line in project.run("state", "export").out.splitlines() if line.strip()] or [{}]
    text = json.dumps(lines[0]) if len(lines) == 1 else "\n".join(map(json.dumps, lines))
    old = text.replace(', "visibility": "PUBLIC"', "").replace('"visibility": "PUBLIC", ', "")
    assert old != text
    (project.folder / "old.json").write_text(old, encoding="utf-8")
    assert project.run("state", "import", "old.json", "-y").code == 0
    project.wants(tags=public("ALPHA"))
    assert open_units(project) == {"unknown-visibility": 1}


def test_a_forgotten_tag_that_is_declared_again_asks(project: Project, service: Service) -> None:
    """A released row keeps what is unknown, and what is known to be PRIVATE."""
    adopted(project, service, "ALPHA")
    project.wants(tags=[tag("OTHER", visibility="PRIVATE")])
    apply(project, *project.approvals())
    project.wants(tags=public("ALPHA"))
    assert open_units(project)["unknown-visibility"] == 1
    apply(project, "--approve-deletes", str(project.plan().gate.approve))
    project.wants(tags=public("OTHER", "ALPHA"))
    assert open_units(project) == {"tag/OTHER": 1}


def test_an_undo_hides_nothing_and_opens_nothing_of_unknown_visibility(project: Project, service: Service) -> None:
    """The run that made it PRIVATE is taken back: the tag stays PRIVATE, and a note says so."""
    adopted(project, service, "ALPHA")
    project.settle(tags=[tag("ALPHA", visibility="PRIVATE", description="more")])
    planned = project.run("plan", "--undo", "last", "--out", "undo.plan", "--format", "json").document
    assert planned["gate"]["units"] == []
    assert ("tag/ALPHA", "not-undone") in [(note["address"], note["kind"]) for note in planned["notes"]]
    assert project.run("apply", "undo.plan").code == 0
    assert visibility(service) == {"ALPHA": "PRIVATE"}


def test_a_redo_of_an_opening_asks_again_where_the_visibility_is_unknown(project: Project, service: Service) -> None:
    """After `adopt --replace` nothing is known again, whatever a run once opened."""
    adopted(project, service, "ALPHA")
    project.settle(tags=public("ALPHA"))
    assert project.run("adopt", "--replace", "list.csv").code == 0
    assert open_units(project) == {"unknown-visibility": 1}
