"""Approvals of removals, and of opening tags: each can be used once, and removals in small steps need one, too."""

import re
from typing import Any

import pytest

from .program import Ended, Project, activity_type, category, tag
from .service import Json, Service

pytestmark = pytest.mark.slow

MEMBERS = [f"J-{number:02}" for number in range(36)]
OTHERS = [f"O-{number:02}" for number in range(60)]
FILE = "manifests/others.yaml"


def others(project: Project, names: list[str]) -> None:
    project.wants("others.yaml", tags=[tag(name) for name in names])


def approve(project: Project, *approvals: str) -> None:
    lines = ["policy: {tagRemoval: retire}"]
    project.settings(*lines, *(("approvals:", *(f"  - {each}" for each in approvals)) if approvals else ()))


def units(found: Json) -> dict[str, str]:
    """The approval text of each unit."""
    return {unit["unit"]: unit["approve"] for unit in found["units"]}


def applied(project: Project, *approvals: str) -> Ended:
    return project.apply_unapproved(*(word for each in approvals for word in ("--approve-deletes", each)))


def warnings(project: Project) -> list[Json]:
    """The plan's warnings about approvals."""
    found = project.run("plan", "--format", "json").document["diagnostics"]
    return [each for each in found if each["code"].startswith("approval-")]


@pytest.fixture
def firm(project: Project) -> Project:
    """A category with 36 tags, and 60 other tags in another manifest."""
    approve(project)
    others(project, OTHERS)
    project.settle(tagCategories=[category("jacobi")], tags=[tag(name, category="jacobi") for name in MEMBERS])
    return project


@pytest.fixture
def killed(firm: Project, service: Service) -> Project:
    """A run with 30 retirements, approved in the project file, was killed after about ten of them."""
    others(firm, OTHERS[30:])
    approve(firm, units(firm.gate())[FILE])
    firm.kill_during(service, "deleteKeyword", "apply", "-y", after=10)
    return firm


def test_an_approval_in_the_project_file_is_for_its_unit(firm: Project, service: Service) -> None:
    """Other removals are measured against the tags outside of the unit; those that were applied count on that day."""
    firm.wants(tagCategories=[])
    asked = firm.gate()
    (unit,) = asked["units"]
    assert (unit["unit"], unit["count"], unit["approved"], asked["tripped"]) == ("category/jacobi", 37, None, True)
    approve(firm, unit["approve"])
    others(firm, OTHERS[16:])
    found = firm.gate()
    assert found["reasons"] == ["16 of 60 tags forgotten, retired or deleted (limit 25%)"]  # and few of all 96
    assert {unit["unit"]: bool(unit["approved"]) for unit in found["units"]} == {"category/jacobi": True, FILE: False}
    assert applied(firm).code == 4
    others(firm, OTHERS[15:])
    found = firm.gate()
    assert (found["tripped"], found["units"][0]["approved"]["by"]) == (False, "syncengine.yaml")
    assert applied(firm).code == 0
    assert not set(MEMBERS) & set(service.tags())
    others(firm, OTHERS[20:])
    assert applied(firm).code == 4
    found = firm.gate()
    assert "15 of them in runs since" in found["reasons"][0]
    assert applied(firm, units(found)[FILE]).code == 0


def test_an_approval_is_used_once(firm: Project, service: Service) -> None:
    """Repeating an approved removal needs a new approval, and a warning names the used line in the project file."""
    wanted = {"tagCategories": [category("jacobi")], "tags": [tag(name, category="jacobi") for name in MEMBERS]}
    firm.wants(tagCategories=[])
    first = units(firm.gate())["category/jacobi"]
    approve(firm, first)
    assert applied(firm).code == 0
    firm.wants(**wanted)
    assert applied(firm).code == 0
    firm.wants(tagCategories=[])
    assert applied(firm).code == 4
    again = units(firm.gate())["category/jacobi"]
    assert again != first
    (said,) = warnings(firm)
    assert (said["code"], said["file"], said["line"]) == ("approval-used", "syncengine.yaml", 9)
    assert "was used by run" in said["message"]
    assert applied(firm, first).code == 4
    assert set(MEMBERS) <= set(service.tags())
    assert applied(firm, again).code == 0


