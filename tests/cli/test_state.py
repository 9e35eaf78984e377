"""The `state` commands, with text and JSON output."""

from __future__ import annotations

import subprocess

import pytest
from msgspec.structs import replace

from syncengine.plan.saved import load, save
from syncengine.project.references import canonical_url
from syncengine.render.documents import SHOWN

from .program import Project, category, tag
from .service import Json, Service, serving

pytestmark = pytest.mark.slow

HELD = {"tagCategories": [category("held")], "tags": [tag("HELD-1", category="held", keywords=["of it"])]}


@pytest.fixture
def held(project: Project) -> Project:
    project.settle(**HELD)
    return project


def test_rows_are_listed_and_shown(held: Project) -> None:
    """Text has one line for each row; JSON has everything that is recorded."""
    assert [line.split()[0] for line in held.run("state", "list").out.splitlines()] == ["category/held", "tag/HELD-1"]
    listed = held.run("state", "list", "tag/*", "--format", "json").document
    assert [row["address"] for row in listed["resources"]] == ["tag/HELD-1"]
    shown = held.run("state", "show", "tag/HELD-1", "--format", "json").document
    assert (sorted(shown["keywords"]), shown["fields"]["category"]) == (["HELD-1", "of it"], "held")
    assert "of it" in held.run("state", "show", "tag/HELD-1").out


def test_a_pattern_without_a_match_is_not_taken_for_an_empty_state(held: Project) -> None:
    """The message for a pattern without a match differs from that of an empty state."""
    done = held.run("state", "list", "tag/Z*", "tag/Y*")
    assert (done.code, done.out) == (0, "No recorded address matches tag/Z* or tag/Y*.\n")
    assert held.run("state", "list", "tag/Z*", "--format", "json").document["resources"] == []
    assert held.run("state", "list", environ={"SYNCENGINE_STATE": "new.db"}).out == "Nothing is recorded.\n"


def test_history_lists_runs_or_the_changes_of_one_resource(held: Project) -> None:
    """A change has its run and the line of its manifest (docs/planning.md 1.3)."""
    entries = held.run("state", "history", "tag/HELD-1", "--format", "json").document["entries"]
    assert [entry["outcome"] for entry in entries]
    assert "manifests/all.yaml" in held.run("state", "history", "tag/HELD-1").out
    assert held.run("state", "history", "--format", "json").document["runs"][0]["outcome"] == "complete"
    assert "apply" in held.run("state", "history").out


def test_the_history_of_a_resource_is_newest_first(held: Project) -> None:
    """In JSON it is oldest first."""
    held.settle(tagCategories=[category("held")], tags=[tag("HELD-1", category="held", description="now")])
    text = held.run("state", "history", "tag/HELD-1").out
    assert text.index("description: ") < text.index("keywords added")
    entries = held.run("state", "history", "tag/HELD-1", "--format", "json").document["entries"]
    assert entries == sorted(entries, key=lambda entry: entry["at"])


def last_run(project: Project) -> Json:
    run: Json = project.run("state", "history", "--format", "json").document["runs"][0]
    return run


def test_refused_runs_are_recorded(held: Project, service: Service) -> None:
    """The history has their exit code (4, 6, 7 or 8), reason and CI actor."""
    environ = {"GITHUB_ACTOR": "octo"}
    lock = held.run("state", "lock", "--format", "json").document["lock"]["id"]
    held.wants(
        tagCategories=[category("held")], tags=[tag("HELD-1", category="held", keywords=["of it"]), tag("NEW-1")]
    )
    refused = [held.run("apply", "-y", "--lock-timeout", "0s", environ=environ).code]
    told = [last_run(held)]
    held.run("state", "unlock", lock)
    assert held.run("plan", "--out", "plan.json").code == 0
    service.choose(teamName="Others")
    refused.append(held.run("apply", "plan.json", environ=environ).code)
    told.append(last_run(held))
    service.choose(teamName="Sandbox")
    held.wants(tags=[tag("NEW-1", nmae="x")])
    refused.append(held.run("apply", "-y", environ=environ).code)
    told.append(last_run(held))
    held.wants(tags=[])
    refused.append(held.run("apply", "-y", environ=environ).code)
    told.append(last_run(held))
    assert refused == [6, 7, 8, 4]
    assert [(run["outcome"], run["exitCode"], run["actor"]) for run in told] == [
        ("refused", code, "octo") for code in refused
    ]
    codes = [run["reason"].partition(":")[0] for run in told]
    assert codes == ["locked", "wrong-team", "unknown-field", "gate"]
    text = held.run("state", "history").out
    assert "refused (exit 8)" in text
    assert "for octo" in text


