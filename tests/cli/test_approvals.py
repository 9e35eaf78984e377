"""Approvals of units: each can be used once, independently of other removals and of killed runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import moved
from .program import Ended, Project, activity_type, category, tag
from .service import Service, serving

pytestmark = pytest.mark.slow

MEMBERS = [f"J-{number:02}" for number in range(36)]
OTHERS = [f"O-{number:02}" for number in range(60)]


def others(project: Project, names: list[str]) -> None:
    project.wants("others.yaml", tags=[tag(name) for name in names])


def approve(project: Project, *approvals: str) -> None:
    lines = ["policy: {tagRemoval: retire}"]
    project.settings(*lines, *(("approvals:", *(f"  - {each}" for each in approvals)) if approvals else ()))


def gate(project: Project, *arguments: str) -> dict[str, Any]:
    done = project.run("plan", "--format", "json", *arguments)
    assert done.code == 0, (done.out, done.err)
    found: dict[str, Any] = done.document["gate"]
    return found


def units(found: dict[str, Any]) -> dict[str, str]:
    """The approval text of each unit."""
    return {unit["unit"]: unit["approve"] for unit in found["units"]}


def applied(project: Project) -> Ended:
    return project.run("apply", "-y", "--format", "json")


@pytest.fixture(scope="module")
def settled_firm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a service and a project: a category with 36 tags, and 60 other tags in another manifest."""
    folder = tmp_path_factory.mktemp("firm")
    with serving(folder / "service.db") as service:
        project = Project(folder / "project", service.url)
        approve(project)
        others(project, OTHERS)
        project.settle(tagCategories=[category("jacobi")], tags=[tag(name, category="jacobi") for name in MEMBERS])
    return folder