def test_a_killed_run_goes_on_without_a_new_approval(killed: Project) -> None:
    """The next apply completes the removals approved for the killed run, and needs an approval of 24 others."""
    approve(killed)
    others(killed, OTHERS[54:])
    found = killed.gate()
    assert (found["tripped"], [bool(unit["approved"]) for unit in found["units"]].count(False)) == (True, 1)
    others(killed, OTHERS[30:])
    found = killed.gate()
    assert (found["tripped"], len(found["units"])) == (False, 1)
    assert found["units"][0]["approved"]["by"].startswith("run ")
    assert "already approved for run" in killed.run("plan").out
    assert applied(killed).code == 0
    assert killed.gate()["units"] == []


def test_kill_undo_and_redo_ask_again(killed: Project) -> None:
    """Undoing a killed run withdraws its approval, also for the removals that the run did not reach."""
    assert killed.run("plan", "--undo", "last", "--out", "undo.plan").code == 0
    assert killed.run("apply", "undo.plan", "--format", "json").code == 0
    refused = killed.run("apply", "-y", "--redo", "--format", "json")
    assert (refused.code, refused.codes[-1]) == (4, "gate")


@pytest.mark.parametrize("how", ["retire", "forget"])
@pytest.mark.parametrize("secret", ["OLD", "NEW"])
def test_an_approval_to_open_lasts_until_it_is_sent(project: Project, service: Service, secret: str, how: str) -> None:
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
    by_name = {unit["unit"]: unit["approved"] for unit in project.gate()["units"]}
    assert by_name["tag/NEW"]["by"].startswith("run ")
    assert applied(project).code == 0
    assert (project.gate()["units"], project.rows()["tag/NEW"]["status"]) == ([], "active")


def test_an_approval_is_warned_of_while_it_matches_nothing_and_once_it_is_used(firm: Project, service: Service) -> None:
    """It counts as used only when no call of a killed run can be executed any more."""
    approve(firm, "3@0123456789abcdef0123")
    (said,) = warnings(firm)
    assert (said["code"], said["severity"], said["line"]) == ("approval-unused", "warning", 9)
    others(firm, OTHERS[30:])
    approve(firm, firm.gate()["approve"])
    assert warnings(firm) == []
    firm.kill_during(service, "deleteKeyword", "apply", "-y", after=10)
    assert warnings(firm) == []
    assert applied(firm).code == 0
    assert warnings(firm) == []  # calls of the run that was killed may still be executed
    assert applied(firm).code == 0
    assert [each["code"] for each in warnings(firm)] == ["approval-used"]


def test_a_state_import_uses_up_the_approvals_in_the_project_file(firm: Project) -> None:
    """Importing the rows of an earlier state does not make its approvals valid again."""
    others(firm, OTHERS[30:])
    approve(firm, units(firm.gate())[FILE])
    assert firm.run("state", "export", "-o", "rows.jsonl").code == 0
    assert firm.run("state", "import", "rows.jsonl", "-y").code == 0
    done = applied(firm)
    assert (done.code, "approval-used" in done.codes) == (4, True)


# --- lines under `removed:`


def lines(project: Project, names: list[str], how: str = "retire", file: str = "lines.yaml") -> None:
    if file.endswith(".j2"):
        names = [f"{{{{ '{name}' }}}}" for name in names]
    project.wants(file, removed=[{"tag": name, "as": how} for name in names])


LINES: dict[str, tuple[int, int, str, str, list[str]]] = {
    "approve the tags that they name": (15, 26, "forget", "lines.yaml", []),
    "need no approval up to the limit": (24, 24, "retire", "lines.yaml", []),
    "need one approval if they are too many": (25, 25, "retire", "lines.yaml", ["removed"]),
    "approve nothing if a template rendered them": (15, 26, "retire", "lines.yaml.j2", [FILE]),
    "approve nothing if they delete": (26, 26, "delete", "lines.yaml", [FILE]),
}
"""How many of the 96 tags are named, how many leave, and the units that then need an approval."""