def test_a_refused_plan_file_is_recorded(held: Project) -> None:
    """A forged, a stale and a missing reviewed plan each are recorded with exit code 5."""
    held.wants(
        tagCategories=[category("held")], tags=[tag("HELD-1", category="held", keywords=["of it"]), tag("NEW-1")]
    )
    assert held.run("plan", "--out", "plan.json").code == 0
    plan = load(held.folder / "plan.json", SHOWN)
    save(replace(plan, basis=replace(plan.basis, commit="--help")), SHOWN, held.folder / "forged.json")
    assert held.run("apply", "forged.json").code == 5
    told = [last_run(held)]
    assert held.run("apply", "-y", "--reviewed", "nowhere.json").code == 5
    told.append(last_run(held))
    held.settle(
        tagCategories=[category("held")],
        tags=[tag("HELD-1", category="held", keywords=["of it"]), tag("NEW-1", url="http://x")],
    )
    assert held.run("apply", "plan.json").code == 5
    told.append(last_run(held))
    assert [(run["command"], run["outcome"], run["exitCode"]) for run in told] == [("apply", "refused", 5)] * 3
    assert len({run["reason"] for run in told}) == 3


def test_a_refusal_does_not_wait_for_the_lock(held: Project) -> None:
    """A refused apply is recorded while another run holds the lock; a refused `plan` is not recorded."""
    lock = held.run("state", "lock", "--format", "json").document["lock"]["id"]
    held.wants(tags=[tag("NEW-1", nmae="x")])
    runs = len(held.run("state", "history", "--format", "json").document["runs"])
    assert held.run("apply", "-y").code == 8
    assert last_run(held)["reason"].startswith("unknown-field: ")
    assert held.run("plan").code == 8
    assert len(held.run("state", "history", "--format", "json").document["runs"]) == runs + 1
    held.run("state", "unlock", lock)


def test_the_approval_of_a_run_is_recorded(held: Project) -> None:
    """The run also has the actor of a GitLab job."""
    held.wants(tags=[])
    approval = held.plan().gate.approve
    assert approval is not None
    done = held.run("apply", "-y", "--approve-deletes", approval, environ={"GITLAB_USER_LOGIN": "jd"})
    assert done.code == 0
    run = last_run(held)
    assert (run["outcome"], run["approvals"], run["actor"]) == ("complete", [approval], "jd")
    assert run["counts"]["applied"] > 0
    assert f"approved: {approval}" in held.run("state", "history").out


def test_a_report_says_when_where_and_by_whom(held: Project) -> None:
    """The report of an apply has team, commit, tree, actor, job, approvals and times."""
    git = ["git", "-c", "user.name=jd", "-c", "user.email=jd@example.com", "-C", str(held.folder)]
    held.wants(tags=[tag("NEW-1")])
    for words in (["init", "-q"], ["add", "manifests"], ["commit", "-qm", "Ask for a tag"]):
        subprocess.run([*git, *words], check=True)
    head, tree = (
        subprocess.run([*git, "rev-parse", name], check=True, capture_output=True, text=True).stdout.strip()
        for name in ("HEAD", "HEAD^{tree}")
    )
    environ = {"GITHUB_ACTOR": "octo", "CI_JOB_URL": "https://ci.example.com/7"}
    refused = held.run("apply", "-y", "--format", "json", environ=environ)
    assert (refused.code, refused.document["approvals"], refused.document["commit"]) == (4, [], head)
    approval = held.plan().gate.approve
    assert approval is not None
    done = held.run("apply", "-y", "--approve-deletes", approval, "--format", "json", environ=environ)
    report = done.document
    assert done.code == 0
    assert {name: report[name] for name in ("team", "environment", "commit", "tree", "actor", "job")} == {
        "team": "Sandbox",
        "environment": None,
        "commit": head,
        "tree": tree,
        "actor": "octo",
        "job": "https://ci.example.com/7",
    }
    assert report["approvals"] == [{"by": "--approve-deletes", "line": None, "approve": approval}]
    assert report["started"] <= report["ended"]
    assert {(each["address"], each["outcome"]) for each in report["results"]} == {
        ("tag/NEW-1", "applied"),
        ("category/held", "applied"),
        ("tag/HELD-1", "applied"),
    }


def test_a_forgotten_row_is_created_again(held: Project, service: Service) -> None:
    """`state forget` deletes nothing at the service, and fails if an address is not recorded."""
    assert held.run("state", "forget", "tag/HELD-1", "tag/NOWHERE", "-y").code == 1
    assert held.run("state", "forget", "tag/HELD-1").code == 64
    assert held.run("state", "forget", "tag/HELD-1", "-y", "--format", "json").document["forgotten"] == ["tag/HELD-1"]
    assert service.tags() == ["HELD-1"]
    assert [str(change.key) for change in held.plan().changes] == ["tag/HELD-1"]