@pytest.fixture(scope="module", params=["unit", "everything"])
def killed_firm(request: pytest.FixtureRequest, settled_firm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with 30 approved retirements was killed after about ten of them."""
    folder = tmp_path_factory.mktemp("killed")
    with serving(Path(shutil.copyfile(settled_firm / "service.db", folder / "service.db"))) as service:
        project = copied(settled_firm, Project(folder / "project", service.url))
        others(project, OTHERS[30:])
        asked = gate(project)
        approval = units(asked)["manifests/others.yaml"] if request.param == "unit" else asked["approve"]
        project.kill_during(service, "deleteKeyword", "apply", "-y", "--approve-deletes", approval, after=10)
        (project.folder / "approval").write_text(approval, encoding="utf-8")
    return folder


def copied(firm: Path, project: Project) -> Project:
    shutil.copytree(firm / "project", project.folder, dirs_exist_ok=True)
    moved(project.folder / ".syncengine" / "state.db", project.url)
    approve(project)  # the copied project file has the address of another service
    return project


@pytest.fixture
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """A service with the data of the firm that the test asks for, if any."""
    data = None
    for name in ("killed_firm", "settled_firm"):
        if data is None and name in request.fixturenames:
            data = Path(shutil.copyfile(request.getfixturevalue(name) / "service.db", tmp_path / "service.db"))
    with serving(data) as started:
        yield started


@pytest.fixture
def firm(project: Project, settled_firm: Path) -> Project:
    return copied(settled_firm, project)


@pytest.fixture
def killed(project: Project, killed_firm: Path) -> Project:
    return copied(killed_firm, project)


def test_an_approval_stays_valid_when_another_manifest_changes(firm: Project, service: Service) -> None:
    """Approving a category's 37 removals still holds after another pull request has removed an unrelated tag."""
    firm.wants(tagCategories=[])
    asked = gate(firm)
    assert list(units(asked)) == ["category/jacobi"]
    (unit,) = asked["units"]
    assert (unit["count"], unit["approved"], asked["tripped"]) == (37, None, True)
    approve(firm, unit["approve"])
    others(firm, OTHERS[1:])
    found = gate(firm)
    assert (found["tripped"], found["units"][0]["approved"]["by"]) == (False, "syncengine.yaml")
    done = applied(firm)
    assert done.code == 0, done.out
    assert not set(MEMBERS) & set(service.tags())


def test_unapproved_removals_are_measured_against_the_remaining_tags(firm: Project) -> None:
    """Removing 16 of the 60 tags outside the approved unit exceeds the limit, although it is few of all 96."""
    firm.wants(tagCategories=[])
    approval = units(gate(firm))["category/jacobi"]
    approve(firm, approval)
    others(firm, OTHERS[15:])
    assert not gate(firm)["tripped"]
    others(firm, OTHERS[16:])
    found = gate(firm)
    assert found["reasons"] == ["16 of 60 tags forgotten, retired or deleted (limit 25%)"]
    assert {unit["unit"]: bool(unit["approved"]) for unit in found["units"]} == {
        "category/jacobi": True,
        "manifests/others.yaml": False,
    }
    done = applied(firm)
    assert done.code == 4
    assert firm.run("apply", "-y", "--approve-deletes", units(found)["manifests/others.yaml"]).code == 0


def test_an_approval_is_used_once(firm: Project, service: Service) -> None:
    """Repeating an approved removal needs a new approval, and a warning names the used line in the project file."""
    wanted = {"tagCategories": [category("jacobi")], "tags": [tag(name, category="jacobi") for name in MEMBERS]}
    firm.wants(tagCategories=[])
    first = units(gate(firm))["category/jacobi"]
    approve(firm, first)
    assert applied(firm).code == 0
    firm.wants(**wanted)
    assert applied(firm).code == 0
    firm.wants(tagCategories=[])
    done = applied(firm)
    assert (done.code, "approval-used" in done.codes) == (4, True)
    again = units(gate(firm))["category/jacobi"]
    assert again != first
    said = next(each for each in done.document["diagnostics"] if each["code"] == "approval-used")
    assert (said["file"], said["line"], "was used by run" in said["message"]) == ("syncengine.yaml", 9, True)
    assert firm.run("apply", "-y", "--approve-deletes", first).code == 4
    assert set(MEMBERS) <= set(service.tags())
    assert firm.run("apply", "-y", "--approve-deletes", again).code == 0


def test_an_approval_of_everything_is_used_once_as_well(firm: Project) -> None:
    """An approval of all removals, given by option or variable, is refused the second time."""
    others(firm, OTHERS[30:])
    first = gate(firm)["approve"]
    assert firm.run("apply", "-y", environ={"SYNCENGINE_APPROVE_DELETES": first}).code == 0
    others(firm, OTHERS)
    assert applied(firm).code == 0
    others(firm, OTHERS[30:])
    assert firm.run("apply", "-y", environ={"SYNCENGINE_APPROVE_DELETES": first}).code == 4
    assert firm.run("apply", "-y", "--approve-deletes", first).code == 4
    assert firm.run("apply", "-y", "--approve-deletes", gate(firm)["approve"]).code == 0


def test_a_killed_run_goes_on_without_a_new_approval(killed: Project) -> None:
    """The next apply completes the removals approved for the killed run."""
    found = gate(killed)
    assert (found["tripped"], len(found["units"])) == (False, 1)
    assert found["units"][0]["approved"]["by"].startswith("run ")
    assert "already approved for run" in killed.run("plan").out
    assert applied(killed).code == 0
    assert gate(killed)["units"] == []


def test_a_killed_runs_approval_does_not_cover_other_removals(killed: Project) -> None:
    """Removing 24 further tags trips the gate."""
    others(killed, OTHERS[54:])
    found = gate(killed)
    assert found["tripped"]
    assert [bool(unit["approved"]) for unit in found["units"]].count(False) == 1


@pytest.mark.parametrize("is_listed", [False, True])
def test_kill_revert_and_redo_ask_again(killed: Project, is_listed: bool) -> None:
    """A killed removal that was reverted needs a new approval, even if the project file still has the old one."""
    if is_listed:
        approve(killed, (killed.folder / "approval").read_text(encoding="utf-8"))
    others(killed, OTHERS)
    assert applied(killed).code == 0
    others(killed, OTHERS[30:])
    assert applied(killed).code == 4


def test_kill_undo_and_redo_ask_again(killed: Project) -> None:
    """Undoing a killed run withdraws its approval, also for the removals that the run did not reach."""
    approve(killed, (killed.folder / "approval").read_text(encoding="utf-8"))
    assert killed.run("plan", "--undo", "last", "--out", "undo.plan").code == 0
    assert killed.run("apply", "undo.plan", "--format", "json").code == 0
    refused = killed.run("apply", "-y", "--redo", "--format", "json")
    assert (refused.code, refused.codes[-1]) == (4, "gate")


def test_removals_that_were_reverted_need_a_new_approval(killed: Project) -> None:
    """The rest of a killed run's approval does not cover removals that were done and then reverted."""
    approve(killed, (killed.folder / "approval").read_text(encoding="utf-8"))
    others(killed, [*OTHERS[:29], *OTHERS[30:]])
    assert killed.run("apply", "-y", *[w for n in OTHERS[:29] for w in ("--target", f"tag/{n}")]).code == 0
    others(killed, OTHERS[30:])
    found = gate(killed)
    assert (found["tripped"], applied(killed).code) == (True, 4)
    begun = [unit for unit in found["units"] if unit["approved"]]
    assert [unit["count"] for unit in begun] == [1]


def test_a_saved_plan_that_was_killed_goes_on(firm: Project, service: Service) -> None:
    """Applying a saved plan again after a kill completes it without a new approval."""
    others(firm, OTHERS[30:])
    assert firm.run("plan", "--out", "saved.plan").code == 0
    approval = json.loads((firm.folder / "saved.plan").read_bytes())["gate"]["units"][0]["approve"]
    assert firm.run("apply", "saved.plan").code == 4
    firm.kill_during(service, "deleteKeyword", "apply", "saved.plan", "--approve-deletes", approval, after=10)
    done = firm.run("apply", "saved.plan", "--format", "json")
    assert done.code == 0, done.out


@pytest.mark.parametrize("how", ["retire", "forget"])
@pytest.mark.parametrize("secret", ["OLD", "NEW"])
def test_an_approval_to_make_public_lasts_until_it_is_sent(
    project: Project, service: Service, secret: str, how: str
) -> None:
    """A retired or released name keeps its status, and its approval stays unused, until the upsert is sent."""
    visible = {name: "PRIVATE" if name == secret else "PUBLIC" for name in ("OLD", "NEW", "OTHER")}
    tags = [tag(name, visibility=visible[name]) for name in visible]
    project.settle(tags=tags)
    project.settle(tags=[tags[0], tags[2]], removed=[{"tag": "NEW", "as": how, "reason": "closed"}])
    former = {"previously": ["OLD"]} if secret == "OLD" else {}
    opened = tag("NEW", category="acme", visibility="PUBLIC", **former)
    project.wants(tagCategories=[category("acme")], tags=[opened, tags[2], *([] if former else tags[:1])])
    service.fault("upsertTagCategories", status=400, times=None)
    assert project.apply().code == 3
    assert project.rows()["tag/NEW"]["status"] == {"retire": "retired", "forget": "released"}[how]
    service.heal()
    by_name = {unit["unit"]: unit["approved"] for unit in gate(project)["units"]}
    assert by_name["tag/NEW"]["by"].startswith("run ")
    assert applied(project).code == 0
    assert (gate(project)["units"], project.rows()["tag/NEW"]["status"]) == ([], "active")


def test_an_approval_that_matches_nothing_is_a_warning(firm: Project) -> None:
    """The warning is reported at the line of the approval."""
    approve(firm, "3@0123456789abcdef0123")
    done = firm.run("plan", "--format", "json")
    (said,) = [each for each in done.document["diagnostics"] if each["code"] == "approval-unused"]
    assert (said["severity"], said["file"], said["line"]) == ("warning", "syncengine.yaml", 9)


def test_a_state_import_uses_up_the_approvals_in_the_project_file(firm: Project) -> None:
    """Importing the rows of an earlier state does not make its approvals valid again."""
    others(firm, OTHERS[30:])
    approval = units(gate(firm))["manifests/others.yaml"]
    approve(firm, approval)
    assert firm.run("state", "export", "-o", "rows.jsonl").code == 0
    assert firm.run("state", "import", "rows.jsonl", "-y").code == 0
    done = applied(firm)
    assert (done.code, "approval-used" in done.codes) == (4, True)


def test_unapproved_removals_of_an_approved_run_count_towards_the_limit(firm: Project) -> None:
    """A run with an approved unit also removed 15 other tags; removing 5 more on the same day trips the gate."""
    firm.wants(tagCategories=[])
    approve(firm, units(gate(firm))["category/jacobi"])
    others(firm, OTHERS[15:])
    assert applied(firm).code == 0
    others(firm, OTHERS[20:])
    done = applied(firm)
    assert done.code == 4
    assert "15 of them in runs since" in gate(firm)["reasons"][0]


# --- lines under `removed:`


def line(name: str, how: str = "retire") -> dict[str, str]:
    return {"tag": name, "as": how}


def test_lines_under_removed_approve_the_tags_they_name(firm: Project) -> None:
    """With 15 tags named under `removed:`, 11 other removals out of 81 tags stay within the limit."""
    others(firm, OTHERS[26:])
    assert gate(firm)["tripped"]
    firm.wants("lines.yaml", removed=[line(name, "forget") for name in OTHERS[:15]])
    assert not gate(firm)["tripped"]
    assert applied(firm).code == 0


def test_too_many_lines_under_removed_need_one_approval(firm: Project) -> None:
    """Lines under `removed:` for more than 25 % of 96 tags form one unit that needs an approval."""
    others(firm, OTHERS[24:])
    firm.wants("lines.yaml", removed=[line(name) for name in OTHERS[:24]])
    assert not gate(firm)["tripped"]
    others(firm, OTHERS[25:])
    firm.wants("lines.yaml", removed=[line(name) for name in OTHERS[:25]])
    found = gate(firm)
    assert list(units(found)) == ["removed"]
    assert firm.run("apply", "-y", "--approve-deletes", units(found)["removed"]).code == 0


def test_a_line_that_a_template_rendered_approves_nothing(firm: Project) -> None:
    """A line under `removed:` counts as an approval only if somebody wrote it out."""
    others(firm, OTHERS[26:])
    lines = "".join("  - {tag: '{{ \"" + name + "\" }}', as: retire}\n" for name in OTHERS[:15])
    text = f"removed:\n{lines}"
    (firm.folder / "manifests" / "lines.yaml.j2").write_text(text, encoding="utf-8")
    assert gate(firm)["tripped"]


def test_a_line_that_deletes_approves_nothing(firm: Project) -> None:
    """Tags removed with `as: delete` count towards the limit like any other removal."""
    firm.settings(service=("endpoints: {deleteTag: {path: /tag/delete}}",))
    others(firm, OTHERS[26:])
    firm.wants("lines.yaml", removed=[line(name, "delete") for name in OTHERS[:26]])
    found = gate(firm)
    assert (found["tripped"], list(units(found))) == (True, ["manifests/others.yaml"])


def test_a_line_that_was_used_approves_nothing_again(firm: Project) -> None:
    """If a removed tag is declared again, the same line under `removed:` no longer exempts it from the limit."""
    firm.wants("lines.yaml", removed=[line(name) for name in OTHERS[:20]])
    others(firm, OTHERS[20:])
    assert applied(firm).code == 0
    firm.wants("lines.yaml")
    others(firm, OTHERS)
    assert applied(firm).code == 0
    firm.wants("lines.yaml", removed=[line(name) for name in OTHERS[:20]])
    others(firm, OTHERS[26:])
    found = gate(firm)
    assert found["reasons"] == ["26 of 96 tags forgotten, retired or deleted (limit 25%)"]


def test_the_first_sweep_is_approved_for_one_service_and_environment(project: Project) -> None:
    """Each service and environment has its own approval of the first sweep, even before there is a state."""
    prod = "environments: {prod: {state: prod.db}, other: {service: {baseUrl: 'http://127.0.0.1:9/api'}, state: o.db}}"
    project.settings("policy: {activityTypes: exact}", prod)
    project.wants(activityTypes=[activity_type("A-1")])
    approvals = {units(gate(project, *words))["first-sweep"] for words in ((), ("--env", "prod"), ("--env", "other"))}
    assert len(approvals) == 3


def test_a_refusal_names_the_approval_of_a_rule_that_is_missing(project: Project) -> None:
    """The approval of all removals does not approve a rule, and a refusal asks only for the missing one."""
    (project.folder / "policies").mkdir()
    rule = 'rules: [{name: own, for: tag, approve: action == "update", message: "Ask."}]'
    (project.folder / "policies" / "own.yaml").write_text(rule)
    project.settle(tags=[tag("A-1"), *(tag(name) for name in OTHERS)])
    project.wants(tags=[tag("A-1", description="other")])
    everything = gate(project)["approve"]
    done = project.run("apply", "-y", "--approve-deletes", everything, "--format", "json")
    (message,) = (each["message"] for each in done.document["diagnostics"] if each["code"] == "gate")
    (missing,) = (unit["approve"] for unit in gate(project)["units"] if unit["unit"] == "rule/own")
    assert (done.code, missing in message, everything in message) == (4, True, False)
    assert everything not in project.run("apply", "-y", "--approve-deletes", everything).out.split("Blocked")[-1]
    again = ("--approve-deletes", everything, "--approve-deletes", missing)
    assert project.run("apply", "-y", *again).code == 0


def test_a_plan_of_all_tags_is_saved_and_applied_whatever_the_limit(firm: Project) -> None:
    """A saved plan that removes all tags can be applied even after the limit in the project file has changed."""
    firm.settings("policy: {tagRemoval: retire, maxDeletes: {tags: 100%, keywords: 100%}}")
    assert applied(firm).code == 0  # a loosened limit counts from the next apply on
    others(firm, [])
    firm.wants(tagCategories=[category("jacobi")])
    done = firm.run("plan", "--out", "saved.plan", "--format", "json")
    gate_of_all = done.document["gate"]
    always = "96 of 96 tags forgotten, retired or deleted (limit 100%, but removing all always needs an approval)"
    assert always in gate_of_all["reasons"]
    firm.settings("policy: {tagRemoval: retire, maxDeletes: {tags: 5, keywords: 100%}}")
    assert firm.run("apply", "saved.plan").code == 4
    assert firm.run("apply", "saved.plan", "--approve-deletes", gate_of_all["approve"]).code == 0


def unused(project: Project) -> list[str]:
    """The codes of the plan's warnings about approvals."""
    found = project.run("plan", "--format", "json").document["diagnostics"]
    return [each["code"] for each in found if each["code"].startswith("approval-")]


def test_approvals_in_use_after_a_kill_are_not_warned_of(firm: Project, service: Service) -> None:
    """`approval-used` is reported only when the killed run's calls can no longer be executed."""
    others(firm, OTHERS[30:])
    asked = gate(firm)
    assert asked["approve"] == units(asked)["manifests/others.yaml"]
    approve(firm, asked["approve"])
    assert unused(firm) == []
    firm.kill_during(service, "deleteKeyword", "apply", "-y", after=10)
    assert unused(firm) == []
    assert applied(firm).code == 0
    assert unused(firm) == []  # calls of the run that was killed may still be executed
    assert applied(firm).code == 0
    assert unused(firm) == ["approval-used"]