@pytest.mark.parametrize(("named", "going", "how", "file", "asking"), LINES.values(), ids=LINES)
def test_lines_under_removed(firm: Project, named: int, going: int, how: str, file: str, asking: list[str]) -> None:
    """The tags that they name do not count towards the limit of 25 %, which they have of their own."""
    firm.settings("policy: {tagRemoval: retire}", service=("endpoints: {deleteTag: {path: /tag/delete}}",))
    others(firm, OTHERS[going:])
    assert firm.gate()["tripped"] == (going > 24)
    lines(firm, OTHERS[:named], how, file)
    found = firm.gate()
    assert (found["tripped"], [unit for unit in units(found) if asking]) == (bool(asking), asking)
    assert applied(firm, *[units(found)[unit] for unit in asking]).code == 0


def test_a_line_that_was_used_approves_nothing_again(firm: Project) -> None:
    """If a removed tag is declared again, the same line under `removed:` no longer exempts it from the limit."""
    lines(firm, OTHERS[:20])
    others(firm, OTHERS[20:])
    assert applied(firm).code == 0
    firm.wants("lines.yaml")
    others(firm, OTHERS)
    assert applied(firm).code == 0
    lines(firm, OTHERS[:20])
    others(firm, OTHERS[26:])
    assert firm.gate()["reasons"] == ["26 of 96 tags forgotten, retired or deleted (limit 25%)"]


def test_the_first_sweep_is_approved_for_one_service_and_environment(project: Project) -> None:
    prod = "environments: {prod: {state: prod.db}, other: {service: {baseUrl: 'http://127.0.0.1:9/api'}, state: o.db}}"
    project.settings("policy: {activityTypes: exact}", prod)
    project.wants(activityTypes=[activity_type("A-1")])
    approvals = {units(project.gate(*words))["first-sweep"] for words in ((), ("--env", "prod"), ("--env", "other"))}
    assert len(approvals) == 3


def test_a_refusal_names_the_approval_of_a_rule_that_is_missing(project: Project) -> None:
    """The approval of all removals does not approve a rule, and a refusal asks only for the missing one."""
    (project.folder / "policies").mkdir()
    rule = 'rules: [{name: own, for: tag, approve: action == "update", message: "Ask."}]'
    (project.folder / "policies" / "own.yaml").write_text(rule)
    project.settle(tags=[tag("A-1"), *(tag(name) for name in OTHERS)])
    project.wants(tags=[tag("A-1", description="other")])
    asked = project.gate()
    everything, missing = asked["approve"], units(asked)["rule/own"]
    done = applied(project, everything)
    (message,) = (each["message"] for each in done.document["diagnostics"] if each["code"] == "gate")
    assert (done.code, missing in message, everything in message) == (4, True, False)
    assert everything not in project.run("apply", "-y", "--approve-deletes", everything).out.split("Blocked")[-1]
    assert applied(project, everything, missing).code == 0


# --- small steps: removals of the last 24 hours that nobody approved count towards the limit


NAMES = [f"T-{number:02}" for number in range(24)]


def targets(numbers: range) -> list[str]:
    return [word for number in numbers for word in ("--target", f"tag/{NAMES[number]}")]


def step(project: Project, numbers: range, *more: str) -> int:
    """The exit code of an apply to these tags only, without an approval unless `more` has one."""
    return project.apply_unapproved(*targets(numbers), *more).code


def held(service: Service) -> int:
    """The number of tags that have keywords; a retired one has none."""
    return sum(bool(each["keywords"]) for each in service.holds()["tags"])


@pytest.fixture
def losing(project: Project) -> Project:
    """24 tags are applied and the manifest now has only one; each selection of the others is retired."""
    approve(project)
    project.settle(tags=[tag(name) for name in NAMES])
    project.wants(tags=[tag(NAMES[-1])])
    return project