def test_a_lock_by_hand_holds_until_it_is_unlocked_by_its_id(held: Project) -> None:
    """A refused apply names the lock's reason, and unlocking needs its id."""
    lock = held.run("state", "lock", "--reason", "moving house", "--format", "json").document["lock"]["id"]
    held.wants(tags=[tag("HELD-1"), tag("NEW-1")])
    refused = held.run("apply", "-y", "--lock-timeout", "0s")
    assert (refused.code, "moving house" in refused.err) == (6, True)
    assert held.run("state", "unlock", "another").code == 1
    assert lock in held.run("state", "unlock", lock).out
    assert not held.is_locked()


def test_a_renamed_team_is_accepted_by_rebind(held: Project, service: Service) -> None:
    """`state rebind` needs `-y` or an answer (docs/planning.md 1.6)."""
    service.choose(teamName="Renamed")
    assert held.run("state", "rebind").code == 64
    assert held.run("state", "rebind", "-y", "--format", "json").document["team"] == "Renamed"
    held.wants(**{**HELD, "tags": [*HELD["tags"], tag("NEW-1")]})
    assert held.run("apply", "-y").code == 0


@pytest.mark.parametrize("command", [("plan",), ("apply", "-y"), ("state", "list")])
def test_a_broken_state_file_is_named(held: Project, service: Service, command: tuple[str, ...]) -> None:
    """The file is not changed, and nothing is sent."""
    file = held.folder / ".syncengine" / "state.db"
    file.write_bytes(b"this is no database at all, whoever wrote it" * 100)
    before, asked = file.read_bytes(), service.asked()
    done = held.run(*command)
    assert (done.code, "state.db" in done.err, "internal" in done.err) == (1, True, False), done.err
    assert (file.read_bytes(), service.asked()) == (before, asked)


def test_a_plan_leaves_a_read_only_state_as_it_is(held: Project) -> None:
    """`plan` takes no lock and writes no file next to the state (docs/planning.md 1.4, 1.5)."""
    folder = held.folder / ".syncengine"
    (folder / "state.db").chmod(0o400)
    folder.chmod(0o500)
    before = held.files()
    held_before = held.run("plan", "--detailed-exitcode").code
    folder.chmod(0o700)
    assert (held_before, held.files()) == (0, before)


def test_plan_warns_of_another_service_and_apply_refuses_it(held: Project, service: Service) -> None:
    """A service at another address may lack everything; `state rebind` accepts it."""
    held.wants(**HELD)
    with serving() as other:
        there = Project(held.folder, other.url)
        planned = there.run("plan", "--out", "saved.plan", "--format", "json")
        assert (planned.code, planned.codes) == (0, ["other-service"])
        assert there.run("plan").out.startswith("warning[other-service]: the state belongs to ")
        for arguments in (("apply", "-y"), ("apply", "saved.plan")):
            refused = there.run(*arguments, "--format", "json")
            assert (refused.code, refused.codes) == (7, ["other-service"]), refused.out
        assert other.asked() == []
        assert there.run("state", "rebind", "-y").code == 0
        assert there.run("apply", "-y").code == 0


def test_another_spelling_of_a_service_is_the_same_service(held: Project) -> None:
    """A slash at the end, upper case in the host and the default port make no difference."""
    spelt = Project(held.folder, held.url.replace("http://127", "HTTP://127") + "/")
    assert spelt.run("apply", "-y").code == 0
    assert canonical_url("https://A.example:443/x/") == canonical_url("https://a.example/x") != "https://a.example"


def test_a_plan_without_a_state_says_so_first(project: Project) -> None:
    """The path may be wrong, so the first line is the warning `no-state`."""
    project.wants(tags=[tag("A-1")])
    assert project.run("plan").out.startswith("warning[no-state]: no state at .syncengine/state.db yet: everything is")
    assert project.run("plan", "--format", "json").codes == ["no-state"]
    project.apply()
    assert project.run("plan", "--format", "json").codes == []


@pytest.mark.parametrize(
    "place",
    ["postgresql:/x", "host=db dbname=state", "jo@db/state"],
)
def test_a_mistyped_url_of_a_state_is_no_path(project: Project, place: str) -> None:
    """No file with that name is created, and the text is not shown, as it may contain a password."""
    project.wants(tags=[tag("A-1")])
    before = project.files()
    for command in (("plan",), ("apply", "-y"), ("state", "list")):
        refused = project.run(*command, environ={"SYNCENGINE_STATE": place})
        assert (refused.code, "error[state-url]" in refused.err, place in refused.err) == (8, True, False), refused.err
    assert project.files() == before
    assert project.run("plan", environ={"SYNCENGINE_STATE": "./a=b@c.db"}).code == 0