def test_a_loss_taken_bit_by_bit_trips_the_gate(losing: Project, service: Service) -> None:
    """Each step is below 25 % of the remaining tags; the third is refused with the sum of all, until a day later."""
    assert step(losing, range(3)) == 0
    assert step(losing, range(3, 6)) == 0
    assert step(losing, range(6, 8)) == 4
    found = losing.gate(*targets(range(6, 8)))
    assert found["reasons"][0].startswith("8 of 24 tags forgotten, retired or deleted, 6 of them in runs since ")
    assert (len(service.tags()), held(service)) == (24, 18)
    assert step(losing, range(6, 8), "--approve-deletes", found["approve"]) == 0
    assert held(service) == 16
    assert step(losing, range(8, 9)) == 4
    losing.age(1)
    assert step(losing, range(8, 12)) == 0


def test_approved_removals_do_not_count(losing: Project, service: Service) -> None:
    """The last run that removed a tag decides whether its removal was approved, also if an earlier one failed."""
    service.fault("deleteKeyword", status=400, times=6)
    assert step(losing, range(6)) == 3
    asked = losing.gate(*targets(range(8)))["approve"]
    assert step(losing, range(8), "--approve-deletes", asked) == 0
    assert step(losing, range(8, 12)) == 0


def test_removals_that_failed_or_were_reverted_still_count(losing: Project, service: Service) -> None:
    """Removing the same tags again counts once, but other tags exceed the limit together with them."""
    service.fault("deleteKeyword", status=400, times=6)
    assert step(losing, range(6)) == 3
    assert step(losing, range(6)) == 0
    assert step(losing, range(6, 7)) == 4
    losing.wants(tags=[tag(name) for name in NAMES])
    assert losing.run("apply", "-y").code == 0
    losing.wants(tags=[tag(NAMES[-1])])
    assert step(losing, range(6, 12)) == 4
    assert step(losing, range(6)) == 0


def test_removals_of_a_killed_run_count(losing: Project, service: Service) -> None:
    """This holds for calls with and without an answer."""
    losing.kill_during(service, "deleteKeyword", "apply", "-y", *targets(range(6)), after=4)
    assert step(losing, range(6, 10)) == 4
    assert int(losing.gate(*targets(range(6, 10)))["reasons"][0].split()[0]) in (8, 9, 10)


def test_state_forget_is_no_removal_and_hides_none(losing: Project) -> None:
    """Removals by runs still count after `state forget`, and rows forgotten by it do not count."""
    assert step(losing, range(6)) == 0
    assert losing.run("state", "forget", *(f"tag/{name}" for name in NAMES[:6]), "-y").code == 0
    assert step(losing, range(6, 7)) == 4
    losing.age(1)
    assert losing.run("state", "forget", *(f"tag/{name}" for name in NAMES[6:12]), "-y").code == 0
    assert step(losing, range(12, 14)) == 0


def test_removed_activity_types_count(project: Project) -> None:
    """Two sweeps of two codes each trip the gate. The first sweep of a state always needs an approval."""
    for left in (11, 10):
        project.settle(activityTypes=[activity_type(f"A{number}") for number in range(left)])
    for left, code in ((8, 0), (6, 4)):
        project.wants(activityTypes=[activity_type(f"A{number}") for number in range(left)])
        assert project.run("apply", "-y").code == code


def test_saved_plans_count_the_removals_of_each_other(losing: Project, service: Service) -> None:
    """Both plans were below the limit when saved; after the first apply, the second needs an approval, or a day."""
    for file, numbers in (("one", range(6)), ("two", range(6, 9)), ("three", range(9, 12))):
        assert losing.run("plan", "--out", f"{file}.plan", *targets(numbers)).code == 0
    assert losing.run("apply", "one.plan").code == 0
    done = losing.run("apply", "two.plan", "--format", "json")
    assert (done.code, done.codes, held(service)) == (4, ["gate"], 18)
    asked = losing.gate(*targets(range(6, 9)))["approve"]
    assert losing.run("apply", "two.plan", "--approve-deletes", asked).code == 0
    assert (held(service), losing.run("apply", "three.plan").code) == (15, 4)
    losing.age(1)
    assert losing.run("apply", "three.plan").code == 0


# --- tags whose visibility the state does not know count as private: making them public needs an approval


ADOPTED = ("ALPHA", "BETA", "GAMMA")


@pytest.fixture
def adopted(project: Project) -> Project:
    """A project that has adopted tags without a visibility, which are PRIVATE at the service."""
    hide(project, *ADOPTED)
    (project.folder / "list.csv").write_text("name\n" + "".join(f"{name}\n" for name in ADOPTED), encoding="utf-8")
    assert project.run("adopt", "list.csv").code == 0
    return project


def hide(project: Project, *names: str) -> None:
    """Make tags PRIVATE from another project with its own state."""
    Project(project.folder / "elsewhere", project.url).settle(tags=[tag(name, visibility="PRIVATE") for name in names])


def visibility(service: Service) -> dict[str, str]:
    return {each["name"]: each["visibility"] for each in service.holds()["tags"]}


def public(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [tag(name, visibility="PUBLIC", **more) for name in names]


def assert_refused(done: Ended, service: Service) -> None:
    assert (done.code, "gate" in done.codes) == (4, True)
    assert {*visibility(service).values()} == {"PRIVATE"}


def open_units(project: Project) -> dict[str, int]:
    """The units that need an approval, each with its number of losses."""
    return {unit["unit"]: unit["count"] for unit in project.gate()["units"] if unit["approved"] is None}


def test_tags_of_unknown_visibility_need_one_approval_to_be_public(adopted: Project, service: Service) -> None:
    """They are one unit of the gate, whether the tag, the project file's defaults or a rename makes them public: a new
    name is another tag, public unless the manifest says PRIVATE. Other changes leave them unknown; after the approved
    apply, the rows are known to be PUBLIC, until `adopt`."""
    for said in ({"visibility": "PUBLIC"}, {}):
        adopted.wants(tags=[tag("NEW", previously=["ALPHA"], **said)])
        assert open_units(adopted)["unknown-visibility"] == 1
    adopted.wants(tags=[tag("NEW", previously=["ALPHA"], visibility="PRIVATE")])
    assert "unknown-visibility" not in open_units(adopted)
    adopted.settings("defaults: {tags: {visibility: PUBLIC}}")
    adopted.wants(tags=[tag(name) for name in ADOPTED])
    assert open_units(adopted) == {"unknown-visibility": 3}
    adopted.settings()
    for words in ((), ("--reassert",)):
        adopted.wants(tags=[tag(name, description="more") for name in ADOPTED])
        assert adopted.apply_unapproved(*words).code == 0
    adopted.wants(tags=public(*ADOPTED))
    assert open_units(adopted) == {"unknown-visibility": 3}
    assert_refused(adopted.apply_unapproved(), service)
    planned = adopted.run("plan", "--out", "a.plan", "--format", "json").document
    assert_refused(adopted.run("apply", "a.plan", "--format", "json"), service)
    assert adopted.run("apply", "a.plan", "--approve-deletes", planned["gate"]["units"][0]["approve"]).code == 0
    assert {*visibility(service).values()} == {"PUBLIC"}
    adopted.wants(tags=public(*ADOPTED))
    assert open_units(adopted) == {}
    assert adopted.run("adopt", "--replace", "list.csv").code == 0
    assert open_units(adopted) == {"unknown-visibility": 3}


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
    adopted.wants(tags=public(*ADOPTED))
    assert open_units(adopted)["unknown-visibility"] == 3
    adopted.settle(tags=public(*ADOPTED))
    adopted.wants(tags=public("OTHER", *ADOPTED))
    assert open_units(adopted) == {"tag/OTHER": 1}


def test_an_undo_does_not_restore_an_unknown_visibility(adopted: Project, service: Service) -> None:
    """Undoing the run that made the tags PRIVATE leaves them PRIVATE, with a note."""
    adopted.settle(tags=[tag(name, visibility="PRIVATE", description="more") for name in ADOPTED])
    planned = adopted.run("plan", "--undo", "last", "--out", "undo.plan", "--format", "json").document
    assert planned["gate"]["units"] == []
    assert ("tag/ALPHA", "not-undone") in [(note["address"], note["kind"]) for note in planned["notes"]]
    assert adopted.run("apply", "undo.plan").code == 0
    assert {*visibility(service).values()} == {"PRIVATE"}
